/* test_flow.c - from a sweep to an answer: tune, report, lookup, verify, bench and store on one
 * small store. */
#include "tests/cli/flow.h"
#include "tests/support/suite.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static place here;

static void setup(void)
{
    here = place_make();
    program_run r = program_call(&here, "%s", FLOW_TUNE);
    ck_assert_msg(r.exit_status == 0, "exit %d: %.1000s%.1000s", r.exit_status, r.out, r.err);
    ck_assert_msg(strstr(r.out, "6 of 6 problems have a winner; 12 candidates tried: 12 proved") !=
                      NULL,
                  "%s", r.out);
    ck_assert_msg(strstr(r.out, "MODELLED") != NULL, "%s", r.out);
    program_free(&r);
}

static void teardown(void)
{
    place_remove(&here);
}

/* What is asked of the tuned store, how it ends and what it says. Commands that open nothing but
 * the store. */
static const struct {
    const char *line;
    int exit_status;
    const char *says;
} answers[] = {
    {"hone lookup --device emu:h20 --problem " FLOW_GEMM("16"), 0, "exact: fp8_gemm/mma_sync"},
    {"hone lookup --device emu:h20 --strict --problem " FLOW_GEMM("16"), 0, "us (modelled)"},
    {"hone lookup --device emu:h20 --problem " FLOW_GEMM("15"), 0, "bucket: fp8_gemm/mma_sync"},
    {"hone lookup --device emu:h20 --problem " FLOW_GEMM("17"), 0, "default: fp8_gemm/mma_sync"},
    {"hone lookup --device emu:h20 --strict --problem " FLOW_GEMM("15"), 1, "strict"},
    {"hone lookup --device emu:h20 --strict --problem " FLOW_GEMM("17"), 1, "tune it"},
    {"hone lookup --device emu:rtx4090 --problem " FLOW_ACT, 0, "exact: act_quant/groups"},
    {"hone lookup --device emu:rtx4090 --problem " FLOW_KV, 0, "exact: kv_quant/tokens"},
    {"hone lookup --device emu:h20 --problem " FLOW_GEMM("0"), 0, "nothing to launch"},
    {"hone lookup --device emu:l4 --strict --problem " FLOW_ACT, 1, "strict"},
    {FLOW_TUNE, 0, "Nothing left to do: 6 problems are tuned"},
    {"hone store check", 0, "12 candidates, 6 winners"},
    {"hone store check", 0, "every row matches its digest"},
    {"hone store list --outcome ok", 0, "us (modelled)"},
    {"hone report --details", 0, "MODELLED, none is measured"},
    {"hone report --device emu:h20", 0, "NVIDIA H20 (emulated)"},
    {"HONE_STORE=elsewhere.db hone store check", 3, "elsewhere.db"},
    {"cp ../" PLACE_STORE " moved.db; HONE_STORE=moved.db hone store check", 0, "moved.db: "},
    {"XDG_DATA_HOME=$PWD/nothing hone store check", 3, "nothing/hone/hone.db"},
};

START_TEST(a_tuned_store_answers)
{
    program_run r = program_call(&here, "%s", answers[_i].line);

    ck_assert_msg(r.exit_status == answers[_i].exit_status, "%s: exit %d: %.1000s%.1000s",
                  answers[_i].line, r.exit_status, r.out, r.err);
    ck_assert_msg(program_says(&r, answers[_i].says), "%s: '%s%s' lacks '%s'", answers[_i].line,
                  r.out, r.err, answers[_i].says);
    program_free(&r);
}
END_TEST

#define MOE(layout, recipe, promote)                                                               \
    "--template moe_gemm/mma_sync --config 'swap=0 block_m=16 block_n=64 block_k=128 warps_m=1 "   \
    "warps_n=4 warps_k=1 stages=3 promote=" promote " raster=1 residency=1' --problem "            \
    "moe_gemm:tokens=12,topk=2,experts=5,n=72,k=256,row_align=16,group_layout=" layout             \
    ",recipe=" recipe
#define MOE_SAYS "1 candidates, 0 not proved"

