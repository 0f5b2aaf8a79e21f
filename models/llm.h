/* llm.h - an LLM's architecture as numbers: what its YAML or an imported config.json is reduced to.
 *
 * Read-only for everyone but models/. Absent parts are 0. */
#ifndef HONE_MODELS_LLM_H
#define HONE_MODELS_LLM_H

#include "models/shapes.h"

#include <stdbool.h>

/* How attention is built, which decides the weights (shapes.md 2.1). */
typedef enum llm_attention {
    LLM_GQA, /* q, k, v heads: Llama, Qwen3, MiniMax-M2, gpt-oss, Mixtral, GLM-4.5 */
    LLM_MLA, /* latent q and kv, perhaps with an indexer: DeepSeek-V3, V3.2, Kimi-K2, GLM-5 */
    LLM_COMPRESSED, /* one kv latent a layer, compressed layer by layer: DeepSeek-V4 */
    LLM_SOURCED,    /* the same, compressed in a few source layers: DeepSeek-V4.1 */
    LLM_HYBRID,     /* linear attention, every n-th layer gated GQA: Qwen3-Next */
} llm_attention;

/* How a group of weights is stored. block_n and block_k are 0 when unquantised. */
typedef struct llm_quant {
    int32_t dtype, scale; /* hone_dtype */
    int32_t block_n, block_k;
    bool pow2; /* scales of activations are rounded up to powers of two */
} llm_quant;

struct llm {
    char name[64];
    int32_t attention; /* llm_attention */
    bool tied;         /* lm_head is the embedding */
    int64_t hidden, layers, vocab;
    int64_t heads, kv_heads, head_dim;
    int64_t q_lora, kv_lora, nope_dim, rope_dim, v_dim; /* MLA; q_lora in V4 too */
    int64_t o_lora, o_groups;                           /* V4: grouped output projection */
    int64_t full_every;                                 /* hybrid: one full layer in so many */
    int64_t linear_k_heads, linear_v_heads, linear_k_dim, linear_v_dim;
    int64_t index_heads, index_dim, index_topk, index_layers;
    int64_t ratio4_layers, ratio128_layers; /* V4: layers by compression ratio */
    int64_t kv_sources, pooled_sources;     /* V4.1: source layers, and those of ratio > 1 */
    int64_t hyper_streams;                  /* residual streams of hyper-connections */
    int64_t engram_layers, engram_width;    /* n-gram memory: layers, inputs of its projection */
    int64_t dense_layers, dense_inter;
    int64_t experts, topk, moe_inter, shared_inter;
    llm_quant weights, routed;
};

/* A zeroed architecture with unquantised bf16 weights. */
void llm_init(llm *l);
/* Check bounds and that the parts which the attention kind needs are there. HONE_BAD_MODEL. */
hone_status llm_check(const llm *l, const char *source, hone_error *error);
/* Read our YAML. `out` is written on success. HONE_BAD_TEXT, HONE_BAD_MODEL. */
hone_status llm_parse(const char *source, const char *text, size_t len, llm *out,
                      hone_error *error);
/* Read a Hugging Face config.json of at most 1 MiB. HONE_IO, HONE_LIMIT, HONE_BAD_TEXT,
 * HONE_BAD_MODEL. */
hone_status llm_import(const char *path, llm *out, hone_error *error);
hone_status llm_import_text(const char *source, const char *text, size_t len, llm *out,
                            hone_error *error);

static inline int64_t llm_moe_layers(const llm *l)
{
    return l->experts > 0 ? l->layers - l->dense_layers : 0;
}

const char *llm_attention_name(int32_t attention); /* static; "?" when unknown */

#endif
