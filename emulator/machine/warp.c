/* warp.c - runs one warp: the group of lanes with the lowest program counter goes first, so that
 * lanes meet again where paths join. No divergence stack: each lane has its own counter while the
 * warp is apart. Where paths join before the place that they part at, the first lanes there would
 * run on around the loop; they wait until the others have come, have to wait, or spin. */
#include "emulator/machine/async.h"
#include "emulator/machine/profile.h"
#include "emulator/machine/wide.h"

#include <string.h>

enum {
    GROUP_QUANTUM = 1024
}; /* a group that spins this long lets another go: lanes may wait for lanes */

typedef struct group {
    uint32_t mask, pc, stop; /* stop: where other lanes stand */
} group;

uint32_t machine_alike(const warp *w, const instruction *i, uint32_t lane, uint32_t mask)
{
    for (uint32_t s = 0; s < i->sources; s++) {
        uint32_t o = i->o[i->results + s];
        bool wide = s < 32 && (i->wide >> s & 1);
        for (EACH_LANE(other, mask)) {
            bool same = wide ? machine_r64(w, o)[other] == machine_r64(w, o)[lane]
                             : machine_r32(w, o)[other] == machine_r32(w, o)[lane];
            mask &= ~((uint32_t)!same << other);
        }
    }
    return mask;
}

MACHINE_WIDEST static void set_lanes(uint32_t values[MACHINE_LANES], uint32_t mask, uint32_t value)
{
    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        values[lane] = mask >> lane & 1 ? value : values[lane];
    }
}

/* Of `lanes`, those that have this value. */
MACHINE_WIDEST static uint32_t lanes_with(const uint32_t values[MACHINE_LANES], uint32_t lanes,
                                          uint32_t value)
{
    uint32_t with = 0;

    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        with |= (uint32_t)(values[lane] == value) << lane;
    }
    return with & lanes;
}

/* The lowest from `from` on; MACHINE_NONE without one. */
MACHINE_WIDEST static uint32_t lowest_from(const uint32_t values[MACHINE_LANES], uint32_t lanes,
                                           uint32_t from)
{
    uint32_t lowest = MACHINE_NONE;

    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        /* all ones, and so MACHINE_NONE, for a lane that is not looked at: no branches, which would
         * keep the loop from vectors */
        uint32_t out = ((lanes >> lane & 1) - 1) | (0 - (uint32_t)(values[lane] < from));
        uint32_t value = values[lane] | out;
        lowest = value < lowest ? value : lowest;
    }
    return lowest;
}

static void store_pc(warp *w, uint32_t mask, uint32_t pc)
{
    if (!w->diverged) {
        w->pc = pc;
    } else {
        set_lanes(w->lane_pc, mask, pc);
    }
}

static void split(warp *w, const group *g)
{
    if (!w->diverged) {
        w->diverged = true;
        set_lanes(w->lane_pc, w->live, g->pc);
    }
}

/* Of the lanes that are ready, those that do not wait where parted lanes meet: all of them when
 * nobody is still to come. */
static uint32_t leave_at_meet(warp *w, uint32_t ready)
{
    if (w->meet_mask == 0) {
        return ready;
    }
    uint32_t there = lanes_with(w->lane_pc, w->meet_mask, w->meet_pc);
    uint32_t coming = w->meet_mask & w->live & ~there;
    if (coming == 0 || (ready & coming) == 0) {
        w->meet_mask = 0;
        return ready;
    }
    return ready & ~there;
}

static bool pick(warp *w, group *g)
{
    if (!w->diverged) {
        *g = (group){.mask = w->live, .pc = w->pc, .stop = MACHINE_NONE};
        return true;
    }
    uint32_t awake = w->live & ~w->blocked, ready = awake & ~w->parked;
    ready = leave_at_meet(w, ready);
    if (ready == 0 && w->progressed) { /* lanes that a parked one waits for may have left */
        w->progressed = false;
        w->parked = 0;
        ready = awake;
    }
    if (ready == 0 && w->blocked != 0) { /* until a barrier opens */
        w->state = WARP_WAITING;
        return false;
    }
    uint32_t pc = lowest_from(w->lane_pc, ready, w->rotate);
    if (pc == MACHINE_NONE) {
        pc = lowest_from(w->lane_pc, ready, 0);
    }
    w->rotate = 0;
    if (pc == MACHINE_NONE) {
        return false;
    }
    *g = (group){.mask = lanes_with(w->lane_pc, awake, pc),
                 .pc = pc,
                 .stop = lowest_from(w->lane_pc, w->live, pc + 1)};
    if (g->mask == w->live) {
        w->diverged = false;
        w->parked = 0;
        w->meet_mask = 0;
        w->pc = pc;
    }
    return true;
}

