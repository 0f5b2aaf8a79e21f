/* requantise_lanes.h - codes of one old scale under a new one, in fold_lanes.h's text, and what that
 * costs: between powers of two by whole numbers, of many codes by a table, else each by itself. The
 * figures are the same whatever the instruction set: whole numbers, or floats added in one order.
 */
#include "convert/requantise_tile.h"

#include "core/numfmt.h"

enum { LANES = 32, NAN_MAGNITUDE = 127, MAGNITUDES_E4M3 = 128 };

/* Of one block: what it costs, lane by lane. */
typedef struct lane_sums {
    double square[LANES], error[LANES];
    uint64_t inexact, saturated, nans;
} lane_sums;

/* `yes` where a < b, else `no`, without a branch that would keep loops from being vectors. */
static inline int32_t choose_less(int32_t a, int32_t b, int32_t yes, int32_t no)
{
    const int32_t mask = -(int32_t)(a < b);

    return (yes & mask) | (no & ~mask);
}

/* An e4m3 magnitude as a float: an exponent's bias more, but for subnormals, which are 2^-6 less
 * than the normal number of their bits. */
static inline float decode(int32_t m)
{
    const float small = numfmt_float((uint32_t)((m << 20) + (121 << 23))) - 0x1p-6f;

    return numfmt_float(
        (uint32_t)choose_less(m, 8, (int32_t)numfmt_bits(small), (m << 20) + (120 << 23)));
}

/* And back, to nearest even and saturating, of 0 to 2^8 * 448: rounded by its bits, or where e4m3
 * is subnormal by adding 2^14, whose unit is 2^-9. */
static inline int32_t encode(float x)
{
    const int32_t bits = (int32_t)numfmt_bits(x);
    const int32_t normal = ((bits + 0x7ffff + (bits >> 20 & 1)) >> 20) - (120 << 3);
    const int32_t small = (int32_t)numfmt_bits(x + 0x1p14f) - (141 << 23);
    const int32_t made = choose_less(bits, 121 << 23, small, normal);

    return choose_less(made, 126, made, 126);
}

/* 32 codes of one old scale under the new one. Two loops, of 4 and of 8 bytes an element, that
 * compilers make vectors of. */
static void requantise_lanes(const uint8_t *restrict codes, float from, float to,
                             uint8_t *restrict out, lane_sums *restrict sums)
{
    float values[LANES], made[LANES];
    int32_t saturated = 0, nans = 0;
    uint64_t inexact = 0;

    for (int i = 0; i < LANES; i++) {
        const int32_t m = codes[i] & 0x7f, kept = choose_less(m, NAN_MAGNITUDE, m, 0);
        const float value = decode(kept), scaled = value * from / to;
        const int32_t code = encode(scaled);
        values[i] = value;
        made[i] = decode(code);
        out[i] = (uint8_t)(choose_less(m, NAN_MAGNITUDE, code, m) | (codes[i] & 0x80));
        saturated += (int32_t)numfmt_bits(scaled) > 0x43e00000; /* 448 */
        nans += m == NAN_MAGNITUDE;
    }
    for (int i = 0; i < LANES; i++) {
        const double value = (double)values[i] * (double)from, got = (double)made[i] * (double)to;
        sums->square[i] += value * value;
        sums->error[i] += (got - value) * (got - value);
        inexact += got != value;
    }
    sums->inexact += inexact;
    sums->saturated += (uint32_t)saturated;
    sums->nans += (uint32_t)nans;
}

/* ---- Powers of two. ------------------------------------------------------------------------ */

/* What a shift costs, in squares of the old scale times 2^-9. */
typedef struct shift_sums {
    uint64_t square, error, inexact, nans;
} shift_sums;

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
/* The square of a magnitude is that of four bits, which a byte holds, times 4 to the power of
 * exponent - 1. Sixteen exponents are four times four: pairs of squares times 1 to 64 fit 16 bits,
 * and what 256^i stands before is added up by itself. */
typedef struct shift_squares {
    __m256i by[4];
} shift_squares;

static inline __m256i both_halves(const uint8_t *bytes)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)bytes));
}

