/* test_status.c - the one table of statuses, errors as values, and digests with fields that cannot
 * run together. */
#include "core/digest.h"
#include "core/status.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Frozen: they are stored, and callers were compiled against them. */
static const struct {
    hone_status status;
    int value;
    const char *name;
} frozen[] = {
    {HONE_OK, 0, "OK"},
    {HONE_BAD_ARGUMENT, 1, "BAD_ARGUMENT"},
    {HONE_BAD_PROBLEM, 5, "BAD_PROBLEM"},
    {HONE_OVERFLOW, 10, "OVERFLOW"},
    {HONE_STORE_FOREIGN, 16, "STORE_FOREIGN"},
    {HONE_NOT_FOUND, 20, "NOT_FOUND"},
    {HONE_ENVIRONMENT, 25, "ENVIRONMENT"},
};

START_TEST(values_and_names_are_frozen)
{
    for (size_t i = 0; i < ARRAY_LEN(frozen); i++) {
        ck_assert_int_eq((int)frozen[i].status, frozen[i].value);
        ck_assert_str_eq(hone_status_name(frozen[i].status), frozen[i].name);
    }
}
END_TEST

START_TEST(every_status_has_its_own_name_and_text)
{
    static const hone_status all[] = {
#define X(name, value, text) HONE_##name,
        HONE_STATUS_MAP(X)
#undef X
    };

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        ck_assert_int_eq((int)all[i], (int)i); /* dense: none was left out or used twice */
        ck_assert_str_ne(hone_status_text(all[i]), "?");
        for (size_t j = 0; j < i; j++) {
            ck_assert_str_ne(hone_status_name(all[i]), hone_status_name(all[j]));
        }
    }
    ck_assert_str_eq(hone_status_name((hone_status)99), "?");
    ck_assert_str_eq(hone_status_text((hone_status)-1), "?");
}
END_TEST

START_TEST(an_error_takes_message_source_and_line_and_may_be_absent)
{
    hone_error e = {0};
    char long_text[1000];

    ck_assert_int_eq(status_set(&e, HONE_LIMIT, "a.yaml", 7, "%d is too many", 9), HONE_LIMIT);
    ck_assert_int_eq(e.status, HONE_LIMIT);
    ck_assert_str_eq(e.message, "9 is too many");
    ck_assert_str_eq(e.source, "a.yaml");
    ck_assert_int_eq(e.line, 7);
    ck_assert_int_eq(status_set(&e, HONE_IO, NULL, 0, "was: %s", e.message), HONE_IO);
    ck_assert_str_eq(e.message, "was: 9 is too many");
    ck_assert_str_eq(e.source, "");
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    status_set(&e, HONE_IO, long_text, 0, "%s", long_text);
    ck_assert_uint_eq(strlen(e.message), sizeof e.message - 1);
    ck_assert_uint_eq(strlen(e.source), sizeof e.source - 1);
    ck_assert_int_eq(status_set(NULL, HONE_IO, NULL, 0, "nobody listens"), HONE_IO);
}
END_TEST

static void digest_two(const char *a, const char *b, uint8_t out[DIGEST_BYTES])
{
    digest d;

    digest_begin(&d);
    digest_text(&d, a);
    digest_text(&d, b);
    digest_end(&d, out);
}

START_TEST(fields_of_a_digest_do_not_run_together)
{
    static const char *const pairs[][2] = {
        {"ab", "c"}, {"a", "bc"}, {"abc", ""}, {"", "abc"}, {"abc", NULL}, {NULL, "abc"},
    };
    uint8_t sums[ARRAY_LEN(pairs)][DIGEST_BYTES], again[DIGEST_BYTES];

    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        digest_two(pairs[i][0], pairs[i][1], sums[i]);
        digest_two(pairs[i][0], pairs[i][1], again);
        ck_assert_mem_eq(sums[i], again, DIGEST_BYTES);
        for (size_t j = 0; j < i; j++) {
            ck_assert_mem_ne(sums[i], sums[j], DIGEST_BYTES);
        }
    }
}
END_TEST

/* Frozen with the store's schema: computed by another implementation (Python's hashlib.blake2b, 32
 * bytes). */
START_TEST(a_digest_is_blake2b_of_length_prefixed_fields)
{
    digest d;
    uint8_t sum[DIGEST_BYTES];
    char hex[2 * DIGEST_BYTES + 1];

    digest_begin(&d);
    digest_text(&d, "hone");
    digest_u64(&d, 7);
    digest_bytes(&d, NULL, 0);
    digest_end(&d, sum);
    digest_hex(sum, sizeof sum, hex);
    ck_assert_str_eq(hex, "c7bc72f84e293d519055034de9fc591ecadf4627234e7fbd98d0f01d268ad027");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("status");

    tcase_add_test(tests, values_and_names_are_frozen);
    tcase_add_test(tests, every_status_has_its_own_name_and_text);
    tcase_add_test(tests, an_error_takes_message_source_and_line_and_may_be_absent);
    tcase_add_test(tests, fields_of_a_digest_do_not_run_together);
    tcase_add_test(tests, a_digest_is_blake2b_of_length_prefixed_fields);
    return suite_run("core/status", tests);
}
