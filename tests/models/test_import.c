/* test_import.c - a Hugging Face config.json becomes the same architecture as our description, or
 * is refused by name. */
#include "models/llm.h"
#include "models/names.h"

#include "tests/models/claims.h"
#include "tests/support/file.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Third-party configs, and our own description of the same model. */
static const struct {
    const char *config, *model;
} twins[] = {
    {"DeepSeek-V3", "deepseek-v3"},
    {"DeepSeek-R1", "deepseek-v3"},
    {"DeepSeek-V3.2", "deepseek-v3.2"},
    {"DeepSeek-V4-Flash", "deepseek-v4-flash"},
    {"DeepSeek-V4-Pro", "deepseek-v4-pro"},
    {"DeepSeek-V4.1-Flash.hf-reconstructed", "deepseek-v4.1-flash"},
    {"Kimi-K2-Instruct", "kimi-k2"},
    {"GLM-5", "glm-5"},
    {"Qwen3-235B-A22B-FP8", "qwen3-235b-a22b"},
    {"Qwen3-30B-A3B", "qwen3-30b-a3b"},
    {"Qwen3-32B-FP8", "qwen3-32b"},
    {"MiniMax-M2.5", "minimax-m2"},
    {"gpt-oss-120b", "gpt-oss-120b"},
    {"Llama-3.1-70B", "llama-3.3-70b"},
    {"Mixtral-8x7B-v0.1", "mixtral-8x7b"},
};

START_TEST(an_import_equals_our_description)
{
    char file[256], path[512];
    llm *ours = NULL, *theirs = NULL;
    shape *a = NULL, *b = NULL;
    size_t a_len = 0, b_len = 0;
    hone_error error = {0};

    snprintf(file, sizeof file, "data/configs/%s.json", twins[_i].config);
    if (!file_find_shared(file, path, sizeof path)) {
        return;
    }
    ck_assert_msg(llm_open(path, &theirs, &error) == HONE_OK, "%s", error.message);
    ck_assert_int_eq(llm_open(twins[_i].model, &ours, NULL), HONE_OK);
    ck_assert_str_eq(llm_name(theirs), twins[_i].config);
    ck_assert_int_eq(llm_shapes(ours, 8, 1, &a, &a_len, NULL), HONE_OK);
    ck_assert_int_eq(llm_shapes(theirs, 8, 1, &b, &b_len, NULL), HONE_OK);
    ck_assert_uint_eq(a_len, b_len);
    for (size_t i = 0; i < a_len; i++) {
        ck_assert_msg(memcmp(&a[i], &b[i], sizeof a[i]) == 0, "%s", a[i].use);
    }
    ck_assert_int_eq(ours->weights.pow2, theirs->weights.pow2);
    ck_assert_int_eq(ours->topk, theirs->topk);
    ck_assert_int_eq(ours->index_topk, theirs->index_topk);
    free(a);
    free(b);
    llm_close(ours);
    llm_close(theirs);
}
END_TEST

#define LLAMA                                                                                      \
    "\"model_type\": \"llama\", \"hidden_size\": 512, \"num_hidden_layers\": 2, "                  \
    "\"num_attention_heads\": 4, \"vocab_size\": 1000, \"intermediate_size\": 1024"
#define QWEN_MOE                                                                                   \
    "\"model_type\": \"qwen3_moe\", \"hidden_size\": 512, \"num_hidden_layers\": 2, "              \
    "\"num_attention_heads\": 4, \"vocab_size\": 1000, \"intermediate_size\": 99, "                \
    "\"num_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 256"
#define FP8 "\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]"

