/* test_routing.c - distributions of rows over experts: names, histograms of strangers, shares, and
 * the inputs that are timed under them. */
#include "bench/routing.h"
#include "bench/segments.h"
#include "core/status.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
    const char *text, *named;
    inputs_routing kind;
} names[] = {
    {"balanced", "balanced", INPUTS_ROUTE_BALANCED},
    {"uniform", "uniform", INPUTS_ROUTE_UNIFORM},
    {"one", "one", INPUTS_ROUTE_ONE},
    {"zipf", "zipf:1", INPUTS_ROUTE_ZIPF},
    {"zipf:1", "zipf:1", INPUTS_ROUTE_ZIPF},
    {"zipf:1.20", "zipf:1.2", INPUTS_ROUTE_ZIPF},
    {"zipf:16", "zipf:16", INPUTS_ROUTE_ZIPF},
};

START_TEST(names_are_conditions_however_they_are_written)
{
    routing r = {0};
    hone_error error = {0};

    ck_assert_msg(routing_parse(names[_i].text, &r, &error) == HONE_OK, "%s", error.message);
    ck_assert_str_eq(r.text, names[_i].named);
    ck_assert_int_eq(r.kind, names[_i].kind);
    routing_free(&r);
}
END_TEST

static const struct {
    const char *text;
    hone_status status;
    const char *rule;
} strangers[] = {
    {"zipf:0", HONE_BAD_TEXT, "above 0 and up to 16"},
    {"zipf:", HONE_BAD_TEXT, "above 0 and up to 16"},
    {"zipf:nan", HONE_BAD_TEXT, "zipf:1.2"},
    {"zipf:0x1", HONE_BAD_TEXT, "zipf:1.2"},
    {"zipf:17", HONE_BAD_TEXT, "up to 16"},
    {"holes", HONE_UNKNOWN, "there are balanced, uniform, zipf"},
    {"histogram", HONE_UNKNOWN, "files with a histogram"},
    {"", HONE_UNKNOWN, "there are balanced"},
    {"/dev/zero", HONE_IO, "no regular file"},
    {"/", HONE_IO, "no regular file"},
};

START_TEST(what_is_neither_a_name_nor_a_file_is_refused_with_what_there_is)
{
    routing r = {.kind = INPUTS_ROUTE_HOLES};
    hone_error error = {0};

    ck_assert_int_eq(routing_parse(strangers[_i].text, &r, &error), strangers[_i].status);
    ck_assert_msg(strstr(error.message, strangers[_i].rule) != NULL, "%s", error.message);
    ck_assert_int_eq(r.kind, INPUTS_ROUTE_HOLES); /* untouched */
}
END_TEST

/* A text with what NUL bytes it has. */
#define TEXT(literal) literal, sizeof(literal) - 1

static const struct {
    const char *text;
    size_t len;
    double share[4];
    size_t share_len;
} histograms[] = {
    {TEXT("1 2 3"), {1, 2, 3}, 3},
    {TEXT("1,2,3\n"), {1, 2, 3}, 3},
    {TEXT("  1 ,\t2.0, 3e0 \r\n\n"), {1, 2, 3}, 3},
    {TEXT("[1, 2.0, 3]"), {1, 2, 3}, 3},
    {TEXT("\n [1,\n2,\n3]\n"), {1, 2, 3}, 3},
    {TEXT("0 0 .5 0"), {0, 0, .5, 0}, 4},
    {TEXT("7"), {7}, 1},
};

START_TEST(a_histogram_is_its_numbers_however_they_are_written)
{
    static const char *const one = "1 2 3";
    routing r = {0}, first = {0};
    hone_error error = {0};

    ck_assert_msg(routing_parse_histogram("h", histograms[_i].text, histograms[_i].len, &r,
                                          &error) == HONE_OK,
                  "%s", error.message);
    ck_assert_uint_eq(r.share_len, histograms[_i].share_len);
    ck_assert_mem_eq(r.share, histograms[_i].share, r.share_len * sizeof *r.share);
    ck_assert_int_eq(r.kind, INPUTS_ROUTE_HISTOGRAM);
    ck_assert_uint_eq(strlen(r.text), strlen("histogram:") + 32);
    ck_assert_int_eq(routing_parse_histogram("h", one, strlen(one), &first, &error), HONE_OK);
    ck_assert_int_eq(strcmp(r.text, first.text) == 0,
                     r.share_len == 3); /* the table's three numbers are all the same */
    routing_free(&r);
    routing_free(&first);
}
END_TEST

