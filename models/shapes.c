/* shapes.c - cuts a model's matrices for one rank, and says why a cut is not legal
 * (shapes.md 2.1, 2.3). */
#include "models/weights.h"

#include "core/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More ranks than any deployment has; keeps products small. */
enum { SHAPES_MAX_PARALLEL = 65536 };

typedef struct parallel {
    int64_t tp, ep, etp; /* etp: ranks that share one expert's inter size */
} parallel;

#define REFUSE(s, ...) snprintf((s)->refused, sizeof(s)->refused, __VA_ARGS__)

static llm_quant store_of(const llm *l, const weight *w)
{
    static const llm_quant bf16 = {.dtype = HONE_DTYPE_BF16}, f32 = {.dtype = HONE_DTYPE_F32};

    switch (w->store) {
    case WEIGHT_QUANT:
        return l->weights;
    case WEIGHT_ROUTED:
        return l->routed;
    case WEIGHT_BF16:
        return bf16;
    case WEIGHT_F32:
        break;
    }
    return f32;
}

/* A KV-cache row: what its record says, whatever the weights are. */
static llm_quant store_of_row(const hone_record *record)
{
    record_layout layout;

    if (record_layout_of(record, SHAPES_PAGE_TOKENS, &layout, NULL) != HONE_OK) {
        return (llm_quant){0}; /* cannot be: weights.c leaves out what has no layout */
    }
    return (llm_quant){
        .dtype = layout.element,
        .scale = layout.scale,
        .block_n = layout.tile > 0,
        .block_k = layout.tile,
    };
}

/* A rank's share of part i of n. Key and value heads are repeated when there are fewer than ranks.
 */
static int64_t part_share(const llm *l, const weight *w, size_t i, int64_t ranks)
{
    if (w->split == WEIGHT_QKV && i > 0 && l->kv_heads < ranks) {
        return l->head_dim;
    }
    return w->parts[i] / ranks;
}

static size_t parts_len(const weight *w)
{
    size_t len = 0;

    while (len < WEIGHT_PARTS && w->parts[len] > 0) {
        len++;
    }
    return len;
}

static void cut_heads(const llm *l, const weight *w, const parallel *p, shape *s)
{
    if (l->heads % p->tp != 0) {
        REFUSE(s, "%lld heads do not divide over tp %lld", (long long)l->heads, (long long)p->tp);
    } else if (l->kv_heads % p->tp != 0 && p->tp % l->kv_heads != 0) {
        REFUSE(s, "%lld kv heads neither divide over tp %lld nor repeat evenly",
               (long long)l->kv_heads, (long long)p->tp);
    }
    s->n = 0;
    for (size_t i = 0; i < WEIGHT_PARTS; i++) {
        s->n += part_share(l, w, i, p->tp);
    }
}

static void cut_experts(const llm *l, const weight *w, const parallel *p, shape *s)
{
    int64_t *inter = w->row_inter ? &s->k : &s->n;

    s->experts = l->experts / p->ep;
    if (l->experts % p->ep != 0) {
        REFUSE(s, "%lld experts do not divide over ep %lld", (long long)l->experts,
               (long long)p->ep);
    } else if (l->moe_inter % p->etp != 0) {
        REFUSE(s, "inter %lld does not divide over tp/ep %lld", (long long)l->moe_inter,
               (long long)p->etp);
    }
    *inter /= p->etp;
}

/* n and k of one rank. A vocabulary is padded to the ranks, as serving does; nothing else is. */
static void cut(const llm *l, const weight *w, const parallel *p, shape *s)
{
    int64_t *size = NULL;

    switch (w->split) {
    case WEIGHT_REP:
    case WEIGHT_KV:
        return;
    case WEIGHT_QKV:
        cut_heads(l, w, p, s);
        return;
    case WEIGHT_EP:
        cut_experts(l, w, p, s);
        return;
    case WEIGHT_COL:
        size = &s->n;
        break;
    case WEIGHT_ROW:
        size = &s->k;
        break;
    case WEIGHT_GRP:
        size = &s->batch;
        break;
    }
    if (*size % p->tp != 0 && !w->padded) {
        REFUSE(s, "%lld does not divide over tp %lld", (long long)*size, (long long)p->tp);
    }
    *size = (*size + p->tp - 1) / p->tp;
}

/* vLLM's rule: each part of n must be whole blocks, but the last part of an uncut matrix may be
 * ragged; a cut k must be whole blocks; an expert's inter size must be whole blocks both ways. */
