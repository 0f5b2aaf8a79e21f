/* hone_problem.h - problems: statuses and errors, the words that problems are made of, one struct
 * for each op, their texts, and KV records as contracts. Included by hone.h, where the conventions
 * stand.
 */
#ifndef HONE_PROBLEM_H
#define HONE_PROBLEM_H

#include <stddef.h>
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
    X(scale_pack, SCALE_PACK, 8)

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
 * largest; pow2_amax of e2m1 divides by 6. act_quant takes the first four. */
typedef enum hone_scale_rule {
    HONE_RULE_POW2_AMAX = 1,  /* 2^ceil(log2(max(amax, 1e-4) / 448)) */
    HONE_RULE_RAW_AMAX = 2,   /* max(amax, 1e-4) / 448, fp32 */
    HONE_RULE_POW2_SCALE = 3, /* 2^ceil(log2(max(amax / 448, 1e-4))) */
    HONE_RULE_RAW_TINY = 4,   /* max(amax / 448, FLT_MIN), fp32 */
    HONE_RULE_POW2_TINY = 5,  /* e2m1: 2^ceil(log2(max(amax, 6 * 2^-126) / 6)) */
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

/* ---- Problems: what is tuned for, and the lookup key. Plain, fixed size, no pointers. ------- */

/* D[b,m,n] = sum_k A[b,m,k] * SFA * B[b,n,k] * SFB (+ D when accumulate). A is e4m3; B is
 * [batch, n, k] of e4m3, or of e2m1: two codes a byte, the even k in the low nibble, k % 32 == 0.
 * Scales: SFA [batch, ceil(m/a.gran_mn), ceil(k/a.gran_k)], SFB alike over n (kernels.md 1.1). */
typedef struct hone_fp8_gemm {
    int64_t m, n, k, batch;
    hone_recipe recipe;
    int32_t out;            /* hone_dtype: bf16 or f32 */
    int32_t order;          /* hone_order */
    int32_t accumulate;     /* 0: D = product; 1: D += product */
    int32_t a_scale_layout; /* hone_scale_layout */
    int32_t b_scale_layout; /* hone_scale_layout: row or col for blocks */
    int32_t batch_layout;   /* hone_batch_layout */
    int32_t align;          /* bytes that every operand's base and row stride are multiples of */
} hone_fp8_gemm;

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
} hone_row_set;

/* q, s = quantise(act(x)) in groups of `group` along k (kernels.md 5.1). k % group == 0.
 * x [experts, m, k], or [experts, m, 2 k] for gate and up; q [experts, m, k]; s a matrix of scales
 * for each expert. An element that is NaN or infinite becomes the code of NaN and makes no scale.
 */
typedef struct hone_act_quant {
    int64_t m, k;
    int64_t experts;      /* 1 unless row_set is masked */
    int32_t in;           /* hone_dtype: bf16, f16 or f32 */
    int32_t out;          /* hone_dtype: e4m3 */
    int32_t scale;        /* hone_dtype: f32 or ue8m0 */
    int32_t group;        /* 32, 64 or 128 */
    int32_t scale_layout; /* hone_scale_layout */
    int32_t rule;         /* hone_scale_rule */
    int32_t activation;   /* hone_activation */
    int32_t row_set;      /* hone_row_set */
    int32_t count;        /* 1: elements that became NaN are added to a uint64 */
    int32_t align;
} hone_act_quant;

/* q, s = quantise(w [n, k]) in blocks of gran_n x gran_k, a last one smaller (kernels.md 5.2):
 * q [n, k], s [ceil(n / gran_n), ceil(k / gran_k)]. NaN and infinity as in act_quant, always
 * counted. */
typedef struct hone_weight_quant {
    int64_t n, k;
    int32_t in;           /* hone_dtype: bf16, f16 or f32 */
    int32_t out;          /* hone_dtype: e4m3 */
    int32_t scale;        /* hone_dtype: f32 or ue8m0 */
    int32_t gran_n;       /* 1, 32 or 128 */
    int32_t gran_k;       /* 32 or 128 */
    int32_t scale_layout; /* hone_scale_layout */
    int32_t rule;         /* hone_scale_rule */
    int32_t align;
} hone_weight_quant;

