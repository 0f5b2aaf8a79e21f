/* barrier.c - the sixteen named barriers of a CTA. They count threads, in whole warps: a warp has
 * arrived when all of its lanes that have not exited have (PTX ISA, barrier: a thread waits "for
 * all non-exited threads from its warp"). Warps that have exited are not waited for where the whole
 * CTA takes part (ISA, exit); where a count is given, it must come from those that are left. */
#include "emulator/machine/race.h"

uint32_t barrier_expects(const cta *c, uint32_t id)
{
    const cta_barrier *b = &c->barriers[id];

    return b->expected != 0 ? b->expected : (c->warps_len - c->done_len) * MACHINE_LANES;
}

static void give_result(warp *w, const cta_barrier *b, uint32_t lane)
{
    const instruction *i = warp_stands_at(w, lane);
    uint32_t bit = UINT32_C(1) << lane;

    switch ((machine_barrier_kind)i->kind) {
    case BAR_POPC:
        machine_r32(w, i->o[0])[lane] = b->count;
        break;
    case BAR_AND:
        machine_set_predicate(w, i->o[0], b->all ? MACHINE_ALL : 0, bit);
        break;
    case BAR_OR:
        machine_set_predicate(w, i->o[0], b->any ? MACHINE_ALL : 0, bit);
        break;
    case BAR_SYNC:
    case BAR_ARRIVE:
        return;
    }
    if (w->tainted) {
        taint_set(w, i->o[0], 0, bit);
    }
}

void barrier_release(warp *w, uint32_t id)
{
    w->blocked &= ~w->waits[id];
    w->waits[id] = 0;
    w->progressed = true;
    if (w->state == WARP_WAITING) {
        w->state = WARP_READY;
    }
}

static void complete_if_full(cta *c, uint32_t id)
{
    cta_barrier *b = &c->barriers[id];

    if (b->arrived == 0 || b->arrived < barrier_expects(c, id)) {
        return;
    }
    for (uint32_t n = 0; n < c->warps_len; n++) {
        warp *w = &c->warps[n];
        if (w->waits[id] == 0) {
            continue;
        }
        for (EACH_LANE(lane, b->votes ? w->waits[id] : 0)) {
            give_result(w, b, lane);
        }
        race_warp_sync(w, w->waits[id]);
        race_acquire(w, b->clock);
        barrier_release(w, id);
    }
    race_clock_free(&b->clock);
    *b = (cta_barrier){0};
}

static void vote(cta_barrier *b, const warp *w, const instruction *i, uint32_t mask)
{
    uint32_t at = i->results + 1u + (i->elements & BAR_HAS_COUNT ? 1u : 0u);
    uint32_t p = *machine_r32(w, i->o[at]);

    p = (i->elements & BAR_NEGATED ? ~p : p) & mask;
    b->all = b->votes ? b->all && p == mask : p == mask;
    b->any |= p != 0;
    b->count += (uint32_t)__builtin_popcount(p);
    b->votes = true;
}

/* The warp counts once the rest of it has come, or has left. */
static void count_if_whole(warp *w, uint32_t id)
{
    if (w->arrived[id] == 0 || (w->live & ~w->arrived[id]) != 0) {
        return;
    }
    w->arrived[id] = 0;
    w->cta->barriers[id].arrived += MACHINE_LANES;
    complete_if_full(w->cta, id);
}

static bool check_count(warp *w, const instruction *i, uint32_t lane, uint32_t id, uint32_t threads)
{
    const cta_barrier *b = &w->cta->barriers[id];

    if (threads % MACHINE_LANES != 0 || (b->begun && threads != b->expected)) {
        machine_fault(w, i, lane, 0, FAULT_BARRIER_DIVERGENCE,
                      "barrier %u: %u threads are given here, %u elsewhere; both must agree and "
                      "be a multiple of 32",
                      id, threads, b->expected);
        return false;
    }
    if (i->kind == BAR_ARRIVE && threads == 0) {
        machine_fault(w, i, lane, 0, FAULT_BARRIER_DIVERGENCE,
                      "barrier %u: an arrival must say how many threads take part", id);
        return false;
    }
    return true;
}

