/* scratch.c - see scratch.h. */
#include "tests/cache/scratch.h"
#include "tests/support/file.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double samples[] = {1001.5, 999.25, 1000};

void scratch_make(scratch *s)
{
    folder_make(s->folder);
    snprintf(s->path, sizeof s->path, "%s/store.db", s->folder);
}

void scratch_remove(scratch *s)
{
    folder_remove(s->folder);
}

int scratch_journal(const scratch *s)
{
    size_t len = 0;
    char *bytes = file_read(s->path, &len);

    ck_assert_uint_gt(len, 18);
    int journal = bytes[18];
    free(bytes);
    return journal;
}

scratch scratch_here;
hone_error scratch_error;

static void set_up(void)
{
    scratch_error = (hone_error){.status = HONE_OK};
    scratch_make(&scratch_here);
}

static void tear_down(void)
{
    chmod(scratch_here.folder, 0700); /* some tests close it */
    scratch_remove(&scratch_here);
}

void scratch_fixture(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
}

void scratch_change(const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;

    ck_assert_int_eq(sqlite3_open(scratch_here.path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s: %s", sql, message);
    sqlite3_close(db);
}

hone_problem scratch_problem(int i)
{
    hone_problem problem;
    char text[128];

    snprintf(text, sizeof text, "fp8_gemm:m=%d,n=%d,k=%d,recipe=f32-1x128-128x128", 1 + i % 300,
             128 * (1 + i / 300), 256);
    ck_assert_int_eq(hone_problem_parse(text, &problem, NULL), HONE_OK);
    return problem;
}

device_kind scratch_kind(void)
{
    device_facts facts = {.name = " NVIDIA H20 ",
                          .arch = 90,
                          .sm_count = 78,
                          .smem_per_block = 232448,
                          .mem_bytes = INT64_C(102625181696),
                          .mem_bytes_per_s = INT64_C(4022784000000)};
    device_kind kind;

    device_kind_of(&facts, &kind);
    return kind;
}

store_result scratch_result(int i)
{
    return (store_result){
        .outcome = STORE_OK,
        .registers = 168,
        .shared_bytes = 98304,
        .compile_ms = 151.25,
        .timer = STORE_TIMER_EVENTS,
        .time_ns = 1000 + i,
        .samples_ns = samples,
        .samples_len = ARRAY_LEN(samples),
        .cache_mode = "cold",
        .tokens = "uniform",
        .clock_sm_mhz = 1830,
        .clock_mem_mhz = 2619,
        .cosine = 1,
        .rel_fro = 1.5e-3,
        .calc_diff = 1.2e-6,
        .max_err_ratio = 0.25,
        .checked_ctas = 4,
        .flop = 2e9,
        .bytes = 3e6,
        .roof_ns = 900,
        .bound = "dram",
        .counters = "{\"warp_instructions\":1}",
    };
}

store_key scratch_key(int64_t problem, int64_t device, int i, char config[64])
{
    store_key key = {.problem = problem,
                     .device = device,
                     .template_name = "fp8_gemm/mma_sync",
                     .config = config};

    snprintf(config, 64, "block_m=%d stages=4", 16 * (i + 1));
    memset(key.template_digest, 0x5a, sizeof key.template_digest);
    return key;
}

void scratch_fill(const char *path, int count)
{
    store *s = NULL;
    hone_error e = {0};
    store_sweep sweep = {"hone tune", "13.0.88", 13000, 7};
    device_kind kind = scratch_kind();
    int64_t sweep_id = 0, device = 0, problem = 0, id = 0;
    char config[64];

    ck_assert_msg(store_open(path, STORE_WRITE, &s, &e) == HONE_OK, "%s", e.message);
    ck_assert_int_eq(store_sweep_begin(s, &sweep, &sweep_id, &e), HONE_OK);
    ck_assert_int_eq(store_device_id(s, &kind, &device, &e), HONE_OK);
    for (int i = 0; i < count; i++) {
        hone_problem p = scratch_problem(i);
        store_result result = scratch_result(i);
        ck_assert_msg(store_problem_id(s, &p, &problem, &e) == HONE_OK, "%s", e.message);
        store_key key = scratch_key(problem, device, i % 7, config);
        ck_assert_msg(store_candidate_record(s, sweep_id, &key, &result, &id, &e) == HONE_OK, "%s",
                      e.message);
        ck_assert_int_eq(store_winner_set(s, problem, device, id, STORE_VERDICT_CLEAR, &e),
                         HONE_OK);
    }
    ck_assert_int_eq(store_sweep_end(s, sweep_id, &e), HONE_OK);
    ck_assert_msg(store_pack(s, NULL, &e) == HONE_OK, "%s", e.message);
    ck_assert_int_eq(store_close(s, &e), HONE_OK);
}

bool scratch_is_ours(const generation_winner *w)
{
    int i = (int)w->time_ns - 1000;
    char config[64];
    device_kind kind = scratch_kind();
    hone_problem p = scratch_problem(i < 0 || i > 100000 ? 0 : i);
    store_key key = scratch_key(0, 0, i % 7, config);

    return memcmp(&w->problem, &p, sizeof p) == 0 && w->time_ns == 1000 + i &&
           strcmp(w->template_name, key.template_name) == 0 && strcmp(w->config, config) == 0 &&
           memcmp(w->template_digest, key.template_digest, 32) == 0 &&
           w->timer == STORE_TIMER_EVENTS && w->verdict == STORE_VERDICT_CLEAR &&
           w->driver == 13000 && strcmp(w->nvrtc, "13.0.88") == 0 &&
           device_kind_match(w->kind, &kind) == DEVICE_SAME;
}

uint64_t scratch_seed(void)
{
    const char *given = getenv("HONE_SEED");
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10)
                                  : (uint64_t)t.tv_nsec ^ ((uint64_t)getpid() << 32);
    printf("HONE_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

int scratch_spawn(int (*body)(void *context), void *context)
{
    fflush(stdout);
    int pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        _exit(body(context));
    }
    return pid;
}

int scratch_wait(int pid)
{
    int how = 0;

    ck_assert_int_eq(waitpid(pid, &how, 0), pid);
    return WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how);
}
