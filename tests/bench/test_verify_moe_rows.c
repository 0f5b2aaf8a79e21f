/* test_verify_moe_rows.c - as test_verify.c, of the rows of a grouped product. */
#include "tests/bench/verify_run.h"

#include "bench/reference.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define LABELS "moe_align:tokens=37,experts=9,topk=4,group_layout=contiguous,row_align=16"
#define MASKED "moe_align:tokens=37,experts=9,topk=4,group_layout=masked,row_align=8,ids=i64"
#define ENDS   "moe_align:tokens=37,experts=9,topk=4,group_layout=psum,row_align=16,ids=i64"
#define MANY   "moe_align:tokens=70,experts=512,topk=6,group_layout=psum,row_align=128"
#define ONE    "moe_align:tokens=1,experts=1,topk=1,group_layout=contiguous"
#define NOBODY "moe_align:tokens=0,m=20,experts=3,topk=2,group_layout=contiguous"
/* Less room than there are rows: the last expert's go, and part of another's. */
#define TIGHT      "moe_align:tokens=37,m=70,experts=9,topk=4,group_layout=contiguous,row_align=16"
#define TIGHT_EACH "moe_align:tokens=37,m=5,experts=9,topk=4,group_layout=masked"
#define TIGHT_ENDS "moe_align:tokens=37,m=70,experts=9,topk=4,group_layout=psum,row_align=16"

/* K of 64 rows: of 70 no more are whole units */
#define TIGHT_K "moe_align:tokens=37,m=70,experts=9,topk=4,group_layout=grouped_k,row_align=16"

#define SUMS     "moe_combine:tokens=13,n=40,topk=6"
#define SUMS_F32 "moe_combine:tokens=9,n=33,topk=3,m=20,in=f32,out=f32,accumulate=1"
#define SUMS_ADD "moe_combine:tokens=70,n=24,topk=8,accumulate=1"
#define SUMS_FEW "moe_combine:tokens=1,n=8,topk=1,out=f32"

