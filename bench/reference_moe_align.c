/* reference_moe_align.c - rows handed out to entries one after another. */
#include "bench/reference.h"

#include <string.h>

/* The expert of an entry, -1 for none; *dropped grows where it is neither. */
static int32_t expert_at(const hone_moe_align *p, const uint8_t *ids, int64_t entry,
                         uint64_t *dropped)
{
    int64_t id = 0;
    int32_t narrow = 0;

    if (p->ids == HONE_INDEX_I64) {
        memcpy(&id, ids + 8 * entry, sizeof id);
    } else {
        memcpy(&narrow, ids + 4 * entry, sizeof narrow);
        id = narrow;
    }
    if (id >= 0 && id < p->experts) {
        return (int32_t)id;
    }
    *dropped += id != -1;
    return -1;
}

/* The row that comes first for an expert when `next` is free. */
static int64_t first_row(const hone_moe_align *p, int32_t expert, int64_t next)
{
    if (p->group_layout == HONE_GROUPS_MASKED) {
        return expert * p->m;
    }
    while (next % p->row_align != 0) {
        next++;
    }
    return next;
}

void reference_moe_align(const hone_moe_align *p, const inputs *in, int32_t *groups,
                         int32_t *source, int32_t *place, int32_t *counts, uint64_t *dropped)
{
    const bool masked = p->group_layout == HONE_GROUPS_MASKED;
    const bool labels = p->group_layout == HONE_GROUPS_CONTIGUOUS;
    const bool by_k = p->group_layout == HONE_GROUPS_K;
    const int64_t entries = p->tokens * p->topk, rows = masked ? p->experts * p->m : p->m;
    const int64_t room = by_k ? p->m - p->m % p->row_align : p->m; /* whole units of K */
    int64_t next = 0;

    for (int64_t r = 0; r < rows; r++) {
        source[r] = -1;
        if (labels) {
            groups[r] = -1;
        }
    }
    for (int64_t i = 0; i < entries; i++) {
        expert_at(p, in->image[0], i, dropped);
        place[i] = -1;
    }
    for (int32_t e = 0; e < p->experts; e++) {
        const int64_t begin = first_row(p, e, next), end = masked ? begin + p->m : room;
        uint64_t ignored = 0;
        next = begin;
        for (int64_t i = 0; i < entries; i++) {
            if (expert_at(p, in->image[0], i, &ignored) != e) {
                continue;
            }
            if (next >= end) { /* it keeps its number: what follows lies further still */
                ++*dropped;
                next++;
                continue;
            }
            source[next] = (int32_t)i;
            place[i] = (int32_t)next;
            if (labels) {
                groups[next] = e;
            }
            next++;
        }
        const int64_t stop = next < end ? next : end, from = begin < end ? begin : end;
        counts[e] = (int32_t)(stop > from ? stop - from : 0);
        if (by_k) {
            groups[e] = (int32_t)(first_row(p, 0, counts[e]));
        } else if (!labels) {
            groups[e] = masked ? counts[e] : (int32_t)(from + counts[e]);
        }
    }
}
