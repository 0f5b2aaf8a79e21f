/* fold_block.h - a block of the fold, after fold_lanes.h's inner loops: count the magnitudes at
 * each exponent, choose the scale, look the codes up. What any rule costs follows from the counts.
 */
#include "convert/warm.h"
#include "core/fold_mxfp4.h"

#include <stdbool.h>

/* A lane for each of the eight magnitudes. Vectors are wider than some of the processors, and add
 * in the same order on all. */
typedef uint8_t lanes_u8 __attribute__((vector_size(8)));
typedef uint16_t lanes_u16 __attribute__((vector_size(16)));
typedef uint32_t lanes_u32 __attribute__((vector_size(32)));
typedef double lanes_f64 __attribute__((vector_size(64)));

/* One block's groups, row by row, and how many codes of each magnitude stand at each exponent:
 * between blocks all zero. */
typedef struct work {
    lanes_u16 tally[256];
    uint64_t counts[FOLD_TILE_GROUPS];
    uint8_t exponents[FOLD_TILE_GROUPS], rows[FOLD_TILE_GROUPS];
    size_t groups;
    int least, largest; /* exponents that count; largest is -1 where none does */
    uint64_t nan_groups;
} work;

/* The block's exponents and counts, dense. */
static void gather(const fold_tile *tile, uint64_t row, uint64_t group, uint64_t rows,
                   size_t groups, work *w)
{
    w->groups = 0;
    for (uint64_t r = row; r < row + rows; r++) {
        const uint8_t *scales = tile->scales + r * tile->scales_stride + group;
        count(tile->codes + r * tile->codes_stride + 16 * group, groups, w->counts + w->groups);
        for (size_t g = 0; g < groups; g++) {
            w->exponents[w->groups + g] = scales[g];
        }
        w->groups += groups;
    }
}

/* Add the counts up by exponent, and find which exponents count: not NaN's, nor those of groups
 * whose codes all have magnitude 0. */
static void tally(work *w)
{
    int least = FOLD_MXFP4_NAN, largest = -1;
    uint64_t nans = 0;

    for (size_t g = 0; g < w->groups; g++) {
        const int e = w->exponents[g];
        const bool counts = w->counts[g] != FOLD_MXFP4_GROUP && e != FOLD_MXFP4_NAN;
        lanes_u8 bytes;
        memcpy(&bytes, &w->counts[g], sizeof bytes);
        w->tally[e] += __builtin_convertvector(bytes, lanes_u16);
        least = counts && e < least ? e : least;
        largest = counts && e > largest ? e : largest;
        nans += e == FOLD_MXFP4_NAN;
    }
    w->least = least;
    w->largest = largest;
    w->nan_groups = nans;
}

/* The tally is zero again. */
static void clear(work *w)
{
    for (size_t g = 0; g < w->groups; g++) {
        w->tally[w->exponents[g]] = (lanes_u16){0};
    }
}

/* The largest magnitude of all, as a code and its exponent: below the largest exponent that counts
 * only the next three can hold it (0.5 there is more than 6 further down). */
static void find_amax(const work *w, const fold_costs *costs, int *code, int *exponent)
{
    double most = -1;

    for (int e = w->largest; e >= w->least && e >= w->largest - 3; e--) {
        int c = COSTS_CODES - 1;
        while (c > 0 && w->tally[e][c] == 0) {
            c--;
        }
        const double square = costs->square[c] * costs->four[e];
        if (c > 0 && square > most) {
            most = square;
            *code = c;
            *exponent = e;
        }
    }
}

static double sum_f64(const lanes_f64 *v)
{
    double sum = 0;

    for (int c = 0; c < COSTS_CODES; c++) {
        sum += (*v)[c];
    }
    return sum;
}

static uint64_t sum_u32(const lanes_u32 *v)
{
    uint64_t sum = 0;

    for (int c = 0; c < COSTS_CODES; c++) {
        sum += (*v)[c];
    }
    return sum;
}

