/* test_prove.c - real templates, compiled and run on the emulated GPU: what is right is proved and
 * timed, mutants of the source are refused, faults are named. */
#include "bench/prove_parts.h"
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ONE_TOKEN                                                                                  \
    "kv_quant:tokens=1,pages=64,record_format=v41_528,record_layout=split,record_rule=pow2_amax"
#define INDEX "record_format=index_132,record_layout=split,record_rule=raw_amax"
static const struct {
    const char *device, *problem;
    bool sampled;
} right[] = {
    {"emu:h20", "fp8_gemm:m=33,n=136,k=320,recipe=f32-1x128-128x128", false},
    {"emu:rtx4090", "fp8_gemm:m=17,n=64,k=160,recipe=ue8m0-1x32-1x32,out=f32", false},
    {"emu:h20", "fp8_gemm:m=9,n=96,k=256,recipe=f32-1x32-32x32,out=f32,accumulate=1", false},
    {"emu:h20", "fp8_gemm:m=200,n=1536,k=1024,recipe=f32-1x128-128x128", true},
    {"emu:h20", "fp8_gemm:m=1,n=8192,k=5120,recipe=ue8m0-1x32-32x32", true},
    {"emu:h20", "act_quant:m=13,k=512", false},
    {"emu:h20", "kv_quant:tokens=70,pages=3,page_size=64," INDEX, false},
    {"emu:h20", "fp8_gemm:m=2048,n=2048,k=128,recipe=f32-1x128-128x128,accumulate=1", true},
    {"emu:h20", "fp8_gemm:m=512,n=1024,k=256,recipe=f32-1x128-128x128,out=f32,accumulate=1", true},
    {"emu:h20", "act_quant:m=600,k=2048,scale=ue8m0,group=32", false},
    {"emu:h20", "act_quant:m=4098,k=7168,scale=ue8m0,group=32", true},
    {"emu:h20", "act_quant:m=4099,k=2176,scale_layout=tma", true},
    {"emu:rtx4090", "act_quant:m=3000,k=3072,scale_layout=row", true},
    {"emu:h20", "fold:m=600,k=2080", false},
    {"emu:a100", "fold:m=600,k=2080", false}, /* has no conversions to e4m3 */
    {"emu:h20", "fold:m=4099,k=7168", true},
    {"emu:h20", ONE_TOKEN, false},
};

START_TEST(a_template_is_proved_and_gets_a_modelled_time)
{
    prove_fixture f;
    prove_result r;

    prove_fixture_open(&f, right[_i].device, right[_i].problem, NULL, NULL, NULL, NULL);
    prove_fixture_run(&f, &r);
    ck_assert_msg(r.outcome == STORE_OK, "%s: %s", right[_i].problem, r.reason);
    ck_assert_int_eq(r.timer, STORE_TIMER_MODELLED);
    ck_assert(r.modelled && r.time_ns > 0.0 && r.samples_len == 1);
    ck_assert_double_le(r.verify.max_err_ratio, 1.0);
    /* Rounding shows that the inputs left something to compare. */
    ck_assert(f.problem.op != HONE_OP_FP8_GEMM || r.verify.max_err > 0.0);
    ck_assert_msg((r.ctas_run < r.ctas_total) == right[_i].sampled, "%llu of %llu CTAs",
                  (unsigned long long)r.ctas_run, (unsigned long long)r.ctas_total);
    ck_assert_uint_ge(r.ctas_run, r.ctas_total < 4 ? r.ctas_total : 4);
    prove_fixture_close(&f);
}
END_TEST

/* Faults seeded into the real templates. */
#define GEMM "fp8_gemm:m=33,n=136,k=320,recipe=f32-1x128-128x128"
#define GEMM_TILE                                                                                  \
    "swap=0 block_m=32 block_n=48 block_k=128 warps_m=2 warps_n=2 warps_k=1 split_k=1 stages=2 "   \
    "promote=128 raster=1 residency=1"
#define STORED "output_tile<C.align, C.accumulate>(sum, d, stride, row, column, rows, n)"
#define STORED_WITH(m, n)                                                                          \
    "output_tile<C.align, C.accumulate>(sum, d, stride, row, column, " m ", " n ")"
