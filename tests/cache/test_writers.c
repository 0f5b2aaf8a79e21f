/* test_writers.c - many processes and one store: cold starts, kills, a writer that holds the lock
 * (cases.md 4). */
#include "cache/store.h"
#include "tests/cache/scratch.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"
#include "core/random.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OPENERS 16
#define ROUNDS  50
#define KILLS   100

/* A child that waits at a gate, opens the store, adds candidate `number` and closes. */
typedef struct opener {
    int gate, number;
} opener;

static int open_and_add(void *context)
{
    const opener *o = context;
    store *s = NULL;
    store_sweep sweep = {"opener", "13.0.88", 13000, 0};
    device_kind kind = scratch_kind();
    hone_problem p = scratch_problem(0);
    store_result r = scratch_result(o->number);
    int64_t sweep_id = 0, device = 0, problem = 0, id = 0;
    char config[64], byte;
    hone_error why = {0};

    if (read(o->gate, &byte, 1) != 0) {
        return 9;
    }
    hone_status status = store_open(scratch_here.path, STORE_WRITE, &s, &why);
    if (status == HONE_OK) {
        status = store_sweep_begin(s, &sweep, &sweep_id, &why);
    }
    if (status == HONE_OK) {
        status = store_device_id(s, &kind, &device, &why);
    }
    if (status == HONE_OK) {
        status = store_problem_id(s, &p, &problem, &why);
    }
    store_key key = scratch_key(problem, device, o->number, config);
    if (status == HONE_OK) {
        status = store_candidate_record(s, sweep_id, &key, &r, &id, &why);
    }
    hone_status closed = store_close(s, &why);
    if (status != HONE_OK || closed != HONE_OK) {
        fprintf(stderr, "opener %d: %s: %s\n", o->number, hone_status_name(why.status),
                why.message);
    }
    return status == HONE_OK && closed == HONE_OK ? 0 : 1;
}

static int count_one(void *context, const store_row *row)
{
    (void)row;
    ++*(int *)context;
    return 0;
}

static int count_rows(void)
{
    store *s = NULL;
    int rows = 0;
    store_health health;

    ck_assert_msg(store_open(scratch_here.path, STORE_READ, &s, &scratch_error) == HONE_OK, "%s",
                  scratch_error.message);
    ck_assert_int_eq(store_candidates(s, NULL, count_one, &rows, &scratch_error), HONE_OK);
    ck_assert_int_eq(store_check(s, &health, &scratch_error), HONE_OK);
    ck_assert(health.intact);
    ck_assert_uint_eq(health.quarantined, 0);
    ck_assert_int_eq(store_close(s, &scratch_error), HONE_OK);
    return rows;
}

static void race(int rounds, bool made_before)
{
    for (int round = 0; round < rounds; round++) {
        int gate[2], children[OPENERS];
        store *s = NULL;
        if (made_before) { /* and closed: in DELETE mode, to be switched to WAL by all of them */
            ck_assert_int_eq(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error),
                             HONE_OK);
            ck_assert_int_eq(store_close(s, &scratch_error), HONE_OK);
        }
        ck_assert_int_eq(pipe2(gate, O_CLOEXEC), 0);
        for (int i = 0; i < OPENERS; i++) {
            opener o = {gate[0], i};
            children[i] = fork();
            ck_assert_int_ge(children[i], 0);
            if (children[i] == 0) {
                close(gate[1]);
                _exit(open_and_add(&o));
            }
        }
        close(gate[1]);
        for (int i = 0; i < OPENERS; i++) {
            ck_assert_int_eq(scratch_wait(children[i]), 0);
        }
        close(gate[0]);
        ck_assert_int_eq(count_rows(), OPENERS);
        ck_assert_int_eq(scratch_journal(&scratch_here), 1);
        ck_assert_int_eq(unlink(scratch_here.path), 0);
    }
}

