/* test_hostile.c - headers that lie: one row a lie, its status, and what the error must name. Each
 * is read as bytes and as a file; headers cut or damaged at random never do more than fail. */
#include "convert/bounded_json.h"
#include "convert/safetensors.h"
#include "core/random.h"
#include "tests/support/file.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[FOLDER_BYTES];

#define ONE(name, dtype, shape, offsets)                                                           \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define GOOD ONE("w", "F32", "[2]", "[0,8]")

/* The lie, the data behind it, how it ends, the input and the rule that the error names. */
static const struct {
    const char *header;
    uint64_t data_bytes;
    hone_status status;
    const char *input, *rule;
} lies[] = {
    {"", 0, HONE_BAD_TEXT, "lie", "'{'"},
    {" {}", 0, HONE_BAD_TEXT, "lie", "'{'"},
    {"[]", 0, HONE_BAD_TEXT, "lie", "'{'"},
    {"{", 0, HONE_BAD_TEXT, "lie", "no JSON"},
    {"{}x", 0, HONE_BAD_TEXT, "lie", "no JSON"},
    {"{}", 1, HONE_BAD_TEXT, "lie", "belong to no tensor"},
    {"{" GOOD "," GOOD "}", 8, HONE_BAD_TEXT, "\"w\"", "twice"},
    {"{" GOOD ",\"w\\u0000\":1}", 8, HONE_BAD_TEXT, "lie", "no JSON"},
    {"{\"w\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}", 0, HONE_BAD_TEXT, "lie", "nested past 16"},
    {"{\"w\":3}", 0, HONE_BAD_TEXT, "'w'", "dtype, shape and data_offsets"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, HONE_BAD_TEXT, "'w'", "data_offsets"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 8, HONE_BAD_TEXT,
     "'w'", "nothing else"},
    {"{" ONE("w", "F33", "[2]", "[0,8]") "}", 8, HONE_BAD_TEXT, "'w'", "'F33'"},
    {"{\"w\":{\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, HONE_BAD_TEXT, "'w'",
     "dtype"},
    {"{" ONE("w", "F32", "2", "[0,8]") "}", 8, HONE_BAD_TEXT, "'w'", "'shape'"},
    {"{" ONE("w", "F32", "[-2]", "[0,8]") "}", 8, HONE_BAD_TEXT, "'w'", "dimension 0"},
    {"{" ONE("w", "F32", "[2.0]", "[0,8]") "}", 8, HONE_BAD_TEXT, "'w'", "dimension 0"},
    {"{" ONE("w", "F32", "[true]", "[0,8]") "}", 8, HONE_BAD_TEXT, "'w'", "dimension 0"},
    {"{" ONE("w", "F32", "[18446744073709551616]", "[0,8]") "}", 8, HONE_BAD_TEXT, "lie",
     "no JSON"},
    {"{" ONE("w", "F32", "[9223372036854775807]", "[0,8]") "}", 8, HONE_OVERFLOW, "'w'",
     "more bytes than a file"},
    {"{" ONE("w", "F32", "[4294967296,4294967296]", "[0,8]") "}", 8, HONE_OVERFLOW, "'w'",
     "more bytes than a file"},
    {"{" ONE("w", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, HONE_LIMIT, "'w'", "9 dimensions"},
    {"{" ONE("w", "F4", "[3]", "[0,2]") "}", 2, HONE_BAD_TEXT, "'w'", "whole bytes"},
    {"{" ONE("w", "F32", "[2]", "[0]") "}", 8, HONE_BAD_TEXT, "'w'", "'data_offsets'"},
    {"{" ONE("w", "F32", "[2]", "[0,8,8]") "}", 8, HONE_BAD_TEXT, "'w'", "'data_offsets'"},
    {"{" ONE("w", "F32", "[2]", "[-8,0]") "}", 8, HONE_BAD_TEXT, "'w'", "'data_offsets'"},
    {"{" ONE("w", "F32", "[2]", "[0,\"8\"]") "}", 8, HONE_BAD_TEXT, "'w'", "'data_offsets'"},
    {"{" ONE("w", "F32", "[2]", "[8,0]") "}", 8, HONE_BAD_TEXT, "'w'", "lie outside"},
    {"{" ONE("w", "F32", "[2]", "[0,8]") "}", 7, HONE_BAD_TEXT, "'w'", "lie outside"},
    {"{" ONE("w", "F32", "[2]", "[9223372036854775800,9223372036854775807]") "}", 8, HONE_BAD_TEXT,
     "'w'", "lie outside"},
    {"{" ONE("w", "F32", "[3]", "[0,8]") "}", 8, HONE_BAD_TEXT, "'w'", "needs 12 bytes and has 8"},
    {"{" ONE("w", "F32", "[1]", "[0,8]") "}", 8, HONE_BAD_TEXT, "'w'", "needs 4 bytes and has 8"},
    {"{" ONE("w", "F32", "[0]", "[0,8]") "}", 8, HONE_BAD_TEXT, "'w'", "needs 0 bytes"},
    {"{" GOOD "," ONE("v", "F32", "[2]", "[4,12]") "}", 12, HONE_BAD_TEXT, "'v'", "overlap"},
    {"{" GOOD "," ONE("v", "F32", "[2]", "[0,8]") "}", 8, HONE_BAD_TEXT, "'v'", "overlap"},
    {"{" GOOD "," ONE("v", "F32", "[2]", "[12,20]") "}", 20, HONE_BAD_TEXT, "'v'",
     "belong to no tensor"},
    {"{" ONE("w", "F32", "[2]", "[4,12]") "}", 12, HONE_BAD_TEXT, "'w'", "belong to no tensor"},
    {"{" GOOD "}", 12, HONE_BAD_TEXT, "last 4 bytes", "belong to no tensor"},
    {"{" ONE("", "F32", "[2]", "[0,8]") "}", 8, HONE_LIMIT, "lie", "name of 0 bytes"},
    {"{" ONE("a\\u001b[2J", "F32", "[2]", "[0,8]") "}", 8, HONE_BAD_TEXT, "lie",
     "control character"},
    {"{" ONE("\xff", "F32", "[2]", "[0,8]") "}", 8, HONE_BAD_TEXT, "lie", "no JSON"},
    {"{\"__metadata__\":3}", 0, HONE_BAD_TEXT, "'__metadata__'", "no object"},
    {"{\"__metadata__\":{\"format\":3}}", 0, HONE_BAD_TEXT, "'format'", "no text"},
};

/* A file of this header and zeros. */
static void write_lie(const char *path, const char *header, size_t len, uint64_t data_bytes)
{
    size_t whole = 8 + len + data_bytes;
    uint8_t *bytes = calloc(1, whole);

    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)((uint64_t)len >> 8 * i);
    }
    memcpy(bytes + 8, header, len);
    file_write(path, bytes, whole);
    free(bytes);
}

