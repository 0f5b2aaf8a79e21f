/* test_verify.c - verification passes products that are right and refuses each seeded fault, by
 * name. Quantisers, folds and caches: test_verify_quant.c. */
#include "tests/bench/verify_run.h"

#include "core/numfmt.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define GEMM_PLAIN "fp8_gemm:m=33,n=72,k=288,recipe=f32-1x128-128x128,out=bf16"
#define GEMM_UE8M0 "fp8_gemm:m=17,n=40,k=160,recipe=ue8m0-1x32-1x32,out=f32"
/* Few of D's elements outweigh the others, and their rounding to bf16 the gate. */
#define GEMM_UNEVEN                                                                                \
    "fp8_gemm:m=64,n=33,k=32,recipe=f32-1x32-1x32,accumulate=1,a_scale_layout=tma,"                \
    "b_scale_layout=col"
#define GEMM_BLOCKS "fp8_gemm:m=5,n=96,k=192,recipe=f32-1x32-32x32,out=f32,accumulate=1"
#define GEMM_FP4    "fp8_gemm:m=17,n=40,k=160,recipe=ue8m0-1x32-e2m1/1x32,out=f32"

static const verify_case cases[] = {
    {GEMM_PLAIN, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {GEMM_PLAIN, INPUTS_HOLES, NAIVE_RIGHT, NULL},
    {GEMM_PLAIN, INPUTS_EXTREMES, NAIVE_RIGHT, NULL},
    {GEMM_PLAIN, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {GEMM_PLAIN, INPUTS_TINY, NAIVE_RIGHT, NULL},
    {GEMM_PLAIN, INPUTS_ZEROS, NAIVE_RIGHT, NULL},
    {GEMM_UE8M0, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {GEMM_UE8M0, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {GEMM_BLOCKS, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {GEMM_FP4, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {GEMM_FP4, INPUTS_HOLES, NAIVE_RIGHT, NULL},
    {GEMM_FP4, INPUTS_EXTREMES, NAIVE_RIGHT, NULL},
    {GEMM_FP4, INPUTS_NORMAL, NAIVE_SWAPPED_SCALE, "off by"},
    {GEMM_FP4, INPUTS_NORMAL, NAIVE_K_TAIL, "off by"},
    {GEMM_PLAIN, INPUTS_NORMAL, NAIVE_SWAPPED_SCALE, "off by"},
    {GEMM_PLAIN, INPUTS_NORMAL, NAIVE_ROW_SCALE_SHIFT, "off by"},
    {GEMM_UE8M0, INPUTS_NORMAL, NAIVE_SWAPPED_SCALE, "off by"},
    {GEMM_UE8M0, INPUTS_NORMAL, NAIVE_ROW_SCALE_SHIFT, "off by"},
    {GEMM_UE8M0, INPUTS_NORMAL, NAIVE_K_TAIL, "off by"},
    {GEMM_PLAIN, INPUTS_NORMAL, NAIVE_HALF, "left untouched"},
    {GEMM_PLAIN, INPUTS_NORMAL, NAIVE_TAIL_ROW, "d[0,32,0] was left untouched"},
    {GEMM_PLAIN, INPUTS_NORMAL, NAIVE_TAIL_COLUMN, "d[0,0,71] was left untouched"},
    {GEMM_PLAIN, INPUTS_NORMAL, NAIVE_NAN, "d[0,16,36] is not finite"},
    {GEMM_PLAIN, INPUTS_TINY, NAIVE_ZEROS, "off by"},
    {GEMM_PLAIN, INPUTS_ZEROS, NAIVE_TAIL_ROW, "left untouched"},
    {GEMM_BLOCKS, INPUTS_NORMAL, NAIVE_STALE_SUM, "off by"},
    {GEMM_BLOCKS, INPUTS_NORMAL, NAIVE_HALF, "off by"},
    {GEMM_UNEVEN, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {GEMM_UNEVEN, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {GEMM_UNEVEN, INPUTS_EXTREMES, NAIVE_RIGHT, NULL},
};

START_TEST(each_fault_is_refused_and_what_is_right_passes)
{
    verify_run_case(&cases[_i]);
}
END_TEST

/* cases.md 1: 128 ones are 128; payload and scale that do not belong together give 392, 224 or 112.
 */
START_TEST(a_scale_rounded_without_its_payload_is_refused)
{
    static const float wrong[] = {392.0f, 224.0f, 112.0f};
    verify_run r;

    verify_run_open(&r, "fp8_gemm:m=1,n=1,k=128,recipe=f32-1x128-128x128,out=f32", INPUTS_ONES);
    numfmt_encode(HONE_DTYPE_F32, r.out.image[4], 0, 128.0f);
    verify_run_judge(&r, 1, 1);
    ck_assert_msg(r.result.passed, "%s", r.result.reason);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        numfmt_encode(HONE_DTYPE_F32, r.out.image[4], 0, wrong[i]);
        verify_run_judge(&r, 1, 1);
        ck_assert(!r.result.passed);
    }
    verify_run_close(&r);
}
END_TEST

/* cases.md 17: two kernels write one half each; neither passes, though together they fill the
 * output. */
START_TEST(a_half_written_output_is_refused_whichever_half)
{
    static const naive_tile halves[] = {{0, 33, 0, 36}, {0, 33, 36, 72}};

    for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
        verify_run r;
        verify_run_open(&r, GEMM_PLAIN, INPUTS_NORMAL);
        naive_run(&r.problem, &r.in, NAIVE_RIGHT, &halves[i], &r.out);
        verify_run_judge(&r, 1, 1);
        ck_assert(!r.result.passed);
        verify_run_close(&r);
    }
}
END_TEST

/* 33 x 72 in tiles of 16 x 16: a grid of 3 x 5, the last row and column of tiles cut short. */
static const struct {
    const char *name;
    naive_tile tile[4];
    uint64_t run;
    bool passes;
} samples[] = {
    {"corners and tails",
     {{0, 16, 0, 16}, {0, 16, 64, 80}, {32, 48, 0, 16}, {32, 48, 64, 80}},
     4,
     true},
    {"neighbours that join",
     {{0, 16, 0, 16}, {0, 16, 16, 32}, {16, 32, 0, 16}, {32, 48, 64, 80}},
     4,
     true},
    {"one CTA wrote nothing", {{0, 16, 0, 16}, {0, 16, 64, 80}, {32, 48, 0, 16}}, 4, false},
    {"a tile lacks its last row",
     {{0, 16, 0, 16}, {0, 15, 64, 80}, {32, 48, 0, 16}, {32, 48, 64, 80}},
     4,
     false},
    {"a tail lacks its last column",
     {{0, 16, 0, 16}, {0, 16, 64, 71}, {32, 48, 0, 16}, {32, 48, 64, 80}},
     4,
     false},
    {"a tile is written twice, another not",
     {{0, 16, 0, 16}, {0, 16, 0, 16}, {32, 48, 0, 16}, {32, 48, 64, 80}},
     4,
     false},
};

START_TEST(sampled_ctas_must_have_written_whole_tiles)
{
    verify_run r;

    verify_run_open(&r, GEMM_PLAIN, INPUTS_NORMAL);
    for (size_t i = 0; i < 4; i++) {
        naive_run(&r.problem, &r.in, NAIVE_RIGHT, &samples[_i].tile[i], &r.out);
    }
    verify_run_judge(&r, samples[_i].run, 15);
    ck_assert_msg(r.result.passed == samples[_i].passes, "%s: %s", samples[_i].name,
                  r.result.reason);
    verify_run_close(&r);
}
END_TEST

/* The same 15 tiles of 16 x 16 by 8 groups of two CTAs, which make two tiles each, the last group
 * one: how many tiles of a row-major grid are there after six groups ran, which make `wanted`. */
static const struct {
    const char *name;
    uint64_t wanted;
    int64_t tiles, columns; /* columns: of the cover's tile */
    bool passes;
} covered[] = {
    {"the short group was not among them", 12, 12, 16, true},
    {"the short group was among them", 11, 11, 16, true},
    {"one group dropped its last tile", 12, 11, 16, false},
    {"the short group made two", 11, 12, 16, false},
    {"each group dropped its second tile", 12, 6, 16, false},
    {"two tiles are missing", 12, 10, 16, false},
    {"a tile too many", 12, 13, 16, false},
    {"tiles of another size", 12, 12, 48, false},
};

START_TEST(groups_must_have_made_their_share_of_whole_tiles)
{
    hone_error error = {0};
    verify_run r;

    verify_run_open(&r, GEMM_PLAIN, INPUTS_NORMAL);
    for (int64_t t = 0; t < covered[_i].tiles; t++) {
        const int64_t row = t / 5 * 16, column = t % 5 * 16;
        const naive_tile tile = {row, row + 16, column, column + 16};
        naive_run(&r.problem, &r.in, NAIVE_RIGHT, &tile, &r.out);
    }
    const verify_request request = {.problem = &r.problem,
                                    .before = &r.in,
                                    .after = (const uint8_t *const *)r.out.image,
                                    .tolerance = 36.0,
                                    .ctas_run = 12,
                                    .ctas_total = 16,
                                    .cover = {16, covered[_i].columns, 2},
                                    .tiles_run = covered[_i].wanted};
    ck_assert_int_eq(verify_outputs(&request, &r.result, &error), HONE_OK);
    ck_assert_msg(r.result.passed == covered[_i].passes, "%s: %s", covered[_i].name,
                  r.result.reason);
    verify_run_close(&r);
}
END_TEST

START_TEST(one_wrong_element_among_sampled_tiles_is_found)
{
    verify_run r;

    verify_run_open(&r, GEMM_PLAIN, INPUTS_NORMAL);
    for (size_t i = 0; i < 4; i++) {
        naive_run(&r.problem, &r.in, NAIVE_RIGHT, &samples[0].tile[i], &r.out);
    }
    numfmt_encode(HONE_DTYPE_BF16, r.out.image[4], 32 * 72 + 70,
                  2.0f * numfmt_decode(HONE_DTYPE_BF16, r.out.image[4], 32 * 72 + 70));
    verify_run_judge(&r, 4, 15);
    ck_assert(!r.result.passed);
    ck_assert_ptr_nonnull(strstr(r.result.reason, "d[0,32,70]"));
    verify_run_close(&r);
}
END_TEST

/* A byte beyond an output by one is found (cases.md 17). */
START_TEST(a_red_zone_tells_where_it_was_hit)
{
    uint8_t zone[VERIFY_RED_ZONE_BYTES];

    memset(zone, VERIFY_RED_ZONE_BYTE, sizeof zone);
    ck_assert_uint_eq(verify_red_zone(zone, sizeof zone), sizeof zone);
    zone[0] = 0;
    ck_assert_uint_eq(verify_red_zone(zone, sizeof zone), 0);
    zone[0] = VERIFY_RED_ZONE_BYTE;
    zone[sizeof zone - 1] ^= 1;
    ck_assert_uint_eq(verify_red_zone(zone, sizeof zone), sizeof zone - 1);
}
END_TEST

/* One token against an all-zero row: a kernel that never multiplies would pass. */
START_TEST(inputs_that_leave_nothing_to_compare_are_no_proof)
{
    static const char *const texts[] = {GEMM_PLAIN, GEMM_BLOCKS};
    hone_error error = {0};
    verify_run r;

    verify_run_open(&r, texts[_i], INPUTS_ZEROS);
    naive_run(&r.problem, &r.in, NAIVE_RIGHT, NULL, &r.out);
    verify_request request = {.problem = &r.problem,
                              .before = &r.in,
                              .after = (const uint8_t *const *)r.out.image,
                              .tolerance = 36.0,
                              .ctas_run = 1,
                              .ctas_total = 1,
                              .must_tell = true};
    ck_assert_int_eq(verify_outputs(&request, &r.result, &error), HONE_OK);
    ck_assert(!r.result.passed);
    ck_assert_ptr_nonnull(strstr(r.result.reason, "nothing to compare"));
    verify_run_close(&r);
}
END_TEST

START_TEST(the_worst_figures_are_kept)
{
    verify_result worst = {.passed = true,
                           .cosine = 0.9,
                           .rel_fro = 0.5,
                           .calc_diff = 1e-7,
                           .max_err = 2.0,
                           .max_err_ratio = 0.25};
    const verify_result other = {.passed = true,
                                 .cosine = 1.0,
                                 .rel_fro = 0.75,
                                 .calc_diff = 1e-8,
                                 .max_err = 3.0,
                                 .max_err_ratio = 0.5};

    verify_keep_worst(&worst, &other);
    ck_assert_double_eq(worst.cosine, 0.9);
    ck_assert_double_eq(worst.rel_fro, 0.75);
    ck_assert_double_eq(worst.calc_diff, 1e-7);
    ck_assert_double_eq(worst.max_err, 3.0);
    ck_assert_double_eq(worst.max_err_ratio, 0.5);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("verify");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, each_fault_is_refused_and_what_is_right_passes, 0, ARRAY_LEN(cases));
    tcase_add_test(tests, a_scale_rounded_without_its_payload_is_refused);
    tcase_add_test(tests, a_half_written_output_is_refused_whichever_half);
    tcase_add_loop_test(tests, sampled_ctas_must_have_written_whole_tiles, 0, ARRAY_LEN(samples));
    tcase_add_loop_test(tests, groups_must_have_made_their_share_of_whole_tiles, 0,
                        ARRAY_LEN(covered));
    tcase_add_test(tests, one_wrong_element_among_sampled_tiles_is_found);
    tcase_add_loop_test(tests, inputs_that_leave_nothing_to_compare_are_no_proof, 0, 2);
    tcase_add_test(tests, the_worst_figures_are_kept);
    tcase_add_test(tests, a_red_zone_tells_where_it_was_hit);
    return suite_run("bench/verify", tests);
}
