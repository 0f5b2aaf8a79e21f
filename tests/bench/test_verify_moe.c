/* test_verify_moe.c - grouped products: what a plain loop makes passes, in every layout and recipe,
 * and rows of the wrong expert, of nobody or of no one are refused. */
#include "tests/bench/verify_run.h"
#include "tests/support/suite.h"

#include "bench/segments.h"
#include "core/numfmt.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROWS   "moe_gemm:tokens=9,topk=3,experts=6,n=40,k=160,group_layout="
#define FP8    ",recipe=f32-1x128-128x128"
#define FP8_32 ",recipe=ue8m0-1x32-32x32"
#define FP4    ",recipe=ue8m0-1x32-e2m1/1x32"

static const char *const problems[] = {
    ROWS "contiguous,row_align=8" FP8,
    ROWS "contiguous,row_align=16,out=f32" FP8_32,
    ROWS "contiguous,row_align=1" FP4,
    ROWS "contiguous,row_align=8,fill=1" FP8,
    ROWS "masked,m=13" FP8,
    ROWS "masked,m=13,fill=1,a_scale_layout=row" FP8_32,
    ROWS "masked,m=16,out=f32" FP4,
    ROWS "psum,row_align=8" FP8,
    ROWS "psum,row_align=1,out=f32" FP8_32,
    ROWS "psum,row_align=16,a_scale_layout=col,fill=1" FP8,
    "moe_gemm:tokens=5,topk=2,experts=1,n=24,k=96,group_layout=contiguous,row_align=8" FP8,
    "moe_gemm:tokens=5,topk=2,experts=3,n=24,k=96,group_layout=psum,row_align=8" FP8_32,
    "moe_gemm:tokens=8,topk=2,experts=512,n=8,k=64,group_layout=masked,m=3" FP8_32,
    "moe_gemm:tokens=8,topk=4,experts=512,n=8,k=64,group_layout=psum,row_align=1" FP8,
    "moe_gemm:tokens=8,topk=4,experts=512,n=8,k=64,group_layout=contiguous,row_align=8" FP8,
    /* few elements, which may be unlucky together */
    "moe_gemm:tokens=4,topk=1,experts=3,n=2,k=32,group_layout=psum,row_align=8,recipe=ue8m0-1x32-"
    "1x32",
    "moe_gemm:tokens=1,topk=1,experts=1,n=2,k=128,group_layout=masked,m=1,recipe=ue8m0-1x32-32x32",
    "moe_gemm:tokens=8,topk=1,experts=4,n=2,k=128,group_layout=masked,m=8,recipe=f32-1x128-1x128",
    /* behind the activation */
    ROWS "contiguous,row_align=8,activation=silu_mul" FP8,
    /* one gate, or 64 in one block of scales, with one K group: a hole would be all there is */
    "moe_gemm:tokens=1,experts=1,n=2,k=128,group_layout=masked,m=1,activation=silu_mul,"
    "recipe=f32-1x128-1x128",
    "moe_gemm:tokens=2,experts=2,n=64,k=32,group_layout=masked,m=2,activation=silu_mul" FP8_32,
    "moe_gemm:tokens=2,experts=2,n=256,k=128,group_layout=masked,m=2,activation=silu_mul" FP8,
    ROWS "masked,m=13,activation=silu_mul_v4,out=f32" FP8_32,
    "moe_gemm:tokens=9,topk=3,experts=6,n=128,k=160,group_layout=psum,row_align=8,out=e4m3,"
    "activation=silu_mul,out_group=32" FP8,
    "moe_gemm:tokens=9,topk=3,experts=6,n=128,k=160,group_layout=masked,m=13,out=e4m3,"
    "activation=silu_mul_v4,fill=0" FP8_32,
    /* weight gradients */
    "moe_gemm:m=12,tokens=9,experts=6,n=20,k=512,group_layout=grouped_k,out=f32,"
    "recipe=f32-1x32-1x32",
    "moe_gemm:m=12,tokens=9,experts=3,n=20,k=384,group_layout=grouped_k,out=f32,accumulate=1,"
    "recipe=f32-1x128-1x128",
};

START_TEST(a_plain_loop_passes_on_every_kind_of_inputs)
{
    for (int kind = 0; kind < INPUTS_KINDS; kind++) {
        if (kind == INPUTS_ZEROS) {
            continue; /* nothing to tell by */
        }
        verify_run_case(&(verify_case){problems[_i], (inputs_kind)kind, NAIVE_RIGHT, NULL});
    }
}
END_TEST

