/* requantise_block.h - a block of new scales, in fold_lanes.h's text: find the largest magnitude,
 * choose the scale, then 32 codes at a time. What they cost is added lane by lane, in the same
 * order whatever the instruction set. */
#include "convert/requantise_tile.h"

#include "convert/warm.h"
#include "core/integer.h"
#include "core/numfmt.h"

#include <math.h>

enum { LANES = 32, NAN_MAGNITUDE = 127 };

/* Rows and columns of a new block that one old scale covers, in the tile. */
typedef struct piece {
    uint64_t row, col, rows, cols;
    float scale;
} piece;

/* Of one block: what it costs, lane by lane. */
typedef struct lane_sums {
    double square[LANES], error[LANES];
    uint64_t inexact, saturated, nans;
} lane_sums;

/* The piece of the new block that begins at (row, col) of the tile and ends before the next old
 * block's edge, or the new block's own (row_end, col_end). */
static piece piece_at(const requantise_tile *t, uint64_t row, uint64_t col, uint64_t row_end,
                      uint64_t col_end)
{
    const uint64_t first_row = t->row / t->from_rows, first_col = t->col / t->from_cols;
    const uint64_t old_row = (t->row + row) / t->from_rows;
    const uint64_t old_col = (t->col + col) / t->from_cols;
    piece p = {.row = row, .col = col};

    p.rows = integer_least_u64((old_row + 1) * t->from_rows - t->row, row_end) - row;
    p.cols = integer_least_u64((old_col + 1) * t->from_cols - t->col, col_end) - col;
    p.scale = t->scales[(old_row - first_row) * t->scales_stride + (old_col - first_col)];
    return p;
}

/* A scale under which every code is a finite float. */
static bool is_good(float scale)
{
    return scale > 0 && isfinite(scale * 448);
}

/* A code's magnitude, 0 for NaN. */
static inline uint8_t magnitude_of(uint8_t code)
{
    const uint8_t next = (uint8_t)((code & 0x7f) + 1); /* NaN is the one that has 0x80 */

    return (uint8_t)((next & 0x7f) - ((next >> 7) ^ 1));
}

/* The largest magnitude's code of a piece, NaN left out. */
static unsigned largest_code(const requantise_tile *t, const piece *p)
{
    const uint64_t whole = p->cols / LANES * LANES;
    uint8_t most[LANES] = {0}, largest = 0;

    for (uint64_t r = 0; r < p->rows; r++) {
        const uint8_t *codes = t->codes + (p->row + r) * t->codes_stride + p->col;
        for (uint64_t c = 0; c < whole; c += LANES) {
            for (int i = 0; i < LANES; i++) {
                const uint8_t magnitude = magnitude_of(codes[c + (uint64_t)i]);
                most[i] = magnitude > most[i] ? magnitude : most[i];
            }
        }
        for (uint64_t c = whole; c < p->cols; c++) {
            const uint8_t magnitude = magnitude_of(codes[c]);
            largest = magnitude > largest ? magnitude : largest;
        }
    }
    for (int i = 0; i < LANES; i++) {
        largest = most[i] > largest ? most[i] : largest;
    }
    return largest;
}

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

/* What a shift costs, in units of the old scale times 2^-9: sums of squares, whole and below 2^53
 */
typedef struct shift_sums {
    double square[LANES], error[LANES];
    uint64_t inexact, nans;
} shift_sums;

/* The same where the new scale is the old one times 2^k, k >= 0, both powers of two: a magnitude is
 * a whole number v of 2^-9, and k less of its exponent, or where that is too small v / 2^k rounded
 * to nearest even. */
#if defined(__AVX512BW__)
/* Adds the squares of sixteen numbers of four bits to doubles. */
static inline void add_squares(__m512i numbers, double *sums)
{
    const __m512 root = _mm512_cvtepi32_ps(numbers), square = _mm512_mul_ps(root, root);
    const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(square));
    const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(square, 1));

    _mm512_storeu_pd(sums, _mm512_add_pd(_mm512_loadu_pd(sums), low));
    _mm512_storeu_pd(sums + 8, _mm512_add_pd(_mm512_loadu_pd(sums + 8), high));
}

