/* test_generation.c - what serving reads: every winner, from read-only media, and never a changed
 * one. */
#include "cache/generation.h"
#include "cache/store.h"
#include "tests/cache/scratch.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <grp.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(every_winner_is_there_and_whole)
{
    generation *g = NULL;

    scratch_fill(scratch_here.path, 700);
    ck_assert_msg(generation_load(scratch_here.path, &g, &scratch_error) == HONE_OK, "%s",
                  scratch_error.message);
    ck_assert_uint_eq(generation_len(g), 700);
    ck_assert_uint_eq(generation_number(g), 1);
    for (size_t i = 0; i < generation_len(g); i++) {
        const generation_winner *w = generation_at(g, i);
        uint8_t key[PROBLEM_KEY_MAX];
        ck_assert(scratch_is_ours(w));
        ck_assert_uint_eq(problem_key(&w->problem, key), w->key_len);
        ck_assert_mem_eq(key, w->key, w->key_len);
    }
    generation_free(g);
}
END_TEST

START_TEST(the_same_winners_pack_to_the_same_digest_and_no_new_generation)
{
    generation *a = NULL, *b = NULL;
    scratch other;

    scratch_make(&other);
    scratch_fill(scratch_here.path, 20);
    scratch_fill(other.path, 20);
    ck_assert_int_eq(generation_load(scratch_here.path, &a, &scratch_error), HONE_OK);
    ck_assert_int_eq(generation_load(other.path, &b, &scratch_error), HONE_OK);
    ck_assert_mem_eq(generation_digest(a), generation_digest(b), 32);
    generation_free(a);
    generation_free(b);

    store *s = NULL;
    uint64_t number = 0;
    ck_assert_int_eq(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error), HONE_OK);
    ck_assert_int_eq(store_pack(s, &number, &scratch_error), HONE_OK);
    ck_assert_uint_eq(number, 1);
    ck_assert_int_eq(store_close(s, &scratch_error), HONE_OK);
    scratch_remove(&other);
}
END_TEST

START_TEST(a_store_without_a_generation_says_so)
{
    store *s = NULL;
    generation *g = NULL;

    ck_assert_int_eq(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error), HONE_OK);
    ck_assert_int_eq(store_close(s, &scratch_error), HONE_OK);
    ck_assert_int_eq(generation_load(scratch_here.path, &g, &scratch_error), HONE_NOT_FOUND);
    ck_assert_ptr_null(g);
}
END_TEST

START_TEST(grades_tell_how_far_a_winner_can_be_trusted)
{
    generation *g = NULL;

    scratch_fill(scratch_here.path, 1);
    ck_assert_int_eq(generation_load(scratch_here.path, &g, &scratch_error), HONE_OK);
    const generation_winner *w = generation_at(g, 0);
    uint8_t text[32];
    memcpy(text, w->template_digest, sizeof text);
    ck_assert_int_eq(generation_grade_of(w, text, "13.0.88", 13000), GENERATION_CURRENT);
    ck_assert_int_eq(generation_grade_of(w, text, "13.0.88", 13010), GENERATION_SUSPECT);
    ck_assert_int_eq(generation_grade_of(w, text, "12.9.41", 13000), GENERATION_SUSPECT);
    text[0] ^= 1;
    ck_assert_int_eq(generation_grade_of(w, text, "13.0.88", 13000), GENERATION_STALE);
    generation_free(g);
}
END_TEST

/* ---- Read-only media. Root may write anything, so that these run as another user (reliability.md
 * 0.8). ---- */

static int load_as_nobody(void *context)
{
    generation *g = NULL;
    hone_error why = {0};

    (void)context;
    if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0) {
        return 77;
    }
    hone_status status = generation_load(scratch_here.path, &g, &why);
    size_t len = g != NULL ? generation_len(g) : 0;
    generation_free(g);
    if (status == HONE_STORE_IO && strstr(why.message, "-wal") != NULL) {
        return 2;
    }
    return status == HONE_OK && len == 5 ? 0 : 1;
}