static const claim texts[] = {
    {"a plain config is read", "{" LLAMA "}", HONE_OK, 0, NULL},
    {"experts are read, and the unused size is not", "{" QWEN_MOE "}", HONE_OK, 0, NULL},
    {"an unknown model_type is named, with the known ones",
     "{\"model_type\": \"kimi_k3\", \"hidden_size\": 7168}", HONE_BAD_MODEL, 0,
     "'kimi_k3' is unknown; known: deepseek_v3 deepseek_v32"},
    {"an unknown nested model_type is not read as its outer one",
     "{\"model_type\": \"llama\", \"text_config\": {\"model_type\": \"llama9_text\"}}",
     HONE_BAD_MODEL, 0, "llama9_text"},
    {"another program's config has no model_type", "{\"dim\": 7168, \"n_layers\": 61}",
     HONE_BAD_MODEL, 0, "model_type"},
    {"a model_type that is a number", "{\"model_type\": 3}", HONE_BAD_MODEL, 0, "model_type"},
    {"a missing size is named",
     "{\"model_type\": \"llama\", \"hidden_size\": 512, \"num_hidden_layers\": 2}", HONE_BAD_MODEL,
     0, "vocab_size"},
    {"a size as text", "{" LLAMA ", \"head_dim\": \"128\"}", HONE_BAD_MODEL, 0, "head_dim"},
    {"a size as a fraction", "{" LLAMA ", \"head_dim\": 128.0}", HONE_BAD_MODEL, 0, "head_dim"},
    {"a negative size", "{" LLAMA ", \"head_dim\": -128}", HONE_BAD_MODEL, 0, "head_dim"},
    {"a size that would overflow", "{" LLAMA ", \"head_dim\": 4611686018427387904}", HONE_BAD_MODEL,
     0, "head_dim"},
    {"no heads",
     "{\"model_type\": \"llama\", \"hidden_size\": 512, \"num_hidden_layers\": 2, "
     "\"num_attention_heads\": 0, \"vocab_size\": 1000}",
     HONE_BAD_MODEL, 0, "num_attention_heads"},
    {"more experts for a token than there are",
     "{" LLAMA ", \"num_local_experts\": 8, \"experts_per_token\": 9}", HONE_BAD_MODEL, 0, "topk"},
    {"experts in some layers only", "{" QWEN_MOE ", \"mlp_only_layers\": [0]}", HONE_BAD_MODEL, 0,
     "mlp_only_layers"},
    {"experts in every second layer", "{" QWEN_MOE ", \"decoder_sparse_step\": 2}", HONE_BAD_MODEL,
     0, "decoder_sparse_step"},
    {"experts in a latent width", "{" QWEN_MOE ", \"routed_expert_hidden_size\": 256}",
     HONE_BAD_MODEL, 0, "routed_expert_hidden_size"},
    {"blocks are read", "{" LLAMA ", \"quantization_config\": {" FP8 "}}", HONE_OK, 0, NULL},
    {"what is bf16 anyway may be left out",
     "{" LLAMA ", \"quantization_config\": {" FP8 ", \"modules_to_not_convert\": [\"lm_head\", "
     "\"model.layers.0.mlp.gate\", \"model.layers.1.input_layernorm\", "
     "\"model.layers.2.self_attn.o_proj\", \"model.layers.0.indexer.weights_proj\"]}}",
     HONE_OK, 0, NULL},
    {"a projection that is left out",
     "{" LLAMA ", \"quantization_config\": {" FP8
     ", \"ignored_layers\": [\"model.layers.1.self_attn.o_proj\"]}}",
     HONE_BAD_MODEL, 0, "model.layers.1.self_attn.o_proj"},
    {"a block of a layer that is left out",
     "{" LLAMA ", \"quantization_config\": {" FP8
     ", \"modules_to_not_convert\": [\"model.layers.*.self_attn\"]}}",
     HONE_BAD_MODEL, 0, "self_attn"},
    {"fp8 without blocks", "{" LLAMA ", \"quantization_config\": {\"quant_method\": \"fp8\"}}",
     HONE_BAD_MODEL, 0, "weight_block_size"},
    {"blocks of nothing",
     "{" LLAMA ", \"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": "
     "[0, 128]}}",
     HONE_BAD_MODEL, 0, "weight_block_size"},
    {"an unknown quantisation", "{" LLAMA ", \"quantization_config\": {\"quant_method\": \"awq\"}}",
     HONE_BAD_MODEL, 0, "awq"},
    {"an unknown scale format",
     "{" LLAMA ", \"quantization_config\": {" FP8 ", \"scale_fmt\": \"e5m0\"}}", HONE_BAD_MODEL, 0,
     "e5m0"},
    {"an unknown expert dtype",
     "{" LLAMA ", \"quantization_config\": {" FP8 ", \"expert_dtype\": \"int3\"}}", HONE_BAD_MODEL,
     0, "int3"},
    {"not JSON", "{\n\"hidden_size\": 7168,\n,}", HONE_BAD_TEXT, 3, NULL},
    {"a duplicate key", "{\n\"a\": 1,\n\"a\": 2}", HONE_BAD_TEXT, 3, NULL},
    {"not an object", "[1, 2]", HONE_BAD_MODEL, 0, "object"},
    {"nothing", "", HONE_BAD_TEXT, 1, NULL},
};

START_TEST(a_config_is_read_or_refused_by_name)
{
    llm l = {.name = "untouched"};
    hone_error error = {0};
    hone_status status =
        llm_import_text("x.json", texts[_i].text, strlen(texts[_i].text), &l, &error);

    claim_check(&texts[_i], status, &error);
    ck_assert_str_eq(l.name, status == HONE_OK ? "" : "untouched");
}
END_TEST

