/* test_perf.c - the performance model: hand-computed terms, what bounds known kernels, and what
 * must never be faster. */
#include "tests/models/perf_fixture.h"
#include "tests/support/suite.h"
#include "core/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A tiled fp8 GEMM by mma.sync, four warps, k tiles of 128 bytes: what the emulator would count. */
static perf_work gemm(double m, double n, double k, double bm, double bn, int stages)
{
    double tiles = ceil(m / bm) * ceil(n / bn), macs = tiles * bm * bn * k;
    double rows = fmin(bm, m) + bn, loads = tiles * rows * k, out = 2 * m * n;
    double reads = bm > 16 ? 2 * bm + 2 * bn : 4 * bm + bn; /* 2 x 2 or 1 x 4 warps */

    return (perf_work){
        .ctas = (uint64_t)tiles,
        .threads = 128,
        .registers = 128,
        .shared_bytes = (int32_t)(stages * (bm + bn) * 128),
        .stages = stages,
        .tensor_macs = {[GPU_MMA_FP8] = macs},
        .fp32_warp = tiles * bm * bn * (k / 128) / 32,
        .warp_instructions = macs / 4096 * 2 + loads / 512 * 2,
        .shared_wavefronts = tiles * (rows + reads) * k / 128,
        .l2_bytes = loads + out,
        .dram_bytes = (m + n) * k + out,
    };
}

/* Hand-computed on H20: 78 SMs, 1.98 clocks a ns, fp8 mma.sync 958.3 FLOP per clock and SM. */
START_TEST(a_term_is_its_work_over_its_rate)
{
    gpu g = perf_fixture_gpu("h20");
    perf_work work = {.ctas = 156, .threads = 256, .registers = 64, .stages = 1};

    work.tensor_macs[GPU_MMA_FP8] = 1e12;
    work.fp32_warp = 1e9;
    work.warp_instructions = 4e9;
    work.shared_wavefronts = 1e9;
    work.l2_bytes = 1e10;
    work.dram_bytes = 4e9;
    perf_answer a = perf_fixture_predict(&g, &work);
    /* 4 CTAs fit by registers (8 warps of 64 registers); two of 8 warps are on each SM, 4 a
     * sub-partition. */
    ck_assert_double_eq(a.occupancy, 4);
    ck_assert_double_eq_tol(a.waves, 0.5, 1e-12);
    /* 2e12 FLOP / 148e12 FLOP/s = 13.51 ms, over 0.97, times 1 + 0.1 / 4 */
    ck_assert_double_eq_tol(a.term_ns[PERF_TENSOR], 13513513.5 / 0.97 * 1.025, 100);
    /* 32e9 lanes / (78 x 128 x 1.98) */
    ck_assert_double_eq_tol(a.term_ns[PERF_FP32], 1618750.3, 10);
    /* 4e9 / (78 x 4 x 1.98), and a wavefront a clock: 1e9 / (78 x 1.98) */
    ck_assert_double_eq_tol(a.term_ns[PERF_ISSUE], 6475006.5, 10);
    ck_assert_double_eq_tol(a.term_ns[PERF_SHARED], 6475006.5, 10);
    /* the chip: 1e10 / (6144 x 1.98); a port: 1e10 / 78 through 16 KiB in flight every 270 ns, the
     * first of them while the pipeline fills */
    ck_assert_double_eq_tol(a.term_ns[PERF_L2], 1e10 / 78 / (16384 / 270.0) - 270, 1);
    ck_assert_double_ge(a.term_ns[PERF_L2], 1e10 / (6144 * 1.98));
    /* a port: 16 KiB in flight every 600 ns, with the rereads that miss */
    double misses = 0.15 * (1 - 60 * 1048576 / 4e9) * 6e9;
    ck_assert_double_eq_tol(a.term_ns[PERF_DRAM], (4e9 + misses) / 78 / (16384 / 600.0) - 600, 1);
    /* 1000 ns, and 1.5 latencies of 600 ns in one round */
    ck_assert_double_eq_tol(a.term_ns[PERF_LAUNCH], 1900, 1e-9);
    ck_assert_int_eq(a.bound, PERF_TENSOR);
    ck_assert_double_ge(a.ns, a.term_ns[PERF_TENSOR]);
}
END_TEST

