/* test_sweep_routed.c - a grouped product swept under several distributions of tokens, beside one
 * that has none: never mixed, and none forgotten. */
#include "tests/support/folder.h"
#include "tests/support/suite.h"
#include "tests/tuner/fake_engine.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static char folder[FOLDER_BYTES]; /* of the stores, removed at the end */

static void store_file(char path[1024], const char *name)
{
    snprintf(path, 1024, "%s/%s.db", folder, name);
}

static const char *const routed[] = {
    "moe_gemm:n=256,k=512,experts=4,tokens=32,topk=2,group_layout=masked,recipe=f32-1x128-128x128",
    "fp8_gemm:m=16,n=384,k=512,recipe=f32-1x128-128x128",
};

/* What is there of the grouped product under one condition, and of the other problem. */
typedef struct routed_view {
    const char *tokens;
    int64_t winner; /* candidate that won; 0: another condition's did */
    double winner_ns, best_ns, default_ns;
    int64_t before; /* a candidate to be looked for */
    bool has_before;
    size_t rows, gemm_rows;
    int64_t gemm_sweep; /* the latest that wrote one of its rows */
} routed_view;

static int view_winner(void *context, const store_winner *winner)
{
    routed_view *v = context;

    if (strncmp(winner->row.problem_text, "moe_gemm", 8) == 0 &&
        strcmp(winner->row.result.tokens, v->tokens) == 0) {
        v->winner = winner->row.id;
        v->winner_ns = winner->row.result.time_ns;
        v->default_ns = winner->default_ns;
    }
    return 0;
}

static int view_row(void *context, const store_row *row)
{
    routed_view *v = context;

    if (strncmp(row->problem_text, "moe_gemm", 8) != 0) {
        v->gemm_rows++;
        v->gemm_sweep = row->sweep > v->gemm_sweep ? row->sweep : v->gemm_sweep;
    } else if (strcmp(row->result.tokens, v->tokens) == 0) {
        const double ns = row->result.outcome == STORE_OK ? row->result.time_ns : 1e9;
        v->best_ns = v->rows == 0 || ns < v->best_ns ? ns : v->best_ns;
        v->rows++;
        v->has_before = v->has_before || row->id == v->before;
    }
    return 0;
}

static routed_view view_store(const char *path, const char *tokens, int64_t before)
{
    routed_view v = {.tokens = tokens, .before = before};
    hone_error error = {0};
    store *s = NULL;

    ck_assert_msg(store_open(path, STORE_READ, &s, &error) == HONE_OK, "%s", error.message);
    ck_assert_int_eq(store_winners(s, NULL, view_winner, &v, &error), HONE_OK);
    ck_assert_int_eq(store_candidates(s, NULL, view_row, &v, &error), HONE_OK);
    ck_assert_int_eq(store_close(s, &error), HONE_OK);
    return v;
}

static void sweep_under(const char *path, const char *text, uint64_t *stop, sweep_summary *out)
{
    routing r = {0};

    ck_assert_int_eq(routing_parse(text, &r, NULL), HONE_OK);
    fake_now.routing = &r;
    fake_sweep(path, 90, routed, ARRAY_LEN(routed), stop, out);
    fake_now.routing = NULL;
    routing_free(&r);
}

