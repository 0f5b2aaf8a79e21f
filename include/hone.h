/* hone.h - the whole public interface of libhone.so.
 *
 * hone tunes, proves, stores and serves GPU kernels for large-language-model inference.
 * This header is the contract: shapes, dtypes, layouts, units, ownership, threads and errors
 * are stated here and nowhere else. Nothing in the library prints, exits or keeps global state.
 *
 * Conventions
 *   - Functions that can fail return hone_status and take a `hone_error *` last (NULL allowed).
 *     On failure no output argument is written.
 *   - Structs that the caller fills begin with `size = sizeof(struct)`.
 *   - Enum values are frozen: they are stored in files. New ones are appended.
 *   - Handles are freed by the function that undoes the one that made them; it accepts NULL.
 *   - Sizes and offsets are 64-bit. Matrices are row-major unless a layout field says otherwise.
 */
#ifndef HONE_H
#define HONE_H

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
    X(mxfp4_fold, MXFP4_FOLD, 7)

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

/* ---- Runtime: what a serving engine links. -------------------------------------------------- */
typedef struct hone_runtime hone_runtime;

typedef enum hone_provenance {
    HONE_FROM_EXACT = 1,   /* a winner for this very problem */
    HONE_FROM_BUCKET = 2,  /* a winner for the size rounded up to the policy's list */
    HONE_FROM_NEAR = 3,    /* a larger tuned size, or another device kind of the same build */
    HONE_FROM_DEFAULT = 4, /* the analytical choice; nothing stored answers */
} hone_provenance;

/* How far a winner can be trusted: it still answers, whatever has changed since it was tuned. */
typedef enum hone_grade {
    HONE_GRADE_CURRENT =
        1, /* the template's text, NVRTC and driver are those that it was tuned with */
    HONE_GRADE_SUSPECT = 2, /* NVRTC or driver differ: its time may be off */
    HONE_GRADE_STALE = 3,   /* the template's text differs: tune again */
} hone_grade;

/* What hone_launch looks at before it launches (hone_options.checked). */
typedef enum hone_checked {
    HONE_CHECKED_OFF = 0,    /* sizes and addresses alone */
    HONE_CHECKED_VALUES = 1, /* values that an op cannot mean */
    HONE_CHECKED_POW2 = 2,   /* the same, and f32 scales that are no powers of two */
} hone_checked;

typedef struct hone_options {
    uint32_t size;          /* sizeof(hone_options) */
    int32_t strict;         /* 1: only HONE_FROM_EXACT answers */
    int32_t allow_modelled; /* 1: winners whose times were modelled may be served */
    int32_t compile_jobs;   /* workers of hone_prepare; 0: one for each core */
    const char *cache_path; /* kernel cache; NULL: $XDG_CACHE_HOME/hone/kernels.db, or
                                none where that cannot be written */
    int32_t checked;        /* hone_checked: for finding faults; slow, see hone_launch */
} hone_options;

/* An answer. Small and copyable; it stays valid until hone_close. */
typedef struct hone_choice {
    uint32_t size;            /* sizeof(hone_choice) */
    int32_t provenance;       /* hone_provenance */
    uint64_t winner;          /* id of the winner in the store; 0 for a default */
    double time_ns;           /* the winner's time; 0 when unknown */
    int32_t modelled;         /* 1 when time_ns was modelled, not measured */
    int32_t op;               /* hone_op */
    uint64_t workspace_bytes; /* device memory that hone_launch needs beside the operands */
    const void *kernel;       /* private */
    hone_problem problem;     /* what was asked for */
    int32_t grade; /* hone_grade of the winner, as hone_prepare found it; 0 for a default */
} hone_choice;

/* One operand in the op's order (hone_operands). Device memory, owned by the caller. */
typedef struct hone_arg {
    uint64_t address; /* CUdeviceptr */
    uint64_t bytes;   /* size of the allocation from `address` on */
    uint64_t record;  /* of a `cache`: hone_record_id of what it holds, which the problem's record
                         must be; 0: not checked */
} hone_arg;

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

