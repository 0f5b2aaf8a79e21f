/* tensor_tile.h - m16n8 on the host's vectors; included once for each host level (TENSOR_LEVEL 1,
 * 2, 3).
 *
 * The 16 rows are done in parts of LANES rows; a vector holds one column of a part, rows in the
 * order that vector_turn leaves. Sums of half a step are exact in int32: a product aligned to the
 * step's largest exponent E is a*b*2^(F-E), truncated. */
#include "emulator/tensor_vector.h"

typedef struct tile {
    vi a_exponents[8]; /* [4*half + t]: of the packed elements, one register of each row */
    vf a[32];          /* [k] */
    vi c[8];           /* [column], the bits of fp32 */
    float b[4][2][32]; /* [element of the register][half][4n + t] */
    uint32_t b_exponents[2][32]; /* [half][4n + t], packed */
    bool finite, a_any, b_any;   /* all operands finite; some of a, of b, not zero */
    uint32_t elements;           /* of a register: 4 or 2 */
} tile;

/* How a type is taken apart. Lanes of four bytes or two halves; masks repeat for each. */
typedef struct packing {
    uint32_t magnitude, exponent, special; /* special: the least magnitude that is not finite */
    uint32_t one, bias, zero;              /* zero: the exponent that stands for a zero */
    uint32_t fraction;                     /* bits */
    uint32_t shift, keep; /* from the top of a dword to fp32's fields, and the magnitude there */
    int32_t rebias;       /* added to fp32's exponent field; 0: it is fp32's own */
} packing;

#define BYTES(x)  (0x01010101u * (uint8_t)(x))
#define HALVES(x) (0x00010001u * (uint16_t)(x))
/* An 8-bit sum of two -60 does not wrap, and lies below any product; -126 is the unit's own rule.
 */
static const packing packings[] = {
    [TENSOR_E4M3] = {BYTES(0x7f), BYTES(0x0f), BYTES(0x7f), BYTES(1), BYTES(7), BYTES(-60), 3, 4,
                     0x07f00000, 120},
    [TENSOR_E5M2] = {BYTES(0x7f), BYTES(0x1f), BYTES(0x7c), BYTES(1), BYTES(15), BYTES(-60), 2, 3,
                     0x0fe00000, 112},
    [TENSOR_BF16] = {HALVES(0x7fff), HALVES(0xff), HALVES(0x7f80), HALVES(1), HALVES(127),
                     HALVES(-126), 7, 0, 0x7fff0000, 0},
    [TENSOR_F16] = {HALVES(0x7fff), HALVES(0x1f), HALVES(0x7c00), HALVES(1), HALVES(15),
                    HALVES(-126), 10, 3, 0x0fffe000, 112},
};
enum {
    PRODUCT_ZERO = -40, /* 8-bit sums below it have a zero factor */
    EXPONENT_NONE = -200,
    EXPONENT_MOST = 100
}; /* of the lanes' fp32 scales, either way */

VECTOR_INLINE void tile_exponents(tile *t, vi *out, const vi *raw, const packing *p, bool *any)
{
    vi magnitude = *raw & (int32_t)p->magnitude;
    vi field = (magnitude >> (int32_t)p->fraction) & (int32_t)p->exponent;
    vi one = SPLAT(p->one), bias = SPLAT(p->bias), special = SPLAT(p->special), zero;

    if (t->elements == 4) {
        special = (vi)((vb)magnitude >= (vb)special);
        zero = (vi)((vb)magnitude == (vb)SPLAT(0));
        vector_max8(&field, &one);
        field = (vi)((vb)field - (vb)bias);
    } else {
        special = (vi)((vh)magnitude >= (vh)special);
        zero = (vi)((vh)magnitude == (vh)SPLAT(0));
        vector_max16(&field, &one);
        field = (vi)((vh)field - (vh)bias);
    }
    *out = (field & ~zero) | (SPLAT(p->zero) & zero);
    t->finite = t->finite && !vector_any(&special);
    *any = *any || vector_any(&magnitude);
}

