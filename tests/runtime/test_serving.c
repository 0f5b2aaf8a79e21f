/* test_serving.c - lookups over a store: exact, bucket, near, default, error. */
#include "runtime/serving.h"
#include "tests/runtime/jit_fixture.h"
#include "tests/runtime/serving_fixture.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Fallback -------------------------------------------------------------------------------- */

static const struct {
    const char *name, *prepared, *asked;
    int strict;
    hone_status status;
    int32_t provenance;
    double time_ns; /* of the winner that answers; 0 for a default */
} fallbacks[] = {
    {"a winner that is not prepared says so", NULL, GEMM(64), 0, HONE_NOT_PREPARED, 0, 0},
    {"a prepared winner answers exactly", GEMM(64), GEMM(64), 0, HONE_OK, HONE_FROM_EXACT, 2000},
    {"strict too", GEMM(64), GEMM(64), 1, HONE_OK, HONE_FROM_EXACT, 2000},
    {"a size is rounded up to its bucket", GEMM(64), GEMM(60), 0, HONE_OK, HONE_FROM_BUCKET, 2000},
    {"or prepared for itself", GEMM(60), GEMM(60), 0, HONE_OK, HONE_FROM_BUCKET, 2000},
    {"a bucket whose kernel is not loaded is not passed over", GEMM(4096), GEMM(60), 0,
     HONE_NOT_PREPARED, 0, 0},
    {"past the buckets that are tuned the next larger size serves", GEMM(4096), GEMM(100), 0,
     HONE_OK, HONE_FROM_NEAR, 3000},
    {"beyond every tuned size there is the analytical choice", GEMM(5000), GEMM(5000), 0, HONE_OK,
     HONE_FROM_DEFAULT, 0},
    {"which covers smaller sizes that nothing else does", GEMM(5000), GEMM(4500), 0, HONE_OK,
     HONE_FROM_DEFAULT, 0},
    {"nothing prepared, nothing stored: not found", NULL, GEMM(5000), 0, HONE_NOT_FOUND, 0, 0},
    {"strict never rounds", GEMM(64), GEMM(60), 1, HONE_NOT_FOUND, 0, 0},
    {"another N is another family", GEMM(64), "fp8_gemm:m=60,n=512,k=256,recipe=f32-1x128-128x128",
     0, HONE_NOT_FOUND, 0, 0},
    {"zero rows succeed without a kernel", NULL, GEMM(0), 0, HONE_OK, HONE_FROM_DEFAULT, 0},
};

START_TEST(fallback_is_legal_and_monotone)
{
    hone_choice choice;

    hone_runtime *rt = serving_fixture_open("emu:h20", fallbacks[_i].strict, 0);
    if (fallbacks[_i].prepared != NULL) {
        serving_fixture_prepare(rt, fallbacks[_i].prepared);
    }
    memset(&choice, 0xee, sizeof choice);
    hone_status status = store_fixture_ask(rt, fallbacks[_i].asked, &choice);
    ck_assert_msg(status == fallbacks[_i].status, "%s: %s", fallbacks[_i].name,
                  hone_status_name(status));
    if (status == HONE_OK) {
        ck_assert_msg(choice.provenance == fallbacks[_i].provenance, "%s: %d", fallbacks[_i].name,
                      choice.provenance);
        /* The fixture's winners were tuned with another NVRTC. */
        ck_assert_int_eq(choice.grade, choice.winner != 0 ? HONE_GRADE_SUSPECT : 0);
        ck_assert_double_eq(choice.time_ns, fallbacks[_i].time_ns);
        ck_assert(choice.modelled == (fallbacks[_i].time_ns > 0));
        ck_assert_uint_eq(choice.size, sizeof choice);
    } else {
        ck_assert_uint_eq(choice.size, 0xeeeeeeee); /* untouched */
    }
    hone_close(rt);
}
END_TEST

#define CACHE(tokens, pages)                                                                       \
    "kv_quant:tokens=" #tokens ",pages=" #pages ",record=index_132-split-raw_amax"

