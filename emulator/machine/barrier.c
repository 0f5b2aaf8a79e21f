/* barrier.c - the sixteen named barriers of a CTA. They count threads, in whole warps. */
#include "emulator/machine/machine.h"

#include <stdio.h>
#include <string.h>

static uint32_t expected_of(const cta *c, const cta_barrier *b)
{
    return b->expected != 0 ? b->expected : (c->warps_len - c->done_len) * MACHINE_LANES;
}

static void give_result(warp *w, const cta_barrier *b)
{
    const instruction *i = w->waiting;

    switch ((machine_barrier_kind)i->kind) {
    case BAR_POPC:
        for (EACH_LANE(lane, w->live)) {
            machine_r32(w, i->o[0])[lane] = b->count;
        }
        break;
    case BAR_AND:
        machine_set_predicate(w, i->o[0], b->all ? MACHINE_ALL : 0, w->live);
        break;
    case BAR_OR:
        machine_set_predicate(w, i->o[0], b->any ? MACHINE_ALL : 0, w->live);
        break;
    case BAR_SYNC:
    case BAR_ARRIVE:
        break;
    }
}

static void complete_if_full(cta *c, uint32_t id)
{
    cta_barrier *b = &c->barriers[id];

    if (b->arrived == 0 || b->arrived < expected_of(c, b)) {
        return;
    }
    for (uint32_t n = 0; n < c->warps_len; n++) {
        warp *w = &c->warps[n];
        if (w->state == WARP_AT_BARRIER && w->barrier == id) {
            give_result(w, b);
            w->state = WARP_READY;
            w->waiting = NULL;
        }
    }
    *b = (cta_barrier){0};
}

static void vote(cta_barrier *b, const warp *w, const instruction *i, uint32_t mask)
{
    uint32_t at = i->results + 1u + (i->elements & BAR_HAS_COUNT ? 1u : 0u);
    uint32_t p = *machine_r32(w, i->o[at]);

    p = (i->elements & BAR_NEGATED ? ~p : p) & mask;
    b->all = b->arrived == 0 ? p == mask : b->all && p == mask;
    b->any |= p != 0;
    b->count += (uint32_t)__builtin_popcount(p);
}

void barrier_arrive(warp *w, const instruction *i, uint32_t mask)
{
    uint32_t lane = machine_lowest(mask);
    uint32_t id = machine_r32(w, i->o[i->results])[lane];

    if (id >= MACHINE_BARRIERS) {
        machine_fault(w, i, lane, 0, FAULT_TRAP, "barrier %u: a CTA has %d", id, MACHINE_BARRIERS);
        return;
    }
    cta_barrier *b = &w->cta->barriers[id];
    uint32_t threads =
        i->elements & BAR_HAS_COUNT ? machine_r32(w, i->o[i->results + 1u])[lane] : 0;
    if (threads % MACHINE_LANES != 0 || (b->arrived != 0 && threads != b->expected)) {
        machine_fault(w, i, lane, 0, FAULT_BARRIER_DIVERGENCE,
                      "barrier %u: %u threads are given here, %u elsewhere; both must agree and "
                      "be a multiple of 32",
                      id, threads, b->expected);
        return;
    }
    if (i->elements & BAR_HAS_PREDICATE) {
        vote(b, w, i, mask);
    }
    b->expected = threads;
    b->arrived += MACHINE_LANES;
    w->run->counters.barriers++;
    if (i->kind != BAR_ARRIVE) {
        w->state = WARP_AT_BARRIER;
        w->barrier = id;
        w->waiting = i;
    }
    complete_if_full(w->cta, id);
}

void barrier_warp_done(cta *c)
{
    c->done_len++;
    for (uint32_t id = 0; id < MACHINE_BARRIERS; id++) {
        if (c->barriers[id].expected == 0) {
            complete_if_full(c, id);
        }
    }
}

/* Every warp that is not done waits at a barrier that nobody will fill. */
void barrier_deadlock(cta *c)
{
    char where[300] = "";
    size_t used = 0;
    warp *first = NULL;

    for (uint32_t n = 0; n < c->warps_len; n++) {
        warp *w = &c->warps[n];
        if (w->state != WARP_AT_BARRIER) {
            continue;
        }
        first = first != NULL ? first : w;
        const cta_barrier *b = &c->barriers[w->barrier];
        if (used < sizeof where - 60) {
            used += (size_t)snprintf(where + used, sizeof where - used,
                                     " warp %u line %d barrier %u (%u of %u);", n, w->waiting->line,
                                     w->barrier, b->arrived, expected_of(c, b));
        }
    }
    if (first != NULL) {
        machine_fault(first, first->waiting, machine_lowest(first->live), 0, FAULT_DEADLOCK,
                      "no warp can go on:%s", where);
    }
}
