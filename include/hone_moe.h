/* hone_moe.h - problems around a grouped product of experts: its rows from a router's choice, and
 * their sums back in the tokens' order. Included by hone_problem.h.
 */
#ifndef HONE_MOE_H
#define HONE_MOE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Integers of an operand. Values are frozen. */
typedef enum hone_index {
    HONE_INDEX_I32 = 1,
    HONE_INDEX_I64 = 2,
} hone_index;

/* Where the rows of a grouped product lie (kernels.md 2.1 to 2.4), from topk_ids [tokens, topk] of
 * `ids`: each entry is an expert from 0 to experts - 1, or -1 for none (of another rank). Any other
 * value is taken for -1 and counted in `dropped`. Rows of an expert are its entries in ascending
 * order t * topk + j; a layout's m rows may be too few, then the last entries of an expert get none
 * and are counted in `dropped` too. Operands: topk_ids; groups, source, place, counts: int32, all
 * of them written whole; dropped, a u64 that is added to.
 *   contiguous  m rows in all; an expert's begin at a multiple of row_align, one behind the other.
 *               groups [m]: the expert of each row, -1 for padding
 *   masked      m rows of each expert, its own first. groups [experts]: how many those are
 *   psum        rows as in contiguous; groups [experts]: the row behind an expert's last, not
 *               aligned: g begins at round_up(groups[g - 1], row_align), the first at 0, at most m
 *   grouped_k   rows as in contiguous, as the columns of a weight gradient's operands: groups
 *               [experts] are an expert's rows with their padding, multiples of row_align, which
 *               the product's gran_k divides; m's last row_align rows are nobody's if they are not
 *               whole
 *   source [rows]          the entry that a row holds, -1 for padding; masked: row r of expert e at
 *                          e * m + r
 *   place [tokens * topk]  the other way: an entry's row, or -1
 *   counts [experts]       rows that each expert holds
 * tokens = 0 gives counts of 0 and rows of -1. Fewer than 2^31 entries and rows. m left out: what
 * holds any choice, round_up(tokens, row_align) when masked (of experts that differ within a
 * token), else tokens * topk + min(experts, tokens * topk) * (row_align - 1), rounded down to
 * row_align, but row_align at least; 0 without tokens. */
typedef struct hone_moe_align {
    int64_t tokens;
    int64_t m;
    int32_t experts;      /* 1 to 512: of this rank */
    int32_t topk;         /* 1 to 512 */
    int32_t group_layout; /* hone_group_layout */
    int32_t row_align;
    int32_t ids;   /* hone_index of topk_ids */
    int32_t align; /* bytes that every operand's base is a multiple of; at least an element's */
} hone_moe_align;

/* y[t, :] = sum over j of weight[t, j] * d[place[t * topk + j], :], of an expert's outputs d [m, n]
 * (masked: all experts' rows, so that m here is experts * m there). In fp32: s begins with y[t, :]
 * when it accumulates, else with 0; s = fma(weight, d, s) for j = 0, 1 ... topk - 1 where place is
 * not -1; y = s, rounded to nearest even, so that its bits depend on nothing else. A row that no
 * place names is not read; a token without one gives zeros. A place below -1 or past m is taken for
 * -1 and counted in `dropped`, a u64 that is added to. Operands: d; place, int32 [tokens, topk];
 * weight, f32 alike; dropped; y [tokens, n]. m left out: tokens * topk. */
typedef struct hone_moe_combine {
    int64_t tokens, n;
    int64_t m;
    int32_t topk;       /* 1 to 512 */
    int32_t in;         /* hone_dtype of d: bf16 or f32 */
    int32_t out;        /* hone_dtype of y: bf16 or f32 */
    int32_t accumulate; /* 1: y is added to */
    int32_t align;      /* bytes that every operand's base and row are multiples of */
} hone_moe_combine;

#ifdef __cplusplus
}
#endif
#endif
