/* test_families.c - the order in which sizes are tuned: ends first, then middles, whatever lies
 * between them in the list. */
#include "tests/support/suite.h"
#include "tuner/families.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 32 };

static size_t parse(const char *const *texts, size_t len, hone_problem out[MOST])
{
    hone_error error = {0};

    for (size_t i = 0; i < len; i++) {
        ck_assert_msg(hone_problem_parse(texts[i], &out[i], &error) == HONE_OK, "%s",
                      error.message);
    }
    return len;
}

START_TEST(ends_come_first_and_middles_between_them)
{
    static const char *const texts[] = {"act_quant:m=64,k=4096",   "act_quant:m=1,k=4096",
                                        "act_quant:m=4096,k=4096", "act_quant:m=7,k=7168",
                                        "act_quant:m=16,k=4096",   "act_quant:m=256,k=4096"};
    static const family_place expected[] = {{1, 1, 2},
                                            {0, FAMILIES_NONE, FAMILIES_NONE},
                                            {0, FAMILIES_NONE, FAMILIES_NONE},
                                            {0, FAMILIES_NONE, FAMILIES_NONE},
                                            {2, 1, 0},
                                            {2, 0, 2}};
    static const size_t in_order[] = {1, 2, 3, 0, 4, 5};
    hone_problem problems[MOST] = {0};
    family_place places[MOST];
    size_t order[MOST];
    const size_t len = parse(texts, ARRAY_LEN(texts), problems);

    ck_assert_int_eq(families_order(problems, len, places, order, NULL), HONE_OK);
    for (size_t i = 0; i < len; i++) {
        ck_assert_uint_eq(places[i].phase, expected[i].phase);
        ck_assert_uint_eq(places[i].below, expected[i].below);
        ck_assert_uint_eq(places[i].above, expected[i].above);
        ck_assert_uint_eq(order[i], in_order[i]);
    }
    ck_assert_int_eq(families_order(problems, 0, places, order, NULL), HONE_OK);
}
END_TEST

/* For any number of sizes: each once, neighbours of earlier phases and around it. */
START_TEST(every_size_lies_between_two_that_come_before)
{
    hone_problem problems[MOST] = {0};
    family_place places[MOST];
    size_t order[MOST], at[MOST];
    char text[64];

    for (size_t i = 0; i < (size_t)_i; i++) {
        const char *one = text;
        snprintf(text, sizeof text, "act_quant:m=%zu,k=4096", 1 + i * 7 % 31 * 3);
        parse(&one, 1, &problems[i]);
    }
    ck_assert_int_eq(families_order(problems, (size_t)_i, places, order, NULL), HONE_OK);
    memset(at, 0xff, sizeof at);
    for (size_t k = 0; k < (size_t)_i; k++) {
        ck_assert_uint_eq(at[order[k]], SIZE_MAX);
        at[order[k]] = k;
    }
    for (size_t i = 0; i < (size_t)_i; i++) {
        const family_place *p = &places[i];
        if (p->phase == 0) {
            continue;
        }
        const int64_t m = problems[i].as.act_quant.m;
        ck_assert_int_lt(problems[p->below].as.act_quant.m, m);
        ck_assert_int_gt(problems[p->above].as.act_quant.m, m);
        ck_assert_uint_lt(places[p->below].phase, p->phase);
        ck_assert_uint_lt(places[p->above].phase, p->phase);
        ck_assert(at[p->below] < at[i] && at[p->above] < at[i]);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("families");

    tcase_add_test(tests, ends_come_first_and_middles_between_them);
    tcase_add_loop_test(tests, every_size_lies_between_two_that_come_before, 0, 31);
    return suite_run("tuner/families", tests);
}