/* Element `index` of each register as fp32. Subnormals are made without subnormal fp32 operands,
 * which cost hosts 150 cycles each: with u the value read as if normal, they are 2u - 2^least, the
 * smaller of the two. */
VECTOR_INLINE void tile_values(vf *out, const vi *raw, const packing *p, uint32_t index,
                               uint32_t elements)
{
    vi top = *raw << (int32_t)((32 / elements) * (elements - 1 - index));
    vi sign = top & INT32_MIN, value = (top >> (int32_t)p->shift) & (int32_t)p->keep;

    if (p->rebias != 0) {
        vf least = (vf)SPLAT((uint32_t)(p->rebias + 1) << 23);
        vf normal = (vf)(value + (p->rebias << 23));
        vi subnormal = (vi)(normal + normal - least);
        value = (vi)normal;
        vector_min32(&value, &subnormal);
    }
    *out = (vf)(value | sign);
}

/* Registers `low` and `high` together are 16 rows of 4 lanes; a part is LANES rows of them. */
VECTOR_INLINE void tile_load(vi x[4], const uint32_t *low, const uint32_t *high, uint32_t part)
{
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t at = LANES * (4 * part + i);
        vector_load(&x[i], (at < 32 ? low : high) + at % 32);
    }
    vector_turn(x);
}

VECTOR_INLINE void tile_open_a(tile *t, const tensor_call *call, uint32_t part)
{
    const packing *p = &packings[call->a_type];

    for (uint32_t half = 0; half < 2; half++) {
        vi x[4];
        tile_load(x, call->a[2 * half], call->a[2 * half + 1], part);
        for (uint32_t i = 0; i < 4; i++) {
            tile_exponents(t, &t->a_exponents[4 * half + i], &x[i], p, &t->a_any);
            VECTOR_UNROLL
            for (uint32_t e = 0; e < t->elements; e++) {
                tile_values(&t->a[t->elements * (4 * half + i) + e], &x[i], p, e, t->elements);
            }
        }
    }
}

VECTOR_INLINE void tile_open_b(tile *t, const tensor_call *call)
{
    const packing *p = &packings[call->b_type];

    for (uint32_t at = 0; at < 64; at += LANES) {
        vi raw, exponents;
        vector_load(&raw, call->b[at / 32] + at % 32);
        tile_exponents(t, &exponents, &raw, p, &t->b_any);
        memcpy(t->b_exponents[at / 32] + at % 32, &exponents, sizeof exponents);
        VECTOR_UNROLL
        for (uint32_t e = 0; e < t->elements; e++) {
            vf values;
            tile_values(&values, &raw, p, e, t->elements);
            memcpy(t->b[e][at / 32] + at % 32, &values, sizeof values);
        }
    }
}

/* c to columns (columns 2t of registers 0 and 2, 2t+1 of 1 and 3), and the same back. */
VECTOR_INLINE void tile_open_c(tile *t, const uint32_t (*c)[32], uint32_t part)
{
    for (uint32_t odd = 0; odd < 2; odd++) {
        vi x[4];
        tile_load(x, c[odd], c[odd + 2], part);
        for (uint32_t i = 0; i < 4; i++) {
            t->c[2 * i + odd] = x[i];
        }
    }
}

VECTOR_INLINE void tile_close(uint32_t d[4][32], const tile *t, uint32_t part)
{
    for (uint32_t odd = 0; odd < 2; odd++) {
        vi x[4];
        for (uint32_t i = 0; i < 4; i++) {
            x[i] = t->c[2 * i + odd];
        }
        vector_turn(x);
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t at = LANES * (4 * part + i);
            memcpy(d[at < 32 ? odd : odd + 2] + at % 32, &x[i], sizeof x[i]);
        }
    }
}

VECTOR_INLINE float tile_b(const tile *t, uint32_t k, uint32_t n)
{
    uint32_t group = k / t->elements;

    return t->b[k % t->elements][group / 4][4 * n + group % 4];
}

