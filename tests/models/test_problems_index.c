/* test_problems_index.c - what a model's indexer asks for: scores and their choice. */
#include "models/llm.h"

#include "core/problem.h"

#include "tests/support/suite.h"

#include <stdlib.h>

/* Widths are the keys that a layer scores at 128k tokens (shapes.md 2.7). */
static const struct {
    const char *model, *text[4];
    int32_t launches[4];
    size_t len;
} indexed[] = {
    {"deepseek-v3.2", {"topk:rows=64,width=131072,k=2048"}, {61}, 1},
    {"glm-5", {"topk:rows=64,width=131072,k=2048"}, {78}, 1},
    {"deepseek-v4-pro", {"topk:rows=64,width=32768,k=1024"}, {30}, 1},
    {"deepseek-v4.1-flash",
     {"topk:rows=64,width=65536,k=512", "topk:rows=64,width=131072,k=512",
      "topk:rows=64,width=131072,k=2048,pick=blocked,block=8,pin=1,drop=1",
      "topk:rows=64,width=16384,k=512,pick=listed,block=8"},
     {3, 1, 1, 4},
     4},
    {"qwen3-32b", {NULL}, {0}, 0},
};

START_TEST(indexers_ask_for_their_choice)
{
    const int64_t m = 64;
    llm_problem *problems = NULL;
    hone_error error = {0};
    llm *l = NULL;
    size_t len = 0;

    ck_assert_int_eq(llm_open(indexed[_i].model, &l, NULL), HONE_OK);
    ck_assert_msg(llm_problems(l, 1, 1, &m, 1, "topk", &problems, &len, &error) == HONE_OK, "%s",
                  error.message);
    ck_assert_uint_eq(len, indexed[_i].len);
    for (size_t i = 0; i < len; i++) {
        hone_problem want;
        ck_assert_int_eq(hone_problem_parse(indexed[_i].text[i], &want, &error), HONE_OK);
        ck_assert_mem_eq(&problems[i].problem, &want, sizeof want);
        ck_assert_int_eq(problems[i].launches, indexed[_i].launches[i]);
    }
    free(problems);
    llm_close(l);
}
END_TEST

/* Scores: of a request's token each in decode, of one prompt in prefill; keys as topk's columns. */
static const struct {
    const char *model;
    int64_t m;
    const char *text[4];
    int32_t launches[4];
    size_t len;
} scored[] = {
    {"deepseek-v3.2", 4096, {"mqa_logits:tokens=4096,keys=8192,heads=64"}, {61}, 1},
    {"deepseek-v3.2",
     256,
     {"mqa_logits_paged:batch=256,width=131072,pages=2049,heads=64,record=index_132-split-pow2_"
      "amax"},
     {61},
     1},
    {"glm-5",
     64,
     {"mqa_logits_paged:batch=64,width=131072,pages=2049,heads=32,record=index_132-split-pow2_"
      "amax"},
     {78},
     1},
    {"deepseek-v4-pro", 257, {"mqa_logits:tokens=257,keys=129,heads=64"}, {30}, 1},
    {"deepseek-v4.1-flash",
     4096,
     {"mqa_logits:tokens=4096,keys=4096,heads=32", "mqa_logits:tokens=4096,keys=8192,heads=32",
      "mqa_logits:tokens=4096,keys=4096,heads=32,element=e2m1",
      "mqa_logits:tokens=4096,keys=8192,heads=32,element=e2m1"},
     {3, 5, 3, 5},
     4},
    {"deepseek-v4.1-flash",
     1,
     {"mqa_logits_paged:batch=1,width=65536,pages=2049,heads=32,record=index_132-split-pow2_amax",
      "mqa_logits_paged:batch=1,width=131072,pages=2049,heads=32,record=index_132-split-pow2_amax",
      "mqa_logits_paged:batch=1,width=65536,pages=2049,heads=32,record=index_68-split-pow2_amax",
      "mqa_logits_paged:batch=1,width=131072,pages=2049,heads=32,record=index_68-split-pow2_amax"},
     {3, 5, 3, 5},
     4},
    {"qwen3-32b", 4096, {NULL}, {0}, 0},
};

START_TEST(indexers_ask_for_scores)
{
    llm_problem *problems = NULL;
    hone_error error = {0};
    llm *l = NULL;
    size_t len = 0;

    ck_assert_int_eq(llm_open(scored[_i].model, &l, NULL), HONE_OK);
    ck_assert_msg(llm_problems(l, 8, 1, &scored[_i].m, 1, "mqa_logits,mqa_logits_paged", &problems,
                               &len, &error) == HONE_OK,
                  "%s", error.message);
    ck_assert_uint_eq(len, scored[_i].len);
    for (size_t i = 0; i < len; i++) {
        hone_problem want;
        ck_assert_int_eq(hone_problem_parse(scored[_i].text[i], &want, &error), HONE_OK);
        ck_assert_mem_eq(&problems[i].problem, &want, sizeof want);
        ck_assert_int_eq(problems[i].launches, scored[_i].launches[i]);
    }
    free(problems);
    llm_close(l);
}
END_TEST

/* Queries and keys made ready: by a model's dims that turn, and its caches. */
static const struct {
    const char *model;
    int64_t m;
    const char *text[2];
    int32_t launches;
    size_t len;
} readied[] = {
    {"deepseek-v3.2",
     64,
     {"index_prepare:tokens=64,pages=1,heads=64,hadamard=1,record=index_132-split-pow2_amax"},
     61,
     1},
    {"glm-5",
     4096,
     {"index_prepare:tokens=4096,pages=64,heads=32,hadamard=1,record=index_132-split-pow2_amax"},
     78,
     1},
    {"deepseek-v4-pro",
     65,
     {"index_prepare:tokens=65,pages=2,heads=64,hadamard=1,rope=last,record=index_132-split-pow2_"
      "amax"},
     30,
     1},
    {"deepseek-v4.1-flash",
     64,
     {"index_prepare:tokens=64,pages=1,heads=32,rope=last,record=index_132-split-pow2_amax",
      "index_prepare:tokens=64,pages=1,heads=32,rope=last,record=index_68-split-pow2_amax"},
     8,
     2},
    {"qwen3-32b", 4096, {NULL}, 0, 0},
};

START_TEST(indexers_ask_for_queries_and_keys)
{
    llm_problem *problems = NULL;
    hone_error error = {0};
    llm *l = NULL;
    size_t len = 0;

    ck_assert_int_eq(llm_open(readied[_i].model, &l, NULL), HONE_OK);
    ck_assert_msg(llm_problems(l, 8, 1, &readied[_i].m, 1, "index_prepare", &problems, &len,
                               &error) == HONE_OK,
                  "%s", error.message);
    ck_assert_uint_eq(len, readied[_i].len);
    for (size_t i = 0; i < len; i++) {
        hone_problem want;
        ck_assert_int_eq(hone_problem_parse(readied[_i].text[i], &want, &error), HONE_OK);
        ck_assert_mem_eq(&problems[i].problem, &want, sizeof want);
        ck_assert_int_eq(problems[i].launches, readied[_i].launches);
    }
    free(problems);
    llm_close(l);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("problems_index");

    tcase_add_loop_test(tests, indexers_ask_for_their_choice, 0,
                        sizeof indexed / sizeof indexed[0]);
    tcase_add_loop_test(tests, indexers_ask_for_scores, 0, sizeof scored / sizeof scored[0]);
    tcase_add_loop_test(tests, indexers_ask_for_queries_and_keys, 0,
                        sizeof readied / sizeof readied[0]);
    return suite_run("models/problems_index", tests);
}
