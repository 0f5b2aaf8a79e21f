/* test_kills.c - `hone tune`, killed with -9 at random points and started again: no committed row
 * is lost, none is there twice, no worker outlives it, and the winners are those of an undisturbed
 * run.
 *
 * HONE_KILLS=1000 is the whole figure (reliability.md R1). */
#include "cache/store.h"
#include "core/random.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const problems[] = {"act_quant:m=16,k=2048", "weight_quant:n=128,k=256",
                                       "scale_pack:rows=64,groups=16"};

enum { MOST_ROWS = 128, TEXT_BYTES = 400, MOST_CHILDREN = 16 };

typedef char text[TEXT_BYTES];

/* What a store holds: a line of each finished row, and of each winner. */
typedef struct content {
    text row[MOST_ROWS], winner[MOST_ROWS];
    size_t rows, winners, inflight;
} content;

static char folder[FOLDER_BYTES];
static char program[1024];

static int add_row(void *context, const store_row *r)
{
    content *c = context;

    if (r->result.outcome == STORE_INFLIGHT) {
        c->inflight++;
        return 0;
    }
    ck_assert_uint_lt(c->rows, MOST_ROWS);
    snprintf(c->row[c->rows++], TEXT_BYTES, "%.90s %s %.120s %s %.17g", r->problem_text,
             r->template_name, r->config, store_outcome_name(r->result.outcome), r->result.time_ns);
    return 0;
}

static int add_winner(void *context, const store_winner *w)
{
    content *c = context;

    ck_assert_uint_lt(c->winners, MOST_ROWS);
    snprintf(c->winner[c->winners++], TEXT_BYTES, "%.90s %s %.120s %.17g", w->row.problem_text,
             w->row.template_name, w->row.config, w->row.result.time_ns);
    return 0;
}

/* False when the file is not there yet. */
static bool read_store(const char *path, content *out)
{
    hone_error error = {0};
    store *s = NULL;

    memset(out, 0, sizeof *out);
    if (access(path, F_OK) != 0) {
        return false;
    }
    /* Opening for writing is what takes a crash up. */
    ck_assert_msg(store_open(path, STORE_WRITE, &s, &error) == HONE_OK, "%s", error.message);
    ck_assert_int_eq(store_candidates(s, NULL, add_row, out, &error), HONE_OK);
    ck_assert_int_eq(store_winners(s, NULL, add_winner, out, &error), HONE_OK);
    ck_assert_int_eq(store_close(s, &error), HONE_OK);
    return true;
}

static bool holds(const text *list, size_t len, const char *line)
{
    for (size_t i = 0; i < len; i++) {
        if (strcmp(list[i], line) == 0) {
            return true;
        }
    }
    return false;
}

static pid_t start(const char *path)
{
    const pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        const int nowhere = open("/dev/null", O_WRONLY);
        char *arguments[] = {program,     "tune",
                             "--device",  "emu:h20",
                             "--problem", (char *)problems[0],
                             "--problem", (char *)problems[1],
                             "--problem", (char *)problems[2],
                             "--budget",  "8",
                             "--store",   (char *)path,
                             NULL};
        setpgid(0, 0);
        dup2(nowhere, 1);
        dup2(nowhere, 2);
        execv(program, arguments);
        _exit(127);
    }
    setpgid(child, child);
    return child;
}

/* Whether it ended by itself, well. */
static bool wait_for(pid_t child)
{
    int how = 0;

    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_msg(WIFSIGNALED(how) || WEXITSTATUS(how) == 0, "hone tune ended with %d",
                  WEXITSTATUS(how));
    return WIFEXITED(how);
}

static size_t children_of(pid_t parent, pid_t out[MOST_CHILDREN])
{
    char command[128], line[64];
    size_t len = 0;

    snprintf(command, sizeof command, "cat /proc/%d/task/*/children 2>/dev/null | tr ' ' '\\n'",
             (int)parent);
    FILE *f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) != NULL && len < MOST_CHILDREN) {
        if (atoi(line) > 0) {
            out[len++] = atoi(line);
        }
    }
    pclose(f);
    return len;
}