static void is_refused(hone_status got, const hone_error *error, size_t row)
{
    ck_assert_msg(got == lies[row].status && error->status == got, "%s: %s: %s", lies[row].header,
                  hone_status_name(got), error->message);
    ck_assert_msg(strstr(error->message, lies[row].input) != NULL ||
                      strstr(error->source, lies[row].input) != NULL,
                  "'%s' does not name %s", error->message, lies[row].input);
    ck_assert_msg(strstr(error->message, lies[row].rule) != NULL, "'%s' does not say '%s'",
                  error->message, lies[row].rule);
}

START_TEST(a_lie_is_named)
{
    hone_error error = {0};
    safetensors_table *table = NULL;
    safetensors_file *file = NULL;
    const char *header = lies[_i].header;
    char path[FOLDER_BYTES + 32];

    hone_status status =
        safetensors_parse("lie", header, strlen(header), lies[_i].data_bytes, &table, &error);
    is_refused(status, &error, (size_t)_i);
    ck_assert_ptr_null(table);

    snprintf(path, sizeof path, "%s/lie.safetensors", folder);
    write_lie(path, header, strlen(header), lies[_i].data_bytes);
    error = (hone_error){0};
    is_refused(safetensors_open(path, &file, &error), &error, (size_t)_i);
    ck_assert_str_eq(error.source, path);
    ck_assert_ptr_null(file);
}
END_TEST

/* The eight bytes before the header. */
static const struct {
    uint64_t len;
    size_t file_bytes;
    hone_status status;
    const char *rule;
} prefixes[] = {
    {0, 0, HONE_BAD_TEXT, "begins with 8"},
    {0, 7, HONE_BAD_TEXT, "begins with 8"},
    {0, 8, HONE_BAD_TEXT, "'{'"},
    {1, 8, HONE_BAD_TEXT, "it was cut"},
    {UINT64_MAX, 64, HONE_BAD_TEXT, "it was cut"},
    {UINT64_MAX - 7, 64, HONE_BAD_TEXT, "it was cut"},
    {INT64_MAX, 64, HONE_BAD_TEXT, "it was cut"},
    {SAFETENSORS_HEADER_MOST + 1, 8 + SAFETENSORS_HEADER_MOST + 1, HONE_LIMIT, "in shards"},
};

