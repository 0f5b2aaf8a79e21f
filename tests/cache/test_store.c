/* test_store.c - what goes into the store comes out of it, and a sweep that dies is taken up where
 * it stood. */
#include "cache/store.h"
#include "cache/store_file.h"
#include "tests/cache/scratch.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static scratch dir;
static store *s;
static hone_error e;
static int64_t sweep_id, device, problem;

static void open_store(void)
{
    device_kind kind = scratch_kind();
    hone_problem p = scratch_problem(0);
    store_sweep sweep = {"hone tune --m all", "13.0.88", 13000, UINT64_MAX};

    ck_assert_msg(store_open(dir.path, STORE_WRITE, &s, &e) == HONE_OK, "%s", e.message);
    ck_assert_int_eq(store_sweep_begin(s, &sweep, &sweep_id, &e), HONE_OK);
    ck_assert_int_eq(store_device_id(s, &kind, &device, &e), HONE_OK);
    ck_assert_int_eq(store_problem_id(s, &p, &problem, &e), HONE_OK);
}

static void setup(void)
{
    memset(&e, 0, sizeof e);
    scratch_make(&dir);
    open_store();
}

static void teardown(void)
{
    store_close(s, NULL);
    s = NULL;
    scratch_remove(&dir);
}

static store_row seen;
static char seen_text[512], seen_reason[256];
static double seen_samples[8];
static int seen_len;

static int keep(void *context, const store_row *row)
{
    (void)context;
    seen = *row;
    seen_len++;
    snprintf(seen_text, sizeof seen_text, "%s", row->problem_text);
    snprintf(seen_reason, sizeof seen_reason, "%s", row->result.reason);
    for (size_t i = 0; i < row->result.samples_len && i < ARRAY_LEN(seen_samples); i++) {
        seen_samples[i] = row->result.samples_ns[i];
    }
    return 0;
}

static int count_rows(const store_filter *filter)
{
    seen_len = 0;
    ck_assert_msg(store_candidates(s, filter, keep, NULL, &e) == HONE_OK, "%s", e.message);
    return seen_len;
}

START_TEST(a_finished_candidate_is_read_back_whole)
{
    char config[64], text[512];
    store_key key = scratch_key(problem, device, 3, config);
    store_result want = scratch_result(5);
    hone_problem p = scratch_problem(0);
    int64_t id = 0;

    ck_assert_int_eq(store_candidate_begin(s, sweep_id, &key, &id, &e), HONE_OK);
    ck_assert_msg(store_candidate_finish(s, id, &want, &e) == HONE_OK, "%s", e.message);
    ck_assert_int_eq(count_rows(NULL), 1);
    ck_assert_int_eq(hone_problem_format(&p, text, sizeof text, &e), HONE_OK);
    ck_assert_str_eq(seen_text, text);
    ck_assert_int_eq(seen.id, id);
    ck_assert_int_eq(seen.attempts, 1);
    ck_assert_int_eq(seen.driver, 13000);
    ck_assert_int_eq(seen.kind->sm_count, 78);
    ck_assert_str_eq(seen.kind->name, "NVIDIA H20");
    ck_assert_int_eq(seen.result.outcome, STORE_OK);
    ck_assert_int_eq(seen.result.registers, 168);
    ck_assert_double_eq(seen.result.time_ns, 1005);
    ck_assert_double_eq(seen.result.compile_ms, 151.25);
    ck_assert_double_eq(seen.result.max_err_ratio, 0.25);
    ck_assert_int_eq(seen.result.clock_mem_mhz, 2619);
    ck_assert_uint_eq(seen.result.samples_len, 3);
    ck_assert_double_eq(seen_samples[1], 999.25);
    ck_assert_mem_eq(seen.template_digest, key.template_digest, 32);
}
END_TEST

START_TEST(filters_choose_rows)
{
    char config[64];
    store_result wrong = {.outcome = STORE_WRONG, .reason = "cosine nan", .cosine = NAN};
    store_result good = scratch_result(0);
    int64_t id = 0;

    for (int i = 0; i < 6; i++) {
        store_key key = scratch_key(problem, device, i, config);
        ck_assert_int_eq(store_candidate_record(s, sweep_id, &key, i < 2 ? &wrong : &good, &id, &e),
                         HONE_OK);
    }
    ck_assert_int_eq(count_rows(&(store_filter){.outcome = STORE_WRONG}), 2);
    ck_assert_str_eq(seen_reason, "cosine nan");
    ck_assert(isnan(seen.result.cosine));
    ck_assert_int_eq(count_rows(&(store_filter){.outcome = STORE_OK, .problem = problem}), 4);
    ck_assert_int_eq(count_rows(&(store_filter){.candidate = id}), 1);
    ck_assert_int_eq(count_rows(&(store_filter){.device = device + 1}), 0);
}
END_TEST