/* Lanes wait for one another at different places: say where the first of them stands. Lanes that
 * have exited are never waited for: the CUDA programming guide has a mask name threads "that have
 * not exited", and the PTX ISA has a barrier wait for "all non-exited threads". */
static void stuck(warp *w)
{
    uint32_t lane = machine_lowest(w->live);
    const instruction *i = &w->run->kernel->code[w->lane_pc[lane]];
    uint32_t here = lanes_with(w->lane_pc, w->live, w->lane_pc[lane]);
    uint32_t missing = w->live & ~here;
    if (i->flow != FLOW_WARP) {
        machine_fault(w, i, lane, 0, FAULT_BARRIER_DIVERGENCE,
                      "lanes %08x of the warp wait here, lanes %08x never come", here, missing);
        return;
    }
    uint32_t wanted = machine_r32(w, i->member)[lane], first = missing & wanted;
    first = machine_lowest(first != 0 ? first : w->live);
    machine_fault(
        w, i, lane, 0, FAULT_MEMBERMASK,
        "member mask %08x: lanes %08x wait here, lanes %08x never come (lane %u is at line "
        "%d)",
        wanted, here, missing & wanted, first, warp_stands_at(w, first)->line);
}

/* Each of these moves the group on, or returns false when another must be picked. */
static bool flow_branch(warp *w, const instruction *i, group *g, uint32_t taken)
{
    uint32_t others = g->mask & ~taken;

    if (others == 0 || taken == 0) {
        g->pc = others == 0 ? i->target : g->pc + 1;
        if (w->meet_mask != 0 && g->pc == w->meet_pc) {
            store_pc(w, g->mask, g->pc);
            return false;
        }
        return true;
    }
    w->run->counters.divergent_branches++;
    split(w, g);
    if (i->meet != 0 && w->meet_mask == 0) {
        w->meet_pc = i->meet;
        w->meet_mask = g->mask;
    }
    store_pc(w, others, g->pc + 1);
    store_pc(w, taken, i->target);
    return false;
}

static bool flow_branch_table(warp *w, const instruction *i, group *g, uint32_t taken)
{
    const uint32_t *table = w->run->kernel->targets + i->target;
    const uint32_t *index = machine_r32(w, i->o[0]);

    split(w, g);
    store_pc(w, g->mask & ~taken, g->pc + 1);
    for (EACH_LANE(lane, taken)) {
        if (index[lane] >= table[0]) {
            machine_fault(w, i, lane, 0, FAULT_OUT_OF_BOUNDS,
                          "branch table has %u entries, index is %u", table[0], index[lane]);
            return false;
        }
        w->lane_pc[lane] = table[1 + index[lane]];
    }
    return false;
}

static bool flow_exit(warp *w, group *g, uint32_t leaving)
{
    async_leave(w, leaving);
    w->live &= ~leaving;
    w->parked &= ~leaving;
    if (w->live == 0) {
        w->state = WARP_DONE;
    } else {
        store_pc(w, g->mask & ~leaving, g->pc + 1);
    }
    barrier_leave(w);
    cluster_leave(w, leaving);
    return false;
}

/* A lane must be in the mask that it gives. False, and a fault, when one is not. */
static bool in_own_mask(warp *w, const instruction *i, uint32_t lanes, uint32_t wanted)
{
    uint32_t outside = lanes & ~wanted;
    if (outside == 0 || !machine_checks(w, HONE_EMU_CHECK_BARRIERS)) {
        return true;
    }
    machine_fault(w, i, machine_lowest(outside), 0, FAULT_MEMBERMASK,
                  "lanes %08x run this with member mask %08x, which leaves lane %u out", lanes,
                  wanted, machine_lowest(outside));
    return false;
}

/* Strict: of the lanes that are wanted those that have exited are missed as well. True, and a
 * fault, when there are some. */
