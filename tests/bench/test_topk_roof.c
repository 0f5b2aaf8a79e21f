/* test_topk_roof.c - the choice of an indexer's best, of long rows that fill the GPU, takes less
 * than twice what one read of the rows takes from DRAM: by the model, from the emulator's counters,
 * with the analytical default. */
#include "core/problem.h"
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* V3.2's and GLM-5's, V4.1's of a half of 128k, and both of bf16 (shapes.md 2.7). */
static const struct {
    const char *device, *problem;
} rows[] = {
#define EACH(device)                                                                               \
    {device, "topk:rows=256,width=131072,k=2048"}, {device, "topk:rows=256,width=65536,k=512"},    \
        {device, "topk:rows=256,width=131072,k=2048,in=bf16"},                                     \
    {                                                                                              \
        device, "topk:rows=256,width=65536,k=512,in=bf16"                                          \
    }
    EACH("emu:h20"),
    EACH("emu:h200"),
    EACH("emu:rtx4090"),
#undef EACH
    /* Too few rows to fill the GPU by one CTA each, and V4.1's second level. */
    {"emu:h20", "topk:rows=64,width=65536,k=512"},
    {"emu:h20", "topk:rows=16,width=131072,k=2048"},
    {"emu:h20", "topk:rows=128,width=65536,k=512,in=bf16"},
};

START_TEST(rows_are_read_about_once)
{
    prove_fixture f;
    prove_result r;
    char chosen[200] = "";
    double flop = 0, bytes = 0;

    prove_fixture_open(&f, rows[_i].device, rows[_i].problem, NULL, NULL, NULL, NULL);
    prove_fixture_run(&f, &r);
    ck_assert_msg(r.outcome == STORE_OK, "%s: %s", rows[_i].problem, r.reason);
    manifest_config_format(f.choice.m, &f.choice.config, chosen, sizeof chosen, NULL);
    problem_work(&f.problem, &flop, &bytes);
    /* at the share of bandwidth that copies reach */
    const double once = bytes / (PERF_DRAM_SHARE * (double)f.d->gpu.facts.mem_bytes_per_s / 1e9);
    const double own = r.time_ns - r.model.term_ns[PERF_LAUNCH];
    printf("%s on %s, %s: %.2f of one read (modelled)\n", rows[_i].problem, rows[_i].device, chosen,
           own / once);
    ck_assert_msg(own <= 2 * once, "%s on %s: %.2f of one read", rows[_i].problem, rows[_i].device,
                  own / once);
    prove_fixture_close(&f);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("topk_roof");

    if (!prove_fixture_start("topk_roof")) {
        return 0;
    }
    tcase_add_loop_test(tests, rows_are_read_about_once, 0, (int)ARRAY_LEN(rows));
    const int result = suite_run_here("bench/topk_roof", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
