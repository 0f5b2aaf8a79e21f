/* inputs_topk.c - rows of scores as an indexer may make them, and as it should not: ties, few
 * distinct values, all in one bin of a coarse histogram, beyond fp16, NaN; bounds of every length.
 * What lies outside of a row's bounds would win. */
#include "bench/inputs_parts.h"
#include "bench/verify.h"

#include "core/numfmt.h"
#include "core/random.h"

#include <math.h>
#include <string.h>

/* Never an index and never -1, so that what was written can be told. */
#define INDEX_POISON 0x80
/* Scores that are drawn; the rows of more are these again. */
#define DRAWN_SCORES (INT64_C(1) << 22)

/* How a row's scores are spread (kernels.md 3.5). */
typedef enum spread {
    SPREAD_NORMAL,
    SPREAD_SHIFTED, /* by 100, times 1/100 or 10,000 */
    SPREAD_FEW,     /* one to five values */
    SPREAD_ONE_BIN, /* no two differ before the 12th bit */
    SPREAD_BITS,    /* any pattern that is a number */
    SPREAD_TINY,    /* subnormal numbers and zeros of either sign */
    SPREAD_HUNDRED, /* a hundred ones among zeros of either sign (cases.md 6) */
    SPREAD_NAN,     /* stretches of NaN, infinities, and numbers between */
    SPREAD_MINUS,   /* mostly -inf */
    SPREAD_FALLING, /* the best come first; of every other row last */
    SPREAD_COMB,    /* what a sample of every fourth 16 bytes sees is best: its bound is too high */
    SPREADS
} spread;

static spread spread_of(inputs_kind kind, int64_t row)
{
    switch (kind) {
    case INPUTS_HOLES:
        return SPREAD_FEW;
    case INPUTS_EXTREMES:
        return row % 2 == 0 ? SPREAD_ONE_BIN : SPREAD_FALLING;
    case INPUTS_WIDE:
        return row % 2 == 0 ? SPREAD_BITS : SPREAD_SHIFTED;
    case INPUTS_TINY:
        return SPREAD_TINY;
    case INPUTS_ZEROS:
        return SPREAD_MINUS;
    case INPUTS_ONES:
        return SPREAD_HUNDRED;
    case INPUTS_SPECIALS:
        return row % 3 == 0 ? SPREAD_NAN : (spread)(row % SPREADS);
    default:
        return SPREAD_NORMAL;
    }
}

static float from_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Any bits but NaN's, most of them of ordinary exponents. */
static float any_number(uint64_t *state)
{
    uint32_t bits = (uint32_t)random_next(state);

    bits = (bits & 0x7f800000u) == 0x7f800000u ? bits & 0xff800000u : bits;
    return from_bits(bits);
}

static float special(uint64_t *state)
{
    static const uint32_t odd[] = {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu,
                                   0x7f800000u, 0xff800000u, 0x00000000u, 0x80000000u};

    return random_below(state, 3) == 0 ? from_bits(odd[random_below(state, ARRAY_LEN(odd))])
                                       : inputs_normal(state);
}

/* Column `c` of `width`. `row` is a number of the row's own. */
static float draw(spread s, int64_t row, int64_t c, int64_t width, uint64_t *state)
{
    static const float few[] = {1.0f, -2.0f, 3.5f, 0.0f, 3.484375f};
    static const float scales[] = {1.0f, 0.01f, 1e4f, 70000.0f};

    switch (s) {
    case SPREAD_SHIFTED:
        return (inputs_normal(state) + (row % 8 < 4 ? 100.0f : -100.0f)) * scales[row / 2 % 4];
    case SPREAD_FEW:
        return few[random_below(state, 1 + (uint64_t)row % 5)];
    case SPREAD_ONE_BIN: /* the low bits are a bf16's last ones, or an f32's */
        return from_bits(0x40400000u | (uint32_t)random_below(state, 0x00100000u));
    case SPREAD_BITS:
        return any_number(state);
    case SPREAD_TINY:
        return from_bits((uint32_t)random_next(state) & (row % 2 == 0 ? 0x80000003u : 0x807fffffu));
    case SPREAD_HUNDRED:
        return random_below(state, (uint64_t)width) < 100 ? 1.0f : c % 3 == 1 ? -0.0f : 0.0f;
    case SPREAD_NAN:
        return c / 61 % 5 == 3 ? from_bits(0x7fc00000u) : special(state);
    case SPREAD_MINUS:
        return random_below(state, 50) == 0 ? inputs_normal(state) : -INFINITY;
    case SPREAD_FALLING:
        return (float)(row % 4 < 2 ? width - c : c) + 0.5f * inputs_normal(state);
    case SPREAD_COMB:
        return (c / 4 % 4 == 0 ? 10.0f : 0.0f) + inputs_normal(state);
    default:
        return inputs_normal(state);
    }
}