static const verify_case wrong[] = {
    {ROWS "contiguous,row_align=8" FP8, INPUTS_NORMAL, NAIVE_NEXT_WEIGHTS, "got"},
    {ROWS "masked,m=13" FP8, INPUTS_NORMAL, NAIVE_NEXT_WEIGHTS, "got"},
    {ROWS "psum,row_align=8" FP8_32, INPUTS_HOLES, NAIVE_NEXT_WEIGHTS, "got"},
    /* past an expert's last row: into padding, and into the next expert's first row */
    {ROWS "contiguous,row_align=8" FP8, INPUTS_NORMAL, NAIVE_SPILL, "no expert's row and was w"},
    {ROWS "psum,row_align=8" FP8, INPUTS_NORMAL, NAIVE_SPILL, "no expert's row and was w"},
    {ROWS "masked,m=13" FP8, INPUTS_NORMAL, NAIVE_SPILL, "no expert's row and was w"},
    {ROWS "contiguous,row_align=1" FP8, INPUTS_NORMAL, NAIVE_SPILL, "got"},
    {ROWS "psum,row_align=1" FP8, INPUTS_NORMAL, NAIVE_SPILL, "got"},
    {ROWS "contiguous,row_align=8" FP8, INPUTS_NORMAL, NAIVE_EVERY_ROW, "no expert's row and was"},
    {ROWS "psum,row_align=8" FP8_32, INPUTS_HOLES, NAIVE_EVERY_ROW, "no expert's row and was"},
    {ROWS "masked,m=13" FP8, INPUTS_SPECIALS, NAIVE_EVERY_ROW, "no expert's row and was"},
    {ROWS "masked,m=13,fill=1" FP8, INPUTS_NORMAL, NAIVE_EVERY_ROW, "not filled"},
    {ROWS "contiguous,row_align=8" FP8, INPUTS_NORMAL, NAIVE_FIRST_ROW, "untouched"},
    {ROWS "psum,row_align=1" FP8, INPUTS_HOLES, NAIVE_FIRST_ROW, "untouched"},
    {ROWS "masked,m=13" FP8, INPUTS_NORMAL, NAIVE_TAIL_ROW, "untouched"},
    {ROWS "contiguous,row_align=8" FP8, INPUTS_NORMAL, NAIVE_TAIL_ROW, "untouched"},
    {ROWS "contiguous,row_align=8" FP8, INPUTS_NORMAL, NAIVE_ZEROS, "got 0"},
    {ROWS "masked,m=13,activation=silu_mul" FP8, INPUTS_NORMAL, NAIVE_UP_GATES, "got"},
    {ROWS "masked,m=13,activation=silu_mul_v4" FP8, INPUTS_HOLES, NAIVE_NO_CLAMP, "got"},
    {"moe_gemm:tokens=9,topk=3,experts=6,n=128,k=160,group_layout=psum,row_align=8,out=e4m3,"
     "activation=silu_mul,out_scale=ue8m0,out_group=32" FP8,
     INPUTS_NORMAL, NAIVE_FLOOR, "d_scale"},
    {"moe_gemm:tokens=9,topk=3,experts=6,n=128,k=160,group_layout=psum,row_align=8,out=e4m3,"
     "activation=silu_mul,out_scale=ue8m0,out_group=32" FP8,
     INPUTS_NORMAL, NAIVE_NO_FILL, "fills the row's last word"},
    {"moe_gemm:tokens=9,topk=3,experts=6,n=128,k=160,group_layout=psum,row_align=8,out=e4m3,"
     "activation=silu_mul,out_group=32" FP8,
     INPUTS_NORMAL, NAIVE_SPILL, "no expert's row and was written"},
    /* every code is one of a value within its bound; together they are not */
    {"moe_gemm:tokens=20,topk=3,experts=6,n=256,k=160,group_layout=psum,row_align=8,out=e4m3,"
     "activation=silu_mul,out_group=32" FP8,
     INPUTS_NORMAL, NAIVE_SHORT, "together"},
    {"moe_gemm:tokens=20,topk=3,experts=6,n=256,k=160,group_layout=masked,m=20,out=e4m3,"
     "activation=silu_mul_v4,out_scale=ue8m0,out_group=32" FP8_32,
     INPUTS_NORMAL, NAIVE_SHORT, "together"},
};

START_TEST(a_fault_is_refused_with_its_reason)
{
    verify_run_case(&(verify_case){wrong[_i].problem, wrong[_i].kind, NAIVE_RIGHT, NULL});
    verify_run_case(&wrong[_i]);
}
END_TEST

