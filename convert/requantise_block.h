/* requantise_block.h - a block of new scales, in fold_lanes.h's text: find the largest magnitude,
 * choose the scale, then sixteen codes at a time. What sixteen codes cost is added lane by lane, in
 * the same order whatever the instruction set. */
#include "convert/requantise_tile.h"

#include "convert/warm.h"
#include "core/integer.h"
#include "core/numfmt.h"

#include <math.h>

enum { LANES = 16, NAN_MAGNITUDE = 127 };

typedef uint8_t sixteen_u8 __attribute__((vector_size(LANES)));
typedef int32_t sixteen_i32 __attribute__((vector_size(4 * LANES)));
typedef float sixteen_f32 __attribute__((vector_size(4 * LANES)));
typedef int64_t sixteen_i64 __attribute__((vector_size(8 * LANES)));
typedef double sixteen_f64 __attribute__((vector_size(8 * LANES)));

/* Rows and columns of a new block that one old scale covers, in the tile. */
typedef struct piece {
    uint64_t row, col, rows, cols;
    float scale;
} piece;

/* Of one block. */
typedef struct lane_sums {
    sixteen_f64 square, error;
    sixteen_i64 inexact;
    sixteen_i32 saturated, nans;
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

/* The largest magnitude's code of a piece, NaN left out. */
static unsigned largest_code(const requantise_tile *t, const piece *p)
{
    uint8_t largest = 0;

    for (uint64_t r = 0; r < p->rows; r++) {
        const uint8_t *codes = t->codes + (p->row + r) * t->codes_stride + p->col;
        for (uint64_t c = 0; c < p->cols; c++) {
            const uint8_t magnitude = codes[c] & 0x7f;
            const uint8_t kept = magnitude == NAN_MAGNITUDE ? 0 : magnitude;
            largest = kept > largest ? kept : largest;
        }
    }
    return largest;
}

#define CHOOSE(mask, yes, no) (((mask) & (yes)) | (~(mask) & (no)))

/* e4m3 magnitudes as floats: an exponent's bias more, but for subnormals, which are 2^-6 less than
 * the normal number of their bits. */
#define DECODE(m)                                                                                  \
    (sixteen_f32)                                                                                  \
        CHOOSE((m) < 8, (sixteen_i32)((sixteen_f32)(((m) << 20) + (121 << 23)) - 0x1p-6f),         \
               ((m) << 20) + (120 << 23))

/* Sixteen codes of one old scale under the new one. A magnitude is rounded by its bits, or where
 * e4m3 is subnormal by adding 2^14, whose unit is 2^-9. */
static void requantise_16(const uint8_t *codes, float from, float to, uint8_t *out, lane_sums *sums)
{
    sixteen_u8 bytes;

    memcpy(&bytes, codes, sizeof bytes);
    const sixteen_i32 code = __builtin_convertvector(bytes, sixteen_i32), m = code & 0x7f;
    const sixteen_i32 nan = m == NAN_MAGNITUDE;
    const sixteen_f32 decoded = (sixteen_f32)((sixteen_i32)DECODE(m) & ~nan);
    const sixteen_f32 x = decoded * from, q = x / to;
    const sixteen_i32 bits = (sixteen_i32)q, odd = bits >> 20 & 1;
    const sixteen_i32 normal = ((bits + 0x7ffff + odd) >> 20) - (120 << 3);
    const sixteen_i32 small = (sixteen_i32)(q + 0x1p14f) - (141 << 23);
    sixteen_i32 made = CHOOSE(q < 0x1p-6f, small, normal);
    made = CHOOSE(made > 126, 126, made);
    const sixteen_f64 value = __builtin_convertvector(decoded, sixteen_f64) * (double)from;
    const sixteen_f64 got = __builtin_convertvector(DECODE(made), sixteen_f64) * (double)to;
    const sixteen_f64 lost = got - value;
    sums->square += value * value;
    sums->error += lost * lost;
    sums->inexact -= got != value;
    sums->saturated -= q > 448;
    sums->nans -= nan;
    made = CHOOSE(nan, NAN_MAGNITUDE, made) | (code & 0x80);
    bytes = __builtin_convertvector(made, sixteen_u8);
    memcpy(out, &bytes, sizeof bytes);
}

static void requantise_piece(const requantise_tile *t, const piece *p, float to, lane_sums *sums)
{
    const uint64_t whole = p->cols / LANES * LANES, rest = p->cols - whole;

    for (uint64_t r = 0; r < p->rows; r++) {
        const uint8_t *codes = t->codes + (p->row + r) * t->codes_stride + p->col;
        uint8_t *out = t->out + (p->row + r) * t->cols + p->col;
        for (uint64_t c = 0; c < whole; c += LANES) {
            requantise_16(codes + c, p->scale, to, out + c, sums);
        }
        if (rest > 0) { /* zeros cost nothing */
            uint8_t last[LANES] = {0};
            memcpy(last, codes + whole, rest);
            requantise_16(last, p->scale, to, last, sums);
            memcpy(out + whole, last, rest);
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
        block->inexact += (uint64_t)lanes->inexact[i];
        block->saturated += (uint64_t)lanes->saturated[i];
        block->nan_codes += (uint64_t)lanes->nans[i];
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
                requantise_piece(t, &p, to, &lanes);
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
