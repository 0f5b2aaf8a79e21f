/* roofline.c - rates of a time and its share of the roof. */
#include "bench/roofline.h"

/* Scores whose operands are both e2m1. */
static bool of_nibbles(const hone_problem *problem)
{
    return problem->op == HONE_OP_MQA_LOGITS
               ? problem->as.mqa_logits.element == HONE_DTYPE_E2M1
               : problem->as.mqa_logits_paged.record.format == HONE_KV_INDEX_FP4_68;
}

/* FLOP/s of the fastest unit that can multiply the problem's operands as they are: one that takes
 * power-of-two scales itself may be faster than the plain one. */
static double peak_of(const gpu *g, const hone_problem *problem)
{
    const bool moe = problem->op == HONE_OP_MOE_GEMM;
    const hone_recipe *recipe = moe ? &problem->as.moe_gemm.recipe : &problem->as.fp8_gemm.recipe;
    const bool scores =
        problem->op == HONE_OP_MQA_LOGITS || problem->op == HONE_OP_MQA_LOGITS_PAGED;
    double plain = 0.0, scaled = 0.0;

    if (problem->op != HONE_OP_FP8_GEMM && !moe && !scores) {
        return 0.0;
    }
    plain = perf_peak_flops(g, GPU_MMA_FP8);
    if (scores) {
        scaled = of_nibbles(problem) ? perf_peak_flops(g, GPU_MMA_FP4) : 0.0;
    } else if (recipe->a.scale == HONE_DTYPE_UE8M0 && recipe->b.scale == HONE_DTYPE_UE8M0) {
        scaled = perf_peak_flops(g, GPU_MMA_MXFP8);
    }
    return scaled > plain ? scaled : plain;
}

roofline roofline_of(const gpu *g, const hone_problem *problem, double ns)
{
    double flop = 0.0, bytes = 0.0;

    problem_work(problem, &flop, &bytes);
    return roofline_of_work(g, problem, flop, bytes, ns);
}

roofline roofline_of_work(const gpu *g, const hone_problem *problem, double flop, double bytes,
                          double ns)
{
    roofline r = {.flop = flop, .bytes = bytes, .bound = PERF_LAUNCH};
    double peak = peak_of(g, problem);
    double compute_ns = 0.0, memory_ns = 0.0;

    compute_ns = peak > 0.0 ? r.flop / peak * 1e9 : 0.0;
    memory_ns =
        g->facts.mem_bytes_per_s > 0 ? r.bytes / (double)g->facts.mem_bytes_per_s * 1e9 : 0.0;
    r.roof_ns = compute_ns > memory_ns ? compute_ns : memory_ns;
    if (r.roof_ns > 0.0) {
        r.bound = compute_ns > memory_ns ? PERF_TENSOR : PERF_DRAM;
    }
    if (ns > 0.0) {
        r.tflops = r.flop / ns * 1e-3;
        r.gbytes = r.bytes / ns;
        r.percent = r.roof_ns / ns * 100.0;
    }
    return r;
}
