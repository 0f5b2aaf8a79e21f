/* threads.c - the clusters of a launch on several host threads. Each takes the next in order; what
 * they counted is added in that order too, and ends with the first cluster that has a fault: the
 * same figures and the same fault as on one thread. */
#include "emulator/machine/counters.h"
#include "emulator/machine/profile.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    THREADS_MOST = 64,
    WINDOW = 256, /* clusters that may be ahead of the first one that still runs */
};

typedef struct outcome {
    hone_emu_counters counters;
    uint64_t pipes[PIPE_COUNT];
    bool ended, counts; /* counts: not one that was passed over */
} outcome;

typedef struct crew {
    run_state *total;
    pthread_mutex_t lock; /* guards all below; fault_at is also read without */
    pthread_cond_t moved; /* `added` has */
    uint64_t next, added, count;
    uint64_t fault_at; /* the lowest so far */
    outcome window[WINDOW];
    uint32_t members; /* threads that have room to run a cluster */
    bool out_of_memory;
    hone_status status; /* of the first thread that failed without a fault of the kernel */
    hone_error error;
} crew;

/* In order, as far as they have ended: no gap, nothing behind a fault. */
static void add_up(crew *c)
{
    outcome *o = &c->window[c->added % WINDOW];

    while (c->added < c->next && c->added <= c->fault_at && o->ended) {
        if (o->counts) {
            run_state one = {.counters = o->counters};
            for (size_t n = 0; n < PIPE_COUNT; n++) {
                one.pipes[n] = o->pipes[n];
            }
            counters_begin_cluster(c->total);
            counters_merge(c->total, &one);
            counters_end_cluster(c->total);
        }
        *o = (outcome){0};
        o = &c->window[++c->added % WINDOW];
    }
    pthread_cond_broadcast(&c->moved);
}

/* The place of the next cluster in the order; false when there is nothing left to do. */
static bool take(crew *c, uint64_t *place)
{
    pthread_mutex_lock(&c->lock);
    while (c->next < c->count && c->next < c->fault_at && c->next - c->added >= WINDOW &&
           !c->out_of_memory) {
        pthread_cond_wait(&c->moved, &c->lock);
    }
    bool more = c->next < c->count && c->next < c->fault_at && !c->out_of_memory;
    *place = more ? c->next++ : 0;
    pthread_mutex_unlock(&c->lock);
    return more;
}

static void hand_in(crew *c, run_state *run, uint64_t place, bool counts)
{
    outcome *o = &c->window[place % WINDOW];

    pthread_mutex_lock(&c->lock);
    *o = (outcome){.counters = run->counters, .ended = true, .counts = counts};
    for (size_t n = 0; n < PIPE_COUNT; n++) {
        o->pipes[n] = run->pipes[n];
    }
    c->out_of_memory |= run->out_of_memory;
    if (run->faulted && !run->out_of_memory && place < c->fault_at) {
        __atomic_store_n(&c->fault_at, place, __ATOMIC_RELAXED);
        c->total->fault = run->fault;
        free(c->total->places);
        c->total->places = run->places;
        run->places = NULL;
        c->total->faulted = true;
    }
    add_up(c);
    pthread_mutex_unlock(&c->lock);
}

static void run_clusters(crew *c, run_state *run, cluster *mine)
{
    uint64_t place = 0, linear = 0;

    while (!run->faulted && take(c, &place)) {
        run->counters = (hone_emu_counters){0};
        for (size_t n = 0; n < PIPE_COUNT; n++) {
            run->pipes[n] = 0;
        }
        run->running = place;
        bool fresh = grid_pick(run->launch, place, &linear);
        if (fresh && !schedule_run(mine, linear)) {
            return; /* behind a fault: nobody asks for its counters */
        }
        hand_in(c, run, place, fresh);
    }
}

/* Lines and counters by instruction do not hang on the order. */
static void merge(crew *c, const run_state *run)
{
    pthread_mutex_lock(&c->lock);
    if (c->status == HONE_OK) {
        c->status = global_merge(c->total, run, &c->error);
    }
    if (run->profile != NULL) {
        profile_merge(c->total, run);
    }
    pthread_mutex_unlock(&c->lock);
}

static hone_status work(crew *c, hone_error *error)
{
    hone_status status = HONE_OK;
    const machine_launch *l = c->total->launch;
    run_state run = {0};
    cluster mine = {0};
    uint64_t charged = 0;

    TRY(memory_charge(l->memory, cluster_bytes(l), error));
    charged = cluster_bytes(l);
    TRY(machine_open_run(&run, l, error));
    run.fault_at = &c->fault_at;
    TRY(cluster_open(&mine, &run, error));
    __atomic_add_fetch(&c->members, 1, __ATOMIC_RELAXED);
    run_clusters(c, &run, &mine);
    merge(c, &run);
done:
    cluster_close(&mine);
    machine_close_run(&run);
    memory_discharge(l->memory, charged);
    return status;
}

/* One that finds no memory leaves the work to the others. */
static void *member(void *argument)
{
    work(argument, NULL);
    return NULL;
}

hone_status threads_run(run_state *run, uint32_t threads, hone_error *error)
{
    const machine_launch *l = run->launch;
    pthread_t others[THREADS_MOST];
    uint32_t started = 0;
    crew *c = calloc(1, sizeof *c);

    if (c == NULL) {
        return status_set(error, HONE_NO_MEMORY, run->kernel->name, 0, "state of the launch");
    }
    c->total = run;
    c->count = grid_count(l);
    c->fault_at = UINT64_MAX;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->moved, NULL);
    run->counters.ctas_total = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    while (started + 1 < threads && started < THREADS_MOST &&
           pthread_create(&others[started], NULL, member, c) == 0) {
        started++;
    }
    hone_status status = work(c, error);
    for (uint32_t n = 0; n < started; n++) {
        pthread_join(others[n], NULL);
    }
    if (status != HONE_OK && c->members > 0) {
        status = HONE_OK; /* the others have done it */
    }
    if (status == HONE_OK && c->status != HONE_OK) {
        status = status_set(error, c->status, run->kernel->name, 0, "%s", c->error.message);
    }
    if (status == HONE_OK && c->out_of_memory) {
        status = status_set(error, HONE_NO_MEMORY, run->kernel->name, 0, "state of the launch");
    }
    pthread_cond_destroy(&c->moved);
    pthread_mutex_destroy(&c->lock);
    free(c);
    return status;
}