/* One token: padded rows, sampled CTAs, and a tail in K. */
#define DECODE "fp8_gemm:m=1,n=8192,k=5152,recipe=ue8m0-1x32-32x32"
#define ACT    "act_quant:m=13,k=512,scale=ue8m0,group=32"
/* Sampled, the last rows padding. */
#define ACT_LARGE  "act_quant:m=4098,k=7168,group=128"
#define ACT_PACKED "act_quant:m=4098,k=7168,group=32,scale=ue8m0"
#define ACT_REPEAT "vec=16 threads=128 rows=2 repeat=2"
#define SUM_LARGE  "fp8_gemm:m=2048,n=2048,k=128,recipe=f32-1x128-128x128,accumulate=1"
#define GEMM_LARGE "fp8_gemm:m=200,n=1536,k=1024,recipe=f32-1x128-128x128"
#define FOLD       "fold:m=13,k=416"
#define FOLD_LARGE "fold:m=4099,k=7168"
#define CACHE      "kv_quant:tokens=70,pages=3,page_size=64," INDEX
#define FP4_CACHE  "kv_quant:tokens=70,pages=3,record=v41_288-split-e4m3_near"
#define SINGLE     "kv_quant:tokens=9,pages=3,record=fp8_576-flat-tensor"
#define COPY       "kv_quant:tokens=9,pages=3,record=bf16_1152-flat-unscaled"
static const struct {
    const char *name, *problem, *old, *new, *config;
} mutants[] = {
    {"A's scales by group where the row belongs", GEMM, ".row_stride = a_scale_row",
     ".row_stride = a_scale_group", GEMM_TILE},
    {"the next row's scale", GEMM, ".first_row = m0", ".first_row = m0 + 1", GEMM_TILE},
    {"the other half's row scale", GEMM, "fmaf(high * left", "fmaf(low * left", GEMM_TILE},
    {"K's tail is left out", GEMM, "blocks = ceil_div(k, C.block_k)", "blocks = k / C.block_k",
     GEMM_TILE},
    {"K's tail is not masked", GEMM, "k, n - n0, k}", "k, n - n0, k + 64}", GEMM_TILE},
    {"no barrier before a block is read", GEMM, "__syncthreads(); // this block", "// this block",
     GEMM_TILE},
    {"the last row is not written", GEMM, STORED, STORED_WITH("rows - 1", "n"), GEMM_TILE},
    {"a column too many is written", GEMM, STORED, STORED_WITH("rows", "n + 1"), GEMM_TILE},
    {"one token: K's tail is left out", DECODE, "blocks = ceil_div(k, C.block_k)",
     "blocks = k / C.block_k", NULL},
    {"one token: the scales of B's next rows", DECODE, ".first_row = n0", ".first_row = n0 + 32",
     NULL},
    {"one token: A's scales without their group", DECODE, ".group_stride = a_scale_group",
     ".group_stride = 0", NULL},
    {"floor instead of ceiling", ACT, "bits + 0x1fffffu", "bits", NULL},
    {"the last row of q is not written", ACT, "const bool valid = there &&",
     "const bool valid = row < m - 1 &&", NULL},
    {"folded: NaN becomes a number", FOLD, "if ((code & 0x7f) == 0x7f) {", "if (code == 0x100) {",
     NULL},
    {"folded: the tail of a row is left out", FOLD, "if (row < m && at < k) {\n#pragma",
     "if (row < m && (block + 1) * W::kBlock <= k) {\n#pragma", NULL},
    {"folded: a count for each lane is one for each warp", FOLD, "atomicAdd(inexact, u64(all));",
     "atomicAdd(inexact, 1ull);", NULL},
    {"large fold: padding is left out", FOLD_LARGE, "row < rows_padded && block < blocks_padded",
     "row < m && at < k", NULL},
    {"large fold: a lane's later blocks are left out", FOLD_LARGE,
     "const bool padding = row >= m || at >= k;", "const bool padding = t > 0;", ACT_REPEAT},
    {"one page further", CACHE, "slot >> page_shift", "(slot >> page_shift) + 1", NULL},
    {"slot -1 is not skipped", CACHE, "u64(page) < u64(pages) &&", "page < pages &&", NULL},
    {"one token: nothing is multiplied", DECODE, "block < line.blocks; block++",
     "block < 0; block++", NULL},
    {"large: scales above 1 are cut", GEMM_LARGE, "left = right = column_scales[j];",
     "left = right = min(column_scales[j], 1.0f);", GEMM_TILE},
    {"large sum: D is written over", SUM_LARGE, "output_tile<C.align, C.accumulate>",
     "output_tile<C.align, false>", GEMM_TILE},
    {"large sum: the last row is not written", SUM_LARGE, STORED, STORED_WITH("rows - 1", "n"),
     GEMM_TILE},
    {"large: only the first CTA writes q", ACT_LARGE, "const bool valid = there && group < groups;",
     "const bool valid = there && group < groups && blockIdx.x + blockIdx.y == 0;", NULL},
    {"large: odd rows of q are left out", ACT_LARGE, "const bool valid = there && group < groups;",
     "const bool valid = there && group < groups && row % 2 == 0;", ACT_REPEAT},
    {"large: a lane's later groups are left out", ACT_LARGE,
     "const bool valid = there && group < groups;",
     "const bool valid = there && group < groups && t == 0;", ACT_REPEAT},
    {"large: a lane's later groups are left out, scales too", ACT_LARGE,
     "const bool valid = there && group < groups;",
     "if (t > 0) continue; const bool valid = there && group < groups;", ACT_REPEAT},
    {"large: every other CTA leaves at once", ACT_LARGE, "const i64 groups = k / C.group, ",
     "if (blockIdx.x % 2 == 1) return; const i64 groups = k / C.group, ", ACT_REPEAT},
    {"large: padding is NaN", ACT_PACKED, "valid ? s : 1.0f",
     "valid ? s : __uint_as_float(0x7f800000u)", NULL},
    {"large: padding is left out", ACT_PACKED, "row < rows_padded && group < groups_padded",
     "row < m && group < groups", NULL},
    {"large: padding is NaN, fp32", ACT_LARGE, "valid ? s : 1.0f",
     "valid ? s : __uint_as_float(0x7fc00000u)", ACT_REPEAT},
    {"large: a scale 64 rows below is written", ACT_LARGE, "valid ? s : 1.0f);",
     "valid ? s : 1.0f); if (row + 64 < m) store_scale<C.ue8m0>(scale, at + 64, 3.0f);",
     ACT_REPEAT},
    {"NaN counts as the largest", ACT, "magnitude < kInfinityBits ? magnitude : 0", "magnitude",
     NULL},
    {"NaN counts as the largest, in a cache", CACHE, "finite.maxima(maxima);", "", NULL},
    {"NaN in a cache is not counted", CACHE, "atomicAdd(nonfinite, u64(count));", "", NULL},
    {"a NaN spoils its lane alone", FP4_CACHE, "lanes_larger<Work<C>::kLanes>(maxima);", "", NULL},
    {"an infinity is a number", FP4_CACHE, "piece_max(maxima, r) >= kInfinityBits",
     "piece_max(maxima, r) > kInfinityBits", NULL},
    {"a scale of zero is taken", SINGLE,
     "d.usable ? __fdiv_rn(x[i], d.s) : __uint_as_float(0x7fffffffu)", "__fdiv_rn(x[i], d.s)",
     NULL},
    {"rows of bf16 end early", COPY, "r < C.pieces; r++) {\n        copy_bytes<16, C.align>(to",
     "r < C.pieces && thread > 0; r++) {\n        copy_bytes<16, C.align>(to", NULL},
    {"a large one: NaN counts as the largest", ACT_LARGE,
     "magnitude < kInfinityBits ? magnitude : 0", "magnitude", NULL},
    {"one token: its page is ignored", ONE_TOKEN, "return {cache + page * page_stride,",
     "return {cache,", NULL},
    {"one token: slot -1 is not skipped", ONE_TOKEN, "u64(page) < u64(pages) &&", "page < pages &&",
     NULL},
    {"one token: only -1 is skipped", ONE_TOKEN, "u64(page) < u64(pages) &&",
     "(u64(page) < u64(pages) || slot < -1) &&", NULL},
    {"one token: what is dropped is not counted", ONE_TOKEN, "atomicAdd(dropped, 1ull);", "", NULL},
    {"one token: the floor is lower", ONE_TOKEN, "larger_pair<bf16>(amax, 0x38d138d1u)",
     "larger_pair<bf16>(amax, 0x35863586u)", NULL},
};

