/* weights.c - the rules of shapes.md 2.1: from an architecture to its matrices. */
#include "models/weights.h"

#include "core/problem.h"

#include <assert.h>

typedef struct weight_list {
    const llm *l;
    weight *at;
    size_t len;
} weight_list;

/* Matrices that no layer launches are left out. */
static void put(weight_list *list, weight w)
{
    if (w.layers == 0) {
        return;
    }
    assert(list->len < WEIGHTS_MAX);
    w.batch = w.batch == 0 ? 1 : w.batch;
    list->at[list->len++] = w;
}

static void put_indexer(weight_list *list)
{
    const llm *l = list->l;
    int64_t layers = l->index_layers;

    put(list, (weight){.use = "indexer.wq_b",
                       .n = l->index_heads * l->index_dim,
                       .k = l->q_lora,
                       .layers = layers});
    put(list, (weight){.use = "indexer.weights_proj",
                       .store = WEIGHT_BF16,
                       .n = l->index_heads,
                       .k = l->hidden,
                       .layers = layers});
}

/* A cache whose rows no record of ours describes has no shape: nothing could quantise into it. */
static void put_kv(weight_list *list, const char *use, hone_record record, int64_t k,
                   int64_t layers)
{
    record_layout layout;

    if (record_layout_of(&record, SHAPES_PAGE_TOKENS, &layout, NULL) != HONE_OK ||
        layout.input_dims != k) {
        return;
    }
    put(list, (weight){.use = use,
                       .split = WEIGHT_KV,
                       .n = 1,
                       .k = k,
                       .layers = layers,
                       .alias = true,
                       .record = record});
}

/* The indexer's keys are rounded to power-of-two scales by every reader that we know. */
static void put_index_cache(weight_list *list, int64_t layers)
{
    hone_record record = {HONE_KV_INDEX_FP8_132, HONE_PAGE_SPLIT, HONE_RULE_POW2_AMAX, 1};

    put_kv(list, "indexer.k_cache", record, list->l->index_dim, layers);
}

static void put_mla(weight_list *list)
{
    const llm *l = list->l;
    int64_t q = l->nope_dim + l->rope_dim, kv = l->nope_dim + l->v_dim, n = l->layers;

    put(list, (weight){.use = "attn.qkv_a",
                       .n = l->q_lora + l->kv_lora + l->rope_dim,
                       .k = l->hidden,
                       .parts = {l->q_lora, l->kv_lora + l->rope_dim},
                       .layers = n});
    put(list, (weight){.use = "attn.q_b",
                       .split = WEIGHT_COL,
                       .n = l->heads * q,
                       .k = l->q_lora,
                       .layers = n});
    put(list, (weight){.use = "attn.kv_b",
                       .split = WEIGHT_COL,
                       .n = l->heads * kv,
                       .k = l->kv_lora,
                       .layers = n});
    /* Decode absorbs kv_b into one small matrix for each head and side. */
    put(list, (weight){.use = "attn.w_kc",
                       .split = WEIGHT_GRP,
                       .store = WEIGHT_BF16,
                       .n = l->kv_lora,
                       .k = l->nope_dim,
                       .batch = l->heads,
                       .layers = n,
                       .alias = true});
    put(list, (weight){.use = "attn.w_vc",
                       .split = WEIGHT_GRP,
                       .store = WEIGHT_BF16,
                       .n = l->v_dim,
                       .k = l->kv_lora,
                       .batch = l->heads,
                       .layers = n,
                       .alias = true});
    put(list, (weight){.use = "attn.o",
                       .split = WEIGHT_ROW,
                       .n = l->hidden,
                       .k = l->heads * l->v_dim,
                       .layers = n});
    if (l->index_heads == 0) {
        return;
    }
    put_indexer(list);
    put(list,
        (weight){
            .use = "indexer.wk", .n = l->index_dim, .k = l->hidden, .layers = l->index_layers});
    put_index_cache(list, l->index_layers);
    /* The scale rule that is exact on every reader of this record (kernels.md 4.3). */
    put_kv(list, "attn.kv_cache",
           (hone_record){HONE_KV_MLA_FP8_656, HONE_PAGE_INTERLEAVED, HONE_RULE_POW2_SCALE, 1},
           l->kv_lora + l->rope_dim, n);
}

