/* test_problem_mqa.c - the indexer's scores: what is no problem, by its field; defaults, operands
 * and bytes; keys that never change. */
#include "core/problem.h"
#include "tests/core/parsed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static hone_error e;

#define PAGED "mqa_logits_paged:batch=1,width=8,pages=2,heads=8,"
#define FP8   "record=index_132-split-raw_amax"
static const parsed_wrong wrong[] = {
    {"mqa_logits:keys=8,heads=8", HONE_BAD_TEXT, "tokens"},
    {"mqa_logits:tokens=8,heads=8", HONE_BAD_TEXT, "keys"},
    {"mqa_logits:tokens=8,keys=8", HONE_BAD_TEXT, "heads"},
    {"mqa_logits:tokens=1,keys=8,heads=24", HONE_BAD_PROBLEM, "heads=24"},
    {"mqa_logits:tokens=1,keys=8,heads=4", HONE_BAD_PROBLEM, "heads=4"},
    {"mqa_logits:tokens=1,keys=8,heads=128", HONE_BAD_PROBLEM, "heads=128"},
    {"mqa_logits:tokens=1,keys=8,heads=8,dims=96", HONE_BAD_PROBLEM, "dims=96"},
    {"mqa_logits:tokens=1,keys=8,heads=8,dims=32,element=e2m1", HONE_BAD_PROBLEM, "dims=32"},
    {"mqa_logits:tokens=1,keys=8,heads=8,element=bf16", HONE_BAD_PROBLEM, "element"},
    {"mqa_logits:tokens=1,keys=8,heads=8,span=ends", HONE_BAD_PROBLEM, "span"},
    {"mqa_logits:tokens=1,keys=8,heads=8,width=7", HONE_BAD_PROBLEM, "width=7"},
    {"mqa_logits:tokens=1,keys=8,heads=8,stride=7", HONE_BAD_PROBLEM, "stride=7"},
    {"mqa_logits:tokens=1,keys=8,heads=8,span=compressed,width=9,stride=8", HONE_BAD_PROBLEM,
     "stride=8"},
    {"mqa_logits:tokens=1,keys=8,heads=8,clean=2", HONE_BAD_PROBLEM, "clean=2"},
    {"mqa_logits:tokens=1,keys=8,heads=8,out=f16", HONE_BAD_PROBLEM, "out"},
    {"mqa_logits:tokens=1,keys=8,heads=8,align=2", HONE_BAD_PROBLEM, "align=2"},
    {"mqa_logits:tokens=1,keys=8,heads=8,align=12", HONE_BAD_PROBLEM, "align=12"},
    {"mqa_logits:tokens=1,keys=2147483648,heads=8", HONE_BAD_PROBLEM, "tokens"},
    {"mqa_logits:tokens=2147483647,keys=8,heads=8,stride=1099511627776", HONE_OVERFLOW, "logits"},
    {PAGED "record=v32_656-interleaved-pow2_scale", HONE_BAD_PROBLEM, "record_format"},
    {PAGED "record=index_132-interleaved-raw_amax", HONE_BAD_PROBLEM, "record_layout"},
    {PAGED "record=index_68-split-raw_amax", HONE_BAD_PROBLEM, "record_rule"},
    {PAGED FP8 ",page_size=48", HONE_BAD_PROBLEM, "page_size=48"},
    {PAGED FP8 ",page_stride=8447", HONE_BAD_PROBLEM, "page_stride=8447"},
    {PAGED FP8 ",page_stride=8450", HONE_BAD_PROBLEM, "multiple of 4"},
    {PAGED FP8 ",next_n=9", HONE_BAD_PROBLEM, "next_n=9"},
    {PAGED FP8 ",next_n=0", HONE_BAD_PROBLEM, "next_n=0"},
    {PAGED FP8 ",align=2", HONE_BAD_PROBLEM, "align=2"},
    {PAGED FP8 ",stride=7", HONE_BAD_PROBLEM, "stride=7"},
    {PAGED FP8 ",pages=0", HONE_BAD_TEXT, "pages"},
    {"mqa_logits_paged:batch=1,width=8,heads=8," FP8, HONE_BAD_TEXT, "pages"},
    {"mqa_logits_paged:batch=1,width=129,pages=2,heads=8,table_stride=2," FP8, HONE_BAD_PROBLEM,
     "table_stride=2"},
    {"mqa_logits_paged:batch=2147483647,width=8,pages=2,heads=8,next_n=2," FP8, HONE_BAD_PROBLEM,
     "batch"},
    {"mqa_logits_paged:batch=1,width=8,pages=2147483647,heads=8,page_stride=1099511627776," FP8,
     HONE_OVERFLOW, "cache"},
};

