/* import_family.c - the families of config.json: what each one's keys mean (shapes.md 1). */
#include "models/import.h"

#include "core/checked.h"

#include <stddef.h>
#include <string.h>

static hone_status read_gqa(import_config *c)
{
    hone_status status = HONE_OK;
    llm *l = c->l;

    l->kv_heads = l->heads;
    l->head_dim = l->hidden / l->heads;
    TRY(import_take(c, "num_key_value_heads", &l->kv_heads));
    TRY(import_take(c, "head_dim", &l->head_dim));
done:
    return status;
}

/* Every second layer has experts and one shared expert, which no key says. */
static hone_status read_llama4(import_config *c)
{
    hone_status status = HONE_OK;
    llm *l = c->l;
    int64_t step = 0;

    TRY(read_gqa(c));
    TRY(import_need(c, "interleave_moe_layer_step", &step));
    if (step < 1) {
        return IMPORT_FAIL(c, "'interleave_moe_layer_step' must be at least 1");
    }
    l->dense_layers = l->layers - l->layers / step;
    l->shared_inter = l->moe_inter;
    TRY(import_need(c, "intermediate_size_mlp", &l->dense_inter));
done:
    return status;
}

static hone_status read_hybrid(import_config *c)
{
    static const import_key keys[] = {
        {"full_attention_interval", offsetof(llm, full_every)},
        {"linear_num_key_heads", offsetof(llm, linear_k_heads)},
        {"linear_num_value_heads", offsetof(llm, linear_v_heads)},
        {"linear_key_head_dim", offsetof(llm, linear_k_dim)},
        {"linear_value_head_dim", offsetof(llm, linear_v_dim)},
    };
    hone_status status = HONE_OK;

    TRY(read_gqa(c));
    TRY(import_need_all(c, keys, ARRAY_LEN(keys)));
done:
    return status;
}

#define INDEXER_KEYS                                                                               \
    {"index_n_heads", offsetof(llm, index_heads)}, {"index_head_dim", offsetof(llm, index_dim)},   \
    {                                                                                              \
        "index_topk", offsetof(llm, index_topk)                                                    \
    }

/* head_dim means the rope or the nope part in some of these configs, and num_key_value_heads
 * nothing. */
static hone_status read_mla(import_config *c)
{
    static const import_key keys[] = {
        {"q_lora_rank", offsetof(llm, q_lora)},
        {"kv_lora_rank", offsetof(llm, kv_lora)},
        {"qk_nope_head_dim", offsetof(llm, nope_dim)},
        {"qk_rope_head_dim", offsetof(llm, rope_dim)},
        {"v_head_dim", offsetof(llm, v_dim)},
    };
    static const import_key indexer[] = {INDEXER_KEYS};
    hone_status status = HONE_OK;
    llm *l = c->l;
    const json_t *types = NULL;

    TRY(import_need_all(c, keys, ARRAY_LEN(keys)));
    if (import_find(c, "index_n_heads") == NULL) {
        return HONE_OK;
    }
    TRY(import_need_all(c, indexer, ARRAY_LEN(indexer)));
    l->index_layers = l->layers;
    if (import_find(c, "indexer_types") == NULL) {
        return HONE_OK;
    }
    TRY(import_need_array(c, "indexer_types", (size_t)l->layers, &types));
    l->index_layers = 0;
    for (int64_t i = 0; i < l->layers; i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));

        l->index_layers += type != NULL && strcmp(type, "full") == 0;
    }
done:
    return status;
}

/* What V4 and V4.1 share. kv_heads stays 0: there is one latent. */
static hone_status read_latent(import_config *c)
{
    static const import_key keys[] = {
        {"head_dim", offsetof(llm, head_dim)},     {"q_lora_rank", offsetof(llm, q_lora)},
        {"o_lora_rank", offsetof(llm, o_lora)},    {"o_groups", offsetof(llm, o_groups)},
        {"hc_mult", offsetof(llm, hyper_streams)}, INDEXER_KEYS,
    };

    return import_need_all(c, keys, ARRAY_LEN(keys));
}

/* The list goes on past the layers with the draft stages' entries, which are left out. */
static hone_status read_compressed(import_config *c)
{
    hone_status status = HONE_OK;
    llm *l = c->l;
    const json_t *ratios = NULL;

    TRY(read_latent(c));
    TRY(import_need_array(c, "compress_ratios", (size_t)l->layers, &ratios));
    for (int64_t i = 0; i < l->layers; i++) {
        int64_t ratio = 0;

        TRY(import_number(c, json_array_get(ratios, (size_t)i), "compress_ratios", &ratio));
        if (ratio != 0 && ratio != 4 && ratio != 128) {
            return IMPORT_FAIL(c, "'compress_ratios' has %lld: 0, 4 and 128 are known",
                               (long long)ratio);
        }
        l->ratio4_layers += ratio == 4;
        l->ratio128_layers += ratio == 128;
    }
    l->index_layers = l->ratio4_layers;
done:
    return status;
}

