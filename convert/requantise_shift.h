/* requantise_shift.h - codes of one old scale under a new one where both are powers of two, in
 * fold_lanes.h's text, and what that costs: by whole numbers in bytes, the same whatever the
 * instruction set.
 */
#include "convert/requantise_lanes.h"

/* What a shift costs, in squares of the old scale times 2^-9. */
typedef struct shift_sums {
    uint64_t square, error, inexact, nans;
} shift_sums;

static void shift_add(shift_sums *to, const shift_sums *more)
{
    to->square += more->square;
    to->error += more->error;
    to->inexact += more->inexact;
    to->nans += more->nans;
}

/* A magnitude as a whole number of 2^-9. */
static inline uint64_t units_of(unsigned m)
{
    return m < 8 ? m : (uint64_t)((m & 7) | 8) << (m >> 3) >> 1;
}

/* A magnitude under a scale 2^k times the old one, where that is subnormal (m < 8 (k + 1)): its
 * units rounded to nearest even. */
static inline uint8_t shift_small(unsigned m, int k, shift_sums *sums)
{
    const uint64_t v = units_of(m), half = (UINT64_C(1) << k) / 2, odd = v >> k & 1;
    const uint64_t made = k == 0 ? v : (v + half - 1 + odd) >> k;
    const uint64_t back = made << k, lost = back > v ? back - v : v - back;

    sums->error += lost * lost;
    sums->inexact += lost != 0;
    return (uint8_t)made;
}

#if defined(__AVX2__)
/* Vectors of one row's LANES codes, or of two. */
#if defined(__AVX512BW__)
typedef __m512i wide;
#define WIDE(name)        _mm512_##name
#define WIDE_BITS(name)   WIDE(name##_si512)
#define WIDE_TWICE(bytes) _mm512_broadcast_i32x4(bytes)
#else
typedef __m256i wide;
#define WIDE(name)        _mm256_##name
#define WIDE_BITS(name)   WIDE(name##_si256)
#define WIDE_TWICE(bytes) _mm256_broadcastsi128_si256(bytes)
#endif

static inline wide wide_table(const uint8_t *bytes)
{
    return WIDE_TWICE(_mm_loadu_si128((const __m128i *)bytes));
}

/* The square of a magnitude that is not subnormal is that of 8 to 15 times 4 to the power of
 * exponent - 1. Sixteen exponents are four times four: squares times 1 to 64, and what 256^i stands
 * before is added up by itself. Subnormal magnitudes are few and added one by one. */
typedef struct shift_squares {
    wide by[4];
} shift_squares;

/* sum += of each four bytes, a * b; at most 2^15 - 1 of two. */
static inline wide add_products(wide sum, wide a, wide b)
{
#if defined(__AVX512VNNI__)
    return _mm512_dpbusd_epi32(sum, a, b);
#else
    return WIDE(add_epi32)(sum, WIDE(madd_epi16)(WIDE(maddubs_epi16)(a, b), WIDE(set1_epi16)(1)));
#endif
}

/* Of 8 to 15, by the lowest four bits of a magnitude. */
static inline wide squares_of_eights(void)
{
    static const uint8_t squares[16] = {64, 81, 100, 121, 144, 169, 196, 225,
                                        64, 81, 100, 121, 144, 169, 196, 225};

    return wide_table(squares);
}

/* m: magnitudes; square: what squares_of_eights has for them, 0 for NaN. */
static inline void add_squares(wide m, wide square, shift_squares *sums)
{
    static const uint8_t fours[4][16] = {{0, 1, 4, 16, 64},
                                         {0, 0, 0, 0, 0, 1, 4, 16, 64},
                                         {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 16, 64},
                                         {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 16}};
    const wide exponent = WIDE_BITS(and)(WIDE(srli_epi16)(m, 3), WIDE(set1_epi8)(15));

    for (int i = 0; i < 4; i++) {
        const wide times = WIDE(shuffle_epi8)(wide_table(fours[i]), exponent);
        sums->by[i] = add_products(sums->by[i], square, times);
    }
}

/* Twice a code, its sign lost, and 2 more: 0 for NaN. */
static inline wide twice_and_two(wide code)
{
    return WIDE(add_epi8)(WIDE(add_epi8)(code, code), WIDE(set1_epi8)(2));
}

