/* Claims about reports: complete, neutral, and never a modelled time among measured ones. */
#include "bench/report.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <jansson.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[FOLDER_BYTES];
static store *open_store;
static device_kind tuned;
static hone_error error;

#define OK(call) ck_assert_msg((call) == HONE_OK, "%s", error.message)

static const struct {
    const char *problem, *config;
    int32_t outcome, timer;
    const char *reason;
    double time_ns, flop, roof_ns;
    bool wins, is_default;
} candidates[] = {
    {"fp8_gemm:m=64,n=256,k=512,recipe=f32-1x128-128x128", "block_m=64", STORE_OK,
     STORE_TIMER_EVENTS, "", 2000, 2.0 * 64 * 256 * 512, 1000, true, false},
    {"fp8_gemm:m=64,n=256,k=512,recipe=f32-1x128-128x128", "block_m=16", STORE_WRONG,
     STORE_TIMER_NONE, "element 3\033[31m differs", 0, 0, 0, false, false},
    {"fp8_gemm:m=16,n=256,k=512,recipe=f32-1x128-128x128", "block_m=16", STORE_OK,
     STORE_TIMER_MODELLED, "", 4000, 2.0 * 16 * 256 * 512, 1000, true, false},
    {"fp8_gemm:m=16,n=256,k=512,recipe=f32-1x128-128x128", "block_m=32", STORE_OK,
     STORE_TIMER_MODELLED, "", 4500, 2.0 * 16 * 256 * 512, 1000, false, true},
    {"fp8_gemm:m=1,n=256,k=512,recipe=f32-1x128-128x128", "block_m=16", STORE_COMPILE,
     STORE_TIMER_NONE, "no such register", 0, 0, 0, false, false},
    {"fp8_gemm:m=1,n=256,k=512,recipe=f32-1x128-128x128", "block_m=64", STORE_COMPILE,
     STORE_TIMER_NONE, "no such register", 0, 0, 0, false, false},
};

static void add_candidate(size_t index, int64_t sweep, int64_t device)
{
    hone_problem problem;
    int64_t id = 0;
    store_key key = {
        .device = device, .template_name = "fp8_gemm/mma_sync", .config = candidates[index].config};
    store_result result = {.outcome = candidates[index].outcome,
                           .timer = candidates[index].timer,
                           .reason = candidates[index].reason,
                           .time_ns = candidates[index].time_ns,
                           .flop = candidates[index].flop,
                           .bytes = 1000,
                           .bound = "dram",
                           .roof_ns = candidates[index].roof_ns,
                           .registers = 64};

    OK(hone_problem_parse(candidates[index].problem, &problem, &error));
    OK(store_problem_id(open_store, &problem, &key.problem, &error));
    OK(store_candidate_record(open_store, sweep, &key, &result, &id, &error));
    if (candidates[index].wins) {
        OK(store_winner_set(open_store, key.problem, device, id, STORE_VERDICT_CLEAR, &error));
    }
    if (candidates[index].is_default) {
        OK(store_default_set(open_store, key.problem, device, id, &error));
    }
}

static void setup(void)
{
    char path[1024];
    int64_t sweep = 0, device = 0;
    store_sweep about = {.command = "test", .nvrtc = "13.0.88", .driver = 13000};
    device_facts facts = {.name = "NVIDIA H20",
                          .arch = 90,
                          .sm_count = 78,
                          .smem_per_block = 232448,
                          .mem_bytes = 96ll << 30,
                          .mem_bytes_per_s = 4000000000000,
                          .emulated = true};

    folder_make(folder);
    snprintf(path, sizeof path, "%s/store.db", folder);
    OK(store_open(path, STORE_WRITE, &open_store, &error));
    OK(store_sweep_begin(open_store, &about, &sweep, &error));
    device_kind_of(&facts, &tuned);
    OK(store_device_id(open_store, &tuned, &device, &error));
    for (size_t i = 0; i < ARRAY_LEN(candidates); i++) {
        add_candidate(i, sweep, device);
    }
    OK(store_flush(open_store, &error));
    OK(store_pack(open_store, NULL, &error));
}

static void teardown(void)
{
    OK(store_close(open_store, &error));
    folder_remove(folder);
}

/* A grouped product measured under a condition, some of whose rows had no room; its default under
 * another one. */
