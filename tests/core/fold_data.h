/* fold_data.h - the data on which folding is judged: matrices of e4m3 with ue8m0 scales, drawn as
 * activations and weights of several characters are. */
#ifndef HONE_TESTS_CORE_FOLD_DATA_H
#define HONE_TESTS_CORE_FOLD_DATA_H

#include "include/hone.h"

#include <stdbool.h>

/* Every column k of A has a scale, and of B; all are drawn anew for a seed. */
typedef enum fold_kind {
    FOLD_NORMAL,      /* all columns alike */
    FOLD_CHANNELS,    /* log-normal column scales, sigma 0.7 */
    FOLD_OUTLIERS,    /* sigma 1.2, and one column in 128 of A 60 times as large */
    FOLD_SWIGLU,      /* A = silu(x) * y of columns with sigma 0.7; B with sigma 0.7 */
    FOLD_ADVERSARIAL, /* A as OUTLIERS with 200; each column of B by as much smaller */
    FOLD_KINDS
} fold_kind;

extern const char *const fold_kind_names[FOLD_KINDS];

/* A matrix, quantised by pow2_amax. Owned; freed by fold_matrix_free. */
typedef struct fold_matrix {
    int64_t rows, k;
    int32_t gran_mn, gran_k;
    float *plain;    /* before it was quantised */
    uint8_t *codes;  /* rows x k */
    uint8_t *scales; /* row layout */
} fold_matrix;

/* A [rows, k] (gran_mn 1) or B of the kind; both of one kind and seed have the columns' scales that
 * belong together. Aborts when there is no memory. */
fold_matrix fold_matrix_make(fold_kind kind, bool is_a, int64_t rows, int64_t k, int32_t gran_mn,
                             uint64_t seed);
void fold_matrix_free(fold_matrix *m);

/* The value that a code and its scale of `gran` stand for. */
double fold_value(const uint8_t *codes, const uint8_t *scales, int64_t k, int32_t gran_mn,
                  int32_t gran_k, int64_t row, int64_t column);

#endif
