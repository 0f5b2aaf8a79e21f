/* test_winner.c - the choice among times: clear, tied or not worth leaving the default, alike on
 * every machine. */
#include "cache/store.h"
#include "tuner/winner.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = 0, INCUMBENT = 1, ANCHOR = 2 };

typedef struct entry {
    double time_ns;
    int registers, shared_bytes;
    const char *config;
    int role;
} entry;

static const struct {
    const char *name;
    size_t len;
    entry entries[4];
    size_t winner;
    int32_t verdict;
} cases[] = {
    {"one candidate is clear", 1, {{100, 32, 0, "a", NONE}}, 0, STORE_VERDICT_CLEAR},
    {"the fastest by far is clear",
     3,
     {{120, 32, 0, "a", NONE}, {100, 99, 9, "b", NONE}, {110, 32, 0, "c", ANCHOR}},
     1,
     STORE_VERDICT_CLEAR},
    {"equals are tied and fewer registers win",
     3,
     {{100, 64, 0, "a", NONE}, {100.3, 32, 99, "b", NONE}, {150, 8, 0, "c", NONE}},
     1,
     STORE_VERDICT_TIE},
    {"then less shared memory",
     2,
     {{100, 64, 20, "a", NONE}, {100.3, 64, 10, "b", NONE}},
     1,
     STORE_VERDICT_TIE},
    {"then the config's text",
     2,
     {{100, 64, 10, "b", NONE}, {100.3, 64, 10, "a", NONE}},
     1,
     STORE_VERDICT_TIE},
    {"the default wins a tie",
     3,
     {{100, 32, 0, "a", NONE}, {100.4, 99, 9, "b", ANCHOR}, {100.1, 16, 0, "c", NONE}},
     1,
     STORE_VERDICT_TIE},
    {"the incumbent wins a tie against the default",
     3,
     {{100, 32, 0, "a", NONE}, {100.4, 99, 9, "b", ANCHOR}, {100.4, 99, 9, "c", INCUMBENT}},
     2,
     STORE_VERDICT_TIE},
    {"a gain of 0.8 % is not worth leaving the default",
     2,
     {{100, 32, 0, "a", NONE}, {100.8, 99, 9, "b", ANCHOR}},
     1,
     STORE_VERDICT_DEFAULT},
    {"a gain of 1.1 % is",
     2,
     {{100, 32, 0, "a", NONE}, {101.1, 99, 9, "b", ANCHOR}},
     0,
     STORE_VERDICT_CLEAR},
    {"a gain of 1.5 % is not worth leaving the incumbent",
     2,
     {{100, 32, 0, "a", NONE}, {101.5, 99, 9, "b", INCUMBENT}},
     1,
     STORE_VERDICT_TIE},
    {"a gain of 2.5 % is",
     2,
     {{100, 32, 0, "a", NONE}, {102.5, 99, 9, "b", INCUMBENT}},
     0,
     STORE_VERDICT_CLEAR},
};

START_TEST(a_winner_is_chosen_by_the_rules)
{
    winner_entry list[4] = {0};
    size_t index = 99;
    int32_t verdict = 0;
    hone_error error = {0};

    /* The order in which candidates were tried must not matter. */
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < cases[_i].len; i++) {
            const entry *e = &cases[_i].entries[turn == 0 ? i : cases[_i].len - 1 - i];
            list[i] = (winner_entry){
                (int64_t)i + 1, e->time_ns,           e->registers,     e->shared_bytes, "t",
                e->config,      e->role == INCUMBENT, e->role == ANCHOR};
        }
        ck_assert_int_eq(winner_choose(list, cases[_i].len, &index, &verdict, &error), HONE_OK);
        ck_assert_msg(strcmp(list[index].config, cases[_i].entries[cases[_i].winner].config) == 0,
                      "%s: chose %s", cases[_i].name, list[index].config);
        ck_assert_msg(verdict == cases[_i].verdict, "%s: %s", cases[_i].name,
                      store_verdict_name(verdict));
    }
}
END_TEST

START_TEST(nothing_to_choose_from_is_refused)
{
    size_t index = 7;
    int32_t verdict = 7;
    hone_error error = {0};

    ck_assert_int_eq(winner_choose(NULL, 0, &index, &verdict, &error), HONE_BAD_ARGUMENT);
    ck_assert_uint_eq(index, 7);
    ck_assert_int_eq(verdict, 7);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("winner");

    tcase_add_loop_test(tests, a_winner_is_chosen_by_the_rules, 0, (int)ARRAY_LEN(cases));
    tcase_add_test(tests, nothing_to_choose_from_is_refused);
    return suite_run("tuner/winner", tests);
}
