/* test_document.c - hostile and careless YAML is refused where it stands, and quickly. */
#include "core/document.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_error e;

static document *parse(const char *text)
{
    document *d = NULL;

    ck_assert_msg(document_parse("test.yaml", text, strlen(text), &d, &e) == HONE_OK, "%s",
                  e.message);
    return d;
}

START_TEST(a_tree_keeps_order_lines_and_quotes)
{
    document *d = parse("b: 1\na: [x, 'y', {c: \"2\"}]\n");
    const document_node *root = document_root(d);

    ck_assert_int_eq(root->kind, DOCUMENT_MAP);
    ck_assert_uint_eq(root->len, 2);
    ck_assert_str_eq(root->keys[0].text, "b");
    const document_node *list = document_get(root, "a");
    ck_assert_int_eq(list->kind, DOCUMENT_LIST);
    ck_assert_int_eq(list->line, 2);
    ck_assert_uint_eq(list->len, 3);
    ck_assert(!list->items[0].quoted);
    ck_assert(list->items[1].quoted);
    ck_assert_str_eq(document_get(&list->items[2], "c")->text, "2");
    ck_assert_ptr_null(document_get(root, "none"));
    ck_assert_ptr_null(document_get(list, "a"));
    document_free(d);
}
END_TEST

static const struct {
    const char *name, *text;
    hone_status status;
    int line;
} hostile[] = {
    {"alias", "a: 1\nb: *a\n", HONE_BAD_TEXT, 2},
    {"anchor on a scalar", "a: &x 1\n", HONE_BAD_TEXT, 1},
    {"anchor on a list", "a: &x [1]\n", HONE_BAD_TEXT, 1},
    {"a list that holds itself", "&a [*a]\n", HONE_BAD_TEXT, 1},
    {"tag", "a: !!python/object x\n", HONE_BAD_TEXT, 1},
    {"local tag", "a: !x [1]\n", HONE_BAD_TEXT, 1},
    {"merge key", "a: {<<: {b: 1}}\n", HONE_BAD_TEXT, 1},
    {"duplicate key", "a: 1\nb: 2\na: 3\n", HONE_BAD_TEXT, 3},
    {"duplicate key within", "x:\n  a: 1\n  'a': 2\n", HONE_BAD_TEXT, 3},
    {"two documents", "a: 1\n---\nb: 2\n", HONE_BAD_TEXT, 2},
    {"directive", "%TAG ! x:\n---\na: 1\n", HONE_BAD_TEXT, 1},
    {"nothing", "", HONE_BAD_TEXT, 1},
    {"only a comment", "# a\n", HONE_BAD_TEXT, 2},
    {"NUL by escape", "a: \"x\\0y\"\n", HONE_BAD_TEXT, 1},
    {"not UTF-8", "a: \xff\xfe\n", HONE_BAD_TEXT, 1},
    {"list as key", "? [a]\n: b\n", HONE_BAD_TEXT, 1},
    {"17 deep", "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n", HONE_LIMIT, 1},
    {"unclosed", "a: [1, 2\n", HONE_BAD_TEXT, 2},
    {"tab as indent", "a:\n\tb: 1\n", HONE_BAD_TEXT, 2},
};

START_TEST(what_is_not_allowed_is_refused_with_its_line)
{
    document *d = NULL;

    ck_assert_msg(document_parse("test.yaml", hostile[_i].text, strlen(hostile[_i].text), &d, &e) ==
                      hostile[_i].status,
                  "%s: %s", hostile[_i].name, e.message);
    ck_assert_ptr_null(d);
    ck_assert_msg(e.line == hostile[_i].line, "%s: line %d", hostile[_i].name, e.line);
    ck_assert_str_eq(e.source, "test.yaml");
}
END_TEST

/* Quadratic in libyaml's loader, where 40 kB took 7 s; the watchdog ends what is not linear here.
 */
START_TEST(bombs_are_refused_at_once)
{
    static const char *const units[] = {"[", "{a: ", "- ", "? ", "[a, ", "&a [", "\"", "a: b: "};
    static const size_t sizes[] = {60000, 1000000};
    const char *unit = units[_i];

    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        char *text = malloc(sizes[k]);
        document *d = NULL;
        for (size_t i = 0; i < sizes[k]; i++) {
            text[i] = unit[i % strlen(unit)];
        }
        ck_assert_int_ne(document_parse("bomb", text, sizes[k], &d, &e), HONE_OK);
        free(text);
    }
}
END_TEST

START_TEST(the_number_of_parts_is_bounded)
{
    char *text = malloc(65536);
    document *d = NULL;
    size_t used = 0;

    text[used++] = '[';
    while (used < 60000) {
        text[used++] = 'a';
        text[used++] = ',';
    }
    text[used++] = ']';
    ck_assert_int_eq(document_parse("many", text, used, &d, &e), HONE_LIMIT);
    ck_assert_int_eq(document_parse("nul", "a: \0", 4, &d, &e), HONE_BAD_TEXT);
    free(text);
}
END_TEST