/* The traps of shapes.md 1: what a key means in one family and not in another. */
static llm import(const char *text)
{
    llm l;
    hone_error error = {0};

    ck_assert_msg(llm_import_text("x", text, strlen(text), &l, &error) == HONE_OK, "%s",
                  error.message);
    return l;
}

START_TEST(defaults_follow_the_family)
{
    llm l = import("{" LLAMA "}");

    ck_assert_int_eq(l.head_dim, 128); /* hidden / heads */
    ck_assert_int_eq(l.kv_heads, 4);
    ck_assert_int_eq(l.dense_layers, 2);
    ck_assert_int_eq(l.dense_inter, 1024);
    l = import("{" QWEN_MOE ", \"num_key_value_heads\": 2}");
    ck_assert_int_eq(l.dense_inter, 0); /* intermediate_size is unused */
    ck_assert_int_eq(l.moe_inter, 256);
    ck_assert_int_eq(l.kv_heads, 2);
}
END_TEST

START_TEST(experts_are_stored_like_the_rest_unless_said)
{
    llm l = import("{" QWEN_MOE ", \"quantization_config\": {" FP8 "}}");

    ck_assert_int_eq(l.routed.dtype, HONE_DTYPE_E4M3);
    ck_assert(!l.weights.pow2);
    l = import("{" QWEN_MOE ", \"expert_dtype\": \"fp4\", \"quantization_config\": {" FP8
               ", \"scale_fmt\": \"ue8m0\"}}");
    ck_assert_int_eq(l.routed.dtype, HONE_DTYPE_E2M1);
    ck_assert_int_eq(l.routed.block_k, 32);
    ck_assert(l.weights.pow2);
    l = import("{" QWEN_MOE ", \"quantization_config\": {" FP8 ", \"expert_dtype\": \"fp4\"}}");
    ck_assert_int_eq(l.routed.dtype, HONE_DTYPE_E2M1);
    l = import("{" QWEN_MOE ", \"quantization_config\": {\"quant_method\": \"mxfp4\"}}");
    ck_assert_int_eq(l.routed.dtype, HONE_DTYPE_E2M1);
    ck_assert_int_eq(l.weights.dtype, HONE_DTYPE_BF16);
}
END_TEST

START_TEST(a_long_text_is_refused)
{
    size_t len = (1 << 20) + 1;
    char *text = malloc(len);
    llm l;

    memset(text, ' ', len);
    ck_assert_int_eq(llm_import_text("x", text, len, &l, NULL), HONE_LIMIT);
    free(text);
}
END_TEST