VECTOR_INLINE void tile_fast(tile *t)
{
    vf sum[8];

    memcpy(sum, t->c, sizeof sum);
    VECTOR_UNROLL
    for (uint32_t k = 0; k < 8 * t->elements; k++) {
        VECTOR_UNROLL
        for (uint32_t n = 0; n < 8; n++) {
            vector_fma(&sum[n], &t->a[k], tile_b(t, k, n));
        }
    }
    memcpy(t->c, sum, sizeof sum);
}

/* The largest exponent among the products of register groups [first, last) with column n. */
VECTOR_INLINE void tile_product_exponent(vi *out, const tile *t, uint32_t n, uint32_t first,
                                         uint32_t last)
{
    bool bytes = t->elements == 4;
    vi most = bytes ? SPLAT(BYTES(-128)) : SPLAT(HALVES(-32768));

    VECTOR_UNROLL
    for (uint32_t q = first; q < last; q++) {
        vi b = SPLAT(t->b_exponents[q / 4][4 * n + q % 4]);
        vi sum = bytes ? (vi)((vb)t->a_exponents[q] + (vb)b) : (vi)((vh)t->a_exponents[q] + (vh)b);
        if (bytes) {
            vector_max8(&most, &sum);
        } else {
            vector_max16(&most, &sum);
        }
    }
    if (bytes) {
        vi upper = most >> 16, none = SPLAT(EXPONENT_NONE), zero;
        vector_max8(&most, &upper);
        upper = most >> 8;
        vector_max8(&most, &upper);
        most = (most << 24) >> 24;
        zero = most < PRODUCT_ZERO;
        most = (most & ~zero) | (none & zero);
    } else {
        vi upper = most >> 16;
        vector_max16(&most, &upper);
        most = (most << 16) >> 16;
    }
    *out = most;
}

/* sum * 2^(exponent - F), toward zero to the unit's mantissa. Of 13-bit units |sum| < 2^20, which
 * fp32 holds; of others |sum| < 2^34, which doubles hold. */
VECTOR_INLINE void tile_round(vi *out, const vi sum[3], const vi *unit, int32_t mantissa)
{
    vd total[2], more[2];
    vf result;
    int64_t keep = -(INT64_C(1) << (52 - mantissa));

    if (mantissa == 13) {
        vi bits = (vi) __builtin_convertvector(sum[0] + sum[1] + sum[2], vf);
        result = (vf)(bits & -(1 << (23 - 13))) * (vf)*unit;
        *out = (vi)result;
        return;
    }
    vector_widen(total, &sum[0]);
    for (uint32_t i = 1; i < 3; i++) {
        vector_widen(more, &sum[i]);
        total[0] += more[0];
        total[1] += more[1];
    }
    total[0] = (vd)((vl)total[0] & keep);
    total[1] = (vd)((vl)total[1] & keep);
    vector_narrow(&result, total);
    result *= (vf)*unit;
    *out = (vi)result;
}

/* One step of the unit on column n: register groups [first, last). False when an exponent is too
 * extreme. */
VECTOR_INLINE bool tile_step(tile *t, uint32_t n, uint32_t first, uint32_t last, tensor_unit unit)
{
    vi c = t->c[n], field = (c >> 23) & 255, one = SPLAT(1), least = SPLAT(-EXPONENT_MOST);
    vi most, extreme, some, sum[3] = {SPLAT(0), SPLAT(0), SPLAT(0)}, scale_bits, unit_bits;
    vf scale;

    tile_product_exponent(&most, t, n, first, last);
    vector_max32(&field, &one);
    field -= 127;
    vector_max32(&most, &field);
    some = (c & INT32_MAX) != 0;
    some |= SPLAT(t->elements == 2 && t->a_any && t->b_any ? -1 : 0);
    extreme = (most > EXPONENT_MOST) | ((most < -EXPONENT_MOST) & some);
    if (vector_any(&extreme)) {
        return false;
    }
    vector_max32(&most, &least);
    scale_bits = (127 + unit.fraction - most) << 23;
    unit_bits = (127 - unit.fraction + most) << 23;
    scale = (vf)scale_bits;
    VECTOR_UNROLL
    for (uint32_t k = first * t->elements; k < last * t->elements; k++) {
        vf term = t->a[k] * tile_b(t, k, n) * scale;
        sum[k / (4 * t->elements)] += __builtin_convertvector(term, vi);
    }
    sum[2] = __builtin_convertvector((vf)c * scale, vi);
    tile_round(&t->c[n], sum, &unit_bits, unit.mantissa);
    return true;
}

