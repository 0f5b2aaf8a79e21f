/* inputs_parts.h - inside inputs: what fills one operand. */
#ifndef HONE_BENCH_INPUTS_PARTS_H
#define HONE_BENCH_INPUTS_PARTS_H

#include "bench/routing.h"

#include <stdbool.h>

typedef enum inputs_rule { INPUTS_KEEP, INPUTS_ZERO } inputs_rule;

/* A matrix of e4m3 or e2m1 with its scales: where elements and scales lie. */
typedef struct inputs_matrix {
    int64_t rows, k, batch;
    int64_t row_stride, batch_stride; /* elements */
    hone_quant quant;
    hone_scale_layout scale_layout;
    int64_t scale_rows, scale_groups; /* of one scale matrix */
    int64_t scale_batch; /* bytes from one batch's scale matrix to the next; 0: side by side */
    int64_t groups;      /* of one batch */
    uint8_t *payload, *scales;
    int exponent; /* magnitudes are about 2^exponent */
    /* INPUTS_HOLES: these rows are 0 in these columns, and every `one_signed`-th row has no
     * negative value. No rows: no hole. */
    int64_t hole_row, hole_rows, hole_column, hole_columns, one_signed;
} inputs_matrix;

hone_status inputs_fill_quantised(const inputs_matrix *m, inputs_kind kind, uint64_t seed,
                                  hone_error *error);

/* What INPUTS_HOLES leaves out. */
void inputs_place_hole(inputs_matrix *m, bool is_a);

/* With a routing INPUTS_ROUTE_OF_KIND the kind's. */
hone_status inputs_fill_moe_gemm(const hone_moe_gemm *p, inputs_kind kind, inputs_routing routes,
                                 uint64_t seed, inputs *in, hone_error *error);

/* Other padding, in place: see inputs_repad. Images 0 and 1 may be written. */
hone_status inputs_repad_moe_gemm(const hone_moe_gemm *p, inputs *in, hone_error *error);
hone_status inputs_repad_kv_quant(const hone_kv_quant *p, inputs *in, hone_error *error);
void inputs_repad_prepare(const hone_index_prepare *p, inputs *in);
hone_status inputs_repad_kv_gather(const hone_kv_gather *p, inputs *in, hone_error *error);

/* Rows of plain floats of `dtype` for the quantisers to read: `count` elements, drawn in groups of
 * `group`. */
hone_status inputs_fill_plain(hone_dtype dtype, uint64_t count, uint32_t group, inputs_kind kind,
                              uint64_t seed, uint8_t *out, hone_error *error);

/* Operands of the KV ops, on images that hold poison. */
hone_status inputs_fill_kv_quant(const hone_kv_quant *p, inputs_kind kind, uint64_t seed,
                                 inputs *in, hone_error *error);
hone_status inputs_fill_kv_gather(const hone_kv_gather *p, inputs_kind kind, uint64_t seed,
                                  inputs *in, hone_error *error);

hone_status inputs_fill_prepare(const hone_index_prepare *p, inputs_kind kind, uint64_t seed,
                                inputs *in, hone_error *error);

/* Scales, and the sizes of experts. */
void inputs_fill_scale_pack(const hone_scale_pack *p, inputs_kind kind, uint64_t seed, inputs *in);

/* What routers choose, on poison of the kind's own, since 0xff is -1, which padding is. */
void inputs_fill_moe_align(const hone_moe_align *p, inputs_kind kind, uint64_t seed, inputs *in);

/* Experts' rows, of which a token names some. HONE_NO_MEMORY. */
hone_status inputs_fill_moe_combine(const hone_moe_combine *p, inputs_kind kind, uint64_t seed,
                                    inputs *in, hone_error *error);

/* Scores, bounds and lists of blocks. What lies outside of bounds is +inf. */
void inputs_fill_topk(const hone_topk *p, inputs_kind kind, uint64_t seed, inputs *in);

/* Queries, keys, weights and bounds. What no row reads is NaN, or the largest there is. */
hone_status inputs_fill_mqa(const hone_mqa_logits *p, inputs_kind kind, uint64_t seed, inputs *in,
                            hone_error *error);
hone_status inputs_fill_mqa_paged(const hone_mqa_logits_paged *p, inputs_kind kind, uint64_t seed,
                                  inputs *in, hone_error *error);

/* A normal variate. */
float inputs_normal(uint64_t *state);

#endif