static bool refuse_exited(warp *w, const instruction *i, uint32_t here, uint32_t wanted)
{
    const uint32_t *block = w->run->launch->block;
    uint32_t threads = block[0] * block[1] * block[2] - w->index * MACHINE_LANES;
    uint32_t all = threads >= MACHINE_LANES ? MACHINE_ALL : (UINT32_C(1) << threads) - 1;
    uint32_t gone = wanted & all & ~w->live;

    if (gone == 0 || !machine_checks(w, HONE_EMU_CHECK_STRICT)) {
        return false;
    }
    machine_fault(w, i, machine_lowest(here), 0,
                  i->flow == FLOW_WARP ? FAULT_MEMBERMASK : FAULT_BARRIER_DIVERGENCE,
                  "strict: lanes %08x of the warp are here, lanes %08x have exited", here, gone);
    return true;
}

/* Lanes whose partners are all here run the instruction; the others wait at it. */
static bool flow_members(warp *w, const instruction *i, group *g, uint32_t mask)
{
    const uint32_t *member = machine_r32(w, i->member);
    uint32_t left = mask, waiting = 0;

    while (left != 0) {
        uint32_t wanted = member[machine_lowest(left)], same = lanes_with(member, left, wanted);
        left &= ~same;
        if (!in_own_mask(w, i, same, wanted)) {
            return false;
        }
        if ((wanted & w->live & ~same) != 0) {
            waiting |= same;
        } else if (refuse_exited(w, i, same, wanted)) {
            return false;
        } else {
            i->run(w, i, same);
        }
    }
    if (waiting == 0) {
        w->parked &= ~g->mask;
        g->pc++;
        return true;
    }
    split(w, g);
    store_pc(w, g->mask & ~waiting, g->pc + 1);
    store_pc(w, waiting, g->pc);
    w->parked = (w->parked & ~g->mask) | waiting;
    return false;
}

/* The lanes wait where they stand until the rest of the warp is here. */
static bool park(warp *w, group *g, uint32_t mask)
{
    split(w, g);
    store_pc(w, g->mask & ~mask, g->pc + 1);
    store_pc(w, mask, g->pc);
    w->parked = (w->parked & ~g->mask) | mask;
    return false;
}

static bool flow_aligned(warp *w, const instruction *i, group *g, uint32_t mask)
{
    if (mask != 0 && mask != w->live) {
        return park(w, g, mask);
    }
    if (mask != 0 && refuse_exited(w, i, w->live, MACHINE_ALL)) {
        return false;
    }
    w->parked &= ~g->mask;
    g->pc++;
    if (mask != 0) {
        i->run(w, i, mask);
    }
    return true;
}

/* A barrier: lanes that it holds up stand behind it already, so that nobody runs it twice. */
static bool flow_barrier(warp *w, const instruction *i, group *g, uint32_t mask)
{
    if (mask != 0 && mask != w->live && (i->elements & BAR_ANY_LANES) == 0) {
        return park(w, g, mask);
    }
    if (mask != 0 && (i->elements & BAR_ANY_LANES) == 0 &&
        refuse_exited(w, i, w->live, MACHINE_ALL)) {
        return false;
    }
    w->parked &= ~g->mask;
    g->pc++;
    if (mask == 0) {
        return true;
    }
    store_pc(w, g->mask, g->pc);
    i->run(w, i, mask);
    if ((w->blocked & g->mask) == 0) {
        return true;
    }
    if (w->blocked == w->live) {
        w->state = WARP_WAITING;
    } else {
        split(w, g);
    }
    return false;
}

static bool flow(warp *w, const instruction *i, group *g, uint32_t mask)
{
    switch ((machine_flow)i->flow) {
    case FLOW_BRANCH:
        return flow_branch(w, i, g, mask);
    case FLOW_BRANCH_TABLE:
        return flow_branch_table(w, i, g, mask);
    case FLOW_EXIT:
        return mask == 0 ? (g->pc++, true) : flow_exit(w, g, mask);
    case FLOW_WARP:
        return flow_members(w, i, g, mask);
    case FLOW_ALIGNED:
        return flow_aligned(w, i, g, mask);
    case FLOW_BARRIER:
        return flow_barrier(w, i, g, mask);
    case FLOW_NEXT:
        break;
    }
    return true;
}

