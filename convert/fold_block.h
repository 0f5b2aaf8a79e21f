/* fold_block.h - blocks of the fold, after fold_lanes.h's inner loops: find their exponents and
 * their largest magnitudes, choose the scales, look the codes up. Exact blocks only count their
 * codes (fold_exact.h); what others cost follows from the counts of each magnitude at each
 * exponent. */
#include "convert/fold_exact.h"
#include "convert/warm.h"

/* Blocks side by side that are worked on together, in groups: what is known of them stays in the
 * first cache, and rows are read and written in the order of memory. Rows of a strip are padded to
 * whole vectors. */
enum { STRIP = 2048, VECTOR = 16, ROOM = STRIP + (VECTOR - 1) * FOLD_TILE_ROWS };
enum { NOT_COUNTED = 255 };

/* Of each column of a strip, what its block comes to. */
typedef struct columns {
    uint8_t least[ROOM], above[ROOM];     /* exponents; above: one more than the largest, or 0 */
    uint16_t magnitude[ROOM], nans[ROOM]; /* magnitude as in work; groups of NaN */
    uint8_t scale[ROOM], base[ROOM];      /* base: the exponent of place 0 (fold_exact.h) */
} columns;

/* Groups of a strip, row by row; and how many codes of each magnitude stand at each exponent of one
 * block that is not exact (between blocks all zero). */
typedef struct work {
    lanes_u16 tally[256];
    exact_counts exact;
    uint64_t rows, across, pitch;         /* groups of a row, and from row to row */
    uint64_t counts[ROOM];                /* of each magnitude */
    uint8_t exponents[ROOM], codes[ROOM]; /* codes: the largest magnitude's */
    uint8_t places[ROOM];                 /* the exponent where the group counts; then its place */
    uint8_t table_rows[ROOM];             /* of fold_costs.table */
    uint16_t magnitudes[ROOM]; /* one more than fold_exact.h's number; 0 where it does not count */
    columns columns;
} work;

/* A block of the strip. */
typedef struct span {
    uint64_t first, groups; /* columns */
    uint64_t nan_groups;
    int least, above, magnitude, scale;
} span;

/* The strip's groups: what their codes and exponents are. Padding does not count. */
static void gather(const fold_tile *tile, uint64_t row, uint64_t group, work *w)
{
    const uint64_t rest = w->pitch - w->across;

    for (uint64_t r = 0; r < w->rows; r++) {
        const uint64_t at = r * w->pitch;
        count(tile->codes + (row + r) * tile->codes_stride + 16 * group, w->across, w->counts + at,
              w->codes + at);
        memcpy(w->exponents + at, tile->scales + (row + r) * tile->scales_stride + group,
               w->across);
        if (rest > 0) {
            memset(w->codes + at + w->across, 0, rest);
            memset(w->exponents + at + w->across, 0, rest);
        }
    }
    for (uint64_t g = 0; g < w->rows * w->pitch; g++) {
        const uint8_t e = w->exponents[g], code = w->codes[g];
        const bool counted = (code != 0) & (e != FOLD_MXFP4_NAN);
        const int number = 1 + magnitude_number(code, e);
        w->places[g] = counted ? e : NOT_COUNTED;
        w->magnitudes[g] = (uint16_t)(counted ? number : 0);
    }
}

/* Of a vector of columns, or of the blocks that these are part of. */
typedef uint8_t vector_u8 __attribute__((vector_size(VECTOR)));
typedef uint16_t vector_u16 __attribute__((vector_size(2 * VECTOR)));
typedef struct vector {
    vector_u8 least, above;
    vector_u16 magnitude, nans;
} vector;

/* `a` where a > b, else b, lane by lane. */
#define VECTOR_GREATER(type, a, b) (((a) & (type)((a) > (b))) | ((b) & ~(type)((a) > (b))))

static inline void vector_join(vector *v, const vector *with)
{
    v->least = ~VECTOR_GREATER(vector_u8, ~v->least, ~with->least);
    v->above = VECTOR_GREATER(vector_u8, v->above, with->above);
    v->magnitude = VECTOR_GREATER(vector_u16, v->magnitude, with->magnitude);
    v->nans += with->nans;
}

/* Each column gets its block's that lies `step` further, or before it, too. */
#define VECTOR_ORDER(type, step)                                                                   \
    ((type){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} ^ (step))
#define VECTOR_SPREAD(v, step)                                                                     \
    vector_join(&(v),                                                                              \
                &(const vector){__builtin_shuffle((v).least, VECTOR_ORDER(vector_u8, step)),       \
                                __builtin_shuffle((v).above, VECTOR_ORDER(vector_u8, step)),       \
                                __builtin_shuffle((v).magnitude, VECTOR_ORDER(vector_u16, step)),  \
                                __builtin_shuffle((v).nans, VECTOR_ORDER(vector_u16, step))})

