/* test_files.c - what is written is read back, comes into a store once, and is never trusted. */
#include "tests/exchange/sample.h"

#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 24 };

static const exchange_format formats[] = {EXCHANGE_CACHEFILE, EXCHANGE_T4};

/* Figures equal, a NaN equal to a NaN; a time that went through milliseconds to a few roundings. */
static void demand_near(double a, double b)
{
    ck_assert_msg((isnan(a) && isnan(b)) || fabs(a - b) <= 1e-14 * fabs(a), "%.17g is not %.17g", b,
                  a);
}

static void demand_same_result(const store_result *a, const store_result *b)
{
    ck_assert_int_eq(a->outcome, b->outcome);
    ck_assert_str_eq(a->reason, b->reason);
    ck_assert_int_eq(a->registers, b->registers);
    ck_assert_int_eq(a->shared_bytes, b->shared_bytes);
    ck_assert_int_eq(a->timer, b->timer);
    demand_near(a->time_ns, b->time_ns);
    demand_near(a->compile_ms, b->compile_ms);
    ck_assert_uint_eq(a->samples_len, b->samples_len);
    for (size_t i = 0; i < a->samples_len; i++) {
        demand_near(a->samples_ns[i], b->samples_ns[i]);
    }
    ck_assert_str_eq(a->cache_mode, b->cache_mode);
    ck_assert_str_eq(a->tokens, b->tokens);
    ck_assert_int_eq(a->clock_sm_mhz, b->clock_sm_mhz);
    demand_near(a->cosine, b->cosine);
    demand_near(a->max_err_ratio, b->max_err_ratio);
    ck_assert_uint_eq(a->checked_ctas, b->checked_ctas);
    demand_near(a->roof_ns, b->roof_ns);
    ck_assert_str_eq(a->bound, b->bound);
    ck_assert_str_eq(a->counters, b->counters);
}

static void demand_same_space(const exchange_space *a, const exchange_space *b)
{
    ck_assert_str_eq(a->problem_text, b->problem_text);
    ck_assert_mem_eq(&a->kind, &b->kind, sizeof a->kind);
    ck_assert_str_eq(a->template_name, b->template_name);
    ck_assert_uint_eq(a->rows_len, b->rows_len);
    for (size_t i = 0; i < a->rows_len; i++) {
        const exchange_row *x = &a->rows[i], *y = &b->rows[i];
        ck_assert_str_eq(x->config, y->config);
        ck_assert_mem_eq(x->template_digest, y->template_digest, sizeof x->template_digest);
        ck_assert_str_eq(x->nvrtc, y->nvrtc);
        ck_assert_int_eq(x->driver, y->driver);
        ck_assert_int_eq(x->created_ms / 1000, y->created_ms / 1000);
        demand_same_result(&x->result, &y->result);
    }
}

START_TEST(what_is_written_is_read_back_whole)
{
    size_t len = 0;
    exchange_set read = {0};
    bool torn = true;

    sample_store(ROWS);
    char *text = sample_text(formats[_i], &len);
    ck_assert_msg(sample_read(text, len, formats[_i], NULL, &read, &torn) == HONE_OK, "%s",
                  scratch_error.message);
    ck_assert(!torn);
    exchange_set set = sample_collect();
    demand_same_space(&set.spaces[0], &read.spaces[0]);
    ck_assert_uint_eq(set.spaces[0].rows_len, ROWS);
    exchange_free(&set);
    exchange_free(&read);
    free(text);
}
END_TEST

static exchange_counts import(const exchange_set *set, const char *path)
{
    exchange_counts counts = {0}, told = {0};
    templates *t = NULL;
    store *s = NULL;

    ck_assert_int_eq(templates_open(&t, &scratch_error), HONE_OK);
    ck_assert_msg(store_open(path, STORE_WRITE, &s, &scratch_error) == HONE_OK, "%s",
                  scratch_error.message);
    ck_assert_int_eq(exchange_forecast(set, t, s, &told, &scratch_error), HONE_OK);
    ck_assert_msg(exchange_import(set, t, s, "a test", &counts, &scratch_error) == HONE_OK, "%s",
                  scratch_error.message);
    ck_assert_int_eq(store_close(s, &scratch_error), HONE_OK);
    templates_close(t);
    ck_assert_mem_eq(&told, &counts, sizeof told); /* a dry run says the same */
    return counts;
}

