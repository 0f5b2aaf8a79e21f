/* test_atomic.c - a file is replaced whole or not at all: killed writers, many writers, full disks
 * (cases.md 33). */
#include "tests/exchange/sample.h"

#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 24, KILLS = 40, WRITERS = 4 };

/* Write the space with one row and with all of them, in turns, for ever or `rounds` times. */
static void write_in_turns(const exchange_space *space, const char *path, int rounds)
{
    exchange_space few = *space;

    few.rows_len = 1;
    for (int i = 0; rounds == 0 || i < rounds; i++) {
        hone_error e = {0};
        const hone_status status =
            exchange_write(i % 2 == 0 ? space : &few, EXCHANGE_CACHEFILE, NULL, path, &e);
        if (status != HONE_OK) {
            fprintf(stderr, "%s: %s\n", e.source, e.message);
            _exit(1);
        }
    }
}

/* The number of rows of a whole file; 0 when it is none. */
static size_t rows_of(const char *path)
{
    exchange_set read = {0};
    bool torn = true;
    size_t rows = 0;

    if (exchange_read(path, EXCHANGE_CACHEFILE, NULL, &read, &torn, &scratch_error) == HONE_OK) {
        rows = torn ? 0 : read.spaces[0].rows_len;
        exchange_free(&read);
    }
    return rows;
}

typedef struct job {
    const exchange_space *space;
    char path[FOLDER_BYTES + 64];
    int rounds;
} job;

static int work(void *context)
{
    const job *j = context;

    write_in_turns(j->space, j->path, j->rounds);
    return 0;
}

START_TEST(a_killed_writer_leaves_the_old_file)
{
    size_t seen[2] = {0};
    unsigned seed = (unsigned)scratch_seed();

    sample_store(ROWS);
    exchange_set set = sample_collect();
    job j = {.space = &set.spaces[0]};
    snprintf(j.path, sizeof j.path, "%s", sample_path("out.json"));
    write_in_turns(j.space, j.path, 1);
    for (int i = 0; i < KILLS; i++) {
        const struct timespec pause = {.tv_nsec = rand_r(&seed) % 40000 * 1000};
        const int pid = scratch_spawn(work, &j);
        nanosleep(&pause, NULL);
        kill(pid, SIGKILL);
        ck_assert_int_eq(scratch_wait(pid), -SIGKILL);
        const size_t rows = rows_of(j.path);
        ck_assert_msg(rows == 1 || rows == ROWS, "%zu rows: %s", rows, scratch_error.message);
        seen[rows == ROWS]++;
    }
    write_in_turns(j.space, j.path, 2); /* what the last one left does not stand in the way */
    ck_assert_uint_eq(rows_of(j.path), 1);
    printf("%d kills left %zu small and %zu large files, all whole\n", KILLS, seen[0], seen[1]);
    exchange_free(&set);
}
END_TEST

/* Writers of one file take turns; those of different files leave all of them. */
START_TEST(many_writers_leave_whole_files)
{
    int pids[WRITERS];
    job jobs[WRITERS];

    sample_store(ROWS);
    exchange_set set = sample_collect();
    for (int i = 0; i < WRITERS; i++) {
        char name[32];
        jobs[i] = (job){.space = &set.spaces[0], .rounds = 12};
        snprintf(name, sizeof name, "out%d.json", i / 2);
        snprintf(jobs[i].path, sizeof jobs[i].path, "%s", sample_path(name));
        pids[i] = scratch_spawn(work, &jobs[i]);
    }
    for (int i = 0; i < WRITERS; i++) {
        ck_assert_int_eq(scratch_wait(pids[i]), 0);
        const size_t rows = rows_of(jobs[i].path);
        ck_assert(rows == 1 || rows == ROWS);
    }
    exchange_free(&set);
}
END_TEST

static int write_too_much(void *context)
{
    const job *j = context;
    const struct rlimit few = {4096, 4096};
    hone_error e = {0};

    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &few);
    const hone_status status = exchange_write(j->space, EXCHANGE_T4, NULL, j->path, &e);
    return status == HONE_IO && strstr(e.message, "cannot be written") != NULL ? 0 : 1;
}

/* No room: the old file stands, and nothing is left beside it. */
START_TEST(a_full_disk_leaves_the_old_file)
{
    char part[FOLDER_BYTES + 64];

    sample_store(ROWS);
    exchange_set set = sample_collect();
    job j = {.space = &set.spaces[0]};
    snprintf(j.path, sizeof j.path, "%s", sample_path("out.json"));
    write_in_turns(j.space, j.path, 2);
    ck_assert_int_eq(scratch_wait(scratch_spawn(write_too_much, &j)), 0);
    ck_assert_uint_eq(rows_of(j.path), 1);
    snprintf(part, sizeof part, "%s", sample_path(".out.json.part"));
    ck_assert_int_ne(access(part, F_OK), 0);
    exchange_free(&set);
}
END_TEST

/* What is no plain file is not written over, nor what a link beside it points to. */
START_TEST(only_plain_files_are_replaced)
{
    char path[FOLDER_BYTES + 64];

    sample_store(1);
    exchange_set set = sample_collect();
    snprintf(path, sizeof path, "%s", sample_path("there"));
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(exchange_write(&set.spaces[0], EXCHANGE_T4, NULL, path, &scratch_error),
                     HONE_IO);
    ck_assert_int_eq(
        exchange_write(&set.spaces[0], EXCHANGE_T4, NULL, "/nowhere/x", &scratch_error), HONE_IO);
    file_write_text(sample_path("victim"), "mine");
    ck_assert_int_eq(symlink(sample_path("victim"), sample_path(".out.json.part")), 0);
    ck_assert_int_eq(
        exchange_write(&set.spaces[0], EXCHANGE_T4, NULL, sample_path("out.json"), &scratch_error),
        HONE_IO);
    char *text = file_read(sample_path("victim"), NULL);
    ck_assert_str_eq(text, "mine");
    free(text);
    exchange_free(&set);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("atomic");

    scratch_fixture(tests);
    tcase_add_test(tests, a_killed_writer_leaves_the_old_file);
    tcase_add_test(tests, many_writers_leave_whole_files);
    tcase_add_test(tests, a_full_disk_leaves_the_old_file);
    tcase_add_test(tests, only_plain_files_are_replaced);
    return suite_run("exchange/atomic", tests);
}