/* Known shapes: the bound, and the least and most share of the roof that is believable. */
static const struct {
    const char *claim, *gpu;
    double m, n, k, bm, bn;
    int stages;
    perf_bound bound;
    double least, most; /* of the mma.sync rate, or of DRAM's bandwidth */
} kernels[] = {
    {"H20, large M: tensor, near its mma rate", "h20", 4096, 7168, 16384, 128, 128, 3, PERF_TENSOR,
     0.80, 0.97},
    {"H20, M = 1: DRAM", "h20", 1, 7168, 16384, 16, 32, 4, PERF_DRAM, 0.65, 0.92},
    {"H100, M = 16: DRAM", "h100", 16, 7168, 16384, 16, 64, 4, PERF_DRAM, 0.70, 0.92},
    {"H100, large M: tensor at the f16 rate", "h100", 4096, 7168, 16384, 128, 128, 3, PERF_TENSOR,
     0.65, 0.97},
    {"RTX 4090, large M: tensor", "rtx4090", 4096, 7168, 16384, 128, 128, 2, PERF_TENSOR, 0.75,
     0.97},
    {"RTX 5090, M = 1: DRAM", "rtx5090", 1, 5120, 8192, 16, 64, 4, PERF_DRAM, 0.50, 0.92},
};

START_TEST(a_known_kernel_has_its_bound)
{
    gpu g = perf_fixture_gpu(kernels[_i].gpu);
    perf_work work = gemm(kernels[_i].m, kernels[_i].n, kernels[_i].k, kernels[_i].bm,
                          kernels[_i].bn, kernels[_i].stages);
    perf_answer a = perf_fixture_predict(&g, &work);
    double rate = g.mma_sync_per_clk_sm[GPU_MMA_FP8] * g.facts.sm_count * g.facts.clock_mhz / 1e3;
    double share = kernels[_i].bound == PERF_DRAM
                       ? work.dram_bytes / a.ns / ((double)g.facts.mem_bytes_per_s / 1e9)
                       : 2 * work.tensor_macs[GPU_MMA_FP8] / a.ns / rate;

    ck_assert_msg(a.bound == kernels[_i].bound, "%s: bound by %s", kernels[_i].claim,
                  perf_bound_name(a.bound));
    ck_assert_msg(share >= kernels[_i].least && share <= kernels[_i].most, "%s: %.3f",
                  kernels[_i].claim, share);
}
END_TEST

START_TEST(fp8_mma_sync_on_hopper_runs_as_f16)
{
    gpu g = perf_fixture_gpu("h20");
    perf_work fp8 = gemm(4096, 4096, 4096, 128, 128, 3), f16 = fp8, wide = fp8;

    f16.tensor_macs[GPU_MMA_F16] = fp8.tensor_macs[GPU_MMA_FP8];
    f16.tensor_macs[GPU_MMA_FP8] = 0;
    wide.warpgroup_macs[GPU_MMA_FP8] = fp8.tensor_macs[GPU_MMA_FP8];
    wide.tensor_macs[GPU_MMA_FP8] = 0;
    perf_answer a = perf_fixture_predict(&g, &fp8), b = perf_fixture_predict(&g, &f16),
                c = perf_fixture_predict(&g, &wide);
    ck_assert_double_eq_tol(a.term_ns[PERF_TENSOR], b.term_ns[PERF_TENSOR], 1e-6 * a.ns);
    ck_assert_double_eq_tol(c.term_ns[PERF_TENSOR], a.term_ns[PERF_TENSOR] / 2, 1e-6 * a.ns);
}
END_TEST

