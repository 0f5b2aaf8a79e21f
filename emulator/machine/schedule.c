/* schedule.c - one cluster of CTAs: its warps in turns. The seed moves the order of warps and the
 * length of turns, so that a result that depends on either shows. */
#include "emulator/machine/async.h"

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
/* Where many run in turns, each gets less of it. */
#define CTA_BUDGET_SHARED (UINT64_C(1) << 24)

static uint64_t budget_of(const run_state *run)
{
    return run->launch->budget > 0 ? run->launch->budget
           : run->resident > 8     ? CTA_BUDGET_SHARED
                                   : CTA_BUDGET;
}

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
    uint64_t before = run->counters.warp_instructions, last = w->polled;

    w->polled = 0;
    special_fill_clocks(w);
    warp_run(w, turn);
    c->ran += run->counters.warp_instructions - before;
    if (w->polled == 0) { /* none in this turn; one that slept polls again when it wakes */
        w->polled = last;
        w->polls = w->yields ? w->polls : 0;
    } else {
        w->polls = w->polled != c->changes ? 0 : w->polled == last ? w->polls + 1 : 1;
    }
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

void schedule_step(cluster *c)
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
    if (c->ran > budget_of(c->run) * c->ctas_len) {
        cluster_report_hang(c);
    }
}

void schedule_begin(cluster *c, uint64_t linear)
{
    seed_random(c->run, linear);
    cluster_begin(c, linear);
}

void schedule_end(cluster *c)
{
    async_end(c);
    c->run->counters.ctas_run += c->ctas_len;
}

/* A cluster that runs before this one has a fault, and that is the launch's. */
static bool given_up(const run_state *run)
{
    return run->fault_at != NULL && __atomic_load_n(run->fault_at, __ATOMIC_RELAXED) < run->running;
}

bool schedule_run(cluster *c, uint64_t linear)
{
    bool over = false;

    schedule_begin(c, linear);
    while (c->done_len < c->ctas_len && !c->run->faulted && !over) {
        schedule_step(c);
        over = given_up(c->run);
    }
    schedule_end(c);
    return !over;
}
