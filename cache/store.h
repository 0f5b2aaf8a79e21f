/* store.h - the SQLite file of results: sweeps, problems, candidates with their measurements,
 * winners, generations.
 *
 * Written only by a sweep's parent process; read by reports. Serving reads generations
 * (cache/generation.h) and never opens a store itself.
 *
 * Rules that hold for every function here
 *   - One thread at a time for a handle; any number of processes for a file. Never carry a handle
 * across fork().
 *   - Nothing else in the process may open() the file: closing any descriptor of it drops SQLite's
 * locks.
 *   - Rows carry a BLAKE2b digest over all their columns. A row that does not match is skipped and
 * counted (store_check), never returned.
 *   - HONE_STORE_BUSY when the file stayed locked past the back-off (30 s), HONE_STORE_IO on I/O
 * errors and full disks, HONE_STORE_FOREIGN for files that are not ours or newer, HONE_UNTRUSTED
 * for files that others may write. After HONE_STORE_IO while writing, close the handle: nothing is
 * retried blindly. */
#ifndef HONE_CACHE_STORE_H
#define HONE_CACHE_STORE_H

#include "cache/kind.h"
#include "core/problem.h"
#include "core/status.h"

/* What became of a candidate: name, frozen value, text for reports. */
#define STORE_OUTCOME_MAP(X)                                                                       \
    X(inflight, INFLIGHT, 1, "started, not finished")                                              \
    X(ok, OK, 2, "proved and timed")                                                               \
    X(compile, COMPILE, 3, "did not compile")                                                      \
    X(launch, LAUNCH, 4, "the launch was refused")                                                 \
    X(fault, FAULT, 5, "an illegal access or a trap")                                              \
    X(hang, HANG, 6, "ran past its limit")                                                         \
    X(oom, OOM, 7, "did not fit in memory")                                                        \
    X(wrong, WRONG, 8, "its output failed verification")                                           \
    X(nondet, NONDET, 9, "two runs gave different bits")                                           \
    X(lost, LOST, 10, "sweeps died again and again while it ran")                                         \
    X(pruned, PRUNED, 11, "not tried: ptxas' report or a bound ruled it out")                      \
    X(unmeasured, UNMEASURED, 12, "proved, but no time could be taken")                            \
    X(imported, IMPORTED, 13, "read from a file, not proved here")

typedef enum store_outcome {
#define X(text, NAME, value, description) STORE_##NAME = value,
    STORE_OUTCOME_MAP(X)
#undef X
} store_outcome;

/* How a time was had. Never mixed in one comparison. */
#define STORE_TIMER_MAP(X)                                                                         \
    X(none, NONE, 0)                                                                               \
    X(cupti, CUPTI, 1)                                                                             \
    X(events, EVENTS, 2)                                                                           \
    X(graph, GRAPH, 3)                                                                             \
    X(modelled, MODELLED, 4)

typedef enum store_timer {
#define X(text, NAME, value) STORE_TIMER_##NAME = value,
    STORE_TIMER_MAP(X)
#undef X
} store_timer;

/* How sure a choice of winner is (bench.md 2). */
#define STORE_VERDICT_MAP(X)                                                                       \
    X(clear, CLEAR, 1)                                                                             \
    X(tie, TIE, 2)                                                                                 \
    X(ambiguous, AMBIGUOUS, 3)                                                                     \
    X(default, DEFAULT, 4)

typedef enum store_verdict {
#define X(text, NAME, value) STORE_VERDICT_##NAME = value,
    STORE_VERDICT_MAP(X)
#undef X
} store_verdict;

/* Static strings; "?" for an unknown value. Parsing gives 0 for an unknown name. */
const char *store_outcome_name(int32_t outcome);
const char *store_outcome_text(int32_t outcome);
const char *store_timer_name(int32_t timer);
const char *store_verdict_name(int32_t verdict);
int32_t store_outcome_parse(const char *name);

typedef struct store store;

typedef enum store_mode {
    STORE_READ, /* the file must exist; nothing is written anywhere, so that a read-only image works
                 */
    STORE_WRITE, /* created when missing, with its folder (0700); WAL and synchronous=FULL while
                    open */
} store_mode;

/* Open a store. The caller closes *out. */
hone_status store_open(const char *path, store_mode mode, store **out, hone_error *error);

/* Commit what is pending and close; the last writer to close leaves journal mode DELETE, so that
 * the file can be shipped alone and read from read-only media. The handle is freed whatever the
 * status. NULL is HONE_OK. */
hone_status store_close(store *s, hone_error *error);

/* $HONE_STORE, else $XDG_DATA_HOME/hone/hone.db, else $HOME/.local/share/hone/hone.db. */
hone_status store_default_path(char *path, size_t capacity, hone_error *error);

const char *store_path(const store *s);

/* Called with the number of candidates that the COMMIT just made durable; tell progress only here.
 * NULL: none. */
