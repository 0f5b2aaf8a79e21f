/* async.c - cp.async. A copy happens at the wait that makes it visible, the latest that the
 * hardware may take; until then its destination counts as never written, so that a missing wait
 * shows. */
#include "emulator/machine/access.h"
#include "emulator/exec/exec.h"

#include <stdlib.h>
#include <string.h>

static async_copy *new_copy(warp *w)
{
    if (w->copies_len == w->copies_capacity) {
        uint32_t more = w->copies_capacity * 2 + 32;
        async_copy *bigger = realloc(w->copies, more * sizeof *bigger);
        if (bigger == NULL) {
            w->run->faulted = w->run->out_of_memory = true;
            return NULL;
        }
        w->copies = bigger;
        w->copies_capacity = more;
    }
    return &w->copies[w->copies_len++];
}

/* Checks the source of each lane now: the address is an operand of this instruction, not of the
 * wait. */
static bool check_source(warp *w, const instruction *i, uint32_t mask, const async_copy *c)
{
    uint64_t wrong = 0, at[MACHINE_LANES];
    uint32_t reading = 0, asked = 0;

    for (EACH_LANE(lane, mask)) {
        reading |= (uint32_t)(c->from_bytes[lane] != 0) << lane;
        asked += c->from_bytes[lane];
        wrong |= c->from[lane] & (c->bytes - 1);
    }
    for (EACH_LANE(lane, wrong != 0 ? mask : 0)) {
        if ((c->from[lane] & (c->bytes - 1)) != 0) {
            machine_fault(w, i, lane, c->from[lane], FAULT_MISALIGNED,
                          "cp.async of %u bytes from %#llx, which is not a multiple of that",
                          c->bytes, (unsigned long long)c->from[lane]);
            return false;
        }
    }
    if (reading == 0) {
        return true;
    }
    const memory_range *all = access_last_range(w, i, c->from, reading, c->bytes, at);
    for (EACH_LANE(lane, all != NULL ? reading : 0)) { /* the host can fetch ahead as well */
        __builtin_prefetch((const void *)(uintptr_t)c->from[lane]);
        __builtin_prefetch(all->shadow + at[lane]);
    }
    if (all == NULL) {
        for (EACH_LANE(lane, reading)) {
            touched_range *r = global_range(w, i, lane, c->from[lane], c->from_bytes[lane]);
            if (r == NULL) {
                return false;
            }
            global_mark_lines(r, c->from[lane], c->from[lane] + c->from_bytes[lane]);
        }
    }
    w->run->counters.async_copy_bytes += asked;
    access_count_global(w, i, c->from, reading, c->bytes, false);
    return true;
}

static void queue(warp *w, const async_copy *c, uint32_t mask)
{
    while (mask != 0) { /* lanes that have committed as often share an entry */
        uint32_t group = w->committed[machine_lowest(mask)], same = 0;
        for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
            same |= (uint32_t)(w->committed[lane] == group) << lane;
        }
        same &= mask;
        async_copy *entry = new_copy(w);
        if (entry == NULL) {
            return;
        }
        *entry = *c;
        entry->mask = same;
        entry->group = group;
        mask &= ~same;
    }
}

void exec_async_copy(warp *w, const instruction *i, uint32_t mask)
{
    const uint64_t *from = machine_r64(w, i->o[1]);
    const uint32_t *size = machine_r32(w, i->o[2]);
    uint64_t to[MACHINE_LANES];
    ptx_space space = PTX_SHARED;
    access_window win;
    async_copy c; /* its mask and group come with the queue */

    c.bytes = i->element_bytes;

    if (taint_refuse(w, i, i->o[1], mask, "the source address") ||
        taint_refuse(w, i, i->o[2], mask, "the size") ||
        !access_addresses(w, i, i->o[0], mask, c.bytes, to) ||
        access_open(w, i, to, mask, c.bytes, &space, &win) != mask) {
        return;
    }
    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        c.to[lane] = (uint32_t)win.at[lane];
        c.from[lane] = from[lane];
        c.from_bytes[lane] = size[lane] < c.bytes ? size[lane] : c.bytes;
    }
    for (EACH_LANE(lane, mask)) {
        access_mark(win.shadow + win.at[lane], c.bytes, false);
    }
    if (check_source(w, i, mask, &c)) {
        queue(w, &c, mask);
    }
}

/* One lane's copy out of an allocation; what it does not fetch becomes zero. */
static void copy_lane(cta *t, const async_copy *c, uint32_t lane, const memory_range *r)
{
    uint32_t bytes = c->from_bytes[lane], at = c->to[lane];
    const uint8_t *from = (const uint8_t *)(uintptr_t)c->from[lane];

    if (bytes == c->bytes) {
        access_copy(t->shared + at, from, bytes);
        access_copy(t->shared_shadow + at, r->shadow + (c->from[lane] - r->begin), bytes);
        return;
    }
    if (bytes > 0) {
        memcpy(t->shared + at, from, bytes);
        memcpy(t->shared_shadow + at, r->shadow + (c->from[lane] - r->begin), bytes);
    }
    memset(t->shared + at + bytes, 0, c->bytes - bytes);
    memset(t->shared_shadow + at + bytes, 1, c->bytes - bytes);
}

static void perform(warp *w, const instruction *i, const async_copy *c, uint32_t mask)
{
    uint64_t at[MACHINE_LANES];
    const memory_range *all = access_last_range(w, i, c->from, mask, c->bytes, at);

    for (EACH_LANE(lane, mask)) {
        const memory_range *r = all;
        if (r == NULL && c->from_bytes[lane] > 0) {
            touched_range *t = global_range(w, i, lane, c->from[lane], c->from_bytes[lane]);
            if (t == NULL) {
                return;
            }
            r = t->range;
        }
        copy_lane(w->cta, c, lane, r);
    }
}

void exec_async_commit(warp *w, const instruction *i, uint32_t mask)
{
    (void)i;
    for (EACH_LANE(lane, mask)) {
        w->committed[lane]++;
    }
}

/* The lanes of a copy whose group is not among the youngest `allowed` that each has committed. */
static uint32_t due_lanes(const warp *w, const async_copy *c, uint32_t allowed)
{
    uint32_t due = 0;

    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        due |= (uint32_t)((uint64_t)c->group + allowed < w->committed[lane]) << lane;
    }
    return due;
}

void exec_async_wait(warp *w, const instruction *i, uint32_t mask)
{
    uint32_t kept = 0, allowed = (uint32_t)i->offset;

    for (uint32_t n = 0; n < w->copies_len; n++) {
        async_copy *c = &w->copies[n];
        uint32_t due = c->mask & mask & (i->elements ? MACHINE_ALL : due_lanes(w, c, allowed));
        if (due != 0) {
            perform(w, i, c, due);
        }
        c->mask &= ~due;
        if (c->mask != 0) {
            if (kept != n) {
                w->copies[kept] = *c;
            }
            kept++;
        }
    }
    w->copies_len = kept;
}
