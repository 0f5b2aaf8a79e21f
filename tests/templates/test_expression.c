/* test_expression.c - formulas mean what C means, and every fault is a status that names formula
 * and line. */
#include "templates/expression.h"
#include "tests/support/suite.h"
#include "core/random.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 4

/* a, b, c, d are slots 0 to 3; "nine" is a number. */
static bool find(const void *context, const char *name, size_t len, expression_symbol *out)
{
    (void)context;
    *out = (expression_symbol){0};
    if (len == 4 && memcmp(name, "nine", 4) == 0) {
        *out = (expression_symbol){.constant = true, .value = 9};
        return true;
    }
    out->slot = (uint32_t)(name[0] - 'a');
    return len == 1 && name[0] >= 'a' && name[0] < 'a' + SLOTS;
}

static const expression_scope scope = {find, NULL};

static hone_status compile(const char *text, expression **out, hone_error *error)
{
    return expression_compile("x.yaml", 7, text, strlen(text), &scope, out, error);
}

static const struct {
    const char *text;
    int64_t value;
} values[] = {
    {"1 + 2 * 3", 7},
    {"(1 + 2) * 3", 9},
    {"10 - 4 - 3", 3},
    {"-7 / 2", -3},
    {"-7 % 2", -1},
    {"7 / -2", -3},
    {"2 - -3", 5},
    {"!5", 0},
    {"!0 + 1", 2},
    {"1 < 2 == 1", 1},
    {"3 > 2 > 1", 0},
    {"1 || 0 && 0", 1},
    {"5 && 7", 1},
    {"0 || 9", 1},
    {"1 ? 2 : 3", 2},
    {"0 ? 2 : 0 ? 4 : 5", 5},
    {"true + true - false", 2},
    {"ceil_div(7, 2)", 4},
    {"ceil_div(-7, 2)", -3},
    {"ceil_div(8, 2)", 4},
    {"round_up(7, 4)", 8},
    {"round_up(8, 4)", 8},
    {"min(3, -2)", -2},
    {"max(3, max(4, 1))", 4},
    {"pow2(0)", 1},
    {"pow2(62)", INT64_C(1) << 62},
    {"log2(1)", 0},
    {"log2(1023)", 9},
    {"log2(1024)", 10},
    {"nine", 9},
    {"9223372036854775807", INT64_MAX},
    {"0 && 1 / 0", 0},
    {"1 || 1 / 0", 1},
    {"1 ? 4 : 1 / 0", 4},
    {"a == 0 ? 1 : b / a", 1},
    {"a != 0 && b / a > 1", 0},
    {"a == 0 || b % a", 1},
    {"b * c + d", 18},
    {"c - (b - (d - 1))", 6},
    {"(b < c) + (c < d) * 10", 11},
    {" b\t*c ", 12},
};

START_TEST(an_expression_has_its_value)
{
    static const int64_t slots[SLOTS] = {0, 3, 4, 6};
    static const bool known[SLOTS] = {true, true, true, true};
    const bool some[SLOTS] = {_i % 2 == 0, _i % 3 == 0, false, true};
    expression *e = NULL, *bound = NULL, *partly = NULL;
    hone_error error = {0};
    int64_t value = 0;

    ck_assert_msg(compile(values[_i].text, &e, &error) == HONE_OK, "%s", error.message);
    ck_assert_int_eq(expression_evaluate(e, slots, &value, &error), HONE_OK);
    ck_assert_int_eq(value, values[_i].value);
    int64_t again = ~value;
    ck_assert_int_eq(expression_bind(e, slots, known, &bound, &error), HONE_OK);
    ck_assert_int_eq(expression_evaluate(bound, slots, &again, &error), HONE_OK);
    ck_assert_int_eq(again, value);
    for (uint32_t i = 0; i < SLOTS; i++) {
        ck_assert(!expression_uses(bound, i));
    }
    ck_assert_int_eq(expression_bind(e, slots, some, &partly, &error), HONE_OK);
    ck_assert_int_eq(expression_evaluate(partly, slots, &again, &error), HONE_OK);
    ck_assert_int_eq(again, value);
    expression_free(e);
    expression_free(bound);
    expression_free(partly);
}
END_TEST

static const struct {
    const char *text;
    hone_status status;
} refused[] = {
    {"", HONE_BAD_MANIFEST},
    {"1 +", HONE_BAD_MANIFEST},
    {"(1", HONE_BAD_MANIFEST},
    {"1)", HONE_BAD_MANIFEST},
    {"1 2", HONE_BAD_MANIFEST},
    {"a = b", HONE_BAD_MANIFEST},
    {"a & b", HONE_BAD_MANIFEST},
    {"a ? b", HONE_BAD_MANIFEST},
    {"e", HONE_BAD_MANIFEST},
    {"system(a)", HONE_BAD_MANIFEST},
    {"a; b", HONE_BAD_MANIFEST},
    {"$(a)", HONE_BAD_MANIFEST},
    {"`a`", HONE_BAD_MANIFEST},
    {"\"a\"", HONE_BAD_MANIFEST},
    {"min(1)", HONE_BAD_MANIFEST},
    {"min(1, 2, 3)", HONE_BAD_MANIFEST},
    {"min", HONE_BAD_MANIFEST},
    {"_a", HONE_BAD_MANIFEST},
    {"0x10", HONE_BAD_MANIFEST},
    {"010", HONE_BAD_MANIFEST},
    {"1.5", HONE_BAD_MANIFEST},
    {"12a", HONE_BAD_MANIFEST},
    {"9223372036854775808", HONE_OVERFLOW},
};

