/* grid.c - all clusters of a launch on one host thread: one after the other, in turns when they may
 * wait for one another. A launch that is cooperative has all of them at once. Another one begins
 * with the first; when that runs long and its CTAs may talk to those of others, the next joins, up
 * to what the device would hold. */
#include "emulator/machine/async.h"
#include "emulator/machine/counters.h"

#include <stdlib.h>

enum {
    THREADS_PER_SM = 2048, /* of every arch here, where nobody said what the device holds */
    CTAS_PER_SM = 32,
    JOIN_FIRST = 1 << 22, /* warp instructions without an end after which another cluster joins, */
    JOIN_NEXT = 1 << 18,  /* and after which one more does */
};

typedef struct grid {
    run_state *run;
    cluster **slots;
    bool *busy;
    uint64_t slots_len, slots_most, next, count;
    uint64_t charged; /* bytes, against the budget of the device's memory */
    uint64_t quiet;   /* warp instructions of the run when a cluster last began or ended */
} grid;

uint64_t grid_count(const machine_launch *l)
{
    return l->sample != NULL ? l->sample_len
                             : (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] / cluster_size(l);
}

static uint32_t wide(const machine_launch *l, int d)
{
    return l->cluster[d] > 0 ? l->cluster[d] : 1;
}

/* The cluster that holds a CTA of the grid. */
static uint64_t cluster_of(const machine_launch *l, uint64_t linear)
{
    uint64_t x = linear % l->grid[0], y = linear / l->grid[0] % l->grid[1];
    uint64_t z = linear / l->grid[0] / l->grid[1];
    uint64_t row = l->grid[0] / wide(l, 0), plane = row * (l->grid[1] / wide(l, 1));

    return x / wide(l, 0) + row * (y / wide(l, 1)) + plane * (z / wide(l, 2));
}

bool grid_pick(const machine_launch *l, uint64_t n, uint64_t *linear)
{
    *linear = l->sample != NULL ? cluster_of(l, l->sample[n]) : n;
    for (uint64_t k = 0; l->sample != NULL && cluster_size(l) > 1 && k < n; k++) {
        if (cluster_of(l, l->sample[k]) == *linear) {
            return false;
        }
    }
    return true;
}

static uint64_t resident(const machine_launch *l)
{
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2], ctas = 0;

    if (l->resident > 0) {
        return l->resident;
    }
    ctas = THREADS_PER_SM / threads < CTAS_PER_SM ? THREADS_PER_SM / threads : CTAS_PER_SM;
    ctas *= l->sm_count > 0 ? (uint64_t)l->sm_count : 1;
    return ctas > cluster_size(l) ? ctas / cluster_size(l) : 1;
}

static hone_status add_slot(grid *g, hone_error *error)
{
    hone_status status = HONE_OK;
    const machine_launch *l = g->run->launch;
    uint64_t bytes = cluster_bytes(l);
    cluster *c = NULL;

    TRY(memory_charge(l->memory, bytes, error));
    g->charged += bytes;
    c = calloc(1, sizeof *c);
    if (c == NULL) {
        return status_set(error, HONE_NO_MEMORY, g->run->kernel->name, 0, "a cluster");
    }
    status = cluster_open(c, g->run, error);
    if (status == HONE_OK) {
        g->slots[g->slots_len++] = c;
        c = NULL;
    }
done:
    if (c != NULL) {
        cluster_close(c);
        free(c);
    }
    return status;
}

/* The next cluster takes the slot; false when there is none left. */
static bool begin_next(grid *g, uint64_t slot)
{
    uint64_t linear = 0;

    while (g->next < g->count) {
        if (grid_pick(g->run->launch, g->next++, &linear)) {
            if (g->slots_len == 1) {
                counters_begin_cluster(g->run);
            }
            schedule_begin(g->slots[slot], linear);
            g->busy[slot] = true;
            g->run->resident++;
            g->quiet = g->run->counters.warp_instructions;
            return true;
        }
    }
    return false;
}

static void end_cluster(grid *g, uint64_t slot)
{
    schedule_end(g->slots[slot]);
    g->busy[slot] = false;
    g->run->resident--;
    g->quiet = g->run->counters.warp_instructions;
    if (g->slots_len == 1) {
        counters_end_cluster(g->run);
    }
}

/* The first may wait for one that has not begun. Without memory for another it goes on alone. */
static void join(grid *g)
{
    uint64_t patience = g->slots_len == 1 ? JOIN_FIRST : JOIN_NEXT;

    if (g->run->kernel->talks && g->slots_len < g->slots_most && g->next < g->count &&
        g->run->counters.warp_instructions - g->quiet > patience && add_slot(g, NULL) == HONE_OK) {
        begin_next(g, g->slots_len - 1);
    }
}

static void run_all(grid *g)
{
    bool more = true;

    while (more && !g->run->faulted) {
        more = false;
        for (uint64_t n = 0; n < g->slots_len && !g->run->faulted; n++) {
            cluster *c = g->slots[n];
            if (!g->busy[n] && !begin_next(g, n)) {
                continue;
            }
            more = true;
            schedule_step(c);
            if (c->done_len == c->ctas_len) {
                end_cluster(g, n);
            }
        }
        join(g);
    }
    for (uint64_t n = 0; n < g->slots_len; n++) {
        if (g->busy[n]) {
            end_cluster(g, n);
        }
    }
}

static void close_grid(grid *g)
{
    for (uint64_t n = 0; n < g->slots_len; n++) {
        cluster_close(g->slots[n]);
        free(g->slots[n]);
    }
    memory_discharge(g->run->launch->memory, g->charged);
    free(g->slots);
    free(g->busy);
}

hone_status grid_run(run_state *run, hone_error *error)
{
    const machine_launch *l = run->launch;
    hone_status status = HONE_OK;
    grid g = {.run = run, .count = grid_count(l)};

    run->counters.ctas_total = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    g.slots_most = l->cooperative ? g.count : resident(l);
    g.slots_most = g.slots_most < g.count ? g.slots_most : g.count;
    g.slots = calloc(g.slots_most + 1, sizeof(cluster *));
    g.busy = calloc(g.slots_most + 1, sizeof(bool));
    if (g.slots == NULL || g.busy == NULL) {
        status = status_set(error, HONE_NO_MEMORY, run->kernel->name, 0, "state of the launch");
        goto done;
    }
    do {
        TRY(add_slot(&g, error));
    } while (l->cooperative && g.slots_len < g.slots_most);
    run_all(&g);
    if (run->out_of_memory) {
        status = status_set(error, HONE_NO_MEMORY, run->kernel->name, 0, "state of the launch");
    }
done:
    close_grid(&g);
    return status;
}
