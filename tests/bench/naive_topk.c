/* naive_topk.c - a row's best, each found by a walk over all that is left; faults on request. */
#include "tests/bench/naive.h"

#include "core/numfmt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a walk compares: the score as an integer that orders alike, and the index. */
typedef struct item {
    int64_t rank, index;
    bool taken;
} item;

static int32_t word(const uint8_t *image, int64_t at)
{
    return ((const int32_t *)(const void *)image)[at];
}

/* NAIVE_NAN puts NaN above infinity, NAIVE_NEAREST -0 below +0, NAIVE_FLOOR sees 8 bits only. */
static int64_t rank_of(float x, naive_fault fault)
{
    uint32_t bits = 0;

    if (isnan(x)) {
        return fault == NAIVE_NAN ? INT64_MAX : -(INT64_C(1) << 40);
    }
    memcpy(&bits, &x, sizeof bits);
    int64_t magnitude = bits & 0x7fffffffu;
    magnitude = fault == NAIVE_FLOOR ? magnitude >> 23 : magnitude;
    if (fault == NAIVE_NEAREST && bits == 0x80000000u) {
        return -1;
    }
    return bits >> 31 ? -magnitude * 2 : magnitude * 2;
}

static int64_t bounded(int64_t x, int64_t most)
{
    return x < 0 ? 0 : x < most ? x : most;
}

typedef struct reach {
    int64_t first, columns, limit; /* limit: of positions */
} reach;

/* NAIVE_SLOT_MINUS: a negative end is a large one (cases.md 7). NAIVE_K_TAIL and NAIVE_TAIL_COLUMN:
 * one too many, one too few. */
static reach reach_of(const hone_topk *p, const inputs *in, naive_fault fault, int64_t row)
{
    const bool listed = p->pick == HONE_PICK_LISTED, minus = fault == NAIVE_SLOT_MINUS;
    const int64_t most = listed ? INT32_MAX : p->width;
    int64_t start = 0, end = most;

    if (p->span == HONE_SPAN_BOTH || p->span == HONE_SPAN_COMPRESSED) {
        start = bounded(word(in->image[1], row), most);
    }
    if (p->span != HONE_SPAN_WHOLE) {
        const int64_t said = word(in->image[2], row);
        end = minus && said < 0 ? most : bounded(said, most);
    }
    int64_t len = end > start ? end - start : 0;
    len += fault == NAIVE_K_TAIL && start + len < most;
    len -= fault == NAIVE_TAIL_COLUMN && len > 0;
    return (reach){.first = p->span == HONE_SPAN_BOTH && !listed ? start : 0,
                   .columns = listed ? p->width : len,
                   .limit = len};
}

static int64_t score_at(const hone_topk *p, const inputs *in, naive_fault fault, int64_t row,
                        int64_t column)
{
    return rank_of(
        numfmt_decode((hone_dtype)p->in, in->image[0], (uint64_t)(row * p->stride + column)),
        fault);
}

static int64_t collect(const hone_topk *p, const inputs *in, naive_fault fault, int64_t row,
                       const reach *r, item *items)
{
    const int64_t units = (r->columns + p->block - 1) / p->block;
    const bool blocked = p->pick == HONE_PICK_BLOCKED;
    int64_t len = 0;

    for (int64_t u = 0; u < (blocked ? units : r->columns); u++) {
        item made = {.rank = INT64_MIN, .index = u};
        for (int64_t c = blocked ? u * p->block : u;
             c < r->columns && c < (blocked ? (u + 1) * p->block : u + 1); c++) {
            const int64_t rank = score_at(p, in, fault, row, r->first + c);
            made.rank = rank > made.rank ? rank : made.rank;
        }
        if (p->pin && u == units - 1 && fault != NAIVE_FIRST_ROW) {
            made.rank = INT64_C(2) * 0x7f800000;
        }
        if (p->pick == HONE_PICK_LISTED) {
            const int64_t block = word(in->image[3], row * (p->width / p->block) + u / p->block);
            made.index = fault == NAIVE_SWAPPED_SCALE ? u : block * p->block + u % p->block;
            if (block < 0 || made.index >= r->limit) {
                continue;
            }
        }
        if (fault == NAIVE_PAGE_OFF) {
            made.index += r->first;
        }
        if (!p->drop || fault == NAIVE_EVERY_ROW || made.rank > -INT64_C(2) * 0x7f800000) {
            items[len++] = made;
        }
    }
    return len;
}

/* NAIVE_STALE_SUM: of equal ones the last. */
static item *best_of(item *items, int64_t len, naive_fault fault)
{
    item *best = NULL;

    for (int64_t i = 0; i < len; i++) {
        if (!items[i].taken && (best == NULL || items[i].rank > best->rank ||
                                (fault == NAIVE_STALE_SUM && items[i].rank == best->rank))) {
            best = &items[i];
        }
    }
    return best;
}

/* NAIVE_ZEROS: a row that has no more than k is written as it lies (cases.md 52). NAIVE_HALF: what
 * a list has no room for is dropped (cases.md 6). NAIVE_NO_FILL: the rest is left. */
static void choose(const hone_topk *p, naive_fault fault, item *items, int64_t len, int32_t *out)
{
    const int64_t k = fault == NAIVE_HALF ? (p->k + 1) / 2 : p->k, n = len < k ? len : k;
    const bool by_index = (p->sort == HONE_SORT_INDEX) != (fault == NAIVE_OTHER_LAYOUT);
    int64_t made = 0;

    for (int64_t i = 0; i < n; i++) {
        item *best = best_of(items, len, fault);
        best->taken = true;
        out[i] = (int32_t)best->index;
    }
    for (int64_t i = 0; i < len && (by_index || (fault == NAIVE_ZEROS && len <= p->k)); i++) {
        if (items[i].taken) {
            out[made++] = (int32_t)items[i].index;
        }
    }
    for (int64_t i = n; i < p->k && fault != NAIVE_NO_FILL; i++) {
        out[i] = -1;
    }
}

void naive_topk(const hone_topk *p, const inputs *in, naive_fault fault, inputs *out)
{
    const int64_t rows = p->rows - (fault == NAIVE_TAIL_ROW);
    item *items = malloc(((size_t)p->width + 1) * sizeof *items);

    for (int64_t row = 0; row < rows && items != NULL; row++) {
        const reach r = reach_of(p, in, fault, row);
        const int64_t len = collect(p, in, fault, row, &r, items);
        choose(p, fault, items, len, (int32_t *)(void *)out->image[4] + row * p->k);
    }
    free(items);
}
