/* requantise_lanes.h - codes of one old scale under a new one, in fold_lanes.h's text, and what
 * that costs: between powers of two by whole numbers, of many codes by a table, else each by
 * itself. The figures are the same whatever the instruction set: whole numbers, or floats added in
 * one order.
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
/* Vectors of one row's LANES codes, or of two rows'. */
#if defined(__AVX512BW__)
typedef __m512i wide;
enum { WIDE_ROWS = 2 };
#define WIDE(name)        _mm512_##name
#define WIDE_BITS(name)   WIDE(name##_si512)
#define WIDE_EQUAL(a, b)  _mm512_movm_epi8(_mm512_cmpeq_epi8_mask(a, b))
#define WIDE_MASK(v)      _mm512_movepi8_mask(v)
#define WIDE_TWICE(bytes) _mm512_broadcast_i32x4(bytes)

/* `second` may be NULL: zeros. */
static inline wide wide_load(const uint8_t *first, const uint8_t *second)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)first);
    const __m256i high =
        second != NULL ? _mm256_loadu_si256((const __m256i *)second) : _mm256_setzero_si256();

    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

static inline wide wide_halves(int first, int second)
{
    return _mm512_inserti64x4(_mm512_set1_epi8((char)first), _mm256_set1_epi8((char)second), 1);
}

static inline void wide_store(wide v, uint8_t *first, uint8_t *second)
{
    _mm256_storeu_si256((__m256i *)first, _mm512_castsi512_si256(v));
    if (second != NULL) {
        _mm256_storeu_si256((__m256i *)second, _mm512_extracti64x4_epi64(v, 1));
    }
}
#else
typedef __m256i wide;
enum { WIDE_ROWS = 1 };
#define WIDE(name)        _mm256_##name
#define WIDE_BITS(name)   WIDE(name##_si256)
#define WIDE_EQUAL(a, b)  _mm256_cmpeq_epi8(a, b)
#define WIDE_MASK(v)      (uint32_t) _mm256_movemask_epi8(v)
#define WIDE_TWICE(bytes) _mm256_broadcastsi128_si256(bytes)

static inline wide wide_load(const uint8_t *first, const uint8_t *second)
{
    (void)second;
    return _mm256_loadu_si256((const __m256i *)first);
}

static inline wide wide_halves(int first, int second)
{
    (void)second;
    return _mm256_set1_epi8((char)first);
}

static inline void wide_store(wide v, uint8_t *first, uint8_t *second)
{
    (void)second;
    _mm256_storeu_si256((__m256i *)first, v);
}
#endif

static inline wide wide_table(const uint8_t *bytes)
{
    return WIDE_TWICE(_mm_loadu_si128((const __m128i *)bytes));
}

/* The square of a magnitude is that of four bits, which a byte holds, times 4 to the power of
 * exponent - 1. Sixteen exponents are four times four: pairs of squares times 1 to 64 fit 16 bits,
 * and what 256^i stands before is added up by itself. */
typedef struct shift_squares {
    wide by[4];
} shift_squares;

static inline void add_squares(wide m, wide is_nan, shift_squares *sums)
{
    static const uint8_t roots[16] = {0,  1,  4,   9,   16,  25,  36,  49,
                                      64, 81, 100, 121, 144, 169, 196, 225};
    static const uint8_t fours[4][16] = {{1, 1, 4, 16, 64},
                                         {0, 0, 0, 0, 0, 1, 4, 16, 64},
                                         {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 16, 64},
                                         {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 16}};
    const wide exponent = WIDE_BITS(and)(WIDE(srli_epi16)(m, 3), WIDE(set1_epi8)(15));
    /* 8 or more, then the bits below: m, or what is left of it by whole eights and 8 more */
    const wide bits = WIDE_BITS(and)(m, WIDE(set1_epi8)(7));
    const wide root =
        WIDE_BITS(or)(bits, WIDE(min_epu8)(WIDE(subs_epu8)(m, bits), WIDE(set1_epi8)(8)));
    const wide square = WIDE_BITS(andnot)(is_nan, WIDE(shuffle_epi8)(wide_table(roots), root));

    for (int i = 0; i < 4; i++) {
        const wide times = WIDE(shuffle_epi8)(wide_table(fours[i]), exponent);
        const wide two = WIDE(maddubs_epi16)(square, times);
        sums->by[i] = WIDE(add_epi32)(sums->by[i], WIDE(madd_epi16)(two, WIDE(set1_epi16)(1)));
    }
}

/* Of words [first, end) of the vectors. */
static uint64_t sum_squares(const shift_squares *squares, size_t first, size_t end)
{
    uint64_t sum = 0;

    for (int i = 0; i < 4; i++) {
        uint32_t words[sizeof(wide) / 4];
        memcpy(words, &squares->by[i], sizeof words);
        for (size_t word = first; word < end; word++) {
            sum += (uint64_t)words[word] << 8 * i;
        }
    }
    return sum;
}