START_TEST(what_is_no_expression_is_refused_with_its_line)
{
    expression *e = NULL;
    hone_error error = {0};

    ck_assert_int_eq(compile(refused[_i].text, &e, &error), refused[_i].status);
    ck_assert_ptr_null(e);
    ck_assert_int_eq(error.line, 7);
    ck_assert_str_eq(error.source, "x.yaml");
    ck_assert_ptr_nonnull(strstr(error.message, refused[_i].text));
}
END_TEST

static const struct {
    const char *text;
    hone_status status;
} faults[] = {
    {"1 / a", HONE_BAD_MANIFEST},
    {"1 % a", HONE_BAD_MANIFEST},
    {"1 / 0", HONE_BAD_MANIFEST},
    {"ceil_div(1, a)", HONE_BAD_MANIFEST},
    {"ceil_div(1, 0 - b)", HONE_BAD_MANIFEST},
    {"round_up(1, a)", HONE_BAD_MANIFEST},
    {"log2(a)", HONE_BAD_MANIFEST},
    {"pow2(0 - b)", HONE_BAD_MANIFEST},
    {"pow2(63)", HONE_OVERFLOW},
    {"d + 1", HONE_OVERFLOW},
    {"0 - c - 2 - d", HONE_OVERFLOW},
    {"d * 2", HONE_OVERFLOW},
    {"(0 - d - 1) / (0 - 1)", HONE_OVERFLOW},
    {"(0 - d - 1) % (0 - 1)", HONE_OVERFLOW},
    {"-(0 - d - 1)", HONE_OVERFLOW},
    {"round_up(d, 2)", HONE_OVERFLOW},
};

START_TEST(a_fault_is_a_status_that_names_the_formula)
{
    static const int64_t slots[SLOTS] = {0, 3, 4, INT64_MAX};
    expression *e = NULL;
    hone_error error = {0};
    int64_t value = 77;

    ck_assert_msg(compile(faults[_i].text, &e, &error) == HONE_OK, "%s", error.message);
    ck_assert_int_eq(expression_evaluate(e, slots, &value, &error), faults[_i].status);
    ck_assert_int_eq(value, 77);
    ck_assert_int_eq(error.line, 7);
    ck_assert_ptr_nonnull(strstr(error.message, faults[_i].text));
    expression_free(e);
}
END_TEST

static void repeat(char *text, size_t capacity, const char *part, int times, const char *end)
{
    size_t used = 0;

    for (int i = 0; i < times; i++) {
        used += (size_t)snprintf(text + used, capacity - used, "%s", part);
    }
    snprintf(text + used, capacity - used, "%s", end);
}

static const struct {
    const char *name, *part, *end;
    int times;
    hone_status status;
} limits[] = {
    {"31 open brackets", "(", "1", 31, HONE_BAD_MANIFEST}, /* not closed, but not too deep */
    {"33 open brackets", "(", "1", 33, HONE_LIMIT},
    {"200 nots", "!", "1", 200, HONE_LIMIT},
    {"200 minuses", "-", "1", 200, HONE_LIMIT},
    {"60 choices to the right", "1?1:", "1", 60, HONE_LIMIT},
    {"a sum of 128 terms", "1+", "1", 127, HONE_OK},
    {"257 bytes", "1+", "1", 128, HONE_LIMIT},
    {"10,000 bytes", "1+", "1", 5000, HONE_LIMIT},
    {"calls in calls", "max(1,", "1", 40, HONE_LIMIT},
};

START_TEST(length_and_depth_are_bounded)
{
    char text[16384];
    expression *e = NULL;
    hone_error error = {0};

    repeat(text, sizeof text, limits[_i].part, limits[_i].times, limits[_i].end);
    ck_assert_int_eq(compile(text, &e, &error), limits[_i].status);
    expression_free(e);
}
END_TEST

/* ---- Random formulas against an evaluation in 128 bits. -------------------------------------- */

typedef struct outcome {
    bool fault;
    int64_t value;
} outcome;

static uint64_t state;

static uint32_t pick(uint32_t below)
{
    return (uint32_t)(random_next(&state) % below);
}

static outcome narrow(__int128 x)
{
    return (outcome){x > INT64_MAX || x < INT64_MIN, (int64_t)x};
}