static const struct {
    const char *text;
    int64_t value;
    bool read;
} ints[] = {
    {"0", 0, true},
    {"-7", -7, true},
    {"9223372036854775807", INT64_MAX, true},
    {"-9223372036854775808", INT64_MIN, true},
    {"9223372036854775808", 0, false},
    {"-9223372036854775809", 0, false},
    {"010", 0, false},
    {"-01", 0, false},
    {"0x10", 0, false},
    {"0o17", 0, false},
    {"1_000", 0, false},
    {"+1", 0, false},
    {"1.0", 0, false},
    {"1e3", 0, false},
    {"'1'", 0, false},
    {"~", 0, false},
    {"[1]", 0, false},
    {"''", 0, false},
    {"x", 0, false},
};

START_TEST(integers_are_base_ten_and_nothing_else)
{
    char text[64];
    int64_t value = 77;

    snprintf(text, sizeof text, "v: %s\n", ints[_i].text);
    document *d = parse(text);
    hone_status status = document_int(d, document_get(document_root(d), "v"), &value, &e);
    ck_assert_msg((status == HONE_OK) == ints[_i].read, "%s", ints[_i].text);
    ck_assert(value == (ints[_i].read ? ints[_i].value : 77));
    document_free(d);
}
END_TEST

static const struct {
    const char *text;
    double value;
    bool read;
} reals[] = {
    {"1.5", 1.5, true},       {"-0.25", -0.25, true}, {"3", 3, true},      {"1e3", 1000, true},
    {"2.5E-3", 2.5e-3, true}, {".5", 0, false},       {"1.", 0, false},    {"nan", 0, false},
    {".inf", 0, false},       {"1e999", 0, false},    {"0x1p3", 0, false}, {"1,5", 0, false},
    {"'1.5'", 0, false},
};

START_TEST(reals_are_decimal_and_finite)
{
    char text[64];
    double value = 77;

    snprintf(text, sizeof text, "v: %s\n", reals[_i].text);
    document *d = parse(text);
    hone_status status = document_real(d, document_get(document_root(d), "v"), &value, &e);
    ck_assert_msg((status == HONE_OK) == reals[_i].read, "%s", reals[_i].text);
    ck_assert(value == (reals[_i].read ? reals[_i].value : 77));
    document_free(d);
}
END_TEST

START_TEST(booleans_are_true_and_false_only)
{
    document *d = parse("[true, false, yes, no, on, True, 'true', 1]\n");
    const document_node *list = document_root(d);
    bool value = false;

    ck_assert_int_eq(document_bool(d, &list->items[0], &value, &e), HONE_OK);
    ck_assert(value);
    ck_assert_int_eq(document_bool(d, &list->items[1], &value, &e), HONE_OK);
    ck_assert(!value);
    for (size_t i = 2; i < list->len; i++) {
        ck_assert_int_eq(document_bool(d, &list->items[i], &value, &e), HONE_BAD_TEXT);
    }
    document_free(d);
}
END_TEST

START_TEST(unknown_keys_are_named)
{
    static const char *const known[] = {"a", "b", NULL};
    document *d = parse("a: 1\nc: 2\n");

    ck_assert_int_eq(document_known_keys(d, document_root(d), known, &e), HONE_BAD_TEXT);
    ck_assert_ptr_nonnull(strstr(e.message, "\"c\""));
    ck_assert_int_eq(e.line, 2);
    document_free(d);
    d = parse("b: 1\n");
    ck_assert_int_eq(document_known_keys(d, document_root(d), known, &e), HONE_OK);
    document_free(d);
}
END_TEST

START_TEST(random_bytes_and_cut_texts_never_crash)
{
    static const char whole[] =
        "schema: 1\nparams: {m: [16, 32], n: ['a', \"b\"]}\nlet:\n  - x: >\n"
        "      y\n  - |\n    z\n? q\n: [1.5, true]\n";
    static const char alphabet[] = "ab:[]{},-?&*!|>'\"%@`# \n\t\\0x1~\xc3\xa9";
    char text[256];

    srand(1);
    for (int round = 0; round < 20000; round++) {
        size_t len = (size_t)rand() % (sizeof whole - 1);
        document *d = NULL;
        memcpy(text, whole, len);
        for (int i = rand() % 8; i > 0 && len > 0; i--) {
            text[(size_t)rand() % len] = alphabet[(size_t)rand() % (sizeof alphabet - 1)];
        }
        if (document_parse("fuzz", text, len, &d, &e) == HONE_OK) {
            ck_assert_ptr_nonnull(document_root(d));
        }
        document_free(d);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("document"), *bombs = tcase_create("bombs");
    TCase *const cases[] = {tests, bombs};

    tcase_set_timeout(tests, 60);
    tcase_set_timeout(bombs, 10);
    tcase_add_test(tests, a_tree_keeps_order_lines_and_quotes);
    tcase_add_loop_test(tests, what_is_not_allowed_is_refused_with_its_line, 0,
                        (int)ARRAY_LEN(hostile));
    tcase_add_loop_test(bombs, bombs_are_refused_at_once, 0, 8);
    tcase_add_test(tests, the_number_of_parts_is_bounded);
    tcase_add_loop_test(tests, integers_are_base_ten_and_nothing_else, 0, (int)ARRAY_LEN(ints));
    tcase_add_loop_test(tests, reals_are_decimal_and_finite, 0, (int)ARRAY_LEN(reals));
    tcase_add_test(tests, booleans_are_true_and_false_only);
    tcase_add_test(tests, unknown_keys_are_named);
    tcase_add_test(tests, random_bytes_and_cut_texts_never_crash);
    return suite_run_cases("core/document", cases, ARRAY_LEN(cases));
}
