/* mbarrier.c - arrivals, bytes and phases. */
#include "emulator/machine/mbarrier.h"
#include "emulator/machine/access.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mbarrier_table {
    uint32_t *slots; /* by offset / 8: 1 + index in `items`; 0: never one */
    mbarrier *items;
    uint32_t len, capacity;
};

void mbarrier_refuse(const mbarrier_actor *a, const cta *owner, uint32_t at, const char *format,
                     ...)
{
    char rule[200], of[40] = "";
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(rule, sizeof rule, format, arguments);
    va_end(arguments);
    if (owner != a->w->cta) {
        snprintf(of, sizeof of, " of CTA %u of the cluster", owner->rank);
    }
    machine_fault(a->w, a->i, a->lane, at, FAULT_MBARRIER, "mbarrier at %u%s: %s", at, of, rule);
}

static bool make_table(run_state *run, cta *owner)
{
    uint64_t slots = owner->shared_bytes / MBARRIER_BYTES + 1;
    bool room = machine_take(run, sizeof(mbarrier_table) + slots * sizeof(uint32_t));
    mbarrier_table *t = room ? calloc(1, sizeof *t) : NULL;

    if (t != NULL) {
        t->slots = calloc(slots, sizeof *t->slots);
    }
    if (t == NULL || t->slots == NULL) {
        free(t);
        machine_out_of_memory(run);
        return false;
    }
    owner->mbarriers = t;
    return true;
}

static mbarrier *add_item(run_state *run, mbarrier_table *t, uint32_t at)
{
    mbarrier *list = machine_grow(run, t->items, t->len, &t->capacity, sizeof *list);

    if (list == NULL) {
        return NULL;
    }
    t->items = list;
    t->items[t->len] = (mbarrier){.at = at};
    t->slots[at / MBARRIER_BYTES] = ++t->len;
    return &t->items[t->len - 1];
}

/* Live or not. */
static mbarrier *item_at(const cta *owner, uint32_t at)
{
    const mbarrier_table *t = owner->mbarriers;
    uint32_t slot = t != NULL && at < owner->shared_bytes ? t->slots[at / MBARRIER_BYTES] : 0;

    return slot != 0 ? &t->items[slot - 1] : NULL;
}

mbarrier *mbarrier_at(const cta *owner, uint32_t at)
{
    mbarrier *b = item_at(owner, at);
    return b != NULL && b->live ? b : NULL;
}

mbarrier *mbarrier_find(warp *w, const instruction *i, uint32_t lane, cta *owner, uint32_t at)
{
    mbarrier *b = item_at(owner, at);
    mbarrier_actor a = {w, i, lane};

    if (b != NULL && b->live) {
        return b;
    }
    mbarrier_refuse(&a, owner, at, "%s", b == NULL ? "never initialised" : "it was invalidated");
    return NULL;
}

static void mark(cta *owner, uint32_t at, uint8_t shadow)
{
    memset(owner->shared_shadow + at, shadow, MBARRIER_BYTES);
    owner->marked = true;
}

static bool check_count(const mbarrier_actor *a, cta *owner, uint32_t at, uint32_t count)
{
    if (count >= 1 && count <= MBARRIER_LIMIT) {
        return true;
    }
    mbarrier_refuse(a, owner, at, "a count of %u; it is 1 to %d", count, MBARRIER_LIMIT);
    return false;
}

bool mbarrier_init(const mbarrier_actor *a, cta *owner, uint32_t at, uint32_t count)
{
    run_state *run = a->w->run;

    if (!check_count(a, owner, at, count) ||
        (owner->mbarriers == NULL && !make_table(run, owner))) {
        return false;
    }
    mbarrier *b = item_at(owner, at);
    if (b != NULL && b->live && machine_checks(a->w, HONE_EMU_CHECK_BARRIERS)) {
        mbarrier_refuse(a, owner, at, "initialised again while it is live; line %d made it",
                        b->made->line);
        return false;
    }
    b = b != NULL ? b : add_item(run, owner->mbarriers, at);
    if (b == NULL) {
        return false;
    }
    race_clock_free(&b->arriving);
    race_clock_free(&b->passed);
    *b = (mbarrier){
        .at = at, .live = true, .expected = count, .pending = count, .total = count, .made = a->i};
    mark(owner, at,
         machine_checks(a->w, HONE_EMU_CHECK_BARRIERS) ? ACCESS_MBARRIER : ACCESS_IS_WRITTEN);
    return true;
}

