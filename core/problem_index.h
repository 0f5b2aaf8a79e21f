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

#endif
