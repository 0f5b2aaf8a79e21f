/* wgmma_flight.c - products in flight: which registers they hold, and when their work is done
 * (emulator.md 6). */
#include "emulator/exec/wgmma_flight.h"

#include <stdlib.h>
#include <string.h>

enum { A_REGISTERS = 4 };

/* ---- What a warp keeps --------------------------------------------------------------------- */

wgmma_pending *wgmma_open(warp *w)
{
    uint32_t registers = w->run->kernel->watched_len;
    wgmma_pending *p = w->wgmma;

    if (p != NULL) {
        return p;
    }
    size_t list = ((size_t)registers + 1) * sizeof(held_register);
    if (!machine_take(w->run, sizeof *p + sizeof(wgmma_flight) + list)) {
        return NULL;
    }
    p = aligned_alloc(_Alignof(wgmma_pending), sizeof *p);
    wgmma_flight *f = calloc(1, sizeof *f);
    held_register *held = calloc(1, list);
    if (p == NULL || f == NULL || held == NULL) {
        machine_out_of_memory(w->run);
        free(p);
        free(f);
        free(held);
        return NULL;
    }
    memset(p, 0, sizeof *p);
    f->registers = held;
    f->registers_len = registers;
    p->flight = f;
    w->wgmma = p;
    return p;
}

void wgmma_begin(warp *w)
{
    if (w->wgmma == NULL) {
        return;
    }
    wgmma_flight *f = w->wgmma->flight;
    for (uint32_t n = 0; n < f->ops_len; n++) {
        race_task_free(f->ops[n].task);
    }
    race_task_free(w->wgmma->last);
    w->wgmma->last = NULL;
    memset(f->registers, 0, f->registers_len * sizeof *f->registers);
    memset(w->wgmma->trail, 0, sizeof w->wgmma->trail);
    w->wgmma->issued = w->wgmma->spans_len = 0;
    f->chains_len = f->ops_len = f->committed = f->held = 0;
    f->fences = 0;
}

void wgmma_close(warp *w)
{
    if (w->wgmma == NULL) {
        return;
    }
    wgmma_begin(w);
    free(w->wgmma->flight->registers);
    free(w->wgmma->flight->chains);
    free(w->wgmma->flight->ops);
    free(w->wgmma->flight);
    free(w->wgmma->kept.columns);
    free(w->wgmma);
    w->wgmma = NULL;
}

/* ---- Doing the work ------------------------------------------------------------------------ */

static bool is_late(const warp *w)
{
    return w->run->launch->timing == HONE_EMU_LATEST;
}

bool wgmma_perform_below(warp *w, wgmma_flight *f, uint32_t limit)
{
    for (uint32_t n = 0; n < f->ops_len && f->ops[n].group < limit; n++) {
        wgmma_op *op = &f->ops[n];
        if (!op->done && !wgmma_perform(w, op)) {
            return false;
        }
        op->done = true;
    }
    return true;
}

static void release_registers(wgmma_flight *f, uint32_t limit)
{
    uint32_t held = 0;

    for (uint32_t n = 0; f->held > 0 && n < f->registers_len; n++) {
        held_register *r = &f->registers[n];
        if (wgmma_is_held(r) && r->group < limit) {
            r->hold = HOLD_NONE;
            r->is_a = false;
        }
        held += wgmma_is_held(r);
    }
    f->held = held;
}

/* Chains are in the order of their numbers; those that nobody belongs to any more go. */
static void forget_chains(wgmma_flight *f)
{
    uint32_t lowest = UINT32_MAX, gone = 0;

    for (uint32_t n = 0; f->held > 0 && n < f->registers_len; n++) {
        const held_register *r = &f->registers[n];
        lowest = r->hold != HOLD_NONE && r->chain < lowest ? r->chain : lowest;
    }
    while (gone < f->chains_len && f->chains[gone].number < lowest) {
        gone++;
    }
    f->chains_len -= gone;
    if (f->chains_len > 0) {
        memmove(f->chains, f->chains + gone, f->chains_len * sizeof *f->chains);
    }
}

bool wgmma_finish(warp *w, wgmma_flight *f, uint32_t limit)
{
    uint32_t done = 0;

    if (!wgmma_perform_below(w, f, limit)) {
        return false;
    }
    while (done < f->ops_len && f->ops[done].group < limit) {
        race_task *task = f->ops[done++].task;
        race_task_join(w, task);
        if (task != NULL) { /* the group's other warps may come to ask for it */
            race_task_free(w->wgmma->last);
            w->wgmma->last = task;
        }
    }
    f->ops_len -= done;
    if (f->ops_len > 0) {
        memmove(f->ops, f->ops + done, f->ops_len * sizeof *f->ops);
    }
    release_registers(f, limit);
    forget_chains(f);
    return true;
}

/* ---- Issue --------------------------------------------------------------------------------- */

static bool refuse_unfenced(warp *w, const instruction *i, const held_register *r, uint8_t touches)
{
    uint8_t bad = wgmma_touched(w->wgmma->flight, r) & touches;

    if (bad == 0 || !machine_checks(w, HONE_EMU_CHECK_ASYNC)) {
        return false;
    }
    machine_fault(w, i, 0, 0, FAULT_ASYNC,
                  "wgmma uses a register that was %s at line %d, with no wgmma.fence in between",
                  (bad & TOUCH_WRITTEN) != 0 ? "written" : "read", r->touch_line);
    return true;
}

void wgmma_refuse_in_flight(warp *w, const instruction *i, int32_t line, const char *use)
{
    machine_fault(w, i, 0, 0, FAULT_ASYNC,
                  "register of a wgmma that is still in flight (issued at line %d) is %s here",
                  line, use);
}

