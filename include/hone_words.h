/* hone_words.h - statuses and errors, and the words that problems are made of. Included by
 * hone_problem.h.
 */
#ifndef HONE_WORDS_H
#define HONE_WORDS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HONE_API __attribute__((visibility("default")))

/* ---- Statuses: one row each (name, frozen value, text). ------------------------------------ */
#define HONE_STATUS_MAP(X)                                                                         \
    X(OK, 0, "done")                                                                               \
    X(BAD_ARGUMENT, 1, "an argument breaks the function's contract")                               \
    X(NO_MEMORY, 2, "out of memory")                                                               \
    X(IO, 3, "a file could not be read or written")                                                \
    X(BAD_TEXT, 4, "text that does not parse")                                                     \
    X(BAD_PROBLEM, 5, "a problem with a field that its op refuses")                                \
    X(BAD_MANIFEST, 6, "a template's manifest breaks a rule")                                      \
    X(BAD_MODEL, 7, "a model or GPU description breaks a rule")                                    \
    X(UNKNOWN, 8, "no such model, device, template or op")                                         \
    X(LIMIT, 9, "an input exceeds a documented limit")                                             \
    X(OVERFLOW, 10, "arithmetic on the input overflows 64 bits")                                   \
    X(NO_DEVICE, 11, "no usable device or driver")                                                 \
    X(DRIVER, 12, "a driver call failed")                                                          \
    X(COMPILE, 13, "a kernel did not compile")                                                     \
    X(WORKER, 14, "a worker process crashed or ran past its limit")                                \
    X(STORE_IO, 15, "the store could not be read or written")                                      \
    X(STORE_FOREIGN, 16, "the file is not a store of this schema")                                 \
    X(STORE_DAMAGED, 17, "a stored row does not match its digest")                                 \
    X(STORE_BUSY, 18, "the store stayed locked past the back-off")                                 \
    X(UNTRUSTED, 19, "a file whose owner or mode is not to be trusted")                            \
    X(NOT_FOUND, 20, "nothing stored answers this problem")                                        \
    X(NOT_PREPARED, 21, "the kernel is known but not loaded")                                      \
    X(WRONG, 22, "a kernel's output failed verification")                                          \
    X(UNSUPPORTED, 23, "legal, but not supported on this device")                                  \
    X(CANCELLED, 24, "stopped by the caller")                                                      \
    X(ENVIRONMENT, 25, "a library or tool that is needed is missing")                              \
    X(TAKEN, 26, "another sweep has done it or is at it")

typedef enum hone_status {
#define X(name, value, text) HONE_##name = value,
    HONE_STATUS_MAP(X)
#undef X
} hone_status;

/* What went wrong: the input, the rule and the remedy, in one line of UTF-8. */
typedef struct hone_error {
    hone_status status;
    char message[480];
    char source[256]; /* file or name that the input came from; "" when there is none */
    int line;         /* 1-based line in `source`; 0 when there is none */
} hone_error;

/* Names are static strings; an unknown value gives "?". Thread-safe. */
HONE_API const char *hone_status_name(hone_status status);
HONE_API const char *hone_status_text(hone_status status);

/* ---- Words of a problem. Values are frozen. ------------------------------------------------ */
#define HONE_OP_MAP(X)                                                                             \
    X(fp8_gemm, FP8_GEMM, 1)                                                                       \
    X(act_quant, ACT_QUANT, 2)                                                                     \
    X(kv_quant, KV_QUANT, 3)                                                                       \
    X(kv_gather, KV_GATHER, 4)                                                                     \
    X(weight_quant, WEIGHT_QUANT, 5)                                                               \
    X(fold, FOLD, 6)                                                                               \
    X(mxfp4_fold, MXFP4_FOLD, 7)                                                                   \
    X(scale_pack, SCALE_PACK, 8)                                                                   \
    X(moe_gemm, MOE_GEMM, 9)                                                                       \
    X(moe_align, MOE_ALIGN, 10)                                                                    \
    X(moe_combine, MOE_COMBINE, 11)                                                                \
    X(topk, TOPK, 12)                                                                              \
    X(mqa_logits, MQA_LOGITS, 13)                                                                  \
    X(mqa_logits_paged, MQA_LOGITS_PAGED, 14)                                                      \
    X(index_prepare, INDEX_PREPARE, 15)

