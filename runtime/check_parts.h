/* check_parts.h - inside check_values: reading operands, and quantised matrices. */
#ifndef HONE_RUNTIME_CHECK_PARTS_H
#define HONE_RUNTIME_CHECK_PARTS_H

#include "runtime/check_values.h"

enum { CHECK_CHUNK_BYTES = 1 << 22 };

typedef struct checker {
    const check_request *r;
    uint8_t *chunk; /* CHECK_CHUNK_BYTES */
} checker;

/* The next bytes of an operand from `offset` on into the chunk; *len of them. */
hone_status check_fetch_chunk(const checker *c, size_t operand, uint64_t offset, uint64_t *len,
                              hone_error *error);

/* A quantised matrix of an op: [batch, rows, k], or inner [rows, batch, k], and its scales. */
typedef struct check_matrix {
    size_t codes, scales; /* operands */
    hone_quant quant;
    hone_scale_layout layout;
    int64_t batch, rows, k;
    bool inner;          /* the batches' groups lie side by side in one matrix of scales */
    const uint8_t *read; /* a bit for each row of each batch: others hold anything; NULL: all are
                            read */
} check_matrix;

hone_status check_quantised(const checker *c, const check_matrix *q, hone_error *error);

/* Groups first, then codes and scales of rows that have an expert. */
hone_status check_moe_gemm(const checker *c, hone_error *error);
/* Experts that tokens chose; places of their rows, and the weights of those that are read. */
hone_status check_moe_align(const checker *c, hone_error *error);
hone_status check_moe_combine(const checker *c, hone_error *error);
/* How many rows experts have, and entries that rows are gathered from; not the values of x. */
hone_status check_act_quant(const checker *c, hone_error *error);

#endif
