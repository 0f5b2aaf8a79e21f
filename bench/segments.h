/* segments.h - whose rows are whose in a grouped product: `groups` read as hone_group_layout says.
 */
#ifndef HONE_BENCH_SEGMENTS_H
#define HONE_BENCH_SEGMENTS_H

#include "core/problem.h"

/* Rows of one expert that follow one another. */
typedef struct segments_run {
    int64_t expert;
    int64_t batch;     /* the matrix of A and D that holds them: of masked and grouped_k, else 0 */
    int64_t row, rows; /* in it */
    int64_t k_first;   /* grouped_k: elements of k before the expert's; else 0 */
    int64_t k;
} segments_run;

/* In the order of experts; contiguous: of rows, one for each run of one label. None is without
 * rows. */
typedef struct segments {
    segments_run *run;
    size_t len;
} segments;

/* `groups` is the operand's image. HONE_NO_MEMORY. Caller frees with segments_free. */
hone_status segments_find(const hone_moe_gemm *p, const uint8_t *groups, segments *out,
                          hone_error *error);
void segments_free(segments *s); /* an empty one is fine */

/* Matrices of D (and, but for grouped_k, of A). */
int64_t segments_matrices(const hone_moe_gemm *p);
/* Columns of D. */
int64_t segments_columns(const hone_moe_gemm *p);

#endif
