/* down.h - steps of 8-bit units on hosts that round an operation as it says (AVX-512): all columns
 * of a product at once. Included by tile.h for that level.
 *
 * A sum that begins at 1.5 * 2^m units, m the fraction bits of its format, keeps that exponent: a
 * product that is added to it rounding down is cut to whole units, and nothing is scaled or
 * converted. But cut down, not toward zero: negative products that are no whole units come out one
 * unit too low. Those are counted before, by the least bit set of each operand: that of a product
 * is at the sum of their places. All the rest is exact. */
enum {
    DOWN_COLUMNS = 8,
    DOWN_BIAS = 127, /* of left exponents: sums of a left and a right one are fp32's fields */
    DOWN_ZERO =
        -50, /* a zero's exponent: with any other it lies below products, and fp32 has both */
    DOWN_LEAST = -34, /* above all sums with a zero: below it an exponent of c does not show */
    DOWN_PLACE = 16,  /* added to the place of a code's least bit, which is -16 or above */
    DOWN_WHOLE = 63,  /* a zero's place: above the sum of any two, and two of it stay below 128 */
    DOWN_ROUND = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC,
};

/* Exponents as bytes whose sums are unsigned. */
VECTOR_INLINE void down_reach(void *out, const void *exponents, uint32_t bias)
{
    __m512i e = _mm512_loadu_si512(exponents);
    __mmask64 zero =
        _mm512_cmpeq_epi8_mask(e, _mm512_set1_epi32((int32_t)packings[TENSOR_E4M3].zero));

    e = _mm512_mask_mov_epi8(e, zero, _mm512_set1_epi8(DOWN_ZERO));
    _mm512_storeu_si512(out, _mm512_add_epi8(e, _mm512_set1_epi8((char)bias)));
}

/* Of each code the place of its least bit set, and its sign in the upper bit, of left ones turned
 * round: the sum of two has the place of their product and that bit clear when it is negative. */
VECTOR_INLINE void down_places(void *out, const vi *codes, const void *exponents, tensor_type type,
                               bool right)
{
    bool three = type == TENSOR_E4M3; /* fraction bits; else two */
    /* How far above the last fraction bit it is; of no fraction the leading one. */
    const __m512i above = three ? _mm512_set4_epi32(0, 0, 0x00010002, 0x00010003)
                                : _mm512_set4_epi32(0, 0, 0, 0x00010002);
    __m512i raw = (__m512i)*codes, place = _mm512_loadu_si512(exponents);
    __m512i fraction = _mm512_and_si512(raw, _mm512_set1_epi8(three ? 7 : 3));
    __m512i sign = _mm512_andnot_si512(_mm512_set1_epi8(0x7f), right ? raw : ~raw);
    __mmask64 zero = _mm512_testn_epi8_mask(raw, _mm512_set1_epi8(0x7f));

    place = _mm512_add_epi8(place, _mm512_shuffle_epi8(above, fraction));
    place = _mm512_add_epi8(place, _mm512_set1_epi8(three ? DOWN_PLACE - 3 : DOWN_PLACE - 2));
    place = _mm512_mask_mov_epi8(place, zero, _mm512_set1_epi8(DOWN_WHOLE));
    _mm512_storeu_si512(out, _mm512_or_si512(place, sign));
}

/* What the steps want of operands beside their values. */
VECTOR_INLINE void down_open(tensor_left *left, tensor_right *right)
{
    vi x[4];

    for (uint32_t half = 0; half < 2 && !left->placed; half++) {
        operand_load(x, left->raw[2 * half], left->raw[2 * half + 1], 0);
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t q = 4 * half + i;
            down_reach(left->reach[q], left->exponents[q], DOWN_BIAS);
            down_places(left->places[q], &x[i], left->exponents[q], left->type, false);
        }
    }
    for (uint32_t n = 0; n < 64 && !right->placed; n += LANES) {
        const int32_t *exponents = (int32_t *)right->exponents + n;
        vector_load(x, (uint32_t *)right->raw + n);
        down_reach((uint32_t *)right->reach + n, exponents, 0);
        down_places((uint32_t *)right->places + n, x, exponents, right->type, true);
    }
    for (uint32_t n = 0; n < 256 && !right->placed; n += LANES) {
        const float *values = (float *)right->values + n;
        double *wide = (double *)right->wide + n;
        _mm512_store_pd(wide, _mm512_cvtps_pd(_mm256_load_ps(values)));
        _mm512_store_pd(wide + 8, _mm512_cvtps_pd(_mm256_load_ps(values + 8)));
    }
    left->placed = right->placed = true;
}

