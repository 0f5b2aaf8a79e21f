/* test_sweep.c - a sweep on an engine of the test's own: rows, winners, resuming after a stop and
 * after a kill. */
#include "runtime/default.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"
#include "tests/tuner/fake_engine.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const texts[] = {
    "fp8_gemm:m=256,n=384,k=512,recipe=f32-1x128-128x128",
    "fp8_gemm:m=16,n=384,k=512,recipe=f32-1x128-128x128",
    "act_quant:m=64,k=4096", /* whose default the fake engine does not call wrong */
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
    const hone_status status = fake_sweep(path, arch, texts, PROBLEMS, stop, out);

    ck_assert_int_ne(status, HONE_BAD_PROBLEM);
    return status;
}

/* What a store holds: a line for each row, without what differs from run to run. */
typedef struct dump {
    size_t rows, inflight, attempts;
    char *text;
    size_t used, capacity;
} dump;

static int add_row(void *context, const store_row *row)
{
    dump *d = context;
    char line[1024];

    int len = snprintf(line, sizeof line, "%lld %s %s %s %.0f\n", (long long)row->problem,
                       row->template_name, row->config, store_outcome_name(row->result.outcome),
                       row->result.time_ns);
    if (d->used + (size_t)len >= d->capacity) {
        d->capacity = d->capacity * 2 + 4096;
        d->text = realloc(d->text, d->capacity);
        ck_assert_ptr_nonnull(d->text);
    }
    memcpy(d->text + d->used, line, (size_t)len + 1);
    d->used += (size_t)len;
    ck_assert(row->result.outcome != STORE_PRUNED ||
              strcmp(row->result.reason, "ptxas: a flaw") == 0);
    d->rows++;
    d->inflight += row->result.outcome == STORE_INFLIGHT;
    d->attempts += (size_t)row->attempts;
    return 0;
}

static int add_winner(void *context, const store_winner *winner)
{
    size_t *count = context;

    (*count)++;
    ck_assert_int_eq(winner->row.result.outcome, STORE_OK);
    return 0;
}

static dump dump_store(const char *path, size_t *winners)
{
    hone_error error = {0};
    store *s = NULL;
    dump d = {0};

    *winners = 0;
    ck_assert_msg(store_open(path, STORE_READ, &s, &error) == HONE_OK, "%s", error.message);
    ck_assert_int_eq(store_candidates(s, NULL, add_row, &d, &error), HONE_OK);
    ck_assert_int_eq(store_winners(s, NULL, add_winner, winners, &error), HONE_OK);
    ck_assert_int_eq(store_close(s, &error), HONE_OK);
    return d;
}

START_TEST(each_problem_gets_a_winner_and_a_second_run_nothing_to_do)
{
    char path[1024];
    sweep_summary first = {0}, second = {0};
    size_t winners = 0, again = 0;

    store_file(path, "twice");
    ck_assert_int_eq(sweep_once(path, 90, NULL, &first), HONE_OK);
    ck_assert_uint_eq(first.winners, PROBLEMS);
    ck_assert_uint_gt(first.generation, 0);
    ck_assert_uint_eq(first.ok + first.rejected, first.tried);
    dump before = dump_store(path, &winners);
    ck_assert_uint_eq(before.rows, first.tried + first.pruned);
    /* Defaults that are not right give way to the next. */
    ck_assert_uint_le(before.rows, PROBLEMS * (BUDGET + DEFAULT_TRIES - 1));
    ck_assert_uint_eq(winners, PROBLEMS);
    ck_assert_int_eq(sweep_once(path, 90, NULL, &second), HONE_OK);
    ck_assert_uint_eq(second.tried + second.pruned, 0);
    ck_assert_uint_eq(second.settled, PROBLEMS);
    ck_assert_uint_eq(second.winners, PROBLEMS);
    dump after = dump_store(path, &again);
    ck_assert_str_eq(before.text, after.text);
    free(before.text);
    free(after.text);
}
END_TEST

START_TEST(the_order_of_answers_changes_nothing)
{
    char forwards[1024], backwards[1024];
    sweep_summary summary;
    size_t winners = 0;

    store_file(forwards, "forwards");
    store_file(backwards, "backwards");
    sweep_once(forwards, 90, NULL, &summary);
    fake_now.backwards = true;
    sweep_once(backwards, 90, NULL, &summary);
    dump one = dump_store(forwards, &winners), two = dump_store(backwards, &winners);
    ck_assert_str_eq(one.text, two.text);
    free(one.text);
    free(two.text);
}
END_TEST

