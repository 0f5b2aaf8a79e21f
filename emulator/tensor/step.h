/* step.h - one step of a matrix unit on one column of a product: `hw` arithmetic.
 *
 * A product aligned to the step's largest exponent E is a*b*2^(F-E), truncated; sums of these are
 * exact in what holds them. Included by tile.h for each host level. */
#include "emulator/tensor/operand.h"

enum {
    PRODUCT_ZERO = -40, /* 8-bit sums below it have a zero factor */
    EXPONENT_NONE = -200,
    EXPONENT_MOST = 100
}; /* of the lanes' fp32 scales, either way */

/* What a column is computed from: LANES rows from LANES * part. */
typedef struct tile {
    const tensor_left *left;
    const tensor_right *right;
    vi c[8]; /* [column], the bits of fp32 */
    tensor_unit unit;
    uint32_t part, elements; /* elements of a register: 4 or 2 */
    bool down;               /* down_step_all does its steps */
} tile;

/* A step of column n: its largest exponent; 2^(F-E) and 2^(E-F). The register quads [first, last)
 * that it adds go beside it: constants, so that loops over them unroll. */
typedef struct tile_step {
    uint32_t n;
    vi most;
    vf scale, unit;
} tile_step;

/* Units whose steps are the scalar one's here: terms of 13 bits end in 13, others in fp32's 23, and
 * int32 holds the sums of 25. */
VECTOR_INLINE bool step_knows(const tensor_unit *u)
{
    return u->fraction <= 25 && u->mantissa == (u->fraction == 13 ? 13 : 23);
}

/* Constants of a step, which loops over columns keep in registers: compilers would make them anew
 * in each. */
typedef struct step_constants {
    vi field, one, bias, reach, unit, scale;
} step_constants;

VECTOR_INLINE void step_fix(step_constants *k, int32_t fraction)
{
    k->field = SPLAT(255);
    k->one = SPLAT(1);
    k->bias = SPLAT(127);
    k->reach = SPLAT(EXPONENT_MOST);
    k->unit = SPLAT((uint32_t)(127 - fraction) << 23);
    k->scale = SPLAT((uint32_t)(127 + fraction) << 23);
}

VECTOR_INLINE void tile_left(const tile *t, uint32_t k, vf *out)
{
    memcpy(out, t->left->values[k] + LANES * t->part, sizeof *out);
}

VECTOR_INLINE float tile_right(const tile *t, uint32_t quad, uint32_t element, uint32_t n)
{
    return t->right->values[element][quad / 4][4 * n + quad % 4];
}

/* Packed sums of exponents: bytes, halves, or whole lanes of tf32. */
VECTOR_INLINE void step_add_exponents(vi *out, const vi *a, const vi *b, uint32_t elements)
{
    *out = elements == 4 ? (vi)((vb)*a + (vb)*b) : elements == 2 ? (vi)((vh)*a + (vh)*b) : *a + *b;
}

VECTOR_INLINE void step_max_exponents(vi *most, const vi *sum, uint32_t elements)
{
    if (elements == 4) {
        vector_max8(most, sum);
    } else if (elements == 2) {
        vector_max16(most, sum);
    } else {
        vector_max32(most, sum);
    }
}

/* The largest of a lane's packed sums, alone in the lane. */
VECTOR_INLINE void step_unpack_most(vi *most, uint32_t elements)
{
    vi upper = *most >> 16, none = SPLAT(EXPONENT_NONE), zero;

    if (elements == 4) {
        vector_max8(most, &upper);
        upper = *most >> 8;
        vector_max8(most, &upper);
        *most = (*most << 24) >> 24;
        zero = *most < PRODUCT_ZERO;
        *most = (*most & ~zero) | (none & zero);
    } else if (elements == 2) {
        vector_max16(most, &upper);
        *most = (*most << 16) >> 16;
    }
}

/* The largest exponent among the step's products. */
VECTOR_INLINE void tile_product_exponent(vi *out, const tile *t, uint32_t n, uint32_t first,
                                         uint32_t last)
{
    const int32_t *right = t->right->exponents[0] + 4 * n;
    bool bytes = t->elements == 4;
    vi most = bytes ? SPLAT(BYTES(-128)) : SPLAT(HALVES(-32768));

    VECTOR_UNROLL
    for (uint32_t q = first; q < last; q++) {
        vi b = SPLAT(right[32 * (q / 4) + q % 4]), sum;
        memcpy(&sum, t->left->exponents[q] + LANES * t->part, sizeof sum);
        step_add_exponents(&sum, &sum, &b, t->elements);
        step_max_exponents(&most, &sum, t->elements);
    }
    step_unpack_most(&most, t->elements);
    *out = most;
}

/* From the products' largest exponent: that of the step, with c, and its scales. `wide`: products
 * may not be zero and have fp32's exponents. False when the exponent is too extreme for fp32
 * scales. */
