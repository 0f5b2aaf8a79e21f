/* verify_moe_parts.h - inside verify: a grouped product that is being compared. */
#ifndef HONE_BENCH_VERIFY_MOE_PARTS_H
#define HONE_BENCH_VERIFY_MOE_PARTS_H

#include "bench/segments.h"
#include "bench/verify_product.h"

typedef struct verify_moe {
    const hone_moe_gemm *p;
    const verify_request *request;
    segments runs;
    int64_t columns; /* of D */
    verify_product d;
    double tile[4][REFERENCE_TILE * REFERENCE_TILE]; /* value, magnitude; of ups */
} verify_moe;

/* The place of an element in D. */
uint64_t verify_moe_index(const verify_moe *g, int64_t batch, int64_t row, int64_t column);

/* A tile behind an activation, D quantised or not. */
hone_status verify_moe_gated(verify_moe *g, const segments_run *run, const reference_rect *tile,
                             verify_result *out, hone_error *error);

/* Scales of a row that no expert has are as they were. */
void verify_moe_scales_kept(const verify_moe *g, int64_t batch, int64_t row, verify_result *out);

#endif