START_TEST(a_tiny_grid_does_not_reach_the_whole_bandwidth)
{
    gpu g = perf_fixture_gpu("h20");
    perf_work work = {.ctas = 4,
                      .threads = 256,
                      .registers = 32,
                      .stages = 1,
                      .l2_bytes = 1e8,
                      .dram_bytes = 1e8};
    perf_answer few = perf_fixture_predict(&g, &work);

    ck_assert_double_lt(work.dram_bytes / few.ns, 0.1 * 4000);
    work.ctas = 78 * 8;
    perf_answer many = perf_fixture_predict(&g, &work);
    ck_assert_double_gt(work.dram_bytes / many.ns, 0.75 * 4000);
    ck_assert_int_eq(many.bound, PERF_DRAM);
}
END_TEST

/* 78 x 8 CTAs of 256 threads hold 64 KiB of each SM's loads in flight: what they ask for at once
 * comes after one latency, which the launch's term has, at DRAM's rate; each further 64 KiB comes
 * no sooner than a latency later. */
START_TEST(what_is_asked_for_at_once_waits_one_latency)
{
    gpu g = perf_fixture_gpu("h20");
    perf_work work = {.ctas = 78 * 8, .threads = 256, .registers = 32, .stages = 1};

    work.l2_bytes = work.dram_bytes = 78 * 65536;
    perf_answer a = perf_fixture_predict(&g, &work);
    ck_assert_double_eq_tol(a.term_ns[PERF_DRAM], 78 * 65536 / (0.92 * 4000), 1e-6);
    ck_assert_double_eq_tol(a.term_ns[PERF_LAUNCH], 1900, 1e-9);

    work.ctas = 78; /* 8 KiB in flight: seven latencies after the first */
    a = perf_fixture_predict(&g, &work);
    ck_assert_double_eq_tol(a.term_ns[PERF_DRAM], 7 * 600, 1e-6);
}
END_TEST

/* The launch that zeroes counters, 1000 ns, and three trips to L2 of 225 ns. */
START_TEST(ctas_that_meet_pay_for_it)
{
    gpu g = perf_fixture_gpu("rtx4090");
    perf_work work = gemm(16, 1792, 5120, 16, 32, 3);
    const double alone = perf_fixture_predict(&g, &work).ns;

    work.clears = true;
    ck_assert_double_eq_tol(perf_fixture_predict(&g, &work).ns - alone, 1675, 1e-6);
}
END_TEST

START_TEST(a_tail_wave_costs_a_wave)
{
    gpu g = perf_fixture_gpu("h20");
    perf_work work = gemm(128, 78 * 128, 8192, 128, 128, 3);
    perf_answer full = perf_fixture_predict(&g, &work);

    work = gemm(128, 79 * 128, 8192, 128, 128, 3);
    perf_answer tail = perf_fixture_predict(&g, &work);
    ck_assert_double_gt(tail.term_ns[PERF_TENSOR], 1.9 * full.term_ns[PERF_TENSOR]);
}
END_TEST

/* CTAs an SM holds, by what runs out first (CUDA's occupancy rules). */
static const struct {
    const char *gpu;
    uint32_t threads;
    int32_t registers, shared_bytes;
    int fit;
} fits[] = {
    {"h20", 128, 32, 0, 16},     /* threads */
    {"h20", 32, 32, 0, 32},      /* blocks */
    {"h20", 128, 128, 0, 4},     /* registers: 512 a thread of 4 warps */
    {"h20", 128, 255, 0, 2},     /* registers, rounded to 256 */
    {"h20", 128, 168, 0, 3},     /* registers: 12 warps of 5376 */
    {"h20", 128, 64, 73728, 3},  /* shared, with 1 KiB reserved for each */
    {"h20", 128, 64, 115712, 2}, /* two of 114 KiB with their reserve fill 228 KiB */
    {"h20", 128, 64, 115840, 1},     {"h20", 128, 64, 232448, 1},     {"h20", 128, 64, 232449, 0},
    {"h20", 32, 120, 0, 16}, /* 17 warps of 3840, handed out by fours */
    {"h20", 1024, 64, 0, 1},         {"h20", 1024, 65, 0, 0},         {"rtx4090", 128, 32, 0, 12},
    {"rtx4090", 128, 32, 101376, 1}, {"rtx4090", 128, 32, 101377, 0},
};

