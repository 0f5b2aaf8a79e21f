/* test_problem_topk.c - the choice of an indexer's best: what is no problem, by its field;
 * defaults, operands and bytes. */
#include "core/problem.h"
#include "tests/core/parsed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static hone_error e;

static const parsed_wrong wrong[] = {
    {"topk:rows=1,width=8", HONE_BAD_TEXT, "k"},
    {"topk:rows=1,k=8", HONE_BAD_TEXT, "width"},
    {"topk:width=8,k=8", HONE_BAD_TEXT, "rows"},
    {"topk:rows=1,width=8,k=0", HONE_BAD_PROBLEM, "k=0"},
    {"topk:rows=1,width=8,k=4097", HONE_BAD_PROBLEM, "k=4097"},
    {"topk:rows=1,width=8,k=2,in=f16", HONE_BAD_PROBLEM, "in"},
    {"topk:rows=1,width=8,k=2,stride=7", HONE_BAD_PROBLEM, "stride=7"},
    {"topk:rows=1,width=2147483648,k=2", HONE_BAD_PROBLEM, "width"},
    {"topk:rows=2147483648,width=8,k=2", HONE_BAD_PROBLEM, "rows"},
    {"topk:rows=1,width=8,k=2,block=8", HONE_BAD_PROBLEM, "block"},
    {"topk:rows=1,width=8,k=2,pick=blocked", HONE_BAD_PROBLEM, "block=1"},
    {"topk:rows=1,width=8,k=2,pick=blocked,block=12", HONE_BAD_PROBLEM, "block=12"},
    {"topk:rows=1,width=12,k=2,pick=listed,block=8", HONE_BAD_PROBLEM, "width=12"},
    {"topk:rows=1,width=8,k=2,pin=1", HONE_BAD_PROBLEM, "pin"},
    {"topk:rows=1,width=8,k=2,pick=listed,block=8,pin=1", HONE_BAD_PROBLEM, "pin"},
    {"topk:rows=1,width=8,k=2,align=12", HONE_BAD_PROBLEM, "align=12"},
    {"topk:rows=1,width=7,k=2,align=8", HONE_BAD_PROBLEM, "align=8"},
    {"topk:rows=1,width=8,k=2,align=2", HONE_BAD_PROBLEM, "align"},
    {"topk:rows=1,width=8,k=2,span=start", HONE_BAD_TEXT, "span"},
    {"topk:rows=1073741824,width=1073741824,stride=1099511627776,k=2", HONE_OVERFLOW, "scores"},
};

START_TEST(a_wrong_field_is_named_and_nothing_is_written)
{
    parsed_refuses(&wrong[_i]);
}
END_TEST

/* 7 rows of 48 columns, 50 apart, 5 of each. */
static const struct {
    const char *text;
    int32_t align;
    uint64_t bytes[5];
    double moved;
} good[] = {
    {"topk:rows=7,width=48,stride=50,k=5", 8, {7 * 50 * 4, 0, 28, 0, 140}, 7 * (192 + 4 + 20)},
    {"topk:rows=7,width=48,k=5,in=bf16,span=whole", 16, {7 * 48 * 2, 0, 0, 0, 140}, 7 * (96 + 20)},
    {"topk:rows=7,width=49,k=5,in=bf16,span=both", 2, {7 * 49 * 2, 28, 28, 0, 140}, 7 * 126},
    {"topk:rows=7,width=48,k=5,span=compressed,pick=listed,block=8",
     16,
     {7 * 48 * 4, 28, 28, 7 * 6 * 4, 140},
     7 * (192 + 8 + 24 + 20)},
};

START_TEST(operands_are_what_the_span_says)
{
    static const int32_t access[] = {1, 1, 1, 1, 2};
    const hone_problem p = parsed(good[_i].text);
    hone_operand o[HONE_MAX_OPERANDS];
    double flop = 1, bytes = 0;
    size_t count = 0;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    ck_assert_uint_eq(count, 5);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(o[i].bytes, good[_i].bytes[i]);
        ck_assert_int_eq(o[i].access, access[i]);
    }
    ck_assert_int_eq(p.as.topk.align, good[_i].align);
    problem_work(&p, &flop, &bytes);
    ck_assert_double_eq(flop, 0);
    ck_assert_double_eq(bytes, good[_i].moved);
}
END_TEST

START_TEST(rows_without_columns_are_written_all_the_same)
{
    const hone_problem none = parsed("topk:rows=0,width=8,k=2");
    const hone_problem narrow = parsed("topk:rows=2,width=0,k=2");

    ck_assert(problem_is_empty(&none));
    ck_assert(!problem_is_empty(&narrow));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("problem_topk");

    tcase_add_loop_test(tests, a_wrong_field_is_named_and_nothing_is_written, 0, ARRAY_LEN(wrong));
    tcase_add_loop_test(tests, operands_are_what_the_span_says, 0, ARRAY_LEN(good));
    tcase_add_test(tests, rows_without_columns_are_written_all_the_same);
    return suite_run("core/problem_topk", tests);
}