static const struct {
    const char *text;
    size_t len;
    hone_status status;
    const char *says;
} hostile[] = {
    {TEXT(""), HONE_BAD_TEXT, "no number"},
    {TEXT(" \n\n"), HONE_BAD_TEXT, "no number"},
    {TEXT("[]"), HONE_BAD_TEXT, "no number"},
    {TEXT("0 0 0"), HONE_BAD_TEXT, "every number is 0"},
    {TEXT("1 -2"), HONE_BAD_TEXT, "number 2 is negative"},
    {TEXT("[1, -2]"), HONE_BAD_TEXT, "number 2 is negative"},
    {TEXT("1 nan"), HONE_BAD_TEXT, "number 2 is none"},
    {TEXT("1 inf"), HONE_BAD_TEXT, "number 2 is none"},
    {TEXT("1e999 1"), HONE_BAD_TEXT, "not finite"},
    {TEXT("0x10 1"), HONE_BAD_TEXT, "number 1 is none"},
    {TEXT("1 2\n3 4"), HONE_BAD_TEXT, "a second line"},
    {TEXT("1,,2"), HONE_BAD_TEXT, "a comma without a number"},
    {TEXT(",1"), HONE_BAD_TEXT, "a comma without a number"},
    {TEXT("1,"), HONE_BAD_TEXT, "a comma without a number"},
    {TEXT("1\0 2"), HONE_BAD_TEXT, "number 1 is none"},
    {TEXT("1 \xff\xfe"), HONE_BAD_TEXT, "number 2 is none"},
    {TEXT("[1, 2"), HONE_BAD_TEXT, "no JSON"},
    {TEXT("[1, \"2\"]"), HONE_BAD_TEXT, "item 2 is no number"},
    {TEXT("[1, [2]]"), HONE_BAD_TEXT, "item 2 is no number"},
    {TEXT("[1, null]"), HONE_BAD_TEXT, "item 2 is no number"},
    {TEXT("[1e999]"), HONE_BAD_TEXT, "no JSON"},
    {TEXT("[1] [2]"), HONE_BAD_TEXT, "no JSON"},
    {TEXT("{\"1\": 2}"), HONE_BAD_TEXT, "number 1 is none"},
    {TEXT("1111111111111111111111111111111111111111111111111111111111111111111111111"),
     HONE_BAD_TEXT, "number 1 is none"},
};

START_TEST(a_hostile_histogram_is_refused_with_the_rule)
{
    routing r = {.kind = INPUTS_ROUTE_HOLES};
    hone_error error = {0};

    ck_assert_int_eq(
        routing_parse_histogram("h.txt", hostile[_i].text, hostile[_i].len, &r, &error),
        hostile[_i].status);
    ck_assert_msg(strstr(error.message, hostile[_i].says) != NULL, "%s", error.message);
    ck_assert_msg(strstr(error.message, "one for each expert") != NULL, "%s", error.message);
    ck_assert_str_eq(error.source, "h.txt");
    ck_assert_int_eq(r.kind, INPUTS_ROUTE_HOLES);
}
END_TEST

START_TEST(what_is_too_long_is_refused)
{
    char folder[FOLDER_BYTES], path[FOLDER_BYTES + 16];
    hone_error error = {0};
    routing r = {0};
    const size_t numbers = 2 * (ROUTING_MOST + 1), bytes = ROUTING_FILE_BYTES + 1;
    char *text = malloc(bytes);

    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < numbers; i += 2) {
        memcpy(text + i, "1 ", 2);
    }
    ck_assert_int_eq(routing_parse_histogram("h", text, numbers, &r, &error), HONE_LIMIT);
    ck_assert_int_eq(routing_parse_histogram("h", text, numbers - 2, &r, &error), HONE_OK);
    routing_free(&r);
    memset(text, '[', bytes);
    ck_assert_int_eq(routing_parse_histogram("h", text, bytes, &r, &error), HONE_BAD_TEXT);
    folder_make(folder);
    snprintf(path, sizeof path, "%s/h.txt", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    memset(text, ' ', bytes);
    ck_assert_uint_eq(fwrite(text, 1, bytes, file), bytes);
    fclose(file);
    ck_assert_int_eq(routing_parse(path, &r, &error), HONE_LIMIT);
    remove(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0); /* that nobody writes to */
    ck_assert_int_eq(routing_parse(path, &r, &error), HONE_IO);
    remove(path);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("3 1\n", file);
    fclose(file);
    ck_assert_msg(routing_parse(path, &r, &error) == HONE_OK, "%s", error.message);
    ck_assert_uint_eq(r.share_len, 2);
    routing_free(&r);
    folder_remove(folder);
    free(text);
}
END_TEST

