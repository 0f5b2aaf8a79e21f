/* test_containment.c - a sweep on the real engine, some of whose candidates crash, hang, fault,
 * lie, find no memory or lose the device (reliability.md R16): each is a row, and nothing else
 * changes.
 *
 * What fails is asked of the emulator by the kernels' names (HONE_EMU_FAULTS), after a clean sweep
 * has shown which candidates there are. HONE_CONTAINMENT=100 is the whole figure. */
#include "runtime/jit.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"
#include "tuner/sweep.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROBLEM     "act_quant:m=64,k=4096"
#define MOST        128
#define DEADLINE_MS 4000

/* What fails in a sweep of 100: the same parts of a smaller one, but one of each at least. */
static const struct {
    const char *fault;
    int of_100;
    int32_t outcome;
    const char *reason; /* that its row holds */
} kinds[] = {
    {"abort", 5, STORE_FAULT, "the device worker crashed (signal 6)"},
    {"hang", 5, STORE_HANG, "the device worker ran past its deadline"},
    {"illegal", 5, STORE_FAULT, "illegal address"},
    {"wrong", 5, STORE_WRONG, ""},
    {"memory", 3, STORE_OOM, ""},
    {"lost", 2, STORE_FAULT, "the device is lost"},
};

typedef struct row {
    char config[256], reason[200];
    int32_t outcome;
    double time_ns;
    int kind; /* that fails; -1: none */
} row;

typedef struct rows {
    row list[MOST];
    size_t len;
    char winner[256];
} rows;

static char folder[FOLDER_BYTES];
static templates *all;
static device *d;
static uint64_t budget;

static int add_row(void *context, const store_row *from)
{
    rows *r = context;

    ck_assert_uint_lt(r->len, MOST);
    row *to = &r->list[r->len++];
    *to = (row){.outcome = from->result.outcome, .time_ns = from->result.time_ns, .kind = -1};
    snprintf(to->config, sizeof to->config, "%s", from->config);
    snprintf(to->reason, sizeof to->reason, "%.199s", from->result.reason);
    return 0;
}

static int add_winner(void *context, const store_winner *winner)
{
    rows *r = context;

    snprintf(r->winner, sizeof r->winner, "%s", winner->row.config);
    return 0;
}

/* A sweep into a new store, and what it holds. */
static double sweep_into(const char *name, const char *const *specs, size_t specs_len, rows *out,
                         sweep_summary *summary)
{
    hone_error error = {0};
    hone_problem problem;
    store *s = NULL;
    char path[1024];
    struct timespec from, to;

    snprintf(path, sizeof path, "%s/%s.db", folder, name);
    ck_assert_int_eq(hone_problem_parse(PROBLEM, &problem, &error), HONE_OK);
    ck_assert_msg(store_open(path, STORE_WRITE, &s, &error) == HONE_OK, "%s", error.message);
    const sweep_options options = {.problems = &problem,
                                   .problems_len = 1,
                                   .device = d,
                                   .specs = specs,
                                   .specs_len = specs_len,
                                   .store = s,
                                   .templates = all,
                                   .strategy = strategy_find("exhaustive"),
                                   .engine = engine_open_device,
                                   .budget = budget,
                                   .seed = 1,
                                   .deadline_ms = DEADLINE_MS,
                                   .command = "test"};
    clock_gettime(CLOCK_MONOTONIC, &from);
    ck_assert_msg(sweep_run(&options, summary, &error) == HONE_OK, "%s: %s", error.source,
                  error.message);
    clock_gettime(CLOCK_MONOTONIC, &to);
    memset(out, 0, sizeof *out);
    ck_assert_int_eq(store_candidates(s, NULL, add_row, out, &error), HONE_OK);
    ck_assert_int_eq(store_winners(s, NULL, add_winner, out, &error), HONE_OK);
    ck_assert_int_eq(store_close(s, &error), HONE_OK);
    return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

/* The name of a candidate's kernel in its PTX. */
static void kernel_of(jit *j, const row *r, char *out, size_t capacity)
{
    hone_error error = {0};
    hone_problem problem;
    const manifest *m = templates_find(all, "act_quant/groups");
    config c;
    plan *p = calloc(1, sizeof *p);
    jit_request request;
    compiled *code = NULL;

    ck_assert_ptr_nonnull(m);
    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(hone_problem_parse(PROBLEM, &problem, &error), HONE_OK);
    ck_assert_int_eq(manifest_config_parse(m, r->config, &c, &error), HONE_OK);
    ck_assert_int_eq(manifest_plan(m, &problem, &d->gpu.facts, &c, p, &error), HONE_OK);
    ck_assert_int_eq(jit_request_plan(all, m, p, d->gpu.facts.arch, &request, &error), HONE_OK);
    ck_assert_msg(jit_compile(j, &request, &code, &error) == HONE_OK, "%s", error.message);
    snprintf(out, capacity, "%s", code->kernels[0].lowered);
    compiled_free(code);
    free(p);
}

typedef char kernel_name[512];

static bool is_shared(kernel_name *names, size_t len, size_t index)
{
    for (size_t i = 0; i < len; i++) {
        if (i != index && strcmp(names[i], names[index]) == 0) {
            return true;
        }
    }
    return false;
}

/* Choose who fails, and how: right candidates with a kernel of their own, neither the winner nor
 * the first, which is the default. `text` is for HONE_EMU_FAULTS. Returns how many. */
static size_t choose(rows *r, char *text, size_t capacity)
{
    hone_error error = {0};
    jit *j = NULL;
    kernel_name *names = calloc(r->len, sizeof *names);
    size_t used = 0, at = 1, chosen = 0;

    ck_assert_ptr_nonnull(names);
    ck_assert_int_eq(jit_open(NULL, &j, &error), HONE_OK);
    for (size_t i = 0; i < r->len; i++) {
        kernel_of(j, &r->list[i], names[i], sizeof names[i]);
    }
    jit_close(j);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        const int part = kinds[k].of_100 * (int)budget / 100, wanted = part > 0 ? part : 1;
        for (int n = 0; n < wanted; n++, at++, chosen++) {
            while (at < r->len &&
                   (r->list[at].outcome != STORE_OK || is_shared(names, r->len, at) ||
                    strcmp(r->list[at].config, r->winner) == 0)) {
                at++;
            }
            ck_assert_msg(at < r->len, "too few candidates that can fail");
            r->list[at].kind = (int)k;
            used +=
                (size_t)snprintf(text + used, capacity - used, "%s=%s;", kinds[k].fault, names[at]);
            ck_assert_uint_lt(used, capacity);
        }
    }
    free(names);
    return chosen;
}

