/* llm.c - architectures: opens them by name or path, reads their YAML, and refuses impossible ones.
 */
#include "models/weights.h"

#include "models/fields.h"
#include "models/names.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LLM_SCHEMA = 1 };

static const char *const attention_names[] = {"gqa",     "mla",    "compressed",
                                              "sourced", "hybrid", NULL};
static const char *const dtype_names[] = {
#define X(text, NAME, value, bits) [value] = #text,
    HONE_DTYPE_MAP(X)
#undef X
        NULL,
};

/* Bounds keep every product of two sizes far below 2^63. */
#define LLM_DIM   1048576
#define LLM_COUNT 65536
#define LLM_SIZE(section, key, member, most, optional)                                             \
    {                                                                                              \
        section, key, FIELD_INT64, offsetof(llm, member), 0, most, 1, NULL, optional               \
    }
#define LLM_NAME(section, key, member, names, optional)                                            \
    {                                                                                              \
        section, key, FIELD_NAME, offsetof(llm, member), 0, 0, 1, names, optional                  \
    }
#define LLM_BLOCK(section, key, member)                                                            \
    {                                                                                              \
        section, key, FIELD_INT32, offsetof(llm, member), 1, 4096, 1, NULL, true                   \
    }
#define LLM_BOOL(section, key, member)                                                             \
    {                                                                                              \
        section, key, FIELD_BOOL, offsetof(llm, member), 0, 0, 1, NULL, true                       \
    }

/* clang-format off */
static const field fields[] = {
    LLM_SIZE(NULL, "hidden", hidden, LLM_DIM, false),
    LLM_SIZE(NULL, "layers", layers, LLM_COUNT, false),
    LLM_SIZE(NULL, "vocab", vocab, 16 * LLM_DIM, false),
    LLM_BOOL(NULL, "tied", tied),
    LLM_SIZE(NULL, "hyper_streams", hyper_streams, 64, true),
    LLM_NAME("attention", "kind", attention, attention_names, false),
    LLM_SIZE("attention", "heads", heads, LLM_COUNT, false),
    LLM_SIZE("attention", "kv_heads", kv_heads, LLM_COUNT, true),
    LLM_SIZE("attention", "head_dim", head_dim, LLM_COUNT, true),
    LLM_SIZE("attention", "q_lora", q_lora, LLM_DIM, true),
    LLM_SIZE("attention", "kv_lora", kv_lora, LLM_DIM, true),
    LLM_SIZE("attention", "nope_dim", nope_dim, LLM_COUNT, true),
    LLM_SIZE("attention", "rope_dim", rope_dim, LLM_COUNT, true),
    LLM_SIZE("attention", "v_dim", v_dim, LLM_COUNT, true),
    LLM_SIZE("attention", "o_lora", o_lora, LLM_DIM, true),
    LLM_SIZE("attention", "o_groups", o_groups, LLM_COUNT, true),
    LLM_SIZE("linear", "full_every", full_every, LLM_COUNT, true),
    LLM_SIZE("linear", "k_heads", linear_k_heads, LLM_COUNT, true),
    LLM_SIZE("linear", "v_heads", linear_v_heads, LLM_COUNT, true),
    LLM_SIZE("linear", "k_dim", linear_k_dim, LLM_COUNT, true),
    LLM_SIZE("linear", "v_dim", linear_v_dim, LLM_COUNT, true),
    LLM_SIZE("indexer", "heads", index_heads, LLM_COUNT, true),
    LLM_SIZE("indexer", "dim", index_dim, LLM_COUNT, true),
    LLM_SIZE("indexer", "topk", index_topk, LLM_DIM, true),
    LLM_SIZE("indexer", "layers", index_layers, LLM_COUNT, true),
    LLM_SIZE("compressor", "ratio4_layers", ratio4_layers, LLM_COUNT, true),
    LLM_SIZE("compressor", "ratio128_layers", ratio128_layers, LLM_COUNT, true),
    LLM_SIZE("compressor", "sources", kv_sources, LLM_COUNT, true),
    LLM_SIZE("compressor", "pooled_sources", pooled_sources, LLM_COUNT, true),
    LLM_SIZE("engram", "layers", engram_layers, LLM_COUNT, true),
    LLM_SIZE("engram", "width", engram_width, LLM_DIM, true),
    LLM_SIZE("dense", "layers", dense_layers, LLM_COUNT, true),
    LLM_SIZE("dense", "inter", dense_inter, LLM_DIM, true),
    LLM_SIZE("moe", "experts", experts, LLM_COUNT, true),
    LLM_SIZE("moe", "topk", topk, LLM_COUNT, true),
    LLM_SIZE("moe", "inter", moe_inter, LLM_DIM, true),
    LLM_SIZE("moe", "shared_inter", shared_inter, LLM_DIM, true),
    LLM_NAME("weights", "dtype", weights.dtype, dtype_names, true),
    LLM_NAME("weights", "scale", weights.scale, dtype_names, true),
    LLM_BLOCK("weights", "block_n", weights.block_n),
    LLM_BLOCK("weights", "block_k", weights.block_k),
    LLM_BOOL("weights", "pow2", weights.pow2),
    LLM_NAME("routed", "dtype", routed.dtype, dtype_names, true),
    LLM_NAME("routed", "scale", routed.scale, dtype_names, true),
    LLM_BLOCK("routed", "block_n", routed.block_n),
    LLM_BLOCK("routed", "block_k", routed.block_k),
};
/* clang-format on */

