/* requantise_block.h - a block of new scales, in fold_lanes.h's text: find the largest magnitude,
 * choose the scale, then 32 codes at a time. What they cost is added lane by lane, in the same
 * order whatever the instruction set. */
#include "convert/requantise_shift.h"
#include "convert/warm.h"
#include "core/integer.h"

#include <math.h>

/* Rows and columns of a new block that one old scale covers, in the tile. */
typedef struct piece {
    uint64_t row, col, rows, cols;
    float scale;
} piece;

/* Rows of a new block that one row of old blocks covers. */
typedef struct band {
    uint64_t row, rows;
    const float *scales; /* of the old blocks, from the tile's first on */
    uint64_t first;      /* the old block that the new one's first column lies in */
} band;

/* The band that begins at row `row` of the tile and ends before the next old block's edge, or the
 * new block's own. */
static band band_at(const requantise_tile *t, uint64_t row, uint64_t col, uint64_t row_end)
{
    const uint64_t old_row = (t->row + row) / t->from_rows;
    band b = {.row = row};

    b.rows = integer_least_u64((old_row + 1) * t->from_rows - t->row, row_end) - row;
    b.scales = t->scales + (old_row - t->row / t->from_rows) * t->scales_stride;
    b.first = (t->col + col) / t->from_cols - t->col / t->from_cols;
    return b;
}

/* The piece that begins at column `col` of the tile, in old block `old`. */
static inline piece piece_at(const requantise_tile *t, const band *b, uint64_t col, uint64_t old,
                             uint64_t col_end)
{
    const uint64_t edge = (old + 1) * t->from_cols - t->col % t->from_cols;

    return (piece){b->row, col, b->rows, integer_least_u64(edge, col_end) - col, b->scales[old]};
}

/* A scale under which every code is a finite float. */
static bool is_good(float scale)
{
    return scale > 0 && isfinite(scale * 448);
}

/* The largest magnitude's code of a piece, NaN left out. */
static unsigned largest_code(const requantise_tile *t, const piece *p)
{
    const uint8_t *codes = t->codes + p->row * t->codes_stride + p->col;
    unsigned largest = 0, two[2];
    uint64_t c = 0;

    for (; c + 2 * LANES <= p->cols; c += 2 * LANES) {
        largest_two(codes + c, t->codes_stride, p->rows, two);
        largest = two[0] > largest ? two[0] : largest;
        largest = two[1] > largest ? two[1] : largest;
    }
    for (uint64_t r = 0; r < p->rows; r++) {
        for (uint64_t i = c; i < p->cols; i++) {
            const unsigned m = codes[r * t->codes_stride + i] & 0x7f;
            largest = m != NAN_MAGNITUDE && m > largest ? m : largest;
        }
    }
    return largest;
}

/* log2(to / from) where both are powers of two and that is 0 to 24, past which nothing is left;
 * else -1. */
static int32_t shift_of(float from, float to)
{
    const uint32_t a = numfmt_bits(from), b = numfmt_bits(to);
    const uint32_t k = (b >> 23) - (a >> 23);

    return ((a | b) & 0x7fffff) == 0 && a >= 1u << 23 && k <= 24 ? (int32_t)k : -1;
}

static void add_shifts(const shift_sums *sums, float scale, requantise_sums *block)
{
    const double unit = 0x1p-18 * (double)scale * (double)scale;

    block->square += (double)sums->square * unit;
    block->error += (double)sums->error * unit;
    block->inexact += sums->inexact;
    block->nan_codes += sums->nans;
}

/* Between powers of two. */
static void shift_piece(const requantise_tile *t, const piece *p, int k, requantise_sums *block)
{
    const uint64_t whole = p->cols / LANES * LANES, rest = p->cols - whole;
    const uint8_t *codes = t->codes + p->row * t->codes_stride + p->col;
    uint8_t *out = t->out + p->row * t->cols + p->col;
    shift_sums sums[2] = {{0}};
    uint64_t c = 0;

    for (; c + 2 * LANES <= whole; c += 2 * LANES) {
        shift_two(codes + c, t->codes_stride, p->rows, (const int[]){k, k}, out + c, t->cols, sums);
    }
    shift_add(&sums[0], &sums[1]);
    if (c < whole) {
        shift_one(codes + c, t->codes_stride, p->rows, k, out + c, t->cols, &sums[0]);
    }
    for (uint64_t r = 0; r < p->rows && rest > 0; r++) { /* zeros cost nothing */
        uint8_t last[LANES] = {0}, made[LANES];
        memcpy(last, codes + r * t->codes_stride + whole, rest);
        shift_one(last, LANES, 1, k, made, LANES, &sums[0]);
        memcpy(out + r * t->cols + whole, made, rest);
    }
    add_shifts(&sums[0], p->scale, block);
}

