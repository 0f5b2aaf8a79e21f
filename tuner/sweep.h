/* sweep.h - tune problems on a device: every candidate compiled, proved, timed and committed, then
 * a winner for each problem and a new generation.
 *
 * Resumes: what the store holds for this device and these templates is not done again. One thread
 * at a time; compiles run ahead in worker processes while the caller's thread proves. */
#ifndef HONE_TUNER_SWEEP_H
#define HONE_TUNER_SWEEP_H

#include "tuner/engine.h"
#include "tuner/strategy.h"

#define SWEEP_MAX_DEVICES 16

typedef struct sweep_progress {
    uint64_t done, total; /* candidates; total is an estimate until all problems are laid out */
    uint64_t problem, problems;
    const char *doing; /* one line, borrowed for the call */
} sweep_progress;

/* Return non-zero to stop: what is committed stays, a later sweep goes on from there. */
typedef int (*sweep_progress_fn)(void *context, const sweep_progress *progress);

/* A problem ended; without a winner `reason` says why. */
typedef void (*sweep_problem_fn)(void *context, const hone_problem *problem, bool has_winner,
                                 const char *reason);

/* When a sweep ends before it is through. 0: never for this. What is finished then stands, winners
 * are chosen among it, and a later sweep goes on from there. */
typedef struct sweep_limits {
    double seconds;        /* of wall time */
    double device_seconds; /* that candidates took to be proved and timed, on all devices */
    double roof_percent;   /* a problem's search ends with a candidate that reaches it */
} sweep_limits;

typedef struct sweep_options {
    const hone_problem *problems; /* without duplicates */
    size_t problems_len;
    const device *device;
    /* What candidates are proved on: devices of `device`'s kind, which share the work. specs_len 0:
     * `device` alone; at most SWEEP_MAX_DEVICES. */
    const char *const *specs;
    size_t specs_len;
    store *store; /* STORE_WRITE */
    const templates *templates;
    const strategy *strategy;
    engine_open_fn engine; /* called once there is something to do */
    void *engine_context;  /* of engine_options */
    uint64_t budget;       /* candidates of a problem; 0: no limit */
    uint64_t seed;
    bool every_size; /* search for sizes too that lie between two that agree (families.h) */
    int jobs;        /* of engine_options, as the next three */
    uint32_t deadline_ms;
    uint64_t memory_bytes;
    sweep_limits limits;
    const routing *routing;     /* of engine_options: measurements under another one are others */
    const char *command;        /* what was asked for, for the store */
    sweep_progress_fn progress; /* after commits, and before slow steps; NULL: none */
    sweep_problem_fn ended;     /* NULL: none */
    void *context;
} sweep_options;

typedef struct sweep_summary {
    uint64_t problems, winners; /* winners: problems that have one now, or that launch nothing */
    uint64_t settled;           /* problems that had nothing left to do */
    uint64_t tried, ok, rejected, pruned; /* candidates of this run */
    uint64_t agreed;       /* problems that searched for nothing: the sizes around them agree */
    uint64_t unfinished;   /* problems that a limit cut short */
    double device_seconds; /* as in sweep_limits */
    uint64_t restarts;     /* device workers that were replaced */
    uint64_t generation;   /* 0: none was packed */
} sweep_summary;

/* A problem whose time hangs on the routing is compared under it alone: what was measured under
 * another one counts as not done and is measured anew, the winner of then first, which is only
 * given up for one that is faster here. HONE_BAD_PROBLEM, before anything is tried, for a histogram
 * that does not fit a problem. HONE_CANCELLED when progress stopped it; *out is then filled as
 * well. A problem that no template serves ends without a winner: that is a result, not a failure.
 */
hone_status sweep_run(const sweep_options *options, sweep_summary *out, hone_error *error);

#endif