typedef void (*store_committed_fn)(void *context, uint64_t rows);
void store_on_commit(store *s, store_committed_fn committed, void *context);

/* ---- Writing. Each needs STORE_WRITE.
 * --------------------------------------------------------------------- */

/* One run of the tuner. Strings are borrowed for the call. */
typedef struct store_sweep {
    const char *command; /* what was asked for, for people */
    const char *nvrtc;   /* "13.0.88" */
    int32_t driver;      /* cuDriverGetVersion: 13000 */
    uint64_t seed;
} store_sweep;

/* Committed before it returns. */
hone_status store_sweep_begin(store *s, const store_sweep *sweep, int64_t *id, hone_error *error);
hone_status store_sweep_end(store *s, int64_t id, hone_error *error);

/* Row ids, found or made. A kind and its emulated twin are two rows. */
hone_status store_problem_id(store *s, const hone_problem *problem, int64_t *id, hone_error *error);
hone_status store_device_id(store *s, const device_kind *kind, int64_t *id, hone_error *error);

/* What makes a candidate the same one in a later sweep. `template_digest` is recorded, not part of
 * it: a candidate whose template has changed since counts as not done. */
typedef struct store_key {
    int64_t problem, device;   /* store_problem_id, store_device_id */
    const char *template_name; /* "fp8_gemm/mma_sync" */
    const char *config;        /* manifest_config_format */
    uint8_t template_digest[32];
    /* The condition of store_result that it is measured under; NULL: any. Recorded, not part of it:
     * a candidate that was measured under another one counts as not done, and its row is written
     * anew. */
    const char *tokens;
} store_key;

typedef enum store_state {
    STORE_TO_DO,   /* never finished here, or with another template text or other tokens */
    STORE_AGAIN,   /* earlier tries died with their sweeps: it may be tried once more */
    STORE_DONE,    /* finished, or given up as `lost` */
    STORE_RUNNING, /* in flight in a sweep that is alive */
} store_state;

/* Where a candidate stands. An in-flight row that eight dead sweeps left, or two of which the last
 * died with the machine, becomes `lost` here (when the handle writes) and is STORE_DONE. `id` (may be NULL) receives the row's id, 0 when there is
 * none. */
hone_status store_candidate_state(store *s, const store_key *key, store_state *state, int64_t *id,
                                  hone_error *error);

/* Write the in-flight row and COMMIT (together with finished rows that are pending), before the
 * candidate is tried: one that takes the whole sweep down is then known to the next.
 * HONE_TAKEN when it is done, or in flight in another sweep: sweeps may share a store. */
hone_status store_candidate_begin(store *s, int64_t sweep, const store_key *key, int64_t *id,
                                  hone_error *error);

/* What is kept of one candidate. Text may be NULL for "". Figures that were not taken are 0. */
typedef struct store_result {
    int32_t outcome;      /* store_outcome, not INFLIGHT */
    const char *reason;   /* why not ok: first cause, one line */
    int32_t registers;    /* of a thread */
    int32_t shared_bytes; /* of a CTA, static and dynamic */
    int32_t spill_bytes;  /* stores + loads as ptxas reports them */
    int32_t local_bytes;
    double compile_ms;
    int32_t timer;            /* store_timer */
    double time_ns;           /* > 0 and finite when outcome is ok */
    const double *samples_ns; /* raw samples, all finite */
    size_t samples_len;
    const char *cache_mode; /* condition: "cold", "warm"; for a modelled time "modelled" */
    const char *tokens; /* condition: how tokens spread over experts, bench/routing.h's text; of ops
                           without experts "uniform". NULL: as its candidate was begun */
    int32_t clock_sm_mhz, clock_mem_mhz; /* condition; 0: not known */
    double cosine, rel_fro, calc_diff;   /* whole-tensor figures against float64 */
    double max_err_ratio;                /* largest |err| over its element bound; 1 is the limit */
    uint32_t checked_ctas;               /* CTAs whose output was compared */
    double flop, bytes;                  /* work of the problem, for rates */
    double roof_ns;                      /* roofline's least time */
    const char *bound;                   /* what bounds it: "tensor", "dram", ... */
    const char *counters;                /* summary, one JSON object; "" when there is none */
} store_result;

/* Finish a candidate. The row is committed with others, at most 10 rows or 100 ms later, by the
 * next begin, by store_flush, or here. HONE_BAD_ARGUMENT for a non-finite figure or an `ok` without
 * a time. */
hone_status store_candidate_finish(store *s, int64_t id, const store_result *result,
                                   hone_error *error);

/* A candidate that needs no try (pruned before compiling): begin and finish in one pending row.
 * HONE_TAKEN as above. */
hone_status store_candidate_record(store *s, int64_t sweep, const store_key *key,
                                   const store_result *result, int64_t *id, hone_error *error);

/* Commit what is pending now. */
hone_status store_flush(store *s, hone_error *error);

/* Choose the winner of a problem on a device; replaces the one before. The candidate must be `ok`.
 */