START_TEST(a_wrong_field_is_named_and_nothing_is_written)
{
    parsed_refuses(&wrong[_i]);
}
END_TEST

/* 7 query tokens, 50 keys; 3 requests of 2 tokens, pages of 32. `bytes` of operands in order. */
static const struct {
    const char *text;
    int32_t align;
    uint64_t bytes[8];
    double flop, moved;
} good[] = {
    {"mqa_logits:tokens=7,keys=50,heads=16",
     16,
     {7 * 16 * 128, 0, 50 * 128, 200, 7 * 64, 28, 28, 7 * 200},
     2.0 * 7 * 50 * 16 * 128,
     50 * 132 + 7 * (16 * 132 + 8 + 200)},
    {"mqa_logits:tokens=7,keys=50,heads=16,dims=64,element=e2m1,span=compressed,width=20,stride=32,"
     "out=bf16",
     16,
     {7 * 16 * 32, 7 * 16 * 4, 50 * 32, 200, 7 * 64, 28, 28, 7 * 64},
     2.0 * 7 * 50 * 16 * 64,
     50 * 36 + 7 * (16 * 40 + 8 + 40)},
    {"mqa_logits_paged:batch=3,width=64,pages=9,next_n=2,heads=16,page_size=32," FP8,
     16,
     {6 * 16 * 128, 0, 9 * 32 * 132, 6 * 64, 24, 3 * 2 * 4, 6 * 256},
     2.0 * 6 * 64 * 16 * 128,
     3 * (64 * 132 + 8) + 6 * (16 * 132 + 4 + 256)},
    {"mqa_logits_paged:batch=3,width=65,stride=80,pages=9,next_n=2,heads=16,page_size=32,"
     "page_stride=2180,table_stride=5,record=index_68-split-pow2_tiny,out=bf16",
     4,
     {6 * 16 * 64, 6 * 16 * 4, 8 * 2180 + 32 * 68, 6 * 64, 24, 3 * 5 * 4, 6 * 160},
     2.0 * 6 * 65 * 16 * 128,
     3 * (65 * 68 + 65 / 8.0) + 6 * (16 * 72 + 4 + 130)},
};

START_TEST(operands_and_bytes)
{
    const hone_problem p = parsed(good[_i].text);
    const bool paged = p.op == HONE_OP_MQA_LOGITS_PAGED;
    hone_operand o[HONE_MAX_OPERANDS];
    double flop = 1, bytes = 0;
    size_t count = 0;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    ck_assert_uint_eq(count, paged ? 7 : 8);
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(o[i].bytes == good[_i].bytes[i], "%s: %llu bytes", o[i].name,
                      (unsigned long long)o[i].bytes);
        ck_assert_int_eq(o[i].access, i == count - 1 ? 2 : 1);
    }
    ck_assert_str_eq(o[count - 1].name, "logits");
    ck_assert_int_eq(paged ? p.as.mqa_logits_paged.align : p.as.mqa_logits.align, good[_i].align);
    problem_work(&p, &flop, &bytes);
    ck_assert_double_eq(flop, good[_i].flop);
    ck_assert_double_eq_tol(bytes, good[_i].moved, 1e-9);
}
END_TEST

