/* test_pairs.c - every template is right on emulated GPUs, with the tensor cores' own arithmetic,
 * wherever two values of any two axes of problem, device and config meet. */
#include "tests/project/pairs.h"

#include "tests/support/folder.h"
#include "tests/support/suite.h"
#include "tuner/engine.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZES "1", "15", "16", "17", "64", "127", "128", "129"

static const pairs_axis gemm[] = {
    {"m", {SIZES}, true},
    {"n", {"33", "127", "128", "129", "576"}, false},
    {"k", {"32", "64", "128", "160", "192", "576"}, true},
    {"recipe",
     {"f32-1x128-128x128", "f32-1x128-1x128", "f32-1x32-32x32", "f32-1x32-1x32", "ue8m0-1x32-32x32",
      "ue8m0-1x32-1x32"},
     false},
    {"out", {"bf16", "f32"}, true},
    {"order", {"any", "fixed"}, false},
    {"accumulate", {"0", "1"}, true},
    {"a_scale_layout", {"row", "col", "tma", "packed"}, true},
    {"b_scale_layout", {"row", "col", "tma", "packed"}, true},
};
/* K is asked for by rules about its split. */
static const pairs_axis scaled[] = {
    {"m", {SIZES}, true},
    {"n", {"33", "128", "576"}, false},
    {"k", {"32", "160", "576", "1056"}, false},
    {"recipe",
     {"ue8m0-1x32-32x32", "ue8m0-1x32-1x32", "ue8m0-1x128-128x128", "ue8m0-1x128-1x32",
      "ue8m0-1x32-e2m1/1x32", "ue8m0-1x128-e2m1/32x32"},
     true},
    {"out", {"bf16", "f32"}, true},
    {"order", {"any", "fixed"}, false},
    {"accumulate", {"0", "1"}, true},
    {"a_scale_layout", {"row", "col", "packed"}, true},
    {"b_scale_layout", {"row", "col", "packed"}, true},
};
/* Rows that are gathered have tokens, which no others have: none, or some with entries. */
static const pairs_axis act[] = {
    {"m", {SIZES}, true},
    {"k", {"32", "128", "160", "192", "384", "576", "1024"}, false},
    {"in", {"bf16", "f16", "f32"}, false},
    {"group", {"32", "64", "128"}, false},
    {"activation", {"plain", "silu_mul", "silu_mul_v4"}, false},
    {"experts", {"1", "3", "6"}, true},
    {"row_set", {"every", "masked", "listed", "gathered", "gathered,tokens=9,topk=6"}, true},
    {"count", {"0", "1"}, true},
    {"scale", {"f32", "ue8m0"}, false},
    {"scale_layout", {"row", "col", "tma", "packed"}, false},
    {"rule", {"pow2_amax", "raw_amax", "pow2_scale", "raw_tiny", "pow2_tiny"}, true},
};
static const pairs_axis weight[] = {
    {"n", {SIZES}, true},
    {"k", {"32", "33", "127", "128", "160", "192", "576"}, false},
    {"in", {"bf16", "f16", "f32"}, false},
    {"gran_n", {"1", "32", "128"}, false},
    {"gran_k", {"32", "128"}, false},
    {"scale", {"f32", "ue8m0"}, false},
    {"scale_layout", {"row", "col", "tma", "packed"}, false},
    {"rule", {"pow2_amax", "raw_amax", "pow2_scale", "raw_tiny", "pow2_tiny"}, true},
};
static const pairs_axis mxfp4[] = {
    {"n", {SIZES}, false},
    {"k", {"32", "64", "128", "160", "416", "1120"}, false},
    {"batch", {"1", "3"}, false},
    {"block_rows", {"1", "32", "128"}, false},
    {"block_cols", {"32", "128"}, false},
    {"scale", {"f32", "ue8m0"}, false},
};
static const pairs_axis scales[] = {
    {"rows", {SIZES}, true},
    {"groups", {"1", "4", "7", "18", "56", "70"}, false},
    {"batch", {"1", "3"}, true},
    {"experts", {"0", "1", "9"}, false},
    {"gran_k", {"32", "128"}, true},
    {"scale", {"f32", "ue8m0"}, false},
    {"scale_layout", {"col", "tma", "packed"}, false},
};
static const pairs_axis routes[] = {
    {"tokens", {"0", SIZES}, true},
    {"m", {"0", "7", "128", "1000"}, true},
    {"experts", {"1", "8", "33", "256", "512"}, false},
    {"topk", {"1", "6", "8"}, true},
    {"group_layout", {"contiguous", "masked", "psum"}, false},
    {"row_align", {"1", "24", "128"}, false},
    {"ids", {"i32", "i64"}, false},
    {"align", {"4", "8", "16"}, true},
};
static const pairs_axis sums[] = {
    {"tokens", {SIZES}, true},        {"n", {"32", "33", "130", "576", "2048"}, false},
    {"m", {"0", "1", "100"}, true},   {"topk", {"1", "3", "6", "8", "10"}, false},
    {"in", {"bf16", "f32"}, false},   {"out", {"bf16", "f32"}, false},
    {"accumulate", {"0", "1"}, true},
};
/* Rows that a list holds, that one walk needs, and that CTAs share. */
static const pairs_axis best[] = {
    {"rows", {"1", "9"}, true},
    {"width", {"250", "4100", "17000"}, false},
    {"k", {"1", "705"}, false},
    {"in", {"f32", "bf16"}, false},
    {"span", {"whole", "ends", "both", "compressed"}, true},
    {"pick", {"every", "blocked", "listed"}, false},
    {"block", {"1", "8"}, false},
    {"pin", {"0", "1"}, true},
    {"drop", {"0", "1"}, true},
    {"sort", {"by_index", "by_score"}, false},
};
static const pairs_axis kv[] = {
    {"tokens", {SIZES}, true},
    {"pages", {"1", "3", "9"}, true},
    {"page_size", {"1", "32", "64", "128"}, true},
    {"record_format", {"index_132", "v32_656", "v41_528", "v4_584"}, false},
    {"record_layout", {"split", "interleaved"}, true},
    {"record_rule", {"pow2_amax", "raw_amax", "pow2_scale", "raw_tiny"}, true},
};

