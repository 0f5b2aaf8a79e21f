/* test_hostile.c - files that are torn, old, foreign, damaged or meant to hurt. */
#include "tests/exchange/sample.h"

#include "core/random.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A cachefile that is cut anywhere gives its whole rows, or is refused before it has any. */
START_TEST(a_torn_cachefile_gives_its_whole_rows)
{
    size_t len = 0, most = 0;

    sample_store(4);
    char *text = sample_text(EXCHANGE_CACHEFILE, &len);
    const size_t rows_at = (size_t)(strstr(text, "\"cache\": {") - text) + strlen("\"cache\": {");
    exchange_set whole = sample_collect();
    for (size_t cut = 0; cut<len; cut += cut> rows_at + 20 && cut < len - 40 ? 7 : 1) {
        exchange_set read = {0};
        bool torn = false;
        const hone_status status = sample_read(text, cut, EXCHANGE_CACHEFILE, NULL, &read, &torn);
        if (cut < rows_at) {
            ck_assert_msg(status == HONE_BAD_TEXT, "cut at %zu: %s", cut, scratch_error.message);
            continue;
        }
        ck_assert_msg(status == HONE_OK && torn, "cut at %zu: %s", cut, scratch_error.message);
        ck_assert_uint_ge(read.spaces[0].rows_len, most);
        most = read.spaces[0].rows_len;
        for (size_t i = 0; i < most; i++) {
            ck_assert_str_eq(read.spaces[0].rows[i].config, whole.spaces[0].rows[i].config);
        }
        exchange_free(&read);
    }
    ck_assert_uint_eq(most, 4);
    exchange_free(&whole);
    free(text);
}
END_TEST

/* What a crash of Kernel Tuner leaves: a comma and no brackets; and what careless tools do: a comma
 * before them. */
START_TEST(a_trailing_comma_is_accepted)
{
    static const char *const ends[] = {",", ",\n", ",\n\"16,1\": {\"vec\": 4, \"ti", ",\n}\n}",
                                       ", } , }"};
    size_t len = 0;
    exchange_set read = {0};

    sample_store(3);
    char *text = sample_text(EXCHANGE_CACHEFILE, &len);
    char *changed = malloc(len + 64);
    const int used = snprintf(changed, len + 64, "%.*s%s", (int)len - 3, text, ends[_i]);
    ck_assert_msg(sample_read(changed, (size_t)used, EXCHANGE_CACHEFILE, NULL, &read, NULL) ==
                      HONE_OK,
                  "%s", scratch_error.message);
    ck_assert_uint_eq(read.spaces[0].rows_len, 3);
    exchange_free(&read);
    free(changed);
    free(text);
}
END_TEST

#define FOREIGN(time)                                                                              \
    "{\"device_name\": \"NVIDIA H20\", \"kernel_name\": \"act_quant/groups\", \"problem_size\": "  \
    "16, \"tune_params_keys\": [\"vec\", \"threads\"], \"tune_params\": {\"vec\": [4], "           \
    "\"threads\": [64]}, \"cache\": {\n\"4,64\": {\"vec\": 4, \"threads\": 64, " time ", "         \
    "\"mystery\": [1, {}], \"timestamp\": \"2023-12-22 09:54:05+00:00\"}}}"

