/* test_problem_moe.c - the ops of experts: what is no problem, by its field; what they read and
 * write; and the work that a roof is made of. */
#include "core/problem.h"
#include "tests/core/parsed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static hone_error e;

#define MOE      "moe_gemm:n=64,k=128,recipe=f32-1x128-128x128"
#define MOE_ROWS MOE ",tokens=8,experts=2,group_layout=contiguous"
#define MOE_K                                                                                      \
    "moe_gemm:n=64,k=128,tokens=8,experts=2,group_layout=grouped_k,m=8,recipe=f32-1x128-1x128"

static const parsed_wrong wrong[] = {
    {MOE ",tokens=8,experts=2", HONE_BAD_TEXT, "group_layout"},
    {MOE ",tokens=8,group_layout=masked", HONE_BAD_TEXT, "experts"},
    {MOE ",experts=2,group_layout=masked", HONE_BAD_TEXT, "tokens"},
    {MOE ",tokens=8,experts=0,group_layout=masked", HONE_BAD_PROBLEM, "experts=0"},
    {MOE ",tokens=8,experts=513,group_layout=masked", HONE_BAD_PROBLEM, "experts=513"},
    {MOE_ROWS ",topk=0", HONE_BAD_PROBLEM, "topk=0"},
    {MOE_ROWS ",row_align=12", HONE_BAD_PROBLEM, "row_align=12"},
    {MOE_ROWS ",row_align=64,m=96", HONE_BAD_PROBLEM, "m=96"},
    {MOE_ROWS ",m=2147483648", HONE_BAD_PROBLEM, "m: "},
    {MOE_ROWS ",fill=2", HONE_BAD_PROBLEM, "fill=2"},
    {MOE_ROWS ",accumulate=1", HONE_BAD_PROBLEM, "accumulate"},
    {MOE_ROWS ",out=e4m3", HONE_BAD_PROBLEM, "out"},
    {MOE_ROWS ",out_scale=f32", HONE_BAD_PROBLEM, "out_scale"},
    {MOE_ROWS ",out_rule=raw_amax", HONE_BAD_PROBLEM, "out_"},
    {MOE_ROWS ",out_rule=tensor", HONE_BAD_TEXT, "out_rule"},
    {MOE_ROWS ",activation=silu_mul,out=e4m3", HONE_BAD_PROBLEM, "32 columns"},
    {MOE_ROWS ",activation=silu_mul,out=e4m3,out_group=64", HONE_BAD_PROBLEM, "out_group"},
    {MOE_ROWS ",activation=silu_mul,out=e4m3,out_group=32,out_scale=ue8m0,out_rule=raw_amax",
     HONE_BAD_PROBLEM, "out_rule"},
    {MOE_ROWS ",activation=silu_mul,out=e4m3,out_group=32,out_scale=bf16", HONE_BAD_PROBLEM,
     "out_scale"},
    {MOE_ROWS ",activation=silu_mul,out=e4m3,out_group=32,out_scale_layout=packed",
     HONE_BAD_PROBLEM, "out_scale_layout"},
    {"moe_gemm:n=65,k=128,recipe=f32-1x128-128x128,tokens=8,experts=2,group_layout=psum,"
     "activation=silu_mul",
     HONE_BAD_PROBLEM, "n: "},
    {"moe_gemm:n=65,k=48,recipe=f32-1x32-e2m1/1x32,tokens=8,experts=2,group_layout=psum",
     HONE_BAD_PROBLEM, "multiple of 32"},
    {MOE_K, HONE_BAD_PROBLEM, "out=f32"},
    {MOE_K ",out=f32,activation=silu_mul", HONE_BAD_PROBLEM, "out=f32"},
    {MOE_K ",out=f32,fill=1", HONE_BAD_PROBLEM, "out=f32"},
    {"moe_gemm:n=64,k=192,tokens=8,experts=2,group_layout=grouped_k,m=8,out=f32,recipe=f32-1x128-"
     "1x128",
     HONE_BAD_PROBLEM, "k=192"},
    {"moe_gemm:n=64,k=128,tokens=8,experts=2,group_layout=grouped_k,m=8,out=f32,recipe=f32-1x128-"
     "128x128",
     HONE_BAD_PROBLEM, "recipe"},
    {"moe_align:tokens=1,experts=4,topk=2", HONE_BAD_TEXT, "group_layout"},
    {"moe_align:tokens=1,topk=2,group_layout=psum", HONE_BAD_TEXT, "experts"},
    {"moe_align:tokens=1,experts=0,topk=2,group_layout=psum", HONE_BAD_PROBLEM, "experts=0"},
    {"moe_align:tokens=1,experts=513,topk=2,group_layout=psum", HONE_BAD_PROBLEM, "experts=513"},
    {"moe_align:tokens=1,experts=4,topk=0,group_layout=psum", HONE_BAD_PROBLEM, "topk=0"},
    {"moe_align:tokens=1,experts=4,topk=2,group_layout=psum,row_align=0", HONE_BAD_PROBLEM,
     "row_align=0"},
    {"moe_align:tokens=1,experts=4,topk=2,group_layout=psum,ids=i32,align=2", HONE_BAD_PROBLEM,
     "align"},
    {"moe_align:tokens=1,experts=4,topk=2,group_layout=psum,ids=i64,align=4", HONE_BAD_PROBLEM,
     "align"},
    {"moe_align:tokens=1,experts=4,topk=2,group_layout=psum,align=12", HONE_BAD_PROBLEM,
     "align=12"},
    {"moe_align:tokens=1073741824,experts=4,topk=2,group_layout=psum,m=9", HONE_BAD_PROBLEM,
     "tokens * topk"},
    {"moe_align:tokens=1073741823,experts=512,topk=2,group_layout=psum,row_align=65536",
     HONE_BAD_PROBLEM, "m: "},
    {"moe_align:tokens=8388608,experts=256,topk=2,group_layout=masked", HONE_BAD_PROBLEM,
     "experts * m"},
    {"moe_combine:tokens=1,n=8", HONE_BAD_TEXT, "topk"},
    {"moe_combine:tokens=1,n=8,topk=2,in=f16", HONE_BAD_PROBLEM, "in"},
    {"moe_combine:tokens=1,n=8,topk=2,out=e4m3", HONE_BAD_PROBLEM, "out"},
    {"moe_combine:tokens=1,n=9,topk=2,align=4", HONE_BAD_PROBLEM, "align=4"},
    {"moe_combine:tokens=1,n=7,topk=2,in=f32,align=4", HONE_BAD_PROBLEM, "a row of y"},
    {"moe_combine:tokens=1073741824,n=8,topk=2,m=4", HONE_BAD_PROBLEM, "tokens * topk"},
    {"moe_combine:tokens=1,n=8,topk=2,m=2147483648", HONE_BAD_PROBLEM, "m: "},
};

