/* wgmma_flight.c - products in flight: which registers they hold, who may touch those, and when the
 * work is done (emulator.md 6).
 *
 * Registers go by the numbers of ptx/watch.c, not by their slots, which others may use later. A
 * chain is a set of accumulators: products of one shape add to it one after the other, and plain
 * copies move it to other registers. */
#include "emulator/exec/wgmma.h"

#include <stdlib.h>
#include <string.h>

enum { ACCUMULATORS = 128, A_REGISTERS = 4 };

/* What the warp's own instructions did to a register since the last wgmma.fence. */
enum { TOUCH_COPIED = 1, TOUCH_READ = 2, TOUCH_WRITTEN = 4 };

typedef struct held_register {
    uint8_t touched;
    bool is_a;          /* a product in flight reads it */
    uint16_t chain;     /* 1 + index of the chain that it belongs to; 0: none */
    uint16_t element;   /* of that chain */
    uint32_t group;     /* of the product that reads it */
    int32_t line;       /* of that product */
    int32_t touch_line; /* of the last touch */
} held_register;

typedef struct chain {
    bool used;
    uint8_t result;
    uint32_t len, group;                             /* group: of its last product */
    int32_t line;                                    /* of that product */
    uint64_t fences;                                 /* had been executed when that was issued */
    uint32_t at[ACCUMULATORS], number[ACCUMULATORS]; /* the registers now: slot, number */
} chain;

struct wgmma_flight {
    held_register *registers;
    uint32_t registers_len;
    chain *chains;
    uint32_t chains_len, chains_capacity;
    wgmma_op *ops; /* oldest first */
    uint32_t ops_len, ops_capacity;
    uint32_t committed, held; /* groups; registers that products hold */
    uint64_t fences;
};

/* ---- What a warp keeps --------------------------------------------------------------------- */

