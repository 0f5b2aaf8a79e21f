/* test_safetensors.c - files written, read, and looked at through windows; nothing under a file's
 * name until it is whole. */
#include "convert/safetensors.h"
#include "tests/support/file.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dirent.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[FOLDER_BYTES];
static hone_error error;

static const safetensors_tensor tensors[] = {
    {.name = "norm.weight", .dtype = SAFETENSORS_BF16, .rank = 1, .shape = {3}},
    {.name = "w.weight", .dtype = SAFETENSORS_F8_E4M3, .rank = 2, .shape = {3, 5}},
    {.name = "w.scale", .dtype = SAFETENSORS_F32, .rank = 2, .shape = {1, 1}},
    {.name = "empty", .dtype = SAFETENSORS_I64, .rank = 2, .shape = {0, 7}},
    {.name = "scalar", .dtype = SAFETENSORS_F64, .rank = 0},
    {.name = "w.e8m0 \"q\"", .dtype = SAFETENSORS_F8_E8M0, .rank = 1, .shape = {2}},
    {.name = "packed", .dtype = SAFETENSORS_F4, .rank = 2, .shape = {2, 4}},
};
static const safetensors_note notes[] = {{"format", "pt"}, {"made \"by\"", "a test\n"}};
static const safetensors_table table = {tensors, ARRAY_LEN(tensors), notes, ARRAY_LEN(notes)};
static const size_t bytes_of[] = {6, 15, 4, 0, 8, 2, 4};