static void add_routed(const char *tokens, const char *counters, const char *other)
{
    const store_sweep about = {.command = "test", .nvrtc = "13.0.88", .driver = 13000};
    store_key key = {.template_name = "moe_gemm/sm90_wgmma", .config = "block_m=64"};
    store_result result = {.outcome = STORE_OK,
                           .timer = STORE_TIMER_MODELLED,
                           .time_ns = 1000,
                           .tokens = tokens,
                           .counters = counters,
                           .bound = "dram"};
    hone_problem problem;
    int64_t sweep = 0, id = 0;

    OK(hone_problem_parse("moe_gemm:n=256,k=512,experts=4,tokens=8,topk=2,group_layout=masked,"
                          "recipe=f32-1x128-128x128",
                          &problem, &error));
    OK(store_sweep_begin(open_store, &about, &sweep, &error));
    OK(store_device_id(open_store, &tuned, &key.device, &error));
    OK(store_problem_id(open_store, &problem, &key.problem, &error));
    OK(store_candidate_record(open_store, sweep, &key, &result, &id, &error));
    OK(store_winner_set(open_store, key.problem, key.device, id, STORE_VERDICT_CLEAR, &error));
    key.config = "block_m=128";
    result.tokens = other;
    result.time_ns = 1500;
    OK(store_candidate_record(open_store, sweep, &key, &result, &id, &error));
    OK(store_default_set(open_store, key.problem, key.device, id, &error));
    OK(store_flush(open_store, &error));
}

static char *text_of(const report *r, bool details)
{
    char *text = NULL;
    size_t len = 0;
    FILE *stream = open_memstream(&text, &len);

    ck_assert_ptr_nonnull(stream);
    report_print_text(r, stream, details);
    fclose(stream);
    return text;
}

START_TEST(every_problem_is_in_it_with_its_winner_or_its_reason)
{
    report r = {0};

    OK(report_read(open_store, NULL, &r, &error));
    ck_assert_uint_eq(r.devices_len, 1);
    const report_device *device = &r.devices[0];
    ck_assert_uint_eq(device->rows_len, 2);
    ck_assert_uint_eq(device->missing_len, 1);
    ck_assert_uint_eq(device->missing[0].tried, 2);
    ck_assert_uint_eq(device->candidates, 6);
    ck_assert_uint_eq(device->outcomes[STORE_OK], 3);
    ck_assert_uint_eq(device->reasons_len, 2);
    ck_assert_uint_eq(device->reasons[0].count, 2); /* the most frequent first */
    ck_assert_str_eq(device->reasons[0].reason, "no such register");
    report_free(&r);
}
END_TEST

START_TEST(means_of_modelled_and_measured_times_stay_apart)
{
    report r = {0};

    OK(report_read(open_store, NULL, &r, &error));
    char *text = text_of(&r, true);
    ck_assert_ptr_nonnull(strstr(text, "events times: 1 winners, geometric mean 50.0%"));
    ck_assert_ptr_nonnull(strstr(text, "modelled times: 1 winners, geometric mean 25.0%"));
    ck_assert_ptr_nonnull(strstr(text, "MODELLED"));
    free(text);
    report_free(&r);
}
END_TEST

START_TEST(how_far_the_default_is_stands_with_each_winner)
{
    report r = {0};

    OK(report_read(open_store, NULL, &r, &error));
    char *text = text_of(&r, false);
    ck_assert_ptr_nonnull(strstr(text, "default  +12.5 %")); /* 4500 after 4000 */
    ck_assert_ptr_nonnull(strstr(text, "default not timed"));
    ck_assert_ptr_nonnull(strstr(text,
                                 "modelled times: the default without tuning is 12.5 % behind "
                                 "in the geometric mean of 1, 12.5 % at worst"));
    ck_assert_ptr_null(strstr(text, "events times: the default"));
    free(text);
    report_free(&r);
}
END_TEST

START_TEST(control_characters_of_a_store_reach_no_terminal)
{
    report r = {0};

    OK(report_read(open_store, NULL, &r, &error));
    char *text = text_of(&r, true);
    ck_assert_ptr_null(strchr(text, '\033'));
    ck_assert_ptr_nonnull(strstr(text, "element 3?[31m differs"));
    free(text);
    report_free(&r);
}
END_TEST