/* Twice the same file, or the other format's: no row is there twice, none changes. */
START_TEST(a_file_comes_into_a_store_once)
{
    char other[FOLDER_BYTES + 64];
    size_t len = 0;

    sample_store(ROWS);
    snprintf(other, sizeof other, "%s", sample_path("other.db"));
    for (size_t i = 0; i < 4; i++) {
        exchange_set read = {0};
        char *text = sample_text(formats[i % 2], &len);
        ck_assert_int_eq(sample_read(text, len, formats[i % 2], NULL, &read, NULL), HONE_OK);
        const exchange_counts c = import(&read, other);
        ck_assert_uint_eq(c.rows.added, i == 0 ? ROWS : 0);
        ck_assert_uint_eq(c.rows.kept, i == 0 ? 0 : ROWS);
        ck_assert_uint_eq(c.rows.replaced + c.rows.proved + c.unknown + c.current, 0);
        exchange_free(&read);
        free(text);
    }
    exchange_set here = sample_collect();
    const exchange_counts c =
        import(&here, scratch_here.path); /* into the store that proved them */
    ck_assert_uint_eq(c.rows.proved, ROWS);
    snprintf(scratch_here.path, sizeof scratch_here.path, "%s", other);
    exchange_set there = sample_collect();
    demand_same_space(&here.spaces[0], &there.spaces[0]);
    ck_assert(there.spaces[0].rows[0].imported && !here.spaces[0].rows[0].imported);
    exchange_free(&here);
    exchange_free(&there);
}
END_TEST

/* A candidate of the sample's problem in the store of the test, as a file gives it. */
static store_import row_of(const hone_problem *p, const device_kind *kind, double time_ns)
{
    store_import row = {.problem = p,
                        .kind = kind,
                        .template_name = SAMPLE_TEMPLATE,
                        .config = "vec=4 threads=64 rows=1 repeat=1",
                        .nvrtc = "13.0.88",
                        .created_ms = 1,
                        .result = scratch_result(0)};

    row.result.time_ns = time_ns;
    return row;
}

static double time_there(store *s, int32_t *outcome)
{
    const exchange_choice all = {0};
    exchange_set set = {0};

    ck_assert_int_eq(exchange_collect(s, &all, &set, &scratch_error), HONE_OK);
    ck_assert_uint_eq(set.spaces_len, 1);
    ck_assert_uint_eq(set.spaces[0].rows_len, 1);
    const double ns = set.spaces[0].rows[0].result.time_ns;
    *outcome = set.spaces[0].rows[0].result.outcome;
    exchange_free(&set);
    return ns;
}

static store *open_here(void)
{
    store *s = NULL;

    ck_assert_msg(store_open(scratch_here.path, STORE_WRITE, &s, &scratch_error) == HONE_OK, "%s",
                  scratch_error.message);
    return s;
}

static void import_row(store *s, const store_import *row, store_imported *count)
{
    const store_sweep sweep = {"a test", "", 0, 0};
    int64_t id = 0;

    ck_assert_int_eq(store_sweep_begin(s, &sweep, &id, &scratch_error), HONE_OK);
    ck_assert_msg(store_import_rows(s, id, row, 1, count, &scratch_error) == HONE_OK, "%s",
                  scratch_error.message);
    ck_assert_int_eq(store_sweep_end(s, id, &scratch_error), HONE_OK);
}

/* What a file says, in order, and what stands then: a failure gives way, a modelled time to a
 * measured one, the greater to the lesser; another condition replaces. */
START_TEST(the_better_row_stands)
{
    const struct {
        int32_t outcome, timer;
        double ns, stands_ns;
        const char *tokens;
    } steps[] = {
        {STORE_WRONG, STORE_TIMER_NONE, 0, 0, "uniform"},
        {STORE_OK, STORE_TIMER_MODELLED, 10, 10, "uniform"},
        {STORE_COMPILE, STORE_TIMER_NONE, 0, 10, "uniform"},
        {STORE_OK, STORE_TIMER_EVENTS, 90, 90, "uniform"},
        {STORE_OK, STORE_TIMER_MODELLED, 5, 90, "uniform"},
        {STORE_OK, STORE_TIMER_EVENTS, 54.7, 54.7, "uniform"},
        {STORE_OK, STORE_TIMER_CUPTI, 90, 54.7, "uniform"},
        {STORE_OK, STORE_TIMER_EVENTS, 60, 60, "zipf:1"},
    };
    const device_kind kind = scratch_kind();
    hone_problem p;
    store_imported count;
    int32_t outcome = 0;
    store *s = open_here();

    ck_assert_int_eq(hone_problem_parse(SAMPLE_PROBLEM, &p, NULL), HONE_OK);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        store_import row = row_of(&p, &kind, steps[i].ns);
        row.result.outcome = steps[i].outcome;
        row.result.timer = steps[i].timer;
        row.result.tokens = steps[i].tokens;
        import_row(s, &row, &count);
        const double stands = time_there(s, &outcome);
        ck_assert_msg(stands == steps[i].stands_ns, "step %zu: %g", i, stands);
        ck_assert_uint_eq(count.added + count.replaced + count.kept, 1);
    }
    store_close(s, NULL);
}
END_TEST

