/* test_shapes.c - shapes that follow from an architecture: against published totals, another
 * program's tables, and the rules for cutting blocks. */
#include "models/llm.h"

#include "tests/models/expected_shapes.h"
#include "tests/models/claims.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static llm *open_model(const char *name)
{
    llm *l = NULL;
    hone_error error = {0};

    ck_assert_msg(llm_open(name, &l, &error) == HONE_OK, "%s: %s:%d %s", name, error.source,
                  error.line, error.message);
    return l;
}

/* Billions, as the shapes add up to (shapes.md 2.2), without draft stages. */
static const struct {
    const char *model;
    double total;
} totals[] = {
    {"deepseek-v3", 671.03},
    {"deepseek-v3.2", 671.88},
    {"deepseek-v4-flash", 284.33},
    {"deepseek-v4-pro", 1572.99},
    {"deepseek-v4.1-flash", 551.88},
    {"kimi-k2", 1026.41},
    {"glm-5", 743.91},
    {"qwen3-235b-a22b", 235.09},
    {"qwen3-30b-a3b", 30.53},
    {"qwen3-32b", 32.76},
    {"minimax-m2", 228.69},
    {"gpt-oss-120b", 116.79},
    {"llama-3.3-70b", 70.55},
    {"mixtral-8x7b", 46.70},
};

START_TEST(parameters_add_up_to_the_published_total)
{
    llm *l = open_model(totals[_i].model);
    double total = 0;

    ck_assert_int_eq(llm_parameters(l, &total, NULL), HONE_OK);
    ck_assert_double_eq_tol(total, totals[_i].total, 0.00501);
    ck_assert_str_eq(llm_name(l), totals[_i].model);
    llm_close(l);
}
END_TEST

START_TEST(every_model_of_the_folder_has_a_total)
{
    const char *const *names;
    size_t len = llm_list(&names);

    ck_assert_uint_eq(len, sizeof totals / sizeof totals[0]);
    for (size_t i = 0; i < len; i++) {
        bool found = false;

        for (size_t j = 0; j < sizeof totals / sizeof totals[0]; j++) {
            found = found || strcmp(totals[j].model, names[i]) == 0;
        }
        ck_assert_msg(found, "%s", names[i]);
    }
}
END_TEST

static const shape *find_shape(const shape *shapes, size_t len, const char *use)
{
    for (size_t i = 0; i < len; i++) {
        if (strcmp(shapes[i].use, use) == 0) {
            return &shapes[i];
        }
    }
    return NULL;
}

/* Both ways: each row of the table is derived, and each derived matrix stands in the table. */
START_TEST(shapes_match_the_table)
{
    static const int degrees[] = {1, 4, 8};
    const char *model = totals[_i].model;
    llm *l = open_model(model);

    for (size_t d = 0; d < 3; d++) {
        shape *shapes = NULL;
        size_t len = 0, matched = 0, matrices = 0;

        ck_assert_int_eq(llm_shapes(l, degrees[d], 1, &shapes, &len, NULL), HONE_OK);
        for (size_t i = 0; i < len; i++) {
            matrices += strcmp(shapes[i].split, "kv") != 0;
        }
        for (size_t i = 0; i < expected_shapes_len; i++) {
            const expected_shape *e = &expected_shapes[i];
            const shape *s = find_shape(shapes, len, e->use);

            if (strcmp(e->model, model) != 0) {
                continue;
            }
            ck_assert_msg(s != NULL, "%s lacks %s", model, e->use);
            ck_assert_msg(s->n == e->at[d].n && s->k == e->at[d].k && s->batch == e->at[d].batch &&
                              s->layers == e->layers && strcmp(s->split, e->split) == 0,
                          "%s %s tp %d: %lldx(%lldx%lld) %s, %d layers", model, e->use, degrees[d],
                          (long long)s->batch, (long long)s->n, (long long)s->k, s->split,
                          (int)s->layers);
            matched++;
        }
        ck_assert_uint_eq(matched, matrices);
        free(shapes);
    }
    llm_close(l);
}
END_TEST

/* The cuts of shapes.md 2.3. `block` re-blocks the model first; refused NULL: every shape is legal.
 */