START_TEST(a_wrong_field_is_named_and_nothing_is_written)
{
    parsed_refuses(&wrong[_i]);
}
END_TEST

/* 70 rows, 6 experts, n 40, k 160: groups of 128 are 2, of 32 are 5. */
static const struct {
    const char *text;
    size_t count;
    uint64_t bytes[7];
} operands[] = {
    {"moe_gemm:m=72,tokens=9,experts=6,n=40,k=160,group_layout=contiguous,row_align=8,"
     "recipe=f32-1x128-128x128",
     6,
     {72 * 160, 2 * 72 * 4, 6 * 40 * 160, 6 * 2 * 4, 72 * 4, 72 * 40 * 2}},
    {"moe_gemm:m=70,tokens=9,experts=6,n=40,k=160,group_layout=masked,recipe=ue8m0-1x32-32x32",
     6,
     {6 * 70 * 160, 6 * 2 * 72 * 4, 6 * 40 * 160, 6 * 2 * 5, 6 * 4, 6 * 70 * 40 * 2}},
    {"moe_gemm:m=70,tokens=9,experts=6,n=40,k=160,group_layout=psum,recipe=ue8m0-1x32-e2m1/1x32,"
     "out=f32",
     6,
     {70 * 160, 2 * 72 * 4, 6 * 40 * 80, 6 * 2 * 40 * 4, 6 * 4, 70 * 40 * 4}},
    {"moe_gemm:m=70,tokens=9,experts=6,n=128,k=160,group_layout=masked,recipe=f32-1x128-128x128,"
     "activation=silu_mul,out=e4m3,out_group=32,out_scale=ue8m0",
     7,
     {6 * 70 * 160, 6 * 2 * 72 * 4, 6 * 128 * 160, 6 * 2 * 4, 6 * 4, 6 * 70 * 64, 6 * 72 * 4}},
    {"moe_gemm:m=70,tokens=9,experts=6,n=40,k=256,group_layout=grouped_k,recipe=f32-1x128-1x128,"
     "out=f32",
     6,
     {70 * 256, 2 * 72 * 4, 40 * 256, 2 * 40 * 4, 6 * 4, 6 * 70 * 40 * 4}},
};

