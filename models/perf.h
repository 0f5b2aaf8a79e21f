/* perf.h - the performance model of a GPU: a time for a launch, and what bounds it (bench.md 4.7).
 *
 * A model, never a measurement: whoever stores or prints its answer says so. */
#ifndef HONE_MODELS_PERF_H
#define HONE_MODELS_PERF_H

#include "include/hone_emu.h"
#include "models/gpu.h"

/* What a well-tuned kernel reaches of DRAM's rate: copies reach 90 % (4.3 of 4.8 TB/s on H200). */
#define PERF_DRAM_SHARE 0.92

typedef enum perf_bound {
    PERF_TENSOR,
    PERF_FP32, /* and the special-function unit */
    PERF_ISSUE,
    PERF_SHARED,
    PERF_L2, /* the cache and the ports of the SMs to it */
    PERF_DRAM,
    PERF_CHAIN,  /* warpgroups that wait for a product, promote it, and store tiles */
    PERF_LAUNCH, /* and filling pipelines */
    PERF_BOUNDS
} perf_bound;

/* What a launch does in all (scaled from sampled CTAs), and what the compiled kernel needs. */
typedef struct perf_work {
    uint64_t ctas;
    double tiles;         /* pieces of work that the CTAs share out; 0: one each */
    int32_t share;        /* clusters that part their pieces evenly; 0 and 1: none does */
    bool clears;          /* memory where CTAs meet is cleared for it by a launch before */
    uint32_t threads;     /* of a CTA */
    uint32_t cluster;     /* CTAs of a cluster; 0 and 1: none */
    int32_t registers;    /* of a thread */
    int32_t shared_bytes; /* of a CTA, static and dynamic */
    int32_t stages;       /* of the software pipeline; 1 when none */
    int32_t ahead;        /* bytes that a thread asks for before it waits, without one; 0: unknown */
    int32_t groups, sets; /* warpgroups of a CTA that multiply, partial sums each keeps in flight */
    int32_t queue;        /* of them started before one is waited for; 0 and 1: one */
    double units;         /* in all groups: products waited for and promoted; 0: unknown */
    double epilogue_warp; /* of warp_instructions: those with no product in flight */
    double tensor_macs[GPU_MMA_KINDS];             /* by mma.sync */
    double warpgroup_macs[GPU_MMA_KINDS];          /* by wgmma and tcgen05 */
    double fp32_warp, sfu_warp, warp_instructions; /* warp instructions */
    double shared_wavefronts;                      /* the copy engine's too */
    double l2_bytes;   /* sectors asked of L2, times 32; a multicast's once */
    double dram_bytes; /* distinct bytes, at least once */
    double wave_bytes; /* of them by the CTAs that run at once, which share tiles; 0: unknown */
} perf_work;

typedef struct perf_answer {
    double ns;
    perf_bound bound;            /* the longest term */
    double term_ns[PERF_BOUNDS]; /* each pipe alone */
    double occupancy;            /* CTAs that fit an SM */
    double waves;                /* CTAs over all that fit the GPU */
} perf_answer;

/* Never faster for more work, fewer SMs, more registers or fewer stages.
 * HONE_UNSUPPORTED when not even one CTA fits, or the GPU has no unit for a kind of mma;
 * HONE_BAD_ARGUMENT for counts that no launch can have. Thread-safe. */
hone_status perf_predict(const gpu *g, const perf_work *work, perf_answer *out, hone_error *error);

/* Sets the counts of `work`, and `ctas`, from the counters of the CTAs that ran, times `scale`: how
 * much of the launch's work all CTAs do for each part that these did. Distinct bytes are not
 * scaled, since CTAs share them. */
void perf_count(const hone_emu_counters *counters, double scale, perf_work *work);

/* CTAs that fit an SM at once; 0 when none does. */
int perf_occupancy(const gpu *g, const perf_work *work);

/* Peak FLOP/s of one kind of mma by its widest instruction: the roof of reports. 0 when lacking. */
double perf_peak_flops(const gpu *g, gpu_mma kind);

/* Nanoseconds that any launch takes beside its work, and no bound counts: the launch itself, and
 * until a pipeline's first bytes are there. Thread-safe. */
double perf_launch_ns(const gpu *g);

const char *perf_bound_name(perf_bound bound); /* "tensor"; static; "?" when unknown */

#endif
