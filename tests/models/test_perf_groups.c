/* test_perf_groups.c - the performance model of kernels whose warpgroups multiply with wgmma:
 * published rates, a simulated pipeline, persistent grids. */
#include "tests/models/perf_fixture.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

/* An fp8 GEMM by wgmma, its grid persistent: loader warps, one or two groups that multiply, tiles
 * through shared memory. `promotions` of a K block of 128; B's scales for `columns` columns each.
 */
typedef struct tiling {
    int bm, bn, pair_m, pair_n, stages; /* CTAs of a cluster that share A's or B's loads */
} tiling;

static perf_work groups_gemm(const gpu *g, double m, double n, double k, tiling t, int promotions,
                             int sets, int columns)
{
    double down = ceil(m / t.bm), across = ceil(n / t.bn), tiles = down * across;
    double blocks = ceil(k / 128), rows = fmax(64, t.bm), groups = t.bm > 64 ? 2 : 1;
    double fma = rows * t.bn / 32 * promotions,
           mul = groups * 8 * promotions * ceil(t.bn / columns);
    double other = groups * 4 * (promotions > 1 ? 46 : 36), loaders = 160;
    double epilogue = groups * 4 * (t.bn / 8.0 * 6 + 60);
    double turns = t.bm + t.bn + rows / 64 * (64 + t.bn); /* written once, read by m64 tile */
    perf_work w = {
        .ctas = (uint64_t)fmin(g->facts.sm_count, tiles),
        .tiles = tiles,
        .threads = 128 * ((uint32_t)groups + 1),
        .cluster = (uint32_t)(t.pair_m * t.pair_n),
        .registers = 168,
        .shared_bytes = (t.bm + t.bn) * 128 * t.stages + t.bm * t.bn * 2 + 2048,
        .stages = t.stages,
        .groups = (int32_t)groups,
        .sets = sets,
        .units = tiles * groups * blocks * promotions,
        .epilogue_warp = tiles * epilogue,
        .fp32_warp = tiles * blocks * (fma + mul),
        .warp_instructions = tiles * (blocks * (fma + mul + other + loaders) + epilogue),
        .shared_wavefronts = tiles * (blocks * turns + t.bm * t.bn * 4.0 / 128),
        .l2_bytes = blocks * 128 * (m * across / t.pair_n + n * down / t.pair_m) + m * n * 2,
        .dram_bytes = (m + n) * k + m * n * 2,
    };

    w.warpgroup_macs[GPU_MMA_FP8] = tiles * rows * t.bn * blocks * 128;
    return w;
}

static double groups_tflops(const gpu *g, double m, double n, double k, const perf_work *work)
{
    return 2 * m * n * k / perf_fixture_predict(g, work).ns / 1e3;
}

/* Published rates (kernels.md 7.1; DeepGEMM issue 186 for H20), each at the tile that DeepGEMM's
 * own heuristics take. L2's rate and the launch on Hopper, which no data sheet gives, were set with
 * these in view. */
static const struct {
    const char *gpu;
    double m, n, k;
    tiling t;
    double tflops;
} published[] = {
    {"h800", 64, 2112, 7168, {64, 16, 1, 1, 16}, 206},
    {"h800", 64, 24576, 1536, {64, 96, 2, 1, 10}, 289},
    {"h800", 64, 32768, 512, {64, 128, 2, 1, 8}, 219},
    {"h800", 64, 7168, 16384, {64, 64, 1, 1, 13}, 336},
    {"h800", 64, 4096, 7168, {64, 32, 1, 1, 16}, 287},
    {"h800", 64, 7168, 2048, {64, 64, 1, 1, 13}, 295},
    {"h800", 128, 2112, 7168, {64, 32, 1, 1, 16}, 352},
    {"h800", 128, 24576, 1536, {128, 96, 1, 2, 7}, 535},
    {"h800", 128, 32768, 512, {128, 128, 2, 1, 5}, 358},
    {"h800", 128, 7168, 16384, {64, 112, 1, 1, 9}, 645},
    {"h800", 128, 4096, 7168, {64, 64, 1, 1, 13}, 533},
    {"h800", 128, 7168, 2048, {64, 112, 1, 1, 9}, 510},
    {"h800", 4096, 2112, 7168, {128, 192, 2, 1, 4}, 1127},
    {"h800", 4096, 24576, 1536, {256, 128, 1, 2, 3}, 1212},
    {"h800", 4096, 32768, 512, {256, 128, 1, 2, 3}, 775},
    {"h800", 4096, 7168, 16384, {256, 128, 1, 2, 3}, 1520},
    {"h800", 4096, 4096, 7168, {256, 128, 1, 2, 3}, 1410},
    {"h800", 4096, 7168, 2048, {256, 128, 1, 2, 3}, 1168},
    {"h20", 256, 1280, 8192, {64, 80, 1, 1, 8}, 190},
};