static inline void add_squares(__m256i m, __m256i is_nan, shift_squares *sums)
{
    static const uint8_t roots[16] = {0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196,
                                      225};
    static const uint8_t fours[4][16] = {{1, 1, 4, 16, 64},
                                         {0, 0, 0, 0, 0, 1, 4, 16, 64},
                                         {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 16, 64},
                                         {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 16}};
    const __m256i exponent = _mm256_and_si256(_mm256_srli_epi16(m, 3), _mm256_set1_epi8(15));
    const __m256i normal = _mm256_and_si256(_mm256_cmpgt_epi8(m, _mm256_set1_epi8(7)),
                                            _mm256_set1_epi8(8));
    const __m256i root =
        _mm256_or_si256(_mm256_and_si256(m, _mm256_set1_epi8(7)), normal);
    const __m256i square =
        _mm256_andnot_si256(is_nan, _mm256_shuffle_epi8(both_halves(roots), root));

    for (int i = 0; i < 4; i++) {
        const __m256i times = _mm256_shuffle_epi8(both_halves(fours[i]), exponent);
        const __m256i pairs_16 = _mm256_maddubs_epi16(square, times);
        sums->by[i] = _mm256_add_epi32(sums->by[i],
                                       _mm256_madd_epi16(pairs_16, _mm256_set1_epi16(1)));
    }
}

static uint64_t sum_squares(const shift_squares *squares)
{
    uint64_t sum = 0;

    for (int i = 0; i < 4; i++) {
        uint32_t lanes[8];
        memcpy(lanes, &squares->by[i], sizeof lanes);
        for (int lane = 0; lane < 8; lane++) {
            sum += (uint64_t)lanes[lane] << 8 * i;
        }
    }
    return sum;
}

/* 32 codes; returns which of them are NaN. */
static inline uint32_t shift_lanes(const uint8_t *codes, int k, uint8_t *out,
                                   shift_squares *squares, shift_sums *sums)
{
    const int less = 8 * k < 128 ? 8 * k : 128;
    const __m256i least =
        _mm256_set1_epi8((char)(k == 0 ? 0 : less + 8 < 128 ? less + 8 : 128));
    const __m256i code = _mm256_loadu_si256((const __m256i *)codes);
    const __m256i m = _mm256_and_si256(code, _mm256_set1_epi8(0x7f));
    const __m256i is_nan = _mm256_cmpeq_epi8(m, _mm256_set1_epi8(NAN_MAGNITUDE));
    const __m256i whole = _mm256_or_si256(
        _mm256_or_si256(is_nan, _mm256_cmpeq_epi8(m, _mm256_setzero_si256())),
        _mm256_cmpeq_epi8(_mm256_max_epu8(m, least), m));
    const __m256i kept = _mm256_and_si256(is_nan, _mm256_set1_epi8(NAN_MAGNITUDE));
    const __m256i sign = _mm256_andnot_si256(_mm256_set1_epi8(0x7f), code);
    const __m256i made =
        _mm256_or_si256(_mm256_subs_epu8(m, _mm256_set1_epi8((char)less)), kept);

    _mm256_storeu_si256((__m256i *)out, _mm256_or_si256(made, sign));
    add_squares(m, is_nan, squares);
    for (uint32_t small = ~(uint32_t)_mm256_movemask_epi8(whole); small != 0; small &= small - 1) {
        const int i = __builtin_ctz(small);
        const uint8_t c = codes[i];
        out[i] = (uint8_t)(shift_small(c & 0x7f, k, sums) | (c & 0x80));
    }
    return (uint32_t)_mm256_movemask_epi8(is_nan);
}

/* Rows of LANES * `vectors` codes: fewer than 2^20 in all, so that no sum of squares overflows. */
static void shift_rows(const uint8_t *codes, uint64_t codes_stride, uint64_t rows, uint64_t vectors,
                       int k, uint8_t *out, uint64_t out_stride, shift_sums *sums)
{
    shift_squares squares = {{_mm256_setzero_si256(), _mm256_setzero_si256(),
                              _mm256_setzero_si256(), _mm256_setzero_si256()}};

    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t c = 0; c < LANES * vectors; c += LANES) {
            const uint32_t nans = shift_lanes(codes + r * codes_stride + c, k,
                                              out + r * out_stride + c, &squares, sums);
            sums->nans += (unsigned)__builtin_popcount(nans);
        }
    }
    sums->square += sum_squares(&squares);
}
#else
static void shift_rows(const uint8_t *codes, uint64_t codes_stride, uint64_t rows, uint64_t vectors,
                       int k, uint8_t *out, uint64_t out_stride, shift_sums *sums)
{
    uint64_t squares[MAGNITUDES_E4M3] = {0};

    for (unsigned m = 0; m < NAN_MAGNITUDE; m++) {
        squares[m] = units_of(m) * units_of(m);
    }
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t c = 0; c < LANES * vectors; c++) {
            const uint8_t code = codes[r * codes_stride + c];
            const unsigned m = code & 0x7f;
            unsigned made = m - 8 * (unsigned)k;
            if (m == NAN_MAGNITUDE) {
                made = m;
                sums->nans++;
            } else if (m < 8 * (unsigned)(k + 1)) {
                made = shift_small(m, k, sums);
            }
            sums->square += squares[m];
            out[r * out_stride + c] = (uint8_t)(made | (code & 0x80));
        }
    }
}
#endif