/* How large the cache is decides no config: a winner for one serves all (DESIGN 6.8, near). */
START_TEST(a_cache_of_another_size_is_served_by_what_was_tuned)
{
    const fixture_winner winners[] = {store_fixture_winner("h20", true, CACHE(64, 16), 1000)};
    static const char *const asked[] = {CACHE(64, 20000), CACHE(50, 3)};
    hone_choice choice;

    serving_fixture_write(winners, ARRAY_LEN(winners));
    hone_runtime *rt = serving_fixture_open("emu:h20", 0, 0);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        serving_fixture_prepare(rt, asked[i]);
        ck_assert_int_eq(store_fixture_ask(rt, asked[i], &choice), HONE_OK);
        ck_assert(choice.provenance == HONE_FROM_BUCKET || choice.provenance == HONE_FROM_NEAR);
        ck_assert_double_eq(choice.time_ns, 1000);
    }
    hone_close(rt);
    rt = serving_fixture_open("emu:h20", 1, 0);
    ck_assert_int_eq(store_fixture_ask(rt, asked[0], &choice), HONE_NOT_FOUND);
    hone_close(rt);
    serving_fixture_remove();
}
END_TEST

START_TEST(a_stale_winner_says_so_and_is_nothing_to_a_strict_runtime)
{
    fixture_winner winner = store_fixture_winner("h20", true, GEMM(64), 1000);
    const hone_problem problem = store_fixture_problem(GEMM(64));
    hone_choice choice;

    winner.stale = true;
    serving_fixture_write(&winner, 1);
    hone_runtime *rt = serving_fixture_open("emu:h20", 0, 0);
    serving_fixture_prepare(rt, GEMM(64));
    ck_assert_int_eq(store_fixture_ask(rt, GEMM(64), &choice), HONE_OK);
    ck_assert_int_eq(choice.grade, HONE_GRADE_STALE);
    hone_close(rt);
    rt = serving_fixture_open("emu:h20", 1, 0);
    ck_assert_int_eq(hone_prepare(rt, &problem, 1, NULL, NULL, NULL), HONE_NOT_FOUND);
    ck_assert_int_ne(store_fixture_ask(rt, GEMM(64), &choice), HONE_OK);
    hone_close(rt);
    serving_fixture_remove();
}
END_TEST

START_TEST(strict_preparation_of_an_untuned_problem_is_refused)
{
    const hone_problem problem = store_fixture_problem(GEMM(60));
    hone_error error;

    hone_runtime *rt = serving_fixture_open("emu:h20", 1, 0);
    ck_assert_int_eq(hone_prepare(rt, &problem, 1, NULL, NULL, &error), HONE_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.source, "m=60"));
    hone_close(rt);
}
END_TEST

static int count_progress(void *context, const hone_progress *progress)
{
    uint64_t *compiles = context;

    *compiles = progress->total;
    return 0;
}

static int refuse_to_go_on(void *context, const hone_progress *progress)
{
    (void)context;
    (void)progress;
    return 1;
}

/* cases.md 23: after preparing the buckets, serving compiles nothing, whatever the number of
 * tokens. */
START_TEST(every_size_up_to_the_largest_is_answered_without_a_compile)
{
    const hone_problem sizes[] = {store_fixture_problem(GEMM(16)), store_fixture_problem(GEMM(64)),
                                  store_fixture_problem(GEMM(4096))};
    hone_problem problem = sizes[0];
    uint64_t compiles = 0;
    hone_choice choice;
    hone_error error;

    hone_runtime *rt = serving_fixture_open("emu:h20", 0, 0);
    ck_assert_msg(hone_prepare(rt, sizes, ARRAY_LEN(sizes), count_progress, &compiles, &error) ==
                      HONE_OK,
                  "%s", error.message);
    ck_assert_uint_le(compiles, ARRAY_LEN(sizes));
    const void *kernels[] = {NULL, NULL, NULL};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        ck_assert_int_eq(hone_lookup(rt, &sizes[i], &choice, &error), HONE_OK);
        kernels[i] = choice.kernel;
    }
    for (int64_t m = 1; m <= 4096; m++) {
        problem.as.fp8_gemm.m = m;
        ck_assert_msg(hone_lookup(rt, &problem, &choice, &error) == HONE_OK, "m=%lld: %s",
                      (long long)m, error.message);
        ck_assert(choice.kernel == kernels[0] || choice.kernel == kernels[1] ||
                  choice.kernel == kernels[2]);
        ck_assert_int_eq(choice.problem.as.fp8_gemm.m, m);
    }
    hone_close(rt);
}
END_TEST

