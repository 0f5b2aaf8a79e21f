/* test_pool.c - jobs on threads: merged in order, ended by the first failure, stopped in their
 * middle. */
#include "convert/pool.h"
#include "tests/support/suite.h"

#include <check.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum { JOBS = 1000, THREADS = 3 };

static _Atomic uint64_t runs;
static uint64_t merged, fails_from;
static bool out_of_order;
static sem_t stopped, begun;

static hone_status count_up(void *context, uint64_t job, void *scratch, void *result,
                            hone_error *error)
{
    (void)context;
    (void)scratch;
    atomic_fetch_add(&runs, 1);
    memcpy(result, &job, sizeof job);
    return job < fails_from ? HONE_OK
                            : status_set(error, HONE_IO, "job", (int)job, "%d fails", (int)job);
}

static void in_order(void *context, uint64_t job, const void *result)
{
    uint64_t made = 0;

    (void)context;
    memcpy(&made, result, sizeof made);
    out_of_order = out_of_order || job != merged || made != job;
    merged++;
}

static pool_work work = {.threads = THREADS,
                         .jobs = JOBS,
                         .result_bytes = sizeof(uint64_t),
                         .run = count_up,
                         .merge = in_order};

static void reset(void)
{
    runs = 0;
    merged = 0;
    out_of_order = false;
    fails_from = UINT64_MAX;
    work.run = count_up;
    work.progress = NULL;
}

START_TEST(every_job_runs_once_and_is_merged_in_order)
{
    ck_assert_int_eq(pool_run(&work, NULL), HONE_OK);
    ck_assert_uint_eq(runs, JOBS);
    ck_assert_uint_eq(merged, JOBS);
    ck_assert(!out_of_order);
}
END_TEST

START_TEST(the_first_failure_in_the_order_of_jobs_counts)
{
    hone_error error = {0};

    fails_from = 400;
    ck_assert_int_eq(pool_run(&work, &error), HONE_IO);
    ck_assert_str_eq(error.message, "400 fails");
    ck_assert_uint_le(merged, 400);
    ck_assert_uint_lt(runs, JOBS);
    ck_assert(!out_of_order);
}
END_TEST

/* A job that is not done before the run is told to stop. */
static hone_status wait_for_the_stop(void *context, uint64_t job, void *scratch, void *result,
                                     hone_error *error)
{
    if (job == 10) {
        sem_post(&begun);
        sem_wait(&stopped);
    }
    return count_up(context, job, scratch, result, error);
}

static uint64_t asked, last_done;

static int stop_in_the_middle(void *context, uint64_t done)
{
    (void)context;
    asked++;
    last_done = done;
    if (asked == 1) {
        sem_wait(&begun);
        return 0;
    }
    if (asked == 2) {
        sem_post(&stopped); /* a tenth of a second on, and the run goes on until this is told */
    }
    return asked == 2;
}

START_TEST(a_run_is_stopped_in_its_middle)
{
    hone_error error = {0};

    sem_init(&stopped, 0, 0);
    sem_init(&begun, 0, 0);
    asked = 0;
    work.run = wait_for_the_stop;
    work.progress = stop_in_the_middle;
    work.jobs = UINT64_MAX / 2; /* no machine is done with these before it is told */
    hone_status status = pool_run(&work, &error);
    work.jobs = JOBS;
    ck_assert_int_eq(status, HONE_CANCELLED);
    ck_assert_uint_ge(runs, 1);
    ck_assert_uint_ge(merged, last_done);
    ck_assert(!out_of_order);
}
END_TEST

START_TEST(even_a_run_without_jobs_asks_once)
{
    asked = 7;
    work.jobs = 0;
    work.progress = stop_in_the_middle;
    ck_assert_int_eq(pool_run(&work, NULL), HONE_OK);
    work.jobs = JOBS;
    ck_assert_uint_ge(asked, 8);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("pool");

    tcase_add_checked_fixture(tests, reset, NULL);
    tcase_add_test(tests, every_job_runs_once_and_is_merged_in_order);
    tcase_add_test(tests, the_first_failure_in_the_order_of_jobs_counts);
    tcase_add_test(tests, a_run_is_stopped_in_its_middle);
    tcase_add_test(tests, even_a_run_without_jobs_asks_once);
    return suite_run("convert/pool", tests);
}