/* Quantise `tokens` rows and insert them into a paged cache by slot (kernels.md 4.2-4.7).
 * slot < 0: skipped. slot >= pages * page_size: counted in `dropped`, never written.
 * NaN and infinity among elements that are quantised are counted one by one in `nonfinite`; both
 * counters are added to. Their e4m3 codes are NaN (0x7f), and no scale is made of them; a tile of
 * e2m1 that has one gets a NaN scale and codes of zero. bf16 parts are copied as they are.
 * HONE_RULE_TENSOR: a scale that is not positive and finite makes every code NaN and counts every
 * element. */
typedef struct hone_kv_quant {
    int64_t tokens;
    int64_t pages; /* pages of the cache */
    int64_t
        page_stride;   /* bytes from page to page; >= page bytes, a multiple as the record wants */
    int32_t page_size; /* tokens in a page: 32, 64, 128, 256 */
    int32_t in;        /* hone_dtype: bf16 */
    hone_record record;
    int32_t align;
} hone_kv_quant;

/* Read `tokens` rows out of a paged cache that kv_quant of the same record wrote (kernels.md 4.2 to
 * 4.7). Operands: cache; index; starts; out; scales; dropped; scale.
 *   by slots   index int64 [tokens]: row t is the token of slot index[t]; starts is empty
 *   by table   index int32 [sequences, table_pages], starts int32 [sequences + 1], ascending: row t
 *              with starts[s] <= t < starts[s + 1] is token t - starts[s] of sequence s, whose i-th
 *              page is index[s, i]. Rows outside of all sequences are not written.
 *   to bf16    out bf16 [tokens, dims]: bf16 of fl32(code * scale), bf16 parts as they are; scales
 *              is empty. NaN becomes 0x7fff.
 *   to raw     out [tokens, bytes of a token without its scales], data and then tail; scales
 *              [tokens, scale bytes of a token] as the record orders them
 * A negative slot or page gives a row of zeros. One past the cache, or a token past its sequence's
 * last page, does too and is counted once in `dropped`; neither is read. `scale` is one f32 for
 * HONE_RULE_TENSOR to bf16, else empty. Empty operands may be NULL. */
typedef struct hone_kv_gather {
    int64_t tokens;
    int64_t pages;
    int64_t page_stride;
    int64_t sequences;   /* by slots: 1 */
    int64_t table_pages; /* by slots: 1 */
    int32_t page_size;
    int32_t to; /* hone_gather_to */
    int32_t by; /* hone_gather_by */
    hone_record record;
    int32_t align;
} hone_kv_gather;

/* Activations with scales of 1x32 get scales of 1x128 (hone_fold_scales says how): q, q_scale =
 * fold(a [m, k], a_scale). k % group == 0. `inexact`, one u64, grows by the number of elements
 * whose value changed; NaN codes stay, and a NaN scale becomes its block's. */
typedef struct hone_fold {
    int64_t m, k;
    int32_t element;        /* hone_dtype: e4m3 */
    int32_t scale;          /* hone_dtype: ue8m0 */
    int32_t group;          /* 32 */
    int32_t out_group;      /* 128 */
    int32_t scale_layout;   /* hone_scale_layout of a_scale [m, k / group] */
    int32_t q_scale_layout; /* of q_scale [m, ceil(k / out_group)]; padding becomes 1.0 */
    int32_t align;
} hone_fold;

/* q, q_scale: MXFP4 weights as e4m3 with one power-of-two scale a block, exactly wherever a block's
 * exponents spread over at most 14 (kernels.md 5.4). codes [batch, n, k/2] of e2m1, two a byte, the
 * even k low; scale [batch, n, k/32] of ue8m0; q [batch, n, k] of e4m3; q_scale [batch,
 * ceil(n/block_rows), ceil(k/block_cols)], row-major. k % 32 == 0. */
typedef struct hone_mxfp4_fold {
    int64_t n, k, batch;
    int32_t block_rows, block_cols; /* 128x128, 32x32 or 1x128 */
    int32_t scale;                  /* hone_dtype of q_scale: ue8m0 or f32 */
    int32_t align;
} hone_mxfp4_fold;

