/* test_prove_routed.c - a grouped product proved on its own rows and timed on those of a
 * distribution: what is counted is what was asked for, sampled and whole. */
#include "bench/routed_time.h"
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>

/* Proved whole; 16 rows an expert have room. */
#define SMALL                                                                                      \
    "moe_gemm:n=128,k=256,experts=8,tokens=16,topk=2,m=16,row_align=16,group_layout=masked,"       \
    "recipe=f32-1x128-128x128"
/* Proved on sampled CTAs. */
#define LARGE                                                                                      \
    "moe_gemm:n=512,k=512,experts=64,tokens=64,topk=4,group_layout=masked,"                        \
    "recipe=f32-1x128-128x128"

#define WIDE                                                                                       \
    "moe_gemm:n=2048,k=1024,experts=8,tokens=512,topk=4,group_layout=contiguous,recipe=f32-1x128-" \
    "128x128"
#define DECODE                                                                                     \
    "moe_gemm:m=128,n=2048,k=1024,experts=16,tokens=8,topk=6,group_layout=masked,recipe=ue8m0-"    \
    "1x32-32x32"

/* Three clusters part their tiles. */
#define SHARED                                                                                     \
    "swap=0 block_m=128 block_n=128 row_groups=2 column_groups=1 chunks=1 sets=1 queue=1 "         \
    "stages=4 "                                                                                    \
    "pair=0 share=3 raster=8 staged=0 loader_registers=56 residency=1 idle=1"

static const char spread[] = "[0, 3, 0, 0, 20, 1, 0, 0]";

static const struct {
    const char *problem, *routing; /* NULL: not asked for; "": `spread` */
    int64_t rows, cut, touched;
    bool sampled;
} timed[] = {
    {SMALL, NULL, 32, 0, 8, false},  {SMALL, "balanced", 32, 0, 8, false},
    {SMALL, "", 21, 11, 3, false},   {SMALL, "one", 16, 16, 1, false},
    {LARGE, NULL, 256, 0, 64, true}, {LARGE, "balanced", 256, 0, 64, true},
    {LARGE, "one", 256, 0, 1, true},
};

static void prove_of(const char *spec, const char *text, const char *template, const char *pinned,
                     const char *name, prove_fixture *f, prove_result *out)
{
    hone_error error = {0};
    routing r = {0};

    prove_fixture_open(f, spec, text, template, pinned, NULL, NULL);
    prover_close(f->p);
    f->p = NULL;
    if (name != NULL && name[0] == '\0') {
        ck_assert_int_eq(routing_parse_histogram("h", spread, sizeof spread - 1, &r, &error),
                         HONE_OK);
    } else if (name != NULL) {
        ck_assert_int_eq(routing_parse(name, &r, &error), HONE_OK);
    }
    ck_assert_msg(prover_open_routed(f->d, &f->problem, name != NULL ? &r : NULL, 11, &f->p,
                                     &error) == HONE_OK,
                  "%s", error.message);
    routing_free(&r); /* borrowed for the opening alone */
    prove_fixture_run(f, out);
    ck_assert_msg(out->outcome == STORE_OK, "%s", out->reason);
}

static void prove(const char *text, const char *name, prove_fixture *f, prove_result *out)
{
    prove_of("emu:h20", text, "moe_gemm/mma_sync", NULL, name, f, out);
}

START_TEST(the_rows_that_are_timed_are_those_that_were_asked_for)
{
    prove_fixture f;
    prove_result made;

    prove(timed[_i].problem, timed[_i].routing, &f, &made);
    const hone_moe_gemm *p = &f.problem.as.moe_gemm;
    const int64_t rows =
        timed[_i].rows < p->m * timed[_i].touched ? timed[_i].rows : p->m * timed[_i].touched;
    ck_assert_int_eq(made.rows, rows);
    ck_assert_int_eq(made.rows_cut, p->tokens * p->topk - rows);
    ck_assert_double_eq(made.flop, 2.0 * (double)rows * (double)p->n * (double)p->k);
    /* Weights of touched experts, and little else. */
    const double weights = (double)timed[_i].touched * (double)p->n * (double)p->k;
    ck_assert_double_gt(made.bytes, weights);
    ck_assert_double_lt(made.bytes, 1.5 * weights + 1e6);
    ck_assert((made.ctas_run < made.ctas_total) == timed[_i].sampled);
    prove_fixture_close(&f);
}
END_TEST