/* Failures as older and newer writers spell them, in files that hone did not write. */
START_TEST(old_and_new_spellings_are_read)
{
    static const struct {
        const char *text;
        int32_t outcome;
    } files[] = {
        {FOREIGN("\"time\": 3.875, \"times\": [3.97, 3.78], \"compile_time\": 918.6"), STORE_OK},
        {FOREIGN("\"time\": 4"), STORE_OK},
        {FOREIGN("\"time\": \"InvalidConfig\""), STORE_PRUNED},
        {FOREIGN("\"time\": \"CompilationFailedConfig\""), STORE_COMPILE},
        {FOREIGN("\"time\": \"RuntimeFailedConfig\""), STORE_FAULT},
        {FOREIGN("\"__error__\": \"RuntimeFailedConfig\""), STORE_FAULT},
        {FOREIGN("\"__error__\": \"ErrorConfig\", \"time\": \"ErrorConfig\""), STORE_FAULT},
    };
    const device_kind kind = scratch_kind();
    hone_problem p;
    exchange_set read = {0};
    const exchange_given given = {.problem = &p, .device = &kind};

    ck_assert_int_eq(hone_problem_parse(SAMPLE_PROBLEM, &p, NULL), HONE_OK);
    ck_assert_msg(sample_read(files[_i].text, strlen(files[_i].text), EXCHANGE_CACHEFILE, &given,
                              &read, NULL) == HONE_OK,
                  "%s", scratch_error.message);
    const exchange_row *row = &read.spaces[0].rows[0];
    ck_assert_int_eq(row->result.outcome, files[_i].outcome);
    ck_assert_str_eq(row->config, "vec=4 threads=64");
    ck_assert_int_eq(row->created_ms / 1000, 1703238845);
    ck_assert_str_eq(read.spaces[0].template_name, "act_quant/groups");
    if (_i == 0) {
        ck_assert_double_eq(row->result.time_ns, 3875000);
        ck_assert_uint_eq(row->result.samples_len, 2);
        ck_assert_double_eq(row->result.compile_ms, 918.6);
    }
    exchange_free(&read);
}
END_TEST

#define T4_ROW(rest)                                                                               \
    "{\"schema_version\": \"1.0.0\", \"metadata\": {\"timeunit\": \"miliseconds\"}, \"results\": " \
    "[{\"configuration\": {\"vec\": 4}, " rest "}]}"

START_TEST(both_spellings_of_t4_are_read)
{
    static const char *const texts[] = {
        T4_ROW("\"times\": {\"compilation_time\": 7, \"runtimes\": [2]}, \"invalidity\": "
               "\"correct\", \"correctness\": 1, \"measurements\": [{\"name\": \"GB/s\", "
               "\"value\": 5, \"unit\": \"\"}, {\"name\": \"time\", \"value\": 2, \"unit\": "
               "\"ms\"}]"),
        T4_ROW("\"times\": {\"compilation\": 7}, \"invalidity\": \"correctness\", "
               "\"correctness\": 0"),
    };
    const device_kind kind = scratch_kind();
    hone_problem p;
    exchange_set read = {0};
    const exchange_given given = {&p, &kind, "act_quant/groups"};

    ck_assert_int_eq(hone_problem_parse(SAMPLE_PROBLEM, &p, NULL), HONE_OK);
    ck_assert_msg(sample_read(texts[_i], strlen(texts[_i]), EXCHANGE_T4, &given, &read, NULL) ==
                      HONE_OK,
                  "%s", scratch_error.message);
    ck_assert_double_eq(read.spaces[0].rows[0].result.compile_ms, 7);
    ck_assert_int_eq(read.spaces[0].rows[0].result.outcome, _i == 0 ? STORE_OK : STORE_WRONG);
    exchange_free(&read);
}
END_TEST