/* Runs load_as_nobody in a folder of mode 0555 with a file of mode 0444; false, said loudly, when
 * not permitted. */
static bool read_only(int expected)
{
    if (geteuid() != 0) {
        printf("SKIP: read-only as another user needs root to change users\n");
        return false;
    }
    ck_assert_int_eq(chmod(scratch_here.path, 0444), 0);
    ck_assert_int_eq(chmod(scratch_here.folder, 0555), 0);
    int got = scratch_wait(scratch_spawn(load_as_nobody, NULL));
    if (got == 77) {
        printf("SKIP: this environment does not let us become another user\n");
        return false;
    }
    ck_assert_int_eq(got, expected);
    return true;
}

static void copy(const char *from, const char *to)
{
    size_t len = 0;
    char *bytes = file_read(from, &len);

    file_write(to, bytes, len);
    free(bytes);
    chmod(to, 0444);
}

/* Leave the file in WAL mode, with or without a -wal that holds rows, as a crash or a careless copy
 * would. */
static void into_wal(bool with_rows)
{
    sqlite3 *db = NULL;
    char saved[PATH_MAX], wal[PATH_MAX + 8], wal_saved[PATH_MAX + 8], shm[PATH_MAX + 8];

    snprintf(saved, sizeof saved, "%s/saved.db", scratch_here.folder);
    snprintf(wal, sizeof wal, "%s-wal", scratch_here.path);
    snprintf(shm, sizeof shm, "%s-shm", scratch_here.path);
    snprintf(wal_saved, sizeof wal_saved, "%s/saved.db-wal", scratch_here.folder);
    ck_assert_int_eq(sqlite3_open(scratch_here.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;"
                                  "DELETE FROM winners WHERE id=1",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    copy(scratch_here.path, saved);
    if (with_rows) {
        copy(wal, wal_saved);
    }
    sqlite3_close(db);
    unlink(wal);
    unlink(shm);
    ck_assert_int_eq(rename(saved, scratch_here.path), 0);
    if (with_rows) {
        ck_assert_int_eq(rename(wal_saved, wal), 0);
    }
}

START_TEST(a_shipped_store_opens_in_a_read_only_folder)
{
    scratch_fill(scratch_here.path, 5);
    read_only(0);
}
END_TEST

START_TEST(even_one_that_was_left_in_wal_mode)
{
    scratch_fill(scratch_here.path, 5);
    into_wal(false);
    read_only(0);
}
END_TEST

START_TEST(rows_in_a_leftover_wal_are_reported_not_left_out)
{
    scratch_fill(scratch_here.path, 5);
    into_wal(true);
    read_only(2);
}
END_TEST

START_TEST(loading_keeps_no_descriptor_and_makes_no_file)
{
    generation *g = NULL;
    char name[PATH_MAX + 8];
    int before = open("/dev/null", O_RDONLY);

    close(before);
    scratch_fill(scratch_here.path, 5);
    ck_assert_int_eq(generation_load(scratch_here.path, &g, &scratch_error), HONE_OK);
    int after = open("/dev/null", O_RDONLY);
    close(after);
    ck_assert_int_eq(before, after);
    snprintf(name, sizeof name, "%s-shm", scratch_here.path);
    ck_assert_int_ne(access(name, F_OK), 0);
    generation_free(g);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("generation");

    tcase_set_timeout(tests, 300);
    scratch_fixture(tests);
    tcase_add_test(tests, every_winner_is_there_and_whole);
    tcase_add_test(tests, the_same_winners_pack_to_the_same_digest_and_no_new_generation);
    tcase_add_test(tests, a_store_without_a_generation_says_so);
    tcase_add_test(tests, grades_tell_how_far_a_winner_can_be_trusted);
    tcase_add_test(tests, a_shipped_store_opens_in_a_read_only_folder);
    tcase_add_test(tests, even_one_that_was_left_in_wal_mode);
    tcase_add_test(tests, rows_in_a_leftover_wal_are_reported_not_left_out);
    tcase_add_test(tests, loading_keeps_no_descriptor_and_makes_no_file);
    return suite_run("cache/generation", tests);
}