static const pairs_axis fold[] = {
    {"m", {SIZES}, true},
    {"k", {"32", "128", "160", "192", "384", "576", "1024"}, false},
    {"scale_layout", {"row", "col", "packed"}, false},
    {"q_scale_layout", {"row", "col", "packed"}, false},
};
static const pairs_axis nibbles[] = {
    {"tokens", {SIZES}, true},
    {"pages", {"1", "3", "9"}, true},
    {"page_size", {"1", "32", "64", "128", "256"}, true},
    {"record_format", {"v41_288", "index_68", "nvfp4_352"}, false},
    {"record_layout", {"split", "interleaved"}, true},
    {"record_rule", {"pow2_amax", "pow2_tiny", "e4m3_near", "e4m3_up"}, true},
};
static const pairs_axis ready[] = {
    {"tokens", {SIZES}, true},
    {"pages", {"1", "3", "9"}, true},
    {"page_size", {"1", "32", "64", "128"}, true},
    {"heads", {"8", "16", "32", "64"}, false},
    {"rope", {"off", "first", "last"}, false},
    {"pairs", {"neighbours", "halves"}, true},
    {"hadamard", {"0", "1"}, false},
    {"record_format", {"index_132", "index_68"}, false},
    {"record_layout", {"split"}, true},
    {"record_rule", {"pow2_amax", "raw_amax", "pow2_scale", "raw_tiny", "pow2_tiny"}, true},
};
static const pairs_axis flat[] = {
    {"tokens", {SIZES}, true},
    {"pages", {"1", "3", "9"}, true},
    {"page_size", {"32", "64", "128", "256"}, true},
    {"record_format", {"fp8_576", "bf16_1152", "bf16_1024"}, false},
    {"record_layout", {"flat"}, true},
    {"record_rule", {"tensor", "unscaled"}, true},
};

#define RECORDS                                                                                    \
    "index_132", "v32_656", "v41_528", "v4_584", "v41_288", "index_68", "nvfp4_352", "fp8_576"
#define RULES                                                                                      \
    "pow2_amax", "raw_amax", "pow2_scale", "raw_tiny", "pow2_tiny", "e4m3_near", "e4m3_up", "tensor"
static const pairs_axis gather[] = {
    {"tokens", {SIZES}, true},
    {"pages", {"1", "3", "9"}, true},
    {"page_size", {"32", "64", "128", "256"}, true},
    {"by", {"slots", "table"}, false},
    {"to", {"raw", "bf16"}, false},
    {"record_format", {RECORDS, "bf16_1152", "bf16_1024"}, false},
    {"record_layout", {"split", "interleaved", "flat"}, true},
    {"record_rule", {RULES, "unscaled"}, true},
};