static void check_blocks(const llm *l, const weight *w, const parallel *p, shape *s)
{
    bool expert = w->split == WEIGHT_EP, cols = w->split == WEIGHT_COL || w->split == WEIGHT_QKV;
    int64_t ranks = expert ? p->etp : cols || w->split == WEIGHT_ROW ? p->tp : 1;
    bool row_cut = (w->split == WEIGHT_ROW && ranks > 1) || (expert && w->row_inter);
    size_t parts = parts_len(w), whole = ranks > 1 ? parts : parts > 0 ? parts - 1 : 0;

    if (s->block_n == 0 || w->split == WEIGHT_KV || s->refused[0] != '\0') {
        return;
    }
    if (row_cut && s->k % s->block_k != 0) {
        REFUSE(s, "k share %lld is not whole blocks of %d%s", (long long)s->k, (int)s->block_k,
               expert ? ": raise ep, or pad the inter size" : ": lower tp, or pad k");
        return;
    }
    if (parts == 0 && cols && ranks > 1 && s->n % s->block_n != 0) {
        REFUSE(s, "n share %lld is not whole blocks of %d: lower tp, or pad n", (long long)s->n,
               (int)s->block_n);
        return;
    }
    for (size_t i = 0; i < whole; i++) {
        int64_t share = part_share(l, w, i, ranks);

        if (share % s->block_n != 0) {
            REFUSE(s, "n part %lld is not whole blocks of %d%s", (long long)share, (int)s->block_n,
                   expert ? ": raise ep, or pad the inter size" : ": lower tp, or pad n");
            return;
        }
    }
}

static shape shape_of(const llm *l, const weight *w, const parallel *p)
{
    llm_quant q = w->split == WEIGHT_KV ? store_of_row(&w->record) : store_of(l, w);
    shape s = {
        .n = w->n,
        .k = w->k,
        .batch = w->batch,
        .dtype = q.dtype,
        .block_n = q.block_n,
        .block_k = q.block_k,
        .scale = q.scale,
        .layers = (int32_t)w->layers,
        .record = w->record,
    };

    snprintf(s.use, sizeof s.use, "%s", w->use);
    snprintf(s.split, sizeof s.split, "%s", weights_split_name(w->split));
    cut(l, w, p, &s);
    check_blocks(l, w, p, &s);
    return s;
}

static hone_status check_parallel(int tp, int ep, parallel *out, hone_error *error)
{
    if (tp < 1 || tp > SHAPES_MAX_PARALLEL || ep < 1 || ep > SHAPES_MAX_PARALLEL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "tp %d, ep %d: both must be from 1 to %d", tp, ep, SHAPES_MAX_PARALLEL);
    }
    if (tp > ep && tp % ep != 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "tp %d is not a multiple of ep %d: an expert's ranks would be uneven", tp,
                          ep);
    }
    *out = (parallel){tp, ep, tp > ep ? tp / ep : 1};
    return HONE_OK;
}

hone_status llm_shapes(const llm *l, int tp, int ep, shape **out, size_t *count, hone_error *error)
{
    hone_status status = HONE_OK;
    weight weights[WEIGHTS_MAX];
    size_t len = weights_list(l, weights);
    parallel p = {1, 1, 1};
    shape *shapes = NULL;

    TRY(check_parallel(tp, ep, &p, error));
    shapes = malloc(len * sizeof *shapes);
    if (shapes == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "%zu shapes", len);
    }
    for (size_t i = 0; i < len; i++) {
        shapes[i] = shape_of(l, &weights[i], &p);
    }
    *out = shapes;
    *count = len;
done:
    return status;
}

hone_status llm_parameters(const llm *l, double *total, hone_error *error)
{
    weight weights[WEIGHTS_MAX];
    size_t len = weights_list(l, weights);
    double sum = (double)l->vocab * (double)l->hidden; /* the embedding */

    (void)error;
    for (size_t i = 0; i < len; i++) {
        const weight *w = &weights[i];
        int64_t copies = w->batch * (w->split == WEIGHT_EP ? l->experts : 1);

        if (!w->alias) {
            sum += (double)w->n * (double)w->k * (double)copies * (double)w->layers;
        }
    }
    *total = sum / 1e9;
    return HONE_OK;
}

hone_status llm_reblock(const llm *l, int block, llm **out, hone_error *error)
{
    llm *copy = NULL;

    if (block < 1 || block > 4096) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "block %d: it must be from 1 to 4096",
                          block);
    }
    copy = malloc(sizeof *copy);
    if (copy == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "model %s", l->name);
    }
    *copy = *l;
    llm_quant *const quants[] = {&copy->weights, &copy->routed};
    for (size_t i = 0; i < ARRAY_LEN(quants); i++) {
        if (quants[i]->block_n > 0) {
            quants[i]->dtype = HONE_DTYPE_E4M3;
            quants[i]->block_n = quants[i]->block_k = block;
        }
    }
    *out = copy;
    return HONE_OK;
}
