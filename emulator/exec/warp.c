/* warp.c - what lanes do with one another: shfl, vote, match, redux, elect. `mask` holds the
 * lanes that take part; the warp's loop has brought them together. */
#include "emulator/exec/exec.h"
#include "emulator/machine/race.h"
#include "emulator/machine/wide.h"

#include <string.h>

/* Memory is always in order here; that a fence stands there is what the race detector wants. */
void exec_nothing(warp *w, const instruction *i, uint32_t mask)
{
    (void)mask;
    if (i->order != 0) {
        race_fence(w, i->order);
    }
}

void exec_yield(warp *w, const instruction *i, uint32_t mask)
{
    (void)i;
    (void)mask;
    w->yields = true;
}

/* The lanes are together already. */
void exec_warp_sync(warp *w, const instruction *i, uint32_t mask)
{
    (void)i;
    race_warp_sync(w, mask);
}

void exec_trap(warp *w, const instruction *i, uint32_t mask)
{
    machine_fault(w, i, machine_lowest(mask), 0, FAULT_TRAP, "the kernel executed trap");
}

/* The lane that `lane` reads, and whether it lies within its segment; c packs segment mask and
 * clamp. No branches: the loop below vectorises. */
static inline uint32_t shuffle_source(uint32_t mode, uint32_t lane, uint32_t b, uint32_t c,
                                      uint32_t *inside)
{
    uint32_t clamp = c & 31, segment = c >> 8 & 31, lowest = lane & segment;
    int32_t bound = (int32_t)(lowest | (clamp & ~segment)), by = (int32_t)(b & 31),
            at = (int32_t)lane;
    int32_t from = mode == SHUFFLE_BFLY  ? at ^ by
                   : mode == SHUFFLE_IDX ? (int32_t)(lowest | (b & 31 & ~segment))
                   : mode == SHUFFLE_UP  ? at - by
                                         : at + by;
    *inside = mode == SHUFFLE_UP ? from >= bound : from <= bound;
    return *inside ? (uint32_t)from : lane;
}

typedef struct shuffle_plan {
    uint32_t source[MACHINE_LANES], inside[MACHINE_LANES];
} shuffle_plan;

MACHINE_WIDEST static void plan_shuffle(uint32_t mode, const uint32_t *b, const uint32_t *c,
                                        shuffle_plan *p)
{
#define PLAN(m)                                                                                    \
    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {                                        \
        p->source[lane] = shuffle_source(m, lane, b[lane], c[lane], &p->inside[lane]);             \
    }
    switch ((exec_shuffle_kind)mode) {
    case SHUFFLE_BFLY:
        PLAN(SHUFFLE_BFLY)
        break;
    case SHUFFLE_IDX:
        PLAN(SHUFFLE_IDX)
        break;
    case SHUFFLE_UP:
        PLAN(SHUFFLE_UP)
        break;
    case SHUFFLE_DOWN:
        PLAN(SHUFFLE_DOWN)
        break;
    }
#undef PLAN
}

/* Lanes that read one which does not take part. */
static uint32_t reads_absent(uint32_t mask, const shuffle_plan *p)
{
    uint32_t absent = 0;

    for (EACH_LANE(lane, mask == MACHINE_ALL ? 0 : mask)) {
        absent |= (~mask >> p->source[lane] & 1) << lane;
    }
    return absent;
}

/* What comes from a lane that does not take part is nobody's value: kernels that add up half a warp
 * get such ones in the lanes whose sums they never look at. The predicate says where it comes from,
 * whatever it is. */
static void shuffle_taint(warp *w, const instruction *i, uint32_t mask, const shuffle_plan *p,
                          uint32_t absent)
{
    const uint32_t *s = i->o + i->results;
    uint32_t poison = *machine_poison(w, s[0]), moved = absent;
    uint32_t where = (*machine_poison(w, s[1]) | *machine_poison(w, s[2])) & mask;

    for (EACH_LANE(lane, mask)) {
        moved |= (poison >> p->source[lane] & 1) << lane;
    }
    taint_set(w, i->o[0], moved | where, mask);
    if (i->results == 2) {
        taint_set(w, i->o[1], where, mask);
    }
}

/* d may be the register that is read. */
MACHINE_WIDEST static void move_lanes(uint32_t d[MACHINE_LANES], const uint32_t from[MACHINE_LANES],
                                      uint32_t mask, const shuffle_plan *p)
{
    uint32_t value[MACHINE_LANES], moved[MACHINE_LANES];

    memcpy(value, from, sizeof value);
    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        moved[lane] = value[p->source[lane] & 31];
    }
    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        uint32_t keep = (mask >> lane & 1) - 1;
        d[lane] = (moved[lane] & ~keep) | (d[lane] & keep);
    }
}

MACHINE_WIDEST static uint32_t inside_of(const shuffle_plan *p)
{
    uint32_t inside = 0;

    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        inside |= p->inside[lane] << lane;
    }
    return inside;
}

void exec_shuffle(warp *w, const instruction *i, uint32_t mask)
{
    const uint32_t *s = i->o + i->results;
    uint32_t *d = machine_r32(w, i->o[0]);
    shuffle_plan p;

    plan_shuffle(i->kind, machine_r32(w, s[1]), machine_r32(w, s[2]), &p);
    uint32_t absent = reads_absent(mask, &p);
    w->tainted |= absent != 0 && machine_checks(w, HONE_EMU_CHECK_UNINITIALISED);
    if (w->tainted) {
        shuffle_taint(w, i, mask, &p, absent);
    }
    move_lanes(d, machine_r32(w, s[0]), mask, &p);
    if (i->results == 2) {
        machine_set_predicate(w, i->o[1], inside_of(&p), mask);
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