static inline void vector_of_columns(const work *w, uint64_t first, vector *v)
{
    *v = (vector){.least = ~(vector_u8){0}};
    for (uint64_t at = first; at < w->rows * w->pitch; at += w->pitch) {
        vector row;
        vector_u8 exponents;
        memcpy(&exponents, w->exponents + at, sizeof exponents);
        memcpy(&row.least, w->places + at, sizeof row.least);
        memcpy(&row.magnitude, w->magnitudes + at, sizeof row.magnitude);
        row.above = row.least + 1;
        row.nans = __builtin_convertvector(exponents == FOLD_MXFP4_NAN, vector_u16) & 1;
        vector_join(v, &row);
    }
}

/* What each column's block comes to. */
static void reduce_columns(work *w, uint64_t block_groups)
{
    columns *c = &w->columns;

    for (uint64_t first = 0; first < w->pitch; first += VECTOR) {
        vector v;
        vector_of_columns(w, first, &v);
        switch (block_groups) {
        case 16:
            VECTOR_SPREAD(v, 8);
            /* fallthrough */
        case 8:
            VECTOR_SPREAD(v, 4);
            /* fallthrough */
        case 4:
            VECTOR_SPREAD(v, 2);
            /* fallthrough */
        case 2:
            VECTOR_SPREAD(v, 1);
            /* fallthrough */
        default:
            break;
        }
        memcpy(c->least + first, &v.least, sizeof v.least);
        memcpy(c->above + first, &v.above, sizeof v.above);
        memcpy(c->magnitude + first, &v.magnitude, sizeof v.magnitude);
        memcpy(c->nans + first, &v.nans, sizeof v.nans);
    }
    for (uint64_t g = 0; g < w->pitch; g++) {
        c->base[g] = (uint8_t)(magnitude_top(c->magnitude[g] - 1) - BELOW);
        c->scale[g] = (uint8_t)(c->above[g] == 0  ? FOLD_MXFP4_EMPTY
                                : c->above[g] < 7 ? 0
                                                  : c->above[g] - 7);
    }
}

static inline span block_at(const work *w, uint64_t first, uint64_t groups)
{
    const columns *c = &w->columns;

    return (span){first,           groups,          c->nans[first],
                  c->least[first], c->above[first], c->magnitude[first] - 1,
                  c->scale[first]};
}

static inline bool is_wide(const span *b)
{
    return b->above > b->least + 1 + FOLD_MXFP4_SPREAD;
}

/* Each group's row of the table, and its place where its block is exact. */
static void place_groups(work *w)
{
    for (uint64_t first = 0; first < w->pitch; first += VECTOR) {
        vector_u8 scale, base;
        memcpy(&scale, w->columns.scale + first, sizeof scale);
        memcpy(&base, w->columns.base + first, sizeof base);
        const vector_u8 zero = scale + COSTS_LEAST, least = zero & (vector_u8)(zero < scale);
        const vector_u8 top = scale + COSTS_MOST, most = top | (vector_u8)(top < scale);
        for (uint64_t at = first; at < w->rows * w->pitch; at += w->pitch) {
            vector_u8 e, known;
            memcpy(&e, w->exponents + at, sizeof e);
            memcpy(&known, w->places + at, sizeof known);
            const vector_u8 in = ~VECTOR_GREATER(vector_u8, ~e, ~most);
            const vector_u8 row = VECTOR_GREATER(vector_u8, in, least) - zero;
            const vector_u8 not = (vector_u8)(known == NOT_COUNTED);
            const vector_u8 place = (not &(PLACES - 1)) | (~not &(e - base));
            memcpy(w->table_rows + at, &row, sizeof row);
            memcpy(w->places + at, &place, sizeof place);
        }
    }
}

/* Count the codes of an exact block that has some. */
static void count_exact(work *w, const span *b, const fold_costs *costs)
{
    exact_place *places = exact_places(&w->exact, b->magnitude, costs);

    for (uint64_t r = 0; r < w->rows; r++) {
        for (uint64_t i = 0; i < b->groups; i++) {
            const uint64_t g = r * w->pitch + b->first + i;
            add_counts(&places[w->places[g]].copies[(r + i) % COPIES], w->counts[g]);
        }
    }
}

/* Add a block's counts up by exponent. */
static void tally(work *w, const span *b)
{
    for (uint64_t r = 0; r < w->rows; r++) {
        const uint64_t first = r * w->pitch + b->first;
        for (uint64_t g = first; g < first + b->groups; g++) {
            lanes_u8 bytes;
            if (w->magnitudes[g] > 0) {
                memcpy(&bytes, &w->counts[g], sizeof bytes);
                w->tally[w->exponents[g]] += __builtin_convertvector(bytes, lanes_u16);
            }
        }
    }
}