START_TEST(preparation_can_be_cancelled_and_repeated)
{
    const hone_problem problem = store_fixture_problem(GEMM(64));
    hone_choice choice;
    hone_error error;

    hone_runtime *rt = serving_fixture_open("emu:h20", 0, 0);
    ck_assert_int_eq(hone_prepare(rt, &problem, 1, refuse_to_go_on, NULL, &error), HONE_CANCELLED);
    ck_assert_int_eq(hone_lookup(rt, &problem, &choice, NULL), HONE_NOT_PREPARED);
    ck_assert_msg(hone_prepare(rt, &problem, 1, NULL, NULL, &error) == HONE_OK, "%s",
                  error.message);
    ck_assert_int_eq(hone_lookup(rt, &problem, &choice, NULL), HONE_OK);
    hone_close(rt);
}
END_TEST

/* ---- Keys (cases.md 18) ---------------------------------------------------------------------- */

static const char *const keyed[] = {
    GEMM(64),
    "act_quant:m=64,k=512",
    "kv_quant:tokens=64,pages=16,record=v41_528-split-pow2_amax",
};

START_TEST(every_field_is_in_the_lookup_key_and_nothing_else)
{
    const hone_problem problem = store_fixture_problem(keyed[_i]);
    const size_t key_len = table_key_len(problem.op);
    const uint64_t hash = table_hash(problem.op, &problem.as, key_len);
    size_t fields_len = 0, bytes = 0;
    const problem_field *fields = problem_fields(problem.op, &fields_len);

    for (size_t i = 0; i < fields_len; i++) {
        hone_problem other = problem;
        problem_field_set(&other, &fields[i], problem_field_get(&problem, &fields[i]) + 1);
        ck_assert_msg(memcmp(&other.as, &problem.as, key_len) != 0, "%s", fields[i].name);
        ck_assert_msg(table_hash(other.op, &other.as, key_len) != hash, "%s", fields[i].name);
        bytes += fields[i].kind == PROBLEM_SIZE ? 8 : 4;
    }
    ck_assert_uint_eq(bytes, key_len); /* no padding, no byte without a field */
    hone_problem dirty;
    memset(&dirty, 0x5a, sizeof dirty);
    dirty.op = problem.op;
    memcpy(&dirty.as, &problem.as, key_len);
    ck_assert_uint_eq(table_hash(dirty.op, &dirty.as, key_len), hash);
}
END_TEST

/* ---- Device kinds (cases.md 20) -------------------------------------------------------------- */

static const struct {
    const char *made_on, *asked_on;
    bool emulated;
    int strict, allow;
    hone_status status; /* of preparing in strict mode, or of looking up without preparing */
    int32_t provenance;
} kinds[] = {
    {"h200", "emu:h200", false, 0, 0, HONE_OK, HONE_FROM_EXACT},
    {"h200", "emu:h200-nvl", false, 0, 0, HONE_OK, HONE_FROM_NEAR},
    {"h200", "emu:gh200", false, 0, 0, HONE_OK, HONE_FROM_NEAR},
    {"h200", "emu:h20", false, 0, 0, HONE_OK, HONE_FROM_DEFAULT},
    {"h20", "emu:h200", false, 0, 0, HONE_OK, HONE_FROM_DEFAULT},
    {"h200", "emu:h200-nvl", false, 1, 0, HONE_NOT_FOUND, 0},
    {"h200", "emu:h20", false, 1, 0, HONE_NOT_FOUND, 0},
};

START_TEST(winners_serve_their_device_kind_and_its_twins)
{
    const hone_problem problem = store_fixture_problem(GEMM(64));
    const fixture_winner winner =
        store_fixture_winner(kinds[_i].made_on, kinds[_i].emulated, GEMM(64), 2000);
    hone_choice choice;
    hone_error error;

    serving_fixture_write(&winner, 1);
    hone_runtime *rt = serving_fixture_open(kinds[_i].asked_on, kinds[_i].strict, kinds[_i].allow);
    hone_status status = hone_prepare(rt, &problem, 1, NULL, NULL, &error);
    ck_assert_msg(status == kinds[_i].status, "%s on %s: %s", kinds[_i].made_on, kinds[_i].asked_on,
                  error.message);
    if (status == HONE_OK) {
        ck_assert_int_eq(hone_lookup(rt, &problem, &choice, &error), HONE_OK);
        ck_assert_msg(choice.provenance == kinds[_i].provenance, "%s on %s: %d", kinds[_i].made_on,
                      kinds[_i].asked_on, choice.provenance);
    }
    hone_close(rt);
    serving_fixture_remove();
}
END_TEST

