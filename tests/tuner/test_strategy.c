/* test_strategy.c - every strategy of the table proposes legal candidates, none twice, the same
 * ones for a seed. */
#include "core/problem.h"
#include "models/gpu.h"
#include "tuner/candidate_set.h"
#include "tuner/strategy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char *const problems[] = {
    "fp8_gemm:m=256,n=384,k=512,recipe=f32-1x128-128x128",
    "fp8_gemm:m=1,n=33,k=64,recipe=f32-1x32-32x32",
    "act_quant:m=64,k=7168",
};

static templates *open_templates(void)
{
    templates *t = NULL;
    hone_error error = {0};

    ck_assert_msg(templates_open(&t, &error) == HONE_OK, "%s:%d: %s", error.source, error.line,
                  error.message);
    return t;
}

static const candidate_set *known; /* of the collections that follow; NULL: none */

static size_t collect(const templates *t, size_t which, const char *text, uint64_t budget,
                      uint64_t seed, candidate **out)
{
    hone_problem problem = {0};
    hone_error error = {0};
    gpu g;
    size_t len = 0;

    ck_assert_int_eq(gpu_find("h20", &g, &error), HONE_OK);
    ck_assert_msg(hone_problem_parse(text, &problem, &error) == HONE_OK, "%s", error.message);
    const strategy_problem p = {.templates = t,
                                .problem = &problem,
                                .gpu = &g,
                                .budget = budget,
                                .seed = seed,
                                .known = known};
    ck_assert_msg(strategy_collect(strategy_at(which), &p, out, &len, &error) == HONE_OK, "%s: %s",
                  strategy_at(which)->name, error.message);
    for (size_t i = 0; i < len; i++) {
        bool legal = false;
        char why[160] = "";
        ck_assert_int_eq(
            manifest_legal((*out)[i].m, &problem, &g.facts, &(*out)[i].config, &legal, why, &error),
            HONE_OK);
        ck_assert_msg(legal, "%s: %s", strategy_at(which)->name, why);
    }
    return len;
}

static bool same(const candidate *a, const candidate *b)
{
    return a->m == b->m &&
           memcmp(a->config.value, b->config.value, a->config.len * sizeof *a->config.value) == 0;
}

START_TEST(candidates_are_legal_distinct_and_repeatable)
{
    templates *t = open_templates();
    size_t which = (size_t)_i;

    for (size_t k = 0; k < ARRAY_LEN(problems); k++) {
        candidate *list = NULL, *again = NULL;
        size_t len = collect(t, which, problems[k], 16, 5, &list);
        ck_assert_uint_gt(len, 0);
        ck_assert_uint_le(len, 16);
        ck_assert_uint_eq(collect(t, which, problems[k], 16, 5, &again), len);
        for (size_t i = 0; i < len; i++) {
            ck_assert(same(&list[i], &again[i]));
            for (size_t j = 0; j < i; j++) {
                ck_assert(!same(&list[i], &list[j]));
            }
        }
        free(list);
        free(again);
    }
    templates_close(t);
}
END_TEST

START_TEST(a_budget_of_one_is_one_candidate)
{
    templates *t = open_templates();
    candidate *list = NULL;

    ck_assert_uint_eq(collect(t, (size_t)_i, problems[0], 1, 5, &list), 1);
    free(list);
    templates_close(t);
}
END_TEST

START_TEST(without_a_budget_all_strategies_find_all_configs_of_a_small_space)
{
    templates *t = open_templates();
    size_t exhaustive = 0, all = 0;
    candidate *list = NULL;

    for (size_t i = 0; i < strategy_len(); i++) {
        exhaustive = strategy_at(i) == strategy_find("exhaustive") ? i : exhaustive;
    }
    all = collect(t, exhaustive, problems[2], 0, 5, &list);
    free(list);
    list = NULL;
    ck_assert_uint_gt(all, 0);
    ck_assert_uint_eq(collect(t, (size_t)_i, problems[2], 0, 5, &list), all);
    free(list);
    templates_close(t);
}
END_TEST

/* How many of a second problem's candidates the first one has proposed. Rows that are no multiples
 * of 16 bytes: one template serves, its space is looked at whole, and what is known competes. */
static size_t overlap(const templates *t, const candidate_set *first)
{
    candidate *list = NULL;
    size_t shared = 0,
           len = collect(t, 0, "fp8_gemm:m=256,n=516,k=512,recipe=f32-1x128-128x128", 16, 5, &list);

    for (size_t i = 0; i < len; i++) {
        shared += candidate_set_has(first, &list[i]);
    }
    free(list);
    return shared;
}

START_TEST(what_another_problem_compiled_is_proposed_again)
{
    templates *t = open_templates();
    candidate_set first = {0};
    candidate *list = NULL;
    bool added = false;

    size_t len = collect(t, 0, "fp8_gemm:m=256,n=388,k=512,recipe=f32-1x128-128x128", 16, 5, &list);
    for (size_t i = 0; i < len; i++) {
        ck_assert_int_eq(candidate_set_add(&first, &list[i], &added, NULL), HONE_OK);
        ck_assert(added);
    }
    size_t alone = overlap(t, &first);
    known = &first;
    ck_assert_uint_gt(overlap(t, &first), alone);
    candidate_set_free(&first);
    free(list);
    templates_close(t);
}
END_TEST

START_TEST(names_find_their_strategy)
{
    for (size_t i = 0; i < strategy_len(); i++) {
        ck_assert_ptr_eq(strategy_find(strategy_at(i)->name), strategy_at(i));
        ck_assert_uint_gt(strlen(strategy_at(i)->summary), 8);
    }
    ck_assert_ptr_null(strategy_find("no such"));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("strategy");
    const int all = (int)strategy_len();

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, candidates_are_legal_distinct_and_repeatable, 0, all);
    tcase_add_loop_test(tests, a_budget_of_one_is_one_candidate, 0, all);
    tcase_add_loop_test(tests, without_a_budget_all_strategies_find_all_configs_of_a_small_space, 0,
                        all);
    tcase_add_test(tests, what_another_problem_compiled_is_proposed_again);
    tcase_add_test(tests, names_find_their_strategy);
    return suite_run("tuner/strategy", tests);
}