START_TEST(a_stopped_sweep_goes_on_and_ends_as_a_whole_one)
{
    char whole[1024], stopped[1024];
    sweep_summary summary, part = {0};
    size_t winners = 0, tried = 0;
    hone_status status = HONE_CANCELLED;

    store_file(whole, "whole");
    store_file(stopped, "stopped");
    sweep_once(whole, 90, NULL, &summary);
    for (int run = 0; run < 50 && status == HONE_CANCELLED; run++) {
        uint64_t limit = 2;
        status = sweep_once(stopped, 90, &limit, &part);
        tried += part.tried + part.pruned;
    }
    ck_assert_int_eq(status, HONE_OK);
    ck_assert_uint_eq(tried, summary.tried + summary.pruned);
    dump one = dump_store(whole, &winners), two = dump_store(stopped, &winners);
    ck_assert_uint_eq(one.rows, two.rows);
    ck_assert_uint_eq(winners, PROBLEMS);
    free(one.text);
    free(two.text);
}
END_TEST

START_TEST(a_killed_sweep_loses_no_row_and_repeats_one_candidate_at_most)
{
    int kills = 0;

    fake_now.random = true;
    /* At every proof of the sweep in turn; the last child outlives its sweep. */
    for (int die_at = 1, how = 9 << 8; WEXITSTATUS(how) == 9; die_at++) {
        char path[1024], name[32];
        sweep_summary summary = {0};
        size_t winners = 0;

        snprintf(name, sizeof name, "killed-%d", die_at);
        store_file(path, name);
        pid_t child = fork();
        if (child == 0) {
            fake_now.proofs = 0;
            fake_now.die_at = die_at;
            sweep_once(path, 90, NULL, &summary);
            _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &how, 0), child);
        if (WEXITSTATUS(how) == 0) {
            break;
        }
        kills++;
        dump before = dump_store(path, &winners);
        ck_assert_uint_eq(before.inflight, 1);
        ck_assert_uint_ge(before.rows, (size_t)die_at);
        ck_assert_int_eq(sweep_once(path, 90, NULL, &summary), HONE_OK);
        dump after = dump_store(path, &winners);
        ck_assert_uint_eq(winners, PROBLEMS);
        ck_assert_uint_eq(after.inflight, 0);
        ck_assert_uint_eq(after.rows, before.rows - 1 + summary.tried + summary.pruned);
        ck_assert_uint_eq(after.attempts, after.rows + 1);
        free(before.text);
        free(after.text);
    }
    ck_assert_int_gt(kills, 8);
}
END_TEST

/* Let a child sweep, kill it after a while; the last count of candidates that it told, and whether
 * it ended. */
static uint64_t kill_one(const char *path, useconds_t after_us, bool *ended)
{
    int ends[2], how = 0;
    uint64_t told = 0, done = 0;

    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        sweep_summary summary;
        close(ends[0]);
        fake_now.told = ends[1];
        sweep_once(path, 90, NULL, &summary);
        _exit(0);
    }
    close(ends[1]);
    usleep(after_us);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    *ended = WIFEXITED(how);
    while (read(ends[0], &done, sizeof done) == sizeof done) {
        told = done;
    }
    close(ends[0]);
    return told;
}

START_TEST(kill_nine_at_any_time_loses_nothing_that_was_told)
{
    const char *asked = getenv("HONE_KILLS");
    int kills = asked != NULL ? atoi(asked) : 10, landed = 0;
    uint32_t random = 12345;
    sweep_summary summary = {0};
    size_t winners = 0, before = 0;
    char path[1024];

    fake_now.random = true;
    fake_now.pause_us = 3000;
    store_file(path, "sigkill");
    sweep_once(path, 70, NULL, &summary); /* the file is there, with no candidate */
    for (int i = 0; i < kills; i++) {
        bool ended = false;
        random = random * 1664525u + 1013904223u;
        uint64_t told = kill_one(path, 5000 + random % 200000, &ended);
        dump d = dump_store(path, &winners);
        /* All rows of earlier runs are there, and all that this one told. */
        ck_assert_msg(d.rows - d.inflight >= before + told,
                      "kill %d: %zu rows, %zu in flight; %zu were there and %llu were told", i,
                      d.rows, d.inflight, before, (unsigned long long)told);
        ck_assert_uint_le(d.inflight, 1);
        ck_assert_uint_le(d.attempts, d.rows + (size_t)landed + 1);
        before = d.rows - d.inflight;
        landed += !ended;
        free(d.text);
        if (ended) {
            before = 0;
            remove(path);
            sweep_once(path, 70, NULL, &summary);
        }
    }
    ck_assert_int_gt(landed, kills / 4);
    ck_assert_int_eq(sweep_once(path, 90, NULL, &summary), HONE_OK);
    ck_assert_uint_eq(summary.winners, PROBLEMS);
}
END_TEST

