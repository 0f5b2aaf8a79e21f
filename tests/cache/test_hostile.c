/* test_hostile.c - files that are not our store, or pretend to be: each its status, none runs or
 * hangs. */
#include "cache/generation.h"
#include "cache/store.h"
#include "cache/trust.h"
#include "tests/cache/scratch.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Applied to a good store; reading and writing must both refuse it, before the watchdog ends what
 * hangs. */
static const struct {
    const char *name, *sql;
    hone_status status;
} changed[] = {
    {"another program's file", "PRAGMA application_id=1", HONE_STORE_FOREIGN},
    {"a newer schema", "PRAGMA user_version=3", HONE_STORE_FOREIGN},
    {"an older schema that never was", "PRAGMA user_version=0", HONE_STORE_FOREIGN},
    {"a trigger", "CREATE TRIGGER t AFTER INSERT ON sweeps BEGIN DELETE FROM winners; END",
     HONE_STORE_FOREIGN},
    {"a view that never ends",
     "CREATE VIEW v AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM r) SELECT x FROM "
     "r",
     HONE_STORE_FOREIGN},
    {"a table in a view's clothes",
     "DROP TABLE winners; CREATE VIEW winners AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT "
     "x+1 FROM r) SELECT x AS id, x AS problem FROM r",
     HONE_STORE_FOREIGN},
    {"an extra table", "CREATE TABLE more(x)", HONE_STORE_FOREIGN},
    {"an extra index", "CREATE INDEX i ON candidates(outcome)", HONE_STORE_FOREIGN},
    {"a missing table", "DROP TABLE generations", HONE_STORE_FOREIGN},
    {"a column more", "ALTER TABLE winners ADD COLUMN x INTEGER", HONE_STORE_FOREIGN},
    {"a check that costs memory",
     "DROP TABLE winners; CREATE TABLE winners(id INTEGER PRIMARY KEY, x CHECK(length(zeroblob("
     "100000000)) > 0))",
     HONE_STORE_FOREIGN},
    {"a generated column",
     "DROP TABLE winners; CREATE TABLE winners(id INTEGER PRIMARY KEY, x AS (id+1))",
     HONE_STORE_FOREIGN},
};

START_TEST(a_file_that_is_not_quite_ours_is_refused)
{
    store *s = NULL;
    generation *g = NULL;

    scratch_fill(scratch_here.path, 2);
    scratch_change(changed[_i].sql);
    ck_assert_msg(store_open(scratch_here.path, STORE_READ, &s, &scratch_error) ==
                      changed[_i].status,
                  "%s: %s", changed[_i].name, scratch_error.message);
    ck_assert_msg(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error) ==
                      changed[_i].status,
                  "%s: %s", changed[_i].name, scratch_error.message);
    ck_assert_msg(generation_load(scratch_here.path, &g, &scratch_error) == changed[_i].status,
                  "%s: %s", changed[_i].name, scratch_error.message);
    ck_assert_ptr_null(s);
    ck_assert_ptr_null(g);
}
END_TEST

/* Rows changed by SQL have valid pages, but not valid digests. */
static const char *const edits[] = {
    "UPDATE candidates SET time_ns=1 WHERE id=1",
    "UPDATE candidates SET config='block_m=999' WHERE id=1",
    "UPDATE candidates SET id=100 WHERE id=1",
    "UPDATE problems SET text='act_quant:m=1,k=128' WHERE id=1",
    "UPDATE devices SET sm_count=132",
    "UPDATE candidates SET digest=zeroblob(32) WHERE id=1",
    "UPDATE candidates SET digest=(SELECT digest FROM candidates WHERE id=2) WHERE id=1",
};

static int count(void *context, const store_row *row)
{
    (void)row;
    ++*(int *)context;
    return 0;
}

