/* problem_check.h - inside problems: rules that the checks of several ops share. Each sets the
 * error and returns HONE_BAD_PROBLEM where it is broken. */
#ifndef HONE_CORE_PROBLEM_CHECK_H
#define HONE_CORE_PROBLEM_CHECK_H

#include "core/status.h"

#include <stdbool.h>

/* "FIELD: RULE". */
hone_status problem_refuse(hone_error *error, const char *field, const char *rule);

/* The layout of a scale matrix must go with the dtype; `one_row` says whether each row has its own
 * scales. */
hone_status problem_check_layout(const char *field, int32_t layout, int32_t scale, bool one_row,
                                 hone_error *error);

/* f32 or ue8m0. */
hone_status problem_check_scale_dtype(const char *field, int32_t scale, hone_error *error);

/* A power of two that divides the bytes of a row; `rows` names them. */
hone_status problem_check_align(int64_t align, int64_t row_bytes, const char *rows,
                                hone_error *error);

/* What a scale covers: one row, or with `blocks` 32 or 128 of them, by 32 or 128 of k. */
bool problem_granularity_known(int32_t mn, int32_t k, bool blocks);

/* Products (problem_product.c). */
hone_status problem_check_fp8_gemm(const hone_fp8_gemm *p, hone_error *error);
hone_status problem_check_moe_gemm(const hone_moe_gemm *p, hone_error *error);

#endif
