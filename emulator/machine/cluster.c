/* cluster.c - CTAs that run together: their memory, their beginning, and the barrier of the
 * cluster. That one counts threads: it opens when every thread that has not exited has arrived. */
#include "emulator/machine/async.h"
#include "emulator/machine/copy.h"
#include "emulator/machine/mbarrier.h"
#include "emulator/machine/tensor_map_use.h"
#include "emulator/exec/wgmma.h"

#include <stdlib.h>
#include <string.h>

static uint32_t threads_of(const machine_launch *l)
{
    return l->block[0] * l->block[1] * l->block[2];
}

static uint32_t at_least_one(uint32_t n)
{
    return n > 0 ? n : 1;
}

uint32_t cluster_size(const machine_launch *l)
{
    return at_least_one(l->cluster[0]) * at_least_one(l->cluster[1]) * at_least_one(l->cluster[2]);
}

uint64_t cluster_bytes(const machine_launch *l)
{
    const ptx_kernel *k = l->kernel;
    uint64_t warps = (threads_of(l) + MACHINE_LANES - 1) / MACHINE_LANES;
    uint64_t image = k->image_bytes + k->image_bytes / MACHINE_SLOT * sizeof(uint32_t);
    uint64_t local = 2 * (uint64_t)k->local_bytes * MACHINE_LANES;
    uint64_t shared = 2 * ((uint64_t)k->static_shared_bytes + l->dynamic_shared_bytes);

    return cluster_size(l) * (sizeof(cta) + shared + warps * (sizeof(warp) + image + local));
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
                  .copies = w->copies,
                  .copies_capacity = w->copies_capacity,
                  .wgmma = w->wgmma,
                  .registers = registers_at_start(w->run->launch),
                  .tainted = k->starts_tainted && machine_checks(w, HONE_EMU_CHECK_UNINITIALISED),
                  .live = lanes >= MACHINE_LANES ? MACHINE_ALL : (UINT32_C(1) << lanes) - 1};

    *w = fresh;
    wgmma_begin(w);
    memcpy(w->r, k->image,
           k->predicate_bytes); /* the rest of the image holds what is never written */
    memcpy(w->poison, k->poison, k->image_bytes / MACHINE_SLOT * sizeof *w->poison);
    memset(w->local_shadow, 0, (size_t)k->local_bytes * MACHINE_LANES);
    special_fill_warp(w);
}

static void begin_cta(cta *t, const machine_launch *l)
{
    const cluster *c = t->cluster;
    const uint32_t inside[3] = {t->rank % c->dims[0], t->rank / c->dims[0] % c->dims[1],
                                t->rank / c->dims[0] / c->dims[1]};

    for (int d = 0; d < 3; d++) {
        t->index[d] = c->index[d] * c->dims[d] + inside[d];
    }
    t->linear = t->index[0] + l->grid[0] * (t->index[1] + (uint64_t)l->grid[1] * t->index[2]);
    t->done_len = 0;
    t->registers_free = 0;
    for (uint32_t id = 0; id < MACHINE_BARRIERS; id++) {
        race_clock_free(&t->barriers[id].clock);
        t->barriers[id] = (cta_barrier){0};
    }
    memset(t->shared_shadow, 0, t->shared_bytes);
    mbarrier_forget(t);
    tensor_map_forget(t);
    for (uint32_t n = 0; n < t->warps_len; n++) {
        begin_warp(&t->warps[n], threads_of(l));
    }
}

