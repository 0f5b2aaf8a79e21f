/* test_prove_threads.c - proofs on several host threads and two emulated devices: what one thread
 * finds. */
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

/* Whole and sampled, sums into D, CTAs that add to a counter, and persistent ones that wait for one
 * another. */
static const struct {
    const char *device, *problem;
} proofs[] = {
    {"emu:h20", "fp8_gemm:m=33,n=136,k=320,recipe=f32-1x128-128x128"},
    {"emu:rtx4090", "fp8_gemm:m=17,n=64,k=160,recipe=ue8m0-1x32-1x32,out=f32"},
    {"emu:h20", "fp8_gemm:m=200,n=1536,k=1024,recipe=f32-1x128-128x128"},
    {"emu:h20", "fp8_gemm:m=512,n=1024,k=256,recipe=f32-1x128-128x128,out=f32,accumulate=1"},
    {"emu:h20", "act_quant:m=13,k=512"},
    {"emu:h20", "act_quant:m=4099,k=2176,scale_layout=tma"},
    {"emu:h20", "kv_quant:tokens=70,pages=3,page_size=64,record_format=index_132,"
                "record_layout=split,record_rule=raw_amax"},
};

/* All that a store keeps of a proof, and the counters that its time comes from. */
START_TEST(no_figure_depends_on_the_host_threads)
{
    prove_fixture f;
    prove_result alone, shared;
    hone_error error = {0};
    static const int counts[] = {3, 64, 1};

    prove_fixture_open(&f, proofs[_i].device, proofs[_i].problem, NULL, NULL, NULL, NULL);
    prove_fixture_run(&f, &alone);
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        memset(&shared, 0, sizeof shared);
        prover_use_threads(f.p, counts[i]);
        ck_assert_msg(prover_run(f.p, f.m, &f.plan, f.code, &shared, &error) == HONE_OK, "%s",
                      error.message);
        ck_assert_int_eq(shared.outcome, STORE_OK);
        ck_assert_uint_eq(shared.ctas_run, alone.ctas_run);
        ck_assert_double_eq(shared.time_ns, alone.time_ns);
        ck_assert_uint_eq(shared.verify.compared, alone.verify.compared);
        ck_assert_double_eq(shared.verify.cosine, alone.verify.cosine);
        ck_assert_double_eq(shared.verify.rel_fro, alone.verify.rel_fro);
        ck_assert_double_eq(shared.verify.calc_diff, alone.verify.calc_diff);
        ck_assert_double_eq(shared.verify.max_err_ratio, alone.verify.max_err_ratio);
        ck_assert_mem_eq(&shared.counters, &alone.counters, sizeof alone.counters);
    }
    prove_fixture_close(&f);
}
END_TEST

START_TEST(a_twin_is_another_device_of_the_same_kind)
{
    device *d = NULL, *twin = NULL;
    hone_error error = {0};

    ck_assert_msg(device_open("emu:h20", &d, &error) == HONE_OK, "%s", error.message);
    ck_assert_msg(device_open_twin(d, &twin, &error) == HONE_OK, "%s", error.message);
    ck_assert_int_ne(twin->ordinal, d->ordinal);
    ck_assert_ptr_ne(twin->context, d->context);
    ck_assert_mem_eq(&twin->kind, &d->kind, sizeof d->kind);
    ck_assert_mem_eq(&twin->gpu.facts, &d->gpu.facts, sizeof d->gpu.facts);
    ck_assert_str_eq(twin->spec, d->spec);
    device_close(twin);
    device_close(d);
}
END_TEST

/* A candidate that is wrong, one that faults, one whose two runs differ: the verdict of the first
 * step that refuses it. */
#define GEMM "fp8_gemm:m=33,n=136,k=320,recipe=f32-1x128-128x128"
static const struct {
    const char *old, *new;
} mutants[] = {
    {"blocks = ceil_div(k, C.block_k)", "blocks = k / C.block_k"},
    {"k, n - n0, k}", "k, n - n0, k + 64}"},
    {"__syncthreads(); // this block", "// this block"},
};

START_TEST(no_verdict_depends_on_the_host_threads)
{
    prove_fixture f;
    prove_result alone, shared;
    hone_error error = {0};

    prove_fixture_open(&f, "emu:h20", GEMM, "fp8_gemm/mma_sync", NULL, mutants[_i].old,
                       mutants[_i].new);
    prove_fixture_run(&f, &alone);
    ck_assert_int_ne(alone.outcome, STORE_OK);
    prover_use_threads(f.p, 2);
    for (int again = 0; again < 3; again++) { /* a refused one leaves both devices usable */
        ck_assert_msg(prover_run(f.p, f.m, &f.plan, f.code, &shared, &error) == HONE_OK, "%s",
                      error.message);
        ck_assert_int_eq(shared.outcome, alone.outcome);
    }
    prove_fixture_close(&f);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("prove_threads");

    if (!prove_fixture_start("prove_threads")) {
        return 0;
    }
    tcase_add_loop_test(tests, no_figure_depends_on_the_host_threads, 0, ARRAY_LEN(proofs));
    tcase_add_loop_test(tests, no_verdict_depends_on_the_host_threads, 0, ARRAY_LEN(mutants));
    tcase_add_test(tests, a_twin_is_another_device_of_the_same_kind);
    const int result = suite_run_here("bench/prove_threads", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