VECTOR_INLINE bool tile_hw(tile *t, tensor_unit unit)
{
    bool ok = true;

    for (uint32_t n = 0; n < 8 && ok; n++) {
        if ((uint32_t)unit.terms == 8 * t->elements) {
            ok = tile_step(t, n, 0, 8, unit);
        } else {
            ok = tile_step(t, n, 0, 4, unit) && tile_step(t, n, 4, 8, unit);
        }
    }
    return ok;
}

/* x + y rounded once to fp32: the double sum, made odd when it is not exact, rounds as the true one
 * does. */
VECTOR_INLINE float tile_add_once(double x, float y)
{
    double sum = x + (double)y, back = sum - x;
    double error = (x - (sum - back)) + ((double)y - back);
    int64_t bits = 0;

    memcpy(&bits, &sum, sizeof bits);
    if (error != 0.0 && (bits & 1) == 0) {
        bits += (error > 0.0) == (sum > 0.0) ? 1 : -1;
        memcpy(&sum, &bits, sizeof bits);
    }
    return (float)sum;
}

/* Products of e4m3 are multiples of 2^-18 below 2^18: doubles sum 32 of them exactly. */
VECTOR_INLINE void tile_exact(tile *t)
{
    for (uint32_t n = 0; n < 8; n++) {
        vd sum[2] = {{0}, {0}}, terms[2];
        vf c = (vf)t->c[n];
        VECTOR_UNROLL
        for (uint32_t k = 0; k < 32; k++) {
            vf term = t->a[k] * tile_b(t, k, n);
            vector_widen_float(terms, &term);
            sum[0] += terms[0];
            sum[1] += terms[1];
        }
        for (uint32_t i = 0; i < LANES; i++) {
            c[i] = tile_add_once(sum[i / (LANES / 2)][i % (LANES / 2)], c[i]);
        }
        t->c[n] = (vi)c;
    }
}

VECTOR_INLINE bool tile_part(tile *t, const tensor_call *call, uint32_t part)
{
    bool e4m3 = call->a_type == TENSOR_E4M3 && call->b_type == TENSOR_E4M3;

    tile_open_a(t, call, part);
    tile_open_c(t, call->c, part);
    if (!t->finite || (call->mode == HONE_EMU_EXACT && !e4m3)) {
        return false;
    }
    if (call->mode == HONE_EMU_HW) {
        return tile_hw(t, call->unit);
    }
    if (call->mode == HONE_EMU_EXACT) {
        tile_exact(t);
    } else {
        tile_fast(t);
    }
    return true;
}

VECTOR_INLINE bool tile_work(uint32_t d[4][32], const tensor_call *call, uint32_t elements)
{
    tile t;
    uint32_t out[4][32];

    t.finite = true;
    t.a_any = false;
    t.b_any = false;
    t.elements = elements;
    tile_open_b(&t, call);
    for (uint32_t part = 0; part < 16 / LANES; part++) {
        if (!tile_part(&t, call, part)) {
            return false;
        }
        tile_close(out, &t, part);
    }
    memcpy(d, out, sizeof out);
    return true;
}

/* The two widths are compiled apart, so that their loops have constant bounds. */
static bool tile_run(uint32_t d[4][32], const tensor_call *call)
{
    bool bytes = call->a_type == TENSOR_E4M3 || call->a_type == TENSOR_E5M2;

    return bytes ? tile_work(d, call, 4) : tile_work(d, call, 2);
}