static const struct {
    const char *name;
    double time_ns, sample, cosine;
    int32_t outcome;
} refused[] = {
    {"a NaN time would win every comparison", NAN, 1, 1, STORE_OK},
    {"an infinite time", INFINITY, 1, 1, STORE_OK},
    {"ok without a time", 0, 1, 1, STORE_OK},
    {"a negative time", -1, 1, 1, STORE_UNMEASURED},
    {"a NaN sample", 1, NAN, 1, STORE_OK},
    {"a NaN accuracy that is called ok", 1, 1, NAN, STORE_OK},
    {"in flight is no result", 1, 1, 1, STORE_INFLIGHT},
    {"an unknown outcome", 1, 1, 1, 99},
};

START_TEST(figures_that_cannot_be_compared_are_refused)
{
    char config[64];
    store_key key = scratch_key(problem, device, 0, config);
    store_result r = scratch_result(0);
    int64_t id = 0;

    r.time_ns = refused[_i].time_ns;
    r.samples_ns = &refused[_i].sample;
    r.samples_len = 1;
    r.cosine = refused[_i].cosine;
    r.outcome = refused[_i].outcome;
    ck_assert_msg(store_candidate_record(s, sweep_id, &key, &r, &id, &e) == HONE_BAD_ARGUMENT, "%s",
                  refused[_i].name);
    ck_assert_int_eq(count_rows(NULL), 0);
}
END_TEST

START_TEST(a_done_candidate_is_done_until_its_template_changes)
{
    char config[64];
    store_key key = scratch_key(problem, device, 0, config);
    store_result r = scratch_result(0);
    store_state state;
    int64_t id = 0;

    ck_assert_int_eq(store_candidate_state(s, &key, &state, NULL, &e), HONE_OK);
    ck_assert_int_eq(state, STORE_TO_DO);
    ck_assert_int_eq(store_candidate_begin(s, sweep_id, &key, &id, &e), HONE_OK);
    ck_assert_int_eq(store_candidate_state(s, &key, &state, NULL, &e), HONE_OK);
    ck_assert_int_eq(state, STORE_RUNNING);
    ck_assert_int_eq(store_candidate_begin(s, sweep_id, &key, &id, &e), HONE_TAKEN);
    ck_assert_int_eq(store_candidate_finish(s, id, &r, &e), HONE_OK);
    ck_assert_int_eq(store_candidate_state(s, &key, &state, NULL, &e), HONE_OK);
    ck_assert_int_eq(state, STORE_DONE);
    ck_assert_int_eq(store_candidate_record(s, sweep_id, &key, &r, &id, &e), HONE_TAKEN);
    key.template_digest[31] ^= 1;
    ck_assert_int_eq(store_candidate_state(s, &key, &state, NULL, &e), HONE_OK);
    ck_assert_int_eq(state, STORE_TO_DO);
    ck_assert_int_eq(store_candidate_begin(s, sweep_id, &key, &id, &e), HONE_OK);
    ck_assert_int_eq(count_rows(NULL), 1);
}
END_TEST

START_TEST(a_done_candidate_is_done_under_its_condition)
{
    char config[64];
    store_key key = scratch_key(problem, device, 0, config);
    store_result r = scratch_result(0);
    store_state state;
    int64_t id = 0, again = 0;

    key.tokens = "zipf:1";
    r.tokens = NULL; /* as it was begun */
    ck_assert_int_eq(store_candidate_begin(s, sweep_id, &key, &id, &e), HONE_OK);
    key.tokens = "balanced"; /* it is in flight in a sweep that is alive */
    ck_assert_int_eq(store_candidate_state(s, &key, &state, NULL, &e), HONE_OK);
    ck_assert_int_eq(state, STORE_RUNNING);
    ck_assert_int_eq(store_candidate_begin(s, sweep_id, &key, &again, &e), HONE_TAKEN);
    ck_assert_int_eq(store_candidate_finish(s, id, &r, &e), HONE_OK);
    ck_assert_int_eq(store_candidate_state(s, &key, &state, NULL, &e), HONE_OK);
    ck_assert_int_eq(state, STORE_TO_DO);
    key.tokens = "zipf:1";
    ck_assert_int_eq(store_candidate_state(s, &key, &state, NULL, &e), HONE_OK);
    ck_assert_int_eq(state, STORE_DONE);
    key.tokens = NULL; /* any */
    ck_assert_int_eq(store_candidate_state(s, &key, &state, NULL, &e), HONE_OK);
    ck_assert_int_eq(state, STORE_DONE);
    key.tokens = "balanced"; /* measured anew in its place */
    ck_assert_int_eq(store_candidate_record(s, sweep_id, &key, &r, &again, &e), HONE_OK);
    ck_assert_int_eq(again, id);
    ck_assert_int_eq(store_candidate_state(s, &key, &state, NULL, &e), HONE_OK);
    ck_assert_int_eq(state, STORE_DONE);
    ck_assert_int_eq(count_rows(NULL), 1);
}
END_TEST

