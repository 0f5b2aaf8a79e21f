/* hone_index.h - problems of the sparse-attention indexer: which keys a query attends to. Included
 * by hone_problem.h; docs/kernels/indexer.md has pictures.
 */
#ifndef HONE_INDEX_H
#define HONE_INDEX_H

#include "hone_words.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which columns of a row of scores there are, of `width`. Bounds are int32 [rows] on the device and
 * clamped to 0 .. width; an end below its start is no columns. Values are frozen. */
typedef enum hone_span {
    HONE_SPAN_WHOLE = 1,      /* all of them */
    HONE_SPAN_ENDS = 2,       /* 0 .. end - 1 */
    HONE_SPAN_BOTH = 3,       /* start .. end - 1 */
    HONE_SPAN_COMPRESSED = 4, /* end - start of them, which begin at column 0 */
} hone_span;

/* What is chosen from. Values are frozen. */
typedef enum hone_pick {
    HONE_PICK_EVERY = 1,   /* columns, counted from the row's first */
    HONE_PICK_BLOCKED = 2, /* blocks of `block` columns, counted so; a block's score is its best */
    HONE_PICK_LISTED = 3,  /* columns that belong to listed blocks of positions */
} hone_pick;

/* In which order the chosen ones are written. Values are frozen. */
typedef enum hone_sort {
    HONE_SORT_INDEX = 1, /* ascending index */
    HONE_SORT_SCORE = 2, /* descending score, equal scores by ascending index */
} hone_sort;

/* index[r, :] = the k best of row r of scores (kernels.md 3.5), exactly: equal scores are told
 * apart by the lower index, so that set, order and bits depend on the row alone, on no config,
 * schedule, grid or device. NaN of either sign is below -inf, -0 equals +0. Where fewer than k are
 * there the rest of index[r, :] is -1.
 * Operands: scores [rows, stride]; start, end: int32 [rows], as far as `span` says; list; index:
 * int32 [rows, k], written whole.
 *   every    a row's candidates are its columns; an index counts from the row's first column
 *   blocked  its blocks of `block` columns, the last one perhaps shorter; an index counts blocks.
 *            pin = 1 takes the last block, where a row has one, whatever its scores are: it counts
 *            as +inf
 *   listed   list: int32 [rows, width / block], strictly ascending, -1 for none. Column c is
 *            position list[r, c / block] * block + c % block, and that is its index. A position at
 *            or past the row's end (both, compressed: past end - start) is no candidate: bounds
 *            count positions here, not columns, and are not clamped to width
 * drop = 1: -inf and NaN are no candidates (V4.1's unreachable blocks). */
typedef struct hone_topk {
    int64_t rows, width;
    int64_t stride; /* elements from row to row; at least width, which it is when left out */
    int32_t k;      /* 1 to 4096 */
    int32_t in;     /* hone_dtype of scores: f32 or bf16 */
    int32_t span;   /* hone_span */
    int32_t pick;   /* hone_pick */
    int32_t block;  /* 1; blocked, listed: a power of two from 2 to 128 */
    int32_t pin;    /* 1: blocked takes the last block */
    int32_t drop;   /* 1: -inf and NaN are no candidates */
    int32_t sort;   /* hone_sort */
    int32_t align;  /* bytes that operands' bases and rows of scores are multiples of */
} hone_topk;

/* logits[t, j] = k_scale[j] * sum over heads of weights[t, h] * max(0, q[t, h] . k[j]) for the keys
 * start[t] <= j < end[t] of each query token (kernels.md 3.1, 3.2). Bounds are clamped to 0 to
 * keys, an end at or below its start is no keys. A product that is NaN counts as 0, as the
 * hardware's maximum has it.
 *   e4m3  q [tokens, heads, dims] without a scale, which belongs into the weights; k [keys, dims]
 *         with k_scale f32 [keys]; q_scale is empty
 *   e2m1  two codes a byte, the even dim low; q_scale [tokens, heads] and k_scale [keys] are words
 *         of ue8m0: byte g is the scale of dims 32 g to 32 g + 31, before the maximum. Bytes past
 *         dims are not read as scales
 * Operands: q; q_scale; k; k_scale; weights f32 [tokens, heads]; start, end: int32 [tokens]; logits
 * [tokens, stride].
 *   both        key j is column j
 *   compressed  key j is column j - start[t], clamped; what has no column is not stored
 * No other cell is written, but that clean = 1 makes -inf of the rest of columns 0 to width - 1. */