/* What V4 and V4.1 share: queries and one kv latent, the grouped output, hyper-connections. */
static void put_latent(weight_list *list)
{
    const llm *l = list->l;
    int64_t d = l->head_dim, n = l->layers;

    put(list, (weight){.use = "attn.qkv_a",
                       .n = l->q_lora + d,
                       .k = l->hidden,
                       .parts = {l->q_lora, d},
                       .layers = n});
    put(list, (weight){.use = "attn.q_b",
                       .split = WEIGHT_COL,
                       .n = l->heads * d,
                       .k = l->q_lora,
                       .layers = n});
    put(list, (weight){.use = "attn.wo_a",
                       .split = WEIGHT_GRP,
                       .n = l->o_lora,
                       .k = l->heads * d / l->o_groups,
                       .batch = l->o_groups,
                       .layers = n});
    put(list, (weight){.use = "attn.wo_b",
                       .split = WEIGHT_ROW,
                       .n = l->hidden,
                       .k = l->o_groups * l->o_lora,
                       .layers = n});
    put(list, (weight){.use = "hyper.premix",
                       .store = WEIGHT_F32,
                       .n = l->hyper_streams * (l->hyper_streams + 2),
                       .k = l->hyper_streams * l->hidden,
                       .layers = 2 * n});
    put_indexer(list);
}

static void put_compressed(weight_list *list)
{
    const llm *l = list->l;

    put_latent(list);
    /* kv and gate, each overlapping by two at ratio 4 (shapes.md 2.1: coff). */
    put(list, (weight){.use = "compressor.ratio4",
                       .store = WEIGHT_BF16,
                       .n = 4 * l->head_dim,
                       .k = l->hidden,
                       .layers = l->ratio4_layers});
    put(list, (weight){.use = "compressor.ratio128",
                       .store = WEIGHT_BF16,
                       .n = 2 * l->head_dim,
                       .k = l->hidden,
                       .layers = l->ratio128_layers});
    put(list, (weight){.use = "indexer.compressor",
                       .store = WEIGHT_BF16,
                       .n = 4 * l->index_dim,
                       .k = l->hidden,
                       .layers = l->index_layers});
    put_index_cache(list, l->index_layers);
    /* A window in every layer, and a compressed cache where there is a compressor. */
    put_kv(list, "attn.kv_cache",
           (hone_record){HONE_KV_MLA_FP8_584, HONE_PAGE_SPLIT, HONE_RULE_POW2_AMAX, 1}, l->head_dim,
           l->layers + l->ratio4_layers + l->ratio128_layers);
}

static void put_sourced(weight_list *list)
{
    const llm *l = list->l;
    int64_t plain = l->kv_sources - l->pooled_sources, caches = l->layers + l->kv_sources;

    put_latent(list);
    put(list, (weight){.use = "compressor.pooled",
                       .store = WEIGHT_BF16,
                       .n = 2 * l->head_dim,
                       .k = l->hidden,
                       .layers = l->pooled_sources});
    put(list, (weight){.use = "compressor.plain",
                       .store = WEIGHT_BF16,
                       .n = l->head_dim,
                       .k = l->hidden,
                       .layers = plain});
    put(list, (weight){.use = "indexer.wk",
                       .store = WEIGHT_BF16,
                       .n = l->index_dim,
                       .k = l->head_dim,
                       .layers = l->kv_sources});
    /* Five outputs of the hidden size from the n-grams' embeddings. */
    put(list, (weight){.use = "engram.wkv",
                       .n = 5 * l->hidden,
                       .k = l->engram_width,
                       .layers = l->engram_layers});
    put_index_cache(list, l->kv_sources);
    /* A window in every layer and a compressed cache in every source. Two layouts of the same size
     * are in use, and nothing but the record tells them apart (kernels.md 4.5). */
    put_kv(list, "attn.kv_cache",
           (hone_record){HONE_KV_MLA_FP8_528, HONE_PAGE_SPLIT, HONE_RULE_POW2_AMAX, 1}, l->head_dim,
           caches);
    put_kv(list, "attn.kv_cache_rows",
           (hone_record){HONE_KV_MLA_FP8_528, HONE_PAGE_INTERLEAVED, HONE_RULE_POW2_AMAX, 1},
           l->head_dim, caches);
    /* What takes half the room, for compressed caches alone (kernels.md 4.5), and for keys. */
    put_kv(list, "attn.kv_cache_fp4",
           (hone_record){HONE_KV_MLA_FP4_288, HONE_PAGE_SPLIT, HONE_RULE_E4M3_NEAR, 1}, l->head_dim,
           l->kv_sources);
    put_kv(list, "indexer.k_cache_fp4",
           (hone_record){HONE_KV_INDEX_FP4_68, HONE_PAGE_SPLIT, HONE_RULE_POW2_AMAX, 1},
           l->index_dim, l->kv_sources);
}

