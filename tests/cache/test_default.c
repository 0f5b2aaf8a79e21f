/* test_default.c - which candidate the analytical default is: kept beside the winner, and files of
 * the version that did not know it. */
#include "cache/store.h"
#include "tests/cache/scratch.h"
#include "tests/support/suite.h"

#include <check.h>

#define OK(call) ck_assert_msg((call) == HONE_OK, "%s", scratch_error.message)

static int keep_default(void *context, const store_winner *winner)
{
    *(double *)context = winner->default_ns;
    return 0;
}

static double default_of(store *s)
{
    double ns = -1;

    OK(store_winners(s, NULL, keep_default, &ns, &scratch_error));
    return ns;
}

/* A problem whose candidate 0 wins, and which has three more: 1 by the same timer, 2 wrong, 3 by
 * another timer. Gives their ids. */
static store *open_four(int64_t ids[4], int64_t *problem, int64_t *device)
{
    const device_kind kind = scratch_kind();
    const hone_problem p = scratch_problem(0);
    const store_sweep about = {.command = "test", .nvrtc = "13.0.88", .driver = 13000};
    store *s = NULL;
    int64_t sweep = 0;

    OK(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error));
    OK(store_sweep_begin(s, &about, &sweep, &scratch_error));
    OK(store_device_id(s, &kind, device, &scratch_error));
    OK(store_problem_id(s, &p, problem, &scratch_error));
    for (int i = 0; i < 4; i++) {
        char config_text[64];
        const store_key key = scratch_key(*problem, *device, i, config_text);
        store_result result = scratch_result(i);

        result.outcome = i == 2 ? STORE_WRONG : STORE_OK;
        result.timer = i == 3 ? STORE_TIMER_EVENTS : STORE_TIMER_MODELLED;
        OK(store_candidate_record(s, sweep, &key, &result, &ids[i], &scratch_error));
    }
    OK(store_winner_set(s, *problem, *device, ids[0], STORE_VERDICT_CLEAR, &scratch_error));
    return s;
}

START_TEST(a_default_is_read_with_the_winner_by_its_timer_only)
{
    int64_t ids[4], problem = 0, device = 0;
    store *s = open_four(ids, &problem, &device);

    ck_assert_double_eq(default_of(s), 0); /* not noted yet */
    OK(store_default_set(s, problem, device, ids[1], &scratch_error));
    ck_assert_double_eq(default_of(s), 1001);
    ck_assert_int_eq(store_default_set(s, problem, device, ids[2], &scratch_error),
                     HONE_BAD_ARGUMENT);
    ck_assert_double_eq(default_of(s), 1001);
    OK(store_default_set(s, problem, device, ids[3], &scratch_error));
    ck_assert_double_eq(default_of(s), 0); /* by events: no figure to compare */
    OK(store_default_set(s, problem, device, ids[0], &scratch_error));
    ck_assert_double_eq(default_of(s), 1000);
    OK(store_close(s, &scratch_error));
}
END_TEST

START_TEST(an_edited_default_is_none_and_is_counted)
{
    int64_t ids[4], problem = 0, device = 0;
    store *s = open_four(ids, &problem, &device);
    store_health health;

    OK(store_default_set(s, problem, device, ids[1], &scratch_error));
    OK(store_close(s, &scratch_error));
    scratch_change("UPDATE defaults SET candidate=1");
    OK(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error));
    ck_assert_double_eq(default_of(s), 0);
    OK(store_check(s, &health, &scratch_error));
    ck_assert_uint_eq(health.quarantined, 1);
    OK(store_default_set(s, problem, device, ids[1], &scratch_error)); /* and may be noted anew */
    ck_assert_double_eq(default_of(s), 1001);
    OK(store_close(s, &scratch_error));
}
END_TEST

/* As the first version left it. */
static void make_old(void)
{
    scratch_change("DROP TABLE defaults; PRAGMA user_version=1");
}

START_TEST(an_older_file_is_read_as_it_is_and_brought_up_to_date_by_a_writer)
{
    int64_t ids[4], problem = 0, device = 0;
    store *s = open_four(ids, &problem, &device);
    store_health before, after;

    OK(store_pack(s, NULL, &scratch_error));
    OK(store_close(s, &scratch_error));
    make_old();
    OK(store_open(scratch_here.path, STORE_READ, &s, &scratch_error));
    ck_assert_double_eq(default_of(s), 0);
    OK(store_check(s, &before, &scratch_error));
    OK(store_close(s, &scratch_error));

    OK(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error));
    OK(store_check(s, &after, &scratch_error));
    ck_assert_mem_eq(&before, &after, sizeof before);
    ck_assert_uint_eq(after.candidates, 4);
    OK(store_default_set(s, problem, device, ids[1], &scratch_error));
    OK(store_close(s, &scratch_error));
    OK(store_open(scratch_here.path, STORE_READ, &s, &scratch_error));
    ck_assert_double_eq(default_of(s), 1001);
    OK(store_close(s, &scratch_error));
}
END_TEST

/* A version says which objects there are, both ways. */
static const char *const lies[] = {"PRAGMA user_version=1", "DROP TABLE defaults",
                                   "DROP TABLE defaults; CREATE TABLE defaults(x)"};

START_TEST(a_version_that_lies_is_refused)
{
    store *s = NULL;

    scratch_fill(scratch_here.path, 1);
    scratch_change(lies[_i]);
    ck_assert_int_eq(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error),
                     HONE_STORE_FOREIGN);
    ck_assert_ptr_null(s);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("default");

    scratch_fixture(tests);
    tcase_add_test(tests, a_default_is_read_with_the_winner_by_its_timer_only);
    tcase_add_test(tests, an_edited_default_is_none_and_is_counted);
    tcase_add_test(tests, an_older_file_is_read_as_it_is_and_brought_up_to_date_by_a_writer);
    tcase_add_loop_test(tests, a_version_that_lies_is_refused, 0, (int)ARRAY_LEN(lies));
    return suite_run("cache/default", tests);
}