/* What a histogram gives of a total. */
static const struct {
    const char *text;
    int64_t total, rows[4];
} parted[] = {
    {"1 1 1 1", 10, {3, 3, 2, 2}}, /* equal remainders: the first */
    {"1 2 3 4", 10, {1, 2, 3, 4}},
    {"1 0 0 2", 10, {3, 0, 0, 7}}, /* 3.33 and 6.67 */
    {"0 0 1 0", 9, {0, 0, 9, 0}},
    {"5 5 0 0", 1, {1, 0, 0, 0}},
    {"1 2 3 4", 0, {0, 0, 0, 0}},
    {"1e308 1e308 1e308 1e308", 8, {2, 2, 2, 2}}, /* whose sum is no number */
    {"4e-324 4e-324 0 0", 3, {2, 1, 0, 0}},       /* the least that there are */
    {"1e-300 1e300 0 0", 5, {0, 5, 0, 0}},
};

START_TEST(shares_are_rounded_to_the_largest_remainders)
{
    routing r = {0};
    hone_error error = {0};
    int64_t rows[4];
    uint64_t state = 1;

    ck_assert_int_eq(
        routing_parse_histogram("h", parted[_i].text, strlen(parted[_i].text), &r, &error),
        HONE_OK);
    ck_assert_int_eq(routing_rows(&r, 4, parted[_i].total, &state, rows, &error), HONE_OK);
    for (size_t e = 0; e < 4; e++) {
        ck_assert_int_eq(rows[e], parted[_i].rows[e]);
    }
    ck_assert_uint_eq(state, 1); /* nothing is drawn */
    ck_assert_int_eq(routing_rows(&r, 3, 7, &state, rows, &error), HONE_BAD_ARGUMENT);
    routing_free(&r);
}
END_TEST

static int downwards(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left < right) - (left > right);
}

/* Any distribution gives out all rows, the same ones from the same seed; Zipf's ranks are within a
 * row of their shares. */
START_TEST(every_row_goes_to_an_expert)
{
    static const char *const texts[] = {"balanced", "uniform", "one", "zipf", "zipf:0.5", "zipf:3"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        for (int64_t total = 0; total < 5000; total = 3 * total + 1) {
            const int64_t experts = 1 + total * 7 % 63;
            int64_t rows[64], again[64], sum = 0;
            uint64_t state = 5, same = 5;
            hone_error error = {0};
            routing r = {0};
            double all = 0;
            ck_assert_int_eq(routing_parse(texts[i], &r, &error), HONE_OK);
            ck_assert_int_eq(routing_rows(&r, experts, total, &state, rows, &error), HONE_OK);
            ck_assert_int_eq(routing_rows(&r, experts, total, &same, again, &error), HONE_OK);
            ck_assert_mem_eq(rows, again, (size_t)experts * sizeof *rows);
            for (int64_t e = 0; e < experts; e++) {
                ck_assert_int_ge(rows[e], 0);
                sum += rows[e];
                all += pow((double)e + 1, -r.exponent);
            }
            ck_assert_int_eq(sum, total);
            qsort(rows, (size_t)experts, sizeof *rows, downwards);
            for (int64_t e = 0; e < experts && r.kind == INPUTS_ROUTE_ZIPF; e++) {
                const double share = (double)total * pow((double)e + 1, -r.exponent) / all;
                ck_assert_double_lt(fabs((double)rows[e] - share), 1.0);
            }
            ck_assert(r.kind != INPUTS_ROUTE_BALANCED || rows[0] - rows[experts - 1] <= 1);
            ck_assert(r.kind != INPUTS_ROUTE_ONE || rows[0] == total);
            routing_free(&r);
        }
    }
}
END_TEST

static hone_problem problem_of(const char *text)
{
    hone_problem problem;
    hone_error error = {0};

    ck_assert_msg(hone_problem_parse(text, &problem, &error) == HONE_OK, "%s", error.message);
    return problem;
}

START_TEST(a_histogram_of_other_experts_is_refused_naming_both)
{
    const hone_problem moe = problem_of("moe_gemm:n=128,k=128,experts=4,tokens=3,topk=2,"
                                        "group_layout=masked,recipe=f32-1x128-128x128");
    const hone_problem gemm = problem_of("fp8_gemm:m=3,n=128,k=128,recipe=f32-1x128-128x128");
    hone_error error = {0};
    routing r = {0};

    ck_assert_int_eq(routing_parse_histogram("h", "1 2 3", 5, &r, &error), HONE_OK);
    ck_assert_int_eq(routing_check(&r, &moe, &error), HONE_BAD_PROBLEM);
    ck_assert_ptr_nonnull(strstr(error.message, "3 numbers"));
    ck_assert_ptr_nonnull(strstr(error.message, "4 experts"));
    ck_assert_int_eq(routing_check(&r, &gemm, &error), HONE_OK); /* it has none */
    ck_assert_int_eq(routing_check(NULL, &moe, &error), HONE_OK);
    ck_assert_str_eq(routing_condition(&r, &moe), r.text);
    ck_assert_str_eq(routing_condition(NULL, &moe), "balanced");
    ck_assert_str_eq(routing_condition(&r, &gemm), "uniform"); /* as it always was */
    routing_free(&r);
}
END_TEST

