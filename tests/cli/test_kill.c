/* test_kill.c - kill -9 of `hone tune` and all its workers at random moments, a hundred times: no
 * committed row is lost or changed, at most one candidate is repeated, and the winners are those of
 * a sweep that nobody disturbed. HONE_KILLS asks for another number. */
#include "tests/cli/flow.h"

#include "cache/store.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TUNE   FLOW_PROBLEMS "--budget 24 --device emu:h20 --store "
#define KILLED "killed.db"
#define CALM   "calm.db"

enum { MOST_ROWS = 256, MOST_WORKERS = 64, STEP_MS = 2, PATIENCE_MS = 60000 };

static place here;

/* A store's finished candidates, in the order of their ids, and how many were under way. */
typedef struct snapshot {
    size_t len, inflight;
    int64_t id[MOST_ROWS];
    uint8_t digest[MOST_ROWS][32]; /* over all columns: a row that was done again has another */
} snapshot;

static void wait_ms(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

/* NULL when the file is not there yet. */
static sqlite3 *open_store(const char *name)
{
    sqlite3 *db = NULL;
    char relative[64], path[PROGRAM_PATH_BYTES];

    snprintf(relative, sizeof relative, "run/%s", name);
    if (sqlite3_open_v2(place_path(&here, relative, path), &db, SQLITE_OPEN_READONLY, NULL) !=
        SQLITE_OK) {
        sqlite3_close(db);
        return NULL;
    }
    sqlite3_busy_timeout(db, 5000);
    return db;
}

/* What the killed store holds now; nothing when it has no tables yet. */
static void look(snapshot *out)
{
    static const char sql[] = "SELECT outcome, id, digest FROM candidates ORDER BY id";
    sqlite3 *db = open_store(KILLED);
    sqlite3_stmt *rows = NULL;

    *out = (snapshot){0};
    if (db != NULL && sqlite3_prepare_v2(db, sql, -1, &rows, NULL) == SQLITE_OK) {
        int code;
        while ((code = sqlite3_step(rows)) == SQLITE_ROW) {
            if (sqlite3_column_int(rows, 0) == STORE_INFLIGHT) {
                out->inflight++;
                continue;
            }
            ck_assert_int_ne(sqlite3_column_int(rows, 0), STORE_LOST);
            ck_assert_uint_lt(out->len, MOST_ROWS);
            ck_assert_int_eq(sqlite3_column_bytes(rows, 2), sizeof out->digest[0]);
            out->id[out->len] = sqlite3_column_int64(rows, 1);
            memcpy(out->digest[out->len], sqlite3_column_blob(rows, 2), sizeof out->digest[0]);
            out->len++;
        }
        ck_assert_msg(code == SQLITE_DONE, "%s", sqlite3_errmsg(db));
    }
    sqlite3_finalize(rows);
    sqlite3_close(db);
}

/* Every row that was finished is there, unchanged. */
static void demand_kept(const snapshot *before, const snapshot *after)
{
    size_t at = 0;

    for (size_t i = 0; i < before->len; i++) {
        while (at < after->len && after->id[at] < before->id[i]) {
            at++;
        }
        ck_assert_msg(at < after->len && after->id[at] == before->id[i], "candidate %lld is lost",
                      (long long)before->id[i]);
        ck_assert_msg(memcmp(after->digest[at], before->digest[i], sizeof after->digest[at]) == 0,
                      "candidate %lld was done again", (long long)before->id[i]);
    }
}

/* The winners of a store, as text: problem, template and config, line by line. */
static void winners_of(const char *name, char *text, size_t capacity)
{
    static const char sql[] = "SELECT p.text || ' ' || c.template || ' ' || c.config "
                              "FROM winners w JOIN candidates c ON c.id = w.candidate "
                              "JOIN problems p ON p.id = w.problem ORDER BY 1";
    sqlite3 *db = open_store(name);
    sqlite3_stmt *rows = NULL;
    size_t used = 0;

    ck_assert_ptr_nonnull(db);
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &rows, NULL), SQLITE_OK);
    text[0] = '\0';
    while (sqlite3_step(rows) == SQLITE_ROW && used < capacity) {
        used += (size_t)snprintf(text + used, capacity - used, "%s\n",
                                 (const char *)sqlite3_column_text(rows, 0));
    }
    ck_assert_uint_lt(used, capacity);
    sqlite3_finalize(rows);
    sqlite3_close(db);
}

