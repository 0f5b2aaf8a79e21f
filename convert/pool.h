/* pool.h - jobs in order of their number on several threads, their results merged in that order: a
 * run's sums do not depend on which thread was faster. */
#ifndef HONE_CONVERT_POOL_H
#define HONE_CONVERT_POOL_H

#include "core/status.h"

typedef struct pool_work {
    uint64_t jobs;
    unsigned threads;     /* at least 1 */
    size_t scratch_bytes; /* memory of a thread's own, 64-byte aligned; 0: none */
    size_t result_bytes;  /* of a job; at least 1 */
    void *context;
    /* Do job `job`; *result is zeroed before. From any thread. */
    hone_status (*run)(void *context, uint64_t job, void *scratch, void *result, hone_error *error);
    /* Take job `job`'s result, in the order of jobs, from one thread at a time. */
    void (*merge)(void *context, uint64_t job, const void *result);
    /* At least once, then some ten times a second, from the calling thread and with the number of
     * merged jobs; non-zero cancels, jobs that run are finished. May be NULL. */
    int (*progress)(void *context, uint64_t done);
} pool_work;

/* Run all jobs. The first failure in the order of jobs ends the run and is its status; what runs
 * is finished, nothing new begins. HONE_CANCELLED when `progress` said so. */
hone_status pool_run(const pool_work *work, hone_error *error);

/* One a core that this process may use. */
unsigned pool_threads(void);

#endif