typedef enum hone_op {
#define X(text, NAME, value) HONE_OP_##NAME = value,
    HONE_OP_MAP(X)
#undef X
} hone_op;

/* name, frozen value, bits of one element */
#define HONE_DTYPE_MAP(X)                                                                          \
    X(none, NONE, 0, 0)                                                                            \
    X(f32, F32, 1, 32)                                                                             \
    X(bf16, BF16, 2, 16)                                                                           \
    X(f16, F16, 3, 16)                                                                             \
    X(e4m3, E4M3, 4, 8)                                                                            \
    X(e5m2, E5M2, 5, 8)                                                                            \
    X(e2m1, E2M1, 6, 4)                                                                            \
    X(ue8m0, UE8M0, 7, 8)                                                                          \
    X(ue4m3, UE4M3, 8, 8)

typedef enum hone_dtype {
#define X(text, NAME, value, bits) HONE_DTYPE_##NAME = value,
    HONE_DTYPE_MAP(X)
#undef X
} hone_dtype;

/* One operand of a recipe: element dtype, scale dtype and the block that one scale covers. */
typedef struct hone_quant {
    int32_t element; /* hone_dtype */
    int32_t scale;   /* hone_dtype: f32 or ue8m0 */
    int32_t gran_mn; /* rows (of A: m, of B: n) that share a scale */
    int32_t gran_k;  /* k elements that share a scale */
} hone_quant;

typedef struct hone_recipe {
    hone_quant a, b;
} hone_recipe;

/* How a matrix of scales [rows, groups] lies in memory (kernels.md 5.1). */
typedef enum hone_scale_layout {
    HONE_SCALES_ROW = 1,    /* element (r, g) at r * groups + g */
    HONE_SCALES_COL = 2,    /* element (r, g) at g * rows + r */
    HONE_SCALES_TMA = 3,    /* element (r, g) at g * round_up(rows, 4) + r: 4-byte scales */
    HONE_SCALES_PACKED = 4, /* ue8m0 only: byte (r, g) at (g/4) * round_up(rows,4)*4 + r*4 + g%4 */
} hone_scale_layout;

/* Which rule makes a scale from the largest magnitude of a group (kernels.md 5.1). 448 is e4m3's
 * largest; those of e2m1 divide by 6. act_quant and weight_quant take the first five. */
typedef enum hone_scale_rule {
    HONE_RULE_POW2_AMAX = 1,  /* 2^ceil(log2(max(amax, 1e-4) / 448)) */
    HONE_RULE_RAW_AMAX = 2,   /* max(amax, 1e-4) / 448, fp32 */
    HONE_RULE_POW2_SCALE = 3, /* 2^ceil(log2(max(amax / 448, 1e-4))) */
    HONE_RULE_RAW_TINY = 4,   /* max(amax / 448, FLT_MIN), fp32 */
    HONE_RULE_POW2_TINY = 5,  /* 2^ceil(log2(max(amax, 448 * 2^-126) / 448)) */
    HONE_RULE_E4M3_NEAR = 6,  /* e2m1: the e4m3 next to min(max(amax / 6, 2^-9), 448) */
    HONE_RULE_E4M3_UP = 7,    /* e2m1: the least e4m3 from that on, so that nothing saturates */
    HONE_RULE_TENSOR = 8,     /* one fp32 scale of the whole cache, an operand */
    HONE_RULE_UNSCALED = 9,   /* bf16 as it is */
} hone_scale_rule;

/* Reduction-order class: fixed = the same K order and promotion for every M, no split-K. */
typedef enum hone_order {
    HONE_ORDER_ANY = 1,
    HONE_ORDER_FIXED = 2,
} hone_order;

typedef enum hone_batch_layout {
    HONE_BATCH_OUTER = 1, /* A [batch, m, k], D [batch, m, n] */
    HONE_BATCH_INNER = 2, /* A [m, batch, k], D [m, batch, n]; scales of A [m, batch * groups] */
} hone_batch_layout;

