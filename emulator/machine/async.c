/* async.c - the queue of bulk operations: at issue or as late as the rules allow. */
#include "emulator/machine/async.h"
#include "emulator/machine/access.h"
#include "emulator/machine/copy.h"
#include "emulator/machine/mbarrier.h"
#include "emulator/machine/wide.h"

#include <stdlib.h>

async_op *async_new(warp *w, const instruction *i, uint32_t lane, size_t payload_bytes)
{
    uint64_t bytes = sizeof(async_op) + payload_bytes;
    async_op *op = machine_take(w->run, bytes) ? calloc(1, bytes) : NULL;

    if (op == NULL) {
        machine_out_of_memory(w->run);
        return NULL;
    }
    op->bytes = bytes;
    op->by = w;
    op->i = i;
    op->lane = lane;
    op->task = race_issue(w, i, RACE_BULK);
    return op;
}

void async_fetches(async_op *op, bool (*fetch)(async_op *op))
{
    op->fetch = fetch;
    op->reading = race_issue(op->by, op->i, RACE_BULK);
}

void async_signal_add(async_op *op, cta *owner, uint32_t at, uint32_t bytes)
{
    op->signals[op->signals_len++] = (async_signal){owner, at, bytes};
}

void async_drop(async_op *op)
{
    if (op != NULL) {
        race_task_free(op->task);
        race_task_free(op->reading);
        machine_give(op->by->run, op->bytes);
        free(op);
    }
}

static bool is_late(const async_op *op)
{
    return op->by->run->launch->timing == HONE_EMU_LATEST;
}

MACHINE_WIDEST static uint8_t marks_of(const uint8_t *shadow, uint32_t bytes)
{
    uint8_t all = 0;

    for (uint32_t n = 0; n < bytes; n++) {
        all |= shadow[n];
    }
    return all;
}

bool async_claim(const async_op *op, cta *owner, uint32_t at, uint32_t bytes)
{
    uint8_t *shadow = owner->shared_shadow + at;

    if (owner->marked && (marks_of(shadow, bytes) & (ACCESS_PENDING | ACCESS_MBARRIER)) != 0) {
        access_refuse_marked(op->by, op->i, op->lane, owner, at, bytes);
        return false;
    }
    if (is_late(op) && machine_checks(op->by, HONE_EMU_CHECK_ASYNC)) {
        memset(shadow, ACCESS_PENDING, bytes);
        owner->marked = true;
    }
    return true;
}

static bool fetch(async_op *op)
{
    if (op->fetch == NULL || op->fetched) {
        return true;
    }
    op->fetched = true;
    return op->fetch(op);
}

/* Shared memory goes with its CTA. */
static bool check_owners(const async_op *op)
{
    for (uint32_t n = 0; n < op->signals_len; n++) {
        const async_signal *s = &op->signals[n];
        if (s->owner->done_len == s->owner->warps_len) {
            machine_fault(op->by, op->i, op->lane, s->at, FAULT_USE_AFTER_FREE,
                          "%u bytes for the mbarrier at %u of CTA %u of the cluster, which has "
                          "exited before they came",
                          s->bytes, s->at, s->owner->rank);
            return false;
        }
    }
    return true;
}

/* Moves the data and signals the mbarriers. */
static void finish(async_op *op)
{
    if (op->performed || op->by->run->faulted) {
        return;
    }
    op->performed = true;
    if (!check_owners(op) || !fetch(op) || !op->perform(op)) {
        return;
    }
    op->by->cta->cluster->changes++;
    for (uint32_t n = 0; n < op->signals_len; n++) {
        const async_signal *s = &op->signals[n];
        mbarrier_complete_tx(op->by, op->i, op->lane, s->owner, s->at, s->bytes, op->task);
    }
}

void async_submit(async_op *op)
{
    cluster *c = op->by->cta->cluster;

    op->group = op->by->bulk_committed[op->lane];
    if (!is_late(op)) {
        finish(op);
        if (!op->grouped || op->task == NULL) {
            async_drop(op);
            return;
        }
    }
    if (c->first == NULL) {
        c->first = op;
    } else {
        c->last->next = op;
    }
    c->last = op;
}

