/* mbarrier.c - mbarrier.*: lanes act one after the other, lowest first. */
#include "emulator/machine/mbarrier.h"
#include "emulator/machine/access.h"
#include "emulator/machine/async.h"
#include "emulator/machine/copy.h"
#include "emulator/exec/exec.h"

/* Where each lane's mbarrier lies. */
typedef struct places {
    cta *owner[MACHINE_LANES];
    uint32_t at[MACHINE_LANES];
} places;

static bool find_places(warp *w, const instruction *i, uint32_t mask, places *out)
{
    uint64_t address[MACHINE_LANES];
    uint32_t left = mask;
    ptx_space space = PTX_SHARED;
    access_window win;

    if (!access_addresses(w, i, i->o[i->results], mask, MBARRIER_BYTES, address)) {
        return false;
    }
    while (left != 0) {
        uint32_t lanes = access_open(w, i, address, left, MBARRIER_BYTES, &space, &win);
        if (lanes == 0) {
            return false;
        }
        if (space != PTX_SHARED) {
            uint32_t lane = machine_lowest(lanes);
            machine_fault(w, i, lane, address[lane], FAULT_MBARRIER,
                          "an mbarrier lies in shared memory; %#llx does not",
                          (unsigned long long)address[lane]);
            return false;
        }
        for (EACH_LANE(lane, lanes)) {
            out->owner[lane] = win.owner;
            out->at[lane] = (uint32_t)win.at[lane];
        }
        left &= ~lanes;
    }
    return true;
}

static bool touch(warp *w, const instruction *i, uint32_t mask, const places *p, race_access kind)
{
    uint64_t at[MACHINE_LANES] = {0};
    uint32_t left = mask;

    while (w->cta->cluster->races != NULL && left != 0) {
        cta *owner = p->owner[machine_lowest(left)];
        uint32_t same = 0;
        for (EACH_LANE(lane, left)) {
            at[lane] = p->at[lane];
            same |= (uint32_t)(p->owner[lane] == owner) << lane;
        }
        if (!race_touch(w, i, owner, at, same, MBARRIER_BYTES, kind)) {
            return false;
        }
        left &= ~same;
    }
    return true;
}

/* Addresses, and that no other operand is poison. */
static bool begin(warp *w, const instruction *i, uint32_t mask, places *p, race_access kind)
{
    for (uint32_t s = 1; s < i->sources; s++) {
        if (taint_refuse(w, i, i->o[i->results + s], mask, "an operand of the mbarrier")) {
            return false;
        }
    }
    return find_places(w, i, mask, p) && touch(w, i, mask, p, kind);
}

static uint32_t operand_of(const warp *w, const instruction *i, uint32_t lane)
{
    return machine_r32(w, i->o[i->results + 1u])[lane];
}

void exec_mbarrier_init(warp *w, const instruction *i, uint32_t mask)
{
    places p;

    if (!begin(w, i, mask, &p, i->kind == MBARRIER_INIT ? RACE_INIT : RACE_WRITE)) {
        return;
    }
    for (EACH_LANE(lane, mask)) {
        mbarrier_actor a = {w, i, lane};
        bool good = i->kind == MBARRIER_INIT
                        ? mbarrier_init(&a, p.owner[lane], p.at[lane], operand_of(w, i, lane))
                        : mbarrier_invalidate(&a, p.owner[lane], p.at[lane]);
        if (!good) {
            return;
        }
    }
}

static bool arrive(const mbarrier_actor *a, cta *owner, mbarrier *b)
{
    uint8_t how = a->i->elements;
    uint32_t operand = operand_of(a->w, a->i, a->lane);
    uint32_t count = how & MBARRIER_EXPECTS ? 1 : operand;

    if ((how & MBARRIER_EXPECTS) && !mbarrier_expect(a, owner, b, operand)) {
        return false;
    }
    if ((how & MBARRIER_NO_COMPLETE) && count == b->pending && b->tx == 0) {
        mbarrier_refuse(a, owner, b->at, "an arrival with .noComplete would complete phase %u",
                        b->phase);
        return false;
    }
    return how & MBARRIER_DROPS ? mbarrier_drop(a, owner, b, count)
                                : mbarrier_arrive(a, owner, b, count);
}