/* A sweep in another process that dies while candidate 0 is in flight. */
static int die_in_flight(void *path)
{
    store *mine = NULL;
    store_sweep sweep = {"dies", "13.0.88", 13000, 1};
    device_kind kind = scratch_kind();
    hone_problem p = scratch_problem(0);
    int64_t id = 0, mine_sweep = 0, mine_device = 0, mine_problem = 0;
    char config[64];

    if (store_open(path, STORE_WRITE, &mine, NULL) != HONE_OK ||
        store_sweep_begin(mine, &sweep, &mine_sweep, NULL) != HONE_OK ||
        store_device_id(mine, &kind, &mine_device, NULL) != HONE_OK ||
        store_problem_id(mine, &p, &mine_problem, NULL) != HONE_OK) {
        return 1;
    }
    store_key key = scratch_key(mine_problem, mine_device, 0, config);
    return store_candidate_begin(mine, mine_sweep, &key, &id, NULL) == HONE_OK ? 0 : 2;
}

START_TEST(a_candidate_that_kills_eight_sweeps_is_lost_not_tried_for_ever)
{
    char config[64];
    store_key key = scratch_key(problem, device, 0, config);
    store_state state;

    for (int death = 1; death <= 8; death++) {
        store_close(s, NULL);
        ck_assert_int_eq(scratch_wait(scratch_spawn(die_in_flight, dir.path)), 0);
        open_store();
        ck_assert_int_eq(store_candidate_state(s, &key, &state, NULL, &e), HONE_OK);
        ck_assert_int_eq(state, death < 8 ? STORE_AGAIN : STORE_DONE);
    }
    ck_assert_int_eq(count_rows(&(store_filter){.outcome = STORE_LOST}), 1);
    ck_assert_int_eq(seen.attempts, 8);
}
END_TEST

START_TEST(a_machine_that_went_down_twice_is_enough)
{
    ck_assert(!store_gives_up(SWEEP_ENDED_WITH_MACHINE, 1));
    ck_assert(store_gives_up(SWEEP_ENDED_WITH_MACHINE, 2));
    ck_assert(!store_gives_up(SWEEP_ENDED, 7));
    ck_assert(!store_gives_up(SWEEP_ALIVE, 100));
}
END_TEST

static uint64_t told;

static void tell(void *context, uint64_t rows)
{
    (void)context;
    told += rows;
}

START_TEST(progress_is_told_after_the_commit_and_for_every_row)
{
    char config[64];
    store_result r = scratch_result(0);
    int64_t id = 0;

    told = 0;
    store_on_commit(s, tell, NULL);
    for (int i = 0; i < 25; i++) {
        store_key key = scratch_key(problem, device, i, config);
        ck_assert_int_eq(store_candidate_record(s, sweep_id, &key, &r, &id, &e), HONE_OK);
    }
    ck_assert_uint_ge(told, 20); /* batches of at most ten */
    ck_assert_int_eq(store_flush(s, &e), HONE_OK);
    ck_assert_uint_eq(told, 25);
}
END_TEST