START_TEST(only_a_regular_file_is_read)
{
    char folder[FOLDER_BYTES], path[1024];
    llm *l = NULL;
    hone_error error = {0};

    folder_make(folder);
    snprintf(path, sizeof path, "%s/config.json", folder);
    ck_assert_int_eq(llm_open(path, &l, &error), HONE_IO);
    ck_assert_str_eq(error.source, path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(llm_open(path, &l, NULL), HONE_IO);
    unlink(path);
    file_write_text(path, "{" LLAMA "}");
    ck_assert_int_eq(llm_open(path, &l, NULL), HONE_OK);
    ck_assert_str_eq(llm_name(l), strrchr(folder, '/') + 1); /* after its folder */
    llm_close(l);
    folder_remove(folder);
}
END_TEST

static const claim descriptions[] = {
    {"a plain description",
     "schema: 1\nhidden: 512\nlayers: 2\nvocab: 100\n"
     "attention: {kind: gqa, heads: 4, kv_heads: 4, head_dim: 128}\ndense: {layers: 2, inter: 9}\n",
     HONE_OK, 0, NULL},
    {"an unknown attention",
     "schema: 1\nhidden: 512\nlayers: 2\nvocab: 100\nattention: {kind: mamba, heads: 4}\n",
     HONE_BAD_MODEL, 5, "mamba"},
    {"attention without what its kind needs",
     "schema: 1\nhidden: 512\nlayers: 2\nvocab: 100\nattention: {kind: mla, heads: 4}\n",
     HONE_BAD_MODEL, 0, "q_lora"},
    {"dense layers without a size",
     "schema: 1\nhidden: 512\nlayers: 2\nvocab: 100\n"
     "attention: {kind: gqa, heads: 4, kv_heads: 4, head_dim: 128}\n",
     HONE_BAD_MODEL, 0, "inter"},
    {"scales without a block",
     "schema: 1\nhidden: 512\nlayers: 2\nvocab: 100\nweights: {dtype: e4m3, scale: f32}\n"
     "attention: {kind: gqa, heads: 4, kv_heads: 4, head_dim: 128}\ndense: {layers: 2, inter: 9}\n",
     HONE_BAD_MODEL, 0, "weights"},
    {"a layer too many",
     "schema: 1\nhidden: 512\nlayers: 2\nvocab: 100\nmoe: {experts: 4, topk: 1, inter: 8}\n"
     "attention: {kind: gqa, heads: 4, kv_heads: 4, head_dim: 128}\ndense: {layers: 3, inter: 9}\n",
     HONE_BAD_MODEL, 0, "layers"},
    {"a size out of range",
     "schema: 1\nhidden: 512\nlayers: 2\nvocab: -1\nattention: {kind: gqa}\n", HONE_BAD_MODEL, 4,
     "vocab"},
};

START_TEST(a_description_is_read_or_refused_with_its_line)
{
    llm l;
    hone_error error = {0};
    const char *text = descriptions[_i].text;
    hone_status status = llm_parse("llm/x.yaml", text, strlen(text), &l, &error);

    claim_check(&descriptions[_i], status, &error);
}
END_TEST

/* What was read, however damaged, can be derived from; what was not says why. */
static void check_survives(hone_status status, const llm *l, const hone_error *error)
{
    static const int64_t m[] = {1, 4096};
    llm_problem *problems = NULL;
    shape *shapes = NULL;
    size_t len = 0;
    double total = 0;

    if (status != HONE_OK) {
        ck_assert_str_ne(error->message, "");
        ck_assert(status == HONE_BAD_TEXT || status == HONE_BAD_MODEL || status == HONE_LIMIT);
        return;
    }
    for (int tp = 1; tp <= 64; tp *= 4) {
        ck_assert_int_eq(llm_shapes(l, tp, 2 * tp, &shapes, &len, NULL), HONE_OK);
        free(shapes);
        problems = NULL;
        if (llm_problems(l, tp, 2 * tp, m, 2, NULL, &problems, &len, NULL) == HONE_OK) {
            free(problems);
        }
    }
    ck_assert_int_eq(llm_parameters(l, &total, NULL), HONE_OK);
    ck_assert(total > 0);
}

START_TEST(a_damaged_description_is_read_or_refused)
{
    const embedded_file *file = models_file("llm", models_llm_names[_i]);
    char text[4096];

    ck_assert_uint_lt(embedded_len(file), sizeof text);
    for (uint64_t seed = 0; seed < 400; seed++) {
        size_t len = claim_mutate(file->bytes, embedded_len(file), seed, text);
        hone_error error = {0};
        llm l;
        hone_status status = llm_parse("x", text, len, &l, &error);

        check_survives(status, &l, &error);
    }
}
END_TEST

START_TEST(a_damaged_config_is_read_or_refused)
{
    static const char *const configs[] = {"{" LLAMA "}",
                                          "{" QWEN_MOE ", \"quantization_config\": {" FP8 "}}"};
    char text[4096];

    for (uint64_t seed = 0; seed < 4000; seed++) {
        const char *config = configs[seed % 2];
        size_t len = claim_mutate(config, strlen(config), seed, text);
        hone_error error = {0};
        llm l;
        hone_status status = llm_import_text("x", text, len, &l, &error);

        check_survives(status, &l, &error);
    }
}
END_TEST

START_TEST(an_unknown_name_lists_the_known_ones)
{
    llm *l = NULL;
    hone_error error = {0};

    ck_assert_int_eq(llm_open("deepseek-v5", &l, &error), HONE_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(error.message, "deepseek-v4.1-flash"));
    ck_assert_ptr_null(l);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("import");

    tcase_add_loop_test(tests, an_import_equals_our_description, 0, sizeof twins / sizeof twins[0]);
    tcase_add_loop_test(tests, a_config_is_read_or_refused_by_name, 0,
                        sizeof texts / sizeof texts[0]);
    tcase_add_test(tests, defaults_follow_the_family);
    tcase_add_test(tests, experts_are_stored_like_the_rest_unless_said);
    tcase_add_test(tests, a_long_text_is_refused);
    tcase_add_test(tests, only_a_regular_file_is_read);
    tcase_add_loop_test(tests, a_description_is_read_or_refused_with_its_line, 0,
                        sizeof descriptions / sizeof descriptions[0]);
    tcase_add_loop_test(tests, a_damaged_description_is_read_or_refused, 0,
                        (int)models_names_len(models_llm_names));
    tcase_add_test(tests, a_damaged_config_is_read_or_refused);
    tcase_add_test(tests, an_unknown_name_lists_the_known_ones);
    return suite_run("models/import", tests);
}
