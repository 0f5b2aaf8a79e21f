/* test_stats.c - summaries of samples, and rooflines of known problems. */
#include "bench/roofline.h"
#include "bench/stats.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

static const struct {
    const char *name;
    size_t len;
    double sample[5], median, mad, geomean;
} cases[] = {
    {"one", 1, {4}, 4, 0, 4},
    {"an even number", 4, {4, 1, 3, 2}, 2.5, 1, 2.2133638394006434},
    {"an outlier moves neither", 5, {1, 1, 1000, 1, 1}, 1, 0, 3.9810717055349722},
    {"a spread", 5, {1, 2, 4, 8, 16}, 4, 3, 4},
};

START_TEST(summaries_are_what_they_say)
{
    ck_assert_double_eq_tol(stats_median(cases[_i].sample, cases[_i].len), cases[_i].median, 1e-12);
    ck_assert_double_eq_tol(stats_mad(cases[_i].sample, cases[_i].len), cases[_i].mad, 1e-12);
    ck_assert_double_eq_tol(stats_geomean(cases[_i].sample, cases[_i].len), cases[_i].geomean,
                            1e-12);
}
END_TEST

START_TEST(nothing_has_no_summary)
{
    static const double zero = 0.0;

    ck_assert(isnan(stats_median(NULL, 0)));
    ck_assert(isnan(stats_mad(NULL, 0)));
    ck_assert(isnan(stats_geomean(NULL, 0)));
    ck_assert(isnan(stats_geomean(&zero, 1)));
}
END_TEST

/* A GPU with round figures: 1e15 FLOP/s and 1e12 B/s. */
static const gpu round_gpu = {
    .facts = {.sm_count = 100, .clock_mhz = 1000, .mem_bytes_per_s = 1000000000000},
    .flop_per_clk_sm = {10000},
};

static const struct {
    const char *text;
    perf_bound bound;
} roofs[] = {
    {"fp8_gemm:m=4096,n=4096,k=4096,recipe=f32-1x128-128x128", PERF_TENSOR},
    {"fp8_gemm:m=1,n=4096,k=4096,recipe=f32-1x128-128x128", PERF_DRAM},
    {"act_quant:m=4096,k=4096", PERF_DRAM},
    {"mqa_logits:tokens=4096,keys=65536,heads=64", PERF_TENSOR},
    {"mqa_logits_paged:batch=16,width=32768,pages=9000,heads=8,record=index_132-split-raw_amax",
     PERF_DRAM},
};

START_TEST(a_roof_is_the_slower_of_compute_and_memory)
{
    hone_problem problem;
    roofline r;
    double flop = 0.0, bytes = 0.0;

    ck_assert_int_eq(hone_problem_parse(roofs[_i].text, &problem, NULL), HONE_OK);
    problem_work(&problem, &flop, &bytes);
    r = roofline_of(&round_gpu, &problem, 1e6);
    ck_assert_int_eq(r.bound, roofs[_i].bound);
    ck_assert_double_eq_tol(r.roof_ns, fmax(flop / 1e6, bytes / 1e3), 1e-6 * r.roof_ns);
    ck_assert_double_eq_tol(r.percent, r.roof_ns / 1e6 * 100, 1e-9 * r.percent);
    ck_assert_double_eq_tol(r.gbytes, bytes / 1e6, 1e-9 * r.gbytes);
    ck_assert_double_eq_tol(r.tflops, flop / 1e9, 1e-9 * r.tflops + 1e-30);
}
END_TEST

/* Scales of powers of two may go to a unit that takes them itself, f32 ones may not. */
START_TEST(the_roof_is_that_of_the_unit_that_takes_the_scales)
{
    static const char *const texts[] = {"fp8_gemm:m=32768,n=32768,k=32768,recipe=ue8m0-1x32-1x32",
                                        "fp8_gemm:m=32768,n=32768,k=32768,recipe=f32-1x32-1x32"};
    gpu scaled = round_gpu;
    hone_problem problem;

    scaled.flop_per_clk_sm[GPU_MMA_MXFP8] = 4 * scaled.flop_per_clk_sm[GPU_MMA_FP8];
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(hone_problem_parse(texts[i], &problem, NULL), HONE_OK);
        double times = roofline_of(&round_gpu, &problem, 1e6).roof_ns /
                       roofline_of(&scaled, &problem, 1e6).roof_ns;
        ck_assert_double_eq_tol(times, i == 0 ? 4.0 : 1.0, 1e-9);
    }
}
END_TEST

START_TEST(an_unknown_peak_gives_no_roof)
{
    static const gpu unknown = {.facts = {.sm_count = 100, .clock_mhz = 1000}};
    hone_problem problem;

    ck_assert_int_eq(hone_problem_parse(roofs[0].text, &problem, NULL), HONE_OK);
    ck_assert_double_eq(roofline_of(&unknown, &problem, 1e6).percent, 0.0);
    ck_assert_int_eq(roofline_of(&unknown, &problem, 1e6).bound, PERF_LAUNCH);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("stats");

    tcase_add_loop_test(tests, summaries_are_what_they_say, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(tests, nothing_has_no_summary);
    tcase_add_loop_test(tests, a_roof_is_the_slower_of_compute_and_memory, 0,
                        sizeof roofs / sizeof roofs[0]);
    tcase_add_test(tests, the_roof_is_that_of_the_unit_that_takes_the_scales);
    tcase_add_test(tests, an_unknown_peak_gives_no_roof);
    return suite_run("bench/stats", tests);
}