/* Rows of experts as asked, as far as there is room, and A ordinary there and NaN elsewhere; B is
 * not copied. */
static const struct {
    const char *layout;
    int64_t rows[4]; /* of a histogram of 0 6 1 1 over 24 rows */
} rerouted[] = {
    {"group_layout=masked,m=16,row_align=16", {0, 16, 3, 3}}, /* two are cut */
    {"group_layout=masked,m=32,row_align=16", {0, 18, 3, 3}},
    {"group_layout=contiguous,m=64,row_align=16", {0, 18, 3, 3}},
    {"group_layout=contiguous,m=48,row_align=16", {0, 18, 3, 0}}, /* no room is left */
    {"group_layout=psum,m=64,row_align=8", {0, 18, 3, 3}},
};

START_TEST(timed_rows_are_those_that_were_asked_for)
{
    char text[256];
    inputs in = {0}, timed = {0};
    segments runs = {0};
    hone_error error = {0};
    routing r = {0};
    int64_t rows[4] = {0};

    snprintf(text, sizeof text,
             "moe_gemm:n=128,k=256,experts=4,tokens=12,topk=2,recipe=f32-1x128-128x128,%s",
             rerouted[_i].layout);
    const hone_problem problem = problem_of(text);
    const hone_moe_gemm *p = &problem.as.moe_gemm;
    ck_assert_int_eq(routing_parse_histogram("h", "0 6 1 1", 7, &r, &error), HONE_OK);
    ck_assert_int_eq(inputs_make(&problem, INPUTS_HOLES, 3, &in, &error), HONE_OK);
    ck_assert_msg(inputs_reroute(p, &in, &r, 4, &timed, &error) == HONE_OK, "%s", error.message);
    for (size_t i = 0; i < in.len; i++) {
        const bool own = i == 0 || i == 1 || i == 4;
        ck_assert((timed.image[i] != in.image[i]) == own);
    }
    ck_assert_int_eq(segments_find(p, timed.image[4], &runs, &error), HONE_OK);
    uint8_t *mine = calloc((size_t)(p->m * segments_matrices(p)), 1);
    for (size_t i = 0; i < runs.len; i++) {
        const segments_run *run = &runs.run[i];
        rows[run->expert] += run->rows;
        memset(mine + run->batch * p->m + run->row, 1, (size_t)run->rows);
    }
    ck_assert_mem_eq(rows, rerouted[_i].rows, sizeof rows);
    for (int64_t row = 0; row < p->m * segments_matrices(p); row++) {
        const uint8_t *codes = timed.image[0] + row * p->k;
        size_t nans = 0;
        for (int64_t k = 0; k < p->k; k++) {
            nans += (codes[k] & 0x7f) == 0x7f;
        }
        ck_assert_uint_eq(nans, mine[row] ? 0 : (size_t)p->k);
    }
    free(mine);
    segments_free(&runs);
    inputs_free_rerouted(&timed);
    inputs_free(&in);
    routing_free(&r);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("routing");

    tcase_add_loop_test(tests, names_are_conditions_however_they_are_written, 0, ARRAY_LEN(names));
    tcase_add_loop_test(tests, what_is_neither_a_name_nor_a_file_is_refused_with_what_there_is, 0,
                        ARRAY_LEN(strangers));
    tcase_add_loop_test(tests, a_histogram_is_its_numbers_however_they_are_written, 0,
                        ARRAY_LEN(histograms));
    tcase_add_loop_test(tests, a_hostile_histogram_is_refused_with_the_rule, 0, ARRAY_LEN(hostile));
    tcase_add_test(tests, what_is_too_long_is_refused);
    tcase_add_loop_test(tests, shares_are_rounded_to_the_largest_remainders, 0, ARRAY_LEN(parted));
    tcase_add_test(tests, every_row_goes_to_an_expert);
    tcase_add_test(tests, a_histogram_of_other_experts_is_refused_naming_both);
    tcase_add_loop_test(tests, timed_rows_are_those_that_were_asked_for, 0, ARRAY_LEN(rerouted));
    return suite_run("bench/routing", tests);
}