START_TEST(what_was_measured_under_another_routing_is_not_compared)
{
    char path[1024];
    sweep_summary first = {0}, again = {0}, second = {0};

    fake_now.random = true;
    store_file(path, "routed");
    sweep_under(path, "one", NULL, &first);
    ck_assert_uint_eq(first.winners, 2);
    const routed_view one = view_store(path, "one", 0);
    ck_assert_int_gt(one.winner, 0);
    ck_assert_double_gt(one.default_ns, one.winner_ns); /* it is not the default */
    ck_assert_uint_ge(one.rows, FAKE_BUDGET); /* all rows say so, the refused and pruned ones too */
    sweep_under(path, "one", NULL, &again);
    ck_assert_uint_eq(again.tried + again.pruned, 0);
    ck_assert_uint_eq(again.settled, 2);

    fake_now.seed = 99; /* other candidates */
    sweep_under(path, "zipf:1.5", NULL, &second);
    const routed_view zipf = view_store(path, "zipf:1.5", one.winner);
    ck_assert_uint_eq(second.settled, 1); /* the other problem */
    ck_assert_uint_eq(zipf.gemm_rows, one.gemm_rows);
    ck_assert_int_eq(zipf.gemm_sweep, 1);
    ck_assert_uint_ge(second.tried + second.pruned, FAKE_BUDGET);
    ck_assert(zipf.has_before); /* the winner of before had its chance */
    ck_assert_int_gt(zipf.winner, 0);
    ck_assert_double_le(zipf.winner_ns, 1.02 * zipf.best_ns + 1e-9);
    ck_assert_double_ge(zipf.default_ns, 0.98 * zipf.winner_ns);
    ck_assert_int_eq(view_store(path, "one", 0).winner, 0);
    fake_now.seed = 0;
    sweep_under(path, "zipf:1.50", NULL, &again); /* the same condition */
    ck_assert_int_eq(view_store(path, "zipf:1.5", 0).winner, zipf.winner);
}
END_TEST

START_TEST(a_stopped_sweep_under_another_routing_leaves_no_mixed_winner)
{
    char path[1024];
    sweep_summary summary = {0};
    uint64_t limit = 3;

    fake_now.random = true;
    store_file(path, "routed-stopped");
    sweep_under(path, "zipf", NULL, &summary);
    const routed_view before = view_store(path, "zipf:1", 0);
    sweep_under(path, "uniform", &limit, &summary);
    const routed_view part = view_store(path, "uniform", before.winner);
    const routed_view rest = view_store(path, "zipf:1", before.winner);
    ck_assert_uint_gt(part.rows, 0);
    ck_assert_uint_gt(rest.rows, 0);
    /* It stands until the sweep ends; a default of the other condition is no measure of it. */
    ck_assert((rest.winner == before.winner) != (part.winner == before.winner));
    ck_assert(part.winner == 0 || part.default_ns == 0 || part.default_ns >= part.best_ns);
    sweep_under(path, "uniform", NULL, &summary);
    const routed_view whole = view_store(path, "uniform", before.winner);
    ck_assert(whole.has_before);
    ck_assert_int_gt(whole.winner, 0);
    ck_assert_double_le(whole.winner_ns, 1.02 * whole.best_ns + 1e-9);
}
END_TEST

START_TEST(a_histogram_of_other_experts_ends_the_sweep_before_it_begins)
{
    char path[1024];
    sweep_summary summary = {0};
    routing r = {0};

    store_file(path, "routed-refused");
    ck_assert_int_eq(routing_parse_histogram("h", "1 2 3", 5, &r, NULL), HONE_OK);
    fake_now.routing = &r;
    ck_assert_int_eq(fake_sweep(path, 90, routed, ARRAY_LEN(routed), NULL, &summary),
                     HONE_BAD_PROBLEM);
    fake_now.routing = NULL;
    const routed_view v = view_store(path, r.text, 0);
    ck_assert_uint_eq(v.rows + v.gemm_rows, 0);
    routing_free(&r);
}
END_TEST

static void reset(void)
{
    memset(&fake_now, 0, sizeof fake_now);
}

int main(void)
{
    TCase *tests = tcase_create("sweep_routed");

    folder_make(folder);
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, reset, NULL);
    tcase_add_test(tests, what_was_measured_under_another_routing_is_not_compared);
    tcase_add_test(tests, a_stopped_sweep_under_another_routing_leaves_no_mixed_winner);
    tcase_add_test(tests, a_histogram_of_other_experts_ends_the_sweep_before_it_begins);
    const int result = suite_run("tuner/sweep_routed", tests);
    folder_remove(folder);
    return result;
}