/* Gone, or a zombie that nobody waits for. */
static bool is_gone(pid_t p)
{
    char path[64], line[256] = "";

    snprintf(path, sizeof path, "/proc/%d/stat", (int)p);
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        return true;
    }
    const bool read = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    const char *behind = read ? strrchr(line, ')') : NULL;
    return behind == NULL || behind[2] == 'Z' || behind[2] == 'X';
}

static void expect_gone(const pid_t *list, size_t len)
{
    const struct timespec pause = {.tv_nsec = 10000000};

    for (size_t i = 0; i < len; i++) {
        for (int n = 0; n < 500 && !is_gone(list[i]); n++) {
            nanosleep(&pause, NULL);
        }
        ck_assert_msg(is_gone(list[i]), "worker %d outlived its sweep", (int)list[i]);
    }
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Nothing of `before` is lost, and no row is there twice. */
static void compare(const content *before, const content *now, int kill_number)
{
    for (size_t i = 0; i < before->rows; i++) {
        ck_assert_msg(holds(now->row, now->rows, before->row[i]), "kill %d lost %s", kill_number,
                      before->row[i]);
    }
    for (size_t i = 1; i < now->rows; i++) {
        ck_assert_msg(!holds(now->row, i, now->row[i]), "twice: %s", now->row[i]);
    }
    ck_assert_uint_le(now->inflight, 1);
}

static void expect_same(const content *whole, const content *now)
{
    ck_assert_uint_eq(now->rows, whole->rows);
    ck_assert_uint_eq(now->winners, whole->winners);
    ck_assert_uint_eq(now->inflight, 0);
    for (size_t i = 0; i < whole->winners; i++) {
        ck_assert_msg(holds(now->winner, now->winners, whole->winner[i]), "another winner than %s",
                      whole->winner[i]);
    }
}

START_TEST(a_sweep_that_is_killed_again_and_again_ends_as_an_undisturbed_one)
{
    static content whole, before, now;
    const char *asked = getenv("HONE_KILLS");
    const int kills = asked != NULL ? atoi(asked) : 5;
    char path[1024];
    uint64_t random = 20261201;
    int landed = 0, ended = 0;

    snprintf(path, sizeof path, "%s/whole.db", folder);
    ck_assert(wait_for(start(path))); /* compiles */
    remove(path);
    const double from = seconds();
    ck_assert(wait_for(start(path)));
    const double length = seconds() - from;
    ck_assert(read_store(path, &whole));
    ck_assert_uint_eq(whole.winners, ARRAY_LEN(problems));
    snprintf(path, sizeof path, "%s/killed.db", folder);
    while (landed < kills) {
        pid_t workers[MOST_CHILDREN];
        const double after = length * (double)(random_next(&random) % 1000) / 1000;
        const struct timespec pause = {(time_t)after,
                                       (long)((after - (double)(time_t)after) * 1e9)};
        const pid_t child = start(path);
        nanosleep(&pause, NULL);
        const size_t workers_len = children_of(child, workers);
        kill(-child, SIGKILL);
        const bool finished = wait_for(child);
        expect_gone(workers, workers_len);
        landed += !finished;
        if (!read_store(path, &now)) {
            continue; /* killed before it made the file */
        }
        compare(&before, &now, landed);
        before = now;
        if (finished) {
            expect_same(&whole, &now);
            ended++;
            remove(path);
            before = (content){.rows = 0};
        }
    }
    ck_assert(wait_for(start(path)));
    ck_assert(read_store(path, &now));
    compare(&before, &now, landed);
    expect_same(&whole, &now);
    printf("%d kills, %d sweeps ended meanwhile, %zu rows each\n", landed, ended + 1, whole.rows);
}
END_TEST

static void setup(void)
{
    const char *binary = getenv("HONE_BINARY_DIR");

    folder_make(folder);
    setenv("XDG_CACHE_HOME", folder, 1);
    snprintf(program, sizeof program, "%s/cli/hone", binary != NULL ? binary : ".");
}

static void teardown(void)
{
    folder_remove(folder);
}

int main(void)
{
    TCase *tests = tcase_create("kills");

    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_sweep_that_is_killed_again_and_again_ends_as_an_undisturbed_one);
    return suite_run_here("tuner/kills", tests);
}
