/* prove_trial.h - inside prove: a problem's prover, a candidate's trial, and the steps of a proof.
 */
#ifndef HONE_BENCH_PROVE_TRIAL_H
#define HONE_BENCH_PROVE_TRIAL_H

#include "bench/prove_parts.h"

/* CTAs, or groups, of a sample. A CTA of a quantiser is a few hundred elements, one of a matrix
 * product a million MACs. A product's second sample runs under other scales, its third with all
 * checks. Groups of a spread grid make three tiles each: fewer of them. */
enum { SAMPLE_GEMM = 6, SAMPLE_RESCALED = 3, SAMPLE_THOROUGH = 3, SAMPLE_QUANT = 48 };
enum { SPREAD_GEMM = 5, SPREAD_RESCALED = 2, SPREAD_THOROUGH = 2 };

/* A device that runs launches, with the operands on it. */
typedef struct prove_lane {
    const device *d;
    const inputs *loaded; /* whose read-only operands are on the device; NULL: unknown */
    prove_buffers buffers;
} prove_lane;

/* Inputs of one kind, and what is kept of what they must give. */
typedef struct prove_kept {
    inputs in; /* empty: not made */
    verify_memo memo;
} prove_kept;

struct prover {
    const device *d;
    device *twin; /* an emulated device has one where threads are left; NULL: not opened */
    bool alone;   /* there is none, or no memory for it */
    hone_problem problem;
    uint64_t seed;
    int threads;                   /* of the host */
    bool large;                    /* sampled on an emulated device */
    prove_kinds kinds;             /* a large product's later ones are `rescaled` instead */
    inputs in;                     /* of the first kind */
    verify_memo memo;              /* of `in` */
    prove_kept kept[INPUTS_KINDS]; /* of the others, where they are small */
    inputs rescaled;               /* of a large product; else empty */
    inputs padded;                 /* `in` with other padding, where there is some; else empty */
    segments runs;                 /* of a moe_gemm's `in`; else empty */
    inputs ordinary;     /* of a quantiser on an emulated device: what its time is modelled on */
    inputs timed;        /* of a moe_gemm: rows as they are timed; empty: as in `in` */
    segments timed_runs; /* of `timed` */
    inputs after;        /* outputs read back */
    inputs second;       /* of the second run and those that nobody compares */
    inputs poisoned;     /* of a sum on sampled CTAs: D after the run on a D of NaN; else empty */
    prove_lane lane[2];  /* of the device and of its twin */
};

/* One trial: the candidate as it is launched, and the CTAs of it. */
typedef struct prove_trial {
    prove_lane *lane;
    const module *m;      /* on the lane's device */
    const plan *launches; /* the candidate's own */
    const plan *plan;     /* as it is launched */
    bool spread;          /* `plan` has a larger grid than the candidate's */
    uint64_t tiles;       /* of its cover; 0: it has none */
    prove_timed timed;    /* what is counted */
    uint64_t sample[PROVE_SAMPLE_MOST];
    prove_launch how;
    hone_emu_counters counters[MANIFEST_MAX_LAUNCHES];
} prove_trial;

/* The CTAs of a trial of t->launches on `runs`: its tiles, the plan as it is launched, the sample.
 * *spread is to be freed, NULL where the grid is the candidate's. */
hone_status prove_lay_out(const prover *p, const segments *runs, prove_trial *t, plan **spread,
                          hone_error *error);
/* A sum whose sampled CTAs cannot be told by what changed. */
bool prove_adds_to_d(const prover *p);

/* Steps of a proof, each leaving its verdict in out->outcome; one follows another that was OK. */
/* The first run, compared with the reference. */
hone_status prove_first(prover *p, prove_trial *t, prove_result *out, hone_error *error);
/* The second, by another order of warps and with asynchronous operations as late as the rules
 * allow, as all that follow: into p->second. Then whether it gave the same bits. */
hone_status prove_again(prover *p, prove_trial *t, prove_result *out, hone_error *error);
void prove_same_bits(const prover *p, prove_result *out);
/* The counters that a time is modelled on, into t->counters, where they are not the second run's;
 * a CUDA device has none. */
hone_status prove_count(prover *p, prove_trial *t, prove_result *out, hone_error *error);
/* A few CTAs with all checks, on an emulated device; t->counters stay. */
hone_status prove_order(prover *p, prove_trial *t, prove_result *out, hone_error *error);
/* The other kinds of inputs, compared; t->counters stay. */
hone_status prove_others(prover *p, prove_trial *t, prove_result *out, hone_error *error);

#endif
