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

/* Blocks side by side that are worked on together: what is known of their groups stays in the first
 * two caches, and rows are read and written in the order of memory. */
enum { STRIP_GROUPS = 4096 };

/* What amax / 448 and the nearest power of two would cost, a lane for each magnitude. */
typedef struct others {
    lanes_f64 amax, nearest;
    lanes_u32 saturated;
} others;

/* Groups of a strip, row by row; how many codes of each magnitude stand at each exponent of one
 * block (between blocks all zero); and what all exact blocks cost, lane by lane. */
typedef struct work {
    lanes_u16 tally[256];
    lanes_f64 square;
    others others;
    uint64_t counts[STRIP_GROUPS];
    uint8_t exponents[STRIP_GROUPS], rows[STRIP_GROUPS];
    uint64_t across;    /* groups of a row of the strip */
    int least, largest; /* exponents that count; largest is -1 where none does */
    uint64_t nan_groups;
} work;

/* A block's place in the strip, in groups. */
typedef struct span {
    uint64_t rows, first, groups;
} span;

/* The exponents and counts of a strip's groups. */
static void gather(const fold_tile *tile, uint64_t row, uint64_t group, uint64_t rows, work *w)
{
    for (uint64_t r = 0; r < rows; r++) {
        count(tile->codes + (row + r) * tile->codes_stride + 16 * group, w->across,
              w->counts + r * w->across);
        memcpy(w->exponents + r * w->across, tile->scales + (row + r) * tile->scales_stride + group,
               w->across);
    }
}

/* Add a block's counts up by exponent, and find which exponents count: not NaN's, nor those of
 * groups whose codes all have magnitude 0. */