/* A KV-cache format as an identity. Reader and writer must name the same one. */
typedef enum hone_kv_format {
    HONE_KV_INDEX_FP8_132 = 1,  /* 128 e4m3 + 1 f32 a token */
    HONE_KV_MLA_FP8_656 = 2,    /* V3.2: 512 e4m3 + 4 f32 + 64 bf16 */
    HONE_KV_MLA_FP8_528 = 3,    /* V4.1: 512 e4m3 + 16 ue8m0 */
    HONE_KV_MLA_FP8_584 = 4,    /* V4: 448 e4m3 + 64 bf16 + 7 ue8m0 + 1 zero byte */
    HONE_KV_MLA_FP4_288 = 5,    /* V4.1: 512 e2m1 + 32 e4m3 scales */
    HONE_KV_INDEX_FP4_68 = 6,   /* 128 e2m1 + 4 ue8m0 */
    HONE_KV_MLA_NVFP4_352 = 7,  /* 512 e2m1 + 64 e4m3 without a scale + 32 e4m3 scales, scale s at
                                   byte 8 * (s % 4) + s / 4 of them */
    HONE_KV_MLA_FP8_576 = 8,    /* 576 e4m3 under one scale outside */
    HONE_KV_MLA_BF16_1152 = 9,  /* 576 bf16 */
    HONE_KV_MLA_BF16_1024 = 10, /* 512 bf16 */
} hone_kv_format;

typedef enum hone_page_layout {
    HONE_PAGE_SPLIT = 1,       /* a page holds all data rows, then all scale rows */
    HONE_PAGE_INTERLEAVED = 2, /* each token's data is followed by its scales */
    HONE_PAGE_FLAT = 3,        /* tokens without scales one after another */
} hone_page_layout;

/* What kv_gather writes, and how it is told which tokens. */
typedef enum hone_gather_to {
    HONE_GATHER_RAW = 1,  /* tokens' bytes as they are, data and scales apart */
    HONE_GATHER_BF16 = 2, /* their values */
} hone_gather_to;

typedef enum hone_gather_by {
    HONE_GATHER_SLOTS = 1, /* a slot for each row */
    HONE_GATHER_TABLE =
        2, /* the pages of sequences, whose tokens are the rows, one after another */
} hone_gather_by;

typedef struct hone_record {
    int32_t format;  /* hone_kv_format */
    int32_t layout;  /* hone_page_layout */
    int32_t rule;    /* hone_scale_rule */
    int32_t version; /* 1 */
} hone_record;

/* What is computed before it is quantised, in fp32 and not rounded in between. */
typedef enum hone_activation {
    HONE_ACTIVATION_PLAIN = 1,       /* x */
    HONE_ACTIVATION_SILU_MUL = 2,    /* gate / (1 + exp(-gate)) * up; a row of x is gate, then up */
    HONE_ACTIVATION_SILU_MUL_V4 = 3, /* alike, of min(gate, 10) and up within +-10; NaN stays */
} hone_activation;

/* Which rows there are. The others are neither read nor written, their scales included. */
typedef enum hone_row_set {
    HONE_ROWS_EVERY = 1,
    HONE_ROWS_MASKED = 2, /* of each expert the first rows[expert], int32 [experts] */
    HONE_ROWS_LISTED = 3, /* those whose rows[row] is not negative, int32 [m] */
    /* int32 [experts, m]: row is made of x's row rows[row] / topk; not there where rows[row] is
     * negative. moe_align's `source`. */
    HONE_ROWS_GATHERED = 4,
} hone_row_set;

/* Which rows of a grouped product are whose: what the operand `groups`, int32 on the device, holds.
 */
typedef enum hone_group_layout {
    /* [m]: the expert of each row; outside of 0 .. experts - 1: padding */
    HONE_GROUPS_CONTIGUOUS = 1,
    /* [experts]: rows of each, clamped to 0 .. m; every expert has its own m rows */
    HONE_GROUPS_MASKED = 2,
    /* [experts]: the row behind each one's last; expert g begins at round_up(groups[g - 1],
     * row_align), 0 for the first. What groups says is clamped to 0 .. m, begins to m, an end below
     * its begin is no rows; where ends fall the largest before stands for groups[g - 1]. */
    HONE_GROUPS_PSUM = 3,
    /* [experts]: elements of k of each, one expert's behind the other's */
    HONE_GROUPS_K = 4,
} hone_group_layout;

#ifdef __cplusplus
}
#endif
#endif