START_TEST(what_has_a_flaw_is_tried_when_all_have)
{
    char path[1024];
    sweep_summary summary = {0};

    store_file(path, "spills");
    fake_now.flaw_all = true;
    ck_assert_int_eq(sweep_once(path, 90, NULL, &summary), HONE_OK);
    ck_assert_uint_eq(summary.winners, PROBLEMS);
    ck_assert_uint_ge(summary.ok, PROBLEMS);
    ck_assert_uint_gt(summary.pruned, 0);
}
END_TEST

static int check_default(void *context, const store_winner *winner)
{
    ++*(size_t *)context;
    ck_assert_double_ge(winner->default_ns, winner->row.result.time_ns);
    return 0;
}

/* Whatever the strategy proposes: three in eight candidates are refused, flawed or wrong. */
START_TEST(the_default_is_timed_and_no_winner_is_slower)
{
    char path[1024];
    sweep_summary summary = {0};
    hone_error error = {0};
    store *s = NULL;
    size_t winners = 0;

    fake_now.random = _i == 1;
    store_file(path, _i == 1 ? "default-random" : "default-model");
    ck_assert_int_eq(sweep_once(path, 90, NULL, &summary), HONE_OK);
    ck_assert_int_eq(store_open(path, STORE_READ, &s, &error), HONE_OK);
    ck_assert_int_eq(store_winners(s, NULL, check_default, &winners, &error), HONE_OK);
    ck_assert_uint_eq(winners, PROBLEMS);
    ck_assert_int_eq(store_close(s, &error), HONE_OK);
}
END_TEST

START_TEST(a_problem_that_nothing_serves_ends_without_a_winner)
{
    char path[1024];
    sweep_summary summary = {0};

    store_file(path, "unserved");
    ck_assert_int_eq(sweep_once(path, 70, NULL, &summary), HONE_OK);
    ck_assert_uint_lt(summary.winners, PROBLEMS);
    ck_assert_uint_eq(summary.problems, PROBLEMS);
}
END_TEST

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_lines(char *text, char *sorted)
{
    char *lines[1024], *rest = text;
    size_t len = 0;

    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        ck_assert_uint_lt(len, ARRAY_LEN(lines));
        lines[len++] = line;
    }
    qsort(lines, len, sizeof *lines, compare_lines);
    for (size_t i = 0; i < len; i++) {
        sorted += sprintf(sorted, "%s\n", lines[i]);
    }
}

/* Compiles that run further ahead, and devices that prove at once, change no row. */
START_TEST(one_worker_or_many_give_the_same_rows)
{
    static const struct {
        int jobs;
        size_t lanes;
    } ways[] = {{1, 1}, {4, 1}, {1, 4}, {4, 4}};
    char *first = NULL;

    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        char path[1024], name[32];
        sweep_summary summary;
        size_t winners = 0;
        snprintf(name, sizeof name, "ways-%zu", i);
        store_file(path, name);
        fake_now.jobs = ways[i].jobs;
        fake_now.lanes = ways[i].lanes;
        ck_assert_int_eq(sweep_once(path, 90, NULL, &summary), HONE_OK);
        dump d = dump_store(path, &winners);
        char *sorted = malloc(d.used + 2);
        ck_assert_ptr_nonnull(sorted);
        sort_lines(d.text, sorted);
        ck_assert_uint_eq(winners, PROBLEMS);
        if (first == NULL) {
            first = sorted;
        } else {
            ck_assert_str_eq(first, sorted);
            free(sorted);
        }
        free(d.text);
    }
    free(first);
}
END_TEST

static void reset(void)
{
    memset(&fake_now, 0, sizeof fake_now);
}

int main(void)
{
    TCase *tests = tcase_create("sweep");

    folder_make(folder);
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, reset, NULL);
    tcase_add_test(tests, each_problem_gets_a_winner_and_a_second_run_nothing_to_do);
    tcase_add_test(tests, the_order_of_answers_changes_nothing);
    tcase_add_test(tests, a_stopped_sweep_goes_on_and_ends_as_a_whole_one);
    tcase_add_test(tests, a_killed_sweep_loses_no_row_and_repeats_one_candidate_at_most);
    tcase_add_test(tests, kill_nine_at_any_time_loses_nothing_that_was_told);
    tcase_add_test(tests, what_has_a_flaw_is_tried_when_all_have);
    tcase_add_loop_test(tests, the_default_is_timed_and_no_winner_is_slower, 0, 2);
    tcase_add_test(tests, one_worker_or_many_give_the_same_rows);
    tcase_add_test(tests, a_problem_that_nothing_serves_ends_without_a_winner);
    const int result = suite_run("tuner/sweep", tests);
    folder_remove(folder);
    return result;
}