static chain *chain_of(wgmma_flight *f, const held_register *r)
{
    for (uint32_t n = 0; r->hold != HOLD_NONE && n < f->chains_len; n++) {
        if (f->chains[n].number == r->chain) {
            return &f->chains[n];
        }
    }
    return NULL;
}

/* The chain that these registers are or copy, element by element; NULL when they are none. */
static chain *same_chain(wgmma_flight *f, const instruction *i, const uint32_t *numbers)
{
    const held_register *first = &f->registers[numbers[0]];
    chain *c = chain_of(f, first);

    if (c == NULL || c->len != i->results || c->result != i->element_bytes) {
        return NULL;
    }
    for (uint32_t e = 0; e < c->len; e++) {
        const held_register *r = &f->registers[numbers[e]];
        if (r->hold == HOLD_NONE || r->chain != c->number || r->element != e) {
            return NULL;
        }
    }
    return c;
}

/* Registers of another shape's product: in order after it only behind a fence. */
static bool settle(warp *w, wgmma_flight *f, const instruction *i, const uint32_t *numbers)
{
    bool some = false;

    for (uint32_t e = 0; e < i->results; e++) {
        const held_register *r = &f->registers[numbers[e]];
        const chain *c = chain_of(f, r);
        bool ordered = c == NULL || c->fences != f->fences;
        if (r->is_a || (!ordered && machine_checks(w, HONE_EMU_CHECK_ASYNC))) {
            wgmma_refuse_in_flight(w, i, r->line, "written");
            return false;
        }
        some = some || c != NULL;
    }
    return !some || wgmma_perform_below(w, f, UINT32_MAX);
}

static chain *new_chain(warp *w, wgmma_flight *f, const instruction *i)
{
    chain *bigger =
        machine_grow(w->run, f->chains, f->chains_len, &f->chains_capacity, sizeof *bigger);

    if (bigger == NULL) {
        return NULL;
    }
    f->chains = bigger;
    f->chains[f->chains_len] =
        (chain){.number = ++f->numbers, .result = i->element_bytes, .len = i->results};
    return &f->chains[f->chains_len++];
}

/* The accumulators: a chain that goes on, or a new one. */
static chain *take_accumulators(warp *w, wgmma_flight *f, const instruction *i,
                                const uint32_t *numbers)
{
    chain *c = same_chain(f, i, numbers);

    if (c != NULL) {
        return c;
    }
    if (!settle(w, f, i, numbers)) {
        return NULL;
    }
    for (uint32_t e = 0; e < i->results; e++) {
        if (refuse_unfenced(w, i, &f->registers[numbers[e]],
                            TOUCH_COPIED | TOUCH_READ | TOUCH_WRITTEN)) {
            return NULL;
        }
    }
    return new_chain(w, f, i);
}

static void hold_members(wgmma_flight *f, const chain *c, const wgmma_op *op,
                         const uint32_t *numbers)
{
    for (uint32_t e = 0; e < c->len; e++) {
        held_register *r = &f->registers[numbers[e]];
        f->held += !wgmma_is_held(r);
        r->hold = HOLD_MEMBER;
        r->copied = false;
        r->chain = c->number;
        r->element = (uint16_t)e;
        r->group = op->group;
        r->line = op->i->line;
    }
}

static bool take_a(warp *w, wgmma_flight *f, const instruction *i, const uint32_t *numbers,
                   uint32_t group)
{
    const uint32_t *a = numbers + i->results + i->sources - A_REGISTERS - 2;

    for (uint32_t n = 0; (i->offset & WGMMA_REGISTERS_A) != 0 && n < A_REGISTERS; n++) {
        if (a[n] == MACHINE_NONE) { /* a constant */
            continue;
        }
        held_register *r = &f->registers[a[n]];
        if (r->hold != HOLD_NONE) {
            wgmma_refuse_in_flight(w, i, r->line, "read");
            return false;
        }
        if (refuse_unfenced(w, i, r, TOUCH_WRITTEN)) {
            return false;
        }
        f->held += !r->is_a;
        r->is_a = true;
        r->group = group;
        r->line = i->line;
    }
    return true;
}

static bool enter(warp *w, wgmma_flight *f, wgmma_op *op)
{
    const instruction *i = op->i;
    const uint32_t *numbers = w->run->kernel->watched + i->numbers;

    if (f->fences == 0 && machine_checks(w, HONE_EMU_CHECK_ASYNC)) {
        machine_fault(w, i, 0, 0, FAULT_ASYNC, "the first wgmma has no wgmma.fence before it");
        return false;
    }
    op->group = f->committed;
    if (!take_a(w, f, i, numbers, op->group)) {
        return false;
    }
    chain *c = take_accumulators(w, f, i, numbers);
    wgmma_op *bigger = machine_grow(w->run, f->ops, f->ops_len, &f->ops_capacity, sizeof *bigger);
    f->ops = bigger != NULL ? bigger : f->ops;
    if (c == NULL || bigger == NULL) {
        return false;
    }
    c->fences = f->fences;
    hold_members(f, c, op, numbers);
    return true;
}

void wgmma_submit(warp *w, wgmma_op *op)
{
    wgmma_flight *f = w->wgmma->flight;

    if (!enter(w, f, op) || (!is_late(w) && !wgmma_perform(w, op))) {
        race_task_free(op->task);
        return;
    }
    op->done = !is_late(w);
    f->ops[f->ops_len++] = *op;
}