START_TEST(a_winner_must_be_an_ok_candidate_of_its_problem_and_device)
{
    char config[64];
    store_key key = scratch_key(problem, device, 0, config);
    store_result wrong = {.outcome = STORE_WRONG};
    hone_problem p = scratch_problem(1);
    int64_t id = 0, other = 0;

    ck_assert_int_eq(store_candidate_record(s, sweep_id, &key, &wrong, &id, &e), HONE_OK);
    ck_assert_int_eq(store_winner_set(s, problem, device, id, STORE_VERDICT_CLEAR, &e),
                     HONE_BAD_ARGUMENT);
    key = scratch_key(problem, device, 1, config);
    store_result good = scratch_result(1);
    ck_assert_int_eq(store_candidate_record(s, sweep_id, &key, &good, &id, &e), HONE_OK);
    ck_assert_int_eq(store_problem_id(s, &p, &other, &e), HONE_OK);
    ck_assert_int_eq(store_winner_set(s, other, device, id, STORE_VERDICT_CLEAR, &e),
                     HONE_BAD_ARGUMENT);
    ck_assert_int_eq(store_winner_set(s, problem, device, id, STORE_VERDICT_TIE, &e), HONE_OK);
}
END_TEST

START_TEST(journal_is_wal_while_open_and_delete_after)
{
    char name[PATH_MAX + 8];
    struct stat st;

    snprintf(name, sizeof name, "%s-wal", dir.path);
    ck_assert_int_eq(stat(name, &st), 0);
    ck_assert_int_eq(store_close(s, &e), HONE_OK);
    s = NULL;
    ck_assert_int_ne(stat(name, &st), 0);
    ck_assert_int_eq(scratch_journal(&dir), 1);
}
END_TEST

START_TEST(a_reader_may_read_while_a_sweep_writes_and_writes_nothing)
{
    store *reader = NULL;
    char config[64];
    store_key key = scratch_key(problem, device, 0, config);
    store_result r = scratch_result(0);
    int64_t id = 0;
    store_health health;

    ck_assert_int_eq(store_candidate_record(s, sweep_id, &key, &r, &id, &e), HONE_OK);
    ck_assert_int_eq(store_flush(s, &e), HONE_OK);
    ck_assert_msg(store_open(dir.path, STORE_READ, &reader, &e) == HONE_OK, "%s", e.message);
    ck_assert_int_eq(store_check(reader, &health, &e), HONE_OK);
    ck_assert_uint_eq(health.candidates, 1);
    ck_assert_uint_eq(health.quarantined, 0);
    ck_assert(health.intact);
    ck_assert_int_eq(store_candidate_record(reader, sweep_id, &key, &r, &id, &e),
                     HONE_BAD_ARGUMENT);
    ck_assert_int_eq(store_close(reader, &e), HONE_OK);
}
END_TEST

START_TEST(opening_a_file_that_is_not_there_to_read_fails_and_makes_none)
{
    store *reader = NULL;
    char name[PATH_MAX];

    snprintf(name, sizeof name, "%s/none.db", dir.folder);
    ck_assert_int_eq(store_open(name, STORE_READ, &reader, &e), HONE_STORE_IO);
    ck_assert_ptr_null(reader);
    ck_assert_int_ne(access(name, F_OK), 0);
}
END_TEST

START_TEST(words_of_outcomes_go_both_ways)
{
    ck_assert_str_eq(store_outcome_name(STORE_NONDET), "nondet");
    ck_assert_int_eq(store_outcome_parse("pruned"), STORE_PRUNED);
    ck_assert_int_eq(store_outcome_parse("prune"), 0);
    ck_assert_str_eq(store_outcome_name(99), "?");
    ck_assert_str_eq(store_timer_name(STORE_TIMER_MODELLED), "modelled");
    ck_assert_str_eq(store_verdict_name(STORE_VERDICT_DEFAULT), "default");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("store");

    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_finished_candidate_is_read_back_whole);
    tcase_add_test(tests, filters_choose_rows);
    tcase_add_loop_test(tests, figures_that_cannot_be_compared_are_refused, 0,
                        (int)ARRAY_LEN(refused));
    tcase_add_test(tests, a_done_candidate_is_done_until_its_template_changes);
    tcase_add_test(tests, a_done_candidate_is_done_under_its_condition);
    tcase_add_test(tests, a_candidate_that_kills_eight_sweeps_is_lost_not_tried_for_ever);
    tcase_add_test(tests, a_machine_that_went_down_twice_is_enough);
    tcase_add_test(tests, progress_is_told_after_the_commit_and_for_every_row);
    tcase_add_test(tests, a_winner_must_be_an_ok_candidate_of_its_problem_and_device);
    tcase_add_test(tests, journal_is_wal_while_open_and_delete_after);
    tcase_add_test(tests, a_reader_may_read_while_a_sweep_writes_and_writes_nothing);
    tcase_add_test(tests, opening_a_file_that_is_not_there_to_read_fails_and_makes_none);
    tcase_add_test(tests, words_of_outcomes_go_both_ways);
    return suite_run("cache/store", tests);
}