START_TEST(json_says_the_same)
{
    report r = {0};
    char *text = NULL;
    size_t len = 0;
    FILE *stream = open_memstream(&text, &len);

    OK(report_read(open_store, NULL, &r, &error));
    OK(report_print_json(&r, stream, &error));
    fclose(stream);
    json_t *root = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(root);
    json_t *device = json_array_get(json_object_get(root, "devices"), 0);
    json_t *problems = json_object_get(device, "problems");
    ck_assert_uint_eq(json_array_size(problems), 2);
    ck_assert(json_is_true(json_object_get(device, "emulated")));
    size_t modelled = 0;
    for (size_t i = 0; i < json_array_size(problems); i++) {
        const json_t *row = json_array_get(problems, i);
        const json_t *behind = json_object_get(row, "default_percent");
        bool is_modelled = json_is_true(json_object_get(row, "modelled"));

        modelled += is_modelled;
        ck_assert(is_modelled ? json_real_value(behind) == 12.5 : json_is_null(behind));
    }
    ck_assert_uint_eq(modelled, 1);
    json_decref(root);
    free(text);
    report_free(&r);
}
END_TEST

static const struct {
    const char *tokens, *counters, *other, *says;
    int64_t rows, cut;
    bool has_default;
} conditions[] = {
    {"zipf:1", "{\"rows\":9,\"rows_cut\":7}", "zipf:1",
     ", tokens zipf:1 (7 of 16 rows cut for want of room)\n", 9, 7, true},
    {"balanced", "{\"rows\":16,\"rows_cut\":0}", "one", ", tokens balanced\n", 16, 0, false},
    {"one\033[31m", "", "balanced", ", tokens one?[31m\n", 0, 0, false},
    {"", "no JSON", "", ", tokens ?\n", 0, 0, true},
    {"one", "{\"rows\":9223372036854775807,\"rows_cut\":1}", "one", ", tokens one\n", 0, 0, true},
    {"one", "{\"rows\":-1,\"rows_cut\":-5}", "one", ", tokens one\n", 0, 0, true},
};

START_TEST(a_winner_says_what_it_was_measured_under)
{
    report r = {0};
    const report_row *row = NULL;

    add_routed(conditions[_i].tokens, conditions[_i].counters, conditions[_i].other);
    OK(report_read(open_store, NULL, &r, &error));
    for (size_t i = 0; i < r.devices[0].rows_len; i++) {
        const report_row *own = &r.devices[0].rows[i];
        row = strncmp(own->problem, "moe_gemm:", 9) == 0 ? own : row;
    }
    ck_assert_ptr_nonnull(row);
    ck_assert_int_eq(row->rows, conditions[_i].rows);
    ck_assert_int_eq(row->rows_cut, conditions[_i].cut);
    /* A default of another condition is no measure. */
    ck_assert_int_eq(row->default_ns > 0, conditions[_i].has_default);
    char *text = text_of(&r, false);
    ck_assert_msg(strstr(text, conditions[_i].says) != NULL, "%s", text);
    free(text);
    report_free(&r);
}
END_TEST

START_TEST(a_device_is_chosen_by_its_kind)
{
    report r = {0};
    device_kind kind = tuned;

    kind.sm_count = 16; /* a slice of the chip under the same name */
    OK(report_read(open_store, &kind, &r, &error));
    ck_assert_uint_eq(r.devices_len, 0);
    kind = tuned;
    kind.emulated = false; /* the real twin: its winners were never measured */
    OK(report_read(open_store, &kind, &r, &error));
    ck_assert_uint_eq(r.devices_len, 0);
    OK(report_read(open_store, &tuned, &r, &error));
    ck_assert_uint_eq(r.devices_len, 1);
    report_free(&r);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("report");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, every_problem_is_in_it_with_its_winner_or_its_reason);
    tcase_add_test(tests, means_of_modelled_and_measured_times_stay_apart);
    tcase_add_test(tests, how_far_the_default_is_stands_with_each_winner);
    tcase_add_test(tests, control_characters_of_a_store_reach_no_terminal);
    tcase_add_test(tests, json_says_the_same);
    tcase_add_loop_test(tests, a_winner_says_what_it_was_measured_under, 0, ARRAY_LEN(conditions));
    tcase_add_test(tests, a_device_is_chosen_by_its_kind);
    return suite_run("bench/report", tests);
}
