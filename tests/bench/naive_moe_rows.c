/* naive_moe_rows.c - rows of a grouped product by cursors, in one walk over the entries, and their
 * sums, with faults. */
#include "core/numfmt.h"
#include "tests/bench/naive.h"

#include <math.h>
#include <string.h>

enum { MOST_EXPERTS = 512 };

/* Where rows of experts begin and how far their room goes. */
typedef struct cursors {
    int64_t begin[MOST_EXPERTS], next[MOST_EXPERTS];
    int64_t m;
    bool masked;
} cursors;

static int32_t expert_of(const hone_moe_align *p, const inputs *in, naive_fault fault, int64_t i,
                         bool *odd)
{
    const int32_t *narrow = (const int32_t *)(const void *)in->image[0];
    const int64_t *wide = (const int64_t *)(const void *)in->image[0];
    const bool cut = fault == NAIVE_INFINITY_FITS; /* the upper half of a wide one is ignored */
    const int64_t id = p->ids == HONE_INDEX_I32 ? narrow[i] : cut ? (int32_t)wide[i] : wide[i];

    *odd = id < -1 || id >= p->experts;
    if (fault == NAIVE_SLOT_MINUS && id == -1) { /* cases.md 72 */
        return p->experts - 1;
    }
    return id < 0 || *odd ? -1 : (int32_t)id;
}

/* NAIVE_K_TAIL: an expert begins right behind the one before (cases.md 12). */
static void place_experts(const hone_moe_align *p, const inputs *in, naive_fault fault, cursors *c)
{
    int64_t len[MOST_EXPERTS] = {0}, at = 0;
    const int64_t unit = fault == NAIVE_K_TAIL ? 1 : p->row_align;
    bool odd;

    for (int64_t i = 0; i < p->tokens * p->topk; i++) {
        const int32_t e = expert_of(p, in, fault, i, &odd);
        if (e >= 0) {
            len[e]++;
        }
    }
    c->m = p->group_layout == HONE_GROUPS_K ? p->m / p->row_align * p->row_align : p->m;
    c->masked = p->group_layout == HONE_GROUPS_MASKED;
    for (int32_t e = 0; e < p->experts; e++) {
        c->begin[e] = c->next[e] = c->masked ? e * p->m : at;
        at += (len[e] + unit - 1) / unit * unit;
    }
}

static int64_t room_end(const cursors *c, int32_t e)
{
    return c->masked ? (e + 1) * c->m : c->m;
}

/* NAIVE_SWAPPED_SCALE: rows of an expert in descending order. */
static uint64_t place_entries(const hone_moe_align *p, const inputs *in, naive_fault fault,
                              cursors *c, inputs *out)
{
    int32_t *source = (int32_t *)(void *)out->image[2], *place = (int32_t *)(void *)out->image[3];
    int32_t *groups = (int32_t *)(void *)out->image[1];
    const int64_t entries = p->tokens * p->topk;
    uint64_t dropped = 0;

    for (int64_t n = 0; n < entries; n++) {
        const int64_t i = fault == NAIVE_SWAPPED_SCALE ? entries - 1 - n : n;
        bool odd = false;
        const int32_t e = expert_of(p, in, fault, i, &odd);
        dropped += odd;
        place[i] = -1;
        if (e < 0) {
            continue;
        }
        if (c->next[e] >= room_end(c, e)) {
            c->next[e]++;
            dropped++;
            continue;
        }
        const int64_t row = c->next[e]++;
        source[row] = (int32_t)i;
        place[i] = (int32_t)(fault == NAIVE_PAGE_OFF ? row - c->begin[e] : row);
        if (p->group_layout == HONE_GROUPS_CONTIGUOUS) {
            groups[row] = e;
        }
    }
    return fault == NAIVE_NO_COUNT ? 0 : dropped;
}

/* NAIVE_TAIL_ROW leaves the last row as it was, NAIVE_HALF the second half. */
static void clear(const hone_moe_align *p, naive_fault fault, inputs *out)
{
    const size_t labels = p->group_layout == HONE_GROUPS_CONTIGUOUS ? 1 : 2;

    for (size_t o = labels; o <= 2; o++) {
        const uint64_t rows = out->operand[o].bytes / 4;
        const uint64_t len = fault == NAIVE_HALF                   ? rows / 2
                             : fault == NAIVE_TAIL_ROW && rows > 0 ? rows - 1
                                                                   : rows;
        memset(out->image[o], 0xff, 4 * len);
    }
}

