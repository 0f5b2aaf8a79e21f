/* prove.h - one candidate on a device: launched, compared with float64, launched again, timed.
 *
 * Nothing is timed that was not proved (DESIGN 6.5). On an emulated device large launches run on
 * sampled CTAs and the time is the performance model's; on a CUDA device everything runs and events
 * take the time. Who makes the proof stricter raises TEMPLATES_PROOF_VERSION
 * (templates/manifest.h).
 */
#ifndef HONE_BENCH_PROVE_H
#define HONE_BENCH_PROVE_H

#include "bench/routing.h"
#include "bench/verify.h"
#include "cache/store.h"
#include "models/perf.h"
#include "runtime/module.h"

#define PROVE_MAX_SAMPLES 64

/* A problem on a device: its inputs and their copies there, shared by all candidates. One thread at
 * a time. */
typedef struct prover prover;

typedef struct prove_result {
    int32_t outcome;  /* store_outcome: OK, LAUNCH, FAULT, HANG, OOM, WRONG, NONDET or UNMEASURED */
    char reason[240]; /* why it is not OK */
    verify_result verify; /* of the last comparison */
    uint64_t ctas_run, ctas_total;
    int64_t rows,
        rows_cut;       /* of a moe_gemm as timed: with an expert, and left out for want of room */
    double flop, bytes; /* that what is timed needs at least, when OK */
    int32_t timer;      /* store_timer */
    double time_ns;     /* > 0 when OK */
    double samples_ns[PROVE_MAX_SAMPLES];
    size_t samples_len;
    bool modelled;              /* `model` and `counters` are filled: an emulated device */
    perf_answer model;          /* of the launch that takes longest */
    hone_emu_counters counters; /* of that launch, as run */
} prove_result;

/* Draw the inputs of `problem` from `seed` and put them on the device, which is borrowed.
 * HONE_NO_MEMORY, HONE_UNSUPPORTED, HONE_DRIVER. Caller closes *out. */
hone_status prover_open(const device *d, const hone_problem *problem, uint64_t seed, prover **out,
                        hone_error *error);
/* The same, and a moe_gemm is timed on rows of experts as `timed` says (NULL: balanced, as above);
 * what is compared with a reference keeps its own. HONE_BAD_PROBLEM for a histogram of other
 * experts. */
hone_status prover_open_routed(const device *d, const hone_problem *problem, const routing *timed,
                               uint64_t seed, prover **out, hone_error *error);
void prover_close(prover *p); /* NULL is fine */

/* Host threads that proofs on an emulated device may take from now on, 1 to 64; one at first. From
 * two on a second device of the same kind makes the runs that no reference is needed for, where
 * there is memory for it. No verdict and no figure depends on it. */
void prover_use_threads(prover *p, int threads);

/* Prove and time one candidate: `m` is loaded for `launches` from `c`. The verdict is in *out,
 * filled whatever it is; another status than HONE_OK means that this machine or the device is at
 * fault, not the candidate. A problem of size zero is HONE_BAD_ARGUMENT: nothing is launched for
 * it. */
hone_status prover_run(prover *p, const module *m, const plan *launches, const compiled *c,
                       prove_result *out, hone_error *error);

#endif
