/* roofline.c - rates of a time and its share of the roof. */
#include "bench/roofline.h"

roofline roofline_of(const gpu *g, const hone_problem *problem, double ns)
{
    roofline r = {.bound = PERF_LAUNCH};
    bool multiplies = problem->op == HONE_OP_FP8_GEMM;
    double peak = multiplies ? perf_peak_flops(g, GPU_MMA_FP8) : 0.0;
    double compute_ns = 0.0, memory_ns = 0.0;

    problem_work(problem, &r.flop, &r.bytes);
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