START_TEST(occupancy_follows_the_scarcest_resource)
{
    gpu g = perf_fixture_gpu(fits[_i].gpu);
    perf_work work = {.ctas = 1,
                      .threads = fits[_i].threads,
                      .registers = fits[_i].registers,
                      .shared_bytes = fits[_i].shared_bytes};
    perf_answer a;

    ck_assert_int_eq(perf_occupancy(&g, &work), fits[_i].fit);
    ck_assert_int_eq(perf_predict(&g, &work, &a, NULL),
                     fits[_i].fit > 0 ? HONE_OK : HONE_UNSUPPORTED);
}
END_TEST

/* Even in the logarithm, from a fixed seed. */
static double draw(uint64_t *state, double low, double high)
{
    return low * pow(high / low, random_unit(state));
}

static perf_work draw_work(uint64_t *state)
{
    perf_work w = {
        .ctas = (uint64_t)draw(state, 1, 20000),
        .threads = 32 * (uint32_t)draw(state, 1, 32),
        .registers = (int32_t)draw(state, 16, 64),
        .shared_bytes = (int32_t)draw(state, 64, 100000),
        .stages = (int32_t)draw(state, 1, 6),
        .fp32_warp = draw(state, 1, 1e9),
        .sfu_warp = draw(state, 1, 1e8),
        .warp_instructions = draw(state, 1, 1e9),
        .shared_wavefronts = draw(state, 1, 1e9),
        .dram_bytes = draw(state, 1e3, 1e9),
    };
    w.tensor_macs[GPU_MMA_BF16] = draw(state, 1, 1e12);
    if (random_unit(state) < 0.5) {
        w.warpgroup_macs[GPU_MMA_BF16] = draw(state, 1, 1e12);
        w.groups = (int32_t)draw(state, 1, 4);
        w.sets = (int32_t)draw(state, 1, 3);
        w.units = draw(state, 1, 1e7);
        w.epilogue_warp = w.warp_instructions * random_unit(state);
        w.tiles = (double)w.ctas * floor(draw(state, 1, 9));
        w.cluster = (uint32_t)draw(state, 1, 3);
        w.wave_bytes = w.dram_bytes * random_unit(state);
    }
    w.l2_bytes = w.dram_bytes * draw(state, 1, 20);
    return w;
}

/* One change for the worse; true when it applies to this work. */
static bool worsen(int change, perf_work *w, gpu *g)
{
    double *const counts[] = {
        &w->tensor_macs[GPU_MMA_BF16], &w->fp32_warp, &w->sfu_warp,  &w->warp_instructions,
        &w->shared_wavefronts,         &w->l2_bytes,  &w->dram_bytes};

    if (change < 7) {
        *counts[change] *= 1.3;
        return true;
    }
    switch (change) {
    case 7:
        g->facts.sm_count -= g->facts.sm_count > 1;
        return true;
    case 8:
        w->registers += 8;
        return perf_occupancy(g, w) > 0;
    case 9:
        w->stages--;
        return w->stages >= 1;
    case 10:
        g->facts.mem_bytes_per_s /= 2;
        return true;
    case 11:
        g->l2_bytes_per_clk /= 2;
        return true;
    case 12:
        w->warpgroup_macs[GPU_MMA_BF16] *= 1.3;
        return true;
    case 13:
        w->sets--;
        return w->sets >= 1;
    case 14:
        w->groups--;
        return w->groups >= 1;
    case 15:
        w->units *= 1.3;
        return true;
    case 16:
        w->cluster *= 2;
        return w->cluster > 1;
    case 17:
        w->wave_bytes *= 1.3;
        return true;
    default:
        w->epilogue_warp *= 1.1;
        w->warp_instructions += w->epilogue_warp / 11;
        return true;
    }
}