/* The magnitude of the largest of LANES such bytes; the least of 16-bit words is one instruction.
 */
static inline unsigned largest_of_32(__m256i twice)
{
    const __m128i two =
        _mm_max_epu8(_mm256_castsi256_si128(twice), _mm256_extracti128_si256(twice, 1));
    const __m128i below = _mm_xor_si128(two, _mm_set1_epi8(-1));
    const __m128i least = _mm_minpos_epu16(_mm_min_epu8(below, _mm_srli_epi16(below, 8)));
    const unsigned most = 255 - ((unsigned)_mm_cvtsi128_si32(least) & 0xff);

    return most < 2 ? 0 : most / 2 - 1;
}

/* A magnitude below `bound` + 1 that is not 0 is subnormal, or is under a scale 2^k times the old
 * one. */
static int shift_less(int k)
{
    return 8 * k < 128 ? 8 * k : 128;
}

static int shift_bound(int k)
{
    return k < 15 ? 8 * (k + 1) - 1 : NAN_MAGNITUDE - 1;
}

/* Those of LANES codes, which lie elsewhere than `out`, that `small` has bits of. */
static void shift_all_small(uint32_t small, int k, const uint8_t *codes, uint8_t *out,
                            shift_sums *sums)
{
    for (; small != 0; small &= small - 1) {
        const int i = __builtin_ctz(small);
        const unsigned m = codes[i] & 0x7f;
        out[i] = (uint8_t)(shift_small(m, k, sums) | (codes[i] & 0x80));
        sums->square += m < 8 ? m * m : 0; /* add_squares leaves these out */
    }
}

#if defined(__AVX512BW__)
/* LANES codes of each of two shifts. */
typedef struct shift_pair {
    wide less, bound;
    shift_squares squares;
    shift_sums sums[2];
} shift_pair;

static inline wide wide_halves(int first, int second)
{
    return _mm512_inserti64x4(_mm512_set1_epi8((char)first), _mm256_set1_epi8((char)second), 1);
}

static inline void shift_begin(shift_pair *p, int first, int second)
{
    *p = (shift_pair){.sums = {{0}}};
    p->less = wide_halves(shift_less(first), shift_less(second));
    p->bound = wide_halves(shift_bound(first), shift_bound(second));
}

/* What the codes become, but for those that `small` has bits of. */
static inline wide shift_codes(wide code, shift_pair *p, uint64_t *small)
{
    const wide low = _mm512_set1_epi8(0x7f), m = _mm512_and_si512(code, low);
    const __mmask64 number = _mm512_cmpneq_epi8_mask(m, low); /* not NaN */
    const wide made = _mm512_mask_subs_epu8(m, number, m, p->less);

    *small = _mm512_cmplt_epu8_mask(_mm512_sub_epi8(m, _mm512_set1_epi8(1)), p->bound);
    add_squares(m, _mm512_maskz_shuffle_epi8(number, squares_of_eights(), m), &p->squares);
    p->sums[0].nans += 64 - (unsigned)__builtin_popcountll(number);
    return _mm512_ternarylogic_epi64(low, made, code, 0xca); /* of each bit: low ? made : code */
}

/* Of the vectors' first or second half. */
static uint64_t sum_squares(const shift_squares *squares, int half)
{
    __m512i sum = _mm512_setzero_si512();

    for (int i = 0; i < 4; i++) {
        const __m256i words = half == 0 ? _mm512_castsi512_si256(squares->by[i])
                                        : _mm512_extracti64x4_epi64(squares->by[i], 1);
        sum = _mm512_add_epi64(sum,
                               _mm512_slli_epi64(_mm512_cvtepu32_epi64(words), (unsigned)(8 * i)));
    }
    return (uint64_t)_mm512_reduce_add_epi64(sum);
}

static void shift_end(shift_pair *p, shift_sums sums[2])
{
    for (int half = 0; half < 2; half++) {
        p->sums[half].square += sum_squares(&p->squares, half);
        shift_add(&sums[half], &p->sums[half]);
    }
}