START_TEST(a_mutant_of_a_template_is_refused)
{
    prove_fixture f;
    prove_result r, beside;
    hone_error error = {0};

    /* All faults of products are in the text of one template. */
    prove_fixture_open(&f, "emu:h20", mutants[_i].problem,
                       strncmp(mutants[_i].problem, "fp8_gemm", 8) == 0 ? "fp8_gemm/mma_sync"
                                                                        : NULL,
                       mutants[_i].config, mutants[_i].old, mutants[_i].new);
    prove_fixture_run(&f, &r);
    prover_use_threads(f.p, 2);
    ck_assert_msg(prover_run(f.p, f.m, &f.plan, f.code, &beside, &error) == HONE_OK, "%s",
                  error.message);
    ck_assert_int_eq(beside.outcome, r.outcome);
    if (r.outcome != STORE_FAULT) { /* which names an address of its own device */
        ck_assert_str_eq(beside.reason, r.reason);
    }
    ck_assert_msg(r.outcome == STORE_WRONG || r.outcome == STORE_FAULT || r.outcome == STORE_NONDET,
                  "%s: outcome %s", mutants[_i].name, store_outcome_name(r.outcome));
    ck_assert_uint_gt(strlen(r.reason), 0);
    prove_fixture_close(&f);
}
END_TEST