/* Lengths that something may go wrong at; -1 pads a graph (cases.md 7). */
static int64_t odd_length(const hone_topk *p, int64_t row)
{
    const int64_t k = (int64_t)p->k * (p->pick == HONE_PICK_BLOCKED ? p->block : 1);
    const int64_t odd[] = {p->width,     0,     1,         k - 1,       k, k + 1, -1, k - 2,
                           p->width + 9, 2 * k, INT32_MAX, p->width - 1};

    return odd[row % (int64_t)ARRAY_LEN(odd)];
}

/* The row's length; NORMAL's, which are timed, are whole. Every other one is drawn. */
static int64_t length_of(const hone_topk *p, inputs_kind kind, int64_t row, uint64_t *state)
{
    const int64_t drawn = (int64_t)random_below(state, (uint64_t)p->width + 1);

    return kind == INPUTS_NORMAL ? p->width : row % 2 == 1 ? drawn : odd_length(p, row / 2);
}

static int32_t clamped(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : (int32_t)x;
}

static void put(inputs *in, size_t operand, int64_t entry, int32_t x)
{
    memcpy(in->image[operand] + 4 * entry, &x, sizeof x);
}

/* A row's bounds; [*from, *to) are the columns that it reads. Starts are any number, of NORMAL 0.
 */
static void fill_bounds(const hone_topk *p, inputs_kind kind, int64_t row, uint64_t *state,
                        inputs *in, int64_t *from, int64_t *to)
{
    const bool listed = p->pick == HONE_PICK_LISTED;
    const bool starts = p->span == HONE_SPAN_BOTH || p->span == HONE_SPAN_COMPRESSED;
    int64_t len = length_of(p, kind, row, state), start = 0;

    if (starts && kind != INPUTS_NORMAL) {
        start = row % 7 == 3 ? -5 : (int64_t)random_below(state, (uint64_t)p->width / 2 + 1);
    }
    if (listed) { /* of positions, of which there are four times as many */
        len = len > 0 && len < p->width ? 4 * len : len;
    }
    const int64_t end = len < 0 ? (row % 4 < 2 ? -1 : start - 1) : start + len;
    if (starts) {
        put(in, 1, row, (int32_t)start);
    }
    if (p->span != HONE_SPAN_WHOLE) {
        put(in, 2, row, clamped(end));
    }
    const int64_t first = start < 0 ? 0 : start, last = end < p->width ? end : p->width;
    const bool moved = p->span == HONE_SPAN_COMPRESSED;
    *from = p->span == HONE_SPAN_BOTH && !listed ? first : 0;
    *to = listed || p->span == HONE_SPAN_WHOLE ? p->width : moved ? last - first : last;
}

/* Blocks in ascending order with gaps, of which there are four times as many; the last eighth of
 * every third row is none. */
static void fill_list(const hone_topk *p, inputs_kind kind, int64_t row, uint64_t *state,
                      inputs *in)
{
    const int64_t blocks = p->width / p->block, cut = row % 3 == 1 ? blocks - blocks / 8 : blocks;
    int64_t next = 0;

    for (int64_t b = 0; b < blocks; b++) {
        next += kind == INPUTS_NORMAL ? 0 : (int64_t)random_below(state, 7);
        put(in, 3, row * blocks + b, b < cut || kind == INPUTS_NORMAL ? clamped(next) : -1);
        next++;
    }
}

static void fill_scores(const hone_topk *p, inputs_kind kind, int64_t row, int64_t drawn,
                        int64_t from, int64_t to, uint64_t seed, inputs *in)
{
    const int64_t own = row % drawn;
    const spread s = spread_of(kind, own);
    uint64_t state = seed + (uint64_t)own * 0x9e3779b97f4a7c15u;

    for (int64_t c = 0; c < p->width; c++) {
        float x = draw(s, own, c, p->width, &state);
        if (p->drop && c / p->block % 5 == own % 5 && kind != INPUTS_NORMAL) {
            x = -INFINITY; /* what nobody can reach */
        }
        x = c >= from && c < to ? x : INFINITY;
        numfmt_encode((hone_dtype)p->in, in->image[0], (uint64_t)(row * p->stride + c), x);
    }
}

void inputs_fill_topk(const hone_topk *p, inputs_kind kind, uint64_t seed, inputs *in)
{
    const int64_t most = p->width > 0 ? DRAWN_SCORES / p->width + 17 : 1;
    const int64_t drawn = p->rows < most ? p->rows : most;
    const size_t one = (size_t)p->stride * (size_t)numfmt_dtype_bits((hone_dtype)p->in) / 8;
    uint64_t state = seed + 1;

    memset(in->image[4], INDEX_POISON, in->operand[4].bytes);
    for (int64_t row = 0; row < p->rows; row++) {
        int64_t from = 0, to = 0;
        fill_bounds(p, kind, row, &state, in, &from, &to);
        if (p->pick == HONE_PICK_LISTED) {
            fill_list(p, kind, row, &state, in);
        }
        if (kind == INPUTS_NORMAL && row >= drawn) { /* whole rows again */
            memcpy(in->image[0] + (size_t)row * one, in->image[0] + (size_t)(row % drawn) * one,
                   one);
        } else {
            fill_scores(p, kind, row, drawn, from, to, seed, in);
        }
    }
}