static hone_status read_engram(import_config *c)
{
    hone_status status = HONE_OK;
    const json_t *layers = NULL;
    int64_t ngram = 0, heads = 0, dim = 0, width = 0;

    if (import_find(c, "engram_layer_ids") == NULL) {
        return HONE_OK;
    }
    TRY(import_need_array(c, "engram_layer_ids", 1, &layers));
    TRY(import_need(c, "engram_max_ngram_size", &ngram));
    TRY(import_need(c, "engram_n_heads", &heads));
    TRY(import_need(c, "engram_head_dim", &dim));
    if (ngram < 2 || !checked_mul_i64(ngram - 1, heads, &width) ||
        !checked_mul_i64(width, dim, &width) || width > IMPORT_MAX_NUMBER) {
        return IMPORT_FAIL(c, "engram: (ngrams - 1) x heads x dim must be from 1 to %d",
                           IMPORT_MAX_NUMBER);
    }
    c->l->engram_layers = (int64_t)json_array_size(layers);
    c->l->engram_width = width;
done:
    return status;
}

static hone_status read_sourced(import_config *c)
{
    hone_status status = HONE_OK;
    llm *l = c->l;
    const json_t *ratios = NULL, *sources = NULL, *index = NULL;

    TRY(read_latent(c));
    TRY(import_need_array(c, "compress_ratios", (size_t)l->layers, &ratios));
    TRY(import_need_array(c, "kv_source_layer_ids", 1, &sources));
    TRY(import_need_array(c, "index_source_layer_ids", 1, &index));
    for (size_t i = 0; i < json_array_size(sources); i++) {
        int64_t layer = 0, ratio = 0;

        TRY(import_number(c, json_array_get(sources, i), "kv_source_layer_ids", &layer));
        if (layer >= l->layers) {
            return IMPORT_FAIL(c, "'kv_source_layer_ids' has %lld: there are %lld layers",
                               (long long)layer, (long long)l->layers);
        }
        TRY(import_number(c, json_array_get(ratios, (size_t)layer), "compress_ratios", &ratio));
        l->pooled_sources += ratio > 1;
    }
    l->kv_sources = (int64_t)json_array_size(sources);
    l->index_layers = (int64_t)json_array_size(index);
    TRY(read_engram(c));
done:
    return status;
}

static const import_family families[] = {
    {"deepseek_v3", LLM_MLA, HONE_DTYPE_F32, read_mla},
    {"deepseek_v32", LLM_MLA, HONE_DTYPE_F32, read_mla},
    {"kimi_k2", LLM_MLA, HONE_DTYPE_F32, read_mla},
    {"glm_moe_dsa", LLM_MLA, HONE_DTYPE_F32, read_mla},
    {"deepseek_v4", LLM_COMPRESSED, HONE_DTYPE_UE8M0, read_compressed},
    {"deepseek_v41", LLM_SOURCED, HONE_DTYPE_UE8M0, read_sourced},
    {"deepseek_v41_text", LLM_SOURCED, HONE_DTYPE_UE8M0, read_sourced},
    {"glm4_moe", LLM_GQA, HONE_DTYPE_F32, read_gqa},
    {"qwen3_moe", LLM_GQA, HONE_DTYPE_F32, read_gqa},
    {"qwen3", LLM_GQA, HONE_DTYPE_F32, read_gqa},
    {"qwen3_next", LLM_HYBRID, HONE_DTYPE_F32, read_hybrid},
    {"minimax_m2", LLM_GQA, HONE_DTYPE_F32, read_gqa},
    {"gpt_oss", LLM_GQA, HONE_DTYPE_F32, read_gqa},
    {"llama", LLM_GQA, HONE_DTYPE_F32, read_gqa},
    {"llama4_text", LLM_GQA, HONE_DTYPE_F32, read_llama4},
    {"mixtral", LLM_GQA, HONE_DTYPE_F32, read_gqa},
};

hone_status import_find_family(import_config *c, const import_family **out)
{
    char known[320] = "";
    size_t used = 0;

    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        size_t len = strlen(families[i].model_type);

        if (strcmp(families[i].model_type, c->family) == 0) {
            *out = &families[i];
            return HONE_OK;
        }
        if (used + len + 2 <= sizeof known) {
            known[used++] = ' ';
            memcpy(known + used, families[i].model_type, len + 1);
            used += len;
        }
    }
    return IMPORT_FAIL(c, "model_type '%.40s' is unknown; known:%s", c->family, known);
}