static void tally(work *w, const span *block)
{
    int least = FOLD_MXFP4_NAN, largest = -1;
    uint64_t nans = 0;

    for (uint64_t r = 0; r < block->rows; r++) {
        const uint64_t first = r * w->across + block->first;
        for (uint64_t g = first; g < first + block->groups; g++) {
            const int e = w->exponents[g];
            nans += e == FOLD_MXFP4_NAN;
            if (w->counts[g] == FOLD_MXFP4_GROUP || e == FOLD_MXFP4_NAN) {
                continue;
            }
            lanes_u8 bytes;
            memcpy(&bytes, &w->counts[g], sizeof bytes);
            w->tally[e] += __builtin_convertvector(bytes, lanes_u16);
            least = e < least ? e : least;
            largest = e > largest ? e : largest;
        }
    }
    w->least = least;
    w->largest = largest;
    w->nan_groups = nans;
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

static bool is_empty(const lanes_u16 *counts)
{
    uint64_t halves[2];

    memcpy(halves, counts, sizeof halves);
    return (halves[0] | halves[1]) == 0;
}

/* The code and exponent of a block's amax, and the exponent of the power of two that is nearest to
 * amax / 448. */
typedef struct peak {
    int code, top, near;
} peak;

static peak find_peak(const work *w, const fold_costs *costs)
{
    peak p = {.code = 1, .top = w->largest};

    find_amax(w, costs, &p.code, &p.top);
    const int power = p.top + costs->nearest[p.code];
    p.near = power < 0 ? 0 : power;
    return p;
}

/* The square of an exponent's values; and add what the other rules would cost them. Further down
 * than the tables go, all is lost. */
static inline void add_others(const lanes_u16 *tally, int e, const peak *p, const fold_costs *costs,
                              lanes_f64 *square, others *o)
{
    const lanes_f64 n = __builtin_convertvector(*tally, lanes_f64);
    const lanes_u32 codes = __builtin_convertvector(*tally, lanes_u32);
    const int row = fold_costs_row(e - p->near);
    lanes_f64 lost;
    lanes_u32 mask;

    memcpy(&lost, costs->square, sizeof lost);
    *square = n * lost * costs->four[e];
    memcpy(&lost, costs->power[row], sizeof lost);
    o->nearest += e - p->near < COSTS_LEAST ? *square : n * lost * costs->four[p->near];
    memcpy(&lost, costs->amax[p->code][fold_costs_row(e - p->top)], sizeof lost);
    o->amax += e - p->top < COSTS_LEAST ? *square : n * lost * costs->four[p->top];
    memcpy(&mask, costs->saturates[row], sizeof mask);
    o->saturated += codes & mask;
}

/* An exact block. The tally is zero again. */
static void add_exact(work *w, const fold_costs *costs)
{
    const peak p = find_peak(w, costs);
    lanes_f64 square;

    for (int e = w->least; e <= w->largest; e++) {
        if (!is_empty(&w->tally[e])) {
            add_others(&w->tally[e], e, &p, costs, &square, &w->others);
            w->square += square;
            w->tally[e] = (lanes_u16){0};
        }
    }
}

/* Any block under the scale 2^(scale - 127). The tally is zero again. */
static void add_costs(work *w, int scale, const fold_costs *costs, fold_sums *block)
{
    const peak p = find_peak(w, costs);
    lanes_f64 squares = {0}, folds = {0}, square, lost;
    lanes_u32 inexact = {0}, mask;
    others o = {0};

    for (int e = w->least; e <= w->largest; e++) {
        if (is_empty(&w->tally[e])) {
            continue;
        }
        const lanes_f64 n = __builtin_convertvector(w->tally[e], lanes_f64);
        const lanes_u32 codes = __builtin_convertvector(w->tally[e], lanes_u32);
        const int row = fold_costs_row(e - scale);
        add_others(&w->tally[e], e, &p, costs, &square, &o);
        squares += square;
        memcpy(&lost, costs->power[row], sizeof lost);
        folds += e - scale < COSTS_LEAST ? square : n * lost * costs->four[scale];
        memcpy(&mask, costs->inexact[row], sizeof mask);
        inexact += codes & mask;
        w->tally[e] = (lanes_u16){0};
    }
    block->square = sum_f64(&squares);
    block->fold = sum_f64(&folds);
    block->amax = sum_f64(&o.amax);
    block->nearest = sum_f64(&o.nearest);
    block->inexact = sum_u32(&inexact);
    block->saturated = sum_u32(&o.saturated);
}

static void write_nan(const uint8_t *codes, uint8_t *out)
{
    for (int i = 0; i < FOLD_MXFP4_GROUP; i++) {
        const int code = i % 2 == 0 ? codes[i / 2] & 15 : codes[i / 2] >> 4;
        out[i] = (uint8_t)(0x7f | (code & 8) << 4);
    }
}

/* The strip's codes, when every group has its row of the table. */
static void write_strip(const fold_tile *tile, uint64_t row, uint64_t group, uint64_t rows,
                        bool has_nan, const work *w, const fold_costs *costs)
{
    for (uint64_t r = 0; r < rows; r++) {
        const uint8_t *codes = tile->codes + (row + r) * tile->codes_stride + 16 * group;
        uint8_t *out = tile->out + (row + r) * tile->out_stride + FOLD_MXFP4_GROUP * group;
        fold(codes, w->across, w->rows + r * w->across, costs->table, out);
        for (uint64_t g = 0; has_nan && g < w->across; g++) {
            if (w->exponents[r * w->across + g] == FOLD_MXFP4_NAN) {
                write_nan(codes + 16 * g, out + FOLD_MXFP4_GROUP * g);
            }
        }
    }
}

/* One block: its scale, its groups' rows of the table, and what it costs. Blocks whose exponents
 * spread little are exact, and most are. */
static uint8_t fold_block(const span *at, work *w, const fold_costs *costs, fold_sums *sums)
{
    fold_sums block = {.blocks = 1, .elements = at->rows * at->groups * FOLD_MXFP4_GROUP};
    uint8_t scale = FOLD_MXFP4_EMPTY;

    tally(w, at);
    const bool wide = w->largest - w->least > FOLD_MXFP4_SPREAD;
    if (w->largest >= 0) {
        scale = fold_mxfp4_scale((uint8_t)w->largest);
    }
    if (!wide && w->nan_groups == 0) {
        sums->blocks++;
        sums->exact++;
        sums->elements += block.elements;
        add_exact(w, costs);
    } else {
        block.wide = wide;
        block.nan_groups = w->nan_groups;
        add_costs(w, scale, costs, &block);
        block.exact = block.inexact == 0 && block.nan_groups == 0;
        block.inexact_square = block.exact ? 0 : block.square;
        fold_sums_add(sums, &block);
    }
    for (uint64_t r = 0; r < at->rows; r++) {
        const uint64_t first = r * w->across + at->first;
        for (uint64_t g = first; g < first + at->groups; g++) {
            w->rows[g] = (uint8_t)fold_costs_row(w->exponents[g] - scale);
        }
    }
    return scale;
}

/* Blocks side by side, from (row, group) of the tile on. */
static void fold_strip(const fold_tile *tile, uint64_t row, uint64_t group, uint64_t rows, work *w,
                       const fold_costs *costs, uint8_t *scales, fold_sums *sums)
{
    const uint64_t block_groups = tile->block_cols / FOLD_MXFP4_GROUP;
    bool has_nan = false;

    gather(tile, row, group, rows, w);
    for (uint64_t first = 0; first < w->across; first += block_groups) {
        const uint64_t rest = w->across - first;
        const span at = {rows, first, rest < block_groups ? rest : block_groups};
        *scales++ = fold_block(&at, w, costs, sums);
        has_nan = has_nan || w->nan_groups > 0;
    }
    if (tile->out != NULL) {
        write_strip(tile, row, group, rows, has_nan, w, costs);
    }
}

static void run(const fold_tile *tile, const fold_costs *costs, fold_sums *sums)
{
    const uint64_t groups = tile->cols / FOLD_MXFP4_GROUP;
    const uint64_t block_groups = tile->block_cols / FOLD_MXFP4_GROUP;
    const uint64_t strip = STRIP_GROUPS / (tile->block_rows * block_groups) * block_groups;
    uint8_t *scales = tile->out_scales;
    work w;

    memset(w.tally, 0, sizeof w.tally);
    w.square = (lanes_f64){0};
    w.others = (others){0};
    for (uint64_t row = 0; row < tile->rows; row += tile->block_rows) {
        const uint64_t left = tile->rows - row;
        const uint64_t rows = left < tile->block_rows ? left : tile->block_rows;
        warm_rows(tile->codes + row * tile->codes_stride, tile->codes_stride, rows, tile->cols / 2);
        for (uint64_t group = 0; group < groups; group += strip) {
            w.across = groups - group < strip ? groups - group : strip;
            fold_strip(tile, row, group, rows, &w, costs, scales, sums);
            scales += (w.across + block_groups - 1) / block_groups;
        }
    }
    sums->square += sum_f64(&w.square);
    sums->amax += sum_f64(&w.others.amax);
    sums->nearest += sum_f64(&w.others.nearest);
    sums->saturated += sum_u32(&w.others.saturated);
}