/* What the counts come to under the scale 2^(scale - 127), and under the other two rules. */
static void add_costs(const work *w, int scale, const fold_costs *costs, fold_sums *block)
{
    lanes_f64 squares = {0}, folds = {0}, amaxes = {0}, nearests = {0}, unit, lost;
    lanes_u32 inexact = {0}, saturated = {0};
    int code = 1, top = w->largest;

    find_amax(w, costs, &code, &top);
    const int power = top + costs->nearest[code], nearest = power < 0 ? 0 : power;
    memcpy(&unit, costs->square, sizeof unit);
    for (int e = w->least; e <= w->largest; e++) {
        uint64_t halves[2];
        memcpy(halves, &w->tally[e], sizeof halves);
        if ((halves[0] | halves[1]) == 0) {
            continue;
        }
        const lanes_f64 n = __builtin_convertvector(w->tally[e], lanes_f64);
        const lanes_u32 codes = __builtin_convertvector(w->tally[e], lanes_u32);
        const lanes_f64 square = n * unit * costs->four[e];
        const int row = fold_costs_row(e - scale), nearest_row = fold_costs_row(e - nearest);
        lanes_u32 mask;
        squares += square;
        /* Further down than the tables go, all is lost. */
        memcpy(&lost, costs->power[row], sizeof lost);
        folds += e - scale < COSTS_LEAST ? square : n * lost * costs->four[scale];
        memcpy(&lost, costs->power[nearest_row], sizeof lost);
        nearests += e - nearest < COSTS_LEAST ? square : n * lost * costs->four[nearest];
        memcpy(&lost, costs->amax[code][fold_costs_row(e - top)], sizeof lost);
        amaxes += e - top < COSTS_LEAST ? square : n * lost * costs->four[top];
        memcpy(&mask, costs->inexact[row], sizeof mask);
        inexact += codes & mask;
        memcpy(&mask, costs->saturates[nearest_row], sizeof mask);
        saturated += codes & mask;
    }
    block->square = sum_f64(&squares);
    block->fold = sum_f64(&folds);
    block->amax = sum_f64(&amaxes);
    block->nearest = sum_f64(&nearests);
    block->inexact = sum_u32(&inexact);
    block->saturated = sum_u32(&saturated);
}

static void write_nan(const uint8_t *codes, uint8_t *out)
{
    for (int i = 0; i < FOLD_MXFP4_GROUP; i++) {
        const int code = i % 2 == 0 ? codes[i / 2] & 15 : codes[i / 2] >> 4;
        out[i] = (uint8_t)(0x7f | (code & 8) << 4);
    }
}

static void write_block(const fold_tile *tile, uint64_t row, uint64_t group, uint64_t rows,
                        size_t groups, int scale, work *w, const fold_costs *costs)
{
    for (size_t g = 0; g < w->groups; g++) {
        w->rows[g] = (uint8_t)fold_costs_row(w->exponents[g] - scale);
    }
    for (uint64_t r = 0; r < rows; r++) {
        const uint8_t *codes = tile->codes + (row + r) * tile->codes_stride + 16 * group;
        uint8_t *out = tile->out + (row + r) * tile->out_stride + FOLD_MXFP4_GROUP * group;
        fold(codes, groups, w->rows + r * groups, costs->table, out);
        for (size_t g = 0; w->nan_groups > 0 && g < groups; g++) {
            if (w->exponents[r * groups + g] == FOLD_MXFP4_NAN) {
                write_nan(codes + 16 * g, out + FOLD_MXFP4_GROUP * g);
            }
        }
    }
}

/* One block: rows [row, row + rows) and groups [group, group + groups) of the tile. */
static uint8_t fold_block(const fold_tile *tile, uint64_t row, uint64_t group, uint64_t rows,
                          size_t groups, work *w, const fold_costs *costs, fold_sums *sums)
{
    fold_sums block = {.blocks = 1, .elements = rows * groups * FOLD_MXFP4_GROUP};
    uint8_t scale = FOLD_MXFP4_EMPTY;

    gather(tile, row, group, rows, groups, w);
    tally(w);
    if (w->largest >= 0) {
        scale = fold_mxfp4_scale((uint8_t)w->largest);
        add_costs(w, scale, costs, &block);
        block.wide = w->largest - w->least > FOLD_MXFP4_SPREAD;
    }
    clear(w);
    block.nan_groups = w->nan_groups;
    block.exact = block.inexact == 0 && block.nan_groups == 0;
    block.inexact_square = block.exact ? 0 : block.square;
    fold_sums_add(sums, &block);
    if (tile->out != NULL) {
        write_block(tile, row, group, rows, groups, scale, w, costs);
    }
    return scale;
}

static void run(const fold_tile *tile, const fold_costs *costs, fold_sums *sums)
{
    const uint64_t groups = tile->cols / FOLD_MXFP4_GROUP;
    const uint64_t block_groups = tile->block_cols / FOLD_MXFP4_GROUP;
    uint8_t *scale = tile->out_scales;
    work w;

    memset(w.tally, 0, sizeof w.tally);
    for (uint64_t row = 0; row < tile->rows; row += tile->block_rows) {
        const uint64_t left = tile->rows - row;
        const uint64_t rows = left < tile->block_rows ? left : tile->block_rows;
        warm_rows(tile->codes + row * tile->codes_stride, tile->codes_stride, rows, tile->cols / 2);
        for (uint64_t group = 0; group < groups; group += block_groups) {
            const uint64_t rest = groups - group;
            *scale++ = fold_block(tile, row, group, rows, rest < block_groups ? rest : block_groups,
                                  &w, costs, sums);
        }
    }
}
