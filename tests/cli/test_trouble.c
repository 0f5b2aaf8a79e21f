/* test_trouble.c - a sweep that is interrupted, a store that is damaged, a store that nobody can
 * write. */
#include "tests/cli/flow.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static place here;

static void setup(void)
{
    here = place_make();
    program_run r = program_call(&here, "%s", FLOW_TUNE);
    ck_assert_msg(r.exit_status == 0, "exit %d: %.1000s%.1000s", r.exit_status, r.out, r.err);
    program_free(&r);
}

static void teardown(void)
{
    place_remove(&here);
}

/* ---- Interrupted
 * ---------------------------------------------------------------------------------------------- */

static void wait_ms(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

/* Candidates that a store holds as finished; 0 when it cannot be read yet. */
static size_t finished(const char *store)
{
    size_t count = 0, i;
    json_t *row;
    program_run r = program_call(&here, "hone store list --json --store %s", store);
    json_t *rows = r.exit_status == 0 ? json_loads(r.out, 0, NULL) : NULL;

    json_array_foreach(rows, i, row)
    {
        count += strcmp(json_string_value(json_object_get(row, "outcome")), "inflight") != 0;
    }
    json_decref(rows);
    program_free(&r);
    return count;
}

/* Candidates enough that the sweep is still at work when it is told to stop. */
#define LONG_TUNE                                                                                  \
    "--budget 400 --device emu:h20 --store long.db --problem " FLOW_KV " --problem " FLOW_ACT

/* ---- Two at once. --------------------------------------------------------------------------- */

#define SHARED_TUNE                                                                                \
    "exec \"$HONE\" tune --budget 12 --device emu:h20 --store shared.db --problem " FLOW_KV        \
    " --problem " FLOW_ACT

START_TEST(two_sweeps_share_a_store_and_its_work)
{
    const pid_t one = program_start(&here, "one", SHARED_TUNE),
                two = program_start(&here, "two", SHARED_TUNE);
    program_run first = program_wait(&here, "one", one), second = program_wait(&here, "two", two);

    ck_assert_msg(first.exit_status == 0, "exit %d: %.1000s", first.exit_status, first.err);
    ck_assert_msg(second.exit_status == 0, "exit %d: %.1000s", second.exit_status, second.err);
    program_free(&first);
    program_free(&second);
    ck_assert_uint_eq(finished("shared.db"), 24); /* each candidate once */
}
END_TEST

static const int stops[] = {SIGINT, SIGTERM};

START_TEST(an_interrupted_sweep_ends_well_and_goes_on)
{
    program_run r = program_call(&here, "rm -f long.db");
    program_free(&r);
    pid_t group = program_start(&here, "long", "exec \"$HONE\" tune " LONG_TUNE);

    while (finished("long.db") < 3) {
        wait_ms(20);
    }
    ck_assert_int_eq(kill(-group, stops[_i]), 0);
    r = program_wait(&here, "long", group);
    ck_assert_msg(r.exit_status == 1, "exit %d, signal %d: %s", r.exit_status, r.signal, r.err);
    ck_assert_msg(program_says(&r, "the same command goes on from here"), "%s", r.err);
    program_free(&r);
    r = program_call(&here, "test ! -e long.db-wal"); /* left as a file that opens read-only */
    ck_assert_int_eq(r.exit_status, 0);
    program_free(&r);

    const size_t before = finished("long.db");
    r = program_call(&here, "hone tune " LONG_TUNE);
    ck_assert_msg(r.exit_status == 0, "exit %d: %.1000s%.1000s", r.exit_status, r.out, r.err);
    program_free(&r);
    ck_assert_uint_gt(finished("long.db"), before);
    r = program_call(&here, "hone tune " LONG_TUNE);
    ck_assert_msg(program_says(&r, "Nothing left to do"), "%s%s", r.out, r.err);
    program_free(&r);
}
END_TEST

/* ---- Damaged
 * --------------------------------------------------------------------------------------------------
 */

/* Change bits of the store's copy: `count` bytes spread over the file from `seed` on. */
static void damage(const char *file, unsigned seed, size_t count)
{
    char path[PROGRAM_PATH_BYTES];
    struct stat about;
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

    place_copy(&here, PLACE_STORE, file);
    ck_assert_int_eq(stat(place_path(&here, file, path), &about), 0);
    FILE *f = fopen(path, "r+b");
    ck_assert_ptr_nonnull(f);
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        long at = (long)((state >> 20) % (uint64_t)about.st_size);
        fseek(f, at, SEEK_SET);
        int byte = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(byte ^ (1 << (state & 7)), f);
    }
    ck_assert_int_eq(fclose(f), 0);
}