static bool is_empty(const lanes_u16 *counts)
{
    uint64_t halves[2];

    memcpy(halves, counts, sizeof halves);
    return (halves[0] | halves[1]) == 0;
}

/* A block whose counts are in the tally, which is zero again. */
static void add_costs(work *w, const span *b, const fold_costs *costs, fold_sums *block)
{
    const peak p = peak_of_magnitude(b->magnitude, costs);
    const int scale = b->scale;
    lanes_f64 squares = {0}, folds = {0}, square, lost;
    lanes_u32 inexact = {0}, mask;
    others o = {0};

    for (int e = b->least; e < b->above; e++) {
        if (is_empty(&w->tally[e])) {
            continue;
        }
        const lanes_f64 n = __builtin_convertvector(w->tally[e], lanes_f64);
        const lanes_u32 codes = __builtin_convertvector(w->tally[e], lanes_u32);
        const int row = fold_costs_row(e - scale);
        add_others(&codes, e, &p, costs, &square, &o);
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
static void write_strip(const fold_tile *tile, uint64_t row, uint64_t group, bool has_nan,
                        const work *w, const fold_costs *costs)
{
    for (uint64_t r = 0; r < w->rows; r++) {
        const uint8_t *codes = tile->codes + (row + r) * tile->codes_stride + 16 * group;
        uint8_t *out = tile->out + (row + r) * tile->out_stride + FOLD_MXFP4_GROUP * group;
        fold(codes, w->across, w->table_rows + r * w->pitch, costs->table, out);
        for (uint64_t g = 0; has_nan && g < w->across; g++) {
            if (w->exponents[r * w->pitch + g] == FOLD_MXFP4_NAN) {
                write_nan(codes + 16 * g, out + FOLD_MXFP4_GROUP * g);
            }
        }
    }
}

/* What a block costs. Blocks whose exponents spread little are exact, and most are. */
static void price(work *w, const span *b, const fold_costs *costs, fold_sums *sums)
{
    fold_sums block = {.blocks = 1, .elements = w->rows * b->groups * FOLD_MXFP4_GROUP};

    if (!is_wide(b) && b->nan_groups == 0) {
        sums->blocks++;
        sums->exact++;
        sums->elements += block.elements;
        if (b->above > 0) {
            count_exact(w, b, costs);
        }
        return;
    }
    block.wide = is_wide(b);
    block.nan_groups = b->nan_groups;
    tally(w, b);
    add_costs(w, b, costs, &block);
    block.exact = block.inexact == 0 && block.nan_groups == 0;
    block.inexact_square = block.exact ? 0 : block.square;
    fold_sums_add(sums, &block);
}

/* Blocks side by side, from (row, group) of the tile on. */
static void fold_strip(const fold_tile *tile, uint64_t row, uint64_t group, work *w,
                       const fold_costs *costs, uint8_t *scales, fold_sums *sums)
{
    const uint64_t block_groups = tile->block_cols / FOLD_MXFP4_GROUP;
    bool has_nan = false;

    gather(tile, row, group, w);
    reduce_columns(w, block_groups);
    place_groups(w);
    for (uint64_t first = 0; first < w->across; first += block_groups) {
        const span b = block_at(w, first, integer_least_u64(block_groups, w->across - first));
        price(w, &b, costs, sums);
        *scales++ = (uint8_t)b.scale;
        has_nan = has_nan || b.nan_groups > 0;
    }
    if (tile->out != NULL) {
        write_strip(tile, row, group, has_nan, w, costs);
    }
}

static void run(const fold_tile *tile, const fold_costs *costs, fold_sums *sums)
{
    const uint64_t groups = tile->cols / FOLD_MXFP4_GROUP;
    const uint64_t block_groups = tile->block_cols / FOLD_MXFP4_GROUP;
    const uint64_t strip = STRIP / (tile->block_rows * block_groups) * block_groups;
    uint8_t *scales = tile->out_scales;
    work w;

    memset(w.tally, 0, sizeof w.tally);
    exact_begin(&w.exact);
    for (uint64_t row = 0; row < tile->rows; row += tile->block_rows) {
        w.rows = integer_least_u64(tile->block_rows, tile->rows - row);
        warm_rows(tile->codes + row * tile->codes_stride, tile->codes_stride, w.rows,
                  tile->cols / 2);
        for (uint64_t group = 0; group < groups; group += strip) {
            w.across = integer_least_u64(strip, groups - group);
            w.pitch = (w.across + VECTOR - 1) / VECTOR * VECTOR;
            fold_strip(tile, row, group, &w, costs, scales, sums);
            scales += (w.across + block_groups - 1) / block_groups;
        }
    }
    exact_end(&w.exact, costs, sums);
}