/* What of a whole file is changed, and what the refusal says. */
static const struct {
    exchange_format format;
    const char *from, *to, *says;
} changes[] = {
    {EXCHANGE_CACHEFILE, "\"arch\": 90, ", "", "has no 'arch'"},
    {EXCHANGE_CACHEFILE, "\"arch\": 90, ", "\"arch\": 0, ", "has no 'arch'"},
    {EXCHANGE_T4, "\"sm_count\": 78, ", "", "has no 'sm_count'"},
    {EXCHANGE_T4, "\"sm_count\": 78, ", "\"sm_count\": -78, ", "no whole number"},
    {EXCHANGE_T4, "\"sm_count\": 78, ", "\"sm_count\": \"*\", ", "no whole number"},
    {EXCHANGE_CACHEFILE, "\"hone\": {\"schema\"", "\"gone\": {\"schema\"", "--problem TEXT"},
    {EXCHANGE_CACHEFILE, "\"schema\": 1", "\"schema\": 2", "newer hone"},
    {EXCHANGE_CACHEFILE, "\"device_name\": \"NVIDIA H20\"", "\"device_name\": \"NVIDIA H200\"",
     "its device_name is 'NVIDIA H200'"},
    {EXCHANGE_CACHEFILE, "\"problem\": \"act_quant:", "\"problem\": \"cat_quant:", "problem 'cat_"},
    {EXCHANGE_CACHEFILE, "\"cache\": {", "\"cache\": 1, \"cash\": {", "'cache' is missing"},
    {EXCHANGE_CACHEFILE, "[\"vec\",", "[", "row '4,64,1,1': its parameters are 64,1,1"},
    {EXCHANGE_CACHEFILE, "[\"vec\",", "[\"ve c\",", "element 0 is no parameter's name"},
    {EXCHANGE_CACHEFILE, "[\"vec\",", "[7,", "element 0 is no parameter's name"},
    {EXCHANGE_CACHEFILE, "\"4,64,1,1\": {", "\"5,64,1,1\": {", "row '5,64,1,1'"},
    {EXCHANGE_CACHEFILE, "\"4,64,1,1\": {", "\"8,64,1,1\": {", "duplicate"},
    {EXCHANGE_CACHEFILE, "\"4,64,1,1\": {", "\"4,64,1,1\": 3, \"4,64\": {", "is no object"},
    {EXCHANGE_CACHEFILE, "{\"vec\": 4", "{\"vec\": 4.0", "parameter 'vec' is no whole number"},
    {EXCHANGE_CACHEFILE, "{\"vec\": 4", "{\"vec\": 99999999999999999999", "too big integer"},
    {EXCHANGE_CACHEFILE, "\"time\": ", "\"time\": -", "'time' is no number"},
    {EXCHANGE_CACHEFILE, "\"time\": ", "\"time\": NaN, \"t\": ", "column"},
    {EXCHANGE_CACHEFILE, "\"time\": ", "\"time\": 1e999, \"t\": ", "real number overflow"},
    {EXCHANGE_CACHEFILE, "\"time\": ", "\"time\": 1e300, \"t\": ", "'time' is no number"},
    {EXCHANGE_CACHEFILE, "\"time\": ", "\"time\": 0, \"t\": ", "'time' is no number"},
    {EXCHANGE_CACHEFILE, "\"time\": ", "\"time\": \"BadLuckConfig\", \"t\": ", "'BadLuckConfig'"},
    {EXCHANGE_CACHEFILE,
     "\"time\": ", "\"time\": \"InvalidConfig\", \"t\": ", "'ok' is not what the row says"},
    {EXCHANGE_CACHEFILE, "\"times\": [", "\"times\": [\"x\", ", "'times' is no number"},
    {EXCHANGE_CACHEFILE, "\"times\": [", "\"times\": 4, \"t\": [", "no list"},
    {EXCHANGE_CACHEFILE, "\"outcome\": \"ok\"", "\"outcome\": \"imported\"", "'imported'"},
    {EXCHANGE_CACHEFILE, "\"outcome\": \"ok\"", "\"outcome\": \"inflight\"", "'inflight'"},
    {EXCHANGE_CACHEFILE, "\"outcome\": \"ok\"", "\"outcome\": 2", "'outcome' in 'hone' is no text"},
    {EXCHANGE_CACHEFILE, "\"timer\": \"events\"", "\"timer\": \"sundial\"", "'sundial'"},
    {EXCHANGE_CACHEFILE, "\"template_digest\": \"a5", "\"template_digest\": \"xx", "64 hex digits"},
    {EXCHANGE_CACHEFILE, "\"registers\": 168", "\"registers\": 4294967296", "'registers'"},
    {EXCHANGE_CACHEFILE, "\"compile_time\": ", "\"compile_time\": -", "'compile_time'"},
    {EXCHANGE_CACHEFILE, "\"bound\": \"", "\"bound\": \"\x01", "control character"},
    {EXCHANGE_CACHEFILE, "\"bound\": \"", "\"bound\": \"\\u0000", "\\u0000"},
    {EXCHANGE_CACHEFILE, "\"bound\": \"", "\"bound\": \"\xff", "decode byte 0xff"},
    {EXCHANGE_CACHEFILE, "\"objective\"",
     "\"x\": [[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]], \"objective\"", "nested past 16"},
    {EXCHANGE_T4, "\"schema_version\": \"1.", "\"schema_version\": \"2.",
     "no T4 file of version 1"},
    {EXCHANGE_T4, "\"results\": [", "\"outcomes\": [", "no 'results'"},
    {EXCHANGE_T4, "\"milliseconds\"", "\"seconds\"", "'seconds' is not milliseconds"},
    {EXCHANGE_T4, "\"unit\": \"ms\"", "\"unit\": \"s\"", "result 0: its time is in 's'"},
    {EXCHANGE_T4, "\"name\": \"time\"", "\"name\": \"tame\"", "no measurement 'time'"},
    {EXCHANGE_T4, "\"invalidity\": \"correct\"", "\"invalidity\": \"fine\"", "'fine' is none of"},
    {EXCHANGE_T4, "\"invalidity\": \"correct\"", "\"invalidity\": \"timeout\"", "'ok' is not what"},
    {EXCHANGE_T4, "\"configuration\": {\"vec\": 4, ", "\"configuration\": {", "result 1"},
    {EXCHANGE_T4, "\"configuration\": {", "\"configuration\": {\"a=b\": 1, ",
     "no parameter's name"},
    {EXCHANGE_T4, "\n]}", "", "column"},
};