START_TEST(published_rates_are_near)
{
    gpu g = perf_fixture_gpu(published[_i].gpu);
    double m = published[_i].m, n = published[_i].n, k = published[_i].k;
    perf_work work = groups_gemm(&g, m, n, k, published[_i].t, 1, 1, 128);
    double share = groups_tflops(&g, m, n, k, &work) / published[_i].tflops;

    ck_assert_msg(share > 0.85 && share < 1.25, "%.0f x %.0f x %.0f: %.2f", m, n, k, share);
}
END_TEST

START_TEST(published_rates_are_met_on_average)
{
    double sum = 0;
    size_t len = 0;

    for (; strcmp(published[len].gpu, "h800") == 0; len++) {
        gpu g = perf_fixture_gpu("h800");
        double m = published[len].m, n = published[len].n, k = published[len].k;
        perf_work work = groups_gemm(&g, m, n, k, published[len].t, 1, 1, 128);

        sum += log(groups_tflops(&g, m, n, k, &work) / published[len].tflops);
    }
    ck_assert_uint_eq(len, 18);
    ck_assert_double_eq_tol(exp(sum / (double)len), 1.0, 0.08);
}
END_TEST

/* The share of the tensor pipe's time in which it works, by per32.md's cycle-by-cycle simulation
 * with 40 clocks from product to wait: K = 32 promotions of m64n128, 692 issue clocks a block for
 * two groups. */
static const struct {
    const char *claim, *gpu;
    int groups, sets;
    double share;
} chains[] = {
    {"two groups that take turns", "h200", 2, 1, 0.56},
    {"two groups with two sets", "h200", 2, 2, 0.729},
    {"three groups that take turns", "h200", 3, 1, 0.71},
    {"the slow unit of H20 hides promotions", "h20", 2, 1, 1},
    {"and with two sets", "h20", 2, 2, 1},
};

START_TEST(a_chain_keeps_the_tensor_pipe_as_busy_as_simulated)
{
    gpu g = perf_fixture_gpu(chains[_i].gpu);
    double groups = chains[_i].groups, blocks = 1e5, sms = g.facts.sm_count;
    perf_work work = {.ctas = (uint64_t)sms,
                      .threads = 128 * (uint32_t)(groups + 1),
                      .registers = groups > 2 ? 128 : 168,
                      .stages = 4,
                      .groups = chains[_i].groups,
                      .sets = chains[_i].sets,
                      .units = sms * blocks * groups * 4};

    work.warpgroup_macs[GPU_MMA_FP8] = sms * blocks * groups * 64 * 128 * 128;
    work.warp_instructions = sms * blocks * groups * 4 * 346;
    g.tensor_sustained = 1;
    double busy = 2 * work.warpgroup_macs[GPU_MMA_FP8] / perf_peak_flops(&g, GPU_MMA_FP8) * 1e9;
    double share = busy / perf_fixture_predict(&g, &work).ns;
    ck_assert_msg(fabs(share / chains[_i].share - 1) < 0.05, "%s: %.3f", chains[_i].claim, share);
}
END_TEST

/* per32.md 3: what H20 and H200 lose by promoting every 32 of K at large M. */
START_TEST(promotion_by_32_costs_nothing_on_h20_and_a_quarter_at_most_on_h200)
{
    static const tiling large = {128, 192, 2, 1, 4};
    static const char *const slugs[] = {"h20", "h200"};
    static const double least[] = {0.97, 0.75};

    for (int i = 0; i < 2; i++) {
        gpu g = perf_fixture_gpu(slugs[i]);
        perf_work by128 = groups_gemm(&g, 8192, 8064, 8192, large, 1, 1, 128);
        perf_work by32 = groups_gemm(&g, 8192, 8064, 8192, large, 4, 2, 32);
        perf_work turns = groups_gemm(&g, 8192, 8064, 8192, large, 4, 1, 32);
        double ratio = perf_fixture_predict(&g, &by128).ns / perf_fixture_predict(&g, &by32).ns;

        ck_assert_msg(ratio > least[i] && ratio <= 1, "%s: %.3f", slugs[i], ratio);
        ck_assert_double_ge(perf_fixture_predict(&g, &turns).ns,
                            perf_fixture_predict(&g, &by32).ns);
    }
}
END_TEST

