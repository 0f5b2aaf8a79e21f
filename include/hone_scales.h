/* hone_scales.h - scales on the host: packed as codes, and folded into fewer by shifting exponents.
 * Included by hone.h, where the conventions stand. */
#ifndef HONE_SCALES_H
#define HONE_SCALES_H

#include "hone_problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Scales [rows, groups] of f32 on the host as ue8m0 codes for a problem whose scales are ue8m0:
 * exact, or refused. A scale that is no power of two from 2^-127 to 2^127 is HONE_BAD_ARGUMENT with
 * its row, group and value, never rounded: rounding a scale without its payload is another matrix
 * (kernels.md 5.1). `from` is row, col or tma, `to` is row, col or packed; padding of `packed`
 * becomes 2^-127. out holds what hone_operands says of one batch's scales: HONE_LIMIT when
 * `capacity` bytes are too few. The two do not overlap; nothing is written on failure. Thread-safe.
 */
HONE_API hone_status hone_pack_scales(const float *scales, int64_t rows, int64_t groups,
                                      hone_scale_layout from, hone_scale_layout to, uint8_t *out,
                                      uint64_t capacity, hone_error *error);

/* The same for a k-grouped product (kernels.md 1.3, 2.4): scales [sum of ceil(k[e] / gran_k), rows]
 * of f32, rows side by side and the groups of an expert behind those of the one before, as words
 * [sum of ceil(ceil(k[e] / gran_k) / 4), rows] of four ue8m0 bytes, the lowest group first; every
 * expert begins a word, and bytes that no group has are 0 (2^-127). k[e] >= 0 elements, of 0 to 128
 * experts; gran_k is 32 or 128; rows % 4 == 0. HONE_BAD_ARGUMENT names what breaks that, or the
 * group and row of a scale that has no code; HONE_LIMIT when `capacity` bytes are too few, of which
 * *bytes says how many are needed (set whenever the shapes are legal; may be NULL). The two do not
 * overlap; nothing is written to `out` on failure. Thread-safe. */
HONE_API hone_status hone_pack_scales_grouped(const float *scales, int64_t rows, const int64_t *k,
                                              int64_t experts, int32_t gran_k, uint8_t *out,
                                              uint64_t capacity, uint64_t *bytes,
                                              hone_error *error);

/* ---- Folding: scales of 32 of K as scales of 128, by shifting exponents. An opt-in. -----------
 */

/* A matrix [rows, k] of e4m3 codes, row-major, with its scales: as they are (`from`) and as they
 * shall be (`to`). Scales are f32 or ue8m0, of 1, 32 or 128 rows by 32 or 128 of k; those of `to`
 * cover whole ones of `from`. Layouts are row, col, tma (f32) or packed (ue8m0). All is the
 * caller's. */
typedef struct hone_fold_request {
    uint32_t size;       /* sizeof(hone_fold_request) */
    int32_t from_layout; /* hone_scale_layout */
    int32_t to_layout;
    hone_quant from, to; /* element: e4m3 */
    int64_t rows, k;
    const uint8_t *codes; /* rows * k */
    const void *scales;   /* [ceil(rows / from.gran_mn), ceil(k / from.gran_k)] */
    uint8_t *out;         /* rows * k; may be `codes` itself, or overlaps nothing */
    void *out_scales;     /* [ceil(rows / to.gran_mn), ceil(k / to.gran_k)], padding becomes 1.0 */
    uint64_t out_scales_bytes; /* that out_scales holds */
} hone_fold_request;

/* What folding did to a matrix. Errors are against the values before, in float64. */
typedef struct hone_fold_report {
    uint32_t size;  /* sizeof(hone_fold_report); set by the caller */
    int32_t spread; /* most binades that a group of `from` was shifted by */
    uint64_t elements;
    uint64_t inexact; /* elements whose value changed */
    uint64_t nans;    /* elements that are NaN, and stay it; no other figure counts them */
    uint64_t groups, wide_groups;    /* of `from`; of them shifted by more than 3 binades */
    uint64_t blocks, inexact_blocks; /* of `to`; of them with an inexact element */
    double largest;       /* largest error of an element over its block's scale: at most 2^-10 */
    double frobenius;     /* |folded - before| / |before| of the whole matrix */
    double channel;       /* root mean square over the columns k of the same for each column: the
                             error of a product whose other operand makes all columns weigh alike */
    double worst_channel; /* the largest of a column */
} hone_fold_report;

/* Fold: each block of `to` takes the largest of its scales, and the codes of its other groups are
 * shifted down by what theirs was smaller (spec: docs/kernels/fp8_gemm_fold.md). A code keeps its
 * value unless it falls below 2^-6, where it is rounded to nearest even: at most 2^-10 of the
 * block's scale, and nothing saturates. An f32 scale that is no power of two from 2^-127 to 2^127
 * and a scale that is NaN are HONE_BAD_ARGUMENT with their row, group and value; too few
 * out_scales_bytes HONE_LIMIT. On failure nothing is written. Thread-safe. */
HONE_API hone_status hone_fold_scales(const hone_fold_request *request, hone_fold_report *report,
                                      hone_error *error);

/* What an opted-in caller accepts by default of an operand's `channel`: with two such operands a
 * product stays within the gate of proofs (calc_diff 5e-6, 3.2e-3 of its norm). */
#define HONE_FOLD_LIMIT 0x1p-9

/* Whether a folded operand may be served: HONE_LIMIT, with the figures, when report->channel is
 * over `limit` (0: HONE_FOLD_LIMIT). The error of a product is at most about
 * sqrt(a.channel^2 + b.channel^2) of its norm while neither operand's scale favours few columns. */
HONE_API hone_status hone_fold_accept(const hone_fold_report *report, double limit,
                                      hone_error *error);

/* What is folded of a problem. */
typedef enum hone_fold_mode {
    HONE_FOLD_K = 1,     /* both operands along K, to 128: A 1x128, B 1x128 or 32x128 */
    HONE_FOLD_BLOCK = 2, /* the same, and B to 128x128 */
    HONE_FOLD_N = 3,     /* B alone, of 32x32 to 128x32: still exact products of 32, fewer scales */
} hone_fold_mode;

/* The problem that a folded one is: an fp8_gemm of e4m3 with ue8m0 scales of which some cover 32,
 * asked for again with those scales that hone_fold_scales (and for A the op `fold`) makes. It is
 * tuned, prepared and looked up as any other. The caller folds the operands and judges the reports.
 * HONE_BAD_PROBLEM for f32 scales, which need not be powers of two (pack them first), for a B of
 * e2m1, and where there is nothing to fold. Thread-safe. */
HONE_API hone_status hone_fold_problem(const hone_problem *problem, hone_fold_mode mode,
                                       hone_problem *out, hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