/* Two columns of LANES, of fewer than 2^20 codes: the sums of squares overflow past that. */
static void shift_two(const uint8_t *codes, uint64_t codes_stride, uint64_t rows, const int k[2],
                      uint8_t *out, uint64_t out_stride, shift_sums sums[2])
{
    shift_pair pair;
    uint64_t small;

    shift_begin(&pair, k[0], k[1]);
    for (uint64_t r = 0; r < rows; r++, codes += codes_stride, out += out_stride) {
        const wide code = _mm512_loadu_si512(codes);
        _mm512_storeu_si512(out, shift_codes(code, &pair, &small));
        if (small != 0) {
            uint8_t was[2 * LANES];
            _mm512_storeu_si512(was, code);
            shift_all_small((uint32_t)small, k[0], was, out, &pair.sums[0]);
            shift_all_small((uint32_t)(small >> LANES), k[1], was + LANES, out + LANES,
                            &pair.sums[1]);
        }
    }
    shift_end(&pair, sums);
}

/* One column of LANES: two rows at a time, of which the second may be missing. */
static void shift_one(const uint8_t *codes, uint64_t codes_stride, uint64_t rows, int k,
                      uint8_t *out, uint64_t out_stride, shift_sums *sums)
{
    shift_sums both[2] = {{0}};
    shift_pair pair;
    uint64_t small;

    shift_begin(&pair, k, k);
    for (uint64_t r = 0; r < rows; r += 2) {
        const uint8_t *first = codes + r * codes_stride, *second = first + codes_stride;
        uint8_t *to = out + r * out_stride, *next = to + out_stride;
        const bool alone = r + 1 == rows;
        const __m256i low = _mm256_loadu_si256((const __m256i *)first);
        const __m256i high =
            alone ? _mm256_setzero_si256() : _mm256_loadu_si256((const __m256i *)second);
        const wide code = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
        const wide made = shift_codes(code, &pair, &small);
        uint8_t was[2 * LANES];
        _mm256_storeu_si256((__m256i *)to, _mm512_castsi512_si256(made));
        if (!alone) {
            _mm256_storeu_si256((__m256i *)next, _mm512_extracti64x4_epi64(made, 1));
        }
        if (small != 0) {
            _mm512_storeu_si512(was, code);
            shift_all_small((uint32_t)small, k, was, to, &pair.sums[0]);
            shift_all_small((uint32_t)(small >> LANES), k, was + LANES, next, &pair.sums[1]);
        }
    }
    shift_end(&pair, both);
    shift_add(sums, &both[0]);
    shift_add(sums, &both[1]);
}

/* The largest magnitudes of two columns of LANES, NaN left out. */
static void largest_two(const uint8_t *codes, uint64_t stride, uint64_t rows, unsigned largest[2])
{
    wide most = _mm512_setzero_si512();

    for (uint64_t r = 0; r < rows; r++) {
        const wide code = _mm512_loadu_si512(codes + r * stride);
        most = _mm512_max_epu8(most, twice_and_two(code));
    }
    largest[0] = largest_of_32(_mm512_castsi512_si256(most));
    largest[1] = largest_of_32(_mm512_extracti64x4_epi64(most, 1));
}
#else
/* Of the vectors' words. */
static uint64_t sum_squares(const shift_squares *squares)
{
    uint64_t sum = 0;

    for (int i = 0; i < 4; i++) {
        uint32_t words[sizeof(wide) / 4];
        memcpy(words, &squares->by[i], sizeof words);
        for (size_t word = 0; word < sizeof(wide) / 4; word++) {
            sum += (uint64_t)words[word] << 8 * i;
        }
    }
    return sum;
}

