/* test_sweep_imported.c - rows that were read from a file change no sweep. */
#include "tests/support/folder.h"
#include "tests/support/suite.h"
#include "tests/tuner/fake_engine.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const texts[] = {"fp8_gemm:m=16,n=384,k=512,recipe=f32-1x128-128x128",
                                    "act_quant:m=64,k=4096"};

/* A line for each row, without what differs from run to run. */
typedef struct dump {
    char text[32768];
    size_t used;
} dump;

static int add_row(void *context, const store_row *row)
{
    dump *d = context;

    d->used += (size_t)snprintf(d->text + d->used, sizeof d->text - d->used, "%s %s %s %s %.0f\n",
                                row->problem_text, row->template_name, row->config,
                                store_outcome_name(row->result.outcome), row->result.time_ns);
    ck_assert_uint_lt(d->used, sizeof d->text);
    return 0;
}

static int add_winner(void *context, const store_winner *winner)
{
    return add_row(context, &winner->row);
}

static dump dump_store(const char *path)
{
    dump d = {.used = 0};
    store *s = NULL;

    ck_assert_int_eq(store_open(path, STORE_READ, &s, NULL), HONE_OK);
    ck_assert_int_eq(store_candidates(s, NULL, add_row, &d, NULL), HONE_OK);
    ck_assert_int_eq(store_winners(s, NULL, add_winner, &d, NULL), HONE_OK);
    store_close(s, NULL);
    return d;
}

/* The row as a file would have it that lies: every candidate is right and takes 1 ns. */
static int import_better(void *context, const store_row *row)
{
    hone_error error = {0};
    hone_problem problem;
    int64_t sweep = 0;
    const store_sweep facts = {"a test", "", 0, 0};
    store_imported count;

    ck_assert_int_eq(hone_problem_parse(row->problem_text, &problem, NULL), HONE_OK);
    store_import from = {.problem = &problem,
                         .kind = row->kind,
                         .template_name = row->template_name,
                         .config = row->config,
                         .result = row->result};
    memcpy(from.template_digest, row->template_digest, sizeof from.template_digest);
    from.result.outcome = STORE_OK;
    from.result.time_ns = 1;
    ck_assert_int_eq(store_sweep_begin(context, &facts, &sweep, &error), HONE_OK);
    ck_assert_msg(store_import_rows(context, sweep, &from, 1, &count, &error) == HONE_OK, "%s",
                  error.message);
    ck_assert_int_eq(store_sweep_end(context, sweep, &error), HONE_OK);
    return 0;
}

/* With this build's digests, too: the sweep tries all of them, and its rows and winners are those
 * of a store that read nothing. */
START_TEST(imported_rows_change_no_sweep)
{
    char folder[FOLDER_BYTES], clean[1024], misled[1024];
    sweep_summary first, second;
    store *from = NULL, *to = NULL;

    folder_make(folder);
    snprintf(clean, sizeof clean, "%s/clean.db", folder);
    snprintf(misled, sizeof misled, "%s/misled.db", folder);
    ck_assert_int_eq(fake_sweep(clean, 90, texts, ARRAY_LEN(texts), NULL, &first), HONE_OK);
    ck_assert_int_eq(store_open(clean, STORE_READ, &from, NULL), HONE_OK);
    ck_assert_int_eq(store_open(misled, STORE_WRITE, &to, NULL), HONE_OK);
    ck_assert_int_eq(store_candidates(from, NULL, import_better, to, NULL), HONE_OK);
    store_close(from, NULL);
    ck_assert_int_eq(store_close(to, NULL), HONE_OK);
    ck_assert_int_eq(fake_sweep(misled, 90, texts, ARRAY_LEN(texts), NULL, &second), HONE_OK);
    ck_assert_uint_gt(first.tried, 0);
    ck_assert_uint_eq(second.tried, first.tried);
    ck_assert_uint_eq(second.winners, first.winners);
    const dump before = dump_store(clean), after = dump_store(misled);
    ck_assert_str_eq(before.text, after.text);
    ck_assert_ptr_null(strstr(after.text, "imported"));
    folder_remove(folder);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("imported");

    tcase_add_test(tests, imported_rows_change_no_sweep);
    return suite_run("tuner/sweep_imported", tests);
}
