/* test_routing.c - a grouped product tuned under two distributions of tokens in one store: each
 * measured on its own rows, compared with its own, and named with the winner. */
#include "tests/cli/program.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

#define MOE                                                                                        \
    "moe_gemm:n=128,k=256,experts=8,tokens=16,topk=2,m=16,row_align=16,group_layout=masked,"       \
    "recipe=f32-1x128-128x128"
#define GEMM  "fp8_gemm:m=16,n=64,k=128,recipe=f32-1x128-128x128"
#define TUNE  "hone tune --device emu:h20 --budget 2 --problem " MOE " "
#define SHARE "echo '[0, 3, 0, 0, 20, 1, 0, 0]' >share.json; "

static place here;

static void setup(void)
{
    here = place_make();
}

static void teardown(void)
{
    place_remove(&here);
}

/* One run after another in one store, and what each must say. */
static const struct {
    const char *line;
    int exit_status;
    const char *says;
} steps[] = {
    {TUNE "--routing zipf --problem " GEMM, 0, "tokens zipf:1\n"},
    {TUNE "--routing zipf:1.0 --problem " GEMM, 0, "Nothing left to do: 2 problems"},
    {"hone lookup --device emu:h20 --problem " MOE, 0, "tokens zipf:1\n"},
    /* The other problem is not tried again, and the winner of before is. */
    {SHARE TUNE "--budget 1 --routing share.json --problem " GEMM, 0, "tokens histogram:"},
    {SHARE TUNE "--budget 1 --routing share.json --problem " GEMM, 0, "Nothing left to do"},
    {"hone report", 0, "(11 of 32 rows cut for want of room)"},
    {"hone lookup --device emu:h20 --problem " MOE, 0, "tokens histogram:"},
    {"hone bench --device emu:h20 --routing one --problem " MOE, 0, "tokens one\n"},
    {"hone bench --device emu:h20 --problem " MOE, 0, "tokens balanced\n"},
    {"hone lookup --device emu:h20 --problem " MOE, 0, "tokens histogram:"}, /* bench writes none */
    {TUNE, 0, "tokens balanced\n"},
    {"echo 1 2 3 >short.txt; " TUNE "--routing short.txt", 2,
     "has 3 numbers and the problem 8 experts"},
    {"echo 1 2 x >bad.txt; " TUNE "--routing bad.txt", 2, "bad.txt: what stands for number 3"},
    {TUNE "--routing nothing", 2, "nothing: neither a distribution nor a file"},
    {TUNE "--routing zipf:x", 2, "as in zipf:1.2"},
    {"hone store check", 0, "every row matches its digest"},
};

START_TEST(each_sweep_has_its_own_condition)
{
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        program_run r = program_call(&here, "%s", steps[i].line);
        ck_assert_msg(r.exit_status == steps[i].exit_status, "%s: exit %d: %.1000s%.1000s",
                      steps[i].line, r.exit_status, r.out, r.err);
        ck_assert_msg(program_says(&r, steps[i].says), "%s: '%s%s' lacks '%s'", steps[i].line,
                      r.out, r.err, steps[i].says);
        program_free(&r);
    }
}
END_TEST

/* The winner of a problem of the report, by the beginning of its text. */
static json_t *winner_of(json_t *report, const char *op)
{
    json_t *rows =
               json_object_get(json_array_get(json_object_get(report, "devices"), 0), "problems"),
           *row = NULL;
    size_t i = 0;

    json_array_foreach(rows, i, row)
    {
        if (strncmp(json_string_value(json_object_get(row, "problem")), op, strlen(op)) == 0) {
            return row;
        }
    }
    ck_abort_msg("no winner of %s", op);
    return NULL;
}

START_TEST(json_names_the_condition_and_its_rows)
{
    program_run r =
        program_call(&here, SHARE "%s", TUNE "--routing share.json --problem " GEMM " --json");

    ck_assert_msg(r.exit_status == 0, "%.1000s%.1000s", r.out, r.err);
    program_free(&r);
    json_t *report = program_json(&here, "hone report --json");
    const json_t *moe = winner_of(report, "moe_gemm:"), *gemm = winner_of(report, "fp8_gemm:");
    const char *tokens = json_string_value(json_object_get(moe, "tokens"));
    ck_assert_int_eq(strncmp(tokens, "histogram:", 10), 0);
    ck_assert_uint_eq(strlen(tokens), 10 + 32);
    /* 32 rows by 3, 20 and 1 of 24: 4, 27 and 1, of which 16 have room. */
    ck_assert_int_eq(json_integer_value(json_object_get(moe, "rows")), 21);
    ck_assert_int_eq(json_integer_value(json_object_get(moe, "rows_cut")), 11);
    ck_assert_str_eq(json_string_value(json_object_get(gemm, "tokens")), "uniform");
    json_t *answer = program_json(&here, "hone lookup --json --device emu:h20 --problem " MOE);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(answer, 0), "tokens")),
                     tokens);
    json_t *timed = program_json(&here, "hone bench --json --device emu:h20 --problem " MOE);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(timed, 0), "tokens")),
                     "balanced");
    json_decref(timed);
    json_decref(answer);
    json_decref(report);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("routing");

    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_test(tests, each_sweep_has_its_own_condition);
    tcase_add_test(tests, json_names_the_condition_and_its_rows);
    return suite_run_here("cli/routing", tests);
}
