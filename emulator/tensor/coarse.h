/* coarse.h - one step of an 8-bit unit with 13 fraction bits, on hosts that round an operation as
 * it says (AVX-512). Included by tile.h for that level.
 *
 * A sum that begins at 2^(E+10) stays among numbers whose last place is the step's unit 2^(E-13),
 * so that adding a product to it toward zero truncates the product: nothing is scaled or converted.
 * Products above zero go to a sum that begins there, those below to one that begins at -2^(E+10).
 * What is added up is below 2^20 units, so that the difference of the two is exact. */
enum {
    COARSE_TERMS = 16, /* of a step */
    COARSE_LEFT = 153, /* of left exponents; right ones are taken from the second: the difference */
    COARSE_RIGHT = 16, /* of both, E + 137, is the exponent field of 2^(E+10) */
    COARSE_TOWARD_ZERO = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC,
};

/* Exponents as unsigned bytes. A zero's lies below what any right one takes away, and so above what
 * any left one gives: the difference, which saturates, is 0. */
VECTOR_INLINE void coarse_reach(void *out, const void *exponents, bool right)
{
    vi e, zero;

    memcpy(&e, exponents, sizeof e);
    zero = (vi)((vb)e == (vb)SPLAT(packings[TENSOR_E4M3].zero));
    e = right ? (vi)((vub)SPLAT(BYTES(COARSE_RIGHT)) - (vub)e)
              : (vi)((vub)e + (vub)SPLAT(BYTES(COARSE_LEFT)));
    e = right ? e | zero : e & ~zero;
    memcpy(out, &e, sizeof e);
}

/* What tile_step_coarse wants of operands beside their values. */
VECTOR_INLINE void coarse_open(tensor_left *left, tensor_right *right)
{
    for (uint32_t k = 0; k < 32 && !left->parted; k++) {
        __m512 x = _mm512_load_ps(left->values[k]), none = _mm512_setzero_ps();
        _mm512_store_ps(left->parts[k][0], _mm512_max_ps(x, none));
        _mm512_store_ps(left->parts[k][1], _mm512_min_ps(x, none));
        _mm512_store_ps(left->parts[k][2], _mm512_max_ps(x, none));
    }
    for (uint32_t q = 0; q < 8 && !left->parted; q++) {
        coarse_reach(left->reach[q], left->exponents[q], false);
    }
    for (uint32_t n = 0; n < 64 && !right->parted; n += LANES) {
        coarse_reach((uint32_t *)right->reach + n, (int32_t *)right->exponents + n, true);
    }
    for (uint32_t n = 0; n < 256 && !right->parted; n += LANES) {
        vu bits;
        memcpy(&bits, (float *)right->values + n, sizeof bits);
        bits = bits >> 31 << 4; /* which of the left parts meets it first: the floats before it */
        memcpy((uint32_t *)right->skips + n, &bits, sizeof bits);
    }
    left->parted = right->parted = true;
}

/* Constants that stay in registers: compilers would make them anew in each step. */
typedef struct coarse_constants {
    __m512i field, up, least, most;
    __m512 none, keep;
} coarse_constants;

VECTOR_INLINE void coarse_fix(coarse_constants *k)
{
    k->field = _mm512_set1_epi32(0x7f800000);
    k->up = _mm512_set1_epi32(10 << 23);
    k->least = _mm512_set1_epi32((137 - EXPONENT_MOST) << 23);
    k->most = _mm512_set1_epi32((127 + EXPONENT_MOST) << 23);
    k->none = _mm512_setzero_ps();
    k->keep = (__m512)SPLAT(-(1 << (23 - 13)));
    __asm__("" : "+v"(k->field), "+v"(k->up), "+v"(k->least), "+v"(k->most));
    __asm__("" : "+v"(k->none), "+v"(k->keep));
}

/* 2^(E+10) of the products of `first` and the three quads after it: exponent fields. */
VECTOR_INLINE __m512i coarse_most(const tile *t, uint32_t n, uint32_t first)
{
    const uint32_t *right = t->right->reach[first / 4] + 4 * n;
    __m512i most = _mm512_setzero_si512();

    VECTOR_UNROLL
    for (uint32_t q = 0; q < 4; q++) {
        __m512i left = _mm512_load_si512(t->left->reach[first + q]);
        left = _mm512_subs_epu8(left, _mm512_set1_epi32((int32_t)right[q]));
        most = q == 0 ? left : _mm512_max_epu8(most, left);
    }
    most = _mm512_max_epu8(most, _mm512_slli_epi32(most, 16));
    most = _mm512_max_epu8(most, _mm512_slli_epi32(most, 8));
    return _mm512_slli_epi32(_mm512_srli_epi32(most, 24), 23);
}

/* The four quads from `first` on of column n. False, and nothing done, when c's exponent is too
 * extreme for the sums. */
VECTOR_INLINE bool tile_step_coarse(tile *t, const coarse_constants *fixed, uint32_t n,
                                    uint32_t first)
{
    const float *right = t->right->values[0][first / 4] + 4 * n;
    const uint32_t *skips = t->right->skips[0][first / 4] + 4 * n;
    const float *left = t->left->parts[4 * first][0];
    __m512i c = (__m512i)t->c[n], field = _mm512_and_si512(c, fixed->field);
    __m512i start = coarse_most(t, n, first);
    __m512 above[2], below[2];

    start = _mm512_max_epi32(start, _mm512_add_epi32(field, fixed->up));
    start = _mm512_max_epi32(start, fixed->least);
    if ((_mm512_cmpgt_epi32_mask(field, fixed->most) |
         _mm512_mask_test_epi32_mask(_mm512_cmpeq_epi32_mask(start, fixed->least), c,
                                     _mm512_set1_epi32(INT32_MAX))) != 0) {
        return false;
    }
    above[1] = (__m512)start;
    below[1] = _mm512_sub_ps(fixed->none, above[1]);
    above[0] =
        _mm512_add_round_ps(above[1], _mm512_max_ps((__m512)c, fixed->none), COARSE_TOWARD_ZERO);
    below[0] =
        _mm512_add_round_ps(below[1], _mm512_min_ps((__m512)c, fixed->none), COARSE_TOWARD_ZERO);
    VECTOR_UNROLL
    for (uint32_t k = 0; k < COARSE_TERMS; k++) { /* two sums of each: one waits for its product */
        const uint32_t at = 64 * (k % 4) + k / 4, sum = k % 2;
        const float *a = left + 48 * k + skips[at];
        __m512 b = _mm512_set1_ps(right[at]);
        above[sum] = _mm512_fmadd_round_ps(_mm512_load_ps(a), b, above[sum], COARSE_TOWARD_ZERO);
        below[sum] =
            _mm512_fmadd_round_ps(_mm512_load_ps(a + 16), b, below[sum], COARSE_TOWARD_ZERO);
    }
    above[0] = _mm512_add_ps(above[0], below[0]);
    above[1] = _mm512_add_ps(above[1], below[1]);
    t->c[n] = (vi)_mm512_and_ps(_mm512_add_ps(above[0], above[1]), fixed->keep);
    return true;
}
