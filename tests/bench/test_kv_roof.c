/* test_kv_roof.c - KV kernels move what they must and little else: by the emulator's counters no
 * sector is touched in vain, by the model DRAM is what they wait for, and few tokens are one
 * launch. */
#include "core/problem.h"
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 2, SIZES = 2 };
static const int sizes[SIZES] = {4096, 1024};
static const char *const devices[DEVICES] = {"emu:h20", "emu:h200"};

#define QUANT(record)  "kv_quant:tokens=%d,pages=256,record=" record
#define GATHER(record) "kv_gather:tokens=%d,pages=256,record=" record
#define TABLE(record)  "kv_gather:tokens=%d,pages=256,to=raw,by=table,table_pages=256,record=" record

/* `sectors`: of 32 bytes, that a token has at least: of its row, of its place in the cache (a scale
 * or a record that begins within a sector counts as one), and of its slot or page, which a CTA's
 * tokens share. `share`: of the time without the launch, what DRAM alone would take, of 4096 and
 * of 1024 tokens. H20 has few SMs for its bandwidth, so that there instructions come first where
 * codes are dear; small records of 1024 tokens are too few warps to issue at full rate
 * (docs/kernels/kv_cache.md has the arithmetic). The least time of any kernel is a launch, the
 * first loads' round trip to DRAM, and the transfer: nine tenths of it at any size. */
static const struct {
    const char *problem;
    double sectors, share[SIZES][DEVICES];
} rows[] = {
    {QUANT("index_132-split-pow2_amax"), 8 + 4 + 1 + 0.5, {{0.90, 0.90}, {0.75, 0.61}}},
    {QUANT("v32_656-interleaved-pow2_scale"), 36 + 21 + 1, {{0.90, 0.90}, {0.90, 0.90}}},
    {QUANT("v32_656-interleaved-raw_tiny"), 36 + 21 + 1, {{0.90, 0.90}, {0.90, 0.90}}},
    {QUANT("v4_584-split-pow2_amax"), 32 + 18 + 1 + 0.25, {{0.90, 0.90}, {0.90, 0.90}}},
    {QUANT("v41_528-split-pow2_amax"), 32 + 16 + 1 + 1, {{0.90, 0.90}, {0.90, 0.90}}},
    {QUANT("v41_528-interleaved-pow2_amax"), 32 + 17 + 1, {{0.90, 0.90}, {0.90, 0.90}}},
    {QUANT("v41_288-split-e4m3_near"), 32 + 8 + 1 + 1, {{0.90, 0.90}, {0.90, 0.90}}},
    {QUANT("nvfp4_352-interleaved-e4m3_up"), 36 + 11 + 1, {{0.90, 0.90}, {0.90, 0.90}}},
    {QUANT("index_68-split-pow2_amax"), 8 + 2 + 1 + 0.5, {{0.90, 0.90}, {0.72, 0.58}}},
    {QUANT("fp8_576-flat-tensor"), 36 + 18 + 0.25, {{0.90, 0.90}, {0.90, 0.90}}},
    {QUANT("bf16_1152-flat-unscaled"), 36 + 36 + 0.25, {{0.90, 0.90}, {0.90, 0.90}}},
    {GATHER("v41_528-split-pow2_amax"), 16 + 1 + 32 + 1, {{0.90, 0.90}, {0.90, 0.90}}},
    {GATHER("v32_656-interleaved-pow2_scale"), 21 + 36 + 1, {{0.90, 0.90}, {0.90, 0.90}}},
    {GATHER("v41_288-split-e4m3_near"), 8 + 1 + 32 + 1, {{0.90, 0.90}, {0.90, 0.90}}},
    {GATHER("nvfp4_352-interleaved-e4m3_up"), 11 + 36 + 1, {{0.90, 0.90}, {0.90, 0.90}}},
    {GATHER("index_132-split-pow2_amax"), 4 + 0.5 + 8 + 1, {{0.90, 0.90}, {0.80, 0.68}}},
    {TABLE("index_132-split-pow2_amax"), 4 + 0.125 + 4 + 0.125 + 0.5, {{0.90, 0.90}, {0.48, 0.37}}},
};

static void open_row(prove_fixture *f, int row, size_t on, int tokens)
{
    char text[200];

    snprintf(text, sizeof text, rows[row].problem, tokens);
    prove_fixture_open(f, devices[on], text, NULL, NULL, NULL, NULL);
}

/* What the distinct lines of 128 bytes alone would take, at the share of bandwidth that copies
 * reach. */
static double dram_ns(const prove_fixture *f, const prove_result *r)
{
    return (double)r->counters.unique_lines * 128.0 /
           (PERF_DRAM_SHARE * (double)f->d->gpu.facts.mem_bytes_per_s / 1e9);
}

static void hold_row(int row, size_t on, size_t size)
{
    prove_fixture f;
    prove_result r;
    char chosen[200] = "";

    open_row(&f, row, on, sizes[size]);
    prove_fixture_run(&f, &r);
    ck_assert_msg(r.outcome == STORE_OK, "%s: %s", rows[row].problem, r.reason);
    manifest_config_format(f.choice.m, &f.choice.config, chosen, sizeof chosen, NULL);
    const double sectors = (double)r.counters.global_sectors / sizes[size];
    const double share = dram_ns(&f, &r) / (r.time_ns - r.model.term_ns[PERF_LAUNCH]);
    const double least = r.model.term_ns[PERF_LAUNCH] + dram_ns(&f, &r),
                 of_least = least / r.time_ns;
    printf("%s %d on %s, %s: %.2f sectors a token (%.2f), %.1f %% of DRAM's modelled roof, %.1f %% "
           "of the least time\n",
           rows[row].problem, sizes[size], devices[on], chosen, sectors, rows[row].sectors,
           100.0 * share, 100.0 * of_least);
    ck_assert_msg(sectors <= 1.1 * rows[row].sectors, "%s: %.2f sectors a token", rows[row].problem,
                  sectors);
    ck_assert_msg(share >= rows[row].share[size][on], "%s of %d tokens on %s: %.3f of the roof",
                  rows[row].problem, sizes[size], devices[on], share);
    ck_assert_msg(of_least >= 0.9, "%s of %d tokens on %s: %.3f of the least time",
                  rows[row].problem, sizes[size], devices[on], of_least);
    prove_fixture_close(&f);
}

START_TEST(rows_are_moved_at_the_roof)
{
    for (size_t size = 0; size < SIZES; size++) {
        for (size_t on = 0; on < DEVICES; on++) {
            hold_row(_i, on, size);
        }
    }
}
END_TEST

START_TEST(few_tokens_are_one_launch)
{
    for (int tokens = 1; tokens <= 16; tokens *= 16) {
        prove_fixture f;
        open_row(&f, _i, 0, tokens);
        ck_assert_uint_eq(f.plan.launches_len, 1);
        ck_assert_uint_eq(f.plan.workspace_bytes, 0);
        prove_fixture_close(&f);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("kv_roof");

    if (!prove_fixture_start("kv_roof")) {
        return 0;
    }
    tcase_add_loop_test(tests, rows_are_moved_at_the_roof, 0, (int)ARRAY_LEN(rows));
    tcase_add_loop_test(tests, few_tokens_are_one_launch, 0, (int)ARRAY_LEN(rows));
    const int result = suite_run_here("bench/kv_roof", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
