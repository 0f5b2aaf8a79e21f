/* test_space_import.c - definitions of other tuners: Python means what Python means, strangers'
 * JSON is a status, and the spaces hold what was counted elsewhere. */
#include "core/random.h"
#include "templates/expression.h"
#include "templates/space.h"
#include "templates/space_import.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- Definitions. -------------------------------------------------------------------------- */

static const char good[] =
    "{\"params\": {\"x\": [1, 2, 4, 8, 16], \"y\": [3, 1, 2], \"z\": [true, false], "
    "\"_w\": [-1, 7], \"u\": [0, 1, 2, 3, 4, 5]}, \"constants\": {\"k\": 6, \"lang\": \"CUDA\"}, "
    "\"restrictions\": [\"k % y == 0 and x * y <= 16\", \"z == 0 or _w > 0\", \"x + u < 18\", "
    "\"u % y == 0\"]}";

static manifest *import(const char *text, size_t len, hone_status wanted)
{
    manifest *m = NULL;
    hone_error error = {0};

    ck_assert_msg(space_import("x.json", text, len, &m, &error) == wanted, "%s", error.message);
    ck_assert(wanted == HONE_OK || error.message[0] != '\0');
    return m;
}

static space *open_space(const manifest *m)
{
    space *s = NULL;
    hone_error error = {0};

    ck_assert_msg(space_open(m, NULL, NULL, &s, &error) == HONE_OK, "%s", error.message);
    return s;
}

static bool legal(const int64_t v[5])
{
    return 6 % v[1] == 0 && v[0] * v[1] <= 16 && (v[2] == 0 || v[3] > 0) && v[0] + v[4] < 18 &&
           v[4] % v[1] == 0;
}

static const int64_t lists[5][6] = {
    {1, 2, 4, 8, 16}, {3, 1, 2}, {1, 0}, {-1, 7}, {0, 1, 2, 3, 4, 5}};
static const uint32_t lens[5] = {5, 3, 2, 2, 6};

/* The place of a config in the raw product. */
static uint32_t place_of(const config *c)
{
    uint32_t place = 0;

    for (uint32_t p = 0; p < 5; p++) {
        uint32_t v = 0;
        while (lists[p][v] != c->value[p]) {
            v++;
            ck_assert_uint_lt(v, lens[p]);
        }
        place = place * lens[p] + v;
    }
    return place;
}

#define RAW (5 * 3 * 2 * 2 * 6)

static uint32_t brute(bool set[RAW])
{
    uint32_t count = 0;
    config c = {.len = 5};

    for (uint32_t i = 0; i < RAW; i++) {
        uint32_t rest = i;
        for (int p = 4; p >= 0; p--) {
            c.value[p] = lists[p][rest % lens[p]];
            rest /= lens[p];
        }
        set[i] = legal(c.value);
        count += set[i];
    }
    return count;
}

START_TEST(a_definition_is_its_legal_configs)
{
    bool set[RAW], has = false, found = true;
    manifest *m = import(good, strlen(good), HONE_OK);
    space *s = open_space(m);
    uint32_t wanted = brute(set), got = 0;
    uint64_t count = 0;
    config c;

    while (found) {
        ck_assert_int_eq(space_next(s, 0, &c, &found, NULL), HONE_OK);
        if (found) {
            ck_assert(set[place_of(&c)]);
            ck_assert_int_eq(space_has(s, &c, &has, NULL), HONE_OK);
            ck_assert(has);
            set[place_of(&c)] = false; /* none twice */
            got++;
        }
    }
    ck_assert_uint_eq(got, wanted);
    ck_assert_int_eq(space_count(s, 0, &count, NULL), HONE_OK);
    ck_assert_uint_eq(count, wanted);
    c = (config){.len = 5, .value = {16, 3, 0, -1, 0}};
    ck_assert_int_eq(space_has(s, &c, &has, NULL), HONE_OK);
    ck_assert(!has);
    c = (config){.len = 5, .value = {3, 1, 0, 7, 0}}; /* no value of x */
    ck_assert_int_eq(space_has(s, &c, &has, NULL), HONE_OK);
    ck_assert(!has);
    c.len = 4;
    ck_assert_int_eq(space_has(s, &c, &has, NULL), HONE_BAD_ARGUMENT);
    space_close(s);
    manifest_free(m);
}
END_TEST

START_TEST(draws_are_even_by_chi_square)
{
    bool set[RAW], found = false, uniform = false;
    static uint32_t seen[RAW];
    manifest *m = import(good, strlen(good), HONE_OK);
    space *s = open_space(m);
    const uint32_t len = brute(set), draws = 200 * len;
    uint64_t seed = 5;
    double chi = 0;
    config c;

    for (uint32_t i = 0; i < draws; i++) {
        ck_assert_int_eq(space_draw(s, &seed, 100000, &c, &found, &uniform, NULL), HONE_OK);
        ck_assert(found && uniform && set[place_of(&c)]);
        seen[place_of(&c)]++;
    }
    for (uint32_t i = 0; i < RAW; i++) {
        chi += set[i] ? ((double)seen[i] - 200) * ((double)seen[i] - 200) / 200 : 0;
    }
    /* Mean len - 1, variance twice that: five deviations either way. */
    const double mean = len - 1, spread = 5 * 1.42 * (double)len / 10;
    ck_assert_double_lt(chi, mean + spread);
    ck_assert_double_gt(chi, mean - spread);
    space_close(s);
    manifest_free(m);
}
END_TEST