/* A pair between powers of two; false where a scale is none. */
static bool shift_pieces(const requantise_tile *t, const piece *p, const piece *next, float to,
                         requantise_sums *block)
{
    const int k[2] = {shift_of(p->scale, to), shift_of(next->scale, to)};
    const uint64_t at = p->row * t->cols + p->col;
    shift_sums sums[2] = {{0}};

    if (k[0] < 0 || k[1] < 0 || !is_good(p->scale) || !is_good(next->scale)) {
        return false;
    }
    shift_two(t->codes + p->row * t->codes_stride + p->col, t->codes_stride, p->rows, k,
              t->out + at, t->cols, sums);
    add_shifts(&sums[0], p->scale, block);
    add_shifts(&sums[1], next->scale, block);
    return true;
}

static void requantise_piece(const requantise_tile *t, const piece *p, float to, lane_sums *lanes,
                             requantise_sums *block)
{
    const uint64_t whole = p->cols / LANES * LANES, rest = p->cols - whole;
    const int k = shift_of(p->scale, to);

    if (k >= 0) {
        shift_piece(t, p, k, block);
        return;
    }
    for (uint64_t r = 0; r < p->rows; r++) {
        const uint8_t *codes = t->codes + (p->row + r) * t->codes_stride + p->col;
        uint8_t *out = t->out + (p->row + r) * t->cols + p->col;
        for (uint64_t c = 0; c < whole; c += LANES) {
            requantise_lanes(codes + c, p->scale, to, out + c, lanes);
        }
        if (rest > 0) {
            uint8_t last[LANES] = {0}, made[LANES];
            memcpy(last, codes + whole, rest);
            requantise_lanes(last, p->scale, to, made, lanes);
            memcpy(out + whole, made, rest);
        }
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

/* Two pieces side by side that fill a cache's line together. */
static inline bool is_pair(const piece *p, const piece *next)
{
    return p->cols == LANES && next->cols == LANES;
}

static inline float amax_of(unsigned code, float scale, float amax)
{
    const float top = numfmt_e4m3_decode((uint8_t)code) * scale;

    return is_good(scale) && top > amax ? top : amax;
}

/* The largest magnitude of a new block, whose columns are [col, col_end). */
static float amax_of_band(const requantise_tile *t, const band *b, uint64_t col, uint64_t col_end,
                          float amax)
{
    uint64_t old = b->first, end;

    for (uint64_t c = col; c < col_end; c = end, old++) {
        const piece p = piece_at(t, b, c, old, col_end);
        piece next = {0};
        end = c + p.cols;
        if (end < col_end) {
            next = piece_at(t, b, end, old + 1, col_end);
        }
        if (is_pair(&p, &next)) {
            unsigned two[2];
            largest_two(t->codes + p.row * t->codes_stride + p.col, t->codes_stride, p.rows, two);
            amax = amax_of(two[1], next.scale, amax_of(two[0], p.scale, amax));
            end += next.cols;
            old++;
        } else {
            amax = amax_of(largest_code(t, &p), p.scale, amax);
        }
    }
    return amax;
}

static void requantise_band(const requantise_tile *t, const band *b, uint64_t col, uint64_t col_end,
                            float to, lane_sums *lanes, requantise_sums *block)
{
    uint64_t old = b->first, end;

    for (uint64_t c = col; c < col_end; c = end, old++) {
        const piece p = piece_at(t, b, c, old, col_end);
        piece next = {0};
        end = c + p.cols;
        if (end < col_end) {
            next = piece_at(t, b, end, old + 1, col_end);
        }
        if (is_pair(&p, &next) && shift_pieces(t, &p, &next, to, block)) {
            end += next.cols;
            old++;
        } else if (is_good(p.scale)) {
            requantise_piece(t, &p, to, lanes, block);
        } else {
            block->bad_scales++;
            spoil_piece(t, &p);
        }
    }
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
    band b;

    for (uint64_t r = row; r < row_end; r += b.rows) {
        b = band_at(t, r, col, row_end);
        amax = amax_of_band(t, &b, col, col_end, amax);
    }
    const float to = requantise_scale(amax, t->rule);
    for (uint64_t r = row; r < row_end; r += b.rows) {
        b = band_at(t, r, col, row_end);
        requantise_band(t, &b, col, col_end, to, &lanes, &block);
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
        if (t->out != t->codes) { /* what is worked on in place was read just now */
            warm_rows(t->codes + row * t->codes_stride, t->codes_stride,
                      integer_least_u64(t->block_rows, t->rows - row), t->cols);
        }
        for (uint64_t col = 0; col < t->cols; col += t->block_cols) {
            *scale++ = requantise_block(t, row, col, sums);
        }
    }
}
