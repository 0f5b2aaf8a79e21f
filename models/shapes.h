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

/* One weight matrix [n, k] of one rank, or (split "kv") the rows of a KV cache, and the layers that
 * use it. */
typedef struct shape {
    char use[64];             /* "attn.q_b", "experts.w13", "indexer.k_cache" */
    char split[8];            /* col row rep qkv grp ep; kv: a cache row of k elements, n 1 */
    int64_t n, k, batch;      /* GEMM; batch > 1: independent GEMMs */
    int64_t experts;          /* > 0: a grouped GEMM over this many local experts */
    int32_t dtype;            /* hone_dtype of the weight as stored: e4m3, e2m1, bf16, f32 */
    int32_t block_n, block_k; /* of its scales; 0: unquantised */
    int32_t scale;            /* hone_dtype of its scales */
    int32_t layers;           /* launches in one forward pass */
    hone_record record;       /* split "kv": the cache's record; else zero */
    char refused[160];        /* "" or why this cut is not legal at this parallel degree */
} shape;

/* All shapes of the model at tensor and expert parallel degrees, in the order of a layer's work. An
 * expert's inter size is cut by tp / ep when tp is the larger. A cut that the weights' blocks or
 * heads forbid is listed with its reason in `refused`. Caller frees *out with free().
 * HONE_BAD_ARGUMENT. */
hone_status llm_shapes(const llm *l, int tp, int ep, shape **out, size_t *count, hone_error *error);

/* Parameters of the whole model, from the shapes; billions as shapes.md 0 counts them: without
 * draft stages, norms and n-gram tables. */
hone_status llm_parameters(const llm *l, double *total, hone_error *error);

/* The same model with every quantised weight stored as e4m3 in blocks of block x block: what a
 * conversion would give. Caller closes *out. HONE_BAD_ARGUMENT. */
hone_status llm_reblock(const llm *l, int block, llm **out, hone_error *error);

/* Tokens in a page, and pages at least, of the caches that kv_quant problems write: the pages hold
 * the largest M of shapes_m_all, and are the same for every smaller M so that lookups may round M
 * up. */
#define SHAPES_PAGE_TOKENS 64
#define SHAPES_PAGES       256
/* Tokens that a row of an indexer's scores is for. */
#define SHAPES_CONTEXT 131072

/* A problem of the ops that hone has, and who needs it. */
typedef struct llm_problem {
    hone_problem problem;
    char use[96];     /* the first shape that needs it */
    int32_t launches; /* by all shapes that need it, in one forward pass */
} llm_problem;

/* The problems of a rank, without duplicates, for each m of `m_list`, op by op. `ops` is a
 * comma-separated list of fp8_gemm, act_quant, kv_quant, kv_gather, moe_gemm, moe_align,
 * moe_combine, mqa_logits, mqa_logits_paged, topk, or NULL for the first three: kv_gather is what
 * prefills with a history want, and routed experts, the indexer's scores and their choice have to
 * be asked for.
 *   fp8_gemm   every dense e4m3 weight; blocks of 32 keep their ue8m0 scales, larger ones take f32,
 *              which the per-128 kernels read; a batch lies inside the rows (layout inner)
 *   act_quant  the inputs of those, with the scales as the GEMM's a_scale_layout wants them; where
 *              moe_gemm is asked for too, also W13's, gathered from the group's tokens
 *   kv_quant   the caches' rows
 *   kv_gather  of sequences' pages: the indexer's keys raw, the other caches' rows as bf16
 *   moe_gemm   routed experts that are quantised, for m tokens of each rank: masked up to 128, with
 *              room for all tokens of the ep ranks, else contiguous with row_align 128. Beside e2m1
 *              weights the activations are quantised as for the dense ones
 *   moe_align  the rows of those products, from the choices of all m * ep tokens
 *   moe_combine  their sums for these tokens, added to y where there is a shared expert
 *   mqa_logits  the indexer's scores of a prompt's m tokens, over 256, of the keys of 2 m tokens
 *   mqa_logits_paged  those of m requests, up to 256, that decode a token each, at a context of
 *              SHAPES_CONTEXT; of both kinds of cache where a model has two
 *   topk       the indexer's choice for m tokens, at a context of SHAPES_CONTEXT: of every key that
 *              a layer scores (of compressed caches a half or a quarter); of V4.1 also the blocks of
 *              8 that later layers score, and their choice among those
 * Weights that stay bf16 are shapes only. HONE_BAD_MODEL when a shape is refused at this degree,
 * HONE_UNKNOWN for an op, HONE_BAD_ARGUMENT. Caller frees *out. */
hone_status llm_problems(const llm *l, int tp, int ep, const int64_t *m_list, size_t m_len,
                         const char *ops, llm_problem **out, size_t *count, hone_error *error);

/* The M lists of shapes.md 2.4, ascending; static. `all` holds the decode capture sizes, the
 * prefill sizes and a probe one past each tile boundary. */
size_t shapes_m_default(const int64_t **m); /* 1 16 64 256 4096 */
size_t shapes_m_all(const int64_t **m);

#endif