VECTOR_INLINE bool step_scales(tile_step *s, const vi *c, const step_constants *k, bool wide)
{
    vi field = (*c >> 23) & k->field, most = s->most, from_least;

    vector_max32(&field, &k->one);
    field -= k->bias;
    vector_max32(&most, &field);
    s->most = most;
    from_least = most + k->reach;
    if (vector_exceeds(&from_least, 2 * EXPONENT_MOST)) { /* or nothing but zeros */
        vi some = ((*c & INT32_MAX) != 0) | SPLAT(wide ? -1 : 0), least = SPLAT(-EXPONENT_MOST);
        vi extreme = (most > EXPONENT_MOST) | ((most < -EXPONENT_MOST) & some);
        if (vector_any(&extreme)) {
            return false;
        }
        vector_max32(&most, &least);
    }
    most <<= 23;
    s->scale = (vf)(k->scale - most);
    s->unit = (vf)(most + k->unit);
    return true;
}

/* Fill the step's exponent and scales. False when the exponent is too extreme for fp32 scales. */
VECTOR_INLINE bool tile_align(const tile *t, const step_constants *k, tile_step *s, uint32_t first,
                              uint32_t last)
{
    tile_product_exponent(&s->most, t, s->n, first, last);
    return step_scales(s, &t->c[s->n], k, t->elements == 2 && t->left->any && t->right->any);
}

/* sum * 2^(E-F), toward zero to the unit's mantissa. Of 13-bit units |sum| < 2^20, which fp32
 * holds. */
VECTOR_INLINE void step_round(vi *out, const tile_step *s, const vi sum[3], int32_t mantissa)
{
    vf result;

    if (mantissa == 13) {
        vi bits = (vi) __builtin_convertvector(sum[0] + sum[1] + sum[2], vf);
        result = (vf)(bits & -(1 << (23 - 13)));
    } else {
        vector_sum_toward_zero(&result, sum);
    }
    result *= s->unit;
    *out = (vi)result;
}

/* Any step that tile_align accepts: each term by itself, in int32. The terms of half the quads fit
 * in one sum. */
VECTOR_INLINE void tile_step_terms(tile *t, const tile_step *s, uint32_t first, uint32_t last)
{
    vi sum[3] = {SPLAT(0), SPLAT(0), SPLAT(0)};

    VECTOR_UNROLL
    for (uint32_t half = first / 4; half < last / 4; half++) {
        const float *right = t->right->values[0][half] + 4 * s->n;
        const float *left = t->left->values[4 * half * t->elements] + LANES * t->part;
        for (uint32_t quad = 0; quad < 4; quad++) {
            VECTOR_UNROLL
            for (uint32_t e = 0; e < t->elements; e++) {
                vf term;
                memcpy(&term, left + 16 * (t->elements * quad + e), sizeof term);
                term = term * right[64 * e + quad] * s->scale;
                sum[half] += __builtin_convertvector(term, vi);
            }
        }
    }
    sum[2] = __builtin_convertvector((vf)t->c[s->n] * s->scale, vi);
    step_round(&t->c[s->n], s, sum, t->unit.mantissa);
}

/* x toward zero to a multiple of fp32's least unit where fp32 would keep fewer bits than x has. */
VECTOR_INLINE void tile_subnormal(vd *x)
{
    vl magnitude = (vl)*x & INT64_MAX;
    vl small = (vl)(magnitude < (vl){0} + (INT64_C(897) << 52)); /* 2^-126 */
    vd within = (vd)((vl)*x & small) * 0x1p149;

    within = __builtin_convertvector(__builtin_convertvector(within, vl), vd) * 0x1p-149;
    *x = (vd)(((vl)*x & ~small) | ((vl)within & small));
}

/* A step whose exponent tile_align refused, in doubles, which hold all scales. False when c is not
 * finite, and when bytes have none but zero products: their exponent is not known then, and a tiny
 * c shows it. */
VECTOR_INLINE bool tile_step_extreme(tile *t, const tile_step *s, uint32_t first, uint32_t last)
{
    int64_t keep = -(INT64_C(1) << (52 - t->unit.mantissa));
    vl sum[2] = {{0}, {0}}, exponent;
    vd scale[2], unit[2], term[2], total[2];
    vi refused = (t->c[s->n] & 0x7f800000) == 0x7f800000;
    vf c = (vf)t->c[s->n];

    if (t->elements == 4) {
        refused |= s->most < -EXPONENT_MOST;
    }
    if (vector_any(&refused)) {
        return false;
    }
    for (uint32_t h = 0; h < 2; h++) {
        vi_half most[2];
        memcpy(most, &s->most, sizeof most);
        exponent = __builtin_convertvector(most[h], vl) - t->unit.fraction;
        scale[h] = (vd)((1023 - exponent) << 52);
        unit[h] = (vd)((1023 + exponent) << 52);
    }
    for (uint32_t k = first * t->elements; k < last * t->elements; k++) {
        uint32_t q = k / t->elements;
        vf left;
        tile_left(t, k, &left);
        vector_widen_float(term, &left);
        for (uint32_t h = 0; h < 2; h++) {
            term[h] *= (double)t->right->values[k % t->elements][q / 4][4 * s->n + q % 4];
            sum[h] += __builtin_convertvector(term[h] * scale[h], vl);
        }
    }
    vector_widen_float(term, &c);
    for (uint32_t h = 0; h < 2; h++) {
        sum[h] += __builtin_convertvector(term[h] * scale[h], vl);
        total[h] = __builtin_convertvector(sum[h], vd);
        total[h] = (vd)((vl)total[h] & keep) * unit[h];
        tile_subnormal(&total[h]);
    }
    vector_narrow(&c, total);
    t->c[s->n] = (vi)c;
    return true;
}
