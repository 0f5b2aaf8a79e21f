/* wgmma_group.c - wgmma.fence, commit_group and wait_group.
 *
 * A product is the work of a whole warpgroup: it begins when all four warps have issued it. So a
 * warp whose wait is over knows that the others' parts are done as well, and kernels have one warp
 * give the tiles back for all four. Here each warp does its own part; a wait therefore holds its
 * warp up until the other three have committed the same groups. */
#include "emulator/exec/wgmma_flight.h"

static wgmma_flight *open_aligned(warp *w, const instruction *i, uint32_t mask)
{
    if (mask != MACHINE_ALL) {
        machine_fault(w, i, machine_lowest(~mask), 0, FAULT_BARRIER_DIVERGENCE,
                      "wgmma needs all 32 lanes; here are %08x", mask);
        return NULL;
    }
    wgmma_pending *p = wgmma_open(w);
    return p != NULL ? p->flight : NULL;
}

void exec_wgmma_fence(warp *w, const instruction *i, uint32_t mask)
{
    wgmma_flight *f = open_aligned(w, i, mask);

    if (f != NULL) { /* what was touched before it counts no more: wgmma_touched */
        f->fences++;
    }
}

static warp *first_of_group(warp *w)
{
    return w - w->index % WGMMA_GROUP;
}

/* All four have committed what lies below. */
static bool is_committed(warp *w, uint32_t limit)
{
    const warp *first = first_of_group(w);
    uint32_t behind = 0;

    for (uint32_t n = 0; n < WGMMA_GROUP && first->index + n < w->cta->warps_len; n++) {
        const wgmma_pending *p = first[n].wgmma;
        behind += p == NULL || p->flight->committed < limit;
    }
    return behind == 0;
}

/* Another warp's part is done: its tiles are read, and of that warp `w` learns no more. */
static bool conclude_part(warp *w, warp *other, uint32_t limit)
{
    const wgmma_flight *f = other->wgmma->flight;

    if (!wgmma_perform_below(other, other->wgmma->flight, limit)) {
        return false;
    }
    race_task_know(w, other->wgmma->last);
    for (uint32_t n = 0; n < f->ops_len && f->ops[n].group < limit; n++) {
        race_task_know(w, f->ops[n].task);
    }
    return true;
}

static void conclude(warp *w, uint32_t limit)
{
    warp *first = first_of_group(w);

    for (uint32_t n = 0; n < WGMMA_GROUP && first->index + n < w->cta->warps_len; n++) {
        if (&first[n] != w && !conclude_part(w, &first[n], limit)) {
            return;
        }
    }
    wgmma_finish(w, w->wgmma->flight, limit);
}

void exec_wgmma_commit(warp *w, const instruction *i, uint32_t mask)
{
    wgmma_flight *f = open_aligned(w, i, mask);
    warp *first = first_of_group(w);

    if (f == NULL || !wgmma_reads_flush(w)) {
        return;
    }
    f->committed++;
    for (uint32_t n = 0; n < WGMMA_GROUP && first->index + n < w->cta->warps_len; n++) {
        warp *waiting = &first[n];
        if (waiting->waits[MACHINE_WAIT_WGMMA] != 0 &&
            is_committed(waiting, waiting->wgmma->awaits)) {
            conclude(waiting, waiting->wgmma->awaits);
            barrier_release(waiting, MACHINE_WAIT_WGMMA);
        }
    }
}

void exec_wgmma_wait(warp *w, const instruction *i, uint32_t mask)
{
    wgmma_flight *f = open_aligned(w, i, mask);

    if (f == NULL || f->committed <= i->kind) {
        return;
    }
    uint32_t limit = f->committed - i->kind;
    if (is_committed(w, limit)) {
        conclude(w, limit);
        return;
    }
    w->wgmma->awaits = limit;
    w->waits[MACHINE_WAIT_WGMMA] |= mask;
    w->blocked |= mask;
}
