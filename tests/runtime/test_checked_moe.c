/* test_checked_moe.c - the checked mode of a grouped product: groups that mean nothing are refused
 * by their place, rows that nobody has are not looked at. */
#include "tests/runtime/checked_fixture.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { A, A_SCALE, B, B_SCALE, GROUPS };

#define COUNTS "moe_gemm:tokens=3,experts=3,m=12,group_layout=masked" EIGHT
#define ENDS   "moe_gemm:tokens=3,experts=3,m=40,group_layout=psum" EIGHT
#define PARTS                                                                                      \
    "moe_gemm:tokens=3,experts=3,m=4,n=8,k=512,group_layout=grouped_k,out=f32,recipe=f32-1x128-"   \
    "1x128"
#define EIGHT ",n=8,k=128,recipe=f32-1x128-128x128,row_align=8"
#define WIDE  "moe_gemm:tokens=3,experts=3,m=16,group_layout=contiguous" EIGHT

static const struct {
    const char *problem;
    int32_t groups[16];
    const char *says; /* NULL: legal */
} cases[] = {
    {WIDE, {2, 2, 2, -1, -1, -1, -1, -7, 0, 0, 0, 0, 0, 0, 0, 0}, NULL},
    {WIDE, {-1, -1, -1, -1, -1, -1, -1, -1, 1, -1, -1, -1, -1, -1, -1, -1}, NULL},
    {WIDE,
     {0, 0, 0, 3, -1, -1, -1, -1, 1, 1, 1, 1, 1, 1, 1, 1},
     "checked: groups of row 3 is 3; it is past the last expert, and below 0 is padding"},
    {WIDE,
     {0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
     "checked: groups of row 3 is 1; row_align rows that begin at a multiple of row_align are one "
     "expert's"},
    {WIDE,
     {0, -1, 0, -1, -1, -1, -1, -1, 1, 1, 1, 1, 1, 1, 1, 1},
     "checked: groups of row 2 is 0; rows with an expert come before the padding of their "
     "row_align "
     "rows"},
    {WIDE,
     {0, 0, 0, 0, 0, 0, 0, 0, -1, 1, 1, 1, 1, 1, 1, 1},
     "checked: groups of row 9 is 1; rows with an expert come before the padding of their "
     "row_align "
     "rows"},
    {COUNTS, {12, 0, 7}, NULL},
    {COUNTS, {12, 13, 7}, "checked: groups of expert 1 is 13; an expert has 0 to m rows"},
    {COUNTS, {12, 0, -1}, "checked: groups of expert 2 is -1; an expert has 0 to m rows"},
    {ENDS, {3, 11, 40}, NULL},
    {ENDS, {0, 0, 0}, NULL},
    {ENDS, {8, 8, 16}, NULL},
    {ENDS, {9, 8, 40}, "checked: groups of expert 1 is 8; ends do not fall, and m is the last"},
    {ENDS, {9, 24, 41}, "checked: groups of expert 2 is 41; ends do not fall, and m is the last"},
    {ENDS, {-1, 24, 40}, "checked: groups of expert 0 is -1; ends do not fall, and m is the last"},
    {PARTS, {128, 0, 384}, NULL},
    {PARTS,
     {128, 64, 128},
     "checked: groups of expert 1 is 64; elements of k are whole scale groups, in all k at most"},
    {PARTS,
     {256, 128, 256},
     "checked: groups of expert 2 is 256; elements of k are whole scale groups, in all k at most"},
};

START_TEST(groups_that_mean_nothing_are_refused_by_their_place)
{
    const char *says = cases[_i].says;
    device *d = checked_device();
    checked_memory m;

    checked_open_right(&m, d, cases[_i].problem);
    if (says == NULL) { /* rows that are not padding any more hold numbers */
        static const uint8_t zeros[40 * 3 * 128];
        checked_put(&m, A, 0, zeros, m.operands[A].bytes);
        checked_put(&m, A_SCALE, 0, zeros, m.operands[A_SCALE].bytes);
    }
    checked_put(&m, GROUPS, 0, cases[_i].groups, m.operands[GROUPS].bytes);
    ck_assert_int_eq(checked_status(&m, HONE_CHECKED_VALUES),
                     says != NULL ? HONE_BAD_ARGUMENT : HONE_OK);
    ck_assert_str_eq(checked_error.message, says != NULL ? says : "");
    ck_assert_str_eq(checked_error.source, says != NULL ? "groups" : "");
    checked_close(&m);
    device_close(d);
}
END_TEST

/* Of a masked matrix of 12 rows expert 1 has 7: NaN in its row 7 is padding, in row 6 it is not. */
START_TEST(rows_that_nobody_has_are_not_looked_at)
{
    static const uint8_t nan8 = 0x7f, zeros[3 * 12 * 128];
    static const int32_t counts[3] = {0, 7, 12};
    const float bad = NAN;
    device *d = checked_device();
    checked_memory m;

    checked_open_right(&m, d, COUNTS);
    checked_put(&m, GROUPS, 0, counts, sizeof counts);
    checked_put(&m, A, 0, zeros, sizeof zeros);
    checked_put(&m, A_SCALE, 0, zeros, m.operands[A_SCALE].bytes);
    checked_put(&m, A, (1 * 12 + 7) * 128 + 5, &nan8, 1);
    checked_put(&m, A_SCALE, (1 * 12 + 7) * 4, &bad, 4);
    ck_assert_msg(checked_status(&m, HONE_CHECKED_VALUES) == HONE_OK, "%s", checked_error.message);
    checked_put(&m, A_SCALE, (1 * 12 + 6) * 4, &bad, 4);
    ck_assert_int_eq(checked_status(&m, HONE_CHECKED_VALUES), HONE_BAD_ARGUMENT);
    ck_assert_str_eq(checked_error.message, "checked: a_scale at batch 1, row 6, group 0 is nan; a "
                                            "scale is finite and not negative");
    checked_put(&m, A, (1 * 12 + 6) * 128 + 5, &nan8, 1);
    ck_assert_int_eq(checked_status(&m, HONE_CHECKED_VALUES), HONE_BAD_ARGUMENT);
    ck_assert_str_eq(checked_error.message,
                     "checked: a at batch 1, row 6, k 5 is 0x7f, e4m3's NaN");
    checked_put(&m, A, (1 * 12 + 6) * 128 + 5, zeros, 1);
    checked_put(&m, A_SCALE, (1 * 12 + 6) * 4, zeros, 4);
    checked_put(&m, B, (2 * 8 + 1) * 128 + 3, &nan8, 1); /* weights count whoever has rows */
    ck_assert_int_eq(checked_status(&m, HONE_CHECKED_VALUES), HONE_BAD_ARGUMENT);
    ck_assert_str_eq(checked_error.message,
                     "checked: b at batch 2, row 1, k 3 is 0x7f, e4m3's NaN");
    checked_close(&m);
    device_close(d);
}
END_TEST

/* ---- Rows of a router's choice ----------------------------------------------------------------
 */

#define ALIGN   "moe_align:tokens=3,experts=5,topk=2,group_layout=contiguous,row_align=8"
#define GATHER  "act_quant:m=3,k=128,experts=2,row_set=gathered,tokens=3,topk=2"
#define COMBINE "moe_combine:tokens=3,n=8,topk=2,m=16"
#define COUNTED "act_quant:m=3,k=128,row_set=masked,experts=6"

static const struct {
    const char *problem;
    size_t operand;
    int64_t values[6]; /* of width 4 or 8 */
    size_t width;
    const char *says, *source;
} rows[] = {
    {ALIGN, 0, {4, 0, -1, -1, 2, 2}, 4, "", ""},
    {ALIGN,
     0,
     {4, 0, -1, 5, 2, 2},
     4,
     "checked: topk_ids of token 1, choice 1 is 5; it is an expert's number, or -1",
     "topk_ids"},
    {ALIGN,
     0,
     {4, 0, -1, -1, -2, 2},
     4,
     "checked: topk_ids of token 2, choice 0 is -2; it is an expert's number, or -1",
     "topk_ids"},
    {ALIGN ",ids=i64", 0, {4, 0, -1, -1, 2, 2}, 8, "", ""},
    {ALIGN ",ids=i64",
     0,
     {4, INT64_C(0x100000000), -1, -1, 2, 2},
     8,
     "checked: topk_ids of token 0, choice 1 is 4294967296; it is an expert's number, or -1",
     "topk_ids"},
    {GATHER, 3, {5, 0, -1, INT32_MIN, 2, 2}, 4, "", ""},
    {GATHER,
     3,
     {5, 0, -1, 1, 6, 2},
     4,
     "checked: rows of expert 1, row 1 is 6; it is one of 6 entries (tokens * topk), or below 0",
     "rows"},
    {"act_quant:m=6,k=128,row_set=listed", 3, {5, 0, -1, 1, 6, 2}, 4, "", ""},
    {COMBINE, 1, {15, 0, -1, -1, 3, 3}, 4, "", ""},
    {COMBINE,
     1,
     {15, 0, -1, 16, 3, 3},
     4,
     "checked: place of token 1, choice 1 is 16; it is a row of d, or -1",
     "place"},
    {COMBINE,
     1,
     {-5, 0, -1, 2, 3, 3},
     4,
     "checked: place of token 0, choice 0 is -5; it is a row of d, or -1",
     "place"},
    {COUNTED, 3, {3, 0, 1, 2, 3, 3}, 4, "", ""},
    {COUNTED,
     3,
     {3, 0, 1, 2, 4, 3},
     4,
     "checked: rows of expert 4 is 4; an expert has 0 to m rows",
     "rows"},
    {COUNTED,
     3,
     {-1, 0, 1, 2, 3, 3},
     4,
     "checked: rows of expert 0 is -1; an expert has 0 to m rows",
     "rows"},
};

START_TEST(rows_that_are_nowhere_are_refused_by_token_and_choice)
{
    device *d = checked_device();
    checked_memory m;

    checked_open_right(&m, d, rows[_i].problem);
    for (size_t i = 0; i < 6; i++) {
        checked_put(&m, rows[_i].operand, i * rows[_i].width, &rows[_i].values[i], rows[_i].width);
    }
    ck_assert_int_eq(checked_status(&m, HONE_CHECKED_VALUES),
                     rows[_i].says[0] != '\0' ? HONE_BAD_ARGUMENT : HONE_OK);
    ck_assert_str_eq(checked_error.message, rows[_i].says);
    ck_assert_str_eq(checked_error.source, rows[_i].source);
    checked_close(&m);
    device_close(d);
}
END_TEST

START_TEST(weights_count_where_their_rows_do)
{
    static const int32_t places[6] = {15, 0, -1, 2, 3, -1};
    const float bad = NAN, good = 0.5f;
    device *d = checked_device();
    checked_memory m;

    checked_open_right(&m, d, COMBINE);
    checked_put(&m, 1, 0, places, sizeof places);
    checked_put(&m, 2, 2 * 4, &bad, 4);
    checked_put(&m, 2, 5 * 4, &bad, 4);
    ck_assert_msg(checked_status(&m, HONE_CHECKED_VALUES) == HONE_OK, "%s", checked_error.message);
    checked_put(&m, 2, 4 * 4, &bad, 4);
    ck_assert_int_eq(checked_status(&m, HONE_CHECKED_VALUES), HONE_BAD_ARGUMENT);
    ck_assert_str_eq(checked_error.message,
                     "checked: weight of token 2, choice 0 is nan; a weight is finite");
    checked_put(&m, 2, 4 * 4, &good, 4);
    ck_assert_int_eq(checked_status(&m, HONE_CHECKED_VALUES), HONE_OK);
    checked_close(&m);
    device_close(d);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("checked_moe");

    tcase_add_loop_test(tests, groups_that_mean_nothing_are_refused_by_their_place, 0,
                        ARRAY_LEN(cases));
    tcase_add_test(tests, rows_that_nobody_has_are_not_looked_at);
    tcase_add_loop_test(tests, rows_that_are_nowhere_are_refused_by_token_and_choice, 0,
                        ARRAY_LEN(rows));
    tcase_add_test(tests, weights_count_where_their_rows_do);
    return suite_run_here("runtime/checked_moe", tests);
}