START_TEST(what_has_no_cell_is_empty)
{
    static const struct {
        const char *text;
        bool empty;
    } sizes[] = {
        {"mqa_logits:tokens=0,keys=8,heads=8", true},
        {"mqa_logits:tokens=8,keys=0,heads=8", true},
        {"mqa_logits:tokens=8,keys=0,width=4,span=compressed,heads=8,clean=1", false},
        {"mqa_logits:tokens=1,keys=1,heads=8", false},
        {"mqa_logits_paged:batch=0,width=8,pages=2,heads=8," FP8, true},
        {"mqa_logits_paged:batch=1,width=0,pages=2,heads=8," FP8, true},
        {"mqa_logits_paged:batch=1,width=1,pages=1,heads=8," FP8, false},
    };

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        const hone_problem p = parsed(sizes[i].text);
        ck_assert_msg(problem_is_empty(&p) == sizes[i].empty, "%s", sizes[i].text);
    }
}
END_TEST

/* Stores hold keys: their bytes are frozen. */
START_TEST(keys_never_change_between_versions)
{
    static const uint8_t want[] = {
        3,  13, 0, 0, 0,           /* version, op */
        5,  0,  0, 0, 0,  0, 0, 0, /* tokens */
        44, 1,  0, 0, 0,  0, 0, 0, /* keys */
        44, 1,  0, 0, 0,  0, 0, 0, /* width */
        0,  2,  0, 0, 0,  0, 0, 0, /* stride */
        32, 0,  0, 0, 64, 0, 0, 0, /* heads, dims */
        6,  0,  0, 0, 3,  0, 0, 0, /* element e2m1, span both */
        1,  0,  0, 0, 2,  0, 0, 0, /* clean, out bf16 */
        16, 0,  0, 0,              /* align */
    };
    static const uint8_t want_paged[] = {
        3,  14, 0, 0, 0,          /* version, op */
        5,  0,  0, 0, 0, 0, 0, 0, /* batch */
        44, 1,  0, 0, 0, 0, 0, 0, /* width */
        0,  2,  0, 0, 0, 0, 0, 0, /* stride */
        9,  0,  0, 0, 0, 0, 0, 0, /* pages */
        0,  33, 0, 0, 0, 0, 0, 0, /* page_stride */
        5,  0,  0, 0, 0, 0, 0, 0, /* table_stride */
        6,  0,  0, 0, 8, 0, 0, 0, /* next_n, heads */
        64, 0,  0, 0, 1, 0, 0, 0, /* page_size, index_132 */
        1,  0,  0, 0, 2, 0, 0, 0, /* split, raw_amax */
        1,  0,  0, 0, 1, 0, 0, 0, /* version, out f32 */
        16, 0,  0, 0,             /* align */
    };
    const hone_problem p = parsed(
        "mqa_logits:tokens=5,keys=300,stride=512,heads=32,dims=64,element=e2m1,clean=1,out=bf16");
    const hone_problem d =
        parsed("mqa_logits_paged:batch=5,width=300,stride=512,pages=9,next_n=6,heads=8," FP8);
    uint8_t key[PROBLEM_KEY_MAX];

    ck_assert_uint_eq(problem_key(&p, key), sizeof want);
    ck_assert_mem_eq(key, want, sizeof want);
    ck_assert_uint_eq(problem_key(&d, key), sizeof want_paged);
    ck_assert_mem_eq(key, want_paged, sizeof want_paged);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("problem_mqa");

    tcase_add_loop_test(tests, a_wrong_field_is_named_and_nothing_is_written, 0,
                        (int)ARRAY_LEN(wrong));
    tcase_add_loop_test(tests, operands_and_bytes, 0, (int)ARRAY_LEN(good));
    tcase_add_test(tests, what_has_no_cell_is_empty);
    tcase_add_test(tests, keys_never_change_between_versions);
    return suite_run("core/problem_mqa", tests);
}