START_TEST(one_prover_serves_many_candidates)
{
    prove_fixture f;
    prove_result first, second;

    prove_fixture_open(&f, "emu:h20", "fp8_gemm:m=5,n=64,k=256,recipe=f32-1x128-128x128", NULL,
                       NULL, NULL, NULL);
    prove_fixture_run(&f, &first);
    prove_fixture_run(&f, &second);
    ck_assert_int_eq(second.outcome, STORE_OK);
    ck_assert_double_eq(first.time_ns, second.time_ns);
    ck_assert_double_eq(first.verify.calc_diff, second.verify.calc_diff);
    prove_fixture_close(&f);
}
END_TEST

START_TEST(a_launch_that_fails_is_an_outcome_and_the_next_one_works)
{
    prove_fixture f;
    prove_result r;
    hone_error error = {0};

    prove_fixture_open(&f, "emu:h20", "act_quant:m=4,k=256", NULL, NULL, NULL, NULL);
    ck_assert_int_eq(f.d->driver->emu->set_launch_fault((int)f.d->ordinal, 1,
                                                        CUDA_ERROR_ILLEGAL_ADDRESS, &error),
                     HONE_OK);
    prove_fixture_run(&f, &r);
    ck_assert_msg(r.outcome == STORE_FAULT || r.outcome == STORE_LAUNCH, "outcome %d", r.outcome);
    ck_assert_uint_gt(strlen(r.reason), 0);
    ck_assert_int_eq(f.d->driver->emu->set_launch_fault((int)f.d->ordinal, 0, 0, &error), HONE_OK);
    f.d->driver->emu->reset((int)f.d->ordinal, &error);
    prove_fixture_run(&f, &r);
    ck_assert_msg(r.outcome == STORE_OK, "%s", r.reason);
    prove_fixture_close(&f);
}
END_TEST

START_TEST(samples_are_distinct_and_hold_both_ends)
{
    const hone_problem problem = {.op = HONE_OP_ACT_QUANT};

    for (uint64_t total = 7; total < 3000; total += 131) {
        const plan p = {.launches_len = 1, .launches = {{.grid = {(uint32_t)total, 1, 1}}}};
        uint64_t sample[PROVE_SAMPLE_MOST];
        size_t len = 0;
        prove_sample(prove_tiles_all(&problem, NULL, &p), &p, 6, total, sample, &len);
        ck_assert_uint_eq(len, 6);
        ck_assert_uint_eq(sample[0], 0);
        ck_assert_uint_eq(sample[1], total - 1);
        for (size_t i = 0; i < len; i++) {
            ck_assert_uint_lt(sample[i], total);
            for (size_t j = 0; j < i; j++) {
                ck_assert_uint_ne(sample[i], sample[j]);
            }
        }
    }
}
END_TEST

START_TEST(a_sample_holds_whole_groups_of_a_cover)
{
    const plan p = {.launches_len = 1,
                    .launches = {{.grid = {4 * 100, 1, 1}}},
                    .cover = {.rows = 64, .columns = 64, .ctas = 4}};
    const hone_problem problem = {.op = HONE_OP_FP8_GEMM,
                                  .as.fp8_gemm = {.m = 640, .n = 640, .batch = 1}};
    uint64_t sample[PROVE_SAMPLE_MOST];
    size_t len = 0;

    prove_sample(prove_tiles_all(&problem, NULL, &p), &p, 6, 1, sample, &len);
    ck_assert_uint_eq(len, 6 * 4);
    for (size_t i = 0; i < len; i++) {
        ck_assert_uint_eq(sample[i], sample[i / 4 * 4] + i % 4);
        ck_assert_uint_eq(sample[i / 4 * 4] % 4, 0);
    }
}
END_TEST

