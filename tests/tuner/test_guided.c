/* test_guided.c - the strategy that learns: what it proposes is legal and new, the same for a seed,
 * and better than chance on spaces whose optimum is known. */
#include "core/random.h"
#include "templates/space.h"
#include "templates/space_import.h"
#include "tuner/candidate_set.h"
#include "tuner/forest.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 4 tiles, 4 warps and 3 switches: 12 * 12 * 6 * 6 * 2 * 2 * 2 raw. */
static const char definition[] =
    "{\"params\": {\"m\": [8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 192, 256], "
    "\"n\": [8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 192, 256], \"u\": [1, 2, 4, 8, 16, 32], "
    "\"v\": [1, 2, 4, 8, 16, 32], \"x\": [0, 1], \"y\": [0, 1], \"z\": [0, 1]}, "
    "\"restrictions\": [\"m % u == 0 and n % v == 0\", \"u * v <= 256\"]}";

static manifest *m;
static space *s;

static void set_up(void)
{
    hone_error error = {0};

    ck_assert_msg(space_import("x", definition, strlen(definition), &m, &error) == HONE_OK, "%s",
                  error.message);
    ck_assert_int_eq(space_open(m, NULL, NULL, &s, &error), HONE_OK);
}

static void tear_down(void)
{
    space_close(s);
    manifest_free(m);
}

/* Made up: the best is m * n = 4096 with m / n = 4, u * v = 32, x = 1, z = 0. */
static double time_of(const config *c)
{
    const double tile = log2((double)(c->value[0] * c->value[1])) - 12;
    const double shape = log2((double)c->value[0] / (double)c->value[1]) - 2;
    const double threads = log2((double)(c->value[2] * c->value[3])) - 5;

    return 1000 * (1 + 0.3 * tile * tile + 0.05 * shape * shape + 0.2 * fabs(threads) +
                   (c->value[4] == 0 ? 0.5 : 0) + (c->value[6] == 1 ? 0.15 : 0));
}

/* A third of the space cannot be launched. */
static bool fails(const config *c)
{
    return c->value[0] * c->value[1] > 12288 || c->value[2] * c->value[3] < 8;
}

typedef struct outcome {
    config tried[400];
    size_t len;
    double best;
    size_t failed_early, failed_late; /* among the first 40, among the others */
} outcome;

static void search(const char *name, uint64_t budget, uint64_t seed, const config *seeds,
                   size_t seeds_len, bool failing, outcome *out)
{
    const strategy *way = strategy_find(name);
    const strategy_problem p = {
        .definition = m, .budget = budget, .seed = seed, .seeds = seeds, .seeds_len = seeds_len};
    void *state = calloc(1, way->state_size);
    hone_error error = {0};
    bool found = true, has = false;

    *out = (outcome){.best = HUGE_VAL};
    ck_assert_int_eq(way->start(state, &p, &error), HONE_OK);
    while (out->len < budget) {
        candidate c;
        ck_assert_msg(way->next(state, &c, &found, &error) == HONE_OK, "%s", error.message);
        if (!found) {
            break;
        }
        ck_assert_ptr_eq(c.m, m);
        ck_assert_int_eq(space_has(s, &c.config, &has, &error), HONE_OK);
        ck_assert(has);
        for (size_t i = 0; i < out->len; i++) {
            ck_assert(memcmp(out->tried[i].value, c.config.value, 7 * sizeof(int64_t)) != 0);
        }
        const bool failed = failing && fails(&c.config);
        const double ns = failed ? HUGE_VAL : time_of(&c.config);
        *(out->len < 40 ? &out->failed_early : &out->failed_late) += failed;
        out->best = fmin(out->best, ns);
        out->tried[out->len++] = c.config;
        if (way->learn != NULL) {
            ck_assert_int_eq(way->learn(state, &c, ns, &error), HONE_OK);
        }
    }
    way->stop(state);
    free(state);
}

START_TEST(proposals_are_legal_new_and_the_same_for_a_seed)
{
    static outcome a, b, other;
    size_t same = 0;

    search("guided", 150, 3, NULL, 0, false, &a);
    search("guided", 150, 3, NULL, 0, false, &b);
    search("guided", 150, 4, NULL, 0, false, &other);
    ck_assert_uint_eq(a.len, 150);
    ck_assert_uint_eq(b.len, 150);
    for (size_t i = 0; i < a.len; i++) {
        ck_assert_mem_eq(a.tried[i].value, b.tried[i].value, 7 * sizeof(int64_t));
        same += memcmp(a.tried[i].value, other.tried[i].value, 7 * sizeof(int64_t)) == 0;
    }
    ck_assert_uint_lt(same, 10);
}
END_TEST

/* The sum over ten seeds of log(best / optimum). */
static double regret(const char *name, uint64_t budget, bool failing)
{
    static outcome o;
    double sum = 0;

    for (uint64_t seed = 1; seed <= 10; seed++) {
        search(name, budget, seed, NULL, 0, failing, &o);
        sum += log(o.best / 1000);
    }
    return sum;
}

START_TEST(learning_beats_chance)
{
    /* Halving the logarithm is far below what ten runs of chance vary by. */
    ck_assert_double_lt(regret("guided", 50, _i == 1), 0.5 * regret("random", 50, _i == 1));
}
END_TEST