static const struct {
    const char *model;
    int block, tp, ep;
    const char *refused, *why;
} cuts[] = {
    {"deepseek-v3", 0, 8, 1, NULL, NULL},
    {"deepseek-v3", 0, 16, 1, NULL, NULL},
    {"deepseek-v4.1-flash", 0, 8, 1, NULL, NULL},
    {"deepseek-v4.1-flash", 0, 16, 1, "experts.w2", "144"},
    {"deepseek-v4.1-flash", 128, 2, 1, NULL, NULL},
    {"deepseek-v4.1-flash", 128, 4, 1, "experts.w13", "576"},
    {"deepseek-v4.1-flash", 128, 8, 1, "experts.w13", "288"},
    {"deepseek-v4.1-flash", 128, 8, 1, "shared.down", "288"},
    {"deepseek-v4.1-flash", 128, 8, 8, "shared.down", "288"},
    {"deepseek-v4-pro", 128, 8, 1, NULL, NULL},
    {"deepseek-v4-pro", 128, 16, 1, "shared.gate_up", "192"},
    {"qwen3-235b-a22b", 0, 4, 1, NULL, NULL},
    {"qwen3-235b-a22b", 0, 8, 1, "experts.w13", "192"},
    {"qwen3-235b-a22b", 0, 8, 1, "experts.w2", "192"},
    {"qwen3-235b-a22b", 0, 8, 8, NULL, NULL},
    {"qwen3-235b-a22b", 0, 8, 2, NULL, NULL},
    {"minimax-m2", 0, 8, 1, "experts.w13", "192"},
    {"qwen3-32b", 0, 8, 1, NULL, NULL},
    {"qwen3-32b", 0, 16, 1, "mlp.gate_up", "1600"},
    {"qwen3-32b", 0, 16, 1, "mlp.down", "1600"},
    {"gpt-oss-120b", 0, 2, 1, NULL, NULL},
    {"gpt-oss-120b", 0, 4, 1, "experts.w2", "720"},
    {"mixtral-8x7b", 0, 8, 8, NULL, NULL},
    {"mixtral-8x7b", 0, 16, 16, "experts.w13", "8 experts"},
    {"mixtral-8x7b", 0, 3, 1, "attn.qkv", "heads"},
    {"deepseek-v4-flash", 0, 16, 1, "attn.wo_a", "8"},
    {"llama-3.3-70b", 0, 64, 1, NULL, NULL},
};

START_TEST(a_cut_is_legal_or_says_why_not)
{
    llm *l = open_model(cuts[_i].model), *reblocked = NULL;
    shape *shapes = NULL;
    size_t len = 0, refused = 0;

    if (cuts[_i].block > 0) {
        ck_assert_int_eq(llm_reblock(l, cuts[_i].block, &reblocked, NULL), HONE_OK);
    }
    ck_assert_int_eq(llm_shapes(reblocked != NULL ? reblocked : l, cuts[_i].tp, cuts[_i].ep,
                                &shapes, &len, NULL),
                     HONE_OK);
    for (size_t i = 0; i < len; i++) {
        refused += shapes[i].refused[0] != '\0';
    }
    if (cuts[_i].refused == NULL) {
        ck_assert_uint_eq(refused, 0);
    } else {
        const shape *s = find_shape(shapes, len, cuts[_i].refused);

        ck_assert_ptr_nonnull(s);
        ck_assert_msg(strstr(s->refused, cuts[_i].why) != NULL, "%s: '%s'", s->use, s->refused);
    }
    free(shapes);
    llm_close(reblocked);
    llm_close(l);
}
END_TEST

/* Local experts and the share of an expert, by tp and ep (shapes.md 2.1: etp = world / ep). */
static const struct {
    const char *model;
    int tp, ep;
    int64_t experts, w13_n, w2_k;
} experts[] = {
    {"deepseek-v3", 8, 1, 256, 512, 256},          {"deepseek-v3", 8, 8, 32, 4096, 2048},
    {"deepseek-v3", 8, 2, 128, 1024, 512},         {"deepseek-v3", 1, 64, 4, 4096, 2048},
    {"deepseek-v4.1-flash", 8, 8, 48, 4608, 2304}, {"kimi-k2", 16, 32, 12, 4096, 2048},
};

START_TEST(experts_are_cut_by_ep_then_by_inter)
{
    llm *l = open_model(experts[_i].model);
    shape *shapes = NULL;
    size_t len = 0;

    ck_assert_int_eq(llm_shapes(l, experts[_i].tp, experts[_i].ep, &shapes, &len, NULL), HONE_OK);
    const shape *w13 = find_shape(shapes, len, "experts.w13");
    const shape *w2 = find_shape(shapes, len, "experts.w2");
    ck_assert_int_eq(w13->experts, experts[_i].experts);
    ck_assert_int_eq(w13->n, experts[_i].w13_n);
    ck_assert_int_eq(w2->k, experts[_i].w2_k);
    free(shapes);
    llm_close(l);
}
END_TEST

static const struct {
    int tp, ep;
} bad_degrees[] = {{0, 1}, {-1, 1}, {1, 0}, {8, 3}, {100000, 1}, {1, 1 << 30}};

