/* test_operands.c - where scales lie in their layouts, and operands' sizes (golden vectors of
 * kernels.md App. B). */
#include "core/numfmt.h"
#include "core/problem.h"
#include "tests/core/parsed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_error e;

static const struct {
    hone_scale_layout layout;
    hone_dtype dtype;
} layouts[] = {
    {HONE_SCALES_ROW, HONE_DTYPE_F32},   {HONE_SCALES_COL, HONE_DTYPE_F32},
    {HONE_SCALES_TMA, HONE_DTYPE_F32},   {HONE_SCALES_ROW, HONE_DTYPE_UE8M0},
    {HONE_SCALES_COL, HONE_DTYPE_UE8M0}, {HONE_SCALES_PACKED, HONE_DTYPE_UE8M0},
};

START_TEST(scales_of_a_layout_lie_apart_and_within_its_bytes)
{
    hone_scale_layout layout = layouts[_i].layout;
    hone_dtype dtype = layouts[_i].dtype;
    uint64_t element = (uint64_t)numfmt_dtype_bits(dtype) / 8;

    for (int64_t rows = 1; rows <= 9; rows++) {
        for (int64_t groups = 1; groups <= 9; groups++) {
            uint64_t bytes = 0;
            ck_assert_int_eq(problem_scale_bytes(rows, groups, dtype, layout, &bytes, &e), HONE_OK);
            unsigned char *hits = calloc(bytes, 1);
            int wrong = 0;
            for (int64_t i = 0; i < rows * groups; i++) {
                uint64_t at =
                    problem_scale_offset(rows, groups, dtype, layout, i / groups, i % groups);
                wrong += at % element != 0 || at + element > bytes || hits[at]++ != 0;
            }
            ck_assert_int_eq(wrong, 0);
            free(hits);
        }
    }
}
END_TEST

START_TEST(packed_words_hold_four_groups_lowest_first)
{
    const uint8_t codes[] = {127, 128, 126, 119};
    uint32_t words[8] = {0};

    /* 5 rows: aligned to 8; row 2, groups 4..7 are word 8 + 2. */
    for (int64_t g = 0; g < 4; g++) {
        uint64_t at = problem_scale_offset(5, 4, HONE_DTYPE_UE8M0, HONE_SCALES_PACKED, 2, g);
        ((uint8_t *)words)[at] = codes[g];
    }
    ck_assert_uint_eq(words[2], 0x777e807f);
    ck_assert_uint_eq(problem_scale_offset(5, 8, HONE_DTYPE_UE8M0, HONE_SCALES_PACKED, 2, 5),
                      (8 + 2) * 4 + 1);
    ck_assert_uint_eq(problem_scale_offset(5, 4, HONE_DTYPE_F32, HONE_SCALES_TMA, 2, 3),
                      (3 * 8 + 2) * 4);
}
END_TEST

START_TEST(operands_of_a_batched_gemm)
{
    hone_problem p = parsed("fp8_gemm:m=5,n=256,k=512,batch=8,recipe=ue8m0-1x32-32x32");
    hone_problem q = parsed("fp8_gemm:m=5,n=256,k=512,batch=8,recipe=f32-1x128-128x128,"
                            "batch_layout=inner,accumulate=1,out=f32");
    hone_operand o[HONE_MAX_OPERANDS];
    size_t count;
    double flop, bytes;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    ck_assert_uint_eq(count, 5);
    ck_assert_uint_eq(o[0].bytes, 8 * 5 * 512);
    ck_assert_uint_eq(o[1].bytes, 8 * (16 / 4) * 8 * 4);
    ck_assert_uint_eq(o[2].bytes, 8 * 256 * 512);
    ck_assert_uint_eq(o[3].bytes, 8 * 8 * 16);
    ck_assert_uint_eq(o[4].bytes, 8 * 5 * 256 * 2);
    ck_assert_int_eq(o[4].access, 2);
    ck_assert_int_eq(hone_operands(&q, o, &count, &e), HONE_OK);
    ck_assert_uint_eq(o[1].bytes, 8 * 4 * 8 * 4); /* batch * groups columns of 8 aligned rows */
    ck_assert_int_eq(o[4].access, 3);
    problem_work(&q, &flop, &bytes);
    ck_assert_double_eq(flop, 2.0 * 8 * 5 * 256 * 512);
    ck_assert_double_eq(bytes, 8 * 5 * 512 + 8 * 4 * 8 * 4 + 8 * 256 * 512 + 8 * 2 * 4 * 4 +
                                   2.0 * 8 * 5 * 256 * 4);
}
END_TEST

/* Two codes a byte: B is half as long, for rooflines too. */
START_TEST(an_operand_of_nibbles_is_half_as_long)
{
    hone_problem p = parsed("fp8_gemm:m=5,n=256,k=512,batch=3,recipe=ue8m0-1x32-e2m1/1x32");
    hone_operand o[HONE_MAX_OPERANDS];
    size_t count;
    double flop, bytes;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    ck_assert_int_eq(o[2].dtype, HONE_DTYPE_E2M1);
    ck_assert_uint_eq(o[2].bytes, 3 * 256 * 256);
    ck_assert_uint_eq(o[3].bytes, 3 * 256 * 16);
    problem_work(&p, &flop, &bytes);
    ck_assert_double_eq(flop, 2.0 * 3 * 5 * 256 * 512);
    ck_assert_double_eq(bytes, 3.0 * (5 * 512 + 8 * 16 + 256 * 256 + 256 * 16 + 5 * 256 * 2));
}
END_TEST