START_TEST(operands_are_what_the_layout_says)
{
    const hone_problem p = parsed(operands[_i].text);
    hone_operand o[HONE_MAX_OPERANDS];
    size_t count = 0;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    ck_assert_uint_eq(count, operands[_i].count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(o[i].bytes == operands[_i].bytes[i], "%s: %llu", o[i].name,
                      (unsigned long long)o[i].bytes);
        ck_assert_int_eq(o[i].access, i >= 5 ? 2 : 1);
    }
}
END_TEST

/* Of 6 experts 3 rows touch 3: half of the weights are read. */
START_TEST(work_counts_the_weights_of_touched_experts_once)
{
    const hone_problem p = parsed("moe_gemm:m=72,tokens=3,experts=6,n=40,k=160,group_layout="
                                  "contiguous,row_align=8,recipe=f32-1x128-128x128");
    double flop = 0, bytes = 0;

    problem_work(&p, &flop, &bytes);
    ck_assert_double_eq(flop, 2.0 * 3 * 40 * 160);
    ck_assert_double_eq_tol(bytes, 3 * (160 + 2 * 4) + 3 * (40 * 160 + 2 * 4) + 72 * 4 + 3 * 40 * 2,
                            1e-6);
}
END_TEST

static const struct {
    const char *text;
    bool empty;
} empties[] = {
    {"moe_gemm:tokens=0,experts=4,n=8,k=8,group_layout=masked,recipe=f32-1x32-1x32", true},
    {"moe_gemm:tokens=3,experts=4,n=0,k=8,group_layout=psum,recipe=f32-1x32-1x32", true},
    {"moe_gemm:tokens=3,experts=4,n=8,k=0,group_layout=psum,recipe=f32-1x32-1x32", false},
    {"moe_gemm:tokens=0,m=8,experts=4,n=8,k=8,group_layout=masked,recipe=f32-1x32-1x32", false},
};

START_TEST(no_rows_and_no_columns_are_no_launch)
{
    const hone_problem p = parsed(empties[_i].text);

    ck_assert(problem_is_empty(&p) == empties[_i].empty);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("problem_moe");

    tcase_add_loop_test(tests, a_wrong_field_is_named_and_nothing_is_written, 0, ARRAY_LEN(wrong));
    tcase_add_loop_test(tests, operands_are_what_the_layout_says, 0, ARRAY_LEN(operands));
    tcase_add_test(tests, work_counts_the_weights_of_touched_experts_once);
    tcase_add_loop_test(tests, no_rows_and_no_columns_are_no_launch, 0, ARRAY_LEN(empties));
    return suite_run("core/problem_moe", tests);
}
