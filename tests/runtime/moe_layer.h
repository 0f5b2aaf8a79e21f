/* moe_layer.h - the experts of one rank on the host: a router's choice, their weights, and what the
 * layer gives in float64. Failures end the test. */
#ifndef HONE_TESTS_MOE_LAYER_H
#define HONE_TESTS_MOE_LAYER_H

#include "include/hone_problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct model {
    const char *name;
    int64_t hidden, inter, experts, topk;
    int nibbles, clamped;             /* experts are MXFP4; V4's gates */
    int32_t group;                    /* of activations' scales */
    const char *recipe, *codes, *act; /* of the products; of codes between them; of act_quant */
} model;

/* How the tokens' entries fall on this rank's experts. */
enum { DRAWN, ONE_HAS_ALL, ONLY_THE_LAST, NOBODY };

/* The experts' matrices [n, k] with scales in row layout. */
typedef struct weights {
    int64_t n, k;
    uint64_t matrix, scales; /* bytes of an expert */
    uint8_t *codes, *scale;
} weights;

/* Experts of this rank: HONE_MOE_EP says among how many ranks they are spread. */
int64_t local_experts(const model *m);

/* topk_ids of the rank whose experts are the model's first: each token's are distinct, others'
 * are -1. The first token has one here, but where nobody has. */
void route(const model *m, int routing, int64_t tokens, int32_t *ids, float *weight);

/* NaN where an expert is not used. The caller frees codes and scale. */
weights weights_make(const model *m, int64_t n, int64_t k, const bool *used, uint64_t seed);

/* What lies between the products as the device made it: `first` is the product's problem, whose
 * codes and scales those are, `place` [tokens * topk] says in which row an entry lies. */
typedef struct middle {
    hone_moe_gemm first;
    int32_t *place;
    uint8_t *codes, *scales;
} middle;

/* y [tokens, hidden] in float64; the caller frees it. `own` NULL: without codes. Else every code
 * and scale of `own` is held to what float64 allows of it, all of them together to what a product
 * may be off, and the second product is of them: a code that tips counts where it is made alone. */
double *layer_reference(const model *m, const weights *w13, const weights *w2, const int32_t *ids,
                        const float *weight, const uint16_t *x, int64_t tokens, const middle *own);

/* What a product of right kernels may be off, over its norm: 1 - 2xy/(x^2 + y^2) <= 5e-6. */
#define PRODUCT_OFF 3.2e-3

double relative_error(const float *got, const double *exact, int64_t len);

#endif