START_TEST(impossible_degrees_are_refused)
{
    llm *l = open_model("deepseek-v3");
    shape *shapes = NULL;
    size_t len = 7;

    ck_assert_int_eq(llm_shapes(l, bad_degrees[_i].tp, bad_degrees[_i].ep, &shapes, &len, NULL),
                     HONE_BAD_ARGUMENT);
    ck_assert_ptr_null(shapes);
    ck_assert_uint_eq(len, 7);
    llm_close(l);
}
END_TEST

/* The other program's JSON for one config: its GEMMs, in its order of fields. */
static json_t *derive_elsewhere(const char *config, int tp)
{
    char script[512], path[512], command[1200];
    json_t *root = NULL;

    if (!file_find_shared("tools/derive_shapes.py", script, sizeof script) ||
        !file_find_shared(config, path, sizeof path)) {
        return NULL;
    }
    snprintf(command, sizeof command, "python3 '%s' '%s' --tp %d --json", script, path, tp);
    FILE *pipe = popen(command, "r");
    if (pipe != NULL) {
        root = json_loadf(pipe, 0, NULL);
        pclose(pipe);
    }
    if (root == NULL) {
        printf("SKIP: python3 gave nothing for %s\n", config);
    }
    return root;
}

/* Whether ours has a matrix of these sizes and launches that is as legal. */
static bool has_match(const shape *shapes, size_t len, const json_t *row, bool quantised)
{
    json_int_t n = json_integer_value(json_object_get(row, "N"));
    json_int_t k = json_integer_value(json_object_get(row, "K"));
    json_int_t batch = json_integer_value(json_object_get(row, "batch"));
    json_int_t layers = json_integer_value(json_object_get(row, "layers"));
    bool refused = *json_string_value(json_object_get(row, "problem")) != '\0';

    for (size_t i = 0; i < len; i++) {
        const shape *s = &shapes[i];
        bool same = s->n == n && s->k == k && s->batch == batch && s->experts == 0 &&
                    (layers == 0 || s->layers == layers);

        if (same && (!quantised || refused == (s->refused[0] != '\0'))) {
            return true;
        }
    }
    return false;
}

/* One of each attention kind, and those that no description of ours covers. */
static const char *const configs[] = {
    "DeepSeek-V3.2", "DeepSeek-V4-Flash",           "DeepSeek-V4.1-Flash.hf-reconstructed",
    "GLM-5.2",       "GLM-4.5.reconstructed",       "Qwen3-235B-A22B",
    "gpt-oss-120b",  "Qwen3-Next-80B-A3B-Instruct", "Llama-4-Maverick-128E.trimmed",
};

START_TEST(an_imported_config_derives_as_the_other_program_says)
{
    enum { TP = 8 };
    char config[256], path[512];
    llm *l = NULL;
    hone_error error = {0};
    shape *shapes = NULL;
    size_t len = 0, i;
    double total = 0;
    json_t *other = NULL, *row;

    snprintf(config, sizeof config, "data/configs/%s.json", configs[_i]);
    if (!file_find_shared(config, path, sizeof path) ||
        (other = derive_elsewhere(config, TP)) == NULL) {
        return;
    }
    ck_assert_msg(llm_open(path, &l, &error) == HONE_OK, "%s", error.message);
    ck_assert_int_eq(llm_shapes(l, TP, 1, &shapes, &len, NULL), HONE_OK);
    json_array_foreach(json_object_get(other, "gemm"), i, row)
    {
        ck_assert_msg(has_match(shapes, len, row, l->weights.block_n > 0), "%s: %s", configs[_i],
                      json_string_value(json_object_get(row, "name")));
    }
    ck_assert_int_eq(llm_parameters(l, &total, NULL), HONE_OK);
    double theirs = json_number_value(json_array_get(json_object_get(other, "params"), 0)) / 1e9;
    ck_assert_double_eq_tol(total, theirs, 1e-6 * theirs);
    free(shapes);
    json_decref(other);
    llm_close(l);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("shapes");
    int models = sizeof totals / sizeof totals[0];

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, parameters_add_up_to_the_published_total, 0, models);
    tcase_add_test(tests, every_model_of_the_folder_has_a_total);
    tcase_add_loop_test(tests, shapes_match_the_table, 0, models);
    tcase_add_loop_test(tests, a_cut_is_legal_or_says_why_not, 0, sizeof cuts / sizeof cuts[0]);
    tcase_add_loop_test(tests, experts_are_cut_by_ep_then_by_inter, 0,
                        sizeof experts / sizeof experts[0]);
    tcase_add_loop_test(tests, impossible_degrees_are_refused, 0,
                        sizeof bad_degrees / sizeof bad_degrees[0]);
    tcase_add_loop_test(tests, an_imported_config_derives_as_the_other_program_says, 0,
                        sizeof configs / sizeof configs[0]);
    return suite_run("models/shapes", tests);
}