/* The rule itself, since no CUDA device is needed to ask it. */
START_TEST(modelled_winners_stay_off_real_devices_unless_asked_for)
{
    hone_runtime rt = {.device = NULL};
    device d = {.gpu = {.facts = {.emulated = false}}};
    const device_kind modelled = store_fixture_kind("h20", true),
                      measured = store_fixture_kind("h20", false);
    const generation_winner from_model = {.kind = &modelled}, from_clock = {.kind = &measured};

    d.kind = measured;
    rt.device = &d;
    ck_assert_int_eq(serving_rank(&rt, &from_model), -1);
    ck_assert_int_eq(serving_rank(&rt, &from_clock), 0);
    rt.options.allow_modelled = 1;
    ck_assert_int_gt(serving_rank(&rt, &from_model), serving_rank(&rt, &from_clock));
    rt.options.allow_modelled = 0;
    d.gpu.facts.emulated = true;
    ck_assert_int_ge(serving_rank(&rt, &from_model), 0);
}
END_TEST

START_TEST(a_winner_whose_config_no_longer_parses_is_a_miss)
{
    const hone_problem problem = store_fixture_problem(GEMM(64));
    fixture_winner winner = store_fixture_winner("h20", true, GEMM(64), 2000);
    hone_choice choice;
    hone_error error;

    winner.template_name = _i == 0 ? "fp8_gemm/gone" : "fp8_gemm/mma_sync";
    winner.config = "block_q=1";
    serving_fixture_write(&winner, 1);
    hone_runtime *rt = serving_fixture_open("emu:h20", 0, 0);
    ck_assert_msg(hone_prepare(rt, &problem, 1, NULL, NULL, &error) == HONE_OK, "%s",
                  error.message);
    ck_assert_int_eq(hone_lookup(rt, &problem, &choice, &error), HONE_OK);
    ck_assert_int_eq(choice.provenance, HONE_FROM_DEFAULT);
    hone_close(rt);
    serving_fixture_remove();
}
END_TEST

/* ---- Fingerprint ----------------------------------------------------------------------------- */

START_TEST(ranks_with_the_same_answers_have_the_same_fingerprint)
{
    const hone_problem problems[] = {store_fixture_problem(GEMM(64)),
                                     store_fixture_problem(GEMM(60))};
    uint8_t prints[3][HONE_FINGERPRINT_BYTES];
    hone_runtime *first = serving_fixture_open("emu:h20", 0, 0),
                 *second = serving_fixture_open("emu:h20", 0, 0);

    /* In another order and in another number of calls. */
    ck_assert_int_eq(hone_prepare(first, problems, 2, NULL, NULL, NULL), HONE_OK);
    ck_assert_int_eq(hone_prepare(second, &problems[1], 1, NULL, NULL, NULL), HONE_OK);
    ck_assert_int_eq(hone_fingerprint(second, prints[2], NULL), HONE_OK);
    ck_assert_int_eq(hone_prepare(second, &problems[0], 1, NULL, NULL, NULL), HONE_OK);
    ck_assert_int_eq(hone_fingerprint(first, prints[0], NULL), HONE_OK);
    ck_assert_int_eq(hone_fingerprint(second, prints[1], NULL), HONE_OK);
    ck_assert(memcmp(prints[0], prints[1], sizeof prints[0]) == 0);
    ck_assert(memcmp(prints[0], prints[2], sizeof prints[0]) != 0);
    hone_close(first);
    hone_close(second);
}
END_TEST

