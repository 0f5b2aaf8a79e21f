/* taint.c - poison: values that come from memory nobody wrote. Copying one is no fault; using one
 * is. A warp that holds none skips all of this. */
#include "emulator/machine/machine.h"

void taint_set(warp *w, uint32_t operand, uint32_t value, uint32_t mask)
{
    uint32_t *p = machine_poison(w, operand);
    *p = (*p & ~mask) | (value & mask);
}

bool taint_refuse(warp *w, const instruction *i, uint32_t operand, uint32_t mask, const char *use)
{
    uint32_t bad = *machine_poison(w, operand) & mask;

    if (!w->tainted || bad == 0 || !machine_checks(w, HONE_EMU_CHECK_UNINITIALISED)) {
        return false;
    }
    machine_fault(w, i, machine_lowest(bad), 0, FAULT_UNINITIALISED,
                  "%s comes from memory or a register that was never written", use);
    return true;
}

static uint32_t union_of(const warp *w, const instruction *i)
{
    uint32_t all = 0;
    for (uint32_t s = 0; s < i->sources; s++) {
        all |= *machine_poison(w, i->o[i->results + s]);
    }
    return all;
}

static uint32_t selected(const warp *w, const instruction *i)
{
    const uint32_t *s = i->o + i->results;
    uint32_t p = *machine_r32(w, s[2]);
    uint32_t a = *machine_poison(w, s[0]), b = *machine_poison(w, s[1]);
    return (a & p) | (b & ~p) | *machine_poison(w, s[2]);
}

/* A predicate that is known, and alone decides the result, makes the other's poison void: compilers
 * turn `i < n && x[i] > 0` into two comparisons and one of these. */
static uint32_t joined(const warp *w, const instruction *i)
{
    const uint32_t *s = i->o + i->results;
    uint32_t poison = 0, decided = 0;

    for (uint32_t n = 0; n < 2; n++) {
        uint32_t p = *machine_r32(w, s[n]), bad = *machine_poison(w, s[n]);
        poison |= bad;
        decided |= ~bad & (i->taint == TAINT_OR ? p : ~p);
    }
    return poison & ~decided;
}

static uint32_t poison_of(const warp *w, const instruction *i)
{
    switch ((machine_taint)i->taint) {
    case TAINT_SELECT:
        return selected(w, i);
    case TAINT_AND:
    case TAINT_OR:
        return joined(w, i);
    case TAINT_UNION:
    case TAINT_SELF:
    case TAINT_STRICT:
        break;
    }
    return union_of(w, i);
}

static bool refuse_sources(warp *w, const instruction *i, uint32_t mask)
{
    for (uint32_t s = 0; s < i->sources; s++) {
        if (taint_refuse(w, i, i->o[i->results + s], mask, "an operand of the matrix unit")) {
            return true;
        }
    }
    return false;
}

bool taint_before(warp *w, const instruction *i, uint32_t active, uint32_t mask)
{
    bool decides = i->flow != FLOW_NEXT || i->taint == TAINT_SELF;

    if (i->guard != MACHINE_NONE && decides &&
        taint_refuse(w, i, i->guard, active, "the predicate")) {
        return false;
    }
    if (i->flow == FLOW_BRANCH_TABLE &&
        taint_refuse(w, i, i->o[i->results], mask, "the index of a branch")) {
        return false;
    }
    if (i->taint == TAINT_SELF) {
        return true;
    }
    if (i->taint == TAINT_STRICT && refuse_sources(w, i, mask)) {
        return false;
    }
    uint32_t poison = poison_of(w, i);
    if (i->guard != MACHINE_NONE) {
        poison |= *machine_poison(w, i->guard);
    }
    /* a predicate that is poison itself may have kept the old value or not */
    uint32_t touched = i->guard != MACHINE_NONE ? mask | *machine_poison(w, i->guard) : mask;
    for (uint32_t d = 0; d < i->results; d++) {
        taint_set(w, i->o[d], poison, touched & active);
    }
    return true;
}

enum { PATIENCE = 63 }; /* turns between two looks at a warp that keeps its poison */

/* Exited lanes are never asked for anything again. */
static bool holds_poison(const warp *w)
{
    const ptx_kernel *k = w->run->kernel;
    uint32_t all = 0, slots = k->image_bytes / MACHINE_SLOT, predicates = k->predicate_bytes / 4;
    const uint32_t *words = machine_r32(w, 0);

    for (uint32_t n = 0; n < slots; n++) {
        all |= w->poison[n];
    }
    for (uint32_t n = 1; n < predicates; n += 2) {
        all |= words[n];
    }
    return (all & w->live) != 0;
}

void taint_settle(warp *w)
{
    if (w->settles_in > 0) {
        w->settles_in--;
        return;
    }
    w->tainted = holds_poison(w);
    if (!w->tainted) {
        w->settles_wait = 0;
    } else if (w->settles_wait < PATIENCE) {
        w->settles_wait = (uint8_t)(2 * w->settles_wait + 1);
    }
    w->settles_in = w->settles_wait;
}