void exec_mbarrier_arrive(warp *w, const instruction *i, uint32_t mask)
{
    places p;

    if (!begin(w, i, mask, &p, RACE_ATOMIC)) {
        return;
    }
    for (EACH_LANE(lane, mask)) {
        mbarrier_actor a = {w, i, lane};
        mbarrier *b = mbarrier_find(w, i, lane, p.owner[lane], p.at[lane]);
        if (b == NULL) {
            return;
        }
        if (i->results > 0) {
            machine_r64(w, i->o[0])[lane] = mbarrier_state(b);
        }
        if (i->order & ORDER_RELEASE) {
            race_release(w, &b->arriving);
        } else {
            race_release_fenced(w, &b->arriving);
        }
        if (!arrive(&a, p.owner[lane], b)) {
            return;
        }
    }
    if (w->tainted && i->results > 0) {
        taint_set(w, i->o[0], 0, mask);
    }
}

/* expect_tx and complete_tx. */
void exec_mbarrier_bytes(warp *w, const instruction *i, uint32_t mask)
{
    places p;

    if (!begin(w, i, mask, &p, RACE_ATOMIC)) {
        return;
    }
    for (EACH_LANE(lane, mask)) {
        mbarrier_actor a = {w, i, lane};
        mbarrier *b = mbarrier_find(w, i, lane, p.owner[lane], p.at[lane]);
        int64_t bytes = operand_of(w, i, lane);
        bytes = i->kind == MBARRIER_EXPECT_TX ? bytes : -bytes;
        if (b == NULL || !mbarrier_expect(&a, p.owner[lane], b, bytes)) {
            return;
        }
    }
}

/* Lanes of `left` that ask what the first of them asks: the same parity at the same mbarrier. */
static uint32_t asking_alike(const warp *w, const instruction *i, const places *p, uint32_t left)
{
    const uint32_t *parity = machine_r32(w, i->o[i->results + 1u]);
    uint32_t first = machine_lowest(left), alike = 0;

    if ((i->elements & MBARRIER_BY_PARITY) == 0) {
        return UINT32_C(1) << first;
    }
    for (EACH_LANE(lane, left)) {
        bool same = p->at[lane] == p->at[first] && p->owner[lane] == p->owner[first] &&
                    ((parity[lane] ^ parity[first]) & 1) == 0;
        alike |= (uint32_t)same << lane;
    }
    return alike;
}

static bool has_passed(const mbarrier_actor *a, mbarrier *b, uint32_t lanes, bool *bad)
{
    uint32_t operand = a->i->o[a->i->results + 1u];

    if (a->i->elements & MBARRIER_BY_PARITY) {
        return mbarrier_passed_parity(a, b, machine_r32(a->w, operand)[a->lane] & 1, lanes, bad);
    }
    return mbarrier_passed(a, b, machine_r64(a->w, operand)[a->lane], bad);
}

/* Which lanes' phases are over. False after a fault. */
static bool ask(warp *w, const instruction *i, uint32_t mask, const places *p, uint32_t *passed)
{
    const mbarrier *last = NULL;
    bool bad = false;

    for (uint32_t left = mask, lanes = 0; left != 0; left &= ~lanes) {
        mbarrier_actor a = {w, i, machine_lowest(left)};
        mbarrier *b = mbarrier_find(w, i, a.lane, p->owner[a.lane], p->at[a.lane]);
        if (b == NULL) {
            return false;
        }
        lanes = asking_alike(w, i, p, left);
        bool over = has_passed(&a, b, lanes, &bad);
        if (bad) {
            return false;
        }
        *passed |= over ? lanes : 0;
        if (over && b != last && (i->order & ORDER_ACQUIRE)) {
            race_acquire(w, b->passed);
        } else if (over && b != last) {
            race_acquire_later(w, b->passed);
        }
        last = over ? b : last;
    }
    return true;
}