static int import_often(void *context)
{
    const device_kind kind = scratch_kind();
    const int first = *(int *)context;
    hone_problem p;
    store_imported count;

    hone_problem_parse(SAMPLE_PROBLEM, &p, NULL);
    for (int i = 0; i < 10; i++) {
        store *s = open_here();
        const store_import row = row_of(&p, &kind, 54.7 + (first * 7 + i * 3) % 10);
        import_row(s, &row, &count);
        store_close(s, NULL);
    }
    return 0;
}

/* Two processes at once (cases.md 32): whoever is last, the least time stands. */
START_TEST(two_writers_leave_the_least_time)
{
    int which[] = {0, 1}, pids[2], outcome = 0;

    for (int i = 0; i < 2; i++) {
        pids[i] = scratch_spawn(import_often, &which[i]);
    }
    ck_assert_int_eq(scratch_wait(pids[0]), 0);
    ck_assert_int_eq(scratch_wait(pids[1]), 0);
    store *s = open_here();
    ck_assert_double_eq(time_there(s, &outcome), 54.7);
    ck_assert_int_eq(outcome, STORE_OK);
    store_close(s, NULL);
}
END_TEST

/* An imported row is no winner, no default, and not done, though its template's text is this one's;
 * what a sweep finds takes its place, and stays. */
START_TEST(an_imported_row_is_never_trusted)
{
    const device_kind kind = scratch_kind();
    const store_sweep sweep = {"a test", "13.0.88", 13000, 0};
    hone_problem p;
    store_imported count;
    store_state state;
    int64_t problem = 0, device = 0, id = 0, run = 0;
    store_health health;
    store *s = open_here();

    ck_assert_int_eq(hone_problem_parse(SAMPLE_PROBLEM, &p, NULL), HONE_OK);
    const store_import row = row_of(&p, &kind, 10);
    import_row(s, &row, &count);
    ck_assert_int_eq(store_problem_id(s, &p, &problem, NULL), HONE_OK);
    ck_assert_int_eq(store_device_id(s, &kind, &device, NULL), HONE_OK);
    const store_key key = {.problem = problem,
                           .device = device,
                           .template_name = row.template_name,
                           .config = row.config};
    ck_assert_int_eq(store_candidate_state(s, &key, &state, &id, &scratch_error), HONE_OK);
    ck_assert_int_eq(state, STORE_TO_DO);
    ck_assert_int_ne(id, 0);
    ck_assert_int_eq(store_winner_set(s, problem, device, id, STORE_VERDICT_CLEAR, &scratch_error),
                     HONE_BAD_ARGUMENT);
    ck_assert_int_eq(store_default_set(s, problem, device, id, &scratch_error), HONE_BAD_ARGUMENT);
    ck_assert_int_eq(store_check(s, &health, &scratch_error), HONE_OK);
    ck_assert_uint_eq(health.candidates, 1);
    ck_assert_uint_eq(health.winners, 0);
    const store_result proved = scratch_result(5);
    ck_assert_int_eq(store_sweep_begin(s, &sweep, &run, &scratch_error), HONE_OK);
    ck_assert_msg(store_candidate_record(s, run, &key, &proved, &id, &scratch_error) == HONE_OK,
                  "%s", scratch_error.message);
    import_row(s, &row, &count);
    ck_assert_uint_eq(count.proved, 1);
    ck_assert_int_eq(store_winner_set(s, problem, device, id, STORE_VERDICT_CLEAR, &scratch_error),
                     HONE_OK);
    store_close(s, NULL);
}
END_TEST