/* One column of LANES, of fewer than 2^20 codes: the sums of squares overflow past that. */
static void shift_one(const uint8_t *codes, uint64_t codes_stride, uint64_t rows, int k,
                      uint8_t *out, uint64_t out_stride, shift_sums *sums)
{
    const wide less = _mm256_set1_epi8((char)shift_less(k)), low = _mm256_set1_epi8(0x7f);
    const wide bound = _mm256_set1_epi8((char)shift_bound(k)), one = _mm256_set1_epi8(1);
    shift_squares squares = {{{0}}};
    shift_sums all = {0};

    for (uint64_t r = 0; r < rows; r++, codes += codes_stride, out += out_stride) {
        const wide code = _mm256_loadu_si256((const __m256i *)codes);
        const wide m = _mm256_and_si256(code, low), is_nan = _mm256_cmpeq_epi8(m, low);
        const wide kept = _mm256_and_si256(is_nan, m), sign = _mm256_andnot_si256(low, code);
        const wide made = _mm256_or_si256(_mm256_subs_epu8(m, less), kept);
        const wide below = _mm256_sub_epi8(m, one); /* 255 for 0 */
        const wide is_whole = _mm256_cmpeq_epi8(_mm256_max_epu8(below, bound), below);
        const uint32_t small = ~(uint32_t)_mm256_movemask_epi8(is_whole);
        _mm256_storeu_si256((__m256i *)out, _mm256_or_si256(made, sign));
        add_squares(m, _mm256_andnot_si256(is_nan, _mm256_shuffle_epi8(squares_of_eights(), m)),
                    &squares);
        all.nans += (unsigned)__builtin_popcount((unsigned)_mm256_movemask_epi8(is_nan));
        if (small != 0) {
            uint8_t was[LANES];
            _mm256_storeu_si256((__m256i *)was, code);
            shift_all_small(small, k, was, out, &all);
        }
    }
    all.square += sum_squares(&squares);
    shift_add(sums, &all);
}

static void shift_two(const uint8_t *codes, uint64_t codes_stride, uint64_t rows, const int k[2],
                      uint8_t *out, uint64_t out_stride, shift_sums sums[2])
{
    for (int i = 0; i < 2; i++) {
        shift_one(codes + LANES * i, codes_stride, rows, k[i], out + LANES * i, out_stride,
                  &sums[i]);
    }
}

/* The largest magnitudes of two columns of LANES, NaN left out. */
static void largest_two(const uint8_t *codes, uint64_t stride, uint64_t rows, unsigned largest[2])
{
    wide most[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};

    for (uint64_t r = 0; r < rows; r++) {
        for (int i = 0; i < 2; i++) {
            const void *at = codes + r * stride + LANES * i;
            most[i] = _mm256_max_epu8(most[i], twice_and_two(_mm256_loadu_si256(at)));
        }
    }
    largest[0] = largest_of_32(most[0]);
    largest[1] = largest_of_32(most[1]);
}
#endif
#else
static void shift_one(const uint8_t *codes, uint64_t codes_stride, uint64_t rows, int k,
                      uint8_t *out, uint64_t out_stride, shift_sums *sums)
{
    uint64_t squares[MAGNITUDES_E4M3] = {0}, square = 0, nans = 0;

    for (unsigned m = 0; m < NAN_MAGNITUDE; m++) {
        squares[m] = units_of(m) * units_of(m);
    }
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t c = 0; c < LANES; c++) {
            const uint8_t code = codes[r * codes_stride + c];
            const unsigned m = code & 0x7f;
            unsigned made = m - 8 * (unsigned)k;
            if (m == NAN_MAGNITUDE) {
                made = m;
                nans++;
            } else if (m < 8 * (unsigned)(k + 1)) {
                made = shift_small(m, k, sums);
            }
            square += squares[m];
            out[r * out_stride + c] = (uint8_t)(made | (code & 0x80));
        }
    }
    sums->square += square;
    sums->nans += nans;
}

static void shift_two(const uint8_t *codes, uint64_t codes_stride, uint64_t rows, const int k[2],
                      uint8_t *out, uint64_t out_stride, shift_sums sums[2])
{
    for (int i = 0; i < 2; i++) {
        shift_one(codes + LANES * i, codes_stride, rows, k[i], out + LANES * i, out_stride,
                  &sums[i]);
    }
}

/* The largest magnitudes of two columns of LANES, NaN left out. */
static void largest_two(const uint8_t *codes, uint64_t stride, uint64_t rows, unsigned largest[2])
{
    uint8_t most[2 * LANES] = {0}; /* twice a code, its sign lost, and 2 more: 0 for NaN */

    for (uint64_t r = 0; r < rows; r++) {
        for (int i = 0; i < 2 * LANES; i++) {
            const uint8_t twice = (uint8_t)(2 * codes[r * stride + i] + 2);
            most[i] = twice > most[i] ? twice : most[i];
        }
    }
    for (int half = 0; half < 2; half++) {
        uint8_t all = 2;
        for (int i = 0; i < LANES; i++) {
            all = most[LANES * half + i] > all ? most[LANES * half + i] : all;
        }
        largest[half] = all / 2u - 1;
    }
}
#endif