/* Adds `len` warp instructions by `active` lanes. */
static inline void account(run_state *run, uint64_t len, uint32_t active)
{
    run->counters.warp_instructions += len;
    run->counters.thread_instructions += len * (uint64_t)__builtin_popcount(active);
}

/* Lanes whose predicate keeps them from an instruction; a branch's only says where they go. */
static inline void account_predicate(run_state *run, const instruction *i, uint32_t off)
{
    bool steers = i->flow == FLOW_BRANCH || i->flow == FLOW_BRANCH_TABLE || i->flow == FLOW_EXIT;

    if (off != 0 && !steers && (i->flags & FLAG_HIDDEN) == 0) {
        run->counters.predicated_off += (uint64_t)__builtin_popcount(off);
    }
}

/* Returns how many instructions of the quantum are left. Compiled once for launches that count by
 * line and once for those that do not, which then pay nothing for it: they count at the end. */
static inline __attribute__((always_inline)) uint64_t run_group(warp *w, group *g, uint64_t left,
                                                                const bool profiled)
{
    run_state *run = w->run;
    const instruction *code = run->kernel->code;
    const uint32_t start = g->pc, active = g->mask;
    uint64_t ran = 0;
    hone_emu_line since;

    while (true) {
        const instruction *i = &code[g->pc];
        const uint64_t counted = (i->flags & FLAG_HIDDEN) == 0;
        uint32_t mask = active;
        bool goes_on = true;
        if (profiled && !profile_is_plain(i)) {
            profile_look(run, &since);
        }
        if (i->guard != MACHINE_NONE) {
            uint32_t p = *machine_r32(w, i->guard);
            mask &= i->guard_negated ? ~p : p;
            account_predicate(run, i, active & ~mask);
        }
        run->pipes[i->pipe] += counted;
        ran += counted;
        if (profiled) {
            account(run, counted, active);
        }
        if (__builtin_expect(w->tainted && active != 0, 0) && !taint_before(w, i, active, mask)) {
            break;
        }
        if (__builtin_expect(i->flow != FLOW_NEXT, 0)) {
            goes_on = flow(w, i, g, mask);
        } else {
            if (mask != 0) {
                i->run(w, i, mask);
            }
            g->pc++;
        }
        if (profiled && profile_is_plain(i)) {
            profile_count(run, i, active, mask);
        } else if (profiled) {
            profile_charge(run, i, &since);
        }
        left--;
        if (!goes_on) {
            w->progressed |= g->pc != start || i->flow == FLOW_BRANCH || i->flow == FLOW_EXIT;
            break;
        }
        if (__builtin_expect(run->faulted || w->yields || g->pc >= g->stop || left == 0, 0)) {
            store_pc(w, g->mask, g->pc);
            w->progressed = true;
            break;
        }
    }
    if (!profiled) {
        account(run, ran, active);
    }
    return left;
}

static uint64_t run_group_plain(warp *w, group *g, uint64_t left)
{
    return run_group(w, g, left, false);
}

static uint64_t run_group_profiled(warp *w, group *g, uint64_t left)
{
    return run_group(w, g, left, true);
}

void warp_run(warp *w, uint64_t quantum)
{
    uint64_t (*run)(warp *, group *, uint64_t) =
        w->run->profile != NULL ? run_group_profiled : run_group_plain;
    uint64_t left = quantum;
    group g = {0};

    w->yields = false;
    if (w->tainted) {
        taint_settle(w);
    }
    while (left > 0 && w->state == WARP_READY && !w->run->faulted && !w->yields) {
        if (!pick(w, &g)) {
            if (w->state == WARP_READY) {
                stuck(w);
            }
            return;
        }
        if (!w->diverged) {
            left = run(w, &g, left);
            continue;
        }
        uint64_t turn = left < GROUP_QUANTUM ? left : GROUP_QUANTUM;
        uint64_t unused = run(w, &g, turn);
        left -= turn - unused;
        if (unused == 0 || w->yields) {
            w->meet_mask = 0; /* it may spin for those that wait */
            w->rotate = g.stop == MACHINE_NONE ? 0 : g.stop;
        }
    }
}

const instruction *warp_stands_at(const warp *w, uint32_t lane)
{
    uint32_t pc = w->diverged ? w->lane_pc[lane] : w->pc;

    return &w->run->kernel->code[pc - (w->blocked >> lane & 1)];
}