wgmma_pending *wgmma_open(warp *w)
{
    uint32_t registers = w->run->kernel->watched_len;
    wgmma_pending *p = w->wgmma;

    if (p != NULL) {
        return p;
    }
    p = aligned_alloc(_Alignof(wgmma_pending), sizeof *p);
    wgmma_flight *f = calloc(1, sizeof *f);
    held_register *held = calloc((size_t)registers + 1, sizeof *held);
    if (p == NULL || f == NULL || held == NULL) {
        w->run->out_of_memory = true;
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

static void release_chain(wgmma_flight *f, uint32_t index)
{
    chain *c = &f->chains[index];

    for (uint32_t e = 0; e < c->len; e++) {
        f->registers[c->number[e]].chain = 0;
    }
    f->held -= c->len;
    c->used = false;
}

/* Does what lies in groups below `limit`, and lets go of its registers. */
static bool finish(warp *w, wgmma_flight *f, uint32_t limit)
{
    uint32_t done = 0;

    while (done < f->ops_len && f->ops[done].group < limit) {
        wgmma_op *op = &f->ops[done++];
        if (is_late(w) && !wgmma_perform(w, op, f->chains[op->chain].at)) {
            return false;
        }
        race_task_join(w, op->task);
        race_task_free(op->task);
        op->task = NULL;
    }
    if (done > 0) { /* there may be no list yet */
        memmove(f->ops, f->ops + done, (f->ops_len - done) * sizeof *f->ops);
        f->ops_len -= done;
    }
    for (uint32_t n = 0; n < f->chains_len; n++) {
        if (f->chains[n].used && f->chains[n].group < limit) {
            release_chain(f, n);
        }
    }
    for (uint32_t n = 0; f->held > 0 && n < f->registers_len; n++) {
        held_register *r = &f->registers[n];
        if (r->is_a && r->group < limit) {
            r->is_a = false;
            f->held--;
        }
    }
    return true;
}

/* ---- Issue --------------------------------------------------------------------------------- */

static void *grow(warp *w, void *list, uint32_t len, uint32_t *capacity, size_t size)
{
    if (len < *capacity) {
        return list;
    }
    void *bigger = realloc(list, (*capacity * 2 + 8) * size);
    if (bigger == NULL) {
        w->run->out_of_memory = true;
        return NULL;
    }
    *capacity = *capacity * 2 + 8;
    return bigger;
}

static bool refuse_unfenced(warp *w, const instruction *i, const held_register *r, uint8_t touches)
{
    uint8_t bad = r->touched & touches;

    if (bad == 0 || !machine_checks(w, HONE_EMU_CHECK_ASYNC)) {
        return false;
    }
    machine_fault(w, i, 0, 0, FAULT_ASYNC,
                  "wgmma uses a register that was %s at line %d, with no wgmma.fence in between",
                  (bad & TOUCH_WRITTEN) != 0 ? "written" : "read", r->touch_line);
    return true;
}

static void refuse_in_flight(warp *w, const instruction *i, int32_t line, const char *use)
{
    machine_fault(w, i, 0, 0, FAULT_ASYNC,
                  "register of a wgmma that is still in flight (issued at line %d) is %s here",
                  line, use);
}

/* The chain that these registers are, element by element; NULL when they are none. */
static chain *same_chain(wgmma_flight *f, const instruction *i, const uint32_t *numbers)
{
    uint32_t index = f->registers[numbers[0]].chain;
    chain *c = index != 0 ? &f->chains[index - 1] : NULL;

    if (c == NULL || c->len != i->results || c->result != i->element_bytes) {
        return NULL;
    }
    for (uint32_t e = 0; e < c->len; e++) {
        const held_register *r = &f->registers[numbers[e]];
        if (r->chain != index || r->element != e) {
            return NULL;
        }
    }
    return c;
}

/* Registers of another shape's product: in order after it only behind a fence. */
static bool settle(warp *w, wgmma_flight *f, const instruction *i, const uint32_t *numbers)
{
    for (uint32_t e = 0; e < i->results; e++) {
        const held_register *r = &f->registers[numbers[e]];
        const chain *c = r->chain != 0 ? &f->chains[r->chain - 1] : NULL;
        bool ordered = c == NULL || c->fences != f->fences;
        if (r->is_a || (!ordered && machine_checks(w, HONE_EMU_CHECK_ASYNC))) {
            refuse_in_flight(w, i, r->is_a ? r->line : c->line, "written");
            return false;
        }
        if (c != NULL && !finish(w, f, UINT32_MAX)) {
            return false;
        }
    }
    return true;
}

static chain *new_chain(warp *w, wgmma_flight *f, const instruction *i, const uint32_t *numbers)
{
    uint32_t index = 0;

    while (index < f->chains_len && f->chains[index].used) {
        index++;
    }
    if (index == f->chains_len) {
        chain *bigger = grow(w, f->chains, f->chains_len, &f->chains_capacity, sizeof *bigger);
        if (bigger == NULL) {
            return NULL;
        }
        f->chains = bigger;
        f->chains_len++;
    }
    chain *c = &f->chains[index];
    c->used = true;
    c->result = i->element_bytes;
    c->len = i->results;
    for (uint32_t e = 0; e < c->len; e++) {
        c->at[e] = i->o[e];
        c->number[e] = numbers[e];
        f->registers[numbers[e]].chain = (uint16_t)(index + 1);
        f->registers[numbers[e]].element = (uint16_t)e;
    }
    f->held += c->len;
    return c;
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
    return new_chain(w, f, i, numbers);
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
        if (r->chain != 0) {
            refuse_in_flight(w, i, f->chains[r->chain - 1].line, "read");
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
    wgmma_op *bigger = grow(w, f->ops, f->ops_len, &f->ops_capacity, sizeof *bigger);
    f->ops = bigger != NULL ? bigger : f->ops;
    if (c == NULL || bigger == NULL) {
        return false;
    }
    c->group = op->group;
    c->line = i->line;
    c->fences = f->fences;
    op->chain = (uint32_t)(c - f->chains);
    return true;
}

void wgmma_submit(warp *w, wgmma_op *op)
{
    wgmma_flight *f = w->wgmma->flight;

    if (!enter(w, f, op) || (!is_late(w) && !wgmma_perform(w, op, op->i->o))) {
        race_task_free(op->task);
        return;
    }
    f->ops[f->ops_len++] = *op;
}

/* ---- What others do to the registers ------------------------------------------------------- */

/* A copy takes the accumulators along; the old register is free. */
static void move_held(wgmma_flight *f, const instruction *i, const uint32_t *numbers)
{
    held_register *to = &f->registers[numbers[0]], *from = &f->registers[numbers[1]];
    chain *c = &f->chains[from->chain - 1];

    to->chain = from->chain;
    to->element = from->element;
    to->touched = 0;
    from->chain = 0;
    c->at[to->element] = i->o[0];
    c->number[to->element] = numbers[0];
}

/* Compilers put copies between a fence and its wgmma: a copy is as old as what it copies. */
static void note_copy(wgmma_flight *f, const instruction *i, const uint32_t *numbers)
{
    held_register *to = &f->registers[numbers[0]], *from = &f->registers[numbers[1]];

    to->touched = from->touched & (TOUCH_READ | TOUCH_WRITTEN);
    to->touch_line = from->touch_line;
    if ((from->touched & (TOUCH_READ | TOUCH_WRITTEN)) == 0) {
        from->touched = TOUCH_COPIED;
        from->touch_line = i->line;
    }
}

static void note_touch(held_register *r, const instruction *i, uint8_t touch)
{
    r->touched |= touch;
    r->touch_line = i->line;
}

/* Whether products in flight hold this register against such a touch; *line: of the product. */
static bool is_held(const wgmma_flight *f, uint32_t number, bool copies, int32_t *line)
{
    const held_register *r = number != MACHINE_NONE ? &f->registers[number] : NULL;

    if (r == NULL || (r->chain == 0 && (!r->is_a || copies))) {
        return false;
    }
    *line = r->chain != 0 ? f->chains[r->chain - 1].line : r->line;
    return true;
}

/* Nobody may touch what is in flight. False: the instruction must not run. */
static bool clear_touch(warp *w, wgmma_flight *f, const instruction *i, const uint32_t *numbers,
                        bool copies)
{
    uint32_t len = (uint32_t)i->results + i->sources;

    for (uint32_t n = 0; f->held > 0 && n < len;
         n++) { /* sources are read before results are written */
        int32_t line = 0;
        uint32_t k = (n + i->results) % len;
        bool writes = k < i->results;
        if (!is_held(f, numbers[k], copies && !writes, &line)) {
            continue;
        }
        if (machine_checks(w, HONE_EMU_CHECK_ASYNC)) {
            refuse_in_flight(w, i, line, writes ? "written" : "read");
            return false;
        }
        if (!finish(w, f, UINT32_MAX)) {
            return false;
        }
    }
    return true;
}

static bool before_touch(warp *w, wgmma_flight *f, const instruction *i, uint32_t mask)
{
    const uint32_t *numbers = w->run->kernel->watched + i->numbers;
    bool copies = (i->flags & FLAG_MOVE) != 0 && mask == w->live;
    int32_t line = 0;

    if (copies && f->registers[numbers[1]].chain != 0 && !is_held(f, numbers[0], false, &line)) {
        move_held(f, i, numbers);
        return true;
    }
    if (!clear_touch(w, f, i, numbers, copies)) {
        return false;
    }
    if (copies) {
        note_copy(f, i, numbers);
        return true;
    }
    for (uint32_t k = 0; k < (uint32_t)i->results + i->sources; k++) {
        bool clears = (i->flags & FLAG_CLEAR) != 0; /* compilers set constants behind the fence */
        if (numbers[k] != MACHINE_NONE && !clears) {
            note_touch(&f->registers[numbers[k]], i, k < i->results ? TOUCH_WRITTEN : TOUCH_READ);
        }
    }
    return true;
}

void exec_wgmma_touch(warp *w, const instruction *i, uint32_t mask)
{
    if (w->wgmma == NULL || before_touch(w, w->wgmma->flight, i, mask)) {
        i->watched(w, i, mask);
    }
}

/* ---- fence, commit_group, wait_group ------------------------------------------------------- */

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

    for (uint32_t n = 0; f != NULL && n < f->registers_len; n++) {
        f->registers[n].touched = 0;
    }
    if (f != NULL) {
        f->fences++;
    }
}

void exec_wgmma_commit(warp *w, const instruction *i, uint32_t mask)
{
    wgmma_flight *f = open_aligned(w, i, mask);

    if (f != NULL && wgmma_reads_flush(w)) {
        f->committed++;
    }
}

void exec_wgmma_wait(warp *w, const instruction *i, uint32_t mask)
{
    wgmma_flight *f = open_aligned(w, i, mask);

    if (f != NULL && f->committed > i->kind) {
        /* A real wait: the others' turn. A group's warps then go through the same tiles together,
         * and find B taken apart. */
        w->yields = f->ops_len > 0;
        finish(w, f, f->committed - i->kind);
    }
}