/* Steps from one config to another in one parameter's list; 0 when others differ too, or none. */
static uint32_t steps(const config *a, const config *b, uint32_t *param)
{
    uint32_t differ = 0, at[2] = {0, 0};

    for (uint32_t p = 0; p < 5; p++) {
        if (a->value[p] != b->value[p]) {
            differ++;
            *param = p;
            for (uint32_t v = 0; v < lens[p]; v++) {
                at[0] = lists[p][v] == a->value[p] ? v : at[0];
                at[1] = lists[p][v] == b->value[p] ? v : at[1];
            }
        }
    }
    return differ != 1 ? 0 : at[0] > at[1] ? at[0] - at[1] : at[1] - at[0];
}

START_TEST(neighbours_are_all_and_only_the_legal_ones)
{
    bool found = true;
    manifest *m = import(good, strlen(good), HONE_OK);
    space *s = open_space(m);
    static config all[RAW], near[64];
    size_t len = 0, got = 0;

    while (found && len < RAW) {
        ck_assert_int_eq(space_next(s, 0, &all[len], &found, NULL), HONE_OK);
        len += found;
    }
    for (size_t i = 0; i < len; i++) {
        uint32_t wanted = 0, param = 0, sides[5][2] = {{0}};
        for (size_t k = 0; k < len; k++) {
            const uint32_t away = steps(&all[i], &all[k], &param);
            wanted += away > 0;
            if (away > 0) {
                uint32_t v = 0; /* the one that comes first in the list */
                while (lists[param][v] != all[i].value[param] &&
                       lists[param][v] != all[k].value[param]) {
                    v++;
                }
                const bool above = lists[param][v] == all[i].value[param];
                sides[param][above] = 1;
            }
        }
        ck_assert_int_eq(space_neighbours(s, &all[i], SPACE_ANY_VALUE, near, 64, &got, NULL),
                         HONE_OK);
        ck_assert_uint_eq(got, wanted);
        for (size_t k = 0; k < got; k++) {
            ck_assert(legal(near[k].value));
            ck_assert_uint_gt(steps(&all[i], &near[k], &param), 0);
        }
        uint32_t nearest = 0;
        for (uint32_t p = 0; p < 5; p++) {
            nearest += sides[p][0] + sides[p][1];
        }
        ck_assert_int_eq(space_neighbours(s, &all[i], SPACE_NEXT_VALUE, near, 64, &got, NULL),
                         HONE_OK);
        ck_assert_uint_eq(got, nearest);
        ck_assert_int_eq(space_neighbours(s, &all[i], SPACE_ANY_VALUE, near, 1, &got, NULL),
                         HONE_OK);
        ck_assert_uint_eq(got, wanted); /* counted past the capacity */
    }
    space_close(s);
    manifest_free(m);
}
END_TEST

static const struct {
    const char *text;
    hone_status status;
} bad[] = {
    {"", HONE_BAD_TEXT},
    {"[]", HONE_BAD_TEXT},
    {"{}", HONE_BAD_TEXT},
    {"{\"params\": {}}", HONE_BAD_TEXT},
    {"{\"params\": [1]}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": []}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": 3}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [1, 1]}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [1.5]}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [\"x\"]}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a b\": [1]}}", HONE_BAD_TEXT},
    {"{\"params\": {\"\": [1]}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [1]}, \"params\": {\"b\": [1]}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [99999999999999999999]}}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [1]}, \"restrictions\": \"a > 1\"}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [1]}, \"restrictions\": [1]}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [1]}, \"restrictions\": [\"b > 1\"]}", HONE_BAD_TEXT},
    {"{\"params\": {\"a\": [1]}, \"restrictions\": [\"lang > 1\"], \"constants\": "
     "{\"lang\": \"x\"}}",
     HONE_BAD_TEXT},
};

START_TEST(bad_definitions_are_refused)
{
    ck_assert_ptr_null(import(bad[_i].text, strlen(bad[_i].text), bad[_i].status));
}
END_TEST

