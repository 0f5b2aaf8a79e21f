/* test_expression_python.c - restrictions that are written in Python mean what Python means, and
 * what cannot be read is refused with its place. */
#include "core/random.h"
#include "templates/expression.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* a, b, c are slots 0 to 2; "k" is 32. */
static bool find(const void *context, const char *name, size_t len, expression_symbol *out)
{
    (void)context;
    *out = (expression_symbol){.constant = name[0] == 'k', .value = 32};
    out->slot = (uint32_t)(name[0] - 'a');
    return len == 1 && (name[0] == 'k' || (name[0] >= 'a' && name[0] <= 'c'));
}

static const expression_scope scope = {find, NULL};
static const expression_range ranges[EXPRESSION_MAX_SLOTS] = {{-8, 8}, {1, 64}, {0, 8}};

/* Whether all parts of `text` hold for a = 5, b = 6, c = 3 unless told otherwise. */
static bool holds(const char *text, const int64_t values[3])
{
    expression *parts[16];
    size_t len = 0;
    hone_error error = {0};
    bool all = true;

    ck_assert_msg(
        expression_compile_python("x", 1, text, &scope, ranges, parts, 16, &len, &error) == HONE_OK,
        "%s: %s", text, error.message);
    for (size_t i = 0; i < len; i++) {
        int64_t value = 0;
        ck_assert_int_eq(expression_run(parts[i], values, &value), EXPRESSION_FINE);
        all = all && value != 0;
        expression_free(parts[i]);
    }
    return all;
}

/* With a = -5, b = 6, c = 3; what Python 3 answers. */
static const struct {
    const char *text;
    bool value;
} python[] = {
    {"a % 3 == 1", true},
    {"a // 3 == -2", true},
    {"7 // -2 == -4 and 7 % -2 == -1", true},
    {"-7 % -2 == -1", true},
    {"b / 4 == 1.5", true},
    {"b / 4 == 1", false},
    {"b / 4 > 1", true},
    {"(b / 4) % 1 == 0.5", true},
    {"b % (b / 4) == 0", true},
    {"k % ((b * 8) / 5) == 0", false},
    {"(b / 4) // 1 == 1", true},
    {"b / 4 + c / 2 == 3", true},
    {"b / 4 - c / 2 == 0 and b / 4 * c == 4.5", true},
    {"a / b < -0.8", true},
    {"abs(a) == 5 and abs(a / b) < 1", true},
    {"int(b / 4) == 1 and int(-b / 4) == -1", true},
    {"1 < c <= 3 < b", true},
    {"1 < c < 3 < b", false},
    {"1 < c == 3", true},
    {"(1 < c) == 3", false},
    {"b in [2, 4, 6]", true},
    {"b not in (2, 4, 6)", false},
    {"b / 2 in (3,)", true},
    {"not c == 3 or b == 6", true},
    {"not (c == 3 or b == 7)", false},
    {"min(b, c, 9) == 3 and max(a, b / 4) == 1.5", true},
    {"2 ** c == 8 and b ** 2 == 36 and b**3 == 216", true},
    {"-c ** 2 == -9", true},
    {"(1 if c > 4 else 2) == 2", true},
    {"c if a == 0 else b == 6", true},
    {"True and not False", true},
    {"(c == 3) + (b == 6) == 2", true},
    {"c and b", true},
    {"c - 3 or 0", false},
    {"k == 32", true},
    {"c == 0 or b % c == 0", true},
    {"b <= (2 + 1 - 1 / b) * 3", true},
};

START_TEST(python_means_what_python_means)
{
    const int64_t values[] = {-5, 6, 3};

    ck_assert_msg(holds(python[_i].text, values) == python[_i].value, "%s", python[_i].text);
}
END_TEST