static const char *const tipping[] = {
    "moe_gemm:tokens=24,topk=1,experts=3,n=256,k=128,group_layout=psum,row_align=8,out=e4m3,"
    "activation=silu_mul,out_group=128,out_scale_layout=row" FP8,
    "moe_gemm:tokens=24,topk=1,experts=3,n=256,k=128,group_layout=psum,row_align=8,out=e4m3,"
    "activation=silu_mul_v4,out_group=128,out_scale_layout=row" FP8,
    "moe_gemm:tokens=8,topk=2,experts=5,n=512,k=256,group_layout=contiguous,row_align=8,out=e4m3,"
    "activation=silu_mul_v4,out_group=128" FP8,
};

/* ---- Codes that go a step ---------------------------------------------------------------------
 */

enum { CODES = 5, CODE_SCALES = 6, LARGEST_CODE = 0x7e };

/* Where the greatest of D's values is that was not `tried`; its row of one group has one scale. */
static size_t greatest(const verify_run *r, const bool *tried, size_t len)
{
    const int64_t columns = r->problem.as.moe_gemm.n / 2;
    double most = 0;
    size_t at = 0;

    for (size_t i = 0; i < len; i++) {
        float scale;
        memcpy(&scale, r->out.image[CODE_SCALES] + 4 * ((int64_t)i / columns), sizeof scale);
        const double size =
            fabs((double)numfmt_e4m3_decode(r->out.image[CODES][i]) * (double)scale);
        if (!tried[i] && isfinite(size) && size > most) {
            most = size;
            at = i;
        }
    }
    return at;
}

/* Whether the code may be a step off by its own bound. Left as it was if not, or if the whole is
 * refused with it. */
static bool step_is_allowed(verify_run *r, size_t at, bool *whole_refused)
{
    uint8_t *code = r->out.image[CODES] + at;

    for (int step = -1; step <= 1; step += 2) {
        if ((*code & 0x7f) == 0 || (step > 0 && (*code & 0x7f) == LARGEST_CODE)) {
            continue;
        }
        *code = (uint8_t)(*code + step);
        verify_run_judge(r, 1, 1);
        if (r->result.passed) {
            return true;
        }
        *code = (uint8_t)(*code - step);
        *whole_refused = strstr(r->result.reason, "together") != NULL;
        if (*whole_refused) {
            return true;
        }
    }
    return false;
}

/* One code may be a step off where its sum is near enough to a tie, though its value be a good part
 * of the whole; more of them are no chance. */
START_TEST(one_code_that_tips_is_let_pass_and_more_are_not)
{
    bool tried[16384] = {false}, refused = false;
    int passed = 0;
    verify_run r;

    verify_run_open(&r, tipping[_i], INPUTS_NORMAL);
    naive_run(&r.problem, &r.in, NAIVE_RIGHT, NULL, &r.out);
    const size_t len = (size_t)(r.problem.as.moe_gemm.m * (r.problem.as.moe_gemm.n / 2));
    ck_assert_uint_le(len, sizeof tried);
    for (int i = 0; i < 400 && !refused; i++) {
        const size_t at = greatest(&r, tried, len);
        tried[at] = true;
        passed += step_is_allowed(&r, at, &refused) && !refused;
    }
    ck_assert_msg(passed >= 1 && refused, "%d codes passed together, %s", passed,
                  refused ? "one more did not" : "however many");
    verify_run_close(&r);
}
END_TEST

/* Seeds of which most have a sum that cancels past V4's limits, and then a code that is all wrong.
 */
static const uint64_t cancelling[] = {35, 50, 106};

static bool passes_with(const char *text, naive_fault fault, inputs_kind kind, uint64_t seed)
{
    hone_error error = {0};
    verify_run r = {.result = {.passed = false}};

    ck_assert_int_eq(hone_problem_parse(text, &r.problem, &error), HONE_OK);
    ck_assert_int_eq(inputs_make(&r.problem, kind, seed, &r.in, &error), HONE_OK);
    ck_assert_int_eq(inputs_copy_outputs(&r.in, &r.out, &error), HONE_OK);
    naive_run(&r.problem, &r.in, fault, NULL, &r.out);
    verify_run_judge(&r, 1, 1);
    const bool passed = r.result.passed;
    verify_run_close(&r);
    return passed;
}

