/* weights.h - every weight matrix that a model's layers multiply by, before any parallel cut. */
#ifndef HONE_MODELS_WEIGHTS_H
#define HONE_MODELS_WEIGHTS_H

#include "models/llm.h"

/* How a matrix is shared among tensor-parallel ranks. */
typedef enum weight_split {
    WEIGHT_REP, /* every rank holds all of it */
    WEIGHT_COL, /* n is cut */
    WEIGHT_ROW, /* k is cut, and the ranks' sums are added */
    WEIGHT_QKV, /* n is cut by heads; kv heads are repeated when there are fewer than ranks */
    WEIGHT_GRP, /* the batch is cut */
    WEIGHT_EP,  /* experts are cut, then their inter size */
    WEIGHT_KV,  /* no matrix: a KV-cache row of k elements */
} weight_split;

typedef enum weight_store {
    WEIGHT_QUANT,  /* as llm.weights says */
    WEIGHT_ROUTED, /* as llm.routed says */
    WEIGHT_BF16,
    WEIGHT_F32,
} weight_store;

#define WEIGHT_PARTS 3

/* A matrix [n, k] of the whole model. */
typedef struct weight {
    const char *use;
    weight_split split;
    weight_store store;
    int64_t n, k;
    int64_t batch;               /* independent matrices; 0 stands for 1 */
    int64_t parts[WEIGHT_PARTS]; /* merged matrices along n, in order; 0 ends; none: n alone */
    int64_t layers;              /* launches in one forward pass */
    bool row_inter;              /* WEIGHT_EP: the inter size is k (w2), not n (w13) */
    bool padded;                 /* a size that serving pads to the ranks: the vocabulary */
    bool alias;                  /* another form of weights that are listed already */
    hone_record record;          /* WEIGHT_KV */
} weight;

#define WEIGHTS_MAX 32

/* Fill `out` in the order of the layers' work; returns how many. `l` has passed llm_check. */
size_t weights_list(const llm *l, weight out[WEIGHTS_MAX]);

const char *weights_split_name(weight_split split); /* "col"; static */

#endif