START_TEST(a_guard_keeps_a_division_by_zero_from_running)
{
    const int64_t zero[] = {1, 6, 0};
    expression *parts[4];
    size_t len = 0;
    int64_t value = 0;

    ck_assert(holds("c == 0 or b / c > 1", zero));
    ck_assert(!holds("c != 0 and b / c > 1", zero));
    ck_assert_int_eq(
        expression_compile_python("x", 1, "b / c > 1", &scope, ranges, parts, 4, &len, NULL),
        HONE_OK);
    ck_assert_int_eq(expression_run(parts[0], zero, &value), EXPRESSION_ZERO);
    expression_free(parts[0]);
}
END_TEST

static const char *const refused[] = {
    "",
    "a +",
    "a b",
    "a = 1",
    "lambda: 1",
    "a.b",
    "a if b",
    "d > 1",
    "(a",
    "a)",
    "a in b",
    "a < b in (1, 2)",
    "1 / a",
    "b // ",
    "min(a)",
    "abs(a, b)",
    "abs",
    "1e3 > a",
    "1..2 > a",
    "99999999999999999999 > a",
    "a ** b > 1",
    "a ** -1 > 1",
    "a ** 9 > 1",
    "a & b",
    "a << b",
    "'x' == a",
    "[a] == b",
    "(a or b) + 1",
    "(a and b) < 2",
    "import os",
    "__import__",
    "not",
    "a not b",
    "a == b if c",
    "max(a, b",
};

START_TEST(what_is_not_read_is_refused_with_its_place)
{
    expression *parts[4] = {NULL};
    size_t len = 7;
    hone_error error = {0};

    ck_assert_int_eq(
        expression_compile_python("x.json", 3, refused[_i], &scope, ranges, parts, 4, &len, &error),
        HONE_BAD_TEXT);
    ck_assert_uint_eq(len, 0);
    ck_assert_str_eq(error.source, "x.json");
    ck_assert_int_eq(error.line, 3);
    ck_assert_ptr_nonnull(strstr(error.message, refused[_i]));
}
END_TEST

START_TEST(what_is_too_long_is_a_limit)
{
    static char deep[EXPRESSION_PYTHON_BYTES + 100];
    expression *parts[4];
    size_t len = 0;

    memset(deep, '(', 40);
    strcpy(deep + 40, "a");
    ck_assert_int_eq(expression_compile_python("x", 1, deep, &scope, ranges, parts, 4, &len, NULL),
                     HONE_BAD_TEXT);
    for (int i = 0; i < 200; i++) {
        strcpy(deep + (size_t)i * 4, "a + ");
    }
    strcpy(deep + 800, "a > 1");
    ck_assert_int_eq(expression_compile_python("x", 1, deep, &scope, ranges, parts, 4, &len, NULL),
                     HONE_LIMIT);
    ck_assert_int_eq(expression_compile_python("x", 1, "a>1 and a>2 and a>3 and a>4 and a>5",
                                               &scope, ranges, parts, 4, &len, NULL),
                     HONE_LIMIT);
    ck_assert_uint_eq(len, 0);
    memset(deep, ' ', EXPRESSION_PYTHON_BYTES + 1);
    ck_assert_int_eq(expression_compile_python("x", 1, deep, &scope, ranges, parts, 4, &len, NULL),
                     HONE_LIMIT);
}
END_TEST

/* ---- Random expressions beside an evaluator of fractions. ---------------------------------- */

typedef struct fraction {
    __int128 n, d; /* d > 0 */
} fraction;

typedef struct maker {
    char text[2048];
    size_t len;
    uint64_t seed;
    const int64_t *values;
    bool bad; /* divides by zero or overflows: not compared */
} maker;

static __int128 floor_div(__int128 a, __int128 b)
{
    const __int128 q = a / b;

    return q - (a % b != 0 && (a < 0) != (b < 0));
}

static fraction combine(maker *m, int op, fraction a, fraction b)
{
    fraction out = {0, 1};

    if (op >= 3 && b.n == 0) {
        m->bad = true;
        return out;
    }
    switch (op) {
    case 0:
        out = (fraction){a.n * b.d + b.n * a.d, a.d * b.d};
        break;
    case 1:
        out = (fraction){a.n * b.d - b.n * a.d, a.d * b.d};
        break;
    case 2:
        out = (fraction){a.n * b.n, a.d * b.d};
        break;
    case 3:
        out = (fraction){floor_div(a.n * b.d, a.d * b.n), 1};
        break;
    default: { /* a - b * floor(a / b) */
        const __int128 q = floor_div(a.n * b.d, a.d * b.n);
        out = (fraction){a.n * b.d - q * b.n * a.d, a.d * b.d};
    }
    }
    m->bad = m->bad || out.d > 1000000000 || out.n > 1000000000 || out.n < -1000000000;
    return out;
}