START_TEST(a_row_that_was_edited_is_counted_and_not_served)
{
    store *s = NULL;
    int rows = 0;
    store_health health;

    scratch_fill(scratch_here.path, 2);
    scratch_change(edits[_i]);
    ck_assert_int_eq(store_open(scratch_here.path, STORE_READ, &s, &scratch_error), HONE_OK);
    ck_assert_int_eq(store_candidates(s, NULL, count, &rows, &scratch_error), HONE_OK);
    ck_assert_int_le(rows, 1);
    ck_assert_int_eq(store_check(s, &health, &scratch_error), HONE_OK);
    ck_assert_uint_ge(health.quarantined, 1);
    store_close(s, NULL);
}
END_TEST

START_TEST(an_edited_winner_is_not_packed_and_can_be_chosen_anew)
{
    store *s = NULL;
    generation *g = NULL;

    scratch_fill(scratch_here.path, 3);
    scratch_change("UPDATE winners SET candidate=2 WHERE id=1");
    ck_assert_int_eq(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error), HONE_OK);
    ck_assert_int_eq(store_pack(s, NULL, &scratch_error), HONE_OK);
    ck_assert_int_eq(store_close(s, &scratch_error), HONE_OK);
    ck_assert_int_eq(generation_load(scratch_here.path, &g, &scratch_error), HONE_OK);
    ck_assert_uint_eq(generation_len(g), 2);
    generation_free(g);
    ck_assert_int_eq(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error), HONE_OK);
    ck_assert_msg(store_winner_set(s, 1, 1, 1, STORE_VERDICT_CLEAR, &scratch_error) == HONE_OK,
                  "%s", scratch_error.message);
    ck_assert_int_eq(store_pack(s, NULL, &scratch_error), HONE_OK);
    ck_assert_int_eq(store_close(s, &scratch_error), HONE_OK);
    ck_assert_int_eq(generation_load(scratch_here.path, &g, &scratch_error), HONE_OK);
    ck_assert_uint_eq(generation_len(g), 3);
    generation_free(g);
}
END_TEST

START_TEST(a_damaged_generation_falls_back_to_the_one_before)
{
    generation *g = NULL;
    store *s = NULL;

    scratch_fill(scratch_here.path, 2);
    scratch_change("UPDATE candidates SET config='block_m=1' WHERE id=1"); /* one winner less */
    ck_assert_int_eq(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error), HONE_OK);
    ck_assert_int_eq(store_pack(s, NULL, &scratch_error), HONE_OK);
    ck_assert_int_eq(store_close(s, &scratch_error), HONE_OK);
    ck_assert_int_eq(generation_load(scratch_here.path, &g, &scratch_error), HONE_OK);
    ck_assert_uint_eq(generation_number(g), 2);
    generation_free(g);
    scratch_change("UPDATE generations SET packed=zeroblob(length(packed)) WHERE number=2");
    ck_assert_int_eq(generation_load(scratch_here.path, &g, &scratch_error), HONE_OK);
    ck_assert_uint_eq(generation_number(g), 1);
    ck_assert_uint_eq(generation_len(g), 2);
    generation_free(g);
    g = NULL;
    scratch_change("UPDATE generations SET content=zeroblob(32) WHERE number=1");
    ck_assert_int_eq(generation_load(scratch_here.path, &g, &scratch_error), HONE_STORE_DAMAGED);
    ck_assert_ptr_null(g);
}
END_TEST