/* Of each column the step's largest exponent E, as 2^E in fp32, and what begins its sums, in units:
 * c, and the products that are counted. */
typedef struct down_step {
    _Alignas(64) float most[DOWN_COLUMNS][LANES];
    _Alignas(64) int32_t more[DOWN_COLUMNS][LANES];
} down_step;

/* False when the exponent of some c is too extreme for the sums. */
VECTOR_INLINE bool down_exponents(down_step *d, const tile *t, uint32_t first, uint32_t last)
{
    const __m512i field = _mm512_set1_epi32((int32_t)0xff000000), one = _mm512_set1_epi32(1);
    /* By two bytes and by one up: shifts have one port of the host, as the maxima do. */
    const __m512i two_up = _mm512_set4_epi32(0x0d0c8080, 0x09088080, 0x05048080, 0x01008080);
    const __m512i one_up = _mm512_set4_epi32(0x0e0d0c80, 0x0a090880, 0x06050480, 0x02010080);
    __m512i smallest = _mm512_set1_epi32(-1), largest = _mm512_setzero_si512();

    for (uint32_t n = 0; n < DOWN_COLUMNS; n++) {
        const uint32_t *right = t->right->reach[0] + 4 * n;
        __m512i c = _mm512_add_epi32((__m512i)t->c[n], (__m512i)t->c[n]); /* without its sign */
        __m512i most = _mm512_setzero_si512();
        VECTOR_UNROLL
        for (uint32_t q = first; q < last; q++) {
            int32_t b = (int32_t)right[32 * (q / 4) + q % 4];
            __m512i x = _mm512_load_si512(t->left->reach[q]);
            x = _mm512_add_epi8(x, _mm512_set1_epi32(b));
            most = q == first ? x : _mm512_max_epu8(most, x);
        }
        most = _mm512_max_epu8(most, _mm512_shuffle_epi8(most, two_up));
        most = _mm512_max_epu8(most, _mm512_shuffle_epi8(most, one_up));
        most = _mm512_and_si512(_mm512_max_epu32(most, c), field);
        _mm512_store_si512(d->most[n], _mm512_srli_epi32(most, 1));
        smallest = _mm512_min_epu32(smallest, _mm512_sub_epi32(c, one)); /* but zero */
        largest = _mm512_max_epu32(largest, c);
    }
    return (_mm512_cmplt_epu32_mask(smallest, _mm512_set1_epi32((127 + DOWN_LEAST) << 24)) |
            _mm512_cmpge_epu32_mask(
                largest, _mm512_set1_epi32((int32_t)((128u + EXPONENT_MOST) << 24)))) == 0;
}

/* Counts products that are negative and no whole units, and adds c. */
VECTOR_INLINE void down_count(down_step *d, const tile *t, uint32_t first, uint32_t last)
{
    const __m512i one = _mm512_set1_epi8(1), ones = _mm512_set1_epi16(1);
    const __m512i top = _mm512_set4_epi32(0x0f0f0f0f, 0x0b0b0b0b, 0x07070707, 0x03030303);
    const __m512i unit = _mm512_set1_epi8((char)(127 - 2 * DOWN_PLACE + t->unit.fraction));
    const __m512i whole = _mm512_set1_epi8(DOWN_WHOLE);
    const __m512i scale = _mm512_set1_epi32((int32_t)((254 + (uint32_t)t->unit.fraction) << 23));

    for (uint32_t n = 0; n < DOWN_COLUMNS; n++) {
        const uint32_t *right = t->right->places[0] + 4 * n;
        __m512i most = _mm512_load_si512(d->most[n]), count = _mm512_setzero_si512(), below;
        __m512 c = _mm512_mul_ps((__m512)t->c[n], (__m512)_mm512_sub_epi32(scale, most));
        below = _mm512_shuffle_epi8(_mm512_add_epi32(most, most), top);
        below = _mm512_min_epu8(_mm512_subs_epu8(below, unit), whole);
        VECTOR_UNROLL
        for (uint32_t q = first; q < last; q++) {
            int32_t b = (int32_t)right[32 * (q / 4) + q % 4];
            __m512i x = _mm512_load_si512(t->left->places[q]);
            x = _mm512_add_epi8(x, _mm512_set1_epi32(b));
            count = _mm512_mask_add_epi8(count, _mm512_cmplt_epu8_mask(x, below), count, one);
        }
        count = _mm512_madd_epi16(_mm512_maddubs_epi16(count, one), ones);
        _mm512_store_si512(d->more[n], _mm512_add_epi32(count, _mm512_cvttps_epi32(c)));
    }
}

