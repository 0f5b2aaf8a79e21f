/* exec_warp.c - what lanes do with one another: shfl, vote, match, redux, elect. `mask` holds the lanes that take
 * part; the warp's loop has brought them together. */
#include "emulator/exec.h"

#include <string.h>

void exec_nothing(warp *w, const instruction *i, uint32_t mask)
{
    (void)w;
    (void)i;
    (void)mask;
}

void exec_trap(warp *w, const instruction *i, uint32_t mask)
{
    machine_fault(w, i, machine_lowest(mask), 0, FAULT_TRAP, "the kernel executed trap");
}

void exec_assert(warp *w, const instruction *i, uint32_t mask)
{
    machine_fault(w, i, machine_lowest(mask), 0, FAULT_ASSERT, "a device-side assert failed");
}

/* The lane that `lane` reads, and whether it lies within its segment; c packs segment mask and clamp. */
static bool shuffle_source(uint32_t mode, uint32_t lane, uint32_t b, uint32_t c, uint32_t *source)
{
    uint32_t clamp = c & 31, segment = c >> 8 & 31;
    uint32_t highest = (lane & segment) | (clamp & ~segment & 31), lowest = lane & segment;
    int32_t from = 0;
    bool inside = false;

    b &= 31;
    switch ((exec_shuffle_kind)mode) {
    case SHUFFLE_BFLY:
        from = (int32_t)(lane ^ b);
        inside = from <= (int32_t)highest;
        break;
    case SHUFFLE_IDX:
        from = (int32_t)(lowest | (b & ~segment));
        inside = from <= (int32_t)highest;
        break;
    case SHUFFLE_UP:
        from = (int32_t)lane - (int32_t)b;
        inside = from >= (int32_t)highest;
        break;
    case SHUFFLE_DOWN:
        from = (int32_t)(lane + b);
        inside = from <= (int32_t)highest;
        break;
    }
    *source = inside ? (uint32_t)from : lane;
    return inside;
}

void exec_shuffle(warp *w, const instruction *i, uint32_t mask)
{
    const uint32_t *s = i->o + i->results;
    const uint32_t *b = machine_r32(w, s[1]), *c = machine_r32(w, s[2]);
    uint32_t poison = *machine_poison(w, s[0]), moved = 0, inside = 0;
    uint32_t value[MACHINE_LANES], out[MACHINE_LANES];

    memcpy(value, w->r + s[0], sizeof value);
    for (EACH_LANE(lane, mask)) {
        uint32_t source = lane;
        inside |= (uint32_t)shuffle_source(i->kind, lane, b[lane], c[lane], &source) << lane;
        if ((mask >> source & 1) == 0) {
            machine_fault(w, i, lane, 0, FAULT_UNINITIALISED,
                          "shfl reads lane %u, which does not take part (%08x do)", source, mask);
            return;
        }
        out[lane] = value[source];
        moved |= (poison >> source & 1) << lane;
    }
    moved |= (*machine_poison(w, s[1]) | *machine_poison(w, s[2])) & mask;
    for (EACH_LANE(lane, mask)) {
        machine_r32(w, i->o[0])[lane] = out[lane];
    }
    if (i->results == 2) {
        machine_set_predicate(w, i->o[1], inside, mask);
    }
    for (uint32_t d = 0; w->tainted && d < i->results; d++) {
        taint_set(w, i->o[d], moved, mask);
    }
}

/* Every lane gets the same answer, poisoned when any source was. */
static void give(warp *w, const instruction *i, uint32_t mask, uint32_t value)
{
    uint32_t *d = machine_r32(w, i->o[0]);

    for (EACH_LANE(lane, mask)) {
        d[lane] = value;
    }
}

static void give_taint(warp *w, const instruction *i, uint32_t mask)
{
    bool bad = w->tainted && (*machine_poison(w, i->o[i->results]) & mask) != 0;

    for (uint32_t d = 0; w->tainted && d < i->results; d++) {
        taint_set(w, i->o[d], bad ? MACHINE_ALL : 0, mask);
    }
}

void exec_vote(warp *w, const instruction *i, uint32_t mask)
{
    uint32_t p = *machine_r32(w, i->o[1]) & mask;
    bool answer = i->kind == VOTE_ANY   ? p != 0
                  : i->kind == VOTE_ALL ? p == mask
                                        : p == mask || p == 0;

    give_taint(w, i, mask);
    if (i->kind == VOTE_BALLOT) {
        give(w, i, mask, p);
    } else {
        machine_set_predicate(w, i->o[0], answer ? MACHINE_ALL : 0, mask);
    }
}

static uint64_t match_value(const warp *w, const instruction *i, uint32_t lane)
{
    uint32_t a = i->o[i->results];
    return i->element_bytes == 8 ? machine_r64(w, a)[lane] : machine_r32(w, a)[lane];
}

void exec_match(warp *w, const instruction *i, uint32_t mask)
{
    uint32_t same[MACHINE_LANES] = {0}, *d = machine_r32(w, i->o[0]);
    bool all = true;

    for (EACH_LANE(lane, mask)) {
        for (uint32_t other = 0; other < MACHINE_LANES; other++) {
            bool equal = (mask >> other & 1) && match_value(w, i, other) == match_value(w, i, lane);
            same[lane] |= (uint32_t)equal << other;
        }
        all = all && same[lane] == mask;
    }
    give_taint(w, i, mask);
    for (EACH_LANE(lane, mask)) {
        d[lane] = i->kind ? (all ? mask : 0) : same[lane];
    }
    if (i->results == 2) {
        machine_set_predicate(w, i->o[1], all ? MACHINE_ALL : 0, mask);
    }
}

static uint32_t reduce(const instruction *i, uint32_t x, uint32_t y)
{
    bool less = i->flags & FLAG_SIGNED ? (int32_t)y < (int32_t)x : y < x;

    switch ((exec_redux_kind)i->kind) {
    case REDUX_ADD:
        return x + y;
    case REDUX_MIN:
        return less ? y : x;
    case REDUX_MAX:
        return less ? x : y;
    case REDUX_AND:
        return x & y;
    case REDUX_OR:
        return x | y;
    case REDUX_XOR:
        break;
    }
    return x ^ y;
}

void exec_redux(warp *w, const instruction *i, uint32_t mask)
{
    const uint32_t *a = machine_r32(w, i->o[1]);
    uint32_t first = machine_lowest(mask), value = a[first];

    for (EACH_LANE(lane, mask & (mask - 1))) {
        value = reduce(i, value, a[lane]);
    }
    give_taint(w, i, mask);
    give(w, i, mask, value);
}

void exec_elect(warp *w, const instruction *i, uint32_t mask)
{
    give(w, i, mask, machine_lowest(mask));
    machine_set_predicate(w, i->o[1], mask & (0 - mask), mask);
    for (uint32_t d = 0; w->tainted && d < i->results; d++) {
        taint_set(w, i->o[d], 0, mask);
    }
}

void exec_activemask(warp *w, const instruction *i, uint32_t mask)
{
    give(w, i, mask, mask);
    if (w->tainted) {
        taint_set(w, i->o[0], 0, mask);
    }
}
