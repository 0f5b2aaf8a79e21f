/* verify_product.h - inside verify: elements of a D against float64, each by its bound and all of
 * them as a whole. */
#ifndef HONE_BENCH_VERIFY_PRODUCT_H
#define HONE_BENCH_VERIFY_PRODUCT_H

#include "bench/verify_parts.h"

/* Elements whose products nearly all have one sign, where cut bits add up, and those whose products
 * cancel. The former are much larger and would hide what the latter lost, so both must pass the
 * gate; fewer than PART_LEAST can be unlucky, and so can more of which few outweigh the rest: right
 * rounding to bf16 alone gives an element up to 2^-17, which is above the gate, and is added to it
 * where all elements are so few. */
typedef enum verify_part { VERIFY_CANCELS, VERIFY_ONE_SIGN, VERIFY_PARTS } verify_part;

/* A D that is being compared, and the sums so far. */
typedef struct verify_product {
    const char *name; /* of the operand; static */
    hone_dtype out;
    uint64_t width; /* bytes of an element */
    const uint8_t *before, *after;
    bool accumulate;
    double unit;      /* c * u of the element bound */
    double gate;      /* of the whole */
    uint64_t telling; /* compared elements that a kernel which writes 0, or nothing, gets wrong */
    verify_sums sums[VERIFY_PARTS];
    uint64_t len[VERIFY_PARTS];
    double squares[VERIFY_PARTS], fourths[VERIFY_PARTS]; /* powers of what is expected */
    double worst[VERIFY_PARTS];                          /* the largest (x - y)^2 */
    double allowed[VERIFY_PARTS]; /* of codes: what the sum of the others may be */
} verify_product;

/* `operand` is D's number. */
verify_product verify_product_of(const verify_request *r, size_t operand, int32_t out,
                                 bool accumulate);

/* One element, `at` its batch, row and column (for the reason) and `index` its place in D: within
 * `slack` (an error in the product; unit * magnitude of a plain one) and one unit of the output. */
void verify_product_element(verify_product *g, const int64_t at[3], uint64_t index, double expected,
                            double magnitude, double slack, verify_result *out);

/* To the whole alone. */
void verify_product_add(verify_product *g, verify_part of, double got, double expected);

/* The figures of the whole into *out, failed when they are over the gate. */
void verify_product_finish(const verify_product *g, verify_result *out);

/* Whether `columns` elements from `index` on differ from what they were. */
bool verify_product_changed(const verify_product *g, uint64_t index, int64_t columns);

#endif
