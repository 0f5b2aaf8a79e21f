/* test_product.c - the full product of sizes and recipes with every legal config, as one sweep that
 * goes on where the last run of this test stopped.
 *
 * It is millions of candidates: a run takes HONE_PRODUCT_SECONDS (600) and leaves the store in
 * HONE_PRODUCT_STORE (in the build folder), where the next run finds it. */
#include "tests/cli/program.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

static const char *const rows[] = {"1", "15", "16", "17", "64", "127", "128", "129"};
static const char *const columns[] = {"33", "127", "128", "129", "576"};
static const char *const depths[] = {"32", "64", "128", "160", "192", "576"};
static const char *const recipes[] = {"f32-1x128-128x128", "f32-1x128-1x128",  "f32-1x32-32x32",
                                      "f32-1x32-1x32",     "ue8m0-1x32-32x32", "ue8m0-1x32-1x32"};
/* Outcomes that say that a template is wrong. */
static const char *const bad[] = {"wrong", "nondet", "fault", "hang", "launch", "compile"};

#define LEN(list) (sizeof(list) / sizeof(list)[0])

static void write_script(const place *p, const char *store)
{
    char path[PROGRAM_PATH_BYTES];
    FILE *script = fopen(place_path(p, "run/sweep.sh", path), "w");

    ck_assert_ptr_nonnull(script);
    fprintf(script,
            "exec \"$1\" tune --strategy exhaustive --budget 0 --device emu:h20 --device "
            "emu:rtx4090 --store '%s'",
            store);
    for (size_t i = 0; i < LEN(rows) * LEN(columns) * LEN(depths) * LEN(recipes); i++) {
        size_t rest = i;
        const char *m = rows[rest % LEN(rows)];
        rest /= LEN(rows);
        const char *n = columns[rest % LEN(columns)];
        rest /= LEN(columns);
        const char *k = depths[rest % LEN(depths)];
        fprintf(script, " --problem fp8_gemm:m=%s,n=%s,k=%s,recipe=%s", m, n, k,
                recipes[rest / LEN(depths)]);
    }
    fputc('\n', script);
    ck_assert_int_eq(fclose(script), 0);
}

/* Let it run for so long, then ask it to stop, as a user would. */
static program_run run_for(const place *p, long seconds)
{
    const struct timespec step = {1, 0};
    siginfo_t ended = {0};
    pid_t group = program_start(p, "sweep", "exec sh sweep.sh \"$HONE\"");

    for (long i = 0; i < seconds && ended.si_pid == 0; i++) {
        nanosleep(&step, NULL);
        ck_assert_int_eq(waitid(P_PID, (id_t)group, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    }
    kill(-group, SIGINT);
    return program_wait(p, "sweep", group);
}

START_TEST(every_legal_config_is_right)
{
    const char *binary = getenv("HONE_BINARY_DIR"), *asked = getenv("HONE_PRODUCT_STORE");
    const char *seconds = getenv("HONE_PRODUCT_SECONDS");
    char store[PROGRAM_PATH_BYTES];
    place here = place_make();

    snprintf(store, sizeof store, "%s%s", asked != NULL ? asked : binary,
             asked != NULL ? "" : "/product.db");
    write_script(&here, store);
    program_run r = run_for(&here, seconds != NULL ? atol(seconds) : 600);
    ck_assert_msg(r.exit_status == 0 || program_says(&r, "the same command goes on from here"),
                  "exit %d, signal %d: %s", r.exit_status, r.signal, r.err);
    program_free(&r);
    for (size_t i = 0; i < LEN(bad); i++) {
        r = program_call(&here, "hone store list --outcome %s --store '%s'", bad[i], store);
        ck_assert_int_eq(r.exit_status, 0);
        ck_assert_msg(r.out[0] == '\0', "%.2000s", r.out);
        program_free(&r);
    }
    r = program_call(&here, "hone store check --store '%s'", store);
    ck_assert_int_eq(r.exit_status, 0);
    printf("%s", r.out);
    program_free(&r);
    place_remove(&here);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("product");

    tcase_add_test(tests, every_legal_config_is_right);
    return suite_run_here("cli/product", tests);
}