static long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A whole sweep, which must go well; its milliseconds. */
static long sweep_calmly(const char *name)
{
    const long from = now_ms();
    program_run r = program_call(&here, "hone tune" TUNE "%s", name);

    ck_assert_msg(r.exit_status == 0, "exit %d: %.1000s%.1000s", r.exit_status, r.out, r.err);
    program_free(&r);
    return now_ms() - from;
}

/* The processes that a sweep has started. */
static size_t workers_of(pid_t sweep, pid_t out[MOST_WORKERS])
{
    char path[64], line[512] = "";
    size_t len = 0;

    snprintf(path, sizeof path, "/proc/%d/task", (int)sweep);
    DIR *tasks = opendir(path);
    for (struct dirent *task = tasks != NULL ? readdir(tasks) : NULL; task != NULL;
         task = readdir(tasks)) {
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/children", (int)sweep, task->d_name);
        FILE *f = fopen(path, "r");
        char *at = f != NULL ? fgets(line, sizeof line, f) : NULL, *end = at;
        for (long pid = at != NULL ? strtol(at, &end, 10) : 0; pid > 0 && len < MOST_WORKERS;
             pid = strtol(end, &end, 10)) {
            out[len++] = (pid_t)pid;
        }
        if (f != NULL) {
            fclose(f);
        }
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return len;
}

/* Gone, or a zombie that nobody has waited for yet. */
static bool is_gone(pid_t pid)
{
    char path[64], line[256] = "";

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        return true;
    }
    const char *behind = fgets(line, sizeof line, f) != NULL ? strrchr(line, ')') : NULL;
    fclose(f);
    return behind == NULL || behind[2] == 'Z' || behind[2] == 'X';
}

static void demand_gone(const pid_t *list, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        for (long waited = 0; !is_gone(list[i]); waited += STEP_MS) {
            ck_assert_msg(waited < PATIENCE_MS, "worker %d outlives its sweep", (int)list[i]);
            wait_ms(STEP_MS);
        }
    }
}

/* Start a sweep, kill it up to `most_ms` after its start, and hold the store to its promise. False
 * when the sweep had ended before. */
static bool kill_once(long most_ms, unsigned *seed, snapshot *state)
{
    snapshot seen, after;
    pid_t workers[MOST_WORKERS],
        group = program_start(&here, "kill", "exec \"$HONE\" tune" TUNE KILLED);

    wait_ms(rand_r(seed) % (most_ms + 1));
    look(&seen);
    const size_t workers_len = workers_of(group, workers);
    kill(-group, SIGKILL);
    program_run r = program_wait(&here, "kill", group);
    const bool killed = r.signal == SIGKILL;
    ck_assert_msg(killed || r.exit_status == 0, "exit %d: %s", r.exit_status, r.err);
    program_free(&r);
    demand_gone(workers, workers_len);
    look(&after);
    demand_kept(state, &after);
    demand_kept(&seen, &after);
    ck_assert_msg(after.inflight <= 1, "%zu candidates to repeat", after.inflight);
    *state = after;
    return killed;
}

START_TEST(no_kill_loses_a_row)
{
    const char *asked = getenv("HONE_KILLS");
    const int kills = asked != NULL ? atoi(asked) : 100;
    char calm[8192], after[8192];
    unsigned seed = 20;
    snapshot state = {0};
    size_t rows = 0;

    sweep_calmly(CALM); /* also fills the kernel cache */
    winners_of(CALM, calm, sizeof calm);
    const long most_ms = sweep_calmly("again.db");
    for (int done = 0, ended = 0; done < kills; done += !ended) {
        ended = !kill_once(most_ms, &seed, &state);
        rows = state.len > rows ? state.len : rows;
        if (ended || done == kills - 1) {
            sweep_calmly(KILLED);
            winners_of(KILLED, after, sizeof after);
            ck_assert_str_eq(after, calm);
            program_run r =
                program_call(&here, "hone store check --store " KILLED " && rm " KILLED);
            ck_assert_msg(r.exit_status == 0, "%s%s", r.out, r.err);
            program_free(&r);
            state = (snapshot){0};
        }
    }
    ck_assert_uint_gt(rows, 0);
    printf("%d kills, none lost a row of up to %zu\n", kills, rows);
}
END_TEST

static void setup(void)
{
    here = place_make();
}

static void teardown(void)
{
    place_remove(&here);
}

int main(void)
{
    TCase *tests = tcase_create("kill");

    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_test(tests, no_kill_loses_a_row);
    return suite_run_here("cli/kill", tests);
}