static inline void shift_16(const uint8_t *codes, int32_t k, uint8_t *out, double *square,
                            double *error, shift_sums *sums)
{
    const __m128i by = _mm_cvtsi32_si128(k);
    const __m512i one = _mm512_set1_epi32(k > 0), half = _mm512_set1_epi32((1 << k) / 2 - (k > 0));
    const __m512i code = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)codes));
    const __m512i m = _mm512_and_si512(code, _mm512_set1_epi32(0x7f));
    const __mmask16 number = _mm512_cmplt_epi32_mask(m, _mm512_set1_epi32(NAN_MAGNITUDE));
    const __mmask16 normal = _mm512_cmpge_epi32_mask(m, _mm512_set1_epi32(8));
    const __m512i mantissa = _mm512_and_si512(m, _mm512_set1_epi32(7));
    const __m512i twice =
        _mm512_sllv_epi32(_mm512_or_si512(mantissa, _mm512_set1_epi32(8)), _mm512_srli_epi32(m, 3));
    const __m512i v = _mm512_maskz_mov_epi32(
        number, _mm512_mask_srli_epi32(mantissa, normal, twice, 1)); /* NaN is 0 */
    const __m512i odd = _mm512_and_si512(_mm512_srl_epi32(v, by), one);
    const __m512i small = _mm512_srl_epi32(_mm512_add_epi32(v, _mm512_add_epi32(half, odd)), by);
    const __mmask16 tiny = _mm512_mask_cmplt_epi32_mask(number, m, _mm512_set1_epi32(8 * (k + 1)));
    const __m512i loss = _mm512_maskz_sub_epi32(tiny, _mm512_sll_epi32(small, by), v);
    const __mmask16 lossy = _mm512_test_epi32_mask(loss, loss);
    __m512i made = _mm512_mask_sub_epi32(m, number, m, _mm512_set1_epi32(8 * k));

    made = _mm512_mask_mov_epi32(made, tiny, small);
    made = _mm512_or_si512(made, _mm512_and_si512(code, _mm512_set1_epi32(0x80)));
    _mm_storeu_si128((__m128i *)out, _mm512_cvtepi32_epi8(made));
    add_squares(v, square);
    if (lossy != 0) {
        add_squares(loss, error);
        sums->inexact += (unsigned)__builtin_popcount(lossy);
    }
    sums->nans += 16 - (unsigned)__builtin_popcount(number);
}

static void shift_lanes(const uint8_t *restrict codes, int32_t k, uint8_t *restrict out,
                        shift_sums *restrict sums)
{
    for (int i = 0; i < LANES; i += 16) {
        shift_16(codes + i, k, out + i, sums->square + i, sums->error + i, sums);
    }
}
#else
static void shift_lanes(const uint8_t *restrict codes, int32_t k, uint8_t *restrict out,
                        shift_sums *restrict sums)
{
    const int32_t half = (1 << k) / 2, bias = half - (k > 0);
    float squares[LANES], errors[LANES]; /* of four bits' numbers: exact */
    int32_t inexact = 0, nans = 0;

    for (int i = 0; i < LANES; i++) {
        const int32_t m = codes[i] & 0x7f, kept = choose_less(m, NAN_MAGNITUDE, m, 0);
        const int32_t whole = ((kept & 7) | 8) << (kept >> 3) >> 1;
        const int32_t v = choose_less(kept, 8, kept, whole);
        const int32_t small = (v + bias + (v >> k & (k > 0))) >> k;
        const int32_t loss = choose_less(m, 8 * (k + 1), (small << k) - v, 0);
        const int32_t code = choose_less(m, 8 * (k + 1), small, m - 8 * k);
        squares[i] = (float)v * (float)v;
        errors[i] = (float)loss * (float)loss;
        out[i] = (uint8_t)(choose_less(m, NAN_MAGNITUDE, code, m) | (codes[i] & 0x80));
        inexact += loss != 0;
        nans += m == NAN_MAGNITUDE;
    }
    for (int i = 0; i < LANES; i++) {
        sums->square[i] += (double)squares[i];
        sums->error[i] += (double)errors[i];
    }
    sums->inexact += (uint32_t)inexact;
    sums->nans += (uint32_t)nans;
}
#endif

/* log2(to / from) where both are powers of two and that is 0 to 24, past which nothing is left;
 * else -1. */
static int32_t shift_of(float from, float to)
{
    const uint32_t a = numfmt_bits(from), b = numfmt_bits(to);
    const uint32_t k = (b >> 23) - (a >> 23);

    return ((a | b) & 0x7fffff) == 0 && a >= 1u << 23 && k <= 24 ? (int32_t)k : -1;
}

/* What a piece's codes go through, and where that is counted. */
typedef struct way {
    float from, to;
    int32_t k; /* shift_of(from, to) */
    lane_sums *lanes;
    shift_sums shifts;
} way;

