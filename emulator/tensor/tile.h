/* tile.h - m16n8 on the host's vectors; included once for each host level (TENSOR_LEVEL 1,
 * 2, 3).
 *
 * The 16 rows are done in parts of LANES rows; a vector holds one column of a part. */
#include "emulator/tensor/step.h"
#if TENSOR_LEVEL == 3
#include "emulator/tensor/down.h"
#endif

/* c to columns (columns 2t of registers 0 and 2, 2t+1 of 1 and 3), and the same back. */
VECTOR_INLINE void tile_open_c(tile *t, const uint32_t *const *c, uint32_t part)
{
    for (uint32_t odd = 0; odd < 2; odd++) {
        vi x[4];
        operand_load(x, c[odd], c[odd + 2], part);
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

VECTOR_INLINE void tile_fast(tile *t)
{
    vf sum[8], left;

    memcpy(sum, t->c, sizeof sum);
    for (uint32_t q = 0; q < 8; q++) {
        VECTOR_UNROLL
        for (uint32_t e = 0; e < t->elements; e++) {
            tile_left(t, t->elements * q + e, &left);
            VECTOR_UNROLL
            for (uint32_t n = 0; n < 8; n++) {
                vector_fma(&sum[n], &left, tile_right(t, q, e, n));
            }
        }
    }
    memcpy(t->c, sum, sizeof sum);
}

/* One step on column n. False when the vectors cannot. */
VECTOR_INLINE bool tile_step_any(tile *t, const step_constants *k, uint32_t n, uint32_t first,
                                 uint32_t last)
{
    tile_step s = {.n = n};

    if (!tile_align(t, k, &s, first, last)) {
        return tile_step_extreme(t, &s, first, last);
    }
    tile_step_terms(t, &s, first, last);
    return true;
}

/* One step on all columns. */
VECTOR_INLINE bool tile_step_all(tile *t, const step_constants *k, uint32_t first, uint32_t last)
{
    bool ok = true;

#if TENSOR_LEVEL == 3
    if (t->down && down_step_all(t, first, last)) {
        return true;
    }
#endif
    for (uint32_t n = 0; n < 8 && ok; n++) {
        ok = tile_step_any(t, k, n, first, last);
    }
    return ok;
}

/* Of a unit that takes k in two steps, all columns do the first before one does the second: a step
 * waits for the one before it, and columns do not wait for one another. False of a unit that takes
 * it in other steps, or that these steps do not know. */
VECTOR_INLINE bool tile_hw(tile *t)
{
    uint32_t terms = (uint32_t)t->unit.terms, depth = 8 * t->elements;
    step_constants fixed;

    if ((terms != depth && 2 * terms != depth) || !step_knows(&t->unit)) {
        return false;
    }

    step_fix(&fixed, t->unit.fraction);
#if TENSOR_LEVEL == 3
    __asm__("" : "+v"(fixed.field), "+v"(fixed.one), "+v"(fixed.bias), "+v"(fixed.reach));
#endif
    if (terms == depth) {
        return tile_step_all(t, &fixed, 0, 8);
    }
    return tile_step_all(t, &fixed, 0, 4) && tile_step_all(t, &fixed, 4, 8);
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
        for (uint32_t k = 0; k < 32; k++) {
            vf term;
            tile_left(t, k, &term);
            term *= tile_right(t, k / 4, k % 4, n);
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

VECTOR_INLINE bool tile_part(tile *t, const tensor_call *call)
{
    tile_open_c(t, call->c, t->part);
    if (call->mode == HONE_EMU_FAST) {
        tile_fast(t);
        return true;
    }
    if (call->mode == HONE_EMU_EXACT) {
        tile_exact(t);
        return true;
    }
    return tile_hw(t);
}

VECTOR_INLINE bool tile_work(uint32_t *const d[4], const tensor_call *call, tensor_left *left,
                             tensor_right *right, uint32_t elements)
{
    uint32_t out[4][32];
    tile t;

    t.left = left;
    t.right = right;
    t.unit = call->unit;
    t.elements = elements;
    operand_open_left(left, call, elements);
    operand_open_right(right, call, elements);
    if (!left->finite || !right->finite) {
        return false;
    }
#if TENSOR_LEVEL == 3
    t.down = elements == 4 && call->mode == HONE_EMU_HW &&
             (call->unit.fraction == 13 || call->unit.fraction == 25);
    if (t.down) {
        down_open(left, right);
    }
#endif
    for (t.part = 0; t.part < 16 / LANES; t.part++) {
        if (!tile_part(&t, call)) {
            return false;
        }
        tile_close(out, &t, t.part);
    }
    for (uint32_t i = 0; i < 4; i++) {
        memcpy(d[i], out[i], sizeof out[i]);
    }
    return true;
}

/* The two widths are compiled apart, so that their loops have constant bounds. */
static bool tile_run(uint32_t *const d[4], const tensor_call *call, tensor_left *left,
                     tensor_right *right)
{
    bool e4m3 = call->a_type == TENSOR_E4M3 && call->b_type == TENSOR_E4M3;
    bool bytes = call->a_type == TENSOR_E4M3 || call->a_type == TENSOR_E5M2;

    if (call->mode == HONE_EMU_EXACT && !e4m3) {
        return false;
    }
    return bytes ? tile_work(d, call, left, right, 4) : tile_work(d, call, left, right, 2);
}

/* An operand that is not kept is taken apart here. */
static bool tile_open(uint32_t *const d[4], const tensor_call *call)
{
    tensor_left left;
    tensor_right right;

    left.kept = false;
    right.kept = false;
    return tile_run(d, call, call->left != NULL ? call->left : &left,
                    call->right != NULL ? call->right : &right);
}