/* Scales [rows, groups] of f32 on the host as ue8m0 codes for a problem whose scales are ue8m0:
 * exact, or refused. A scale that is no power of two from 2^-127 to 2^127 is HONE_BAD_ARGUMENT with
 * its row, group and value, never rounded: rounding a scale without its payload is another matrix
 * (kernels.md 5.1). `from` is row, col or tma, `to` is row, col or packed; padding of `packed`
 * becomes 2^-127. out holds what hone_operands says of one batch's scales: HONE_LIMIT when
 * `capacity` bytes are too few. The two do not overlap; nothing is written on failure. Thread-safe.
 */
HONE_API hone_status hone_pack_scales(const float *scales, int64_t rows, int64_t groups,
                                      hone_scale_layout from, hone_scale_layout to, uint8_t *out,
                                      uint64_t capacity, hone_error *error);

/* ---- Folding: scales of 32 of K as scales of 128, by shifting exponents. An opt-in. -----------
 */

/* A matrix [rows, k] of e4m3 codes, row-major, with its scales: as they are (`from`) and as they
 * shall be (`to`). Scales are f32 or ue8m0, of 1, 32 or 128 rows by 32 or 128 of k; those of `to`
 * cover whole ones of `from`. Layouts are row, col, tma (f32) or packed (ue8m0). All is the
 * caller's. */
typedef struct hone_fold_request {
    uint32_t size;       /* sizeof(hone_fold_request) */
    int32_t from_layout; /* hone_scale_layout */
    int32_t to_layout;
    hone_quant from, to; /* element: e4m3 */
    int64_t rows, k;
    const uint8_t *codes; /* rows * k */
    const void *scales;   /* [ceil(rows / from.gran_mn), ceil(k / from.gran_k)] */
    uint8_t *out;         /* rows * k; may be `codes` itself, or overlaps nothing */
    void *out_scales;     /* [ceil(rows / to.gran_mn), ceil(k / to.gran_k)], padding becomes 1.0 */
    uint64_t out_scales_bytes; /* that out_scales holds */
} hone_fold_request;

/* What folding did to a matrix. Errors are against the values before, in float64. */
typedef struct hone_fold_report {
    uint32_t size;  /* sizeof(hone_fold_report); set by the caller */
    int32_t spread; /* most binades that a group of `from` was shifted by */
    uint64_t elements;
    uint64_t inexact; /* elements whose value changed */
    uint64_t nans;    /* elements that are NaN, and stay it; no other figure counts them */
    uint64_t groups, wide_groups;    /* of `from`; of them shifted by more than 3 binades */
    uint64_t blocks, inexact_blocks; /* of `to`; of them with an inexact element */
    double largest;       /* largest error of an element over its block's scale: at most 2^-10 */
    double frobenius;     /* |folded - before| / |before| of the whole matrix */
    double channel;       /* root mean square over the columns k of the same for each column: the
                             error of a product whose other operand makes all columns weigh alike */
    double worst_channel; /* the largest of a column */
} hone_fold_report;

/* Fold: each block of `to` takes the largest of its scales, and the codes of its other groups are
 * shifted down by what theirs was smaller (spec: docs/kernels/fp8_gemm_fold.md). A code keeps its
 * value unless it falls below 2^-6, where it is rounded to nearest even: at most 2^-10 of the
 * block's scale, and nothing saturates. An f32 scale that is no power of two from 2^-127 to 2^127
 * and a scale that is NaN are HONE_BAD_ARGUMENT with their row, group and value; too few
 * out_scales_bytes HONE_LIMIT. On failure nothing is written. Thread-safe. */
HONE_API hone_status hone_fold_scales(const hone_fold_request *request, hone_fold_report *report,
                                      hone_error *error);

/* What an opted-in caller accepts by default of an operand's `channel`: with two such operands a
 * product stays within the gate of proofs (calc_diff 5e-6, 3.2e-3 of its norm). */
#define HONE_FOLD_LIMIT 0x1p-9