static fraction make(maker *m, int depth)
{
    static const char *const ops[] = {" + ", " - ", " * ", " // ", " % "};
    const uint64_t kind = random_below(&m->seed, depth > 0 ? 8 : 3);
    fraction a, b;

    if (kind == 0) {
        const int64_t value = (int64_t)random_below(&m->seed, 12);
        m->len += (size_t)sprintf(m->text + m->len, "%lld", (long long)value);
        return (fraction){value, 1};
    }
    if (kind < 3) {
        const uint64_t slot = random_below(&m->seed, 3);
        m->text[m->len++] = (char)('a' + slot);
        return (fraction){m->values[slot], 1};
    }
    m->text[m->len++] = '(';
    a = make(m, depth - 1);
    if (kind == 3) { /* divided by what is positive */
        m->len += (size_t)sprintf(m->text + m->len, " / b)");
        return (fraction){a.n, a.d * m->values[1]};
    }
    const int op = (int)random_below(&m->seed, 5);
    m->len += (size_t)sprintf(m->text + m->len, "%s", ops[op]);
    b = make(m, depth - 1);
    m->text[m->len++] = ')';
    return combine(m, op, a, b);
}

START_TEST(random_arithmetic_equals_fractions)
{
    static const char *const signs[] = {"<", "<=", "==", "!=", ">", ">="};
    uint64_t seed = 11;
    uint32_t compared = 0, too_long = 0;

    for (int round = 0; round < 4000; round++) {
        const int64_t values[] = {(int64_t)random_below(&seed, 17) - 8,
                                  1 + (int64_t)random_below(&seed, 64),
                                  (int64_t)random_below(&seed, 9)};
        maker m = {.seed = random_next(&seed), .values = values};
        const int sign = (int)random_below(&seed, 6);
        expression *part = NULL;
        size_t len = 0;
        int64_t got = 0;

        const fraction a = make(&m, 3);
        m.len += (size_t)sprintf(m.text + m.len, " %s ", signs[sign]);
        const fraction b = make(&m, 2);
        m.text[m.len] = '\0';
        const hone_status status =
            expression_compile_python("x", 1, m.text, &scope, ranges, &part, 1, &len, NULL);
        too_long += status == HONE_LIMIT;
        if (status == HONE_LIMIT) {
            continue;
        }
        ck_assert_msg(status == HONE_OK, "%s", m.text);
        const expression_fault fault = expression_run(part, values, &got);
        expression_free(part);
        if (m.bad || fault == EXPRESSION_OVERFLOW) {
            continue;
        }
        ck_assert_msg(fault == EXPRESSION_FINE, "%s", m.text);
        const __int128 left = a.n * b.d, right = b.n * a.d;
        const bool wanted[] = {left<right, left <= right, left == right, left != right, left> right,
                               left >= right};
        ck_assert_msg((got != 0) == wanted[sign], "%s with %lld %lld %lld", m.text,
                      (long long)values[0], (long long)values[1], (long long)values[2]);
        compared++;
    }
    ck_assert_uint_gt(compared, 1500);
    ck_assert_uint_lt(too_long, 1500);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("python");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, python_means_what_python_means, 0, (int)ARRAY_LEN(python));
    tcase_add_test(tests, a_guard_keeps_a_division_by_zero_from_running);
    tcase_add_loop_test(tests, what_is_not_read_is_refused_with_its_place, 0,
                        (int)ARRAY_LEN(refused));
    tcase_add_test(tests, what_is_too_long_is_a_limit);
    tcase_add_test(tests, random_arithmetic_equals_fractions);
    return suite_run("templates/expression_python", tests);
}
