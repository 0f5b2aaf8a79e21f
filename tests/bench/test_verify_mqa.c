/* test_verify_mqa.c - as test_verify.c, of an indexer's scores. */
#include "tests/bench/verify_run.h"

#include "bench/reference.h"
#include "core/numfmt.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FULL   "mqa_logits:tokens=20,keys=131,heads=8,dims=32,stride=135"
#define CLEAN  FULL ",clean=1"
#define PACKED "mqa_logits:tokens=20,keys=300,width=90,stride=96,heads=8,dims=64,span=compressed"
#define BF16   "mqa_logits:tokens=9,keys=40,heads=64,dims=128,out=bf16,clean=1"
#define FP4    "mqa_logits:tokens=20,keys=70,heads=16,dims=64,element=e2m1"
#define FP4_PACKED                                                                                 \
    "mqa_logits:tokens=20,keys=70,width=80,heads=8,dims=128,element=e2m1,span=compressed,clean=1," \
    "out=bf16"
#define PAGED                                                                                      \
    "mqa_logits_paged:batch=16,width=290,stride=296,pages=150,next_n=3,heads=8,page_size=32,"      \
    "table_stride=11,record=index_132-split-raw_amax"
#define SMALL                                                                                      \
    "mqa_logits_paged:batch=5,width=90,stride=96,pages=150,next_n=3,heads=8,page_size=32,"         \
    "record=index_132-split-raw_amax"
#define PAGED_FP4                                                                                  \
    "mqa_logits_paged:batch=9,width=150,pages=20,next_n=6,heads=8,page_stride=4500,"               \
    "record=index_68-split-pow2_tiny,out=bf16"
#define PAGED_128                                                                                  \
    "mqa_logits_paged:batch=5,width=260,pages=12,heads=16,page_size=128,"                          \
    "record=index_132-split-pow2_amax"
#define ONE       "mqa_logits:tokens=1,keys=1,heads=8"
#define ONE_PAGED "mqa_logits_paged:batch=1,width=1,pages=1,heads=8,record=index_132-split-raw_amax"

