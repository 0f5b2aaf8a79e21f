/* test_launch.c - what is checked of a launch's arguments before anything runs. */
#include "tests/runtime/jit_fixture.h"
#include "tests/runtime/serving_fixture.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static const hone_arg good_args[] = {{0x100000, 64 * 256, 0},
                                     {0x200000, 64 * 2 * 4, 0},
                                     {0x300000, 256 * 256, 0},
                                     {0x400000, 2 * 2 * 4, 0},
                                     {0x500000, 64 * 256 * 2, 0}};

static const struct {
    const char *name;
    size_t index;
    hone_arg arg;
    size_t count;
    const char *message;
} bad_args[] = {
    {"too few operands", 0, {0x100000, 64 * 256, 0}, 4, "4 arguments"},
    {"too many", 0, {0x100000, 64 * 256, 0}, 6, "6 arguments"},
    {"a NULL operand", 2, {0, 256 * 256, 0}, 5, "operand b is NULL"},
    {"one byte short",
     4,
     {0x500000, 64 * 256 * 2 - 1, 0},
     5,
     "operand d has 32767 bytes; the problem needs 32768"},
    {"not aligned", 0, {0x100008, 64 * 256, 0}, 5, "operand a is not aligned to 16"},
    {"the output over an input", 4, {0x300000 + 256 * 256 - 16, 64 * 256 * 2, 0}, 5, "overlaps"},
    {"past the end of the address space", 4, {0xfffffffffffff000, 64 * 256 * 2, 0}, 5, "wraps"},
};

START_TEST(launches_check_their_arguments_first)
{
    hone_arg args[6];
    hone_choice choice;
    hone_error error = {.status = HONE_OK};

    hone_runtime *rt = serving_fixture_open("emu:h20", 0, 0);
    serving_fixture_prepare(rt, GEMM(64));
    ck_assert_int_eq(store_fixture_ask(rt, GEMM(64), &choice), HONE_OK);
    memcpy(args, good_args, sizeof good_args);
    args[5] = (hone_arg){0x600000, 4096, 0};
    args[bad_args[_i].index] = bad_args[_i].arg;
    hone_status status = hone_launch(&choice, args, bad_args[_i].count, NULL, &error);
    ck_assert_msg(status == HONE_BAD_ARGUMENT, "%s: %s", bad_args[_i].name, error.message);
    ck_assert_msg(strstr(error.message, bad_args[_i].message) != NULL, "%s: %s", bad_args[_i].name,
                  error.message);
    hone_close(rt);
}
END_TEST

/* A cache that says what it holds is neither read nor written as anything else (cases.md 10). */
START_TEST(a_cache_of_another_record_is_refused)
{
    static const char *const problems[] = {
        "kv_quant:tokens=4,pages=2,record=v41_528-split-pow2_amax",
        "kv_gather:tokens=4,pages=2,record=v41_528-split-pow2_amax",
        "mqa_logits_paged:batch=1,width=8,pages=2,heads=8,record=index_132-split-pow2_amax",
        "index_prepare:tokens=1,pages=2,heads=8,record=index_132-split-pow2_amax"};
    const hone_record interleaved = {HONE_KV_MLA_FP8_528, HONE_PAGE_INTERLEAVED,
                                     HONE_RULE_POW2_AMAX, 1};
    const hone_record raw = {HONE_KV_INDEX_FP8_132, HONE_PAGE_SPLIT, HONE_RULE_RAW_AMAX, 1};
    const hone_record other = _i >= 2 ? raw : interleaved;
    const char *const differs = _i >= 2 ? "record_rule differ" : "record_layout differ";
    const size_t cache = _i == 1 ? 0 : _i == 3 ? 7 : 2;
    hone_arg args[HONE_MAX_OPERANDS] = {{0, 0, 0}};
    hone_operand operands[HONE_MAX_OPERANDS];
    hone_error error = {.status = HONE_OK};
    hone_choice choice;
    size_t count = 0;

    hone_runtime *rt = serving_fixture_open("emu:h20", 0, 0);
    serving_fixture_prepare(rt, problems[_i]);
    ck_assert_int_eq(store_fixture_ask(rt, problems[_i], &choice), HONE_OK);
    ck_assert_int_eq(hone_operands(&choice.problem, operands, &count, &error), HONE_OK);
    for (size_t i = 0; i < count; i++) {
        args[i] = (hone_arg){(i + 1) << 24, operands[i].bytes, 0};
    }
    ck_assert_int_eq(hone_record_id(&other, 64, &args[cache].record, &error), HONE_OK);
    ck_assert_int_eq(hone_launch(&choice, args, count, NULL, &error), HONE_BAD_PROBLEM);
    ck_assert_msg(strstr(error.message, differs) != NULL, "%s", error.message);
    args[cache].record = 7;
    ck_assert_int_eq(hone_launch(&choice, args, count, NULL, &error), HONE_BAD_ARGUMENT);
    hone_close(rt);
}
END_TEST

/* cases.md 60 */
START_TEST(a_problem_without_rows_launches_nothing_and_succeeds)
{
    hone_choice choice;
    hone_error error = {.status = HONE_OK};

    hone_runtime *rt = serving_fixture_open("emu:h20", 0, 0);
    serving_fixture_prepare(rt, GEMM(0));
    ck_assert_int_eq(store_fixture_ask(rt, GEMM(0), &choice), HONE_OK);
    ck_assert_msg(hone_launch(&choice, NULL, 0, NULL, &error) == HONE_OK, "%s", error.message);
    hone_close(rt);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("launch");

    jit_fixture_need_nvrtc();
    serving_fixture_start();
    tcase_set_timeout(tests, 60);
    tcase_add_unchecked_fixture(tests, serving_fixture_write_usual, serving_fixture_remove);
    tcase_add_loop_test(tests, launches_check_their_arguments_first, 0, (int)ARRAY_LEN(bad_args));
    tcase_add_loop_test(tests, a_cache_of_another_record_is_refused, 0, 4);
    tcase_add_test(tests, a_problem_without_rows_launches_nothing_and_succeeds);
    const int result = suite_run("runtime/launch", tests);
    serving_fixture_stop();
    return result;
}