void exec_mbarrier_wait(warp *w, const instruction *i, uint32_t mask)
{
    uint32_t passed = 0;
    places p;

    if (!begin(w, i, mask, &p, RACE_ATOMIC) || !ask(w, i, mask, &p, &passed)) {
        return;
    }
    machine_set_predicate(w, i->o[0], passed, mask);
    if (w->tainted) {
        taint_set(w, i->o[0], 0, mask);
    }
    /* looking again is the same wait */
    w->run->counters.waits += passed != mask && !(w->in_vain && w->polling == i);
    w->run->counters.polls += passed != mask;
    w->in_vain = passed != mask;
    if (passed != mask) {
        w->polling = i;
        w->polled_at = p.at[machine_lowest(mask & ~passed)];
        w->yields = true;
        w->polled = w->cta->cluster->changes;
    }
}

void exec_mbarrier_pending(warp *w, const instruction *i, uint32_t mask)
{
    for (EACH_LANE(lane, mask)) {
        machine_r32(w, i->o[0])[lane] = mbarrier_state_pending(machine_r64(w, i->o[1])[lane]);
    }
}

/* cp.async.mbarrier.arrive: what the lanes arrive at, once their copies are done. */
typedef struct tracked {
    uint32_t mask;
    uint64_t serial; /* their copies are those before */
    uint32_t at[MACHINE_LANES];
} tracked;

/* Lanes that share an mbarrier at a time: their copies first, so that it knows of those. */
static bool arrive_tracked(async_op *op)
{
    const tracked *t = (const tracked *)(const void *)op->payload;
    uint32_t left = t->mask;

    while (left != 0) {
        uint32_t first = machine_lowest(left), same = 0;
        for (EACH_LANE(lane, left)) {
            same |= (uint32_t)(t->at[lane] == t->at[first]) << lane;
        }
        left &= ~same;
        mbarrier_actor a = {op->by, op->i, first};
        mbarrier *b = mbarrier_find(op->by, op->i, first, op->by->cta, t->at[first]);
        if (b == NULL) {
            return false;
        }
        copy_finish(op->by, same, t->serial, &b->arriving);
        for (EACH_LANE(lane, same)) {
            a.lane = lane;
            if (!mbarrier_arrive(&a, op->by->cta, b, 1)) {
                return false;
            }
        }
    }
    copy_track_end(op->by);
    return true;
}

static bool add_pending(warp *w, const instruction *i, uint32_t mask, const places *p)
{
    for (EACH_LANE(lane, (i->elements & MBARRIER_NO_INCREMENT) ? 0 : mask)) {
        mbarrier_actor a = {w, i, lane};
        mbarrier *b = mbarrier_find(w, i, lane, p->owner[lane], p->at[lane]);
        if (b == NULL || !mbarrier_add_pending(&a, p->owner[lane], b)) {
            return false;
        }
    }
    return true;
}

void exec_async_arrive(warp *w, const instruction *i, uint32_t mask)
{
    places p;

    if (!begin(w, i, mask, &p, RACE_ATOMIC) || !add_pending(w, i, mask, &p)) {
        return;
    }
    async_op *op = async_new(w, i, machine_lowest(mask), sizeof(tracked));
    if (op == NULL) {
        return;
    }
    tracked *t = (tracked *)(void *)op->payload;
    t->mask = mask;
    t->serial = w->copies_started;
    memcpy(t->at, p.at, sizeof t->at);
    op->optional = true;
    copy_track_begin(w);
    op->perform = arrive_tracked;
    async_submit(op);
}
