/* requantise_tile.c - see requantise_tile.h.
 *
 * A new block meets old ones in pieces that have one old and one new scale: what becomes of the 128
 * magnitudes is worked out once a piece, then looked up, and counted for the error. */
#include "convert/requantise_tile.h"

#include "core/numfmt.h"

#include <math.h>
#include <string.h>

enum { MAGNITUDES = 128, NAN_MAGNITUDE = 127 };

/* Rows and columns of a new block that one old scale covers, in the tile. */
typedef struct piece {
    uint64_t row, col, rows, cols;
    float scale;
} piece;

void requantise_sums_add(requantise_sums *to, const requantise_sums *more)
{
    to->blocks += more->blocks;
    to->exact += more->exact;
    to->elements += more->elements;
    to->inexact += more->inexact;
    to->saturated += more->saturated;
    to->nan_codes += more->nan_codes;
    to->bad_scales += more->bad_scales;
    to->square += more->square;
    to->error += more->error;
}

float requantise_scale(float amax, plan_rule rule)
{
    if (rule == PLAN_AMAX) {
        return numfmt_scale(amax, HONE_RULE_RAW_AMAX, HONE_DTYPE_E4M3);
    }
    const float above = numfmt_scale(amax, HONE_RULE_POW2_AMAX, HONE_DTYPE_E4M3);
    if (rule == PLAN_CEIL) {
        return above;
    }
    /* Nearest by the logarithm: the power below where amax / 448 is under 2^-0.5 of that above. */
    const float raw = numfmt_scale(amax, HONE_RULE_RAW_AMAX, HONE_DTYPE_E4M3);
    return (double)raw * (double)raw < 0.5 * (double)above * (double)above ? above / 2 : above;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The piece of the new block that begins at (row, col) of the tile and ends before the next old
 * block's edge, or the new block's own (row_end, col_end). */
static piece piece_at(const requantise_tile *t, uint64_t row, uint64_t col, uint64_t row_end,
                      uint64_t col_end)
{
    const uint64_t first_row = t->row / t->from_rows, first_col = t->col / t->from_cols;
    const uint64_t old_row = (t->row + row) / t->from_rows;
    const uint64_t old_col = (t->col + col) / t->from_cols;
    piece p = {.row = row, .col = col};

    p.rows = least((old_row + 1) * t->from_rows - t->row, row_end) - row;
    p.cols = least((old_col + 1) * t->from_cols - t->col, col_end) - col;
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

typedef struct lookup {
    uint8_t code[MAGNITUDES];
    double value[MAGNITUDES], loss[MAGNITUDES]; /* squares */
    bool saturates[MAGNITUDES];
} lookup;

static void make_lookup(float from, float to, lookup *l)
{
    for (int m = 0; m < NAN_MAGNITUDE; m++) {
        const float decoded = numfmt_e4m3_decode((uint8_t)m), x = decoded * from;
        const double value = (double)decoded * (double)from;
        l->code[m] = numfmt_e4m3_encode(x / to);
        const double got = (double)numfmt_e4m3_decode(l->code[m]) * (double)to;
        l->value[m] = value * value;
        l->loss[m] = (got - value) * (got - value);
        l->saturates[m] = x / to > 448;
    }
    l->code[NAN_MAGNITUDE] = NAN_MAGNITUDE;
}

/* Look a piece up and count its magnitudes: four counts, so that equal neighbours do not wait. */
static void write_piece(const requantise_tile *t, const piece *p, const lookup *l,
                        uint32_t counts[4][MAGNITUDES])
{
    for (uint64_t r = 0; r < p->rows; r++) {
        const uint8_t *codes = t->codes + (p->row + r) * t->codes_stride + p->col;
        uint8_t *out = t->out + (p->row + r) * t->cols + p->col;
        for (uint64_t c = 0; c < p->cols; c++) {
            const uint8_t magnitude = codes[c] & 0x7f;
            out[c] = (uint8_t)(l->code[magnitude] | (codes[c] & 0x80));
            counts[c % 4][magnitude]++;
        }
    }
}

static void do_piece(const requantise_tile *t, const piece *p, float to, requantise_sums *block)
{
    uint32_t counts[4][MAGNITUDES] = {{0}};
    lookup l;

    if (!is_good(p->scale)) {
        block->bad_scales++;
        memset(l.code, 0x7f, sizeof l.code);
        write_piece(t, p, &l, counts);
        return;
    }
    make_lookup(p->scale, to, &l);
    write_piece(t, p, &l, counts);
    for (int m = 0; m < MAGNITUDES; m++) {
        const uint64_t n = (uint64_t)counts[0][m] + counts[1][m] + counts[2][m] + counts[3][m];
        if (m == NAN_MAGNITUDE) {
            block->nan_codes += n;
        } else if (n > 0) {
            block->square += (double)n * l.value[m];
            block->error += (double)n * l.loss[m];
            block->inexact += l.loss[m] > 0 ? n : 0;
            block->saturated += l.saturates[m] ? n : 0;
        }
    }
}

/* The new block that begins at (row, col) of the tile. */
static float do_block(const requantise_tile *t, uint64_t row, uint64_t col, requantise_sums *sums)
{
    const uint64_t row_end = least(row + t->block_rows, t->rows);
    const uint64_t col_end = least(col + t->block_cols, t->cols);
    requantise_sums block = {.blocks = 1, .elements = (row_end - row) * (col_end - col)};
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
            do_piece(t, &p, to, &block);
        }
    }
    block.exact = block.inexact == 0;
    requantise_sums_add(sums, &block);
    return to;
}

void requantise_tile_run(const requantise_tile *t, requantise_sums *sums)
{
    float *scale = t->out_scales;

    for (uint64_t row = 0; row < t->rows; row += t->block_rows) {
        for (uint64_t col = 0; col < t->cols; col += t->block_cols) {
            *scale++ = do_block(t, row, col, sums);
        }
    }
}
