/* schedule.c - one launch: clusters of CTAs one after the other, the warps of one in turns. The
 * seed moves the order of warps and the length of turns, so that a result that depends on either
 * shows. */
#include "emulator/machine/async.h"
#include "emulator/machine/counters.h"

#include <stdlib.h>

enum {
    TURN = 4096, /* warp instructions of a turn when the seed is 0 */
    CTA_WARPS = 32,
    CLUSTER_CTAS = 16, /* the largest cluster that a device takes */
    /* Polls of one lane group that found nothing, in a row, after which the warp is left alone
     * while others run: the first may be a look ahead, with work to do behind it. */
    POLLS_IN_VAIN = 3,
    /* Rounds without any change, while some warp polls and others run, after which the oldest
     * operation is done all the same: those others may spin on what it brings. */
    PATIENCE = 64,
    /* Rounds in which every warp only polled, with nothing outstanding: a loop that gives up after
     * a number of tries has had its chance. */
    IDLE_ROUNDS = 256,
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

/* Each cluster has a sequence of its own, so that its schedule does not hang on what ran before. */
static void seed_random(run_state *run, uint64_t linear)
{
    uint64_t x = run->launch->schedule_seed * UINT64_C(0x9E3779B97F4A7C15) ^
                 (linear + 1) * UINT64_C(0xBF58476D1CE4E5B9);

    x ^= x >> 31;
    run->random = x | 1;
}

static uint32_t order_warps(run_state *run, cluster *c, warp *order[CTA_WARPS * CLUSTER_CTAS])
{
    uint32_t len = 0;

    for (uint32_t n = 0; n < c->ctas_len; n++) {
        for (uint32_t k = 0; k < c->ctas[n].warps_len; k++) {
            order[len++] = &c->ctas[n].warps[k];
        }
    }
    for (uint32_t n = run->launch->schedule_seed == 0 ? 0 : len; n > 1; n--) {
        uint32_t other = (uint32_t)(next_random(run) % n);
        warp *keep = order[n - 1];
        order[n - 1] = order[other];
        order[other] = keep;
    }
    return len;
}

static void take_turn(cluster *c, warp *w)
{
    run_state *run = w->run;
    uint64_t turn = run->launch->schedule_seed == 0 ? TURN : UINT64_C(16) << (next_random(run) % 9);
    uint64_t before = run->counters.warp_instructions;

    special_fill_clocks(w);
    warp_run(w, turn);
    c->ran += run->counters.warp_instructions - before;
    w->polls = w->yields && w->polled == c->changes ? w->polls + 1 : 0;
}

/* Looking again is in vain: each of its groups of lanes has polled, and nothing has changed since.
 */
static bool polls_in_vain(const cluster *c, const warp *w)
{
    uint32_t groups = w->diverged ? (uint32_t)__builtin_popcount(w->live) : 1;

    return w->polled == c->changes && w->polls >= POLLS_IN_VAIN * groups;
}

typedef struct tally {
    uint32_t ran, vain; /* warps that had a turn; that are ready, but poll in vain */
} tally;

static tally run_round(cluster *c, bool all)
{
    warp *order[CTA_WARPS * CLUSTER_CTAS];
    run_state *run = c->run;
    uint32_t len = order_warps(run, c, order);
    tally t = {0};

    for (uint32_t n = 0; n < len && !run->faulted; n++) {
        warp *w = order[n];
        if (w->state != WARP_READY) {
            continue;
        }
        if (!all && polls_in_vain(c, w)) {
            t.vain++;
            continue;
        }
        t.ran++;
        take_turn(c, w);
    }
    return t;
}

/* Nobody made a step but polls in vain: an engine must, or nobody ever will. */
static void wake(cluster *c, uint32_t vain)
{
    if (async_complete_one(c)) {
        return;
    }
    if (vain == 0 || ++c->idle_rounds > IDLE_ROUNDS) {
        cluster_report_deadlock(c);
        return;
    }
    run_round(c, true);
}

/* A turn for each warp of the cluster that can use it. */
static void step(cluster *c)
{
    tally t = run_round(c, false);

    if (c->run->faulted || c->done_len == c->ctas_len) {
        return;
    }
    c->rounds = c->seen == c->changes ? c->rounds + 1 : 0;
    c->idle_rounds = c->seen == c->changes ? c->idle_rounds : 0;
    c->seen = c->changes;
    if (t.ran == 0) {
        wake(c, t.vain);
    } else if (t.vain > 0 && c->rounds > PATIENCE && async_complete_one(c)) {
        c->rounds = 0;
    }
    if (c->ran > CTA_BUDGET * c->ctas_len) {
        cluster_report_hang(c);
    }
}

static void run_cluster(run_state *run, cluster *c, uint64_t linear)
{
    seed_random(run, linear);
    counters_begin_cluster(run);
    cluster_begin(c, linear);
    while (c->done_len < c->ctas_len && !run->faulted) {
        step(c);
    }
    async_end(c);
    run->counters.ctas_run += c->ctas_len;
    counters_end_cluster(run);
}

/* The cluster that holds a CTA of the grid. */
static uint64_t cluster_of(const cluster *c, const machine_launch *l, uint64_t cta_linear)
{
    uint64_t x = cta_linear % l->grid[0], y = cta_linear / l->grid[0] % l->grid[1];
    uint64_t z = cta_linear / l->grid[0] / l->grid[1];

    return x / c->dims[0] +
           (uint64_t)(l->grid[0] / c->dims[0]) *
               (y / c->dims[1] + (uint64_t)(l->grid[1] / c->dims[1]) * (z / c->dims[2]));
}

/* The n-th cluster to run; false when an earlier one of the sample was the same. */
static bool pick_cluster(const cluster *c, const machine_launch *l, uint64_t n, uint64_t *linear)
{
    *linear = l->sample != NULL ? cluster_of(c, l, l->sample[n]) : n;
    for (uint64_t k = 0; l->sample != NULL && c->ctas_len > 1 && k < n; k++) {
        if (cluster_of(c, l, l->sample[k]) == *linear) {
            return false;
        }
    }
    return true;
}

hone_status schedule_launch(run_state *run, hone_error *error)
{
    const machine_launch *l = run->launch;
    uint64_t total = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2], linear = 0;
    uint64_t count = l->sample != NULL ? l->sample_len : total / cluster_size(l);
    cluster c = {0};
    hone_status status = HONE_OK;

    TRY(cluster_open(&c, run, error));
    run->counters.ctas_total = total;
    for (uint64_t n = 0; n < count && !run->faulted; n++) {
        if (pick_cluster(&c, l, n, &linear)) {
            run_cluster(run, &c, linear);
        }
    }
    if (run->out_of_memory) {
        status = status_set(error, HONE_NO_MEMORY, run->kernel->name, 0, "state of the launch");
    }
done:
    cluster_close(&c);
    return status;
}
