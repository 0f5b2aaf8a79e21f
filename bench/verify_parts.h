/* verify_parts.h - inside verify: sums of a comparison, written rectangles, and one function for
 * each op. */
#ifndef HONE_BENCH_VERIFY_PARTS_H
#define HONE_BENCH_VERIFY_PARTS_H

#include "bench/reference.h"
#include "bench/verify.h"

/* Sums over all compared elements, in float64. */
typedef struct verify_sums {
    double dot, got, expected, error; /* sum xy, x^2, y^2, (x-y)^2 */
} verify_sums;

void verify_sums_add(verify_sums *s, double got, double expected);
verify_sums verify_sums_join(const verify_sums *a, const verify_sums *b);
/* Cosine, Frobenius and calc_diff into the result. */
void verify_sums_finish(const verify_sums *s, verify_result *out);

/* Rectangles of written units of [batches, rows, columns]. */
typedef struct verify_cover {
    reference_rect *rect;
    size_t len, capacity;
} verify_cover;

/* Whether any of `columns` units from `column` on was written. Asked for whole rows first, then by
 * unit. */
typedef bool verify_written_fn(const void *context, int64_t batch, int64_t row, int64_t column,
                               int64_t columns);

/* Find the rectangles; equal runs of neighbouring rows join. HONE_NO_MEMORY. */
hone_status verify_cover_find(const reference_rect *whole, int64_t batches,
                              verify_written_fn *written, const void *context, verify_cover *out,
                              hone_error *error);
void verify_cover_free(verify_cover *c);

/* Whether some tile size makes the rectangles exactly `run` tiles of a grid of `total` over batches
 * x rows x columns. */
bool verify_cover_is_tiles(const verify_cover *c, const reference_rect *whole, int64_t batches,
                           uint64_t run, uint64_t total);

/* Whether the rectangles are whole tiles of `cover`, and then how many. */
bool verify_cover_tiles(const verify_cover *c, const reference_rect *whole, const plan_cover *cover,
                        uint64_t *tiles);
/* Whether the rectangles are `tiles` whole tiles of `cover`. */
bool verify_cover_is_made(const verify_cover *c, const reference_rect *whole,
                          const plan_cover *cover, uint64_t tiles);

/* What quantisers share: a raw scale may be one unit off. A scale read back: 1 equal, 0 one unit
 * off where that is allowed, -1 wrong. A code may be one off where its scale's answer was 0. */
bool verify_rule_is_raw(int32_t rule);
int verify_scale_agrees(float got, float expected, bool raw);
bool verify_code_agrees(uint8_t got, uint8_t expected, int scale);

hone_status verify_gemm(const verify_request *r, verify_result *out, hone_error *error);
hone_status verify_moe_gemm(const verify_request *r, verify_result *out, hone_error *error);
hone_status verify_fold(const verify_request *r, verify_result *out, hone_error *error);
hone_status verify_quant(const verify_request *r, verify_result *out, hone_error *error);
hone_status verify_mxfp4_fold(const verify_request *r, verify_result *out, hone_error *error);
hone_status verify_scale_pack(const verify_request *r, verify_result *out, hone_error *error);
hone_status verify_moe_align(const verify_request *r, verify_result *out, hone_error *error);
hone_status verify_moe_combine(const verify_request *r, verify_result *out, hone_error *error);
hone_status verify_topk(const verify_request *r, verify_result *out, hone_error *error);
/* Rows and columns that tiles of an indexer's logits part, when every row has all keys: compressed
 * rows are parted by keys. */
void verify_mqa_size(const hone_problem *problem, int64_t *rows, int64_t *columns);
hone_status verify_mqa(const verify_request *r, verify_result *out, hone_error *error);
hone_status verify_prepare(const verify_request *r, verify_result *out, hone_error *error);
hone_status verify_kv_quant(const verify_request *r, verify_result *out, hone_error *error);
hone_status verify_kv_gather(const verify_request *r, verify_result *out, hone_error *error);

#endif
