/* hone_problem.h - problems: one struct for each op, their texts, and KV records as contracts.
 * Included by hone.h, where the conventions stand; hone_words.h has what they are made of.
 */
#ifndef HONE_PROBLEM_H
#define HONE_PROBLEM_H

#include "hone_index.h"
#include "hone_moe.h"
#include "hone_words.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* q, s = quantise(act(x)) in groups of `group` along k (kernels.md 5.1). k % group == 0.
 * x [experts, m, k], or [experts, m, 2 k] for gate and up; q [experts, m, k]; s a matrix of scales
 * for each expert. An element that is NaN or infinite becomes the code of NaN and makes no scale.
 * Gathered: an entry >= tokens * topk is never read; its row is not there, and is added to the
 * uint64 `dropped`. */
typedef struct hone_act_quant {
    int64_t m, k;
    int64_t experts;      /* 1 unless row_set is masked or gathered */
    int64_t tokens;       /* gathered: rows of x, which is [tokens, k] or [tokens, 2 k]; else 0 */
    int32_t in;           /* hone_dtype: bf16, f16 or f32 */
    int32_t out;          /* hone_dtype: e4m3 */
    int32_t scale;        /* hone_dtype: f32 or ue8m0 */
    int32_t group;        /* 32, 64 or 128 */
    int32_t scale_layout; /* hone_scale_layout */
    int32_t rule;         /* hone_scale_rule */
    int32_t activation;   /* hone_activation */
    int32_t row_set;      /* hone_row_set */
    int32_t topk;         /* gathered: entries of a token (moe_align's); else 0 */
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
 * and, a row each, by groups that ks asks for past `groups`, whose bytes are 0, and by groups that
 * it leaves over. f32 is kept. */
typedef struct hone_scale_pack {
    int64_t rows, groups, batch;
    int32_t experts;      /* 0 to 128; then batch is 1 and rows a multiple of 4 */
    int32_t gran_k;       /* 128, 32: k elements of a group; without experts 128 */
    int32_t scale;        /* hone_dtype of out: f32 or ue8m0 */
    int32_t scale_layout; /* hone_scale_layout of out */
    int32_t align;
} hone_scale_pack;

/* D[r] = A[r] . B[expert of r]^T for every row that has an expert, dequantised (kernels.md 2); the
 * others are neither read nor written, but that fill = 1 makes zeros of them. Operands: a, a_scale,
 * b, b_scale, groups, d, and d_scale where D is quantised.
 *   contiguous, psum  a [m, k], d [m, columns], scales of a and d: one matrix of m rows
 *   masked            a [experts, m, k], d [experts, m, columns], scales: a matrix for each expert
 *   grouped_k         d[e] = a_e b_e^T (+ d[e]), f32 [experts, m, n]; a and b hold, expert after
 *                     expert, [m, ks[e]] and [n, ks[e]], each ks[e] a multiple of gran_k, their sum
 *                     k at most; scales [m, k / gran_k] and [n, k / gran_k], f32, the columns of an
 *                     expert behind the one's before. Of other ks no byte outside is touched: below
 *                     0 counts as 0, no multiple as the one below, past what is left of k as that
 * b [experts, n, k] and a matrix of scales for each expert, as fp8_gemm's batch. With an activation
 * n / 2 rows of b are gates and as many behind them ups; d is act(gate, up), not rounded before it
 * is written, columns = n / 2.
 * contiguous: every expert's first row and its rows with their padding are multiples of row_align;
 * rows that have it come first. A tile of row_align rows is therefore one expert's. */
typedef struct hone_moe_gemm {
    /* Rows that A has room for, masked: of each expert. Left out, what tokens need at most:
     * contiguous, psum: tokens * topk + min(experts, tokens * topk) * (row_align - 1), rounded down
     * to row_align; masked: round_up(tokens, row_align). 0 only where there are no tokens. */
    int64_t m;
    int64_t n, k;
    int64_t tokens; /* routed here: tokens * topk rows are expected to have an expert; a hint */
    int64_t experts;
    hone_recipe recipe;
    int32_t topk;
    int32_t group_layout; /* hone_group_layout */
    int32_t row_align;    /* 1, or a multiple of 8 */
    int32_t out;          /* hone_dtype: bf16, f32; with an activation also e4m3 */
    int32_t activation;   /* hone_activation */
    /* Of a D of e4m3; else 0, and not in the text. */
    int32_t out_scale;        /* hone_dtype: f32 or ue8m0 */
    int32_t out_group;        /* columns that share a scale: 32 or 128 */
    int32_t out_scale_layout; /* hone_scale_layout */
    int32_t out_rule;         /* hone_scale_rule: one of act_quant's */
    int32_t order;            /* hone_order */
    int32_t accumulate;       /* grouped_k only; experts without k keep D */
    int32_t fill;             /* 1: rows without an expert become zeros; their scales stay */
    int32_t a_scale_layout;   /* hone_scale_layout */
    int32_t b_scale_layout;
    int32_t align;
} hone_moe_gemm;

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
        hone_moe_gemm moe_gemm;
        hone_moe_align moe_align;
        hone_moe_combine moe_combine;
        hone_topk topk;
        hone_mqa_logits mqa_logits;
        hone_mqa_logits_paged mqa_logits_paged;
        hone_index_prepare index_prepare;
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

#define HONE_MAX_OPERANDS 10

/* The operands of a problem: *count entries of `out`. HONE_BAD_PROBLEM, HONE_OVERFLOW. */
HONE_API hone_status hone_operands(const hone_problem *problem, hone_operand out[HONE_MAX_OPERANDS],
                                   size_t *count, hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