bool mbarrier_invalidate(const mbarrier_actor *a, cta *owner, uint32_t at)
{
    mbarrier *b = mbarrier_find(a->w, a->i, a->lane, owner, at);

    if (b == NULL) {
        return false;
    }
    b->live = false;
    mark(owner, at, ACCESS_UNWRITTEN);
    return true;
}

static void complete_if_over(cta *owner, mbarrier *b)
{
    if (b->pending != 0 || b->tx != 0) {
        return;
    }
    b->phase++;
    b->pending = b->total = b->expected;
    race_clock_free(&b->passed);
    b->passed = b->arriving;
    b->arriving = NULL;
    owner->cluster->changes++;
}

static const char *ordinal(uint32_t n)
{
    if (n % 100 >= 11 && n % 100 <= 13) {
        return "th";
    }
    return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

static bool check_arrival(const mbarrier_actor *a, cta *owner, const mbarrier *b, uint32_t count)
{
    if (!check_count(a, owner, b->at, count)) {
        return false;
    }
    if (count <= b->pending) {
        return true;
    }
    uint32_t nth = b->total - b->pending + count;
    mbarrier_refuse(a, owner, b->at, "%u%s arrival of a phase that expects %u", nth, ordinal(nth),
                    b->total);
    return false;
}

bool mbarrier_arrive(const mbarrier_actor *a, cta *owner, mbarrier *b, uint32_t count)
{
    if (!check_arrival(a, owner, b, count)) {
        return false;
    }
    a->w->run->counters.mbarrier_arrivals += count;
    b->pending -= count;
    complete_if_over(owner, b);
    return true;
}

bool mbarrier_drop(const mbarrier_actor *a, cta *owner, mbarrier *b, uint32_t count)
{
    if (!check_arrival(a, owner, b, count)) {
        return false;
    }
    if (count > b->expected) {
        mbarrier_refuse(a, owner, b->at, "%u arrivals dropped of %u", count, b->expected);
        return false;
    }
    b->expected -= count;
    return mbarrier_arrive(a, owner, b, count);
}

bool mbarrier_add_pending(const mbarrier_actor *a, cta *owner, mbarrier *b)
{
    if (b->pending == MBARRIER_LIMIT) {
        mbarrier_refuse(a, owner, b->at, "more than %d arrivals pending", MBARRIER_LIMIT);
        return false;
    }
    b->pending++;
    b->total++;
    return true;
}

bool mbarrier_expect(const mbarrier_actor *a, cta *owner, mbarrier *b, int64_t bytes)
{
    int64_t tx = b->tx + bytes;

    if (tx > MBARRIER_LIMIT || tx < -MBARRIER_LIMIT) {
        mbarrier_refuse(a, owner, b->at,
                        "%lld bytes %s make its transaction count %lld; it stays "
                        "within %d of 0",
                        (long long)(bytes < 0 ? -bytes : bytes),
                        bytes < 0 ? "came and" : "expected", (long long)tx, MBARRIER_LIMIT);
        return false;
    }
    b->tx = tx;
    complete_if_over(owner, b);
    return true;
}

void mbarrier_complete_tx(warp *by, const instruction *i, uint32_t lane, cta *owner, uint32_t at,
                          uint32_t bytes, race_task *task)
{
    mbarrier_actor a = {by, i, lane};
    mbarrier *b = mbarrier_find(by, i, lane, owner, at);

    if (b != NULL && race_task_touch(task, owner, at, MBARRIER_BYTES, 1, 0, RACE_ATOMIC)) {
        race_task_release(task, &b->arriving);
        mbarrier_expect(&a, owner, b, -(int64_t)bytes);
    }
}

uint64_t mbarrier_state(const mbarrier *b)
{
    return (uint64_t)b->phase << 32 | b->pending;
}

uint32_t mbarrier_state_pending(uint64_t state)
{
    return (uint32_t)state;
}

bool mbarrier_passed(const mbarrier_actor *a, const mbarrier *b, uint64_t state, bool *bad)
{
    uint32_t phase = (uint32_t)(state >> 32);

    *bad = b->phase - phase > 1;
    if (*bad) {
        mbarrier_refuse(a, a->w->cta, b->at,
                        "phase skipped: the wait is for phase %u, and phase %u goes on", phase,
                        b->phase);
        return false;
    }
    return b->phase != phase;
}

/* Which phase a parity means cannot be told, except where the same lane has asked at the same place
 * before and was refused: it asks for that one still. */
bool mbarrier_passed_parity(const mbarrier_actor *a, mbarrier *b, uint32_t parity, uint32_t lanes,
                            bool *bad)
{
    mbarrier_waiter *waiter = &b->waiters[a->w->index];
    bool likely = (waiter->phase & 1) == parity && waiter->i == a->i;
    uint32_t again = likely ? waiter->lanes & lanes : 0;

    *bad =
        again != 0 && b->phase - waiter->phase > 1 && machine_checks(a->w, HONE_EMU_CHECK_BARRIERS);
    if (*bad) {
        mbarrier_refuse(&(mbarrier_actor){a->w, a->i, machine_lowest(again)}, a->w->cta, b->at,
                        "phase skipped: the lane waited for phase %u, and phase %u goes on",
                        waiter->phase, b->phase);
        return false;
    }
    if ((b->phase & 1) != parity) {
        waiter->lanes &= ~lanes;
        return true;
    }
    bool with_others = waiter->phase == b->phase && waiter->i == a->i;
    waiter->lanes = with_others ? waiter->lanes | lanes : lanes;
    waiter->phase = b->phase;
    waiter->i = a->i;
    return false;
}

void mbarrier_describe(const mbarrier *b, char *text, size_t capacity)
{
    int n = snprintf(text, capacity, "mbarrier %u: phase %u, %u of %u arrivals", b->at, b->phase,
                     b->total - b->pending, b->total);

    if (b->tx != 0 && n > 0 && (size_t)n < capacity) {
        snprintf(text + n, capacity - (size_t)n, ", %lld bytes %s",
                 (long long)(b->tx < 0 ? -b->tx : b->tx), b->tx < 0 ? "early" : "missing");
    }
}

void mbarrier_end(cta *c)
{
    const mbarrier_table *t = c->mbarriers;
    warp *w = &c->warps[0];

    if (!machine_checks(w, HONE_EMU_CHECK_BARRIERS)) {
        return;
    }
    for (uint32_t n = 0; t != NULL && n < t->len; n++) {
        const mbarrier *b = &t->items[n];
        mbarrier_actor a = {w, b->made, 0};
        if (b->live && b->tx != 0) {
            mbarrier_refuse(&a, c, b->at, "its CTA ends with %lld bytes of phase %u %s",
                            (long long)(b->tx < 0 ? -b->tx : b->tx), b->phase,
                            b->tx < 0 ? "that nobody expected" : "missing");
        }
    }
}

void mbarrier_forget(cta *c)
{
    mbarrier_table *t = c->mbarriers;

    for (uint32_t n = 0; t != NULL && n < t->len; n++) {
        mbarrier *b = &t->items[n];
        race_clock_free(&b->arriving);
        race_clock_free(&b->passed);
        t->slots[b->at / MBARRIER_BYTES] = 0;
    }
    if (t != NULL) {
        t->len = 0;
    }
    c->marked = false;
}

void mbarrier_close(cta *c)
{
    mbarrier_forget(c);
    if (c->mbarriers != NULL) {
        free(c->mbarriers->slots);
        free(c->mbarriers->items);
        free(c->mbarriers);
        c->mbarriers = NULL;
    }
}