/* Lanes that name the same barrier and the same count. */
static bool arrive(warp *w, const instruction *i, uint32_t mask, uint32_t id, uint32_t threads)
{
    uint32_t lane = machine_lowest(mask);

    if (id >= MACHINE_BARRIERS) {
        machine_fault(w, i, lane, 0, FAULT_TRAP, "barrier %u: a CTA has %d", id, MACHINE_BARRIERS);
        return false;
    }
    if (!check_count(w, i, lane, id, threads)) {
        return false;
    }
    cta_barrier *b = &w->cta->barriers[id];
    if ((w->arrived[id] & mask) != 0) {
        machine_fault(w, i, lane, 0, FAULT_BARRIER_DIVERGENCE,
                      "barrier %u: lanes %08x arrive again while the rest of their warp has not "
                      "arrived once",
                      id, w->arrived[id] & mask);
        return false;
    }
    if (i->elements & BAR_HAS_PREDICATE) {
        vote(b, w, i, mask);
    }
    b->expected = threads;
    b->begun = true;
    race_release(w, &b->clock);
    w->run->counters.barriers++;
    w->arrived[id] |= mask;
    if (i->kind != BAR_ARRIVE) {
        w->waits[id] |= mask;
        w->blocked |= mask;
    }
    count_if_whole(w, id);
    return true;
}

/* The lanes that name what `lane` names. Mostly it is a constant: a look at all registers, in or
 * out of the mask, tells. */
static uint32_t naming_the_same(const uint32_t *ids, const uint32_t *counts, uint32_t lane,
                                uint32_t mask)
{
    uint32_t differ = 0, same = 0;

    for (uint32_t n = 0; n < MACHINE_LANES; n++) {
        differ |= (ids[n] ^ ids[lane]) | (counts[n] ^ counts[lane]);
    }
    if (differ == 0) {
        return mask;
    }
    for (EACH_LANE(other, mask)) {
        same |= (uint32_t)(ids[other] == ids[lane] && counts[other] == counts[lane]) << other;
    }
    return same;
}

void barrier_arrive(warp *w, const instruction *i, uint32_t mask)
{
    static const uint32_t none[MACHINE_LANES] = {0};
    const uint32_t *ids = machine_r32(w, i->o[i->results]);
    const uint32_t *counts =
        i->elements & BAR_HAS_COUNT ? machine_r32(w, i->o[i->results + 1u]) : none;

    for (uint32_t s = 0; s < i->sources; s++) {
        if (taint_refuse(w, i, i->o[i->results + s], mask, "an operand of the barrier")) {
            return;
        }
    }
    while (mask != 0) {
        uint32_t lane = machine_lowest(mask), same = naming_the_same(ids, counts, lane, mask);
        if (same != mask && (i->elements & BAR_ANY_LANES) == 0) {
            machine_fault(w, i, lane, 0, FAULT_BARRIER_DIVERGENCE,
                          "an aligned barrier of which lanes %08x name another, or another count, "
                          "than lanes %08x",
                          mask & ~same, same);
            return;
        }
        if (!arrive(w, i, same, ids[lane], counts[lane])) {
            return;
        }
        mask &= ~same;
    }
}

void barrier_leave(warp *w)
{
    cta *c = w->cta;

    for (uint32_t id = 0; id < MACHINE_BARRIERS; id++) {
        count_if_whole(w, id);
    }
    if (w->live != 0) {
        return;
    }
    c->done_len++;
    c->cluster->done_len += c->done_len == c->warps_len;
    for (uint32_t id = 0; id < MACHINE_BARRIERS; id++) {
        if (c->barriers[id].expected == 0) {
            complete_if_full(c, id);
        }
    }
}