START_TEST(what_is_no_database_is_refused)
{
    store *s = NULL;

    file_write_text(scratch_here.path,
                    "SQLite format 3, or so it says; the rest is too short to be one. ........"
                    "...........................................................");
    ck_assert_int_eq(store_open(scratch_here.path, STORE_READ, &s, &scratch_error),
                     HONE_STORE_FOREIGN);
    ck_assert_int_eq(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error),
                     HONE_STORE_FOREIGN);
    file_write_text(scratch_here.path, "");
    ck_assert_int_eq(store_open(scratch_here.path, STORE_READ, &s, &scratch_error),
                     HONE_STORE_FOREIGN);
    ck_assert_int_eq(store_open(scratch_here.folder, STORE_READ, &s, &scratch_error),
                     HONE_STORE_IO);
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(a_writer_trusts_no_file_that_others_may_change)
{
    store *s = NULL;
    char other[PATH_MAX + 8];

    scratch_fill(scratch_here.path, 1);
    chmod(scratch_here.path, 0666);
    ck_assert_int_eq(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error),
                     HONE_UNTRUSTED);
    chmod(scratch_here.path, 0600);
    chmod(scratch_here.folder, 0777);
    ck_assert_int_eq(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error),
                     HONE_UNTRUSTED);
    chmod(scratch_here.folder, 0700);
    snprintf(other, sizeof other, "%s.link", scratch_here.path);
    ck_assert_int_eq(link(scratch_here.path, other), 0);
    ck_assert_int_eq(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error),
                     HONE_UNTRUSTED);
    unlink(other);
    ck_assert_int_eq(symlink(scratch_here.path, other), 0);
    ck_assert_int_eq(store_open(other, STORE_WRITE, &s, &scratch_error), HONE_UNTRUSTED);
    unlink(other);
    snprintf(other, sizeof other, "%s-wal", scratch_here.path);
    ck_assert_int_eq(symlink("/etc/passwd", other), 0);
    ck_assert_int_eq(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error),
                     HONE_UNTRUSTED);
    unlink(other);
    snprintf(other, sizeof other, "%s/pipe", scratch_here.folder);
    ck_assert_int_eq(mkfifo(other, 0600), 0);
    ck_assert_int_eq(store_open(other, STORE_WRITE, &s, &scratch_error), HONE_UNTRUSTED);
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(a_reader_follows_links_to_its_file)
{
    char other[PATH_MAX + 8];
    generation *g = NULL;

    scratch_fill(scratch_here.path, 1);
    snprintf(other, sizeof other, "%s.link", scratch_here.path);
    ck_assert_int_eq(symlink(scratch_here.path, other), 0);
    ck_assert_msg(generation_load(other, &g, &scratch_error) == HONE_OK, "%s",
                  scratch_error.message);
    generation_free(g);
}
END_TEST

START_TEST(a_path_is_a_name_and_never_syntax)
{
    char odd[PATH_MAX + 64];
    generation *g = NULL;

    snprintf(odd, sizeof odd, "%s/50%%41 a?mode=memory#x'\".db", scratch_here.folder);
    scratch_fill(odd, 1);
    ck_assert_int_eq(access(odd, F_OK), 0);
    ck_assert_int_eq(generation_load(odd, &g, &scratch_error), HONE_OK);
    generation_free(g);
}
END_TEST

START_TEST(file_systems_that_hosts_share_are_known)
{
    ck_assert(trust_filesystem_shared(0x6969));
    ck_assert(trust_filesystem_shared((long)0xff534d42));
    ck_assert(trust_filesystem_shared(0x65735546));
    ck_assert(!trust_filesystem_shared(0xef53));
    ck_assert(!trust_filesystem_shared(0x01021994));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("hostile");

    tcase_set_timeout(tests, 60);
    scratch_fixture(tests);
    tcase_add_loop_test(tests, a_file_that_is_not_quite_ours_is_refused, 0,
                        (int)ARRAY_LEN(changed));
    tcase_add_loop_test(tests, a_row_that_was_edited_is_counted_and_not_served, 0,
                        (int)ARRAY_LEN(edits));
    tcase_add_test(tests, an_edited_winner_is_not_packed_and_can_be_chosen_anew);
    tcase_add_test(tests, a_damaged_generation_falls_back_to_the_one_before);
    tcase_add_test(tests, what_is_no_database_is_refused);
    tcase_add_test(tests, a_writer_trusts_no_file_that_others_may_change);
    tcase_add_test(tests, a_reader_follows_links_to_its_file);
    tcase_add_test(tests, a_path_is_a_name_and_never_syntax);
    tcase_add_test(tests, file_systems_that_hosts_share_are_known);
    return suite_run("cache/hostile", tests);
}