hone_status store_winner_set(store *s, int64_t problem, int64_t device, int64_t candidate,
                             int32_t verdict, hone_error *error);

/* Note which `ok` candidate the analytical default is: what is served where nothing was tuned.
 * Replaces the one before. */
hone_status store_default_set(store *s, int64_t problem, int64_t device, int64_t candidate,
                              hone_error *error);

/* Pack all winners into a new generation, what hone_open reads, and commit it. No change of winners
 * gives no new generation. Older generations but the last two are dropped. */
hone_status store_pack(store *s, uint64_t *number, hone_error *error);

/* Copy what is committed, and what this handle wrote, into a new file. HONE_STORE_IO. */
hone_status store_copy(store *s, const char *path, hone_error *error);

/* ---- Reading.
 * -----------------------------------------------------------------------------------------------
 */

/* A candidate as stored. Pointers are borrowed until the visitor returns. */
typedef struct store_row {
    int64_t id, sweep, problem, device;
    const char *problem_text; /* hone_problem_parse reads it */
    const device_kind *kind;
    const char *template_name, *config;
    uint8_t template_digest[32];
    int32_t attempts;
    const char *nvrtc; /* of its sweep */
    int32_t driver;
    int64_t created_ms; /* Unix time */
    store_result result;
} store_row;

/* Return non-zero to stop the visit early; that is not an error. */
typedef int (*store_row_fn)(void *context, const store_row *row);

/* Which rows; 0 is any. */
typedef struct store_filter {
    int64_t problem, device, sweep, candidate;
    int32_t outcome;
} store_filter;

/* Rows in the order of their ids. NULL filter: all. */
hone_status store_candidates(store *s, const store_filter *filter, store_row_fn visit,
                             void *context, hone_error *error);

typedef struct store_winner {
    uint64_t id;       /* winner id, as hone_choice.winner */
    int32_t verdict;   /* store_verdict */
    int64_t chosen_ms; /* Unix time */
    double default_ns; /* the analytical default's time by the same timer and under the same
                          condition of tokens; 0: not known */
    store_row row;     /* the candidate */
} store_winner;

typedef int (*store_winner_fn)(void *context, const store_winner *winner);

/* Winners, ordered by device, then problem. `filter` as above, its outcome ignored. */
hone_status store_winners(store *s, const store_filter *filter, store_winner_fn visit,
                          void *context, hone_error *error);

/* ---- Importing. ------------------------------------------------------------------------------ */

/* One candidate of a file that others may have written. It is kept as STORE_IMPORTED, which no sweep
 * counts as tried and no winner can be; the outcome that the file gives, and why, become its
 * reason: "ok", "wrong: row 3". Text is borrowed. */
typedef struct store_import {
    const hone_problem *problem;
    const device_kind *kind; /* HONE_BAD_ARGUMENT without arch or SM count */
    const char *template_name, *config;
    uint8_t template_digest[32]; /* zeros where the file has none */
    const char *nvrtc;
    int32_t driver;
    int64_t created_ms; /* Unix time */
    store_result result; /* as the file gives it; `ok` has a time; not IMPORTED, not INFLIGHT */
} store_import;

/* What became of imported rows. */
typedef struct store_imported {
    uint64_t added;    /* unknown here before */
    uint64_t replaced; /* took the place of an imported row that was slower or had failed */
    uint64_t kept;     /* left the imported row that was here: it is as good */
    uint64_t proved;   /* left what this store's own sweeps found */
} store_imported;

/* Where a row of a file stands beside the row of its key that is there. Both imported: one that is
 * ok goes before one that is not, a measured time before a modelled one, the lesser time before the
 * greater, and the one that is there when nothing of this decides; a time of another condition of
 * tokens replaces. Thread-safe. */
typedef enum store_fate { STORE_ADDS, STORE_REPLACES, STORE_KEEPS, STORE_YIELDS } store_fate;
store_fate store_import_fate(const store_row *there, const store_import *row);

/* Add rows in one transaction, all or none; keys that are named twice are settled alike. `sweep` is
 * one of store_sweep_begin. HONE_BAD_ARGUMENT names the row that is no result; nothing is written
 * then. */
hone_status store_import_rows(store *s, int64_t sweep, const store_import *rows, size_t rows_len,
                              store_imported *out, hone_error *error);

/* The outcome that an imported row had where it came from, and its reason behind it; of other rows
 * their own. *reason is borrowed from the row. */
int32_t store_outcome_there(const store_row *row, const char **reason);

/* Counts for `hone store`, and the damage found by reading every row. */
typedef struct store_health {
    uint64_t sweeps, problems, devices, candidates, winners;
    uint64_t generation;  /* number of the newest; 0: none */
    uint64_t quarantined; /* rows whose digest does not match */
    bool intact;          /* SQLite's own quick_check */
} store_health;
hone_status store_check(store *s, store_health *out, hone_error *error);

#endif
