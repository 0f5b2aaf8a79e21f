/* verify_quant_parts.h - inside verify_quant: blocks of q that share a scale, and where they lie.
 */
#ifndef HONE_BENCH_VERIFY_QUANT_PARTS_H
#define HONE_BENCH_VERIFY_QUANT_PARTS_H

#include "bench/verify_parts.h"

/* q [matrices, rows, k] of e4m3 after a launch, and a matrix of scales for each. */
typedef struct quant_view {
    const verify_request *request;
    const uint8_t *q, *scales;
    int64_t matrices, rows, k;
    int64_t block_rows, block_k; /* elements that share a scale; fewer at the edges */
    hone_dtype scale;
    hone_scale_layout layout;
    int32_t rule;
    int64_t scale_rows, groups; /* of a matrix of scales, and with its padding: */
    int64_t rows_padded, groups_padded;
    uint64_t scale_bytes; /* of one scale */
    size_t special;       /* operand that counts what became NaN; 0: none */
} quant_view;

typedef struct quant_block {
    int64_t matrix, row, group; /* of the scales */
} quant_block;

/* Elements of a block, within its matrix. */
typedef struct quant_rect {
    int64_t row, rows, column, columns;
} quant_rect;

quant_rect quant_rect_of(const quant_view *v, const quant_block *b);
float quant_scale_got(const quant_view *v, const quant_block *b);
const uint8_t *quant_codes_got(const quant_view *v, const quant_block *b, int64_t row);

/* What a group's values may be: exact ones and how far off, and of those that are finite the least
 * and the greatest largest magnitude, which verify_interval_close works out. */
typedef struct verify_interval {
    double value[REFERENCE_TILE], bound[REFERENCE_TILE];
    double amax_low, amax_high;
} verify_interval;

void verify_interval_close(verify_interval *g, int32_t len);
/* Whether a scale, or a code under a scale, is one of values in it. */
bool verify_interval_scale(const verify_interval *g, int32_t rule, float got);
bool verify_interval_code(uint8_t got, double value, double bound, float scale);

/* A group of act_quant behind a gate: scale and codes must be those of some values within what fp32
 * may make of the exact ones. */
void verify_gated(const quant_view *v, const quant_block *b, verify_result *out);

#endif
