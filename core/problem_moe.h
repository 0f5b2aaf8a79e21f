/* problem_moe.h - inside problems: the rules of the ops around a grouped product. */
#ifndef HONE_CORE_PROBLEM_MOE_H
#define HONE_CORE_PROBLEM_MOE_H

#include "core/status.h"

/* Rows that tokens need at most, wherever they are routed, of all experts or, masked, of each. 0
 * without tokens; 2^40 where they are beyond what problems may have. */
int64_t problem_moe_rows(int64_t tokens, int64_t topk, int64_t experts, int64_t row_align,
                         int32_t group_layout);

void problem_derive_moe_align(hone_moe_align *p);
void problem_derive_moe_combine(hone_moe_combine *p);

/* Whether fields that are legal alone are so together. HONE_BAD_PROBLEM. */
hone_status problem_check_moe_align(const hone_moe_align *p, hone_error *error);
hone_status problem_check_moe_combine(const hone_moe_combine *p, hone_error *error);

/* Which rows an act_quant has, and of what they are made. HONE_BAD_PROBLEM. */
hone_status problem_check_row_set(const hone_act_quant *p, hone_error *error);

/* Their operands; how many. */
size_t problem_operands_moe_align(const hone_moe_align *p, hone_operand *out);
size_t problem_operands_moe_combine(const hone_moe_combine *p, hone_operand *out);

/* Bytes that a combine moves at least, when each of its entries has a row of its own as far as
 * there are rows. */
double problem_bytes_moe_combine(const hone_moe_combine *p);

#endif