START_TEST(malformed_calls_are_refused)
{
    hone_problem problem = store_fixture_problem(GEMM(64));
    const hone_options options = {.size = 3};
    hone_choice choice = {.size = 0};
    hone_runtime *rt = NULL;

    ck_assert_int_eq(hone_open(serving_fixture_store(), "emu:h20", &options, &rt, NULL),
                     HONE_BAD_ARGUMENT);
    ck_assert_int_eq(hone_open(serving_fixture_store(), "gpu7", NULL, &rt, NULL), HONE_BAD_TEXT);
    ck_assert_int_eq(hone_open(serving_fixture_store(), "emu:h21", NULL, &rt, NULL), HONE_UNKNOWN);
    ck_assert_int_eq(hone_open("/nonexistent/hone.db", "emu:h20", NULL, &rt, NULL), HONE_STORE_IO);
    ck_assert_ptr_null(rt);
    ck_assert_int_eq(hone_launch(&choice, NULL, 0, NULL, NULL), HONE_BAD_ARGUMENT);
    rt = serving_fixture_open("emu:h20", 0, 0);
    problem.op = 77;
    ck_assert_int_eq(hone_lookup(rt, &problem, &choice, NULL), HONE_BAD_ARGUMENT);
    problem = store_fixture_problem(GEMM(64));
    problem.as.fp8_gemm.out = 99;
    ck_assert_int_eq(hone_lookup(rt, &problem, &choice, NULL), HONE_BAD_PROBLEM);
    ck_assert_int_eq(hone_prepare(rt, &problem, 1, NULL, NULL, NULL), HONE_BAD_PROBLEM);
    hone_close(rt);
    hone_close(NULL);
}
END_TEST

/* hone_options ended before `checked` once. */
START_TEST(options_of_an_older_caller_are_taken)
{
    struct {
        hone_options options;
    } older = {{.size = offsetof(hone_options, checked), .checked = 77}};
    hone_runtime *rt = NULL;
    hone_error error = {.status = HONE_OK};

    ck_assert_msg(hone_open(serving_fixture_store(), "emu:h20", &older.options, &rt, &error) ==
                      HONE_OK,
                  "%s", error.message);
    hone_close(rt);
    rt = NULL;
    older.options.size = sizeof older.options;
    ck_assert_int_eq(hone_open(serving_fixture_store(), "emu:h20", &older.options, &rt, &error),
                     HONE_BAD_ARGUMENT);
    ck_assert_ptr_null(rt);
}
END_TEST

int main(void)
{
    TCase *usual = tcase_create("usual store"), *own = tcase_create("stores of their own");
    TCase *const cases[] = {usual, own};

    jit_fixture_need_nvrtc();
    serving_fixture_start();
    tcase_set_timeout(usual, 60);
    tcase_set_timeout(own, 60);
    tcase_add_unchecked_fixture(usual, serving_fixture_write_usual, serving_fixture_remove);
    tcase_add_loop_test(usual, fallback_is_legal_and_monotone, 0, (int)ARRAY_LEN(fallbacks));
    tcase_add_test(usual, strict_preparation_of_an_untuned_problem_is_refused);
    tcase_add_test(usual, every_size_up_to_the_largest_is_answered_without_a_compile);
    tcase_add_test(usual, preparation_can_be_cancelled_and_repeated);
    tcase_add_test(usual, ranks_with_the_same_answers_have_the_same_fingerprint);
    tcase_add_test(usual, malformed_calls_are_refused);
    tcase_add_test(usual, options_of_an_older_caller_are_taken);
    tcase_add_loop_test(own, every_field_is_in_the_lookup_key_and_nothing_else, 0,
                        (int)ARRAY_LEN(keyed));
    tcase_add_loop_test(own, winners_serve_their_device_kind_and_its_twins, 0,
                        (int)ARRAY_LEN(kinds));
    tcase_add_test(own, a_cache_of_another_size_is_served_by_what_was_tuned);
    tcase_add_test(own, a_stale_winner_says_so_and_is_nothing_to_a_strict_runtime);
    tcase_add_test(own, modelled_winners_stay_off_real_devices_unless_asked_for);
    tcase_add_loop_test(own, a_winner_whose_config_no_longer_parses_is_a_miss, 0, 2);
    const int result = suite_run_cases("runtime/serving", cases, ARRAY_LEN(cases));
    serving_fixture_stop();
    return result;
}
