/* test_sweep_limits.c - what ends a sweep, or a problem's search, before all is tried. */
#include "runtime/default.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"
#include "tests/tuner/fake_engine.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const char *const texts[] = {
    "fp8_gemm:m=256,n=384,k=512,recipe=f32-1x128-128x128",
    "fp8_gemm:m=16,n=384,k=512,recipe=f32-1x128-128x128",
    "act_quant:m=64,k=4096",
};
#define PROBLEMS ARRAY_LEN(texts)
#define BUDGET   FAKE_BUDGET

static char folder[FOLDER_BYTES]; /* of the stores, removed at the end */

static void store_file(char path[1024], const char *name)
{
    snprintf(path, 1024, "%s/%s.db", folder, name);
}

static hone_status sweep_once(const char *path, int32_t arch, uint64_t *stop, sweep_summary *out)
{
    return fake_sweep(path, arch, texts, PROBLEMS, stop, out);
}

static int add_row(void *context, const store_row *row)
{
    (void)row;
    ++*(size_t *)context;
    return 0;
}

static int add_winner(void *context, const store_winner *winner)
{
    ck_assert_int_eq(winner->row.result.outcome, STORE_OK);
    ++*(size_t *)context;
    return 0;
}

static size_t count_rows(const char *path, size_t *winners)
{
    hone_error error = {0};
    store *s = NULL;
    size_t rows = 0;

    *winners = 0;
    ck_assert_msg(store_open(path, STORE_READ, &s, &error) == HONE_OK, "%s", error.message);
    ck_assert_int_eq(store_candidates(s, NULL, add_row, &rows, &error), HONE_OK);
    ck_assert_int_eq(store_winners(s, NULL, add_winner, winners, &error), HONE_OK);
    ck_assert_int_eq(store_close(s, &error), HONE_OK);
    return rows;
}

static int count_at_roof(void *context, const store_row *row)
{
    *(size_t *)context += row->result.outcome == STORE_PRUNED &&
                          strcmp(row->result.reason, "the best is at the roof already") == 0;
    return 0;
}

/* Three seconds of the device are three proofs; what they proved wins, and the next sweep goes on.
 */
START_TEST(a_limit_of_device_time_ends_a_sweep_that_goes_on_later)
{
    char path[1024], whole[1024];
    sweep_summary summary = {0};
    size_t winners = 0, rows = 0;

    store_file(whole, "unlimited");
    sweep_once(whole, 90, NULL, &summary);
    const uint64_t all = summary.tried + summary.pruned;
    store_file(path, "limited");
    fake_now.limits.device_seconds = 3;
    for (int run = 0; run < 50 && (run == 0 || summary.unfinished > 0); run++) {
        ck_assert_int_eq(sweep_once(path, 90, NULL, &summary), HONE_OK);
        ck_assert_double_le(summary.device_seconds, 3);
        ck_assert(run > 0 || (summary.unfinished > 0 && summary.winners == 1));
        const size_t now = count_rows(path, &winners);
        ck_assert(now > rows || summary.unfinished == 0);
        rows = now;
    }
    ck_assert_uint_eq(summary.unfinished, 0);
    ck_assert_uint_eq(winners, PROBLEMS);
    ck_assert_uint_eq(rows, all);
}
END_TEST

START_TEST(a_limit_of_wall_time_that_is_over_tries_nothing_more)
{
    char path[1024];
    sweep_summary summary = {0};

    store_file(path, "late");
    fake_now.limits.seconds = 1e-9;
    ck_assert_int_eq(sweep_once(path, 90, NULL, &summary), HONE_OK);
    ck_assert_uint_eq(summary.tried, 0);
    ck_assert_uint_eq(summary.unfinished, PROBLEMS);
    ck_assert_uint_eq(summary.winners, 0);
}
END_TEST

/* The first that is right is fast enough: the others are counted, not proved. */
START_TEST(a_search_ends_at_the_roof)
{
    char path[1024];
    sweep_summary summary = {0};
    hone_error error = {0};
    store *s = NULL;
    size_t spared = 0;

    store_file(path, "roof");
    fake_now.roof_ns = 1e9;
    fake_now.limits.roof_percent = 97;
    ck_assert_int_eq(sweep_once(path, 90, NULL, &summary), HONE_OK);
    ck_assert_uint_eq(summary.winners, PROBLEMS);
    ck_assert_int_eq(store_open(path, STORE_READ, &s, &error), HONE_OK);
    ck_assert_int_eq(store_candidates(s, NULL, count_at_roof, &spared, &error), HONE_OK);
    ck_assert_int_eq(store_close(s, &error), HONE_OK);
    ck_assert_uint_ge(spared, PROBLEMS);
    ck_assert_uint_eq(summary.pruned, spared);
    ck_assert_uint_lt(summary.ok, 2 * PROBLEMS);
}
END_TEST

/* Where all take as long, the default wins: the ends agree, and what lies between tries their
 * winner and its own default, and no more. */
START_TEST(a_size_between_two_that_agree_searches_for_nothing)
{
    static const char *const sizes[] = {"act_quant:m=4050,k=4096", "act_quant:m=4000,k=4096",
                                        "act_quant:m=4096,k=4096"};
    hone_error error = {0};
    sweep_summary summary = {0}, again = {0};
    size_t winners = 0;
    char path[1024];

    fake_now.level = true;
    fake_now.every_size = _i == 1;
    store_file(path, _i == 1 ? "every-size" : "agreed");
    ck_assert_int_eq(fake_sweep(path, 90, sizes, ARRAY_LEN(sizes), NULL, &summary), HONE_OK);
    ck_assert_uint_eq(summary.winners, ARRAY_LEN(sizes));
    ck_assert_uint_eq(summary.agreed, _i == 1 ? 0 : 1);
    const uint64_t all = summary.tried + summary.pruned;
    ck_assert_uint_le(all, (_i == 1 ? 3 : 2) * (BUDGET + DEFAULT_TRIES - 1) + DEFAULT_TRIES + 1);
    ck_assert_uint_ge(all, (_i == 1 ? 3 : 2) * BUDGET + 1);
    store *s = NULL;
    ck_assert_int_eq(store_open(path, STORE_READ, &s, &error), HONE_OK);
    ck_assert_int_eq(store_winners(s, NULL, add_winner, &winners, &error), HONE_OK);
    ck_assert_int_eq(store_close(s, &error), HONE_OK);
    ck_assert_uint_eq(winners, ARRAY_LEN(sizes));
    ck_assert_int_eq(fake_sweep(path, 90, sizes, ARRAY_LEN(sizes), NULL, &again), HONE_OK);
    ck_assert_uint_eq(again.tried + again.pruned, 0);
    ck_assert_uint_eq(again.settled, ARRAY_LEN(sizes));
}
END_TEST

static void reset(void)
{
    memset(&fake_now, 0, sizeof fake_now);
}

int main(void)
{
    TCase *tests = tcase_create("sweep_limits");

    folder_make(folder);
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, reset, NULL);
    tcase_add_test(tests, a_limit_of_device_time_ends_a_sweep_that_goes_on_later);
    tcase_add_test(tests, a_limit_of_wall_time_that_is_over_tries_nothing_more);
    tcase_add_test(tests, a_search_ends_at_the_roof);
    tcase_add_loop_test(tests, a_size_between_two_that_agree_searches_for_nothing, 0, 2);
    const int result = suite_run("tuner/sweep_limits", tests);
    folder_remove(folder);
    return result;
}