/* Commands that compile and prove: a right config passes, a wrong text is refused. */
static const struct {
    const char *line;
    int exit_status;
    const char *says;
} trials[] = {
    {"hone verify --budget 2 --device emu:h20 --problem " FLOW_GEMM("16"), 0,
     "2 candidates, 0 not proved"},
    {"hone verify --budget 1 --device emu:rtx4090 --problem "
     "fp8_gemm:m=3,n=7,k=45,recipe=f32-1x128-128x128",
     0, "1 candidates, 0 not proved"},
    {"hone verify --device emu:h20 --template fp8_gemm/mma_sync --config 'block_m=16 block_n=17' "
     "--problem " FLOW_GEMM("16"),
     2, "block_m=16 block_n=17"},
    {"hone verify --device emu:h20 " MOE("contiguous", "f32-1x128-128x128", "128"), 0, MOE_SAYS},
    {"hone verify --device emu:h20 " MOE("contiguous", "ue8m0-1x32-32x32", "32"), 0, MOE_SAYS},
    {"hone verify --device emu:h20 " MOE("masked", "f32-1x128-128x128", "128"), 0, MOE_SAYS},
    {"hone verify --device emu:h20 " MOE("masked", "ue8m0-1x32-32x32", "32"), 0, MOE_SAYS},
    {"hone verify --device emu:h20 " MOE("psum", "f32-1x128-128x128", "128"), 0, MOE_SAYS},
    {"hone verify --device emu:h20 " MOE("psum", "ue8m0-1x32-32x32", "32"), 0, MOE_SAYS},
    {"hone verify --budget 1 --device emu:rtx4090 --problem "
     "moe_gemm:tokens=7,topk=2,experts=3,n=40,k=160,group_layout=psum,row_align=1,recipe=f32-1x128-"
     "128x128",
     0, "1 candidates, 0 not proved"},
    {"hone verify --budget 1 --device emu:rtx4090 --problem "
     "moe_gemm:tokens=7,topk=2,experts=3,n=40,k=160,group_layout=contiguous,row_align=1,recipe=f32-"
     "1x128-128x128",
     1, "labels finer than the tile"},
    {"hone bench --device emu:h20 --problem " FLOW_GEMM("16"), 0, "modelled"},
    {"hone bench --device emu:rtx4090 --problem " FLOW_KV, 0, "modelled"},
    {"hone compile --device emu:h20 --problem " FLOW_ACT, 0, "registers"},
    {"hone compile --sass --device emu:h20 --problem " FLOW_ACT, 0, "stall clocks"},
    {"hone compile --sass --device emu:h20 --problem " FLOW_GEMM("16"), 0, "of the tensor peak"},
    {"hone compile --sass --json --device emu:h20 --problem " FLOW_GEMM("16"), 0, "issue_clocks"},
};

START_TEST(candidates_are_tried_outside_a_sweep)
{
    program_run r = program_call(&here, "%s", trials[_i].line);

    ck_assert_msg(r.exit_status == trials[_i].exit_status, "%s: exit %d: %.1000s%.1000s",
                  trials[_i].line, r.exit_status, r.out, r.err);
    ck_assert_msg(program_says(&r, trials[_i].says), "%s: '%s%s' lacks '%s'", trials[_i].line,
                  r.out, r.err, trials[_i].says);
    program_free(&r);
}
END_TEST

static const struct {
    const char *line;
    size_t least; /* elements */
} documents[] = {
    {FLOW_TUNE "--json", 8},
    {"hone lookup --json --device emu:h20 --problem " FLOW_GEMM("15"), 1},
    {"hone lookup --json --device emu:h20 --problem " FLOW_GEMM("0"), 1},
    {"hone store check --json", 8},
    {"hone store list --json", 12},
    {"hone report --json", 2},
    {"hone verify --json --budget 1 --device emu:h20 --problem " FLOW_GEMM("16"), 1},
    {"hone bench --json --device emu:h20 --problem " FLOW_GEMM("16"), 1},
    {"hone compile --json --device emu:h20 --problem " FLOW_GEMM("16"), 1},
};

START_TEST(results_are_json_when_asked)
{
    json_t *root = program_json(&here, documents[_i].line);
    size_t len = json_is_array(root) ? json_array_size(root) : json_object_size(root);

    ck_assert_msg(len >= documents[_i].least, "%s: %zu elements", documents[_i].line, len);
    json_decref(root);
}
END_TEST

static size_t times_found(const char *text, const char *words)
{
    size_t count = 0;

    for (const char *at = strstr(text, words); at != NULL; at = strstr(at + 1, words)) {
        count++;
    }
    return count;
}