static const verify_case cases[] = {
#define EVERY(problem)                                                                             \
    {problem, INPUTS_NORMAL, NAIVE_RIGHT, NULL}, {problem, INPUTS_HOLES, NAIVE_RIGHT, NULL},       \
        {problem, INPUTS_EXTREMES, NAIVE_RIGHT, NULL}, {problem, INPUTS_WIDE, NAIVE_RIGHT, NULL},  \
        {problem, INPUTS_TINY, NAIVE_RIGHT, NULL}, {problem, INPUTS_ZEROS, NAIVE_RIGHT, NULL},     \
        {problem, INPUTS_ONES, NAIVE_RIGHT, NULL},                                                 \
    {                                                                                              \
        problem, INPUTS_SPECIALS, NAIVE_RIGHT, NULL                                                \
    }
    EVERY(LABELS),
    EVERY(MASKED),
    EVERY(ENDS),
    EVERY(MANY),
    EVERY(ONE),
    EVERY(NOBODY),
    EVERY(TIGHT),
    EVERY(TIGHT_EACH),
    EVERY(TIGHT_ENDS),
    EVERY(TIGHT_K),
    EVERY(SUMS),
    EVERY(SUMS_F32),
    EVERY(SUMS_ADD),
    EVERY(SUMS_FEW),
#undef EVERY
    {LABELS, INPUTS_WIDE, NAIVE_SWAPPED_SCALE, "source[0]"},
    {MASKED, INPUTS_WIDE, NAIVE_SWAPPED_SCALE, "source[0]"},
    {LABELS, INPUTS_WIDE, NAIVE_K_TAIL, "groups["},
    {ENDS, INPUTS_WIDE, NAIVE_K_TAIL, "groups["},
    {LABELS, INPUTS_ZEROS, NAIVE_SLOT_MINUS, "groups[0]"},
    {MASKED, INPUTS_HOLES, NAIVE_SLOT_MINUS, "groups["},
    {ENDS, INPUTS_ZEROS, NAIVE_SLOT_MINUS, "groups[8]"},
    {MASKED, INPUTS_SPECIALS, NAIVE_INFINITY_FITS, "["},
    {ENDS, INPUTS_SPECIALS, NAIVE_INFINITY_FITS, "["},
    {LABELS, INPUTS_SPECIALS, NAIVE_NO_COUNT, "dropped: got 5, expected "},
    {TIGHT_EACH, INPUTS_EXTREMES, NAIVE_NO_COUNT, "dropped: got 5, expected "},
    {MASKED, INPUTS_WIDE, NAIVE_PAGE_OFF, "place["},
    {LABELS, INPUTS_WIDE, NAIVE_TAIL_ROW, "as before"},
    {MASKED, INPUTS_WIDE, NAIVE_HALF, "as before"},
    {TIGHT_EACH, INPUTS_EXTREMES, NAIVE_EVERY_ROW, "groups["},
    {TIGHT_ENDS, INPUTS_EXTREMES, NAIVE_EVERY_ROW, "groups["},
    {SUMS_F32, INPUTS_NORMAL, NAIVE_SWAPPED_SCALE, "y["},
    {SUMS_F32, INPUTS_NORMAL, NAIVE_NEAREST, "y["},
    {SUMS, INPUTS_NORMAL, NAIVE_FLOOR, "y["},
    {SUMS, INPUTS_NORMAL, NAIVE_ROW_SCALE_SHIFT, "y[0,0]"},
    {SUMS, INPUTS_NORMAL, NAIVE_K_TAIL, "y[0,0]"},
    {SUMS, INPUTS_HOLES, NAIVE_SLOT_MINUS, "y["},
    {SUMS_ADD, INPUTS_HOLES, NAIVE_SLOT_MINUS, "y["},
    {SUMS, INPUTS_NORMAL, NAIVE_STALE_SUM, "y[0,0]"},
    {SUMS_ADD, INPUTS_NORMAL, NAIVE_STALE_SUM, "y[0,0]"},
    {SUMS, INPUTS_NORMAL, NAIVE_TAIL_ROW, "y[12,0] was left untouched"},
    {SUMS, INPUTS_NORMAL, NAIVE_TAIL_COLUMN, "y[0,39] was left untouched"},
    {SUMS, INPUTS_ZEROS, NAIVE_HALF, "y[6,0] was left untouched"},
    {SUMS_F32, INPUTS_SPECIALS, NAIVE_HALF, "y["},
    {SUMS, INPUTS_SPECIALS, NAIVE_NO_COUNT, "dropped: got 5, expected "},
};

START_TEST(right_passes_and_faults_are_refused)
{
    verify_run_case(&cases[_i]);
}
END_TEST

/* Poison of 0xff bytes is -1, which padding is: each kind's images say what nobody wrote apart from
 * it in one kind at least. */
START_TEST(one_kind_at_least_has_a_poison_that_is_no_padding)
{
    verify_run r;
    int others = 0;

    for (int kind = 0; kind < INPUTS_KINDS; kind++) {
        verify_run_open(&r, LABELS, (inputs_kind)kind);
        others += r.in.image[2][0] != 0xff;
        verify_run_close(&r);
    }
    ck_assert_int_eq(others, INPUTS_KINDS / 2);
}
END_TEST