/* `gates` is 2 where each query head carries an output gate. */
static void put_qkv(weight_list *list, int64_t gates, int64_t layers)
{
    const llm *l = list->l;
    int64_t q = gates * l->heads * l->head_dim, kv = l->kv_heads * l->head_dim;

    put(list, (weight){.use = "attn.qkv",
                       .split = WEIGHT_QKV,
                       .n = q + 2 * kv,
                       .k = l->hidden,
                       .parts = {q, kv, kv},
                       .layers = layers});
    put(list, (weight){.use = "attn.o",
                       .split = WEIGHT_ROW,
                       .n = l->hidden,
                       .k = l->heads * l->head_dim,
                       .layers = layers});
}

static void put_gqa(weight_list *list)
{
    put_qkv(list, 1, list->l->layers);
}

static void put_hybrid(weight_list *list)
{
    const llm *l = list->l;
    int64_t full = l->layers / l->full_every, linear = l->layers - full;
    int64_t k = l->linear_k_heads * l->linear_k_dim, v = l->linear_v_heads * l->linear_v_dim;

    put(list, (weight){.use = "linear.qkvz",
                       .split = WEIGHT_COL,
                       .n = 2 * k + 2 * v,
                       .k = l->hidden,
                       .layers = linear});
    put(list, (weight){.use = "linear.ba",
                       .split = WEIGHT_COL,
                       .store = WEIGHT_BF16,
                       .n = 2 * l->linear_v_heads,
                       .k = l->hidden,
                       .layers = linear});
    put(list,
        (weight){
            .use = "linear.out", .split = WEIGHT_ROW, .n = l->hidden, .k = v, .layers = linear});
    put_qkv(list, 2, full);
}

static void put_mlp(weight_list *list, const char *up, const char *down, int64_t inter,
                    int64_t layers)
{
    int64_t hidden = list->l->hidden;

    put(list, (weight){.use = up,
                       .split = WEIGHT_COL,
                       .n = 2 * inter,
                       .k = hidden,
                       .parts = {inter, inter},
                       .layers = layers});
    put(list,
        (weight){.use = down, .split = WEIGHT_ROW, .n = hidden, .k = inter, .layers = layers});
}

static void put_feed_forward(weight_list *list)
{
    const llm *l = list->l;
    int64_t moe = llm_moe_layers(l);

    put_mlp(list, "mlp.gate_up", "mlp.down", l->dense_inter, l->layers - moe);
    put(list, (weight){.use = "moe.router",
                       .store = WEIGHT_BF16,
                       .n = l->experts,
                       .k = l->hidden,
                       .layers = moe});
    put_mlp(list, "shared.gate_up", "shared.down", l->shared_inter, l->shared_inter > 0 ? moe : 0);
    put(list, (weight){.use = "experts.w13",
                       .split = WEIGHT_EP,
                       .store = WEIGHT_ROUTED,
                       .n = 2 * l->moe_inter,
                       .k = l->hidden,
                       .parts = {l->moe_inter, l->moe_inter},
                       .layers = moe});
    put(list, (weight){.use = "experts.w2",
                       .split = WEIGHT_EP,
                       .store = WEIGHT_ROUTED,
                       .n = l->hidden,
                       .k = l->moe_inter,
                       .layers = moe,
                       .row_inter = true});
    put(list, (weight){.use = "lm_head",
                       .split = WEIGHT_COL,
                       .store = WEIGHT_BF16,
                       .n = l->vocab,
                       .k = l->hidden,
                       .layers = 1,
                       .padded = true,
                       .alias = l->tied});
}

size_t weights_list(const llm *l, weight out[WEIGHTS_MAX])
{
    static void (*const attention[])(weight_list *) = {
        [LLM_GQA] = put_gqa,         [LLM_MLA] = put_mla,       [LLM_COMPRESSED] = put_compressed,
        [LLM_SOURCED] = put_sourced, [LLM_HYBRID] = put_hybrid,
    };
    weight_list list = {l, out, 0};

    attention[l->attention](&list);
    put_feed_forward(&list);
    return list.len;
}

const char *weights_split_name(weight_split split)
{
    static const char *const names[] = {"rep", "col", "row", "qkv", "grp", "ep", "kv"};

    return names[split];
}