enum { DAMAGES = 24 };

/* An answer of a damaged store is the undamaged one's, a default that needs no store, or a refusal.
 */
START_TEST(a_damaged_store_never_answers_wrongly)
{
    static const char ask[] = "hone lookup --device emu:h20 --problem " FLOW_ACT " --store ";
    program_run right = program_call(&here, "%s../%s", ask, PLACE_STORE);

    damage("run/damaged.db", (unsigned)_i + 1, _i < DAMAGES / 2 ? 1 : 64);
    program_run got = program_call(&here, "%sdamaged.db", ask);
    ck_assert_int_eq(right.exit_status, 0);
    if (got.exit_status == 0) {
        ck_assert_msg(strcmp(got.out, right.out) == 0 || strstr(got.out, "default: ") != NULL, "%s",
                      got.out);
    } else {
        ck_assert_int_ne(got.exit_status, -1);
        ck_assert_msg(strstr(got.err, "damaged.db") != NULL, "%s", got.err);
    }
    program_free(&got);
    /* Rows are checked one by one: bytes that no row covers are nobody's. */
    got = program_call(&here, "hone store check --store damaged.db");
    ck_assert_msg(got.exit_status >= 0 && got.exit_status <= 3, "exit %d", got.exit_status);
    if (_i >= DAMAGES / 2) {
        ck_assert_msg(got.exit_status != 0, "64 bits were flipped: %s", got.out);
    }
    program_free(&got);
    program_free(&right);
}
END_TEST

/* ---- Read-only
 * ------------------------------------------------------------------------------------------------
 */

#define AS_NOBODY "setpriv --reuid 65534 --regid 65534 --clear-groups "

START_TEST(a_read_only_store_serves_a_user_without_rights)
{
    static const char prepare[] = "chmod 755 .. . && mkdir -p image && cp ../" PLACE_STORE
                                  " image/ && chmod 444 image/hone.db "
                                  "&& chmod 555 image && mkdir -p theirs && chown 65534 theirs";
    program_run r = program_call(&here, "%s && " AS_NOBODY "\"$HONE\" --help", prepare);

    if (r.exit_status != 0) {
        printf("SKIP cli/trouble: no run as uid 65534 here: %s\n", r.err);
        program_free(&r);
        return;
    }
    program_free(&r);
    r = program_call(&here,
                     "XDG_CACHE_HOME=$PWD/theirs " AS_NOBODY
                     "\"$HONE\" lookup --store image/hone.db --device emu:h20 --problem " FLOW_ACT);
    ck_assert_msg(r.exit_status == 0, "exit %d: %s", r.exit_status, r.err);
    ck_assert_msg(program_says(&r, "exact: act_quant/groups"), "%s", r.out);
    program_free(&r);
    /* Nothing lies beside it that was not there. */
    r = program_call(&here, "test \"$(ls image)\" = hone.db && " AS_NOBODY
                            "\"$HONE\" store check --store image/hone.db");
    ck_assert_msg(r.exit_status == 0, "exit %d: %.1000s%.1000s", r.exit_status, r.out, r.err);
    program_free(&r);
    r = program_call(&here, "chmod 755 image"); /* so that it can be removed */
    program_free(&r);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("trouble");

    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_test(tests, two_sweeps_share_a_store_and_its_work);
    tcase_add_loop_test(tests, an_interrupted_sweep_ends_well_and_goes_on, 0,
                        sizeof stops / sizeof stops[0]);
    tcase_add_loop_test(tests, a_damaged_store_never_answers_wrongly, 0, DAMAGES);
    tcase_add_test(tests, a_read_only_store_serves_a_user_without_rights);
    return suite_run_here("cli/trouble", tests);
}