typedef struct hone_mqa_logits {
    int64_t tokens, keys;
    int64_t width;   /* columns of a row; both: keys */
    int64_t stride;  /* elements of logits from row to row; width when left out */
    int32_t heads;   /* 8, 16, 32 or 64 */
    int32_t dims;    /* 32, 64 or 128; e2m1: 64 or 128 */
    int32_t element; /* hone_dtype of q and k: e4m3 or e2m1 */
    int32_t span;    /* hone_span: both or compressed */
    int32_t clean;   /* 1: cells of a row without a key become -inf */
    int32_t out;     /* hone_dtype of logits: f32 or bf16 */
    int32_t align;   /* bytes that operands' bases and rows of q and k are multiples of */
} hone_mqa_logits;

/* The same of keys in a paged cache that kv_quant of the same record wrote (kernels.md 3.3): row
 * b * next_n + t is query token t of request b, key j of a request is token j % page_size of page
 * table[b, j / page_size], and the row's keys are 0 .. lengths[b, t] - 1. Lengths are clamped to
 * 0 .. width; 0 and below is no keys. Of a table's row only as many entries are read as the longest
 * of the request's lengths wants; one of them that is no page of the cache (-1, past its end) is
 * not followed, and its keys' logits are -inf. No cell without a key is written.
 * Operands: q [batch, next_n, heads, 128] of the record's element; q_scale [batch, next_n, heads]
 * words of ue8m0, empty for e4m3; cache; weights f32 [batch, next_n, heads]; lengths int32 [batch,
 * next_n]; table int32 [batch, table_stride]; logits [batch * next_n, stride]. */
typedef struct hone_mqa_logits_paged {
    int64_t batch;        /* requests */
    int64_t width;        /* columns of a row: the longest context */
    int64_t stride;       /* elements of logits from row to row; width when left out */
    int64_t pages;        /* of the cache */
    int64_t page_stride;  /* bytes from page to page */
    int64_t table_stride; /* entries from request to request; a row's pages when left out */
    int32_t next_n;       /* 1 to 8 query tokens of a request */
    int32_t heads;        /* 8, 16, 32 or 64 */
    int32_t page_size;    /* tokens in a page */
    hone_record record;   /* index_132 or index_68 */
    int32_t out;          /* hone_dtype of logits: f32 or bf16 */
    int32_t align;        /* bytes that operands' bases, rows of q and pages are multiples of */
} hone_mqa_logits_paged;

/* Which 64 of a head's 128 dims are rotated, and which of them are a pair. Values are frozen. */
typedef enum hone_rope {
    HONE_ROPE_NONE = 1,
    HONE_ROPE_FIRST = 2, /* dims 0 to 63 (V3.2) */
    HONE_ROPE_LAST = 3,  /* dims 64 to 127 (V4, V4.1) */
} hone_rope;
typedef enum hone_rope_pairs {
    HONE_PAIRS_NEIGHBOURS = 1, /* dims 2 i and 2 i + 1 (GPT-J) */
    HONE_PAIRS_HALVES = 2,     /* dims i and i + 32 (NeoX) */
} hone_rope_pairs;

/* Queries and keys as an indexer's scores want them (kernels.md 3.4), and the keys' place in the
 * paged cache. A row, of q as of k, is prepared in three steps, each but the last rounded to bf16:
 *   rope      pair i of (a, b) becomes (a cos - b sin, b cos + a sin) of angle i, cos and sin being
 *             rotations[token, i] and rotations[token, 32 + i]; two products, each rounded to fp32,
 *             then their sum
 *   hadamard  H x / sqrt(128): sums and differences in fp32 of dims 1, 2, 4 ... 64 apart, in this
 *             order, times fl32(2^-3.5)
 *   quantise  as kv_quant of the record; q has the same rule and element
 * weights[t, h] *= f = fl32((heads * 128)^-1/2), and of an e4m3 q *= its scale: one rounding each.
 * Operands: q bf16 [tokens, heads, 128]; k bf16 [tokens, 128]; rotations f32 [tokens, 64], empty
 * for rope = off; slots int64 [tokens], as kv_quant's; weights f32 [tokens, heads], in place;
 * codes [tokens, heads, 128] of the record's element; q_scale [tokens, heads] words of four ue8m0,
 * empty for e4m3; cache; dropped, nonfinite: uint64 on the device, added to: slots past the cache,
 * and elements of prepared rows that are NaN or infinite, k's of rows with a slot alone. */
typedef struct hone_index_prepare {
    int64_t tokens;
    int64_t pages;       /* of the cache */
    int64_t page_stride; /* bytes from page to page */
    int32_t heads;       /* 8, 16, 32 or 64 */
    int32_t page_size;   /* tokens in a page */
    int32_t rope;        /* hone_rope */
    int32_t pairs;       /* hone_rope_pairs; of rope = off neighbours */
    int32_t hadamard;    /* 1: transformed */
    hone_record record;  /* index_132 or index_68 */
    int32_t align;       /* bytes that operands' bases and pages are multiples of */
} hone_index_prepare;

#ifdef __cplusplus
}
#endif
#endif