static const char *const no_other_keys[] = {NULL};

const char *llm_attention_name(int32_t attention)
{
    return (uint32_t)attention < ARRAY_LEN(attention_names) - 1 ? attention_names[attention] : "?";
}

void llm_init(llm *l)
{
    memset(l, 0, sizeof *l);
    l->weights.dtype = HONE_DTYPE_BF16;
    l->routed.dtype = HONE_DTYPE_BF16;
}

/* Members that an attention kind cannot do without. */
static const struct {
    int32_t attention;
    const char *what;
    size_t offset;
} needs[] = {
    {LLM_GQA, "kv_heads", offsetof(llm, kv_heads)},
    {LLM_GQA, "head_dim", offsetof(llm, head_dim)},
    {LLM_MLA, "q_lora", offsetof(llm, q_lora)},
    {LLM_MLA, "kv_lora", offsetof(llm, kv_lora)},
    {LLM_MLA, "nope_dim", offsetof(llm, nope_dim)},
    {LLM_MLA, "rope_dim", offsetof(llm, rope_dim)},
    {LLM_MLA, "v_dim", offsetof(llm, v_dim)},
    {LLM_COMPRESSED, "head_dim", offsetof(llm, head_dim)},
    {LLM_COMPRESSED, "q_lora", offsetof(llm, q_lora)},
    {LLM_COMPRESSED, "o_lora", offsetof(llm, o_lora)},
    {LLM_COMPRESSED, "o_groups", offsetof(llm, o_groups)},
    {LLM_COMPRESSED, "index_heads", offsetof(llm, index_heads)},
    {LLM_COMPRESSED, "hyper_streams", offsetof(llm, hyper_streams)},
    {LLM_SOURCED, "head_dim", offsetof(llm, head_dim)},
    {LLM_SOURCED, "q_lora", offsetof(llm, q_lora)},
    {LLM_SOURCED, "o_lora", offsetof(llm, o_lora)},
    {LLM_SOURCED, "o_groups", offsetof(llm, o_groups)},
    {LLM_SOURCED, "index_heads", offsetof(llm, index_heads)},
    {LLM_SOURCED, "kv_sources", offsetof(llm, kv_sources)},
    {LLM_SOURCED, "hyper_streams", offsetof(llm, hyper_streams)},
    {LLM_HYBRID, "kv_heads", offsetof(llm, kv_heads)},
    {LLM_HYBRID, "head_dim", offsetof(llm, head_dim)},
    {LLM_HYBRID, "full_every", offsetof(llm, full_every)},
    {LLM_HYBRID, "linear_v_heads", offsetof(llm, linear_v_heads)},
};

static hone_status check_quant(const llm_quant *q, const char *what, const char *source,
                               hone_error *error)
{
    bool blocked = q->block_n > 0 && q->block_k > 0;

    if (blocked != (q->scale != HONE_DTYPE_NONE) || (q->block_n > 0) != (q->block_k > 0)) {
        return status_set(error, HONE_BAD_MODEL, source, 0,
                          "%s: a scale dtype and both block sizes come together", what);
    }
    if (blocked != (q->dtype == HONE_DTYPE_E4M3 || q->dtype == HONE_DTYPE_E2M1)) {
        return status_set(error, HONE_BAD_MODEL, source, 0,
                          "%s: e4m3 and e2m1 weights have scales, others have none", what);
    }
    return HONE_OK;
}

/* A size that was left out shows as a matrix without rows or columns. */
static hone_status check_weights(const llm *l, const char *source, hone_error *error)
{
    weight list[WEIGHTS_MAX];
    size_t len = weights_list(l, list);

    for (size_t i = 0; i < len; i++) {
        if (list[i].n < 1 || list[i].k < 1 || list[i].batch < 1) {
            return status_set(error, HONE_BAD_MODEL, source, 0,
                              "%s would be %lld x %lld: a size of it is missing", list[i].use,
                              (long long)list[i].n, (long long)list[i].k);
        }
    }
    return HONE_OK;
}