START_TEST(limits_are_statuses)
{
    static char text[SPACE_IMPORT_BYTES + 2];
    size_t used = (size_t)sprintf(text, "{\"params\": {");

    for (int i = 0; i < 33; i++) {
        used += (size_t)sprintf(text + used, "%s\"p%d\": [1]", i > 0 ? ", " : "", i);
    }
    used += (size_t)sprintf(text + used, "}}");
    import(text, used, HONE_LIMIT);
    used = (size_t)sprintf(text, "{\"params\": {\"a\": [0");
    for (int i = 1; i < 257; i++) {
        used += (size_t)sprintf(text + used, ", %d", i);
    }
    used += (size_t)sprintf(text + used, "]}}");
    import(text, used, HONE_LIMIT);
    used = (size_t)sprintf(text, "{\"params\": {\"a\": [1]}, \"restrictions\": [\"a > 0\"");
    for (int i = 0; i < 64; i++) {
        used += (size_t)sprintf(text + used, ", \"a > 0\"");
    }
    used += (size_t)sprintf(text + used, "]}");
    import(text, used, HONE_LIMIT);
    memset(text, ' ', SPACE_IMPORT_BYTES + 1);
    import(text, SPACE_IMPORT_BYTES + 1, HONE_LIMIT);
    memset(text, '[', 100000);
    import(text, 100000, HONE_BAD_TEXT);
}
END_TEST

START_TEST(broken_bytes_are_a_status)
{
    char text[sizeof good];
    uint64_t seed = 4;
    uint32_t taken = 0;

    for (size_t len = 0; len < sizeof good - 1; len++) {
        import(good, len, HONE_BAD_TEXT);
    }
    for (int i = 0; i < 5000; i++) {
        manifest *m = NULL;
        space *s = NULL;
        hone_error error = {0};
        memcpy(text, good, sizeof good);
        text[random_below(&seed, sizeof good - 1)] = (char)random_below(&seed, 256);
        text[random_below(&seed, sizeof good - 1)] = (char)(32 + random_below(&seed, 95));
        if (space_import("x", text, sizeof good - 1, &m, &error) == HONE_OK) {
            uint64_t count = 0;
            taken++;
            if (space_open(m, NULL, NULL, &s, &error) == HONE_OK) {
                space_count(s, 100000, &count, &error);
            }
            space_close(s);
            manifest_free(m);
        }
    }
    ck_assert_uint_gt(taken, 50);
}
END_TEST

/* ---- What Kernel Tuner's solver, brute force and two other programs counted (search.md 4). -- */

static const struct {
    const char *name;
    double raw;
    uint64_t legal;
} counted[] = {
    {"pnpoly", 8184, 8184},           {"conv_milo", 10240, 4362},
    {"adding", 13312, 4654},          {"conv15", 18432, 7520},
    {"conv15hub", 16896, 6768},       {"dedisp_milo", 22272, 11130},
    {"gemm", 82944, 17956},           {"pnpolyhub", 4092, 4092},
    {"big_prl2", 36864, 1200},        {"big_gemm", 663552, 116928},
    {"big_microhh", 1166400, 138600}, {"big_prl4", 9437184, 10800},
    {"big_expdist", 9732096, 294000}, {"big_hotspot", 22200000, 349853},
    {"big_prl8", 2415919104, 48720},
};

START_TEST(recorded_spaces_hold_what_was_counted)
{
    char name[128], path[1024];
    size_t len = 0;
    uint64_t count = 0, walked = 0, seed = 3;
    bool found = true, uniform = false, has = false;
    config c;

    snprintf(name, sizeof name, "data/search/spaces/%s.json", counted[_i].name);
    if (!file_find_shared(name, path, sizeof path)) {
        return;
    }
    char *text = file_read(path, &len);
    manifest *m = import(text, len, HONE_OK);
    space *s = open_space(m);
    ck_assert_double_eq(space_raw_size(s), counted[_i].raw);
    ck_assert_int_eq(space_count(s, 2000000, &count, NULL), HONE_OK);
    ck_assert_uint_eq(count, counted[_i].legal);
    while (found) {
        ck_assert_int_eq(space_next(s, 0, &c, &found, NULL), HONE_OK);
        walked += found;
    }
    ck_assert_uint_eq(walked, counted[_i].legal);
    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq(space_draw(s, &seed, 2000000, &c, &found, &uniform, NULL), HONE_OK);
        ck_assert_int_eq(space_has(s, &c, &has, NULL), HONE_OK);
        ck_assert(found && uniform && has);
    }
    space_close(s);
    manifest_free(m);
    free(text);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("import");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, python_means_what_python_means, 0, (int)ARRAY_LEN(python));
    tcase_add_test(tests, a_guard_keeps_a_division_by_zero_from_running);
    tcase_add_loop_test(tests, what_is_not_read_is_refused_with_its_place, 0,
                        (int)ARRAY_LEN(refused));
    tcase_add_test(tests, what_is_too_long_is_a_limit);
    tcase_add_test(tests, random_arithmetic_equals_fractions);
    tcase_add_test(tests, a_definition_is_its_legal_configs);
    tcase_add_test(tests, draws_are_even_by_chi_square);
    tcase_add_test(tests, neighbours_are_all_and_only_the_legal_ones);
    tcase_add_loop_test(tests, bad_definitions_are_refused, 0, (int)ARRAY_LEN(bad));
    tcase_add_test(tests, limits_are_statuses);
    tcase_add_test(tests, broken_bytes_are_a_status);
    tcase_add_loop_test(tests, recorded_spaces_hold_what_was_counted, 0, (int)ARRAY_LEN(counted));
    return suite_run("templates/space_import", tests);
}