/* f32 scales as kernels read them (kernels.md 1.3, 5.1), by moving and never by rounding.
 * Without experts: scale [batch, rows, groups], row-major; out: a matrix of `scale_layout` for each
 * of the batch, col or tma of f32 (padding is 1.0), or packed of ue8m0.
 * With experts, those of a k-grouped product: scale [groups, rows], an expert's ceil(ks[e] /
 * gran_k) groups behind the one's before; ks int32 [experts], elements of k, on the device, below
 * 0 as 0. out: words [(groups + 3 * experts) / 4, rows] of four ue8m0 bytes, lowest group first;
 * every expert begins a word.
 * Bytes of words that no group has are 0 (2^-127), rows that no expert has too. What is no power
 * of two from 2^-127 to 2^127 becomes 0xff, NaN, in words; `wrong`, a u64, grows by their number
 * and, a row each, by groups that ks asks for past `groups`, whose bytes are 0. f32 is kept. */
typedef struct hone_scale_pack {
    int64_t rows, groups, batch;
    int32_t experts;      /* 0 to 128; then batch is 1 and rows a multiple of 4 */
    int32_t gran_k;       /* 128, 32: k elements of a group; without experts 128 */
    int32_t scale;        /* hone_dtype of out: f32 or ue8m0 */
    int32_t scale_layout; /* hone_scale_layout of out */
    int32_t align;
} hone_scale_pack;

typedef struct hone_problem {
    uint32_t size; /* sizeof(hone_problem) */
    int32_t op;    /* hone_op */
    union {
        hone_fp8_gemm fp8_gemm;
        hone_act_quant act_quant;
        hone_kv_quant kv_quant;
        hone_kv_gather kv_gather;
        hone_fold fold;
        hone_weight_quant weight_quant;
        hone_mxfp4_fold mxfp4_fold;
        hone_scale_pack scale_pack;
    } as;
} hone_problem;

/* Read a problem from text such as
 *   fp8_gemm:m=4096,n=7168,k=2048,recipe=f32-1x128-128x128,out=bf16
 * Fields that are left out take their op's defaults. HONE_BAD_TEXT names the field that does not
 * parse, HONE_BAD_PROBLEM the one that its op refuses. Thread-safe. */
HONE_API hone_status hone_problem_parse(const char *text, hone_problem *out, hone_error *error);

/* Write a problem's text, every field, so that parsing it gives the same problem.
 * Returns HONE_LIMIT when `capacity` is too small; 512 always suffices. */
HONE_API hone_status hone_problem_format(const hone_problem *problem, char *text, size_t capacity,
                                         hone_error *error);

/* Check every field against its op's rules. */
HONE_API hone_status hone_problem_check(const hone_problem *problem, hone_error *error);

/* ---- A record as a contract. ---------------------------------------------------------------- */

/* A number for a record in pages of `page_size` tokens, the same in every process and version of
 * hone: two caches whose bytes mean different things have different ids. Whoever writes a cache
 * keeps its id with it; hone_arg.record hands it to a launch. Never 0. HONE_BAD_PROBLEM for a
 * record that does not exist. Thread-safe. */
HONE_API hone_status hone_record_id(const hone_record *record, int32_t page_size, uint64_t *id,
                                    hone_error *error);

/* Whether what was `written` may be `read` as: HONE_OK when the ids are the same; HONE_BAD_PROBLEM
 * names each part that differs (format, layout, scale rule, version, page size) and both records;
 * HONE_BAD_ARGUMENT for a number that is no id. Thread-safe. */
HONE_API hone_status hone_record_match(uint64_t written, uint64_t read, hone_error *error);

/* ---- Operands. ------------------------------------------------------------------------------- */
/* What an op reads and writes, in the order of hone_launch's arguments. */
typedef struct hone_operand {
    const char *name; /* "a", "a_scale", ...; static */
    int32_t dtype;    /* hone_dtype of the elements; NONE for raw bytes and int64 slots */
    int32_t access;   /* 1 read, 2 written, 3 both */
    uint64_t bytes;   /* that it must hold */
} hone_operand;

#define HONE_MAX_OPERANDS 8

/* The operands of a problem: *count entries of `out`. HONE_BAD_PROBLEM, HONE_OVERFLOW. */
HONE_API hone_status hone_operands(const hone_problem *problem, hone_operand out[HONE_MAX_OPERANDS],
                                   size_t *count, hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