/* 134 pieces on 132 SMs take as long as 264 of the same size; a grid that covers all does not
 * change that, and stores add to each. */
START_TEST(a_persistent_grid_has_its_tail_in_whole_pieces)
{
    gpu g = perf_fixture_gpu("h200");
    perf_work one = groups_gemm(&g, 128, 132 * 128, 8192, (tiling){128, 128, 1, 1, 6}, 1, 1, 128);
    perf_work more = groups_gemm(&g, 128, 134 * 128, 8192, (tiling){128, 128, 1, 1, 6}, 1, 1, 128);
    perf_work slow = one;
    double single = perf_fixture_predict(&g, &one).term_ns[PERF_TENSOR];

    ck_assert_uint_eq(more.ctas, 132);
    ck_assert_double_eq_tol(perf_fixture_predict(&g, &more).term_ns[PERF_TENSOR], 2 * single,
                            1e-6 * single);
    /* 1000 warp instructions more for each tile, two groups of four warps: 250 on a sub-partition,
     * 125 of each group's warp, 3 clocks each */
    slow.epilogue_warp += 132e3;
    slow.warp_instructions += 132e3;
    ck_assert_double_eq_tol(perf_fixture_predict(&g, &slow).term_ns[PERF_CHAIN] -
                                perf_fixture_predict(&g, &one).term_ns[PERF_CHAIN],
                            125 * 3 / 1.83, 1e-3);
}
END_TEST

/* Tiles in flight share their operands: a square patch of them reads less than a long row, and it
 * shows where L2 does not hold all. H200's 60 MiB hold the small ones. */
START_TEST(a_compact_patch_of_tiles_spares_dram)
{
    gpu g = perf_fixture_gpu("h200");
    static const double sizes[] = {1024, 16384};

    for (int i = 0; i < 2; i++) {
        double n = sizes[i];
        perf_work row = groups_gemm(&g, n, n, n, (tiling){128, 128, 2, 1, 5}, 1, 1, 128);
        perf_work patch = row;
        row.wave_bytes = (1 * 128 + 132 * 128) * n;
        patch.wave_bytes = (8 * 128 + 17 * 128) * n;
        perf_answer slow = perf_fixture_predict(&g, &row), fast = perf_fixture_predict(&g, &patch);
        ck_assert(n > 2000 ? slow.term_ns[PERF_DRAM] > 2 * fast.term_ns[PERF_DRAM]
                           : slow.term_ns[PERF_DRAM] == fast.term_ns[PERF_DRAM]);
    }
    /* 16384 square: 126 waves of 25 x 128 rows of 16384 bytes; 60 MiB of 1 GiB stay */
    perf_work work = groups_gemm(&g, 16384, 16384, 16384, (tiling){128, 128, 2, 1, 5}, 1, 1, 128);
    work.wave_bytes = 25.0 * 128 * 16384;
    double once = work.dram_bytes, waves = 16384.0 / 132;
    double bytes = once + (1 - 60 * 1048576 / once) * (waves * work.wave_bytes - once);
    ck_assert_double_eq_tol(perf_fixture_predict(&g, &work).term_ns[PERF_DRAM],
                            bytes / (0.92 * 4800), 1);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("perf of groups");

    tcase_add_loop_test(tests, published_rates_are_near, 0, (int)ARRAY_LEN(published));
    tcase_add_test(tests, published_rates_are_met_on_average);
    tcase_add_loop_test(tests, a_chain_keeps_the_tensor_pipe_as_busy_as_simulated, 0,
                        (int)ARRAY_LEN(chains));
    tcase_add_test(tests, promotion_by_32_costs_nothing_on_h20_and_a_quarter_at_most_on_h200);
    tcase_add_test(tests, a_persistent_grid_has_its_tail_in_whole_pieces);
    tcase_add_test(tests, a_compact_patch_of_tiles_spares_dram);
    return suite_run("models/perf_groups", tests);
}
