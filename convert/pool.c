/* pool.c - see pool.h. */
#include "convert/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
    WINDOW = 4,     /* jobs a thread that may wait to be merged */
    HUGE = 2 << 20, /* bytes of a huge page */
};

typedef struct pool {
    const pool_work *work;
    pthread_mutex_t lock;
    pthread_cond_t merged_more, ended;
    uint64_t next, merged; /* jobs handed out, and merged */
    uint64_t slots;
    bool *done; /* of a slot: job `number` lies at number % slots */
    uint8_t *results;
    unsigned running; /* threads */
    bool stop;
    uint64_t failed; /* the job whose failure counts */
    hone_status status;
    hone_error error;
} pool;

/* Called with the lock. */
static void fail(pool *p, uint64_t job, hone_status status, const hone_error *error)
{
    if (p->status == HONE_OK || job < p->failed) {
        p->status = status;
        p->failed = job;
        p->error = *error;
    }
    p->stop = true;
    pthread_cond_broadcast(&p->merged_more);
}

/* Called with the lock: merge all that is done and next. */
static void merge(pool *p)
{
    const pool_work *w = p->work;

    while (p->merged < p->next && p->done[p->merged % p->slots] && p->status == HONE_OK) {
        const uint64_t slot = p->merged % p->slots;
        w->merge(w->context, p->merged, p->results + slot * w->result_bytes);
        p->done[slot] = false;
        p->merged++;
    }
    pthread_cond_broadcast(&p->merged_more);
}

static void work_on(pool *p, void *scratch)
{
    const pool_work *w = p->work;

    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->stop && p->next < w->jobs && p->next >= p->merged + p->slots) {
            pthread_cond_wait(&p->merged_more, &p->lock);
        }
        if (p->stop || p->next >= w->jobs) {
            break;
        }
        const uint64_t job = p->next++;
        uint8_t *result = p->results + job % p->slots * w->result_bytes;
        pthread_mutex_unlock(&p->lock);
        hone_error error = {0};
        memset(result, 0, w->result_bytes);
        hone_status status = w->run(w->context, job, scratch, result, &error);
        pthread_mutex_lock(&p->lock);
        if (status != HONE_OK) {
            fail(p, job, status, &error);
        } else {
            p->done[job % p->slots] = true;
            merge(p);
        }
    }
    p->running--;
    pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->lock);
}

/* Memory of a thread's own, in huge pages where that is worth one: rows of a tile lie pages apart.
 */
static void *make_scratch(size_t bytes)
{
    const size_t unit = bytes >= HUGE ? HUGE : 64, all = (bytes + unit - 1) / unit * unit;
    void *scratch = aligned_alloc(unit, all);

    if (scratch != NULL && unit == HUGE) {
        madvise(scratch, all, MADV_HUGEPAGE); /* a hint: refused where there are none */
    }
    return scratch;
}

static void *thread_main(void *context)
{
    pool *p = context;
    const size_t bytes = p->work->scratch_bytes;
    void *scratch = bytes > 0 ? make_scratch(bytes) : NULL;

    if (bytes > 0 && scratch == NULL) {
        hone_error error = {0};
        pthread_mutex_lock(&p->lock);
        fail(p, 0, status_set(&error, HONE_NO_MEMORY, NULL, 0, "%zu bytes for a thread", bytes),
             &error);
        pthread_mutex_unlock(&p->lock);
    }
    work_on(p, scratch);
    free(scratch);
    return NULL;
}

/* Called with the lock, which it lets go meanwhile: tell how far the run is. */
static void ask(pool *p)
{
    const pool_work *w = p->work;
    const uint64_t done = p->merged;

    pthread_mutex_unlock(&p->lock);
    const bool cancel = w->progress != NULL && w->progress(w->context, done) != 0;
    pthread_mutex_lock(&p->lock);
    if (cancel && !p->stop) {
        hone_error error = {0};
        fail(p, UINT64_MAX,
             status_set(&error, HONE_CANCELLED, NULL, 0, "stopped; nothing was written"), &error);
    }
}

/* Wait for the threads' end. */
static void watch(pool *p)
{
    pthread_mutex_lock(&p->lock);
    ask(p); /* however short the run */
    while (p->running > 0) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += 100 * 1000 * 1000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&p->ended, &p->lock, &until);
        ask(p);
    }
    pthread_mutex_unlock(&p->lock);
}

static hone_status start(pool *p, pthread_t *threads, unsigned *started, hone_error *error)
{
    for (; *started < p->work->threads; ++*started) {
        pthread_mutex_lock(&p->lock);
        p->running++;
        pthread_mutex_unlock(&p->lock);
        if (pthread_create(&threads[*started], NULL, thread_main, p) != 0) {
            pthread_mutex_lock(&p->lock);
            p->running--;
            pthread_mutex_unlock(&p->lock);
            break;
        }
    }
    return *started > 0 ? HONE_OK
                        : status_set(error, HONE_NO_MEMORY, NULL, 0, "no thread can be started");
}

hone_status pool_run(const pool_work *work, hone_error *error)
{
    hone_status status = HONE_OK;
    pool p = {.work = work, .slots = (uint64_t)work->threads * WINDOW};
    pthread_t *threads = calloc(work->threads, sizeof *threads);
    pthread_condattr_t monotonic;
    unsigned started = 0;

    p.done = calloc(p.slots, sizeof *p.done);
    p.results = calloc(p.slots, work->result_bytes);
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.merged_more, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p.ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (threads == NULL || p.done == NULL || p.results == NULL) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "%u threads", work->threads);
        goto done;
    }
    TRY(start(&p, threads, &started, error));
    watch(&p);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    status = p.status;
    if (status != HONE_OK && error != NULL) {
        *error = p.error;
    }
done:
    pthread_cond_destroy(&p.ended);
    pthread_cond_destroy(&p.merged_more);
    pthread_mutex_destroy(&p.lock);
    free(threads);
    free(p.done);
    free(p.results);
    return status;
}

unsigned pool_threads(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0
               ? (unsigned)CPU_COUNT(&set)
               : 1;
}