/* Takes the operation behind `before` (NULL: the first one) out of the queue. */
static async_op *take(cluster *c, async_op *before)
{
    async_op *op = before != NULL ? before->next : c->first;

    if (before != NULL) {
        before->next = op->next;
    } else {
        c->first = op->next;
    }
    c->last = c->last == op ? before : c->last;
    op->next = NULL;
    return op;
}

bool async_complete_one(cluster *c)
{
    async_op *before = NULL;
    uint64_t loads = 0;

    for (const async_op *op = c->first; op != NULL; op = op->next) {
        loads += !op->grouped;
    }
    if (loads == 0) {
        return false;
    }
    uint64_t skip = c->run->launch->schedule_seed == 0 ? 0 : (c->run->random >> 33) % loads;
    for (async_op *op = c->first; op != NULL; before = op, op = op->next) {
        if (!op->grouped && skip-- == 0) {
            break;
        }
    }
    async_op *op = take(c, before);
    finish(op);
    async_drop(op);
    return true;
}

void async_commit(warp *w, uint32_t mask)
{
    for (EACH_LANE(lane, mask)) {
        w->bulk_committed[lane]++;
    }
}

/* Of a wait by lanes of a warp for their groups. */
typedef struct async_waiting {
    warp *w;
    uint32_t mask, allowed;
    bool reads, all; /* all: what is not committed, too */
} async_waiting;

static bool is_due(const async_op *op, const async_waiting *a)
{
    return op->grouped && op->by == a->w && (a->mask >> op->lane & 1) != 0 &&
           (a->all || (uint64_t)op->group + a->allowed < a->w->bulk_committed[op->lane]);
}

/* Does what the wait covers; true when the operation is over. */
static bool serve(async_op *op, const async_waiting *a)
{
    if (a->reads && op->fetch != NULL) {
        if (!op->performed && !a->w->run->faulted) {
            fetch(op);
        }
        race_task_join(a->w, op->reading);
        race_task_free(op->reading); /* later waits need not join it again */
        op->reading = NULL;
        return false;
    }
    finish(op);
    if (!a->all) {
        race_task_join(a->w, op->reading);
        race_task_join(a->w, op->task);
    }
    return true;
}

static void wait_for(const async_waiting *a)
{
    cluster *c = a->w->cta->cluster;
    async_op *before = NULL, *op = c->first;

    while (op != NULL) {
        async_op *next = op->next;
        if (is_due(op, a) && serve(op, a)) {
            async_drop(take(c, before));
        } else {
            before = op;
        }
        op = next;
    }
}

void async_wait(warp *w, uint32_t mask, uint32_t allowed, bool reads)
{
    wait_for(&(async_waiting){.w = w, .mask = mask, .allowed = allowed, .reads = reads});
}

void async_leave(warp *w, uint32_t mask)
{
    copy_leave(w, mask);
    wait_for(&(async_waiting){.w = w, .mask = mask, .all = true});
}

void async_end(cluster *c)
{
    while (c->first != NULL) {
        async_op *op = take(c, NULL);
        const async_signal *s = &op->signals[0];
        if (!op->grouped && !op->optional && machine_checks(op->by, HONE_EMU_CHECK_ASYNC)) {
            machine_fault(op->by, op->i, op->lane, s->at, FAULT_ASYNC,
                          "%u bytes for the mbarrier at %u are still on their way when the CTA "
                          "ends: nobody waited for them",
                          s->bytes, s->at);
        }
        async_drop(op);
    }
    for (uint32_t n = 0; n < c->ctas_len; n++) {
        cta *t = &c->ctas[n];
        for (uint32_t k = 0; k < t->warps_len; k++) {
            copy_forget(&t->warps[k]);
        }
        mbarrier_end(t);
    }
}
