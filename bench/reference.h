/* reference.h - what an op must give, computed in float64 (or byte for byte) on the host.
 *
 * Shares no code with the templates. Pure functions of host images; thread-safe. */
#ifndef HONE_BENCH_REFERENCE_H
#define HONE_BENCH_REFERENCE_H

#include "bench/inputs.h"
#include "bench/segments.h"

/* A rectangle of an output: rows [row, row + rows) and columns likewise of one batch. */
typedef struct reference_rect {
    int64_t batch, row, rows, column, columns;
} reference_rect;

/* Largest rows and columns of one call. */
#define REFERENCE_TILE 128

/* The exact D of a rectangle up to float64 rounding, and sum |a*b| (plus |D before| when
 * accumulating) of each element for the error bound: rows * columns doubles each, row-major. Reads
 * A, B, their scales and, when it accumulates, D from `in`. Up to `threads` host threads share the
 * columns, the caller's among them (0 as 1): the same bits. HONE_BAD_ARGUMENT when the rectangle is
 * too large or outside, HONE_NO_MEMORY. */
hone_status reference_fp8_gemm(const hone_fp8_gemm *p, const inputs *in, const reference_rect *rect,
                               int threads, double *value, double *magnitude, hone_error *error);

/* The product (no activation yet) of rows of one expert, and sum |a*b|, as reference_fp8_gemm's:
 * rect.batch is the run's matrix, its rows lie in the run, its columns are rows of B. With
 * `accumulate` D before is in it. */
hone_status reference_moe_gemm(const hone_moe_gemm *p, const inputs *in, const segments_run *s,
                               const reference_rect *rect, int threads, double *value,
                               double *magnitude, hone_error *error);

/* Codes (`group` bytes), scale and, for ue8m0, its byte, of one group of one row (experts' rows
 * follow one another). A problem without a gate. */
void reference_act_quant(const hone_act_quant *p, const inputs *in, int64_t row, int64_t group,
                         uint8_t *codes, float *scale, uint8_t *scale_code);

/* Codes (out_group bytes, fewer at the end of a row) and scale of one folded block; *inexact grows
 * by the elements whose value changed. */
void reference_fold(const hone_fold *p, const inputs *in, int64_t row, int64_t block,
                    uint8_t *codes, uint8_t *scale, uint64_t *inexact);
/* gate / (1 + exp(-gate)) * up as `activation` says, exact, and how far fp32 may be from it. */
double reference_gate(int32_t activation, double gate, double up, double *bound);
/* What is quantised behind a gate, exact, and how far fp32 may be from it: `group` doubles each.
 * The bound is device/activation.cuh's: two units of 2^x and of 1/x, and what rounding the exponent
 * does to the power. */
void reference_act_values(const hone_act_quant *p, const inputs *in, int64_t row, int64_t group,
                          double *value, double *bound);

/* Codes of a block of gran_n x gran_k weights, fewer at the edges, row after row; its scale and,
 * for ue8m0, the scale's byte. */
void reference_weight_quant(const hone_weight_quant *p, const inputs *in, int64_t row_block,
                            int64_t group, uint8_t *codes, float *scale, uint8_t *scale_code);

/* One block of an MXFP4 fold: `row` and `column` count blocks of matrix `batch`. codes receives
 * block_rows * block_cols bytes, dense as the block is (less at the ends). The scale's byte. */
uint8_t reference_mxfp4_fold(const hone_mxfp4_fold *p, const inputs *in, int64_t batch, int64_t row,
                             int64_t column, uint8_t *codes);

/* What lies at (line, row) of matrix `batch` of a scale_pack's output, a line being a column of
 * scales or of words, padding included: its 32 bits. *wrong grows by what the op counts there. */
uint32_t reference_scale_pack(const hone_scale_pack *p, const inputs *in, int64_t batch,
                              int64_t line, int64_t row, uint64_t *wrong);
/* Lines of one matrix, and rows of a line with their padding. */
void reference_scale_pack_shape(const hone_scale_pack *p, int64_t *lines, int64_t *rows);

/* All outputs of a moe_align, as long as its operands say; *dropped grows. */
void reference_moe_align(const hone_moe_align *p, const inputs *in, int32_t *groups,
                         int32_t *source, int32_t *place, int32_t *counts, uint64_t *dropped);

/* An element of a moe_combine's y: exact up to float64 rounding, sum |weight * d| (plus |y before|
 * when accumulating), and what the op's order of fused multiply-adds gives before it is rounded to
 * y. */
void reference_moe_combine(const hone_moe_combine *p, const inputs *in, int64_t token,
                           int64_t column, double *value, double *magnitude, float *steps);
/* Entries that name no row, though they are not -1. */
uint64_t reference_moe_combine_dropped(const hone_moe_combine *p, const inputs *in);

/* A row of a topk's index, k entries, by a full sort. HONE_NO_MEMORY. */
hone_status reference_topk(const hone_topk *p, const inputs *in, int64_t row, int32_t *index,
                           hone_error *error);

/* The keys [*first, *first + *keys) that a row of an indexer's logits stores, of mqa_logits or
 * mqa_logits_paged: key *first is column 0, but with span = both its own. */
void reference_mqa_range(const hone_problem *problem, const inputs *in, int64_t row, int64_t *first,
                         int64_t *keys);
/* A row's scores of `keys` keys from `first` on, and sum |weight * q * k| * |k_scale| of each for
 * the error bound; -inf where the key's page is none. HONE_NO_MEMORY. */
hone_status reference_mqa(const hone_problem *problem, const inputs *in, int64_t row, int64_t first,
                          int64_t keys, double *value, double *magnitude, hone_error *error);

/* The whole cache and the counters after all tokens: `cache`, `dropped` and `nonfinite` start as
 * `in` has them. */
hone_status reference_kv_quant(const hone_kv_quant *p, const inputs *in, uint8_t *cache,
                               uint64_t *dropped, uint64_t *nonfinite, hone_error *error);

/* All that an index_prepare writes, each as `in` has it before: codes, scales of q (e2m1), weights,
 * the cache and the counters. */
typedef struct reference_prepared {
    uint8_t *codes, *q_scale, *cache;
    float *weights;
    uint64_t dropped, nonfinite;
} reference_prepared;
hone_status reference_prepare(const hone_index_prepare *p, const inputs *in,
                              reference_prepared *out, hone_error *error);

/* The slot that a row of a gather is made of; -1 where it is made of none. */
int64_t reference_kv_slot(const hone_kv_gather *p, const inputs *in, int64_t row);
/* `out` and `scales` (of raw rows) and the counter after a gather, which start as `in` has them. */
hone_status reference_kv_gather(const hone_kv_gather *p, const inputs *in, uint8_t *out,
                                uint8_t *scales, uint64_t *dropped, hone_error *error);

#endif