/* Sums of 24 bits: those of a unit of 13. */
VECTOR_INLINE void down_narrow(tile *t, const down_step *d, uint32_t first, uint32_t last)
{
    const __m512 unit = _mm512_set1_ps(0x1p-13f), begin = _mm512_set1_ps(0x1.8p10f);
    __m512 sum[DOWN_COLUMNS];

    VECTOR_UNROLL
    for (uint32_t n = 0; n < DOWN_COLUMNS; n++) {
        __m512 more =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(d->more[n])), unit, begin);
        sum[n] = _mm512_mul_ps(more, _mm512_load_ps(d->most[n]));
    }
    for (uint32_t q = first; q < last; q++) {
        for (uint32_t e = 0; e < 4; e++) {
            const float *right = t->right->values[e][q / 4] + q % 4;
            __m512 a = _mm512_load_ps(t->left->values[4 * q + e]);
            VECTOR_UNROLL
            for (uint32_t n = 0; n < DOWN_COLUMNS; n++) {
                sum[n] = _mm512_fmadd_round_ps(a, _mm512_set1_ps(right[4 * n]), sum[n], DOWN_ROUND);
            }
        }
    }
    VECTOR_UNROLL
    for (uint32_t n = 0; n < DOWN_COLUMNS; n++) {
        sum[n] = _mm512_fnmadd_ps(begin, _mm512_load_ps(d->most[n]), sum[n]);
        t->c[n] = (vi)sum[n] & -(1 << (23 - 13));
    }
}

/* Sums of 53 bits, of half the rows each. */
VECTOR_INLINE void down_wide(tile *t, const down_step *d, uint32_t first, uint32_t last)
{
    const __m512d unit = _mm512_set1_pd(0x1p-25), begin = _mm512_set1_pd(0x1.8p27);
    __m512d low[DOWN_COLUMNS], high[DOWN_COLUMNS];

    VECTOR_UNROLL
    for (uint32_t n = 0; n < DOWN_COLUMNS; n++) {
        const __m256i *more = (const __m256i *)d->more[n];
        low[n] = _mm512_fmadd_pd(_mm512_cvtepi32_pd(more[0]), unit, begin);
        low[n] = _mm512_mul_pd(low[n], _mm512_cvtps_pd(_mm256_load_ps(d->most[n])));
        high[n] = _mm512_fmadd_pd(_mm512_cvtepi32_pd(more[1]), unit, begin);
        high[n] = _mm512_mul_pd(high[n], _mm512_cvtps_pd(_mm256_load_ps(d->most[n] + 8)));
    }
    for (uint32_t q = first; q < last; q++) {
        for (uint32_t e = 0; e < 4; e++) {
            const double *right = t->right->wide[e][q / 4] + q % 4;
            const float *left = t->left->values[4 * q + e];
            __m512d a0 = _mm512_cvtps_pd(_mm256_load_ps(left));
            __m512d a1 = _mm512_cvtps_pd(_mm256_load_ps(left + 8));
            VECTOR_UNROLL
            for (uint32_t n = 0; n < DOWN_COLUMNS; n++) {
                __m512d b = _mm512_set1_pd(right[4 * n]);
                low[n] = _mm512_fmadd_round_pd(a0, b, low[n], DOWN_ROUND);
                high[n] = _mm512_fmadd_round_pd(a1, b, high[n], DOWN_ROUND);
            }
        }
    }
    VECTOR_UNROLL
    for (uint32_t n = 0; n < DOWN_COLUMNS; n++) {
        __m512d most = _mm512_cvtps_pd(_mm256_load_ps(d->most[n]));
        vd total[2] = {(vd)_mm512_fnmadd_pd(begin, most, low[n])};
        most = _mm512_cvtps_pd(_mm256_load_ps(d->most[n] + 8));
        total[1] = (vd)_mm512_fnmadd_pd(begin, most, high[n]);
        vector_narrow_toward_zero((vf *)&t->c[n], total);
    }
}

/* One step of all columns. False, and nothing done, when some exponent is too extreme. */
VECTOR_INLINE bool down_step_all(tile *t, uint32_t first, uint32_t last)
{
    down_step d;

    if (!down_exponents(&d, t, first, last)) {
        return false;
    }
    down_count(&d, t, first, last);
    if (t->unit.fraction == 13) {
        down_narrow(t, &d, first, last);
    } else {
        down_wide(t, &d, first, last);
    }
    return true;
}