START_TEST(the_report_lists_each_problem_once)
{
    static const char *const problems[] = {"fp8_gemm:m=16,n=64,k=128,", "act_quant:m=5,k=256,",
                                           "kv_quant:tokens=9,pages=3,"};
    program_run text = program_call(&here, "hone report --device emu:h20");
    program_run json = program_call(&here, "hone report --device emu:h20 --json");

    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        ck_assert_uint_eq(times_found(text.out, problems[i]), 1);
        ck_assert_uint_eq(times_found(json.out, problems[i]), 1);
    }
    ck_assert_uint_eq(times_found(text.out, "us modelled"), 3);
    ck_assert_ptr_null(strstr(text.out, "us measured"));
    program_free(&text);
    program_free(&json);
}
END_TEST

static json_int_t number(json_t *row, const char *name)
{
    return json_integer_value(json_object_get(row, name));
}

/* By a file of problems, the one that was asked for more often first. */
START_TEST(a_forecast_says_what_the_sweep_then_does)
{
    static const char tune[] = "printf '2 " FLOW_ACT "\\n# more\\n3 " FLOW_KV "\\n2 " FLOW_ACT
                               "\\n' > asked.txt && hone tune --from asked.txt --device emu:h20 "
                               "--budget 4 --json --store forecast.db";
    char line[1024];

    snprintf(line, sizeof line, "%s --dry-run", tune);
    json_t *before = program_json(&here, line);
    program_run r = program_call(&here, "test ! -e forecast.db");
    ck_assert_int_eq(r.exit_status, 0);
    program_free(&r);
    ck_assert_int_eq(number(before, "problems"), 2);
    ck_assert_int_eq(number(before, "settled"), 0);
    json_t *done = program_json(&here, tune);
    ck_assert_int_eq(number(before, "candidates"), number(done, "tried") + number(done, "pruned"));
    ck_assert_int_gt(number(before, "kernels"), 0);
    ck_assert_int_eq(number(done, "unfinished"), 0);
    ck_assert_int_eq(number(done, "restarts"), 0);
    json_t *after = program_json(&here, line);
    ck_assert_int_eq(number(after, "settled"), 2);
    ck_assert_int_eq(number(after, "candidates"), 0);
    r = program_call(&here, "hone store list --json --store forecast.db");
    json_t *rows = json_loads(r.out, 0, NULL);
    ck_assert_ptr_nonnull(rows);
    const char *first = json_string_value(json_object_get(json_array_get(rows, 0), "problem"));
    ck_assert_msg(first != NULL && strncmp(first, "act_quant", 9) == 0, "%s", r.out);
    program_free(&r);
    json_decref(before);
    json_decref(done);
    json_decref(after);
    json_decref(rows);
}
END_TEST

/* What lies in the place besides the store, the kernel cache, and what the tests themselves put
 * into `run`. */
static char stray[PROGRAM_PATH_BYTES];

static int look_for_strays(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    static const char *const expected[] = {"/data/hone/", "/cache/hone/", "/run/"};
    const char *inside = path + strlen(here.folder);
    bool known = kind != FTW_F || (where->level == 1); /* what was printed */

    (void)about;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        known = known || strncmp(inside, expected[i], strlen(expected[i])) == 0;
    }
    if (!known) {
        snprintf(stray, sizeof stray, "%s", path);
    }
    return known ? 0 : 1;
}

START_TEST(nothing_is_written_elsewhere)
{
    char path[PROGRAM_PATH_BYTES];
    struct stat about;

    ck_assert_msg(nftw(here.folder, look_for_strays, 16, FTW_PHYS) == 0, "%s was written", stray);
    ck_assert_int_eq(stat(place_path(&here, "cache/hone", path), &about), 0);
    ck_assert_int_eq(about.st_mode & 0777, 0700);
    ck_assert_int_eq(stat(place_path(&here, PLACE_STORE, path), &about), 0);
    ck_assert_int_ne(stat(place_path(&here, PLACE_STORE "-wal", path), &about), 0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("flow");

    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, a_tuned_store_answers, 0, sizeof answers / sizeof answers[0]);
    tcase_add_loop_test(tests, candidates_are_tried_outside_a_sweep, 0,
                        sizeof trials / sizeof trials[0]);
    tcase_add_loop_test(tests, results_are_json_when_asked, 0,
                        sizeof documents / sizeof documents[0]);
    tcase_add_test(tests, the_report_lists_each_problem_once);
    tcase_add_test(tests, a_forecast_says_what_the_sweep_then_does);
    tcase_add_test(tests, nothing_is_written_elsewhere);
    return suite_run_here("cli/flow", tests);
}