static void demand_refused(const char *text, size_t at)
{
    exchange_set read = {0};
    bool torn = false;
    char *changed = sample_replace(text, changes[at].from, changes[at].to);
    const hone_status status =
        sample_read(changed, strlen(changed), changes[at].format, NULL, &read, &torn);

    ck_assert_msg(status == HONE_BAD_TEXT, "%s: taken", changes[at].to);
    ck_assert_msg(strstr(scratch_error.message, changes[at].says) != NULL, "%s: %s", changes[at].to,
                  scratch_error.message);
    ck_assert_msg(strstr(scratch_error.source, "read.json") != NULL, "%s", scratch_error.source);
    ck_assert_ptr_null(read.spaces);
    free(changed);
}

START_TEST(a_changed_file_is_refused_with_its_place)
{
    const exchange_format format = _i == 0 ? EXCHANGE_CACHEFILE : EXCHANGE_T4;
    size_t len = 0;

    sample_store(2);
    char *text = sample_text(format, &len);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        if (changes[i].format == format) {
            demand_refused(text, i);
        }
    }
    free(text);
}
END_TEST

/* A file of another device or problem than the one that is named. */
START_TEST(what_is_named_must_agree)
{
    device_kind kind = scratch_kind();
    hone_problem p;
    exchange_set read = {0};
    size_t len = 0;

    sample_store(1);
    char *text = sample_text(EXCHANGE_T4, &len);
    ck_assert_int_eq(hone_problem_parse("act_quant:m=32,k=256,scale=ue8m0,group=32", &p, NULL),
                     HONE_OK);
    ck_assert_int_eq(
        sample_read(text, len, EXCHANGE_T4, &(exchange_given){.problem = &p}, &read, NULL),
        HONE_BAD_TEXT);
    ck_assert_ptr_nonnull(strstr(scratch_error.message, "not of the --problem"));
    kind.sm_count = 132;
    ck_assert_int_eq(
        sample_read(text, len, EXCHANGE_T4, &(exchange_given){.device = &kind}, &read, NULL),
        HONE_BAD_TEXT);
    ck_assert_ptr_nonnull(strstr(scratch_error.message, "another device"));
    kind = scratch_kind();
    kind.emulated = true;
    ck_assert_int_eq(
        sample_read(text, len, EXCHANGE_T4, &(exchange_given){.device = &kind}, &read, NULL),
        HONE_BAD_TEXT);
    free(text);
}
END_TEST

