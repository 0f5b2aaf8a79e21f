/* perf.h - the performance model of a GPU: a time for a launch, and what bounds it (bench.md 4.7).
 *
 * A model, never a measurement: whoever stores or prints its answer says so. */
#ifndef HONE_MODELS_PERF_H
#define HONE_MODELS_PERF_H

#include "models/gpu.h"

typedef enum perf_bound {
    PERF_TENSOR,
    PERF_FP32,
    PERF_ISSUE,
    PERF_SHARED,
    PERF_L2,
    PERF_DRAM,
    PERF_LAUNCH,
    PERF_BOUNDS
} perf_bound;

/* What a launch does in all (scaled from sampled CTAs), and what the compiled kernel needs. */
typedef struct perf_work {
    uint64_t ctas;
    uint32_t threads;     /* of a CTA */
    int32_t registers;    /* of a thread */
    int32_t shared_bytes; /* of a CTA, static and dynamic */
    int32_t stages;       /* of the software pipeline; 1 when none */
    double tensor_macs[GPU_MMA_KINDS];
    double fp32_warp, sfu_warp, warp_instructions; /* warp instructions */
    double shared_wavefronts;
    double l2_bytes;   /* sectors asked of L2, times 32 */
    double dram_bytes; /* distinct bytes, at least once */
} perf_work;

typedef struct perf_answer {
    double ns;
    perf_bound bound;
    double term_ns[PERF_BOUNDS]; /* each pipe alone */
    double occupancy;            /* CTAs that fit an SM */
    double waves;
} perf_answer;

/* HONE_UNSUPPORTED when not even one CTA fits. */
hone_status perf_predict(const gpu *g, const perf_work *work, perf_answer *out, hone_error *error);
const char *perf_bound_name(perf_bound bound);

#endif