START_TEST(sixteen_processes_open_a_fresh_store_at_once)
{
    race(ROUNDS, false);
}
END_TEST

START_TEST(sixteen_processes_open_a_closed_store_at_once)
{
    race(ROUNDS / 5, true);
}
END_TEST

/* A sweep that acknowledges each row on a pipe after its commit, until it is killed. */
typedef struct sweeper {
    int ack;
} sweeper;

static void acknowledge(void *context, uint64_t rows)
{
    const sweeper *w = context;
    uint32_t count = (uint32_t)rows;

    if (write(w->ack, &count, sizeof count) != (ssize_t)sizeof count) {
        _exit(3);
    }
}

/* Take up the sweep where it stands: candidates are tried in order, done ones are passed over. */
static int sweep_on(void *context)
{
    store *s = NULL;
    store_sweep sweep = {"sweeper", "13.0.88", 13000, 0};
    device_kind kind = scratch_kind();
    hone_problem p = scratch_problem(0);
    int64_t sweep_id = 0, device = 0, problem = 0, id = 0;
    char config[64];
    store_state state;

    if (store_open(scratch_here.path, STORE_WRITE, &s, NULL) != HONE_OK ||
        store_sweep_begin(s, &sweep, &sweep_id, NULL) != HONE_OK ||
        store_device_id(s, &kind, &device, NULL) != HONE_OK ||
        store_problem_id(s, &p, &problem, NULL) != HONE_OK) {
        return 1;
    }
    store_on_commit(s, acknowledge, context);
    for (int i = 0; i < 100000; i++) {
        store_key key = scratch_key(problem, device, i, config);
        store_result r = scratch_result(i);
        if (store_candidate_state(s, &key, &state, &id, NULL) != HONE_OK) {
            return 2;
        }
        if (state == STORE_DONE) {
            continue;
        }
        if (store_candidate_begin(s, sweep_id, &key, &id, NULL) != HONE_OK ||
            store_candidate_finish(s, id, &r, NULL) != HONE_OK) {
            return 2;
        }
    }
    return 0;
}

static int count_done(void *context, const store_row *row)
{
    int *counts = context;

    counts[0] += row->result.outcome == STORE_OK;
    counts[1] += row->result.outcome == STORE_INFLIGHT;
    counts[2] += row->result.outcome == STORE_LOST;
    return 0;
}

START_TEST(no_acknowledged_row_is_lost_to_a_kill)
{
    uint64_t seed = scratch_seed(), acknowledged = 0;

    for (int kills = 0; kills < KILLS; kills++) {
        int pipe_ends[2], counts[3] = {0};
        uint32_t rows;
        store *s = NULL;
        ck_assert_int_eq(pipe2(pipe_ends, O_CLOEXEC), 0);
        sweeper w = {pipe_ends[1]};
        int child = scratch_spawn(sweep_on, &w);
        close(pipe_ends[1]);
        struct timespec t = {0, (long)(2 + random_next(&seed) % 60) * 1000000};
        nanosleep(&t, NULL);
        kill(child, SIGKILL);
        ck_assert_int_eq(scratch_wait(child), -SIGKILL);
        while (read(pipe_ends[0], &rows, sizeof rows) == (ssize_t)sizeof rows) {
            acknowledged += rows;
        }
        close(pipe_ends[0]);
        if (access(scratch_here.path, F_OK) != 0) {
            continue; /* killed before it made the file */
        }
        /* Opening for writing is what takes a crash up. */
        ck_assert_msg(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error) == HONE_OK,
                      "%s", scratch_error.message);
        ck_assert_int_eq(store_candidates(s, NULL, count_done, counts, &scratch_error), HONE_OK);
        ck_assert_int_eq(store_close(s, &scratch_error), HONE_OK);
        /* A candidate that eight kills hit is committed and told as lost. */
        uint64_t settled = (uint64_t)counts[0] + (uint64_t)counts[2];
        ck_assert_uint_ge(settled, acknowledged);
        /* Committed but not yet told when killed: at most the batch. In flight: the one being
         * tried. */
        ck_assert_uint_le(settled, acknowledged + 10);
        ck_assert_int_le(counts[1], 1);
        acknowledged = settled;
    }
    ck_assert_uint_gt(acknowledged, 0); /* else no kill came while it worked */
}
END_TEST