START_TEST(worse_is_never_faster)
{
    static const char *const slugs[] = {"h20", "h100", "rtx4090", "l4", "b200"};
    uint64_t state = 20260101;

    for (int i = 0; i < 20000; i++) {
        gpu g = perf_fixture_gpu(slugs[i % 5]);

        g.facts.sm_count = (int32_t)draw(&state, 1, 200);
        perf_work w = draw_work(&state);
        if (perf_occupancy(&g, &w) == 0) {
            continue;
        }
        perf_answer before = perf_fixture_predict(&g, &w);
        double floor = 0;
        for (int t = 0; t < PERF_LAUNCH; t++) {
            floor = fmax(floor, before.term_ns[t]);
        }
        ck_assert(before.ns >= floor + before.term_ns[PERF_LAUNCH]);
        if (worsen(i % 19, &w, &g)) {
            perf_answer after = perf_fixture_predict(&g, &w);
            ck_assert_msg(after.ns >= before.ns * (1 - 1e-12), "change %d, case %d: %g to %g",
                          i % 19, i, before.ns, after.ns);
        }
    }
}
END_TEST

START_TEST(impossible_work_is_refused)
{
    gpu g = perf_fixture_gpu("a100");
    perf_work work = {.ctas = 1, .threads = 128, .registers = 32};
    perf_answer a = {.ns = 7};
    hone_error error = {0};

    work.tensor_macs[GPU_MMA_FP8] = 1;
    ck_assert_int_eq(perf_predict(&g, &work, &a, &error), HONE_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "no fp8 mma"));
    work.tensor_macs[GPU_MMA_FP8] = NAN;
    ck_assert_int_eq(perf_predict(&g, &work, &a, &error), HONE_BAD_ARGUMENT);
    work.tensor_macs[GPU_MMA_FP8] = 0;
    work.dram_bytes = -1;
    ck_assert_int_eq(perf_predict(&g, &work, &a, &error), HONE_BAD_ARGUMENT);
    work.dram_bytes = 0;
    work.threads = 0;
    ck_assert_int_eq(perf_predict(&g, &work, &a, &error), HONE_BAD_ARGUMENT);
    ck_assert_double_eq(a.ns, 7); /* untouched when refused */
    work.threads = 128;
    work.ctas = 0; /* an empty launch still launches */
    ck_assert_int_eq(perf_predict(&g, &work, &a, &error), HONE_OK);
    ck_assert_double_eq(a.ns, 1000);
    ck_assert_int_eq(a.bound, PERF_LAUNCH);
}
END_TEST

START_TEST(the_roof_is_the_data_sheet)
{
    gpu g = perf_fixture_gpu("h20");

    ck_assert_double_eq_tol(perf_peak_flops(&g, GPU_MMA_FP8), 296e12, 1e6);
    ck_assert_double_eq_tol(perf_peak_flops(&g, GPU_MMA_BF16), 148e12, 1e6);
    ck_assert_double_eq(perf_peak_flops(&g, GPU_MMA_FP4), 0);
    ck_assert_double_eq(perf_peak_flops(&g, GPU_MMA_KINDS), 0);
    /* the launch, and one and a half latencies of DRAM */
    ck_assert_double_eq_tol(perf_launch_ns(&g), g.launch_ns + 1.5 * g.dram_latency_ns, 1e-9);
    for (int i = 0; i < PERF_BOUNDS; i++) {
        ck_assert_str_ne(perf_bound_name((perf_bound)i), "?");
    }
    ck_assert_str_eq(perf_bound_name(PERF_BOUNDS), "?");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("perf");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_term_is_its_work_over_its_rate);
    tcase_add_loop_test(tests, a_known_kernel_has_its_bound, 0, sizeof kernels / sizeof kernels[0]);
    tcase_add_test(tests, fp8_mma_sync_on_hopper_runs_as_f16);
    tcase_add_test(tests, a_tiny_grid_does_not_reach_the_whole_bandwidth);
    tcase_add_test(tests, what_is_asked_for_at_once_waits_one_latency);
    tcase_add_test(tests, ctas_that_meet_pay_for_it);
    tcase_add_test(tests, a_tail_wave_costs_a_wave);
    tcase_add_loop_test(tests, occupancy_follows_the_scarcest_resource, 0,
                        sizeof fits / sizeof fits[0]);
    tcase_add_test(tests, worse_is_never_faster);
    tcase_add_test(tests, impossible_work_is_refused);
    tcase_add_test(tests, the_roof_is_the_data_sheet);
    return suite_run("models/perf", tests);
}
