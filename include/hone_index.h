/* hone_index.h - problems of the sparse-attention indexer: which keys a query attends to. Included
 * by hone_problem.h; docs/kernels/indexer.md has pictures.
 */
#ifndef HONE_INDEX_H
#define HONE_INDEX_H

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
 * there the rest of index[r, :] is -1. Operands: scores [rows, stride]; start, end: int32 [rows],
 * as far as `span` says; list; index: int32 [rows, k], written whole. every    a row's candidates
 * are its columns; an index counts from the row's first column blocked  its blocks of `block`
 * columns, the last one perhaps shorter; an index counts blocks. pin = 1 takes the last block,
 * where a row has one, whatever its scores are: it counts as +inf listed   list: int32 [rows, width
 * / block], strictly ascending, -1 for none. Column c is position list[r, c / block] * block + c %
 * block, and that is its index. A position at or past the row's end (both, compressed: past end -
 * start) is no candidate: bounds count positions here, not columns, and are not clamped to width
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

#ifdef __cplusplus
}
#endif
#endif
