/* test_problem_prepare.c - an indexer's queries and keys made ready: what is no problem, by its
 * field; defaults, operands and bytes; keys that never change. */
#include "core/problem.h"
#include "tests/core/parsed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static hone_error e;

#define ONE "index_prepare:tokens=1,pages=2,heads=8,"
#define FP8 "record=index_132-split-raw_amax"
static const parsed_wrong wrong[] = {
    {"index_prepare:pages=2,heads=8," FP8, HONE_BAD_TEXT, "tokens"},
    {"index_prepare:tokens=1,heads=8," FP8, HONE_BAD_TEXT, "pages"},
    {"index_prepare:tokens=1,pages=2," FP8, HONE_BAD_TEXT, "heads"},
    {"index_prepare:tokens=1,pages=2,heads=8", HONE_BAD_TEXT, "record"},
    {"index_prepare:tokens=1,pages=2,heads=24," FP8, HONE_BAD_PROBLEM, "heads=24"},
    {"index_prepare:tokens=1,pages=2,heads=128," FP8, HONE_BAD_PROBLEM, "heads=128"},
    {"index_prepare:tokens=300000000,pages=2,heads=8," FP8, HONE_BAD_PROBLEM, "tokens"},
    {ONE "rope=off,pairs=halves," FP8, HONE_BAD_PROBLEM, "pairs"},
    {ONE "rope=middle," FP8, HONE_BAD_TEXT, "rope=middle"},
    {ONE "hadamard=2," FP8, HONE_BAD_PROBLEM, "hadamard=2"},
    {ONE "record=v41_528-split-pow2_amax", HONE_BAD_PROBLEM, "record_format"},
    {ONE "record=index_68-split-raw_amax", HONE_BAD_PROBLEM, "record_rule"},
    {ONE "page_stride=8447," FP8, HONE_BAD_PROBLEM, "page_stride=8447"},
    {ONE "align=2," FP8, HONE_BAD_PROBLEM, "align=2"},
    {ONE "align=12," FP8, HONE_BAD_PROBLEM, "align=12"},
};

START_TEST(each_refusal_names_its_field)
{
    parsed_refuses(&wrong[_i]);
}
END_TEST

static const struct {
    const char *text;
    int32_t align;
    uint64_t bytes[10];
    double moved;
} good[] = {
    {"index_prepare:tokens=7,pages=9,heads=16,page_size=32," FP8,
     16,
     {7 * 16 * 256, 7 * 256, 7 * 256, 56, 7 * 64, 7 * 16 * 128, 0, 9 * 32 * 132, 8, 8},
     7 * (16 * (256 + 8 + 128) + 256 + 256 + 8 + 132)},
    {"index_prepare:tokens=7,pages=9,heads=8,page_size=32,page_stride=2180,rope=off,"
     "record=index_68-split-pow2_tiny",
     4,
     {7 * 8 * 256, 7 * 256, 0, 56, 7 * 32, 7 * 8 * 64, 7 * 32, 8 * 2180 + 32 * 68, 8, 8},
     7 * (8 * (256 + 8 + 64 + 4) + 256 + 8 + 68)},
};

START_TEST(operands_and_bytes)
{
    static const int32_t access[] = {1, 1, 1, 1, 3, 2, 2, 3, 3, 3};
    const hone_problem p = parsed(good[_i].text);
    hone_operand o[HONE_MAX_OPERANDS];
    double flop = 1, bytes = 0;
    size_t count = 0;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    ck_assert_uint_eq(count, 10);
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(o[i].bytes == good[_i].bytes[i], "%s: %llu bytes", o[i].name,
                      (unsigned long long)o[i].bytes);
        ck_assert_int_eq(o[i].access, access[i]);
    }
    ck_assert_int_eq(p.as.index_prepare.align, good[_i].align);
    problem_work(&p, &flop, &bytes);
    ck_assert_double_eq(flop, 0);
    ck_assert_double_eq_tol(bytes, good[_i].moved, 1e-9);
    ck_assert(!problem_is_empty(&p));
}
END_TEST

/* Stores hold keys: their bytes are frozen. */
START_TEST(keys_never_change_between_versions)
{
    static const uint8_t want[] = {
        3,  15, 0, 0, 0,           /* version, op */
        5,  0,  0, 0, 0,  0, 0, 0, /* tokens */
        44, 1,  0, 0, 0,  0, 0, 0, /* pages */
        0,  34, 0, 0, 0,  0, 0, 0, /* page_stride */
        32, 0,  0, 0, 64, 0, 0, 0, /* heads, page_size */
        3,  0,  0, 0, 2,  0, 0, 0, /* rope last, pairs halves */
        1,  0,  0, 0,              /* hadamard */
        6,  0,  0, 0, 1,  0, 0, 0, /* record: index_68, split */
        5,  0,  0, 0, 1,  0, 0, 0, /* pow2_tiny, version */
        16, 0,  0, 0,              /* align */
    };
    const hone_problem p = parsed("index_prepare:tokens=5,pages=300,page_stride=8704,heads=32,rope="
                                  "last,pairs=halves,hadamard=1,record=index_68-split-pow2_tiny");
    uint8_t key[PROBLEM_KEY_MAX];

    ck_assert_uint_eq(problem_key(&p, key), sizeof want);
    ck_assert_mem_eq(key, want, sizeof want);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("problem_prepare");

    tcase_add_loop_test(tests, each_refusal_names_its_field, 0, (int)ARRAY_LEN(wrong));
    tcase_add_loop_test(tests, operands_and_bytes, 0, (int)ARRAY_LEN(good));
    tcase_add_test(tests, keys_never_change_between_versions);
    return suite_run("core/problem_prepare", tests);
}
