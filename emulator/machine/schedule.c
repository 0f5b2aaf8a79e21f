/* schedule.c - one launch: CTAs one after the other, their warps in turns. The seed moves the order
 * of warps and the length of turns, so that a result that depends on either shows. */
#include "emulator/machine/async.h"
#include "emulator/machine/counters.h"
#include "emulator/machine/mbarrier.h"
#include "emulator/exec/wgmma.h"
#include "core/checked.h"

#include <stdlib.h>
#include <string.h>

enum {
    TURN = 4096, /* warp instructions of a turn when the seed is 0 */
    CTA_WARPS = 32,
};
/* A CTA of our largest kernels runs about a million warp instructions; this is a hundred times
 * that. */
#define CTA_BUDGET (UINT64_C(1) << 27)

static uint64_t next_random(run_state *run)
{
    uint64_t x = run->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    run->random = x;
    return x * UINT64_C(0x2545F4914F6CDD1D);
}

static void order_warps(run_state *run, uint32_t *order, uint32_t len)
{
    for (uint32_t n = 0; n < len; n++) {
        order[n] = n;
    }
    if (run->launch->schedule_seed == 0) {
        return;
    }
    for (uint32_t n = len; n > 1; n--) {
        uint32_t other = (uint32_t)(next_random(run) % n), keep = order[n - 1];
        order[n - 1] = order[other];
        order[other] = keep;
    }
}

static void begin_warp(warp *w, uint32_t threads)
{
    const ptx_kernel *k = w->run->kernel;
    uint32_t lanes = threads - w->index * MACHINE_LANES;
    warp fresh = {.r = w->r,
                  .poison = w->poison,
                  .cta = w->cta,
                  .run = w->run,
                  .index = w->index,
                  .local = w->local,
                  .local_shadow = w->local_shadow,
                  .wgmma = w->wgmma,
                  .copies = w->copies,
                  .copies_capacity = w->copies_capacity,
                  .tainted = k->starts_tainted && machine_checks(w, HONE_EMU_CHECK_UNINITIALISED),
                  .live = lanes >= MACHINE_LANES ? MACHINE_ALL : (UINT32_C(1) << lanes) - 1};

    *w = fresh;
    memcpy(w->r, k->image,
           k->predicate_bytes); /* the rest of the image holds what is never written */
    memcpy(w->poison, k->poison, k->image_bytes / MACHINE_SLOT * sizeof *w->poison);
    memset(w->local_shadow, 0, (size_t)k->local_bytes * MACHINE_LANES);
    special_fill_warp(w);
}

static void begin_cta(cta *c, const machine_launch *l, uint64_t linear)
{
    uint32_t threads = l->block[0] * l->block[1] * l->block[2];

    c->linear = linear;
    c->index[0] = (uint32_t)(linear % l->grid[0]);
    c->index[1] = (uint32_t)(linear / l->grid[0] % l->grid[1]);
    c->index[2] = (uint32_t)(linear / l->grid[0] / l->grid[1]);
    c->done_len = 0;
    mbarrier_forget(c);
    memset(c->barriers, 0, sizeof c->barriers);
    memset(c->shared_shadow, 0, c->shared_bytes);
    for (uint32_t n = 0; n < c->warps_len; n++) {
        begin_warp(&c->warps[n], threads);
    }
}

static void take_turn(warp *w)
{
    run_state *run = w->run;
    uint64_t turn = run->launch->schedule_seed == 0 ? TURN : UINT64_C(16) << (next_random(run) % 9);

    special_fill_clocks(w);
    warp_run(w, turn);
    if (w->state == WARP_DONE) {
        barrier_warp_done(w->cta);
    }
}

static void run_cta(run_state *run, cta *c)
{
    uint32_t order[CTA_WARPS];
    uint64_t limit = run->counters.warp_instructions + CTA_BUDGET;

    while (c->done_len < c->warps_len && !run->faulted) {
        bool ran = false;
        order_warps(run, order, c->warps_len);
        for (uint32_t n = 0; n < c->warps_len && !run->faulted; n++) {
            warp *w = &c->warps[order[n]];
            if (w->state == WARP_READY) {
                ran = true;
                take_turn(w);
            }
        }
        if (!ran && !async_complete_one(c->cluster)) {
            barrier_deadlock(c);
        } else if (run->counters.warp_instructions > limit && !run->faulted) {
            warp_report_hang(c);
        }
    }
}

static void close_cta(cta *c)
{
    for (uint32_t n = 0; c->warps != NULL && n < c->warps_len; n++) {
        warp *w = &c->warps[n];
        free(w->r);
        free(w->poison);
        free(w->local);
        free(w->local_shadow);
        free(w->copies);
        wgmma_close(w);
    }
    mbarrier_close(c);
    free(c->warps);
    free(c->shared);
    free(c->shared_shadow);
}

static bool open_warp(warp *w, const ptx_kernel *k)
{
    size_t local = (size_t)k->local_bytes * MACHINE_LANES;

    w->r = aligned_alloc(64, k->image_bytes);
    w->poison = calloc(k->image_bytes / MACHINE_SLOT, sizeof *w->poison);
    w->local = calloc(1, local + 1);
    w->local_shadow = calloc(1, local + 1);
    if (w->r != NULL) {
        memcpy(w->r, k->image, k->image_bytes);
    }
    return w->r != NULL && w->poison != NULL && w->local != NULL && w->local_shadow != NULL;
}

static hone_status open_cta(run_state *run, cta *c, hone_error *error)
{
    const machine_launch *l = run->launch;
    uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    bool good = true;

    c->warps_len = (threads + MACHINE_LANES - 1) / MACHINE_LANES;
    c->shared_bytes = run->kernel->static_shared_bytes + l->dynamic_shared_bytes;
    c->warps = calloc(c->warps_len, sizeof *c->warps);
    c->shared = calloc(1, c->shared_bytes + 1u);
    c->shared_shadow = calloc(1, c->shared_bytes + 1u);
    good = c->warps != NULL && c->shared != NULL && c->shared_shadow != NULL;
    for (uint32_t n = 0; good && n < c->warps_len; n++) {
        warp *w = &c->warps[n];
        w->cta = c;
        w->run = run;
        w->index = n;
        good = open_warp(w, run->kernel);
    }
    return good ? HONE_OK
                : status_set(error, HONE_NO_MEMORY, run->kernel->name, 0, "a CTA of %u threads",
                             threads);
}

static uint64_t ctas_of(const machine_launch *l)
{
    return (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
}

hone_status schedule_launch(run_state *run, hone_error *error)
{
    const machine_launch *l = run->launch;
    uint64_t total = ctas_of(l), count = l->sample != NULL ? l->sample_len : total;
    cta c = {0};
    cluster together = {.run = run, .ctas = &c, .ctas_len = 1, .dims = {1, 1, 1}};
    hone_status status = HONE_OK;

    c.cluster = &together;
    TRY(open_cta(run, &c, error));
    run->counters.ctas_total = total;
    for (uint64_t n = 0; n < count && !run->faulted; n++) {
        begin_cta(&c, l, l->sample != NULL ? l->sample[n] : n);
        counters_begin_cluster(run);
        run_cta(run, &c);
        async_end(&together);
        run->counters.ctas_run++;
        counters_end_cluster(run);
        if (run->out_of_memory) {
            status = status_set(error, HONE_NO_MEMORY, run->kernel->name, 0, "state of the launch");
            goto done;
        }
    }
done:
    close_cta(&c);
    return status;
}
