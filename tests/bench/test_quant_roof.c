/* test_quant_roof.c - quantisers of activations and weights, the fold of MXFP4 and what moves
 * scales move what they must and little else: by the emulator's counters no sector is touched in
 * vain, by the model DRAM is what they wait for, and few rows are one launch. Large problems are
 * proved by a sample of their CTAs. */
#include "core/problem.h"
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 2 };
static const char *const devices[DEVICES] = {"emu:h20", "emu:h200"};

/* `sectors`: over what is moved. `share`: of the time without the launch, what DRAM alone would
 * take. Instructions come first on H20, which has few SMs for its bandwidth, where an element takes
 * many. Of blocks of 128 x 128 each row of MXFP4 has four bytes of scales, part of a sector; rows
 * of 57 floats begin anywhere in one: docs/kernels/quantisers.md has the arithmetic. */
static const struct {
    const char *problem;
    int count; /* of rows, or of groups */
    double sectors, share[DEVICES];
} rows[] = {
    {"act_quant:m=%d,k=7168", 1024, 1.1, {0.90, 0.90}},
    {"act_quant:m=%d,k=7168,scale=ue8m0", 1024, 1.1, {0.90, 0.90}},
    {"act_quant:m=%d,k=7168,scale=ue8m0,group=32", 1024, 1.1, {0.90, 0.90}},
    {"act_quant:m=%d,k=2048,activation=silu_mul", 1024, 1.1, {0.90, 0.90}},
    {"act_quant:m=%d,k=2048,activation=silu_mul,scale=ue8m0", 1024, 1.1, {0.90, 0.90}},
    {"weight_quant:n=%d,k=7168", 1024, 1.1, {0.90, 0.90}},
    {"moe_combine:tokens=%d,n=7168,topk=8", 1024, 1.1, {0.90, 0.90}},
    {"moe_combine:tokens=%d,n=5120,topk=6,out=f32,accumulate=1", 1024, 1.1, {0.90, 0.90}},
    {"weight_quant:n=%d,k=7168,gran_n=1,gran_k=32,scale=ue8m0", 1024, 1.1, {0.90, 0.90}},
    {"mxfp4_fold:n=%d,k=7168", 1024, 1.1, {0.90, 0.90}},
    {"mxfp4_fold:n=%d,k=7168,block_rows=1", 1024, 1.1, {0.90, 0.90}},
    {"scale_pack:rows=%d,groups=56,batch=4", 65536, 1.1, {0.90, 0.90}},
    {"scale_pack:rows=%d,groups=57,scale=f32,scale_layout=tma,batch=4", 65536, 1.14, {0.90, 0.90}},
    {"scale_pack:rows=7168,groups=%d,experts=32", 2048, 1.1, {0.90, 0.90}},
};

static void open_row(prove_fixture *f, int row, size_t on, int count)
{
    char text[200];

    snprintf(text, sizeof text, rows[row].problem, count);
    prove_fixture_open(f, devices[on], text, NULL, NULL, NULL, NULL);
}

START_TEST(elements_are_moved_at_the_roof)
{
    for (size_t on = 0; on < DEVICES; on++) {
        prove_fixture f;
        prove_result r;
        char chosen[200] = "";
        double flop = 0, bytes = 0;

        open_row(&f, _i, on, rows[_i].count);
        prove_fixture_run(&f, &r);
        ck_assert_msg(r.outcome == STORE_OK, "%s: %s", rows[_i].problem, r.reason);
        manifest_config_format(f.choice.m, &f.choice.config, chosen, sizeof chosen, NULL);
        problem_work(&f.problem, &flop, &bytes);
        /* at the share of bandwidth that copies reach */
        const double dram = bytes / (PERF_DRAM_SHARE * (double)f.d->gpu.facts.mem_bytes_per_s / 1e9);
        const double share = dram / (r.time_ns - r.model.term_ns[PERF_LAUNCH]);
        const double sampled = (double)r.counters.ctas_run / (double)r.counters.ctas_total;
        const double sectors = (double)r.counters.global_sectors * 32 / sampled / bytes;
        printf("%s on %s, %s: %.3f of the least sectors, %.1f %% of DRAM's modelled roof\n",
               rows[_i].problem, devices[on], chosen, sectors, 100.0 * share);
        ck_assert_msg(sectors <= rows[_i].sectors, "%s: %.3f of the least sectors",
                      rows[_i].problem, sectors);
        ck_assert_msg(share >= rows[_i].share[on], "%s on %s: %.3f of the roof", rows[_i].problem,
                      devices[on], share);
        prove_fixture_close(&f);
    }
}
END_TEST

START_TEST(few_rows_are_one_launch)
{
    for (int count = 1; count <= 16; count *= 16) {
        prove_fixture f;

        open_row(&f, _i, 0, count);
        ck_assert_uint_eq(f.plan.launches_len, 1);
        ck_assert_uint_eq(f.plan.workspace_bytes, 0);
        prove_fixture_close(&f);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("quant_roof");

    if (!prove_fixture_start("quant_roof")) {
        return 0;
    }
    tcase_add_loop_test(tests, elements_are_moved_at_the_roof, 0, (int)ARRAY_LEN(rows));
    tcase_add_loop_test(tests, few_rows_are_one_launch, 0, (int)ARRAY_LEN(rows));
    const int result = suite_run_here("bench/quant_roof", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
