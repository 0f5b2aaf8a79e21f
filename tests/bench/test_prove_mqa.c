/* test_prove_mqa.c - an indexer's scores on the emulated GPU: pinned configs that must be proved,
 * and mutants of the templates that must not. */
#include "core/index_schedule.h"
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define PREFILL "mqa_logits/mma_sync"
#define DECODE  "mqa_logits_paged/mma_sync"
#define FP8     "record=index_132-split-raw_amax"

static const struct {
    const char *device, *problem, *template, *config;
} rows[] = {
    {"emu:h20", "mqa_logits:tokens=21,keys=331,heads=32,stride=340", PREFILL,
     "tokens_cta=4 keys_tile=64 warp_keys=32 chunk=256 stages=2 residency=1"},
    {"emu:rtx4090", "mqa_logits:tokens=19,keys=700,heads=64,dims=64,clean=1,out=bf16", PREFILL,
     "tokens_cta=2 keys_tile=128 warp_keys=16 chunk=512 stages=3 residency=1"},
    {"emu:h20",
     "mqa_logits:tokens=18,keys=600,width=300,stride=301,heads=8,dims=32,span=compressed,clean=1",
     PREFILL, "tokens_cta=16 keys_tile=64 warp_keys=16 chunk=256 stages=4 residency=2"},
    {"emu:rtx5090", "mqa_logits:tokens=17,keys=257,heads=16,align=4,out=bf16,stride=259", PREFILL,
     "tokens_cta=8 keys_tile=256 warp_keys=32 chunk=256 stages=2 residency=1"},
    {"emu:h20", "mqa_logits_paged:batch=16,width=600,stride=604,pages=170,next_n=2,heads=32," FP8,
     DECODE, "keys_tile=64 warp_keys=16 split_keys=256 stages=3 residency=1"},
    {"emu:rtx4090",
     "mqa_logits_paged:batch=17,width=530,pages=300,next_n=1,heads=64,page_size=32,"
     "table_stride=20,page_stride=4228,out=bf16," FP8,
     DECODE, "keys_tile=128 warp_keys=32 split_keys=256 stages=2 residency=1"},
    {"emu:h20",
     "mqa_logits_paged:batch=5,width=1100,pages=60,next_n=6,heads=8,page_size=128," FP8, DECODE,
     "keys_tile=256 warp_keys=32 split_keys=512 stages=2 residency=2"},
    {"emu:rtx5090", "mqa_logits_paged:batch=200,width=70,pages=90,next_n=3,heads=16," FP8, DECODE,
     "keys_tile=64 warp_keys=32 split_keys=256 stages=4 residency=1"},
    /* sampled */
    {"emu:h20", "mqa_logits:tokens=256,keys=16384,heads=64", PREFILL,
     "tokens_cta=2 keys_tile=64 warp_keys=32 chunk=512 stages=2 residency=2"},
    {"emu:h20", "mqa_logits_paged:batch=16,width=16384,pages=2049,next_n=2,heads=64," FP8, DECODE,
     "keys_tile=64 warp_keys=32 split_keys=256 stages=4 residency=2"},
};

START_TEST(pinned_configs_are_proved)
{
    prove_fixture f;
    prove_result r;

    if (prove_fixture_leaves(_i, 1, rows[_i].template, NULL)) {
        return;
    }
    prove_fixture_open(&f, rows[_i].device, rows[_i].problem, rows[_i].template, rows[_i].config,
                       NULL, NULL);
    prove_fixture_run(&f, &r);
    ck_assert_msg(r.outcome == STORE_OK, "%s %s: %s", rows[_i].problem, rows[_i].config, r.reason);
    ck_assert_double_le(r.verify.max_err_ratio, 1.0);
    ck_assert(r.verify.max_err > 0.0);
    ck_assert(r.modelled && r.time_ns > 0.0);
    prove_fixture_close(&f);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("prove_mqa");

    if (!prove_fixture_start("bench/prove_mqa")) {
        return 0;
    }
    tcase_add_loop_test(tests, pinned_configs_are_proved, 0, (int)ARRAY_LEN(rows));
    const int result = suite_run_here("bench/prove_mqa", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