/* The same candidate's time: rows of one expert are less work than those of all. */
START_TEST(a_time_follows_the_distribution)
{
    prove_fixture f;
    prove_result even, one, again;

    prove(LARGE, "balanced", &f, &even);
    prove_fixture_close(&f);
    prove(LARGE, "one", &f, &one);
    prove_fixture_close(&f);
    prove(LARGE, "one", &f, &again);
    prove_fixture_close(&f);
    ck_assert_double_gt(even.time_ns, 1.5 * one.time_ns);
    ck_assert_double_eq(one.time_ns, again.time_ns);
    /* And what was proved is the same. */
    ck_assert_uint_eq(even.ctas_run, one.ctas_run);
    ck_assert_double_eq(even.verify.calc_diff, one.verify.calc_diff);
    ck_assert_double_eq(even.verify.max_err_ratio, one.verify.max_err_ratio);
}
END_TEST

/* What the estimate says of rows that are spread otherwise, and what is counted of them. */
START_TEST(estimate_and_counters_give_the_same_time_of_other_rows)
{
    static const struct {
        const char *device, *problem, *template, *pinned, *routing;
    } rows[] = {
        {"emu:h20", LARGE, "moe_gemm/mma_sync", NULL, "one"},
        {"emu:h20", LARGE, "moe_gemm/mma_sync", NULL, "zipf"},
        {"emu:h20", WIDE, "moe_gemm/sm90_wgmma", NULL, "zipf"},
        {"emu:h20", WIDE, "moe_gemm/sm90_wgmma", NULL, "one"},
        {"emu:h20", WIDE, "moe_gemm/sm90_wgmma", SHARED, "zipf"},
        {"emu:h20", WIDE, "moe_gemm/sm90_wgmma", SHARED, "balanced"},
        {"emu:h20", DECODE, "moe_gemm/sm90_wgmma", NULL, "zipf"},
    };
    prove_fixture f;
    prove_result made;
    routed_time told;
    routing r = {0};
    hone_error error = {0};

    prove_of(rows[_i].device, rows[_i].problem, rows[_i].template, rows[_i].pinned,
             rows[_i].routing, &f, &made);
    ck_assert_int_eq(routing_parse(rows[_i].routing, &r, &error), HONE_OK);
    ck_assert_msg(routed_time_of(f.choice.m, &f.choice.config, &f.problem, &f.d->gpu, &r, &told,
                                 &error) == HONE_OK,
                  "%s", error.message);
    ck_assert_int_eq(told.rows, made.rows);
    ck_assert_double_eq(told.roof.bytes, made.bytes);
    ck_assert_msg(fabs(told.ns / made.time_ns - 1) < 0.1, "%s, %s: %.0f ns, counted %.0f",
                  rows[_i].problem, rows[_i].routing, told.ns, made.time_ns);
    routing_free(&r);
    prove_fixture_close(&f);
}
END_TEST

START_TEST(a_histogram_of_other_experts_is_refused)
{
    prove_fixture f;
    hone_error error = {0};
    routing r = {0};
    prover *made = NULL;

    prove_fixture_open(&f, "emu:h20", SMALL, "moe_gemm/mma_sync", NULL, NULL, NULL);
    ck_assert_int_eq(routing_parse_histogram("h", "1 2", 3, &r, &error), HONE_OK);
    ck_assert_int_eq(prover_open_routed(f.d, &f.problem, &r, 1, &made, &error), HONE_BAD_PROBLEM);
    ck_assert_ptr_null(made);
    routing_free(&r);
    prove_fixture_close(&f);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("prove_routed");

    if (!prove_fixture_start("bench/prove_routed")) {
        return 0;
    }
    tcase_add_loop_test(tests, the_rows_that_are_timed_are_those_that_were_asked_for, 0,
                        ARRAY_LEN(timed));
    tcase_add_test(tests, a_time_follows_the_distribution);
    tcase_add_loop_test(tests, estimate_and_counters_give_the_same_time_of_other_rows, 0, 5);
    tcase_add_test(tests, a_histogram_of_other_experts_is_refused);
    const int result = suite_run_here("bench/prove_routed", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