/* What is no file, or too large a one, is not even read. */
START_TEST(what_costs_too_much_is_not_read)
{
    const char *path = sample_path("read.json");
    exchange_set read = {0};
    size_t len = 40u << 20;

    file_write_text(path, "{");
    ck_assert_int_eq(truncate(path, 1 << 30), 0);
    ck_assert_int_eq(exchange_read(path, EXCHANGE_T4, NULL, &read, NULL, &scratch_error),
                     HONE_LIMIT);
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(exchange_read(path, EXCHANGE_T4, NULL, &read, NULL, &scratch_error),
                     HONE_LIMIT);
    ck_assert_int_eq(
        exchange_read(scratch_here.folder, EXCHANGE_T4, NULL, &read, NULL, &scratch_error),
        HONE_LIMIT);
    ck_assert_int_eq(exchange_read("/nowhere", EXCHANGE_T4, NULL, &read, NULL, &scratch_error),
                     HONE_IO);
    unlink(path);
    len = 3u << 20;
    char *commas = malloc(len);
    memset(commas, ',', len);
    commas[0] = '{';
    ck_assert_int_eq(sample_read(commas, len, EXCHANGE_CACHEFILE, NULL, &read, NULL), HONE_LIMIT);
    free(commas);
    ck_assert_int_eq(sample_read("", 0, EXCHANGE_CACHEFILE, NULL, &read, NULL), HONE_BAD_TEXT);
    ck_assert_int_eq(sample_read("[]", 2, EXCHANGE_T4, NULL, &read, NULL), HONE_BAD_TEXT);
    ck_assert_int_eq(sample_read("{\0}", 3, EXCHANGE_T4, NULL, &read, NULL), HONE_BAD_TEXT);
}
END_TEST

/* Bytes that are changed at random: refused, or rows that a store takes or names. */
START_TEST(random_damage_never_crashes)
{
    const exchange_format format = _i == 0 ? EXCHANGE_CACHEFILE : EXCHANGE_T4;
    static const char bytes[] = "{}[]\",:0e-\\n";
    uint64_t seed = scratch_seed();
    size_t len = 0, taken = 0, refused = 0;
    templates *t = NULL;

    sample_store(3);
    char *text = sample_text(format, &len);
    char *changed = malloc(len);
    ck_assert_int_eq(templates_open(&t, NULL), HONE_OK);
    for (int round = 0; round < 600; round++) {
        exchange_set read = {0};
        exchange_counts counts;
        memcpy(changed, text, len);
        for (uint64_t n = 1 + random_next(&seed) % 3; n > 0; n--) {
            const uint64_t draw = random_next(&seed);
            changed[draw % len] = (draw >> 32) % 2 == 0 ? bytes[(draw >> 40) % (sizeof bytes - 1)]
                                                        : (char)(draw >> 48);
        }
        if (sample_read(changed, len, format, NULL, &read, NULL) != HONE_OK) {
            refused++;
            continue;
        }
        taken++;
        ck_assert_int_eq(exchange_forecast(&read, t, NULL, &counts, &scratch_error), HONE_OK);
        exchange_free(&read);
    }
    ck_assert_uint_gt(taken, 0);
    ck_assert_uint_gt(refused, 0);
    templates_close(t);
    free(changed);
    free(text);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("hostile");

    scratch_fixture(tests);
    tcase_add_test(tests, a_torn_cachefile_gives_its_whole_rows);
    tcase_add_loop_test(tests, a_trailing_comma_is_accepted, 0, 5);
    tcase_add_loop_test(tests, old_and_new_spellings_are_read, 0, 7);
    tcase_add_loop_test(tests, both_spellings_of_t4_are_read, 0, 2);
    tcase_add_loop_test(tests, a_changed_file_is_refused_with_its_place, 0, 2);
    tcase_add_test(tests, what_is_named_must_agree);
    tcase_add_test(tests, what_costs_too_much_is_not_read);
    tcase_add_loop_test(tests, random_damage_never_crashes, 0, 2);
    return suite_run("exchange/hostile", tests);
}