/* Small enough to run whole, with ranges of every kind, and not so small that a kind has no key. */
static const pairs_axis prefill[] = {
    {"tokens", {"7", "9", "18"}, true},   {"keys", {"40", "65", "300"}, true},
    {"heads", {"8", "32", "64"}, false},  {"dims", {"32", "64", "128"}, false},
    {"element", {"e4m3", "e2m1"}, false}, {"span", {"both", "compressed"}, true},
    {"clean", {"0", "1"}, true},          {"out", {"bf16", "f32"}, true},
};
static const pairs_axis decode[] = {
    {"batch", {"5", "7"}, true},
    {"width", {"63", "257", "600"}, true},
    {"pages", {"41"}, true},
    {"next_n", {"1", "2", "6"}, false},
    {"heads", {"8", "32", "64"}, false},
    {"page_size", {"32", "64", "128"}, false},
    {"record_format", {"index_132", "index_68"}, false},
    {"record_layout", {"split"}, true},
    {"record_rule", {"raw_amax", "pow2_amax"}, true},
    {"out", {"bf16", "f32"}, true},
};

#define LEN(list) (sizeof(list) / sizeof(list)[0])

static const struct {
    const char *template_name, *op;
    const pairs_axis *axes;
    size_t axes_len;
    size_t first, devices; /* of `specs` */
} rows[] = {
    {"fp8_gemm/mma_sync", "fp8_gemm", gemm, LEN(gemm), 0, 3},
    {"fp8_gemm/sm120_block_scale", "fp8_gemm", scaled, LEN(scaled), 2, 1},
    {"act_quant/groups", "act_quant", act, LEN(act), 0, 2},
    {"kv_quant/tokens", "kv_quant", kv, LEN(kv), 0, 2},
    {"fold/groups", "fold", fold, LEN(fold), 0, 2},
    {"weight_quant/blocks", "weight_quant", weight, LEN(weight), 0, 2},
    {"mxfp4_fold/blocks", "mxfp4_fold", mxfp4, LEN(mxfp4), 0, 2},
    {"scale_pack/tiles", "scale_pack", scales, LEN(scales), 0, 2},
    {"moe_align/sort", "moe_align", routes, LEN(routes), 0, 2},
    {"moe_combine/tokens", "moe_combine", sums, LEN(sums), 0, 2},
    {"topk/rows", "topk", best, LEN(best), 0, 2},
    {"index_prepare/rows", "index_prepare", ready, LEN(ready), 0, 2},
    {"kv_quant/nibbles", "kv_quant", nibbles, LEN(nibbles), 0, 2},
    {"kv_quant/single", "kv_quant", flat, LEN(flat), 0, 2},
    {"kv_quant/copy", "kv_quant", flat, LEN(flat), 0, 2},
    {"kv_gather/values", "kv_gather", gather, LEN(gather), 0, 2},
    {"kv_gather/raw", "kv_gather", gather, LEN(gather), 0, 2},
    {"mqa_logits/mma_sync", "mqa_logits", prefill, LEN(prefill), 0, 2},
    {"mqa_logits/sm90_wgmma", "mqa_logits", prefill, LEN(prefill), 1, 1},
    {"mqa_logits/sm120_block_scale", "mqa_logits", prefill, LEN(prefill), 2, 1},
    {"mqa_logits_paged/mma_sync", "mqa_logits_paged", decode, LEN(decode), 0, 2},
    {"mqa_logits_paged/sm90_wgmma", "mqa_logits_paged", decode, LEN(decode), 1, 1},
    {"mqa_logits_paged/sm120_block_scale", "mqa_logits_paged", decode, LEN(decode), 2, 1},
};

/* The tensor cores of the first two keep 13 and 25 bits, the third has block scales. */
static const char *const specs[] = {"emu:rtx4090", "emu:h20", "emu:rtx5090"};
enum { DEVICES = 3, AHEAD = 8 };

static templates *all;
static device *devices[DEVICES];
static engine engines[DEVICES];
static char cache[FOLDER_BYTES];

/* One case on its way: compiled ahead, proved in order. */
typedef struct flight {
    const pairs_case *of;
    plan plan;
    engine_trial trial;
    engine_answer answer;
    bool answered;
} flight;

static void submit(const manifest *m, const pairs_case *c, flight *out)
{
    hone_error error = {0};
    engine *e = &engines[c->device];

    *out = (flight){.of = c};
    ck_assert_msg(manifest_plan(m, &c->problem, &devices[c->device]->gpu.facts, &c->config,
                                &out->plan, &error) == HONE_OK,
                  "%s", error.message);
    out->trial = (engine_trial){&out->of->problem, m, &out->plan, &out->of->config, 7};
    ck_assert_msg(e->submit(e->state, &out->trial, (uint64_t)(uintptr_t)out, &error) == HONE_OK,
                  "%s", error.message);
}

static void describe(const manifest *m, const flight *f, char *text, size_t capacity)
{
    char problem[512] = "", parameters[512] = "";

    hone_problem_format(&f->of->problem, problem, sizeof problem, NULL);
    manifest_config_format(m, &f->of->config, parameters, sizeof parameters, NULL);
    snprintf(text, capacity, "%s on %s, %s", problem, specs[f->of->device], parameters);
}

