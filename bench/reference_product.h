/* reference_product.h - inside references: the product that fp8_gemm and moe_gemm share. */
#ifndef HONE_BENCH_REFERENCE_PRODUCT_H
#define HONE_BENCH_REFERENCE_PRODUCT_H

#include "bench/reference.h"

/* One operand: where a matrix's codes and scales are. */
typedef struct reference_factor {
    const uint8_t *payload, *scales;
    int64_t row_stride;                            /* bytes */
    int64_t scale_rows, scale_groups, group_first; /* group_first: of the first element of K */
    hone_quant quant;
    hone_scale_layout layout;
} reference_factor;

/* sum_k a[row, k] * b[column, k] for a rectangle of rows of A and rows of B (its columns), and
 * sum |a*b|: as reference_fp8_gemm, which says the rest. */
hone_status reference_product(const reference_factor *a, const reference_factor *b, int64_t k,
                              const reference_rect *rect, int threads, double *value,
                              double *magnitude, hone_error *error);

#endif
