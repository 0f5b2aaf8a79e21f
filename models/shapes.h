/* shapes.h - from an LLM's architecture to the problems that its layers launch (shapes.md 2). */
#ifndef HONE_MODELS_SHAPES_H
#define HONE_MODELS_SHAPES_H

#include "core/status.h"

typedef struct llm llm; /* an architecture: sizes, layers, quantisation. Immutable */

/* By file name below models/llm ("deepseek-v4.1-flash"), or by path of a Hugging Face config.json
 * (any argument that ends in ".json"). An unknown model_type is HONE_BAD_MODEL, never a guess. */
hone_status llm_open(const char *name_or_path, llm **out, hone_error *error);
void llm_close(llm *l);
size_t llm_list(const char *const **names);
const char *llm_name(const llm *l);

/* One weight matrix [n, k] of one rank, or one quantiser, and the layers that use it. */
typedef struct shape {
    char use[64];             /* "q_b", "experts.w13", "indexer.k_cache" */
    char split[8];            /* col row rep grp ep */
    int64_t n, k, batch;      /* GEMM; batch > 1: independent GEMMs */
    int64_t experts;          /* > 0: a grouped GEMM over this many local experts */
    int32_t dtype;            /* hone_dtype of the weight as stored: e4m3, e2m1, bf16, f32 */
    int32_t block_n, block_k; /* of its scales; 0: unquantised */
    int32_t scale;            /* hone_dtype of its scales */
    int32_t layers;           /* launches in one forward pass */
    char refused[160];        /* "" or why this cut is not legal at this parallel degree */
} shape;

/* All shapes of the model at tensor and expert parallel degrees. Caller frees *out with free(). */
hone_status llm_shapes(const llm *l, int tp, int ep, shape **out, size_t *count, hone_error *error);

/* Parameters of the whole model, from the shapes; billions as shapes.md 0 counts them. */
hone_status llm_parameters(const llm *l, double *total, hone_error *error);

/* The problems of the ops that hone has (fp8_gemm, act_quant, kv_quant), without duplicates, for
 * each m of `m_list`. `ops` is a comma-separated list or NULL for all. Caller frees *out. `use`
 * names the first shape that needs it and how many launches a forward pass makes. */
typedef struct llm_problem {
    hone_problem problem;
    char use[96];
    int32_t launches;
} llm_problem;
hone_status llm_problems(const llm *l, int tp, int ep, const int64_t *m_list, size_t m_len,
                         const char *ops, llm_problem **out, size_t *count, hone_error *error);

/* The M lists of shapes.md 2.4: decode (capture sizes), prefill, and both; static. */
size_t shapes_m_default(const int64_t **m); /* 1 16 64 256 4096 */
size_t shapes_m_all(const int64_t **m);

#endif