void cluster_begin(cluster *c, uint64_t linear)
{
    const machine_launch *l = c->run->launch;
    uint64_t wide = l->grid[0] / c->dims[0], high = l->grid[1] / c->dims[1];

    c->linear = linear;
    c->index[0] = (uint32_t)(linear % wide);
    c->index[1] = (uint32_t)(linear / wide % high);
    c->index[2] = (uint32_t)(linear / wide / high);
    c->changes = 1; /* a warp that never polled has polled at 0 */
    c->done_len = c->arrived = c->rounds = c->idle_rounds = 0;
    c->seen = c->ran = 0;
    c->live = threads_of(l) * c->ctas_len;
    race_clock_free(&c->arriving);
    race_clock_free(&c->passed);
    for (uint32_t n = 0; n < c->ctas_len; n++) {
        begin_cta(&c->ctas[n], l);
    }
    race_begin(c); /* remembers which CTAs these are */
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

static bool open_cta(cta *t, run_state *run)
{
    const machine_launch *l = run->launch;
    bool good = true;

    t->warps_len = (threads_of(l) + MACHINE_LANES - 1) / MACHINE_LANES;
    t->shared_bytes = run->kernel->static_shared_bytes + l->dynamic_shared_bytes;
    t->warps = calloc(t->warps_len, sizeof *t->warps);
    t->shared = calloc(1, t->shared_bytes + 1u);
    t->shared_shadow = calloc(1, t->shared_bytes + 1u);
    good = t->warps != NULL && t->shared != NULL && t->shared_shadow != NULL;
    for (uint32_t n = 0; good && n < t->warps_len; n++) {
        warp *w = &t->warps[n];
        w->cta = t;
        w->run = run;
        w->index = n;
        good = open_warp(w, run->kernel);
    }
    return good;
}

hone_status cluster_open(cluster *c, run_state *run, hone_error *error)
{
    const machine_launch *l = run->launch;

    c->run = run;
    c->ctas_len = cluster_size(l);
    for (int d = 0; d < 3; d++) {
        c->dims[d] = at_least_one(l->cluster[d]);
    }
    c->ctas = calloc(c->ctas_len, sizeof *c->ctas);
    bool good = c->ctas != NULL;
    for (uint32_t n = 0; good && n < c->ctas_len; n++) {
        c->ctas[n].cluster = c;
        c->ctas[n].rank = n;
        good = open_cta(&c->ctas[n], run);
    }
    if (!good) {
        return status_set(error, HONE_NO_MEMORY, run->kernel->name, 0,
                          "a cluster of %u CTAs of %u threads", c->ctas_len, threads_of(l));
    }
    return race_open(c, error);
}

static void close_cta(cta *t)
{
    for (uint32_t n = 0; t->warps != NULL && n < t->warps_len; n++) {
        warp *w = &t->warps[n];
        free(w->r);
        free(w->poison);
        free(w->local);
        free(w->local_shadow);
        copy_close(w);
        wgmma_close(w);
    }
    for (uint32_t id = 0; id < MACHINE_BARRIERS; id++) {
        race_clock_free(&t->barriers[id].clock);
    }
    mbarrier_close(t);
    tensor_map_close(t);
    free(t->warps);
    free(t->shared);
    free(t->shared_shadow);
}

void cluster_close(cluster *c)
{
    for (uint32_t n = 0; c->ctas != NULL && n < c->ctas_len; n++) {
        close_cta(&c->ctas[n]);
    }
    race_clock_free(&c->arriving);
    race_clock_free(&c->passed);
    race_close(c);
    free(c->ctas);
}

/* Every thread that is left has arrived: the phase is over. */
static void complete_if_full(cluster *c)
{
    if (c->arrived == 0 || c->arrived < c->live) {
        return;
    }
    race_clock_free(&c->passed);
    c->passed = c->arriving;
    c->arriving = NULL;
    for (uint32_t n = 0; n < c->ctas_len; n++) {
        for (uint32_t k = 0; k < c->ctas[n].warps_len; k++) {
            warp *w = &c->ctas[n].warps[k];
            uint32_t waiting = w->waits[MACHINE_WAIT_CLUSTER];
            w->cluster_passed |= w->cluster_arrived & ~waiting;
            w->cluster_arrived = 0;
            if (waiting != 0) {
                race_warp_sync(w, waiting);
                race_acquire(w, c->passed);
                barrier_release(w, MACHINE_WAIT_CLUSTER);
            }
        }
    }
    c->arrived = 0;
}

void cluster_arrive(warp *w, const instruction *i, uint32_t mask)
{
    cluster *c = w->cta->cluster;
    uint32_t again = mask & (w->cluster_arrived | w->cluster_passed);

    if (again != 0) {
        machine_fault(w, i, machine_lowest(again), 0, FAULT_BARRIER_DIVERGENCE,
                      "the cluster's barrier: lanes %08x arrive again without a wait between",
                      again);
        return;
    }
    if (i->order & ORDER_RELEASE) {
        race_release(w, &c->arriving);
    } else { /* as after fence.mbarrier_init, the usual way to begin */
        race_release_fenced(w, &c->arriving);
    }
    w->cluster_arrived |= mask;
    c->arrived += (uint32_t)__builtin_popcount(mask);
    w->run->counters.barriers++;
    complete_if_full(c);
}

void cluster_wait(warp *w, const instruction *i, uint32_t mask)
{
    cluster *c = w->cta->cluster;
    uint32_t early = mask & ~(w->cluster_arrived | w->cluster_passed);

    if (early != 0) {
        machine_fault(w, i, machine_lowest(early), 0, FAULT_BARRIER_DIVERGENCE,
                      "the cluster's barrier: lanes %08x wait without having arrived", early);
        return;
    }
    if ((mask & w->cluster_passed) != 0) {
        race_acquire(w, c->passed);
    }
    w->waits[MACHINE_WAIT_CLUSTER] |= mask & w->cluster_arrived;
    w->blocked |= mask & w->cluster_arrived;
    w->cluster_passed &= ~mask;
}

void cluster_leave(warp *w, uint32_t leaving)
{
    cluster *c = w->cta->cluster;

    c->arrived -= (uint32_t)__builtin_popcount(w->cluster_arrived & leaving);
    c->live -= (uint32_t)__builtin_popcount(leaving);
    w->cluster_arrived &= ~leaving;
    w->cluster_passed &= ~leaving;
    complete_if_full(c);
}