static outcome combine(int op, outcome x, outcome y)
{
    __int128 a = x.value, b = y.value;

    if (x.fault || y.fault || (op >= 3 && op <= 4 && b == 0)) {
        return (outcome){.fault = true};
    }
    switch (op) {
    case 0:
        return narrow(a + b);
    case 1:
        return narrow(a - b);
    case 2:
        return narrow(a * b);
    case 3:
        return narrow(a / b);
    case 4:
        return (outcome){a == INT64_MIN && b == -1, b == -1 ? 0 : (int64_t)(a % b)};
    case 5:
        return (outcome){false, a == b};
    case 6:
        return (outcome){false, a < b};
    default:
        return (outcome){false, a >= b};
    }
}

/* Write a random formula, fully bracketed, and say what C makes of it. */
static outcome grow(char *text, size_t *used, int depth, const int64_t *slots)
{
    static const char *const ops[] = {"+", "-", "*", "/", "%", "==", "<", ">="};

    if (depth == 0 || pick(5) == 0) {
        uint32_t slot = pick(SLOTS + 1);
        int64_t number = pick(4);
        *used += (size_t)(slot < SLOTS ? sprintf(text + *used, "%c", (int)('a' + slot))
                                       : sprintf(text + *used, "%d", (int)number));
        return (outcome){false, slot < SLOTS ? slots[slot] : number};
    }
    uint32_t kind = pick(10);
    *used += (size_t)sprintf(text + *used, "(");
    outcome x = grow(text, used, depth - 1, slots), made = x;
    if (kind == 0) {
        *used += (size_t)sprintf(text + *used, "&&");
        outcome y = grow(text, used, depth - 1, slots);
        made = x.fault || x.value == 0 ? x : (outcome){y.fault, y.value != 0};
    } else if (kind == 1) {
        *used += (size_t)sprintf(text + *used, "||");
        outcome y = grow(text, used, depth - 1, slots);
        made = x.fault ? x : x.value != 0 ? (outcome){false, 1} : (outcome){y.fault, y.value != 0};
    } else if (kind == 2) {
        *used += (size_t)sprintf(text + *used, "?");
        outcome y = grow(text, used, depth - 1, slots);
        *used += (size_t)sprintf(text + *used, ":");
        outcome z = grow(text, used, depth - 1, slots);
        made = x.fault ? x : x.value != 0 ? y : z;
    } else {
        uint32_t op = pick(ARRAY_LEN(ops));
        *used += (size_t)sprintf(text + *used, "%s", ops[op]);
        made = combine((int)op, x, grow(text, used, depth - 1, slots));
    }
    *used += (size_t)sprintf(text + *used, ")");
    return made;
}

START_TEST(random_formulas_agree_with_c)
{
    static const int64_t edges[] = {0, 1, -1, 2, 7, INT64_MAX, INT64_MIN, 1 << 20, -3};
    const char *seed = getenv("HONE_SEED");
    int checked = 0, faulted = 0;

    state = seed != NULL ? strtoull(seed, NULL, 10) : 20261129;
    for (int round = 0; round < 50000; round++) {
        char text[8192];
        size_t used = 0;
        int64_t slots[SLOTS], value = 0;
        bool known[SLOTS];
        expression *e = NULL, *partly = NULL;

        for (int i = 0; i < SLOTS; i++) {
            slots[i] = edges[pick(ARRAY_LEN(edges))];
            known[i] = pick(2) == 0;
        }
        outcome expected = grow(text, &used, 4, slots);
        if (used > EXPRESSION_MAX_BYTES) {
            continue;
        }
        ck_assert_msg(compile(text, &e, NULL) == HONE_OK, "%s", text);
        ck_assert_int_eq(expression_bind(e, slots, known, &partly, NULL), HONE_OK);
        const expression *const both[] = {e, partly};
        for (int i = 0; i < 2; i++) {
            expression_fault fault = expression_run(both[i], slots, &value);
            ck_assert_msg((fault != EXPRESSION_FINE) == expected.fault, "%s", text);
            ck_assert_msg(expected.fault || value == expected.value, "%s", text);
        }
        checked++;
        faulted += expected.fault;
        expression_free(e);
        expression_free(partly);
    }
    ck_assert_int_gt(checked, 10000);
    ck_assert_int_gt(faulted, 1000);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("expression");

    tcase_add_loop_test(tests, an_expression_has_its_value, 0, (int)ARRAY_LEN(values));
    tcase_add_loop_test(tests, what_is_no_expression_is_refused_with_its_line, 0,
                        (int)ARRAY_LEN(refused));
    tcase_add_loop_test(tests, a_fault_is_a_status_that_names_the_formula, 0,
                        (int)ARRAY_LEN(faults));
    tcase_add_loop_test(tests, length_and_depth_are_bounded, 0, (int)ARRAY_LEN(limits));
    tcase_add_test(tests, random_formulas_agree_with_c);
    return suite_run("templates/expression", tests);
}