/* 5 rows, 9 groups of 32 in 3 blocks: packed rows are padded to 8, groups to whole words. */
START_TEST(a_fold_has_two_scale_matrices_and_a_count)
{
    static const uint64_t bytes[] = {5 * 288, 3 * 8 * 4, 5 * 288, 5 * 3, 8};
    static const int32_t access[] = {1, 1, 2, 2, 3};
    hone_problem p = parsed("fold:m=5,k=288,q_scale_layout=col");
    hone_operand o[HONE_MAX_OPERANDS];
    size_t count;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    ck_assert_uint_eq(count, 5);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(o[i].bytes, bytes[i]);
        ck_assert_int_eq(o[i].access, access[i]);
    }
    ck_assert_str_eq(o[4].name, "inexact");
}
END_TEST

/* Two matrices of 130 x 96: 2 x 1 blocks each; codes are half a byte. */
START_TEST(a_fold_of_mxfp4_has_codes_scales_and_theirs)
{
    static const uint64_t bytes[] = {2 * 130 * 48, 2 * 130 * 3, 2 * 130 * 96, 2 * 2 * 1 * 4};
    static const int32_t access[] = {1, 1, 2, 2};
    hone_problem p = parsed("mxfp4_fold:n=130,k=96,batch=2,scale=f32");
    hone_operand o[HONE_MAX_OPERANDS];
    size_t count;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    ck_assert_uint_eq(count, 4);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(o[i].bytes, bytes[i]);
        ck_assert_int_eq(o[i].access, access[i]);
    }
}
END_TEST

/* rows 6 of 7 groups, 3 matrices; 9 experts over 70 groups: (70 + 27) / 4 words. */
static const struct {
    const char *text;
    uint64_t bytes[4];
} packings[] = {
    {"scale_pack:rows=6,groups=7,batch=3", {3 * 6 * 7 * 4, 3 * 2 * 8 * 4, 0, 8}},
    {"scale_pack:rows=6,groups=7,batch=3,scale=f32", {3 * 6 * 7 * 4, 3 * 7 * 8 * 4, 0, 8}},
    {"scale_pack:rows=6,groups=7,batch=3,scale_layout=col", {3 * 6 * 7 * 4, 3 * 7 * 6 * 4, 0, 8}},
    {"scale_pack:rows=20,groups=70,experts=9", {70 * 20 * 4, 24 * 20 * 4, 9 * 4, 8}},
};

START_TEST(packed_scales_have_their_layouts_bytes)
{
    static const int32_t access[] = {1, 2, 1, 3};
    hone_problem p = parsed(packings[_i].text);
    hone_operand o[HONE_MAX_OPERANDS];
    size_t count;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    ck_assert_uint_eq(count, 4);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(o[i].bytes, packings[_i].bytes[i]);
        ck_assert_int_eq(o[i].access, access[i]);
    }
}
END_TEST

/* 7 tokens of 3 of 9 experts. */
static const struct {
    const char *text;
    uint64_t bytes[6];
} alignments[] = {
    {"moe_align:tokens=7,m=90,experts=9,topk=3,group_layout=contiguous",
     {21 * 4, 90 * 4, 90 * 4, 21 * 4, 9 * 4, 8}},
    {"moe_align:tokens=7,m=90,experts=9,topk=3,group_layout=masked",
     {21 * 4, 9 * 4, 9 * 90 * 4, 21 * 4, 9 * 4, 8}},
    {"moe_align:tokens=7,m=90,experts=9,topk=3,group_layout=psum,ids=i64",
     {21 * 8, 9 * 4, 90 * 4, 21 * 4, 9 * 4, 8}},
};

START_TEST(a_layout_of_rows_has_its_groups_both_ways_and_counts)
{
    static const int32_t access[] = {1, 2, 2, 2, 2, 3};
    hone_problem p = parsed(alignments[_i].text);
    hone_operand o[HONE_MAX_OPERANDS];
    size_t count;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    ck_assert_uint_eq(count, 6);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(o[i].bytes, alignments[_i].bytes[i]);
        ck_assert_int_eq(o[i].access, access[i]);
    }
}
END_TEST

