/* test_recorded.c - the reader of recorded spaces and its score, against figures that the
 * methodology's own re-implementation in numpy gave for the same made-up space. */
#include "benchmarks/recorded.h"
#include "core/status.h"
#include "tests/support/file.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { ROWS = 120, RUNS = 5, LONGEST = 40, POINTS = 1000 };

/* a in 1..12, b in 1..10; one in nine is invalid. */
static void write_space(const char *folder)
{
    char path[1024], text[512];
    size_t used = (size_t)sprintf(text, "{\"params\": {\"a\": [1");

    for (int a = 2; a <= 12; a++) {
        used += (size_t)sprintf(text + used, ", %d", a);
    }
    sprintf(text + used, "], \"b\": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}");
    snprintf(path, sizeof path, "%s/spaces", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/spaces/syn.json", folder);
    file_write_text(path, text);
    snprintf(path, sizeof path, "%s/syn__X.csv.gz", folder);
    gzFile csv = gzopen(path, "wb");
    ck_assert_ptr_nonnull(csv);
    gzprintf(csv, "a,b,time_ms,sd_ms\n");
    for (int a = 1; a <= 12; a++) {
        for (int b = 1; b <= 10; b++) {
            if ((a + b) % 9 == 0) {
                gzprintf(csv, "%d,%d,invalid,\n", a, b);
            } else {
                gzprintf(csv, "%d,%d,%.2f,0.1\n", a, b, 10 + ((a * 37 + b * 11) % 97) / 4.0);
            }
        }
    }
    ck_assert_int_eq(gzclose(csv), Z_OK);
}

START_TEST(a_score_is_what_the_methodology_says)
{
    char folder[FOLDER_BYTES];
    recorded *list = NULL;
    static uint32_t traces[RUNS * LONGEST];
    static double score[POINTS];
    size_t lens[RUNS] = {0};
    double mean = 0;

    folder_make(folder);
    write_space(folder);
    ck_assert_uint_eq(recorded_open(folder, NULL, &list), 1);
    ck_assert_str_eq(list->space, "syn");
    ck_assert_str_eq(list->gpu, "X");
    ck_assert_uint_eq(list->len, ROWS);
    ck_assert_uint_eq(list->valid, 107);
    ck_assert_uint_eq(recorded_cutoff(list, 0.5), 3);
    ck_assert_uint_eq(recorded_cutoff(list, 0.95), 26);
    ck_assert_uint_eq(recorded_cutoff(list, 0.96), 35);
    for (uint32_t run = 0; run < RUNS; run++) {
        for (uint32_t i = 0; i < LONGEST; i++) { /* the last run repeats itself after eight */
            const uint32_t row = (run * 17 + i * (2 * run + 7) * 3) % ROWS;
            bool twice = false;
            for (size_t k = 0; k < lens[run]; k++) {
                twice = twice || traces[run * LONGEST + k] == row;
            }
            if (!twice) {
                traces[run * LONGEST + lens[run]++] = row;
            }
        }
    }
    ck_assert_uint_eq(lens[0], 40);
    ck_assert_uint_eq(lens[4], 8);
    recorded_score(list, traces, lens, RUNS, LONGEST, score, POINTS);
    for (size_t i = 0; i < POINTS; i++) {
        mean += score[i] / POINTS;
    }
    ck_assert_double_eq_tol(score[0], -0.125, 1e-12);
    ck_assert_double_eq_tol(score[500], 0.5, 1e-12);
    ck_assert_double_eq_tol(score[POINTS - 1], 0.5, 1e-12);
    ck_assert_double_eq_tol(mean, 0.40888189444856105, 1e-12);
    recorded_free(list, 1);
    folder_remove(folder);
}
END_TEST

START_TEST(rows_are_found_by_config)
{
    char folder[FOLDER_BYTES];
    recorded *list = NULL;

    folder_make(folder);
    write_space(folder);
    ck_assert_uint_eq(recorded_open(folder, "other__X,syn__X", &list), 1);
    for (size_t i = 0; i < list->len; i++) {
        const int64_t a = list->configs[i].value[0], b = list->configs[i].value[1];
        ck_assert_uint_eq(recorded_row(list, &list->configs[i]), i);
        ck_assert_uint_eq((uint64_t)((a - 1) * 10 + b - 1), i);
        ck_assert(isfinite(list->ms[i]) == ((a + b) % 9 != 0));
    }
    recorded_free(list, 1);
    ck_assert_uint_eq(recorded_open(folder, "syn__", &list), 0);
    recorded_free(list, 0);
    folder_remove(folder);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("recorded");

    tcase_add_test(tests, a_score_is_what_the_methodology_says);
    tcase_add_test(tests, rows_are_found_by_config);
    return suite_run("tuner/recorded", tests);
}