static inline void go(way *w, const uint8_t *restrict codes, uint8_t *restrict out)
{
    if (w->k >= 0) {
        shift_lanes(codes, w->k, out, &w->shifts);
    } else {
        requantise_lanes(codes, w->from, w->to, out, w->lanes);
    }
}

static void add_shifts(const way *w, requantise_sums *block)
{
    const double unit = 0x1p-18 * (double)w->from * (double)w->from;
    double square = 0, error = 0;

    for (int i = 0; i < LANES; i++) {
        square += w->shifts.square[i];
        error += w->shifts.error[i];
    }
    block->square += square * unit;
    block->error += error * unit;
    block->inexact += w->shifts.inexact;
    block->nan_codes += w->shifts.nans;
}

static void requantise_piece(const requantise_tile *t, const piece *p, float to, lane_sums *lanes,
                             requantise_sums *block)
{
    const uint64_t whole = p->cols / LANES * LANES, rest = p->cols - whole;
    way w = {.from = p->scale, .to = to, .k = shift_of(p->scale, to), .lanes = lanes};

    for (uint64_t r = 0; r < p->rows; r++) {
        const uint8_t *codes = t->codes + (p->row + r) * t->codes_stride + p->col;
        uint8_t *out = t->out + (p->row + r) * t->cols + p->col;
        for (uint64_t c = 0; c < whole; c += LANES) {
            go(&w, codes + c, out + c);
        }
        if (rest > 0) { /* zeros cost nothing */
            uint8_t last[LANES] = {0}, made[LANES];
            memcpy(last, codes + whole, rest);
            go(&w, last, made);
            memcpy(out + whole, made, rest);
        }
    }
    if (w.k >= 0) {
        add_shifts(&w, block);
    }
}

/* Values without a scale are NaN; the caller refuses the tile. */
static void spoil_piece(const requantise_tile *t, const piece *p)
{
    for (uint64_t r = 0; r < p->rows; r++) {
        memset(t->out + (p->row + r) * t->cols + p->col, NAN_MAGNITUDE, p->cols);
    }
}

static void add_lanes(const lane_sums *lanes, requantise_sums *block)
{
    for (int i = 0; i < LANES; i++) {
        block->square += lanes->square[i];
        block->error += lanes->error[i];
    }
    block->inexact += lanes->inexact;
    block->saturated += lanes->saturated;
    block->nan_codes += lanes->nans;
}

/* The new block that begins at (row, col) of the tile. */
static float requantise_block(const requantise_tile *t, uint64_t row, uint64_t col,
                              requantise_sums *sums)
{
    const uint64_t row_end = integer_least_u64(row + t->block_rows, t->rows);
    const uint64_t col_end = integer_least_u64(col + t->block_cols, t->cols);
    requantise_sums block = {.blocks = 1, .elements = (row_end - row) * (col_end - col)};
    lane_sums lanes = {0};
    float amax = 0;
    piece p = {0};

    for (uint64_t r = row; r < row_end; r += p.rows) {
        for (uint64_t c = col; c < col_end; c += p.cols) {
            p = piece_at(t, r, c, row_end, col_end);
            const float top = numfmt_e4m3_decode((uint8_t)largest_code(t, &p)) * p.scale;
            amax = is_good(p.scale) && top > amax ? top : amax;
        }
    }
    const float to = requantise_scale(amax, t->rule);
    for (uint64_t r = row; r < row_end; r += p.rows) {
        for (uint64_t c = col; c < col_end; c += p.cols) {
            p = piece_at(t, r, c, row_end, col_end);
            if (is_good(p.scale)) {
                requantise_piece(t, &p, to, &lanes, &block);
            } else {
                block.bad_scales++;
                spoil_piece(t, &p);
            }
        }
    }
    add_lanes(&lanes, &block);
    block.exact = block.inexact == 0;
    requantise_sums_add(sums, &block);
    return to;
}

static void requantise(const requantise_tile *t, requantise_sums *sums)
{
    float *scale = t->out_scales;

    for (uint64_t row = 0; row < t->rows; row += t->block_rows) {
        warm_rows(t->codes + row * t->codes_stride, t->codes_stride,
                  integer_least_u64(t->block_rows, t->rows - row), t->cols);
        for (uint64_t col = 0; col < t->cols; col += t->block_cols) {
            *scale++ = requantise_block(t, row, col, sums);
        }
    }
}