/* Tile t is made by group t % groups. */
static bool has_group(const uint64_t *sample, size_t len, uint64_t group)
{
    for (size_t i = 0; i < len; i++) {
        if (sample[i] == group) {
            return true;
        }
    }
    return false;
}

START_TEST(a_sample_of_a_cover_holds_the_groups_that_go_wrong)
{
    for (uint64_t tiles = 40; tiles < 400; tiles += 7) {
        for (uint64_t groups = 7; groups <= tiles; groups += 5) {
            const plan p = {.launches_len = 1,
                            .launches = {{.grid = {(uint32_t)groups, 1, 1}}},
                            .cover = {.rows = 64, .columns = 64, .ctas = 1}};
            const hone_problem problem = {
                .op = HONE_OP_FP8_GEMM,
                .as.fp8_gemm = {.m = 64 * (int64_t)tiles - 1, .n = 1, .batch = 1}};
            uint64_t sample[PROVE_SAMPLE_MOST], made = 0;
            size_t len = 0;
            prove_sample(prove_tiles_all(&problem, NULL, &p), &p, 5, tiles, sample, &len);
            ck_assert_uint_eq(len, 5);
            ck_assert(has_group(sample, len, 0));
            ck_assert(has_group(sample, len, (tiles - 1) % groups)); /* tails */
            ck_assert(has_group(sample, len, groups - 1));           /* short, or as all */
            ck_assert(has_group(sample, len, tiles % groups));       /* its turn never comes */
            for (size_t i = 0; i < len; i++) {
                for (uint64_t t = sample[i]; t < tiles; t += groups) {
                    made++;
                }
            }
            ck_assert_uint_eq(prove_tiles(prove_tiles_all(&problem, NULL, &p), &p, sample, len),
                              made);
        }
    }
}
END_TEST

START_TEST(a_persistent_grid_is_spread_to_three_tiles_a_group)
{
    const char *text = "fp8_gemm:m=4096,n=7168,k=2048,recipe=f32-1x128-128x128";
    plan p = {.launches_len = 1,
              .launches = {{.grid = {78, 1, 1}}},
              .cover = {.rows = 256, .columns = 128, .ctas = 2}};
    plan *spread = NULL;
    hone_problem problem = {.size = sizeof problem};

    ck_assert_int_eq(hone_problem_parse(text, &problem, NULL), HONE_OK);
    ck_assert_int_eq(prove_spread(prove_tiles_all(&problem, NULL, &p), &p, &spread, NULL), HONE_OK);
    ck_assert_ptr_nonnull(spread);
    ck_assert_uint_eq(spread->launches[0].grid[0], 2 * 299); /* 896 tiles: one group makes 2 */
    free(spread);
    spread = NULL;
    p.launches[0].grid[0] = 2 * 16 * 56; /* a group for each tile already */
    ck_assert_int_eq(prove_spread(prove_tiles_all(&problem, NULL, &p), &p, &spread, NULL), HONE_OK);
    ck_assert_ptr_null(spread);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("prove");

    if (!prove_fixture_start("prove")) {
        return 0;
    }
    tcase_add_loop_test(tests, a_template_is_proved_and_gets_a_modelled_time, 0, ARRAY_LEN(right));
    tcase_add_loop_test(tests, a_mutant_of_a_template_is_refused, 0, ARRAY_LEN(mutants));
    tcase_add_test(tests, one_prover_serves_many_candidates);
    tcase_add_test(tests, a_launch_that_fails_is_an_outcome_and_the_next_one_works);
    tcase_add_test(tests, samples_are_distinct_and_hold_both_ends);
    tcase_add_test(tests, a_sample_holds_whole_groups_of_a_cover);
    tcase_add_test(tests, a_sample_of_a_cover_holds_the_groups_that_go_wrong);
    tcase_add_test(tests, a_persistent_grid_is_spread_to_three_tiles_a_group);
    const int result = suite_run_here("bench/prove", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