START_TEST(what_fails_is_avoided)
{
    static outcome o;
    size_t early = 0, late = 0;

    for (uint64_t seed = 1; seed <= 5; seed++) {
        search("guided", 120, seed, NULL, 0, true, &o);
        early += o.failed_early;
        late += o.failed_late; /* of twice as many */
    }
    ck_assert_uint_gt(early, 10);
    ck_assert_uint_lt(late, early);
}
END_TEST

START_TEST(a_space_in_which_all_fails_ends)
{
    static const char small[] = "{\"params\": {\"a\": [1, 2, 3, 4], \"b\": [0, 1, 2], \"c\": [7]}}";
    const strategy *way = strategy_find("guided");
    manifest *own = NULL;
    hone_error error = {0};
    bool found = true;
    size_t len = 0;

    ck_assert_int_eq(space_import("small", small, strlen(small), &own, &error), HONE_OK);
    const strategy_problem p = {.definition = own, .budget = 100, .seed = 1};
    void *state = calloc(1, way->state_size);
    ck_assert_int_eq(way->start(state, &p, &error), HONE_OK);
    while (found && len < 50) {
        candidate c;
        ck_assert_int_eq(way->next(state, &c, &found, &error), HONE_OK);
        if (found) {
            ck_assert_int_eq(way->learn(state, &c, HUGE_VAL, &error), HONE_OK);
            len++;
        }
    }
    ck_assert_uint_eq(len, 12);
    way->stop(state);
    free(state);
    manifest_free(own);
}
END_TEST

START_TEST(good_seeds_are_tried_first_and_bad_ones_given_up)
{
    static outcome warm, misled;
    const config best = {.len = 7, .value = {128, 32, 4, 8, 1, 0, 0}};
    config seeds[8], bad[8];
    size_t tried = 0;

    for (size_t i = 0; i < 8; i++) {
        seeds[i] = best;
        bad[i] = (config){.len = 7, .value = {8, 8, 1, 1, 0, 1, 1}};
        bad[i].value[0] = i < 4 ? 8 : 16;
        bad[i].value[1] = i < 4 ? 8 : 16;
        bad[i].value[2] = 1 << (i % 4);
    }
    seeds[0].value[2] = 7; /* no value of u: left out */
    seeds[2].value[5] = 1;
    search("guided", 20, 1, seeds, 8, false, &warm);
    ck_assert_mem_eq(warm.tried[0].value, best.value, 7 * sizeof(int64_t));
    ck_assert_mem_eq(warm.tried[1].value, seeds[2].value, 7 * sizeof(int64_t));
    ck_assert_uint_eq(warm.len, 20);
    search("guided", 50, 1, bad, 8, false, &misled);
    for (size_t i = 0; i < misled.len; i++) {
        for (size_t k = 0; k < 8; k++) {
            tried += memcmp(misled.tried[i].value, bad[k].value, 7 * sizeof(int64_t)) == 0;
        }
    }
    ck_assert_uint_ge(tried, 2);
    ck_assert_uint_lt(tried, 4);
    ck_assert_double_lt(misled.best, 1500);
}
END_TEST

/* ---- The forest. ---------------------------------------------------------------------------- */

START_TEST(a_forest_finds_a_step)
{
    enum { ROWS = 200, WIDTH = 4 };
    static float x[ROWS * WIDTH], y[ROWS];
    forest f = {0}, again = {0};
    uint64_t seed = 2;
    float mean = 0, spread = 0, other = 0;

    for (size_t i = 0; i < ROWS; i++) {
        for (size_t k = 0; k < WIDTH; k++) {
            x[k * ROWS + i] = (float)random_unit(&seed);
        }
        y[i] = x[ROWS + i] > 0.5f ? 3 : 1;
    }
    ck_assert(forest_grow(&f, x, y, ROWS, WIDTH, 9));
    ck_assert(forest_grow(&again, x, y, ROWS, WIDTH, 9));
    for (int i = 0; i < 100; i++) {
        float row[WIDTH];
        for (size_t k = 0; k < WIDTH; k++) {
            row[k] = (float)random_unit(&seed);
        }
        forest_ask(&f, row, &mean, &spread);
        forest_ask(&again, row, &other, &spread);
        ck_assert_float_eq(mean, other);
        if (fabsf(row[1] - 0.5f) > 0.1f) {
            ck_assert((mean > 2) == (row[1] > 0.5f));
        }
        ck_assert_float_ge(spread, 0);
    }
    /* One row, and rows that are all alike, are their mean. */
    y[1] = 9;
    x[1] = x[0] = 4;
    ck_assert(forest_grow(&f, x, y, 1, 1, 1));
    forest_ask(&f, x, &mean, &spread);
    ck_assert_float_eq(mean, y[0]);
    ck_assert_float_eq(spread, 0);
    ck_assert(forest_grow(&f, x, y, 2, 1, 1));
    forest_ask(&f, x, &mean, &spread);
    ck_assert_float_eq_tol(mean, (y[0] + y[1]) / 2, 1e-5f);
    forest_free(&f);
    forest_free(&again);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("guided");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, proposals_are_legal_new_and_the_same_for_a_seed);
    tcase_add_loop_test(tests, learning_beats_chance, 0, 2);
    tcase_add_test(tests, what_fails_is_avoided);
    tcase_add_test(tests, a_space_in_which_all_fails_ends);
    tcase_add_test(tests, good_seeds_are_tried_first_and_bad_ones_given_up);
    tcase_add_test(tests, a_forest_finds_a_step);
    return suite_run("tuner/guided", tests);
}
