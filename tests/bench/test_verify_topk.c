/* test_verify_topk.c - as test_verify.c, of a row's best scores. */
#include "tests/bench/verify_run.h"

#include "bench/reference.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ENDS    "topk:rows=30,width=260,k=40"
#define SCORE   "topk:rows=30,width=260,k=41,sort=by_score"
#define BOTH    "topk:rows=30,width=130,stride=136,k=33,in=bf16,span=both"
#define PACKED  "topk:rows=30,width=130,k=33,span=compressed,sort=by_score"
#define WHOLE   "topk:rows=12,width=300,k=7,span=whole,in=bf16"
#define BLOCKS  "topk:rows=30,width=420,k=16,pick=blocked,block=8,pin=1,drop=1"
#define LISTED  "topk:rows=30,width=256,k=50,pick=listed,block=8,span=both"
#define ONE     "topk:rows=1,width=1,k=1"
#define NOTHING "topk:rows=3,width=0,k=5"

static const verify_case cases[] = {
#define EVERY(problem)                                                                             \
    {problem, INPUTS_NORMAL, NAIVE_RIGHT, NULL}, {problem, INPUTS_HOLES, NAIVE_RIGHT, NULL},       \
        {problem, INPUTS_EXTREMES, NAIVE_RIGHT, NULL}, {problem, INPUTS_WIDE, NAIVE_RIGHT, NULL},  \
        {problem, INPUTS_TINY, NAIVE_RIGHT, NULL}, {problem, INPUTS_ZEROS, NAIVE_RIGHT, NULL},     \
        {problem, INPUTS_ONES, NAIVE_RIGHT, NULL},                                                 \
    {                                                                                              \
        problem, INPUTS_SPECIALS, NAIVE_RIGHT, NULL                                                \
    }
    EVERY(ENDS),
    EVERY(SCORE),
    EVERY(BOTH),
    EVERY(PACKED),
    EVERY(WHOLE),
    EVERY(BLOCKS),
    EVERY(LISTED),
    EVERY(ONE),
    EVERY(NOTHING),
#undef EVERY
    {ENDS, INPUTS_HOLES, NAIVE_STALE_SUM, "is not among the row's best"},
    {SCORE, INPUTS_HOLES, NAIVE_STALE_SUM, "index[0,0]"},
    {ENDS, INPUTS_NORMAL, NAIVE_HALF, "index[0,"},
    {ENDS, INPUTS_NORMAL, NAIVE_OTHER_LAYOUT, "is in the wrong place"},
    {SCORE, INPUTS_NORMAL, NAIVE_OTHER_LAYOUT, "is in the wrong place"},
    {SCORE, INPUTS_WIDE, NAIVE_ZEROS, "is in the wrong place"},
    {ENDS, INPUTS_SPECIALS, NAIVE_NAN, "index["},
    {ENDS, INPUTS_EXTREMES, NAIVE_FLOOR, "index["},
    {ENDS, INPUTS_TINY, NAIVE_NEAREST, "index["},
    {SCORE, INPUTS_TINY, NAIVE_NEAREST, "index["},
    {ENDS, INPUTS_WIDE, NAIVE_NO_FILL, "was left untouched"},
    {ENDS, INPUTS_WIDE, NAIVE_TAIL_ROW, "index[29,0]: got -2139062144"},
    {ENDS, INPUTS_EXTREMES, NAIVE_SLOT_MINUS, "a row's rest must be -1"},
    {BOTH, INPUTS_EXTREMES, NAIVE_K_TAIL, "index["},
    {BOTH, INPUTS_EXTREMES, NAIVE_TAIL_COLUMN, "index["},
    {BOTH, INPUTS_EXTREMES, NAIVE_PAGE_OFF, "index["},
    {BLOCKS, INPUTS_EXTREMES, NAIVE_FIRST_ROW, "index["},
    {BLOCKS, INPUTS_ZEROS, NAIVE_EVERY_ROW, "index["},
    {LISTED, INPUTS_EXTREMES, NAIVE_SWAPPED_SCALE, "index["},
    {LISTED, INPUTS_EXTREMES, NAIVE_TAIL_COLUMN, "index["},
};

START_TEST(right_passes_and_faults_are_refused)
{
    verify_run_case(&cases[_i]);
}
END_TEST

/* The pictures of docs/kernels/indexer.md. */
#define NAN_BITS NAN
static const float scores[8] = {3, NAN_BITS, 5, -0.0f, 0, 5, -INFINITY, 9};
static const struct {
    const char *fields;
    int32_t start, end, list[4], index[5];
} pictures[] = {
    {"span=ends", 0, 7, {0}, {0, 2, 3, 4, 5}},
    {"span=ends,sort=by_score", 0, 7, {0}, {2, 5, 0, 3, 4}},
    {"span=ends,drop=1", 0, 4, {0}, {0, 2, 3, -1, -1}},
    {"span=ends", 0, 2, {0}, {0, 1, -1, -1, -1}},
    {"span=ends,sort=by_score", 0, -1, {0}, {-1, -1, -1, -1, -1}},
    {"span=both,sort=by_score", 2, 8, {0}, {5, 0, 3, 1, 2}},
    {"span=compressed,sort=by_score", 2, 5, {0}, {2, 0, 1, -1, -1}},
    {"pick=blocked,block=2,pin=1,sort=by_score", 0, 7, {0}, {3, 1, 2, 0, -1}},
    {"pick=listed,block=2,span=both,sort=by_score", 1, 12, {0, 3, 4, 9}, {6, 9, 0, 7, 8}},
};

START_TEST(the_reference_draws_the_picture)
{
    char text[128];
    int32_t got[5] = {0};
    hone_error error;
    verify_run r;

    snprintf(text, sizeof text, "topk:rows=1,width=8,k=5,%s", pictures[_i].fields);
    verify_run_open(&r, text, INPUTS_NORMAL);
    memcpy(r.in.image[0], scores, sizeof scores);
    memcpy(r.in.image[1], &pictures[_i].start, r.in.operand[1].bytes);
    memcpy(r.in.image[2], &pictures[_i].end, r.in.operand[2].bytes);
    memcpy(r.in.image[3], pictures[_i].list, r.in.operand[3].bytes);
    ck_assert_int_eq(reference_topk(&r.problem.as.topk, &r.in, 0, got, &error), HONE_OK);
    for (int i = 0; i < 5; i++) {
        ck_assert_msg(got[i] == pictures[_i].index[i], "%s: [%d] is %d, not %d", text, i, got[i],
                      pictures[_i].index[i]);
    }
    verify_run_close(&r);
}
END_TEST

/* What sampled CTAs made, a row each. */
static const struct {
    naive_fault fault;
    uint64_t ctas_run;
    const char *has;
} samples[] = {
    {NAIVE_RIGHT, 29, NULL},
    {NAIVE_RIGHT, 28, "not as many rows"},
    {NAIVE_NO_FILL, 29, "not as many rows"},
    {NAIVE_STALE_SUM, 29, "index["},
};

START_TEST(sampled_rows_must_be_whole)
{
    verify_run r;
    const size_t last = 29 * 40 * sizeof(int32_t);

    verify_run_open(&r, ENDS, INPUTS_HOLES);
    naive_run(&r.problem, &r.in, samples[_i].fault, NULL, &r.out);
    memcpy(r.out.image[4] + last, r.in.image[4] + last, 40 * sizeof(int32_t));
    verify_run_judge(&r, samples[_i].ctas_run, 30);
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
    tcase_add_loop_test(tests, sampled_rows_must_be_whole, 0, (int)ARRAY_LEN(samples));
    return suite_run("bench/verify_topk", tests);
}
