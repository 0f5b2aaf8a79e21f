/* fold_tile.c - block by block: count the magnitudes at each exponent, choose the scale, look the
 * codes up; what any rule costs follows from the counts. */
#include "convert/fold_tile.h"

#include "core/fold_mxfp4.h"

#include <string.h>

enum { MOST_GROUPS = 256 }; /* of a block's row that are counted at a time */

/* How many codes of each magnitude stand at each exponent: 16-bit fields, magnitudes 0, 2, 4, 6 in
 * `even` and 1, 3, 5, 7 in `odd`. Outside [least, largest] all is zero. */
typedef struct tally {
    uint64_t even[256], odd[256];
    int least, largest; /* exponents of groups that are not all zero */
    uint64_t nan_groups;
} tally;

static const uint64_t bytes_even = UINT64_C(0x00ff00ff00ff00ff);

void fold_sums_add(fold_sums *to, const fold_sums *more)
{
    to->blocks += more->blocks;
    to->exact += more->exact;
    to->wide += more->wide;
    to->elements += more->elements;
    to->inexact += more->inexact;
    to->nan_groups += more->nan_groups;
    to->saturated += more->saturated;
    to->square += more->square;
    to->inexact_square += more->inexact_square;
    to->fold += more->fold;
    to->amax += more->amax;
    to->nearest += more->nearest;
}

static void tally_row(tally *t, const uint64_t *counts, const uint8_t *scales, size_t groups)
{
    for (size_t g = 0; g < groups; g++) {
        const int e = scales[g];
        if (e == FOLD_MXFP4_NAN) {
            t->nan_groups++;
            continue;
        }
        if (counts[g] == FOLD_MXFP4_GROUP) { /* all of magnitude 0 */
            continue;
        }
        t->even[e] += counts[g] & bytes_even;
        t->odd[e] += counts[g] >> 8 & bytes_even;
        t->least = e < t->least ? e : t->least;
        t->largest = e > t->largest ? e : t->largest;
    }
}

/* How many codes of magnitude c stand at exponent e. */
static uint64_t count_of(const tally *t, int e, int c)
{
    return (c % 2 == 0 ? t->even[e] : t->odd[e]) >> c / 2 * 16 & 0xffff;
}

/* The largest magnitude of all: its code, and its exponent. */
static void find_amax(const tally *t, const fold_costs *costs, int *code, int *exponent)
{
    double most = -1;

    for (int e = t->least; e <= t->largest; e++) {
        for (int c = COSTS_CODES - 1; c > 0; c--) {
            if (count_of(t, e, c) > 0) {
                double square = costs->square[c] * costs->four[e];
                if (square > most) {
                    most = square;
                    *code = c;
                    *exponent = e;
                }
                break;
            }
        }
    }
}

/* What the codes of one exponent lose. */
static void add_exponent(const tally *t, int e, int scale, int amax_code, int amax_exponent,
                         const fold_costs *costs, fold_sums *block)
{
    const int nearest = amax_exponent + costs->nearest[amax_code];
    const int nearest_scale = nearest < 0 ? 0 : nearest;
    const int row = fold_costs_row(e - scale), nearest_row = fold_costs_row(e - nearest_scale);
    const double *amax = costs->amax[amax_code][fold_costs_row(e - amax_exponent)];
    double square = 0, fold = 0, by_amax = 0, by_nearest = 0;

    for (int c = 1; c < COSTS_CODES; c++) {
        const uint64_t codes = count_of(t, e, c);
        const double n = (double)codes;
        square += n * costs->square[c];
        fold += n * costs->power[row][c];
        by_amax += n * amax[c];
        by_nearest += n * costs->power[nearest_row][c];
        block->inexact += costs->inexact[row][c] ? codes : 0;
        block->saturated += costs->saturates[nearest_row][c] ? codes : 0;
    }
    square *= costs->four[e];
    block->square += square;
    /* Further down than the tables go, all is lost. */
    block->fold += e - scale < COSTS_LEAST ? square : fold * costs->four[scale];
    block->nearest +=
        e - nearest_scale < COSTS_LEAST ? square : by_nearest * costs->four[nearest_scale];
    block->amax += e - amax_exponent < COSTS_LEAST ? square : by_amax * costs->four[amax_exponent];
}

