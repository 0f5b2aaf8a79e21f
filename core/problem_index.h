/* problem_index.h - inside problems: the rules of the sparse-attention indexer's ops. */
#ifndef HONE_CORE_PROBLEM_INDEX_H
#define HONE_CORE_PROBLEM_INDEX_H

#include "core/status.h"

void problem_derive_topk(hone_topk *p);

/* Whether fields that are legal alone are so together. HONE_BAD_PROBLEM. */
hone_status problem_check_topk(const hone_topk *p, hone_error *error);

/* Its operands; how many. */
size_t problem_operands_topk(const hone_topk *p, hone_operand *out);

/* Bytes that it moves at least: rows without what lies between them. */
double problem_bytes_topk(const hone_topk *p);

/* Whether fields of one of the indexer's ops that are legal alone are so together. */
hone_status problem_check_index(const hone_problem *problem, hone_error *error);

/* Keys' scores (problem_mqa.c): what follows from other fields, operands and work. A range of keys
 * counts as whole. */
void problem_derive_mqa(hone_mqa_logits *p);
void problem_derive_mqa_paged(hone_mqa_logits_paged *p);
hone_status problem_check_mqa(const hone_mqa_logits *p, hone_error *error);
hone_status problem_check_mqa_paged(const hone_mqa_logits_paged *p, hone_error *error);
size_t problem_operands_mqa(const hone_mqa_logits *p, hone_operand *out);
size_t problem_operands_mqa_paged(const hone_mqa_logits_paged *p, hone_operand *out);
void problem_work_mqa(const hone_problem *problem, double *flop, double *bytes);

/* Queries and keys made ready (problem_prepare.c). */
void problem_derive_prepare(hone_index_prepare *p);
hone_status problem_check_prepare(const hone_index_prepare *p, hone_error *error);
size_t problem_operands_prepare(const hone_index_prepare *p, hone_operand *out);
/* Operands of one of the indexer's ops; how many. */
size_t problem_operands_index(const hone_problem *problem, hone_operand *out);
/* Bytes of its tokens, not of the whole cache. */
double problem_bytes_prepare(const hone_index_prepare *p);

/* What every op with a paged cache asks of it (problem_check.c), and its defaults
 * (problem_derive.c): pages one behind the other, as close as readers of the record admit. */
hone_status problem_check_pages(const hone_record *record, int32_t page_size, int64_t page_stride,
                                int32_t align, hone_error *error);
void problem_derive_pages(const hone_record *record, int32_t page_size, int64_t *page_stride,
                          int32_t *align);

#endif