hone_status llm_check(const llm *l, const char *source, hone_error *error)
{
    hone_status status = HONE_OK;

    if (l->hidden < 1 || l->layers < 1 || l->vocab < 1 || l->heads < 1) {
        return status_set(error, HONE_BAD_MODEL, source, 0,
                          "hidden, layers, vocab and heads must be at least 1");
    }
    for (size_t i = 0; i < ARRAY_LEN(needs); i++) {
        if (needs[i].attention == l->attention &&
            *(const int64_t *)((const char *)l + needs[i].offset) < 1) {
            return status_set(error, HONE_BAD_MODEL, source, 0, "%s attention needs %s",
                              llm_attention_name(l->attention), needs[i].what);
        }
    }
    if (l->dense_layers > l->layers || l->index_layers > l->layers ||
        l->ratio4_layers + l->ratio128_layers > l->layers || l->kv_sources > l->layers ||
        l->pooled_sources > l->kv_sources) {
        return status_set(error, HONE_BAD_MODEL, source, 0,
                          "more layers of a kind than the model's %lld", (long long)l->layers);
    }
    if (l->experts > 0 && (l->moe_inter < 1 || l->topk < 1 || l->topk > l->experts)) {
        return status_set(error, HONE_BAD_MODEL, source, 0,
                          "experts need their inter size, and a topk from 1 to %lld",
                          (long long)l->experts);
    }
    if ((l->experts == 0 ? l->layers : l->dense_layers) > 0 && l->dense_inter < 1) {
        return status_set(error, HONE_BAD_MODEL, source, 0, "dense layers need their inter size");
    }
    if (l->o_groups > 0 && l->heads * l->head_dim % l->o_groups != 0) {
        return status_set(error, HONE_BAD_MODEL, source, 0,
                          "%lld heads do not divide into %lld output groups", (long long)l->heads,
                          (long long)l->o_groups);
    }
    TRY(check_quant(&l->weights, "weights", source, error));
    TRY(check_quant(&l->routed, "routed experts", source, error));
    TRY(check_weights(l, source, error));
done:
    return status;
}

hone_status llm_parse(const char *source, const char *text, size_t len, llm *out, hone_error *error)
{
    hone_status status = HONE_OK;
    document *d = NULL;
    llm l;

    llm_init(&l);
    TRY(document_parse(source, text, len, &d, error));
    TRY(fields_read(d, fields, ARRAY_LEN(fields), no_other_keys, LLM_SCHEMA, &l, error));
    TRY(llm_check(&l, source, error));
    *out = l;
done:
    document_free(d);
    return status;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* An imported model is called after its file, or after the folder of a file called config.json. */
static void name_imported(const char *path, llm *l)
{
    size_t end = strlen(path) - strlen(".json"), begin = 0;

    if (ends_with(path, "/config.json")) {
        end = strlen(path) - strlen("/config.json");
    }
    for (size_t i = 0; i < end; i++) {
        if (path[i] == '/') {
            begin = i + 1;
        }
    }
    size_t len = end - begin < sizeof l->name ? end - begin : sizeof l->name - 1;
    memcpy(l->name, path + begin, len);
    l->name[len] = '\0';
}

static hone_status load(const char *name_or_path, llm *l, hone_error *error)
{
    hone_status status = HONE_OK;

    if (ends_with(name_or_path, ".json")) {
        TRY(llm_import(name_or_path, l, error));
        name_imported(name_or_path, l);
        return HONE_OK;
    }
    const embedded_file *file = models_file("llm", name_or_path);
    if (file == NULL) {
        return models_unknown("model", name_or_path, models_llm_names, error);
    }
    TRY(llm_parse(file->name, file->bytes, embedded_len(file), l, error));
    snprintf(l->name, sizeof l->name, "%s", name_or_path);
done:
    return status;
}

hone_status llm_open(const char *name_or_path, llm **out, hone_error *error)
{
    hone_status status = HONE_OK;
    llm *l = malloc(sizeof *l);

    if (l == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "model %.60s", name_or_path);
    }
    TRY(load(name_or_path, l, error));
    *out = l;
    l = NULL;
done:
    llm_close(l);
    return status;
}

void llm_close(llm *l)
{
    free(l);
}

size_t llm_list(const char *const **names)
{
    *names = models_llm_names;
    return models_names_len(models_llm_names);
}

const char *llm_name(const llm *l)
{
    return l->name;
}