/* The costs of a block whose scale is known, into the sums. Empties the tally. */
static void settle(tally *t, int scale, const fold_costs *costs, fold_sums *sums)
{
    fold_sums block = {.blocks = 1, .nan_groups = t->nan_groups};

    if (t->largest >= 0) {
        int code = 0, exponent = 0;
        find_amax(t, costs, &code, &exponent);
        for (int e = t->least; e <= t->largest; e++) {
            if ((t->even[e] | t->odd[e]) != 0) {
                add_exponent(t, e, scale, code, exponent, costs, &block);
                t->even[e] = t->odd[e] = 0;
            }
        }
        block.wide = t->largest - t->least > FOLD_MXFP4_SPREAD;
    }
    block.exact = block.inexact == 0 && block.nan_groups == 0;
    block.inexact_square = block.exact ? 0 : block.square;
    fold_sums_add(sums, &block);
    t->least = FOLD_MXFP4_NAN;
    t->largest = -1;
    t->nan_groups = 0;
}

static void write_nan(const uint8_t *codes, uint8_t *out)
{
    for (int i = 0; i < FOLD_MXFP4_GROUP; i++) {
        const int code = i % 2 == 0 ? codes[i / 2] & 15 : codes[i / 2] >> 4;
        out[i] = (uint8_t)(0x7f | (code & 8) << 4);
    }
}

static void fold_row(const uint8_t *codes, const uint8_t *scales, size_t groups, int scale,
                     bool any_nan, const fold_lanes *lanes, const fold_costs *costs, uint8_t *out)
{
    uint8_t rows[MOST_GROUPS];

    for (size_t g = 0; g < groups; g++) {
        rows[g] = (uint8_t)fold_costs_row(scales[g] - scale);
    }
    lanes->fold(codes, groups, rows, costs->table, out);
    for (size_t g = 0; any_nan && g < groups; g++) {
        if (scales[g] == FOLD_MXFP4_NAN) {
            write_nan(codes + 16 * g, out + FOLD_MXFP4_GROUP * g);
        }
    }
}

/* One block: rows [row, row + rows) and groups [group, group + groups) of the tile. */
static uint8_t fold_block(const fold_tile *tile, uint64_t row, uint64_t group, uint64_t rows,
                          size_t groups, tally *t, const fold_lanes *lanes, const fold_costs *costs,
                          fold_sums *sums)
{
    const uint8_t *codes = tile->codes + row * tile->codes_stride + 16 * group;
    const uint8_t *scales = tile->scales + row * tile->scales_stride + group;
    uint64_t counts[MOST_GROUPS];

    for (uint64_t r = 0; r < rows; r++) {
        lanes->count(codes + r * tile->codes_stride, groups, counts);
        tally_row(t, counts, scales + r * tile->scales_stride, groups);
    }
    const bool any_nan = t->nan_groups > 0;
    const uint8_t scale = t->largest < 0 ? FOLD_MXFP4_EMPTY : fold_mxfp4_scale((uint8_t)t->largest);
    settle(t, scale, costs, sums);
    for (uint64_t r = 0; r < rows && tile->out != NULL; r++) {
        fold_row(codes + r * tile->codes_stride, scales + r * tile->scales_stride, groups, scale,
                 any_nan, lanes, costs,
                 tile->out + (row + r) * tile->out_stride + FOLD_MXFP4_GROUP * group);
    }
    sums->elements += rows * groups * FOLD_MXFP4_GROUP;
    return scale;
}

void fold_tile_run(const fold_tile *tile, const fold_lanes *lanes, const fold_costs *costs,
                   fold_sums *sums)
{
    const uint64_t groups = tile->cols / FOLD_MXFP4_GROUP;
    const uint64_t block_groups = tile->block_cols / FOLD_MXFP4_GROUP;
    uint8_t *scale = tile->out_scales;
    tally t;

    memset(&t, 0, sizeof t);
    t.least = FOLD_MXFP4_NAN;
    t.largest = -1;
    for (uint64_t row = 0; row < tile->rows; row += tile->block_rows) {
        const uint64_t left = tile->rows - row;
        const uint64_t rows = left < tile->block_rows ? left : tile->block_rows;
        for (uint64_t group = 0; group < groups; group += block_groups) {
            const uint64_t rest = groups - group;
            *scale++ = fold_block(tile, row, group, rows, rest < block_groups ? rest : block_groups,
                                  &t, lanes, costs, sums);
        }
    }
}