/* A stranger that holds the write lock for a second, as a report with a transaction might. */
static int hold_lock(void *context)
{
    sqlite3 *db = NULL;
    struct timespec t = {1, 0};
    const int *told = context;

    if (sqlite3_open(scratch_here.path, &db) != SQLITE_OK ||
        sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
        write(told[1], "x", 1) != 1) {
        return 1;
    }
    nanosleep(&t, NULL);
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(db);
    return 0;
}

START_TEST(a_lock_that_is_held_for_a_second_is_waited_for)
{
    int told[2], gate[2];
    char byte;

    scratch_fill(scratch_here.path, 1);
    ck_assert_int_eq(pipe(told), 0);
    ck_assert_int_eq(pipe(gate), 0);
    close(gate[1]);
    int holder = scratch_spawn(hold_lock, told);
    ck_assert_int_eq(read(told[0], &byte, 1), 1);
    opener o = {gate[0], 11};
    ck_assert_int_eq(open_and_add(&o), 0);
    ck_assert_int_eq(scratch_wait(holder), 0);
    ck_assert_int_eq(count_rows(), 2);
    ck_assert_int_eq(scratch_journal(&scratch_here), 1);
}
END_TEST

/* Opens, writes many rows in turns with others, closes. */
static int write_many(void *context)
{
    const opener *o = context;
    store *s = NULL;
    store_sweep sweep = {"many", "13.0.88", 13000, 0};
    device_kind kind = scratch_kind();
    int64_t sweep_id = 0, device = 0, problem = 0, id = 0;
    hone_problem p = scratch_problem(o->number);
    char config[64];

    if (store_open(scratch_here.path, STORE_WRITE, &s, NULL) != HONE_OK ||
        store_sweep_begin(s, &sweep, &sweep_id, NULL) != HONE_OK ||
        store_device_id(s, &kind, &device, NULL) != HONE_OK ||
        store_problem_id(s, &p, &problem, NULL) != HONE_OK) {
        return 1;
    }
    for (int i = 0; i < 40; i++) {
        store_key key = scratch_key(problem, device, i, config);
        store_result r = scratch_result(i);
        if (store_candidate_begin(s, sweep_id, &key, &id, NULL) != HONE_OK ||
            store_candidate_finish(s, id, &r, NULL) != HONE_OK) {
            return 2;
        }
    }
    return store_close(s, NULL) == HONE_OK ? 0 : 3;
}

START_TEST(many_writers_wait_for_each_other_and_none_is_refused)
{
    int children[OPENERS];

    for (int i = 0; i < OPENERS; i++) {
        opener o = {-1, i};
        children[i] = scratch_spawn(write_many, &o);
    }
    for (int i = 0; i < OPENERS; i++) {
        ck_assert_int_eq(scratch_wait(children[i]), 0);
    }
    ck_assert_int_eq(count_rows(), OPENERS * 40);
    ck_assert_int_eq(scratch_journal(&scratch_here), 1);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("writers");

    tcase_set_timeout(tests, 240);
    scratch_fixture(tests);
    tcase_add_test(tests, sixteen_processes_open_a_fresh_store_at_once);
    tcase_add_test(tests, sixteen_processes_open_a_closed_store_at_once);
    tcase_add_test(tests, no_acknowledged_row_is_lost_to_a_kill);
    tcase_add_test(tests, a_lock_that_is_held_for_a_second_is_waited_for);
    tcase_add_test(tests, many_writers_wait_for_each_other_and_none_is_refused);
    return suite_run("cache/writers", tests);
}