/* Whether a folded operand may be served: HONE_LIMIT, with the figures, when report->channel is
 * over `limit` (0: HONE_FOLD_LIMIT). The error of a product is at most about
 * sqrt(a.channel^2 + b.channel^2) of its norm while neither operand's scale favours few columns. */
HONE_API hone_status hone_fold_accept(const hone_fold_report *report, double limit,
                                      hone_error *error);

/* What is folded of a problem. */
typedef enum hone_fold_mode {
    HONE_FOLD_K = 1,     /* both operands along K, to 128: A 1x128, B 1x128 or 32x128 */
    HONE_FOLD_BLOCK = 2, /* the same, and B to 128x128 */
    HONE_FOLD_N = 3,     /* B alone, of 32x32 to 128x32: still exact products of 32, fewer scales */
} hone_fold_mode;

/* The problem that a folded one is: an fp8_gemm of e4m3 with ue8m0 scales of which some cover 32,
 * asked for again with those scales that hone_fold_scales (and for A the op `fold`) makes. It is
 * tuned, prepared and looked up as any other. The caller folds the operands and judges the reports.
 * HONE_BAD_PROBLEM for f32 scales, which need not be powers of two (pack them first), for a B of
 * e2m1, and where there is nothing to fold. Thread-safe. */
HONE_API hone_status hone_fold_problem(const hone_problem *problem, hone_fold_mode mode,
                                       hone_problem *out, hone_error *error);

typedef struct hone_progress {
    uint64_t done, total;
    const char *doing; /* one line, borrowed for the call */
} hone_progress;
/* Return non-zero to cancel. Called from the thread that called hone_prepare. */
typedef int (*hone_progress_fn)(void *context, const hone_progress *progress);

/* Open a store for serving on `device` ("auto", "cuda:0", "emu:h20"). The store's generation is
 * read into memory; no connection stays open. `options` may be NULL. Caller closes *out. */
HONE_API hone_status hone_open(const char *store, const char *device, const hone_options *options,
                               hone_runtime **out, hone_error *error);
HONE_API void hone_close(hone_runtime *runtime);

/* Load or compile all that lookups of these problems can answer. Slow; call before serving. */
HONE_API hone_status hone_prepare(hone_runtime *runtime, const hone_problem *problems, size_t count,
                                  hone_progress_fn progress, void *context, hone_error *error);

/* The hot path: no lock, no allocation, no system call, no compile. Thread-safe.
 * HONE_NOT_PREPARED when the answer is known but its kernel is not loaded. */
HONE_API hone_status hone_lookup(const hone_runtime *runtime, const hone_problem *problem,
                                 hone_choice *out, hone_error *error);

/* Launch on `stream` (a CUstream, NULL for the default one). `args` are the problem's operands in
 * the order of hone_operands, then, when workspace_bytes > 0, the workspace. Checks sizes and
 * alignment first; launches nothing on failure. Capture-safe. Zero-size problems succeed without a
 * launch. Thread-safe; a first launch at an address or of a size keeps what it made, within bounds.
 *
 * With hone_options.checked the stream is waited for, read operands are copied to the host piece by
 * piece, and HONE_BAD_ARGUMENT names the operand, the place and the value of the first that is
 * wrong; nothing is launched then. On a stream that is being captured it is HONE_UNSUPPORTED.
 *   fp8_gemm, fold  a code of e4m3 that is NaN; a ue8m0 scale that is 0xff; an f32 scale that is
 *                   NaN, infinite or negative; a scale of 0 over codes that are not all zero (over
 *                   zeros it is legal); with HONE_CHECKED_POW2 also one that is no power of two
 *   kv_quant        a slot past the cache; a slot that two tokens share (negative ones are padding)
 *   act_quant       nothing: NaN and infinities have their meaning there */
HONE_API hone_status hone_launch(const hone_choice *choice, const hone_arg *args, size_t count,
                                 void *stream, hone_error *error);

#define HONE_FINGERPRINT_BYTES 32
/* A digest of all that a lookup can answer: ranks compare it. */
HONE_API hone_status hone_fingerprint(const hone_runtime *runtime,
                                      uint8_t out[HONE_FINGERPRINT_BYTES], hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