START_TEST(a_unit_of_13_bits_passes_on_any_seed)
{
    const uint64_t seed = cancelling[_i];

    ck_assert(passes_with(tipping[2], NAIVE_UNIT, INPUTS_WIDE, seed));
    ck_assert(passes_with(tipping[0], NAIVE_UNIT, INPUTS_NORMAL, seed));
    ck_assert(!passes_with(tipping[0], NAIVE_SHORT, INPUTS_NORMAL, seed));
}
END_TEST

/* Tiles of 4 x 16 rows counted from every expert's first, as sampled groups make them. */
static uint64_t judge_sampled(verify_run *r, uint64_t tiles)
{
    hone_error error = {0};
    const verify_request request = {.problem = &r->problem,
                                    .before = &r->in,
                                    .after = (const uint8_t *const *)r->out.image,
                                    .tolerance = 36.0,
                                    .ctas_run = 2,
                                    .ctas_total = 9,
                                    .cover = {4, 16, 1},
                                    .tiles_run = tiles};

    ck_assert_msg(verify_outputs(&request, &r->result, &error) == HONE_OK, "%s", error.message);
    return r->result.compared;
}

START_TEST(sampled_tiles_are_counted_from_each_experts_first_row)
{
    static const char *const layouts[] = {"contiguous,row_align=8", "contiguous,row_align=1",
                                          "psum,row_align=8", "psum,row_align=1", "masked,m=13"};
    const naive_tile second = {4, 8, 16, 32}, tail = {0, 4, 32, 40}, half = {0, 4, 16, 30};
    char text[160];
    segments s = {0};
    verify_run r;
    uint64_t experts = 0, longer = 0;

    snprintf(text, sizeof text, ROWS "%s" FP8, layouts[_i]);
    verify_run_open(&r, text, INPUTS_HOLES);
    ck_assert_int_eq(segments_find(&r.problem.as.moe_gemm, r.in.image[4], &s, NULL), HONE_OK);
    for (size_t i = 0; i < s.len; i++) {
        experts++;
        longer += s.run[i].rows > 4;
    }
    segments_free(&s);
    ck_assert_uint_gt(longer, 0);
    ck_assert_uint_gt(experts, longer);
    naive_run(&r.problem, &r.in, NAIVE_RIGHT, &second, &r.out);
    ck_assert_uint_gt(judge_sampled(&r, longer), 0);
    ck_assert_msg(r.result.passed, "%s", r.result.reason);
    naive_run(&r.problem, &r.in, NAIVE_RIGHT, &tail, &r.out);
    judge_sampled(&r, longer + experts);
    ck_assert_msg(r.result.passed, "%s", r.result.reason);
    judge_sampled(&r, longer + experts + 1);
    ck_assert(!r.result.passed);
    ck_assert_ptr_nonnull(strstr(r.result.reason, "tiles"));
    naive_run(&r.problem, &r.in, NAIVE_RIGHT, &half, &r.out);
    judge_sampled(&r, longer + 2 * experts);
    ck_assert(!r.result.passed);
    ck_assert_ptr_nonnull(strstr(r.result.reason, "whole tiles"));
    verify_run_close(&r);
}
END_TEST

START_TEST(sampled_groups_without_a_cover_are_not_judged)
{
    hone_error error = {0};
    verify_run r;

    verify_run_open(&r, ROWS "masked,m=13" FP8, INPUTS_NORMAL);
    const verify_request request = {.problem = &r.problem,
                                    .before = &r.in,
                                    .after = (const uint8_t *const *)r.out.image,
                                    .tolerance = 36.0,
                                    .ctas_run = 2,
                                    .ctas_total = 9};
    ck_assert_int_eq(verify_outputs(&request, &r.result, &error), HONE_UNSUPPORTED);
    verify_run_close(&r);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("verify");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, a_plain_loop_passes_on_every_kind_of_inputs, 0, ARRAY_LEN(problems));
    tcase_add_loop_test(tests, a_fault_is_refused_with_its_reason, 0, ARRAY_LEN(wrong));
    tcase_add_loop_test(tests, one_code_that_tips_is_let_pass_and_more_are_not, 0, 2);
    tcase_add_loop_test(tests, a_unit_of_13_bits_passes_on_any_seed, 0, ARRAY_LEN(cancelling));
    tcase_add_loop_test(tests, sampled_tiles_are_counted_from_each_experts_first_row, 0, 5);
    tcase_add_test(tests, sampled_groups_without_a_cover_are_not_judged);
    return suite_run("bench/verify_moe", tests);
}