static const verify_case cases[] = {
#define EVERY(problem)                                                                             \
    {problem, INPUTS_NORMAL, NAIVE_RIGHT, NULL}, {problem, INPUTS_HOLES, NAIVE_RIGHT, NULL},       \
        {problem, INPUTS_EXTREMES, NAIVE_RIGHT, NULL}, {problem, INPUTS_WIDE, NAIVE_RIGHT, NULL},  \
        {problem, INPUTS_TINY, NAIVE_RIGHT, NULL}, {problem, INPUTS_ZEROS, NAIVE_RIGHT, NULL},     \
        {problem, INPUTS_ONES, NAIVE_RIGHT, NULL},                                                 \
    {                                                                                              \
        problem, INPUTS_SPECIALS, NAIVE_RIGHT, NULL                                                \
    }
#define FEW(problem)                                                                               \
    {problem, INPUTS_HOLES, NAIVE_RIGHT, NULL}, {problem, INPUTS_EXTREMES, NAIVE_RIGHT, NULL},     \
    {                                                                                              \
        problem, INPUTS_SPECIALS, NAIVE_RIGHT, NULL                                                \
    }
    EVERY(FULL),
    FEW(CLEAN),
    EVERY(PACKED),
    FEW(BF16),
    EVERY(FP4),
    FEW(FP4_PACKED),
    FEW(PAGED),
    EVERY(SMALL),
    FEW(PAGED_FP4),
    FEW(PAGED_128),
    {ONE, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {ONE_PAGED, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
#undef EVERY
#undef FEW
    {FULL, INPUTS_HOLES, NAIVE_NEAREST, "logits[0,"},
    {FULL, INPUTS_HOLES, NAIVE_FLOOR, "logits[0,"},
    {FULL, INPUTS_HOLES, NAIVE_ROW_SCALE_SHIFT, "logits[0,"},
    {FULL, INPUTS_HOLES, NAIVE_NEXT_WEIGHTS, "logits[0,"},
    {FULL, INPUTS_HOLES, NAIVE_SHORT, "logits[0,"},
    {FULL, INPUTS_HOLES, NAIVE_HALF, "has no key"},
    {FULL, INPUTS_HOLES, NAIVE_K_TAIL, "was left untouched"},
    {FULL, INPUTS_WIDE, NAIVE_FIRST_ROW, "was left untouched"},
    {FULL, INPUTS_WIDE, NAIVE_EVERY_ROW, "has no key"},
    {FULL, INPUTS_EXTREMES, NAIVE_NO_CLAMP, "has no key"},
    {FULL, INPUTS_EXTREMES, NAIVE_TAIL_COLUMN, ",130] was left untouched"},
    {FULL, INPUTS_NORMAL, NAIVE_TAIL_ROW, "logits[0,19,0] was left untouched"},
    {FULL, INPUTS_NORMAL, NAIVE_NAN, "is not finite"},
    {FULL, INPUTS_NORMAL, NAIVE_ZEROS, "logits[0,0,"},
    {FULL, INPUTS_TINY, NAIVE_ZEROS, "logits[0,"},
    {FULL, INPUTS_NORMAL, NAIVE_SPILL, "logits[0,134] has no key"},
    {CLEAN, INPUTS_HOLES, NAIVE_NO_FILL, "expected -inf"},
    {CLEAN, INPUTS_HOLES, NAIVE_INFINITY_FITS, "expected -inf"},
    {CLEAN, INPUTS_HOLES, NAIVE_HALF, "expected -inf"},
    {CLEAN, INPUTS_NORMAL, NAIVE_SPILL, "logits[0,134] has no key"},
    {CLEAN, INPUTS_HOLES, NAIVE_TAIL_ROW, "logits[19,130] was left untouched"},
    {PACKED, INPUTS_WIDE, NAIVE_FIRST_ROW, "was left untouched"},
    {PACKED, INPUTS_WIDE, NAIVE_HALF, "has no key"},
    {BF16, INPUTS_HOLES, NAIVE_NEAREST, "logits[0,"},
    {FP4, INPUTS_HOLES, NAIVE_SWAPPED_SCALE, "logits[0,"},
    {FP4, INPUTS_HOLES, NAIVE_UP_GATES, "logits[0,"},
    {FP4_PACKED, INPUTS_WIDE, NAIVE_SWAPPED_SCALE, "logits[0,"},
    {SMALL, INPUTS_HOLES, NAIVE_PAGE_OFF, "logits[0,"},
    {SMALL, INPUTS_HOLES, NAIVE_OTHER_LAYOUT, "logits[0,"},
    {SMALL, INPUTS_HOLES, NAIVE_ROW_SCALE_SHIFT, "logits[0,"},
    {PAGED, INPUTS_SPECIALS, NAIVE_SLOT_MINUS, "expected -inf"},
    {PAGED, INPUTS_EXTREMES, NAIVE_NO_CLAMP, "has no key"},
    {PAGED, INPUTS_EXTREMES, NAIVE_HALF, "has no key"},
    {PAGED, INPUTS_EXTREMES, NAIVE_EVERY_ROW, "has no key"},
    {SMALL, INPUTS_NORMAL, NAIVE_SPILL, "logits[0,95] has no key"},
    {SMALL, INPUTS_NORMAL, NAIVE_TAIL_ROW, "logits[0,14,0] was left untouched"},
    {PAGED_FP4, INPUTS_HOLES, NAIVE_SWAPPED_SCALE, "logits[0,"},
    {PAGED_FP4, INPUTS_HOLES, NAIVE_OTHER_LAYOUT, "logits[0,"},
};

START_TEST(right_passes_and_faults_are_refused)
{
    verify_run_case(&cases[_i]);
}
END_TEST

static void put_i32(uint8_t *image, int32_t a, int32_t b)
{
    memcpy(image, &a, sizeof a);
    memcpy(image + 4, &b, sizeof b);
}

/* The picture of docs/kernels/indexer.md: eight heads, of which two count. */
START_TEST(the_reference_draws_the_picture)
{
    hone_error error;
    verify_run r;
    double value[4], magnitude[4];
    int64_t first = 0, keys = 0;

    verify_run_open(&r, "mqa_logits:tokens=2,keys=4,heads=8,dims=32", INPUTS_NORMAL);
    for (size_t i = 0; i < 5; i++) {
        memset(r.in.image[i], 0, r.in.operand[i].bytes);
    }
    const float weights[2] = {2, -0.5f}, scales[4] = {1, 0.5f, 2, 4};
    const float q[2][2] = {{1, 3}, {-1, 2}}, k[4][2] = {{1, 1}, {4, 2}, {1, 1}, {1, 0}};
    for (uint64_t i = 0; i < 4; i++) {
        for (uint64_t d = 0; d < 2; d++) {
            numfmt_encode(HONE_DTYPE_E4M3, r.in.image[2], 32 * i + d, k[i][d]);
            if (i < 2) { /* row 1's heads 0 and 1 */
                numfmt_encode(HONE_DTYPE_E4M3, r.in.image[0], 32 * (8 + i) + d, q[i][d]);
            }
        }
    }
    memcpy(r.in.image[4] + 32, weights, sizeof weights);
    memcpy(r.in.image[3], scales, sizeof scales);
    put_i32(r.in.image[5], 0, 1);
    put_i32(r.in.image[6], 4, 3);
    reference_mqa_range(&r.problem, &r.in, 1, &first, &keys);
    ck_assert(first == 1 && keys == 2);
    ck_assert_int_eq(reference_mqa(&r.problem, &r.in, 1, 0, 4, value, magnitude, &error), HONE_OK);
    /* key 1: 0.5 * (2 * 10 - 0.5 * max(0, 0)); key 2: 2 * (2 * 4 - 0.5 * 1) */
    ck_assert_double_eq(value[1], 10);
    ck_assert_double_eq(value[2], 15);
    ck_assert_double_eq(value[3], 4 * (2 * 1 - 0));
    ck_assert_double_eq(magnitude[1], 0.5 * (2 * 10 + 0.5 * 8));
    verify_run_close(&r);
}
END_TEST

/* What sampled CTAs made: tiles of so many rows and 64 columns. */
static const struct {
    const char *problem;
    inputs_kind kind;
    naive_fault fault;
    int64_t rows; /* that ran, from row 0 on */
    uint64_t tiles;
    const char *has;
} samples[] = {
    {FULL, INPUTS_NORMAL, NAIVE_RIGHT, 8, 6, NULL},
    {FULL, INPUTS_NORMAL, NAIVE_RIGHT, 8, 5, "tiles of logits"},
    {FULL, INPUTS_NORMAL, NAIVE_RIGHT, 8, 7, "tiles of logits"},
    {FULL, INPUTS_NORMAL, NAIVE_RIGHT, 7, 6, "was left untouched"},
    {FULL, INPUTS_NORMAL, NAIVE_TAIL_COLUMN, 8, 6, "was left untouched"},
    {FULL, INPUTS_NORMAL, NAIVE_NEAREST, 8, 6, "logits[0,"},
    {FULL, INPUTS_NORMAL, NAIVE_SPILL, 8, 6, "has no key"},
    {CLEAN, INPUTS_HOLES, NAIVE_RIGHT, 8, 6, NULL},
    {CLEAN, INPUTS_HOLES, NAIVE_NO_FILL, 8, 6, "expected -inf"},
    {PACKED, INPUTS_WIDE, NAIVE_RIGHT, 4, 5, NULL},
    {SMALL, INPUTS_NORMAL, NAIVE_RIGHT, 8, 4, NULL},
    {SMALL, INPUTS_NORMAL, NAIVE_RIGHT, 8, 5, "tiles of logits"},
};

START_TEST(sampled_tiles_must_be_whole)
{
    verify_run r;
    hone_error error = {0};
    const naive_tile tile = {0, samples[_i].rows, 0, 0};

    verify_run_open(&r, samples[_i].problem, samples[_i].kind);
    naive_run(&r.problem, &r.in, samples[_i].fault, &tile, &r.out);
    const verify_request request = {.problem = &r.problem,
                                    .before = &r.in,
                                    .after = (const uint8_t *const *)r.out.image,
                                    .tolerance = 36.0,
                                    .ctas_run = 2,
                                    .ctas_total = 50,
                                    .cover = {.rows = 4, .columns = 64, .ctas = 1},
                                    .tiles_run = samples[_i].tiles};
    ck_assert_msg(verify_outputs(&request, &r.result, &error) == HONE_OK, "%s", error.message);
    ck_assert_msg(r.result.passed == (samples[_i].has == NULL), "%d: %s", _i, r.result.reason);
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
    tcase_add_test(tests, the_reference_draws_the_picture);
    tcase_add_loop_test(tests, sampled_tiles_must_be_whole, 0, (int)ARRAY_LEN(samples));
    return suite_run("bench/verify_mqa", tests);
}
