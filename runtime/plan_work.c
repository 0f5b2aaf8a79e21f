/* plan_work.c - perf_work of a plan's launches. */
#include "runtime/plan_work.h"

#include "core/problem.h"

/* Registers of a thread when neither ptxas nor the manifest says: CUDA kernels of this kind use 64
 * to 168. */
#define USUAL_REGISTERS 128

/* Multiply-adds of one warp-wide fp8 mma, and instructions around each: operands, addresses,
 * promotion. */
#define MACS_OF_MMA         4096.0
#define INSTRUCTIONS_OF_MMA 4.0
/* Instructions that move and convert 512 bytes, one 16-byte access of each lane. */
#define INSTRUCTIONS_OF_ACCESS 24.0

const plan_launch *plan_work_main(const plan *p)
{
    const plan_launch *best = &p->launches[0];
    double most = -1;

    for (uint32_t i = 0; i < p->launches_len; i++) {
        const plan_launch *l = &p->launches[i];
        double threads =
            (double)l->grid[0] * l->grid[1] * l->grid[2] * l->block[0] * l->block[1] * l->block[2];
        if (threads > most) {
            most = threads;
            best = l;
        }
    }
    return best;
}

void plan_work_frame(const plan *p, const plan_launch *l, perf_work *out)
{
    const plan_estimate *e = &p->estimate;
    bool main = l == plan_work_main(p);

    *out = (perf_work){
        .ctas = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2],
        .threads = l->block[0] * l->block[1] * l->block[2],
        .cluster = l->cluster[0] * l->cluster[1] * l->cluster[2],
        .shared_bytes = (int32_t)l->shared_bytes,
        .stages = main && e->stages > 0 ? (int32_t)e->stages : 1,
    };
    if (main) {
        out->tiles = (double)e->tiles;
        out->share = (int32_t)e->share;
        out->clears = p->workspace_zeroed > 0;
        out->groups = (int32_t)e->groups;
        out->sets = (int32_t)e->sets;
        out->queue = (int32_t)e->queue;
        out->units = (double)e->units;
        out->wave_bytes = (double)e->wave_bytes;
        out->epilogue_warp = (double)e->epilogue;
        out->ahead = (int32_t)e->ahead;
    }
}

/* What the manifest estimates, else a guess from the problem alone. */
static double given_or(int64_t estimate, double guess)
{
    return estimate > 0 ? (double)estimate : guess;
}

static void estimate_main(const plan *p, const hone_problem *problem, perf_work *out)
{
    const plan_estimate *e = &p->estimate;
    const bool silent = e->scaled_macs == 0 && e->warpgroup_macs == 0;
    const bool product = problem->op == HONE_OP_FP8_GEMM || problem->op == HONE_OP_MOE_GEMM;
    double flop = 0, bytes = 0, macs = (double)e->macs, all_macs = 0;

    problem_work(problem, &flop, &bytes);
    if (product && silent) {
        macs = given_or(e->macs, flop / 2);
    }
    all_macs = macs + (double)e->scaled_macs + (double)e->warpgroup_macs;
    out->registers = (int32_t)given_or(e->registers, USUAL_REGISTERS);
    out->tensor_macs[GPU_MMA_FP8] = macs;
    /* Of scores both operands are e2m1. */
    out->tensor_macs[product ? GPU_MMA_MXFP8 : GPU_MMA_FP4] = (double)e->scaled_macs;
    out->warpgroup_macs[GPU_MMA_FP8] = (double)e->warpgroup_macs;
    out->fp32_warp = (double)e->fp32;
    out->dram_bytes = bytes;
    out->l2_bytes = given_or(e->l2_bytes, bytes);
    out->l2_bytes = out->l2_bytes > bytes ? out->l2_bytes : bytes;
    out->warp_instructions =
        given_or(e->instructions, all_macs / MACS_OF_MMA * INSTRUCTIONS_OF_MMA +
                                      out->l2_bytes / 512 * INSTRUCTIONS_OF_ACCESS);
    /* Operands staged in shared memory are written once and read at least once. */
    out->shared_wavefronts =
        given_or(e->wavefronts, out->shared_bytes > 0 ? 2 * out->l2_bytes / 128 : 0);
}

void plan_work_estimate(const plan *p, const plan_launch *l, const hone_problem *problem,
                        perf_work *out)
{
    perf_work w;

    plan_work_frame(p, l, &w);
    if (l == plan_work_main(p)) {
        estimate_main(p, problem, &w);
    } else {
        w.registers = USUAL_REGISTERS;
        w.l2_bytes = (double)p->workspace_bytes;
        w.warp_instructions = w.l2_bytes / 512 * INSTRUCTIONS_OF_ACCESS;
    }
    *out = w;
}

void plan_work_retile(const plan *p, uint64_t tiles, perf_work *work)
{
    /* The CTAs of a tile; where clusters part theirs, each cluster's pieces are counted once. */
    const double sharers = p->estimate.share > 1 ? (double)p->estimate.share : 1.0;
    const double ctas = (double)tiles * (double)p->cover.ctas / sharers;

    if (p->cover.rows == 0 || p->estimate.tiles <= 0 || work->tiles <= 0) {
        return;
    }
    const double part = ctas / (double)p->estimate.tiles;
    double *const counts[] = {&work->tiles,
                              &work->units,
                              &work->epilogue_warp,
                              &work->fp32_warp,
                              &work->sfu_warp,
                              &work->warp_instructions,
                              &work->shared_wavefronts,
                              &work->l2_bytes};

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        *counts[i] *= part;
    }
    for (size_t i = 0; i < ARRAY_LEN(work->tensor_macs); i++) {
        work->tensor_macs[i] *= part;
        work->warpgroup_macs[i] *= part;
    }
}