START_TEST(a_wrong_length_is_named)
{
    hone_error error = {0};
    safetensors_file *file = NULL;
    char path[FOLDER_BYTES + 32];
    uint8_t *bytes = calloc(1, prefixes[_i].file_bytes + 1);

    for (size_t i = 0; i < 8 && i < prefixes[_i].file_bytes; i++) {
        bytes[i] = (uint8_t)(prefixes[_i].len >> 8 * i);
    }
    snprintf(path, sizeof path, "%s/prefix.safetensors", folder);
    file_write(path, bytes, prefixes[_i].file_bytes);
    free(bytes);
    ck_assert_int_eq(safetensors_open(path, &file, &error), prefixes[_i].status);
    ck_assert_msg(strstr(error.message, prefixes[_i].rule) != NULL, "%s", error.message);
    ck_assert_str_eq(error.source, path);
}
END_TEST

START_TEST(too_many_values_are_refused_before_they_are_read)
{
    hone_error error = {0};
    safetensors_table *table = NULL;
    const size_t len = 2 * (BOUNDED_JSON_VALUES + 8);
    char *header = malloc(len);

    memset(header, ',', len);
    memcpy(header, "{\"w\":[0", 7);
    ck_assert_int_eq(safetensors_parse("many", header, len, 0, &table, &error), HONE_LIMIT);
    ck_assert_msg(strstr(error.message, "shards") != NULL, "%s", error.message);
    free(header);
}
END_TEST

START_TEST(what_is_no_file_is_named)
{
    hone_error error = {0};
    safetensors_file *file = NULL;

    ck_assert_int_eq(safetensors_open(folder, &file, &error), HONE_IO);
    ck_assert_msg(strstr(error.message, "regular file") != NULL, "%s", error.message);
    ck_assert_int_eq(safetensors_open("/nowhere/at.safetensors", &file, &error), HONE_IO);
    ck_assert_msg(strstr(error.message, "No such file") != NULL, "%s", error.message);
}
END_TEST

/* A header of two tensors with every damage that a seed makes: bytes changed, taken out, doubled.
 * Whatever is still accepted covers its data. */
START_TEST(damage_is_refused_or_harmless)
{
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"}," GOOD
                                 "," ONE("b.scale", "F8_E8M0", "[2,4]", "[8,16]") "}";
    char text[sizeof header + 8];
    uint64_t random = 20260801 + (uint64_t)_i;
    int accepted = 0;

    for (int n = 0; n < 4000; n++) {
        size_t len = sizeof header - 1;
        safetensors_table *table = NULL;
        memcpy(text, header, len);
        for (uint64_t k = random_below(&random, 4); k < 4 && len > 0; k++) {
            size_t at = (size_t)random_below(&random, len);
            switch (random_below(&random, 3)) {
            case 0:
                text[at] = "0123456789{}[]\",:\\ \x01\xff"[random_below(&random, 21)];
                break;
            case 1:
                memmove(text + at, text + at + 1, len - at - 1);
                len--;
                break;
            default:
                len = at + 1;
            }
        }
        if (safetensors_parse("damaged", text, len, 16, &table, NULL) == HONE_OK) {
            uint64_t bytes = 0;
            for (size_t i = 0; i < table->len; i++) {
                bytes += table->tensors[i].bytes;
            }
            ck_assert_uint_eq(bytes, 16);
            accepted++;
            safetensors_free(table);
        }
    }
    ck_assert_int_lt(accepted, 2000);
}
END_TEST

static void setup(void)
{
    folder_make(folder);
}

static void teardown(void)
{
    folder_remove(folder);
}

int main(void)
{
    TCase *tests = tcase_create("hostile");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, a_lie_is_named, 0, (int)ARRAY_LEN(lies));
    tcase_add_loop_test(tests, a_wrong_length_is_named, 0, (int)ARRAY_LEN(prefixes));
    tcase_add_test(tests, too_many_values_are_refused_before_they_are_read);
    tcase_add_test(tests, what_is_no_file_is_named);
    tcase_add_loop_test(tests, damage_is_refused_or_harmless, 0, 8);
    return suite_run("convert/hostile", tests);
}