/* The picture of docs/kernels/moe.md: three tokens by two of four experts. */
static const struct {
    const char *layout;
    int32_t groups[16], source[16], place[6];
    int groups_len;
} pictures[] = {
#define LABELLED 1, -1, -1, -1, 0, 2, 5, -1, 4, -1, -1, -1, -1, -1, -1, -1
    {"contiguous",
     {0, -1, -1, -1, 1, 1, 1, -1, 3, -1, -1, -1, -1, -1, -1, -1},
     {LABELLED},
     {4, 0, 5, -1, 8, 6},
     16},
    {"psum", {1, 7, 8, 9}, {LABELLED}, {4, 0, 5, -1, 8, 6}, 4},
    {"grouped_k", {4, 4, 0, 4}, {LABELLED}, {4, 0, 5, -1, 8, 6}, 4},
    {"masked",
     {1, 3, 0, 1},
     {1, -1, -1, -1, 0, 2, 5, -1, -1, -1, -1, -1, 4, -1, -1, -1},
     {4, 0, 5, -1, 12, 6},
     4},
#undef LABELLED
};

START_TEST(the_reference_draws_the_picture)
{
    static const int32_t ids[] = {1, 0, 1, -1, 3, 1}, counts[] = {1, 3, 0, 1};
    int32_t got[4][16] = {{0}};
    char text[128];
    uint64_t dropped = 0;
    verify_run r;

    snprintf(text, sizeof text, "moe_align:tokens=3,experts=4,topk=2,group_layout=%s,row_align=4",
             pictures[_i].layout);
    verify_run_open(&r, text, INPUTS_NORMAL);
    ck_assert_uint_eq(r.in.operand[2].bytes, 64);
    memcpy(r.in.image[0], ids, sizeof ids);
    reference_moe_align(&r.problem.as.moe_align, &r.in, got[0], got[1], got[2], got[3], &dropped);
    ck_assert_mem_eq(got[0], pictures[_i].groups,
                     sizeof(int32_t) * (size_t)pictures[_i].groups_len);
    ck_assert_mem_eq(got[1], pictures[_i].source, sizeof pictures[_i].source);
    ck_assert_mem_eq(got[2], pictures[_i].place, sizeof pictures[_i].place);
    ck_assert_mem_eq(got[3], counts, sizeof counts);
    ck_assert_uint_eq(dropped, 0);
    verify_run_close(&r);
}
END_TEST

/* What sampled CTAs of a combine made, of two tokens by 16 columns each. */
static const struct {
    naive_fault fault;
    uint64_t ctas_run;
    const char *has;
} samples[] = {
    {NAIVE_RIGHT, 18, NULL},
    {NAIVE_RIGHT, 17, "not as many tiles"},
    {NAIVE_TAIL_COLUMN, 18, "not as many tiles"},
    {NAIVE_ROW_SCALE_SHIFT, 18, "y["},
};

START_TEST(sampled_sums_must_be_whole_tiles)
{
    verify_run r;

    verify_run_open(&r, SUMS,
                    INPUTS_NORMAL); /* 7 x 3 tiles; without the last token: 6 rows of them */
    naive_run(&r.problem, &r.in,
              samples[_i].fault == NAIVE_RIGHT ? NAIVE_TAIL_ROW : samples[_i].fault, NULL, &r.out);
    if (samples[_i].fault != NAIVE_RIGHT) { /* the last token is not in the sample */
        memcpy(r.out.image[4] + 12 * 80, r.in.image[4] + 12 * 80, 80);
    }
    verify_run_judge(&r, samples[_i].ctas_run, 21);
    ck_assert_int_eq(r.result.passed, samples[_i].has == NULL);
    if (samples[_i].has != NULL) {
        ck_assert_msg(strstr(r.result.reason, samples[_i].has) != NULL, "%s", r.result.reason);
    }
    verify_run_close(&r);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("verify");

    tcase_add_loop_test(tests, right_passes_and_faults_are_refused, 0, (int)ARRAY_LEN(cases));
    tcase_add_loop_test(tests, the_reference_draws_the_picture, 0, (int)ARRAY_LEN(pictures));
    tcase_add_loop_test(tests, sampled_sums_must_be_whole_tiles, 0, (int)ARRAY_LEN(samples));
    tcase_add_test(tests, one_kind_at_least_has_a_poison_that_is_no_padding);
    return suite_run("bench/verify_moe_rows", tests);
}