/* What two neighbouring LANES, or those of two rows, go through: each has a shift of its own. */
typedef struct shift_pair {
    wide less, least; /* eight times the shift; from what magnitude on that is exact */
    int k[2];
    shift_squares squares;
    shift_sums sums[2];
} shift_pair;

static int shift_less(int k)
{
    return 8 * k < 128 ? 8 * k : 128;
}

static int shift_least(int k)
{
    return k == 0 ? 0 : k < 15 ? 8 * (k + 1) : 128;
}

static void shift_begin(shift_pair *p, int first, int second)
{
    *p = (shift_pair){.k = {first, second}};
    p->less = wide_halves(shift_less(first), shift_less(second));
    p->least = wide_halves(shift_least(first), shift_least(second));
    for (int i = 0; i < 4; i++) {
        p->squares.by[i] = WIDE(set1_epi8)(0);
    }
}

/* LANES codes, and as many `next` bytes further (0: there are none). */
static inline void shift_lanes(const uint8_t *codes, uint64_t next, uint8_t *out, uint64_t out_next,
                               shift_pair *p)
{
    const wide code = wide_load(codes, next > 0 ? codes + next : NULL);
    const wide m = WIDE_BITS(and)(code, WIDE(set1_epi8)(0x7f));
    const wide is_nan = WIDE_EQUAL(m, WIDE(set1_epi8)(NAN_MAGNITUDE));
    const wide whole = WIDE_BITS(or)(WIDE_BITS(or)(is_nan, WIDE_EQUAL(m, WIDE(set1_epi8)(0))),
                                     WIDE_EQUAL(WIDE(max_epu8)(m, p->least), m));
    const wide kept = WIDE_BITS(and)(is_nan, WIDE(set1_epi8)(NAN_MAGNITUDE));
    const wide sign = WIDE_BITS(andnot)(WIDE(set1_epi8)(0x7f), code);
    const wide made = WIDE_BITS(or)(WIDE(subs_epu8)(m, p->less), kept);

    wide_store(WIDE_BITS(or)(made, sign), out, next > 0 ? out + out_next : NULL);
    add_squares(m, is_nan, &p->squares);
    p->sums[0].nans += (unsigned)__builtin_popcountll(WIDE_MASK(is_nan));
    for (uint64_t small = WIDE_MASK(WIDE_EQUAL(whole, WIDE(set1_epi8)(0))); small != 0;
         small &= small - 1) {
        const uint64_t i = (uint64_t)__builtin_ctzll(small), half = i / LANES, at = i % LANES;
        const uint8_t c = codes[half * next + at];
        const uint8_t made_small = shift_small(c & 0x7f, p->k[half], &p->sums[half]);
        out[half * out_next + at] = (uint8_t)(made_small | (c & 0x80));
    }
}

/* Two columns of LANES, of fewer than 2^20 codes: the sums of squares overflow past that. */
static void shift_two(const uint8_t *codes, uint64_t codes_stride, uint64_t rows, const int k[2],
                      uint8_t *out, uint64_t out_stride, shift_sums sums[2])
{
#if defined(__AVX512BW__)
    shift_pair pair;

    shift_begin(&pair, k[0], k[1]);
    for (uint64_t r = 0; r < rows; r++) {
        shift_lanes(codes + r * codes_stride, LANES, out + r * out_stride, LANES, &pair);
    }
    pair.sums[0].square = sum_squares(&pair.squares, 0, 8);
    pair.sums[1].square = sum_squares(&pair.squares, 8, 16);
    shift_add(&sums[0], &pair.sums[0]);
    shift_add(&sums[1], &pair.sums[1]);
#else
    shift_pair two[2];

    shift_begin(&two[0], k[0], k[0]);
    shift_begin(&two[1], k[1], k[1]);
    for (uint64_t r = 0; r < rows; r++) {
        for (int i = 0; i < 2; i++) {
            shift_lanes(codes + r * codes_stride + LANES * i, 0, out + r * out_stride + LANES * i,
                        0, &two[i]);
        }
    }
    for (int i = 0; i < 2; i++) {
        two[i].sums[0].square = sum_squares(&two[i].squares, 0, 8);
        shift_add(&sums[i], &two[i].sums[0]);
    }
#endif
}

/* One column of LANES. */
static void shift_one(const uint8_t *codes, uint64_t codes_stride, uint64_t rows, int k,
                      uint8_t *out, uint64_t out_stride, shift_sums *sums)
{
    shift_pair pair;

    shift_begin(&pair, k, k);
    for (uint64_t r = 0; r < rows; r += WIDE_ROWS) {
        const uint64_t more = r + WIDE_ROWS <= rows ? WIDE_ROWS - 1 : 0;
        shift_lanes(codes + r * codes_stride, more * codes_stride, out + r * out_stride,
                    more * out_stride, &pair);
    }
    pair.sums[0].square = sum_squares(&pair.squares, 0, sizeof(wide) / 4);
    shift_add(sums, &pair.sums[0]);
    shift_add(sums, &pair.sums[1]);
}
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
#endif