static const row *find(const rows *r, const char *text)
{
    for (size_t i = 0; i < r->len; i++) {
        if (strcmp(r->list[i].config, text) == 0) {
            return &r->list[i];
        }
    }
    return NULL;
}

/* Each of the clean sweep's rows is there once, as it was, or as its failure is named. */
static void compare(const rows *clean, const rows *faulty)
{
    ck_assert_uint_eq(clean->len, faulty->len);
    for (size_t i = 0; i < clean->len; i++) {
        const row *before = &clean->list[i], *after = find(faulty, before->config);
        ck_assert_msg(after != NULL, "%s is gone", before->config);
        if (before->kind < 0) {
            ck_assert_msg(after->outcome == before->outcome && after->time_ns == before->time_ns,
                          "%s: %s", before->config, after->reason);
            continue;
        }
        ck_assert_msg(after->outcome == kinds[before->kind].outcome,
                      "%s, which was to fail by %s, is %s: %s", before->config,
                      kinds[before->kind].fault, store_outcome_name(after->outcome), after->reason);
        ck_assert_msg(strstr(after->reason, kinds[before->kind].reason) != NULL, "%s: %s",
                      kinds[before->kind].fault, after->reason);
    }
    ck_assert_str_eq(clean->winner, faulty->winner);
}

START_TEST(what_fails_is_a_row_and_nothing_else_changes)
{
    static rows clean, faulty, shared;
    static char text[64 << 10];
    static const char *const twice[] = {"emu:h20", "emu:h20"};
    sweep_summary before, after, both;

    sweep_into("clean", NULL, 0, &clean, &before);
    ck_assert_uint_eq(clean.len, budget); /* the default is one of them, once */
    ck_assert_uint_eq(before.restarts, 0);
    const size_t failing = choose(&clean, text, sizeof text);
    setenv("HONE_EMU_FAULTS", text, 1);
    const double spent = sweep_into("faulty", NULL, 0, &faulty, &after);
    compare(&clean, &faulty);
    ck_assert_uint_eq(after.ok, before.ok - failing);
    /* Those that end their process, and no others. */
    size_t ends = 0;
    for (size_t i = 0; i < clean.len; i++) {
        ends += clean.list[i].kind == 0 || clean.list[i].kind == 1;
    }
    ck_assert_uint_eq(after.restarts, ends);
    printf("%zu candidates, %zu of which fail: %llu processes replaced, %.1f s\n", clean.len,
           failing, (unsigned long long)after.restarts, spent);
    sweep_into("shared", twice, 2, &shared, &both); /* by two devices of the kind */
    compare(&clean, &shared);
    ck_assert_uint_eq(both.restarts, ends);
    unsetenv("HONE_EMU_FAULTS");
}
END_TEST

static void setup(void)
{
    hone_error error = {0};
    const char *binary = getenv("HONE_BINARY_DIR"), *asked = getenv("HONE_CONTAINMENT");
    static const char *const files[][2] = {{"HONE_EMU_PATH", "emulator/libhone_emu.so"},
                                           {"HONE_WORKER", "runtime/hone-worker"},
                                           {"HONE_PROVER", "tuner/hone-prover"}};
    char path[1024];

    folder_make(folder);
    setenv("XDG_CACHE_HOME", folder, 1);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof path, "%s/%s", binary != NULL ? binary : ".", files[i][1]);
        setenv(files[i][0], path, 1);
    }
    budget = asked != NULL ? (uint64_t)atoi(asked) : 16;
    ck_assert_uint_le(budget, MOST);
    ck_assert_int_eq(templates_open(&all, &error), HONE_OK);
    ck_assert_msg(device_open("emu:h20", &d, &error) == HONE_OK, "%s", error.message);
}

static void teardown(void)
{
    device_close(d);
    templates_close(all);
    folder_remove(folder);
}

int main(void)
{
    TCase *tests = tcase_create("containment");

    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_fails_is_a_row_and_nothing_else_changes);
    return suite_run_here("tuner/containment", tests); /* the workers belong to this process */
}