static const char *path_of(const char *name)
{
    static char path[FOLDER_BYTES + 64];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Files in the folder, hidden ones too. */
static int count_files(void)
{
    DIR *d = opendir(folder);
    int count = 0;

    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(d);
    return count;
}

/* Every tensor's bytes: its index times 16, and up. In an order that is not that of the file. */
static void write_all(safetensors_writer *w)
{
    for (size_t i = ARRAY_LEN(tensors); i-- > 0;) {
        for (size_t at = bytes_of[i]; at-- > 0;) {
            uint8_t byte = (uint8_t)(16 * i + at);
            ck_assert_int_eq(safetensors_write(w, i, at, &byte, 1, &error), HONE_OK);
        }
    }
}

static safetensors_file *make(const char *name)
{
    safetensors_writer *w = NULL;
    safetensors_file *file = NULL;

    ck_assert_msg(safetensors_create(path_of(name), &table, false, &w, &error) == HONE_OK, "%s",
                  error.message);
    write_all(w);
    ck_assert_msg(safetensors_commit(w, &error) == HONE_OK, "%s", error.message);
    ck_assert_msg(safetensors_open(path_of(name), &file, &error) == HONE_OK, "%s", error.message);
    return file;
}

START_TEST(what_is_written_is_read)
{
    safetensors_file *file = make("a.safetensors");
    const safetensors_table *got = safetensors_table_of(file);
    size_t seen = 0;

    ck_assert_uint_eq(got->len, ARRAY_LEN(tensors));
    ck_assert_uint_eq(got->notes_len, ARRAY_LEN(notes));
    for (size_t i = 0; i < ARRAY_LEN(notes); i++) {
        ck_assert_str_eq(got->notes[i].key, notes[i].key);
        ck_assert_str_eq(got->notes[i].value, notes[i].value);
    }
    for (size_t i = 0; i < got->len; i++) {
        const safetensors_tensor *t = &got->tensors[i];
        size_t k = 0;
        while (strcmp(tensors[k].name, t->name) != 0) {
            k++;
        }
        safetensors_window w;
        ck_assert_int_eq(t->dtype, tensors[k].dtype);
        ck_assert_uint_eq(t->rank, tensors[k].rank);
        ck_assert_mem_eq(t->shape, tensors[k].shape, sizeof t->shape);
        ck_assert_uint_eq(t->bytes, bytes_of[k]);
        ck_assert_int_eq(safetensors_view(file, t, 0, t->bytes, &w, &error), HONE_OK);
        for (size_t at = 0; at < t->bytes; at++) {
            ck_assert_uint_eq(w.bytes[at], 16 * k + at);
        }
        safetensors_unview(&w);
        ck_assert_int_eq(safetensors_view(file, t, 1, t->bytes, &w, &error), HONE_BAD_ARGUMENT);
        seen |= (size_t)1 << k;
    }
    ck_assert_uint_eq(seen, 0x7f);
    safetensors_close(file);
}
END_TEST

/* The format as its description has it, read without our reader. */
START_TEST(the_file_is_as_the_format_says)
{
    safetensors_close(make("a.safetensors"));
    size_t len = 0;
    char *bytes = file_read(path_of("a.safetensors"), &len);
    uint64_t header_len = 0;
    memcpy(&header_len, bytes, 8);
    ck_assert_uint_eq(header_len % 8, 0);
    json_t *root = json_loadb(bytes + 8, header_len, 0, NULL);
    ck_assert_ptr_nonnull(root);

    const char *key = NULL;
    json_t *value = NULL;
    json_int_t at = 0;
    json_object_foreach(root, key, value)
    {
        if (strcmp(key, "__metadata__") == 0) {
            continue;
        }
        json_t *offsets = json_object_get(value, "data_offsets");
        json_int_t begin = json_integer_value(json_array_get(offsets, 0));
        ck_assert_int_eq(begin, at);
        at = json_integer_value(json_array_get(offsets, 1));
        size_t k = 0;
        while (strcmp(tensors[k].name, key) != 0) {
            k++;
        }
        unsigned unit = (safetensors_dtype_bits(tensors[k].dtype) + 7) / 8;
        ck_assert_int_eq(begin % unit, 0);
        ck_assert_int_eq(at - begin, bytes_of[k]);
    }
    ck_assert_uint_eq(8 + header_len + (uint64_t)at, len);
    json_decref(root);
    free(bytes);
}
END_TEST

START_TEST(nothing_is_there_before_commit_nor_after_abandon)
{
    safetensors_writer *w = NULL;

    ck_assert_int_eq(safetensors_create(path_of("a"), &table, false, &w, &error), HONE_OK);
    ck_assert_int_eq(access(path_of("a"), F_OK), -1);
    ck_assert_int_eq(count_files(), 1);
    safetensors_abandon(w);
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

START_TEST(a_file_with_bytes_missing_is_not_committed)
{
    safetensors_writer *w = NULL;
    uint8_t byte = 0;

    ck_assert_int_eq(safetensors_create(path_of("a"), &table, false, &w, &error), HONE_OK);
    ck_assert_int_eq(safetensors_write(w, 1, 15, &byte, 1, &error), HONE_BAD_ARGUMENT);
    ck_assert_int_eq(safetensors_commit(w, &error), HONE_BAD_ARGUMENT);
    ck_assert_msg(strstr(error.message, "0 of 39 bytes") != NULL, "%s", error.message);
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

START_TEST(an_existing_file_is_kept_unless_told)
{
    safetensors_writer *w = NULL;

    file_write_text(path_of("a"), "old");
    ck_assert_int_eq(safetensors_create(path_of("a"), &table, false, &w, &error),
                     HONE_BAD_ARGUMENT);
    ck_assert_msg(strstr(error.message, "exists") != NULL, "%s", error.message);
    ck_assert_int_eq(safetensors_create(path_of("a"), &table, true, &w, &error), HONE_OK);
    write_all(w);
    char *text = file_read(path_of("a"), NULL);
    ck_assert_str_eq(text, "old");
    free(text);
    ck_assert_int_eq(safetensors_commit(w, &error), HONE_OK);
    ck_assert_int_eq(count_files(), 1);
    safetensors_file *file = NULL;
    ck_assert_int_eq(safetensors_open(path_of("a"), &file, &error), HONE_OK);
    safetensors_close(file);
}
END_TEST

/* Somebody else's file that appeared while ours was written stays theirs. */
START_TEST(a_file_that_appears_meanwhile_is_kept)
{
    safetensors_writer *w = NULL;

    ck_assert_int_eq(safetensors_create(path_of("a"), &table, false, &w, &error), HONE_OK);
    write_all(w);
    file_write_text(path_of("a"), "theirs");
    ck_assert_int_eq(safetensors_commit(w, &error), HONE_IO);
    char *text = file_read(path_of("a"), NULL);
    ck_assert_str_eq(text, "theirs");
    free(text);
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(a_full_disk_leaves_nothing)
{
    safetensors_writer *w = NULL;
    struct rlimit usual;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &usual);
    const struct rlimit small = {200, usual.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    hone_status status = safetensors_create(path_of("a"), &table, false, &w, &error);
    setrlimit(RLIMIT_FSIZE, &usual); /* Check writes files of its own */
    ck_assert_int_eq(status, HONE_IO);
    ck_assert_msg(strstr(error.message, "make room") != NULL, "%s", error.message);
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

START_TEST(no_folder_is_named)
{
    safetensors_writer *w = NULL;

    ck_assert_int_eq(safetensors_create(path_of("no/a"), &table, false, &w, &error), HONE_IO);
    ck_assert_msg(strstr(error.message, "beside it") != NULL, "%s", error.message);
    ck_assert_str_eq(error.source, path_of("no/a"));
}
END_TEST

/* A file that is cut after it was opened: small windows are read, large ones mapped. */
START_TEST(a_file_that_is_cut_is_an_error_in_both_kinds_of_window)
{
    static const safetensors_tensor big[] = {
        {.name = "big", .dtype = SAFETENSORS_U8, .rank = 1, .shape = {1 << 20}}};
    static const safetensors_table one = {big, 1, NULL, 0};
    static uint8_t zeros[1 << 20];
    safetensors_writer *w = NULL;
    safetensors_file *file = NULL;
    safetensors_window window;

    ck_assert_int_eq(safetensors_create(path_of("a"), &one, false, &w, &error), HONE_OK);
    ck_assert_int_eq(safetensors_write(w, 0, 0, zeros, sizeof zeros, &error), HONE_OK);
    ck_assert_int_eq(safetensors_commit(w, &error), HONE_OK);
    ck_assert_int_eq(safetensors_open(path_of("a"), &file, &error), HONE_OK);
    const safetensors_tensor *t = safetensors_table_of(file)->tensors;
    ck_assert_int_eq(safetensors_view(file, t, 3, sizeof zeros - 3, &window, &error), HONE_OK);
    ck_assert_uint_eq(window.bytes[sizeof zeros - 4], 0);
    safetensors_unview(&window);
    ck_assert_int_eq(truncate(path_of("a"), 4096), 0);
    ck_assert_int_eq(safetensors_view(file, t, 0, sizeof zeros, &window, &error), HONE_IO);
    ck_assert_msg(strstr(error.message, "the file ends before it") != NULL, "%s", error.message);
    ck_assert_int_eq(safetensors_view(file, t, 8192, 16, &window, &error), HONE_IO);
    safetensors_close(file);
}
END_TEST

static void setup(void)
{
    folder_make(folder);
    error = (hone_error){0};
}

static void teardown(void)
{
    folder_remove(folder);
}

int main(void)
{
    TCase *tests = tcase_create("safetensors");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_is_written_is_read);
    tcase_add_test(tests, the_file_is_as_the_format_says);
    tcase_add_test(tests, nothing_is_there_before_commit_nor_after_abandon);
    tcase_add_test(tests, a_file_with_bytes_missing_is_not_committed);
    tcase_add_test(tests, an_existing_file_is_kept_unless_told);
    tcase_add_test(tests, a_file_that_appears_meanwhile_is_kept);
    tcase_add_test(tests, a_full_disk_leaves_nothing);
    tcase_add_test(tests, no_folder_is_named);
    tcase_add_test(tests, a_file_that_is_cut_is_an_error_in_both_kinds_of_window);
    return suite_run("convert/safetensors", tests);
}