/* Without arch or SM count a row would be every device's (cases.md 82). */
START_TEST(a_device_without_arch_or_sms_is_refused)
{
    const store_sweep sweep = {"a test", "", 0, 0};
    device_kind kind = scratch_kind();
    hone_problem p;
    store_imported count;
    store_health health;
    int64_t id = 0;
    store *s = open_here();

    ck_assert_int_eq(hone_problem_parse(SAMPLE_PROBLEM, &p, NULL), HONE_OK);
    ck_assert_int_eq(store_sweep_begin(s, &sweep, &id, &scratch_error), HONE_OK);
    const store_import good = row_of(&p, &kind, 10);
    device_kind bare = kind;
    *(_i == 0 ? &bare.arch : &bare.sm_count) = 0;
    const store_import rows[] = {good, row_of(&p, &bare, 10)};
    ck_assert_int_eq(store_import_rows(s, id, rows, 2, &count, &scratch_error), HONE_BAD_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(scratch_error.message, "NVIDIA H20"));
    ck_assert_int_eq(store_check(s, &health, NULL), HONE_OK);
    ck_assert_uint_eq(health.candidates, 0); /* not the good one either */
    store_close(s, NULL);
}
END_TEST

/* Rows of a template or config that this build lacks are counted, not an error. */
START_TEST(what_this_build_does_not_have_is_left_out)
{
    static const char *const strange[][2] = {{"\"repeat\": 1", "\"repeat\": 99"},
                                             {"\"act_quant/groups\"", "\"act_quant/gone\""}};
    size_t len = 0;
    exchange_set read = {0};

    sample_store(1);
    char *text = sample_text(EXCHANGE_T4, &len);
    char *changed = sample_replace(text, strange[_i][0], strange[_i][1]);
    ck_assert_msg(sample_read(changed, strlen(changed), EXCHANGE_T4, NULL, &read, NULL) == HONE_OK,
                  "%s", scratch_error.message);
    const exchange_counts c = import(&read, sample_path("other.db"));
    ck_assert_uint_eq(c.unknown, 1);
    ck_assert_uint_eq(c.rows.added, 0);
    exchange_free(&read);
    free(changed);
    free(text);
}
END_TEST

/* The words that each format has for an outcome. */
START_TEST(every_outcome_has_its_word)
{
    static const char *const words[][3] = {
        {"\"outcome\": \"wrong\"", "\"time\": \"RuntimeFailedConfig\"",
         "\"invalidity\": \"correctness\", \"correctness\": 0"},
        {"\"outcome\": \"hang\"", "\"__error__\": \"RuntimeFailedConfig\"",
         "\"invalidity\": \"timeout\""},
        {"\"outcome\": \"compile\"", "\"time\": \"CompilationFailedConfig\"",
         "\"invalidity\": \"compile\""},
        {"\"outcome\": \"pruned\"", "\"time\": \"InvalidConfig\"",
         "\"invalidity\": \"constraints\""},
        {"\"outcome\": \"ok\"", "\"times\": [", "\"invalidity\": \"correct\", \"correctness\": 1"},
        {"\"outcome\": \"unmeasured\"", "\"time\": \"RuntimeFailedConfig\"",
         "\"invalidity\": \"runtime\", \"correctness\": 1"},
    };
    size_t len = 0;

    sample_store(ROWS);
    char *text = sample_text(formats[_i], &len);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *at = strstr(text, words[i][0]);
        ck_assert_ptr_nonnull(at);
        char *line = strndup(text, (size_t)(at - text));
        const char *begin = strrchr(line, '\n'); /* a row is a line */
        ck_assert_msg(strstr(begin, words[i][1 + _i]) != NULL, "%s", begin);
        free(line);
    }
    free(text);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("files");

    scratch_fixture(tests);
    tcase_add_loop_test(tests, what_is_written_is_read_back_whole, 0, 2);
    tcase_add_loop_test(tests, every_outcome_has_its_word, 0, 2);
    tcase_add_test(tests, a_file_comes_into_a_store_once);
    tcase_add_test(tests, the_better_row_stands);
    tcase_add_test(tests, two_writers_leave_the_least_time);
    tcase_add_test(tests, an_imported_row_is_never_trusted);
    tcase_add_loop_test(tests, a_device_without_arch_or_sms_is_refused, 0, 2);
    tcase_add_loop_test(tests, what_this_build_does_not_have_is_left_out, 0, 2);
    return suite_run("exchange/files", tests);
}