/* Wait for its compile, prove it. 1 when it is not proved: the reason is printed. */
static size_t settle(const manifest *m, flight *f)
{
    hone_error error = {0};
    engine *e = &engines[f->of->device];
    engine_result *result = calloc(1, sizeof *result);
    char text[1200];
    bool proved = false;

    ck_assert_ptr_nonnull(result);
    while (!f->answered) {
        engine_answer answer;
        ck_assert_msg(e->wait(e->state, &answer, &error) == HONE_OK, "%s", error.message);
        flight *ended = (flight *)(uintptr_t)answer.tag;
        ended->answer = answer;
        ended->answered = true;
    }
    if (f->answer.outcome == STORE_OK) {
        ck_assert_msg(engine_prove(e, &f->trial, &f->answer, result, &error) == HONE_OK, "%s",
                      error.message);
        proved = result->row.outcome == STORE_OK;
    }
    if (!proved) {
        describe(m, f, text, sizeof text);
        printf("NOT PROVED %s: %s\n", text,
               f->answer.outcome == STORE_OK ? result->reason : f->answer.reason);
    }
    e->discard(e->state, &f->answer);
    free(result);
    return !proved;
}

/* Of a long run alone (HONE_PROVE_ALL): many cases, and suites of their own prove the templates. */
static bool is_late(const char *template_name)
{
    return strncmp(template_name, "mqa_logits", 10) == 0 && getenv("HONE_PROVE_ALL") == NULL;
}

START_TEST(every_pair_is_proved)
{
    if (is_late(rows[_i].template_name)) {
        return;
    }
    const manifest *m = templates_find(all, rows[_i].template_name);
    flight *flights = calloc(AHEAD, sizeof *flights);
    size_t submitted = 0, failed = 0;

    ck_assert_ptr_nonnull(m);
    ck_assert_ptr_nonnull(flights);
    pairs_request request = {.m = m,
                             .op = rows[_i].op,
                             .axes = rows[_i].axes,
                             .axes_len = rows[_i].axes_len,
                             .devices_len = rows[_i].devices};
    for (size_t i = 0; i < rows[_i].devices; i++) {
        request.devices[i] = &devices[rows[_i].first + i]->gpu.facts;
    }
    pairs_set set = pairs_cover(&request);
    ck_assert_uint_gt(set.len, 0);
    for (size_t i = 0; i < set.len; i++) {
        set.cases[i].device += rows[_i].first;
    }
    for (size_t i = 0; i < set.len; i++) {
        for (; submitted < set.len && submitted < i + AHEAD; submitted++) {
            submit(m, &set.cases[submitted], &flights[submitted % AHEAD]);
        }
        failed += settle(m, &flights[i % AHEAD]);
    }
    printf("%s: %zu pairs of values in %zu cases, %zu not proved\n", rows[_i].template_name,
           set.pairs, set.len, failed);
    ck_assert_uint_eq(failed, 0);
    pairs_free(&set);
    free(flights);
}
END_TEST

static void setup(void)
{
    hone_error error = {0};
    const char *binary = getenv("HONE_BINARY_DIR");
    char worker[512];

    /* Compiled here and now: the user's cache is left alone. */
    folder_make(cache);
    setenv("XDG_CACHE_HOME", cache, 1);
    snprintf(worker, sizeof worker, "%s/runtime/hone-worker", binary != NULL ? binary : ".");
    setenv("HONE_WORKER", worker, 1);
    snprintf(worker, sizeof worker, "%s/tuner/hone-prover", binary != NULL ? binary : ".");
    setenv("HONE_PROVER", worker, 1);
    ck_assert_msg(templates_open(&all, &error) == HONE_OK, "%s", error.message);
    for (size_t i = 0; i < DEVICES; i++) {
        ck_assert_msg(device_open(specs[i], &devices[i], &error) == HONE_OK, "%s", error.message);
        const engine_options options = {.device = devices[i], .templates = all};
        ck_assert_msg(engine_open_device(&options, &engines[i], &error) == HONE_OK, "%s",
                      error.message);
    }
}

static void teardown(void)
{
    for (size_t i = 0; i < DEVICES; i++) {
        engines[i].close(engines[i].state);
        device_close(devices[i]);
    }
    templates_close(all);
    folder_remove(cache);
}

int main(void)
{
    TCase *tests = tcase_create("pairs");

    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, every_pair_is_proved, 0, (int)LEN(rows));
    return suite_run_here("project/pairs", tests); /* the workers belong to this process */
}
