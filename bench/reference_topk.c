/* reference_topk.c - a row's best scores by a full sort of all of its candidates. */
#include "bench/reference.h"

#include "core/integer.h"
#include "core/numfmt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
    double score; /* -inf of what is NaN: `real` tells them apart */
    int32_t real; /* 0: NaN */
    int32_t index;
} candidate;

static int32_t bound_at(const inputs *in, size_t operand, int64_t row)
{
    int32_t x = 0;

    memcpy(&x, in->image[operand] + 4 * row, sizeof x);
    return x;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* The row's first column and how many there are. Of listed ones: columns, and *limit positions. */
static int64_t columns_of(const hone_topk *p, const inputs *in, int64_t row, int64_t *first,
                          int64_t *limit)
{
    const bool starts = p->span == HONE_SPAN_BOTH || p->span == HONE_SPAN_COMPRESSED;
    const bool ends = p->span != HONE_SPAN_WHOLE, listed = p->pick == HONE_PICK_LISTED;
    const int64_t most = listed ? INT32_MAX : p->width;
    const int64_t start = starts ? clamp(bound_at(in, 1, row), 0, most) : 0;
    const int64_t end = ends ? clamp(bound_at(in, 2, row), start, most) : most;

    *first = p->span == HONE_SPAN_BOTH && !listed ? start : 0;
    *limit = end - start;
    return listed ? p->width : end - start;
}

static candidate score_of(const hone_topk *p, const inputs *in, int64_t row, int64_t column)
{
    const float x =
        numfmt_decode((hone_dtype)p->in, in->image[0], (uint64_t)(row * p->stride + column));

    return isnan(x) ? (candidate){-INFINITY, 0, 0} : (candidate){(double)x, 1, 0};
}

static bool is_better(const candidate *a, const candidate *b)
{
    return a->real != b->real ? a->real > b->real : a->score > b->score;
}

/* -1 where `column` has no position. */
static int64_t position_of(const hone_topk *p, const inputs *in, int64_t row, int64_t column)
{
    const int32_t block = bound_at(in, 3, row * (p->width / p->block) + column / p->block);

    return block < 0 ? -1 : (int64_t)block * p->block + column % p->block;
}

static void add(const hone_topk *p, candidate c, candidate *list, int64_t *len)
{
    if (!p->drop || (c.real && c.score > -INFINITY)) {
        list[(*len)++] = c;
    }
}

static void gather_blocks(const hone_topk *p, const inputs *in, int64_t row, int64_t first,
                          int64_t columns, candidate *list, int64_t *len)
{
    const int64_t blocks = integer_ceil_div(columns, p->block);

    for (int64_t b = 0; b < blocks; b++) {
        candidate best = {-INFINITY, 0, 0};
        for (int64_t c = b * p->block; c < columns && c < (b + 1) * p->block; c++) {
            const candidate x = score_of(p, in, row, first + c);
            best = is_better(&x, &best) ? x : best;
        }
        if (p->pin && b == blocks - 1) {
            best = (candidate){INFINITY, 1, 0};
        }
        best.index = (int32_t)b;
        add(p, best, list, len);
    }
}

static void gather(const hone_topk *p, const inputs *in, int64_t row, candidate *list, int64_t *len)
{
    int64_t first = 0, limit = 0;
    const int64_t columns = columns_of(p, in, row, &first, &limit);

    *len = 0;
    if (p->pick == HONE_PICK_BLOCKED) {
        gather_blocks(p, in, row, first, columns, list, len);
        return;
    }
    for (int64_t c = 0; c < columns; c++) {
        candidate x = score_of(p, in, row, first + c);
        const int64_t index = p->pick == HONE_PICK_LISTED ? position_of(p, in, row, c) : c;
        if (index >= 0 && index < limit) {
            x.index = (int32_t)index;
            add(p, x, list, len);
        }
    }
}

static int by_score(const void *left, const void *right)
{
    const candidate *a = left, *b = right;

    return is_better(a, b)   ? -1
           : is_better(b, a) ? 1
                             : (a->index > b->index) - (a->index < b->index);
}

static int by_index(const void *left, const void *right)
{
    const candidate *a = left, *b = right;

    return (a->index > b->index) - (a->index < b->index);
}

hone_status reference_topk(const hone_topk *p, const inputs *in, int64_t row, int32_t *index,
                           hone_error *error)
{
    candidate *list = malloc(((size_t)p->width + 1) * sizeof *list);
    int64_t len = 0;

    if (list == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "reference: a row of %lld candidates",
                          (long long)p->width);
    }
    gather(p, in, row, list, &len);
    qsort(list, (size_t)len, sizeof *list, by_score);
    len = len < p->k ? len : p->k;
    if (p->sort == HONE_SORT_INDEX) {
        qsort(list, (size_t)len, sizeof *list, by_index);
    }
    for (int64_t i = 0; i < p->k; i++) {
        index[i] = i < len ? list[i].index : -1;
    }
    free(list);
    return HONE_OK;
}