/* Of a large d only the rows that places can name are read; y is read where it is added to. */
START_TEST(a_combine_moves_the_rows_that_places_name)
{
    static const uint64_t bytes[] = {90 * 33 * 4, 21 * 4, 21 * 4, 8, 7 * 33 * 2};
    hone_problem p = parsed("moe_combine:tokens=7,n=33,m=90,topk=3,in=f32,accumulate=1");
    hone_operand o[HONE_MAX_OPERANDS];
    double flop, moved;
    size_t count;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    ck_assert_uint_eq(count, 5);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(o[i].bytes, bytes[i]);
    }
    ck_assert_int_eq(o[4].access, 3);
    problem_work(&p, &flop, &moved);
    ck_assert_double_eq(moved, 21.0 * 33 * 4 + 21 * 8 + 2 * 7 * 33 * 2);
    p.as.moe_combine.m = 4; /* of which some tokens share */
    problem_work(&p, &flop, &moved);
    ck_assert_double_eq(moved, 4.0 * 33 * 4 + 21 * 8 + 2 * 7 * 33 * 2);
}
END_TEST

START_TEST(a_problem_of_no_rows_has_operands_of_no_bytes)
{
    hone_problem p = parsed("act_quant:m=0,k=256");
    hone_operand o[HONE_MAX_OPERANDS];
    size_t count;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(o[i].bytes, 0);
    }
}
END_TEST

static const struct {
    const char *text;
    bool empty;
} zero_sizes[] = {
    {"fp8_gemm:m=0,n=8,k=128,recipe=f32-1x128-128x128", true},
    {"fp8_gemm:m=3,n=8,k=0,recipe=f32-1x128-128x128", false}, /* writes zeros */
    {"fp8_gemm:m=3,n=8,k=128,recipe=f32-1x128-128x128", false},
    {"fp8_gemm:m=3,n=0,k=128,recipe=f32-1x128-128x128", true},
    {"fp8_gemm:m=3,n=8,k=128,batch=0,recipe=f32-1x128-128x128", true},
    {"act_quant:m=0,k=256", true},
    {"act_quant:m=4,k=0", true},
    {"fold:m=0,k=32", true},
    {"fold:m=4,k=0", true},
    {"fold:m=1,k=32", false},
    {"mxfp4_fold:n=0,k=64", true},
    {"mxfp4_fold:n=4,k=0", true},
    {"mxfp4_fold:n=4,k=64,batch=0", true},
    {"mxfp4_fold:n=4,k=64", false},
    {"scale_pack:rows=0,groups=4", true},
    {"scale_pack:rows=4,groups=0,experts=3", true},
    {"scale_pack:rows=4,groups=4,batch=0", true},
    {"scale_pack:rows=4,groups=4", false},
    {"moe_align:tokens=0,experts=4,topk=2,group_layout=psum", false}, /* counts of 0 */
    {"moe_combine:tokens=0,n=8,topk=2", true},
    {"moe_combine:tokens=2,n=0,topk=2", true},
    {"moe_combine:tokens=2,n=8,topk=2", false},
    {"kv_quant:tokens=0,pages=4,record=v41_528-split-pow2_amax", true},
    {"kv_quant:tokens=1,pages=4,record=v41_528-split-pow2_amax", false},
    {"kv_gather:tokens=0,pages=4,record=v41_528-split-pow2_amax", true},
    {"kv_gather:tokens=1,pages=4,record=v41_528-split-pow2_amax", false},
};

START_TEST(only_what_writes_nothing_is_empty)
{
    hone_problem p = parsed(zero_sizes[_i].text);

    ck_assert_int_eq(problem_is_empty(&p), zero_sizes[_i].empty);
}
END_TEST

START_TEST(addresses_past_four_gigabytes_do_not_wrap)
{
    hone_problem p = parsed("kv_quant:tokens=1,pages=1000000,record=v41_528-split-pow2_amax");
    hone_operand o[HONE_MAX_OPERANDS];
    size_t count;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    ck_assert_uint_eq(o[2].bytes, UINT64_C(33792) * 1000000);
    ck_assert_uint_eq(
        problem_scale_offset(3000000000, 64, HONE_DTYPE_F32, HONE_SCALES_COL, 2999999999, 63),
        (UINT64_C(63) * 3000000000 + 2999999999) * 4);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("operands");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, scales_of_a_layout_lie_apart_and_within_its_bytes, 0,
                        (int)ARRAY_LEN(layouts));
    tcase_add_test(tests, packed_words_hold_four_groups_lowest_first);
    tcase_add_test(tests, operands_of_a_batched_gemm);
    tcase_add_test(tests, an_operand_of_nibbles_is_half_as_long);
    tcase_add_test(tests, a_fold_of_mxfp4_has_codes_scales_and_theirs);
    tcase_add_test(tests, a_fold_has_two_scale_matrices_and_a_count);
    tcase_add_loop_test(tests, packed_scales_have_their_layouts_bytes, 0, (int)ARRAY_LEN(packings));
    tcase_add_loop_test(tests, a_layout_of_rows_has_its_groups_both_ways_and_counts, 0,
                        (int)ARRAY_LEN(alignments));
    tcase_add_test(tests, a_combine_moves_the_rows_that_places_name);
    tcase_add_test(tests, a_problem_of_no_rows_has_operands_of_no_bytes);
    tcase_add_loop_test(tests, only_what_writes_nothing_is_empty, 0, (int)ARRAY_LEN(zero_sizes));
    tcase_add_test(tests, addresses_past_four_gigabytes_do_not_wrap);
    return suite_run("core/operands", tests);
}
