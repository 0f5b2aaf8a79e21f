/* test_sweep_round.c - a strategy that learns in a sweep: the same rows with one lane and with
 * several, and after stops; the budget is kept; the next round hangs on the times of the last. */
#include "runtime/default.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"
#include "tests/tuner/fake_engine.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const texts[] = {
    "fp8_gemm:m=256,n=516,k=512,recipe=f32-1x128-128x128",
    "act_quant:m=64,k=4096",
};
#define PROBLEMS ARRAY_LEN(texts)
#define BUDGET   20

static char folder[FOLDER_BYTES];

/* Rows as lines, sorted. */
typedef struct rows {
    char *lines[PROBLEMS * (BUDGET + DEFAULT_TRIES)];
    size_t len;
} rows;

static int add_row(void *context, const store_row *row)
{
    rows *r = context;
    char line[1024];

    ck_assert_uint_lt(r->len, ARRAY_LEN(r->lines));
    snprintf(line, sizeof line, "%lld %s %s %s %.0f", (long long)row->problem, row->template_name,
             row->config, store_outcome_name(row->result.outcome), row->result.time_ns);
    r->lines[r->len++] = strdup(line);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sweep_into(const char *name, uint64_t *stop, hone_status wanted, rows *out,
                       sweep_summary *summary)
{
    char path[1024];
    hone_error error = {0};
    store *s = NULL;

    snprintf(path, sizeof path, "%s/%s.db", folder, name);
    fake_now.strategy = "guided";
    fake_now.budget = BUDGET;
    ck_assert_int_eq(fake_sweep(path, 90, texts, PROBLEMS, stop, summary), wanted);
    ck_assert_int_eq(store_open(path, STORE_READ, &s, &error), HONE_OK);
    *out = (rows){0};
    ck_assert_int_eq(store_candidates(s, NULL, add_row, out, &error), HONE_OK);
    ck_assert_int_eq(store_close(s, &error), HONE_OK);
    qsort(out->lines, out->len, sizeof *out->lines, by_text);
}

static void expect_same(const rows *a, const rows *b)
{
    ck_assert_uint_eq(a->len, b->len);
    for (size_t i = 0; i < a->len; i++) {
        ck_assert_str_eq(a->lines[i], b->lines[i]);
    }
}

static void free_rows(rows *r)
{
    for (size_t i = 0; i < r->len; i++) {
        free(r->lines[i]);
    }
}

START_TEST(rounds_are_the_same_with_any_number_of_lanes)
{
    sweep_summary one = {0}, many = {0}, again = {0};
    rows a, b, c;

    sweep_into("one", NULL, HONE_OK, &a, &one);
    fake_now.lanes = 3;
    fake_now.backwards = true;
    sweep_into("many", NULL, HONE_OK, &b, &many);
    expect_same(&a, &b);
    ck_assert_uint_eq(one.winners, PROBLEMS);
    /* Defaults that are not right give way to the next; nothing else is past the budget. */
    ck_assert_uint_ge(a.len, PROBLEMS * (BUDGET - 1));
    ck_assert_uint_le(a.len, PROBLEMS * (BUDGET + DEFAULT_TRIES - 1));
    for (size_t i = 1; i < a.len; i++) {
        ck_assert_str_ne(a.lines[i - 1], a.lines[i]);
    }
    sweep_into("one", NULL, HONE_OK, &c, &again);
    ck_assert_uint_eq(again.tried + again.pruned, 0);
    expect_same(&a, &c);
    free_rows(&a);
    free_rows(&b);
    free_rows(&c);
}
END_TEST

START_TEST(a_stopped_search_goes_on_as_if_it_had_not_stopped)
{
    sweep_summary summary = {0};
    rows whole, part = {0};
    hone_status status = HONE_CANCELLED;
    char path[1024];

    sweep_into("whole", NULL, HONE_OK, &whole, &summary);
    snprintf(path, sizeof path, "%s/stopped.db", folder);
    for (int run = 0; run < 60 && status == HONE_CANCELLED; run++) {
        uint64_t limit = 9;
        status = fake_sweep(path, 90, texts, PROBLEMS, &limit, &summary);
    }
    ck_assert_int_eq(status, HONE_OK);
    sweep_into("stopped", NULL, HONE_OK, &part, &summary);
    expect_same(&whole, &part);
    free_rows(&whole);
    free_rows(&part);
}
END_TEST

static void reset(void)
{
    memset(&fake_now, 0, sizeof fake_now);
}

int main(void)
{
    TCase *tests = tcase_create("sweep_round");

    folder_make(folder);
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, reset, NULL);
    tcase_add_test(tests, rounds_are_the_same_with_any_number_of_lanes);
    tcase_add_test(tests, a_stopped_search_goes_on_as_if_it_had_not_stopped);
    const int result = suite_run("tuner/sweep_round", tests);
    folder_remove(folder);
    return result;
}
