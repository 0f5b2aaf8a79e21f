/* fake_engine.h - an engine whose verdicts depend on nothing but the candidate, and a sweep with
 * it.
 */
#ifndef HONE_TESTS_FAKE_ENGINE_H
#define HONE_TESTS_FAKE_ENGINE_H

#include "tuner/sweep.h"

#define FAKE_BUDGET   8
#define FAKE_PROBLEMS 4 /* of a sweep, at most */

/* What the engines of a test do; set before each sweep. */
typedef struct fake_behaviour {
    bool backwards; /* answers come in the opposite order of the submissions */
    bool flaw_all;
    bool level;           /* all take as long */
    bool every_size;      /* of the sweep */
    bool random;          /* strategy: quicker to start than the model's ranking */
    const char *strategy; /* NULL: as `random` says */
    uint64_t budget;      /* 0: FAKE_BUDGET */
    int jobs;             /* of the sweep; 0: two */
    size_t lanes;         /* proofs at once, at most 4; 0: one */
    int pause_us;         /* that each proof takes */
    int told;             /* where progress is written as it is told; 0: nowhere */
    int die_at;           /* the process ends in this proof; 0: never */
    int proofs;
    const routing *routing; /* of the sweep; NULL: balanced */
    uint64_t seed;          /* of the sweep; 0: 3 */
    sweep_limits limits;    /* of the sweep; a proof counts as a second */
    double roof_ns;         /* of every problem */
} fake_behaviour;
extern fake_behaviour fake_now;

/* One sweep over the problems of `list` on an H20 of that arch, into the store at `path`; it stops
 * after *stop candidates (NULL: never). HONE_OK, HONE_CANCELLED or HONE_BAD_PROBLEM; another status
 * ends the test. */
hone_status fake_sweep(const char *path, int32_t arch, const char *const *list, size_t len,
                       uint64_t *stop, sweep_summary *out);

#endif