void naive_moe_align(const hone_moe_align *p, const inputs *in, naive_fault fault, inputs *out)
{
    int32_t *groups = (int32_t *)(void *)out->image[1], *counts = (int32_t *)(void *)out->image[4];
    uint64_t dropped = 0;
    cursors c;

    clear(p, fault, out);
    place_experts(p, in, fault, &c);
    memcpy(&dropped, out->image[5], sizeof dropped);
    dropped += place_entries(p, in, fault, &c, out);
    memcpy(out->image[5], &dropped, sizeof dropped);
    for (int32_t e = 0; e < p->experts; e++) {
        const int64_t end = room_end(&c, e), begin = c.begin[e] < end ? c.begin[e] : end;
        const int64_t stop = c.next[e] < end ? c.next[e] : end;
        counts[e] = (int32_t)(stop > begin ? stop - begin : 0);
        if (fault == NAIVE_EVERY_ROW) { /* as many as were chosen, though there is no room */
            counts[e] = (int32_t)(c.next[e] - c.begin[e]);
        }
        if (c.masked) {
            groups[e] = counts[e];
        } else if (p->group_layout == HONE_GROUPS_PSUM) {
            groups[e] = (int32_t)begin + counts[e];
        } else if (p->group_layout == HONE_GROUPS_K) {
            groups[e] = (int32_t)((counts[e] + p->row_align - 1) / p->row_align * p->row_align);
        }
    }
}

/* One element, step by step. NAIVE_FLOOR keeps the sum in bf16 between steps, NAIVE_NEAREST rounds
 * products before they are added. */
static float combine(const hone_moe_combine *p, const inputs *in, naive_fault fault, int64_t token,
                     int64_t column)
{
    const bool adds = (p->accumulate != 0) != (fault == NAIVE_STALE_SUM);
    const int64_t topk = p->topk - (fault == NAIVE_K_TAIL);
    float sum =
        adds ? numfmt_decode((hone_dtype)p->out, in->image[4], (uint64_t)(token * p->n + column))
             : 0.0f;

    for (int64_t n = 0; n < topk; n++) {
        const int64_t j = fault == NAIVE_SWAPPED_SCALE ? topk - 1 - n : n;
        const int64_t near = fault == NAIVE_ROW_SCALE_SHIFT ? (j + 1) % p->topk : j;
        int32_t row = 0;
        float weight = 0;
        memcpy(&row, in->image[1] + 4 * (token * p->topk + j), sizeof row);
        memcpy(&weight, in->image[2] + 4 * (token * p->topk + near), sizeof weight);
        if (fault == NAIVE_SLOT_MINUS && row == -1) {
            row = (int32_t)(p->m - 1); /* cases.md 72 */
        }
        if (row < 0 || row >= p->m) {
            continue;
        }
        const float x =
            numfmt_decode((hone_dtype)p->in, in->image[0], (uint64_t)(row * p->n + column));
        volatile float product = weight * x; /* rounded, whatever the compiler may do */
        sum = fault == NAIVE_NEAREST ? sum + product : fmaf(weight, x, sum);
        sum = fault == NAIVE_FLOOR ? numfmt_bf16_decode(numfmt_bf16_encode(sum)) : sum;
    }
    return sum;
}

void naive_moe_combine(const hone_moe_combine *p, const inputs *in, naive_fault fault, inputs *out)
{
    const int64_t rows = p->tokens / (fault == NAIVE_HALF ? 2 : 1) - (fault == NAIVE_TAIL_ROW);
    const int64_t columns = p->n - (fault == NAIVE_TAIL_COLUMN);
    uint64_t dropped = 0;

    for (int64_t i = 0; i < rows * p->n; i++) {
        if (i % p->n < columns) {
            const float y = combine(p, in, fault, i / p->n, i % p->n);
            numfmt_encode((hone_dtype)p->out, out->image[4], (uint64_t)i, y);
        }
    }
    memcpy(&dropped, out->image[3], sizeof dropped);
    for (int64_t i = 0; i < p->tokens * p->topk && fault != NAIVE_NO_COUNT; i++) {
        int32_t row = 0;
        memcpy(&row, in->image[1] + 4 * i, sizeof row);
        dropped += row < -1 || row >= p->m;
    }
    memcpy(out->image[3], &dropped, sizeof dropped);
}
