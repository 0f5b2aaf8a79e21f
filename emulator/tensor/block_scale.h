/* block_scale.h - the matrix product of narrow floats with a scale for each block of k: mma.sync's
 * kinds of sm_120 (emulator.md 5.7, 5.9; kernels.md 6.2).
 *
 * Without scales, and with one for 32 elements, a step aligns all products (scale exponents added)
 * to the largest exponent and keeps 25 fraction bits. With 64 elements of four bits, sums of 16
 * products are exact, get their scales, and are then aligned: 35 bits. Both end toward zero in
 * fp32. */
#ifndef HONE_EMULATOR_TENSOR_BLOCK_SCALE_H
#define HONE_EMULATOR_TENSOR_BLOCK_SCALE_H

#include "emulator/tensor/tensor.h"

typedef enum narrow_type {
    NARROW_E4M3,
    NARROW_E5M2,
    NARROW_E3M2,
    NARROW_E2M3,
    NARROW_E2M1,
    NARROW_UE8M0, /* scales only */
    NARROW_UE4M3,
} narrow_type;

/* A number taken apart: significand * 2^(exponent - fraction of its type). */
typedef struct narrow_number {
    int32_t significand, exponent; /* exponent -126 for zero */
    bool infinite, nan;
} narrow_number;
narrow_number narrow_number_of(uint32_t code, narrow_type type);
/* The same of every code of a type below 256, one after the other; static. Thread-safe. */
const narrow_number *narrow_numbers(narrow_type type);
int32_t narrow_fraction(narrow_type type); /* fraction bits of a significand */

enum {
    NARROW_DEPTH = 64,
    NARROW_SCALES = 4,
    NARROW_FRACTION = 25, /* bits kept of products that are aligned one by one */
};
/* One element of a product: a and b hold `len` codes (32 or 64), the scales `scales` codes each (0:
 * none), each for len / scales elements. */
typedef struct narrow_dot {
    narrow_type a_type, b_type, scale_type;
    uint32_t len, scales;
    narrow_number a[NARROW_DEPTH], b[NARROW_DEPTH];
    narrow_number a_scale[NARROW_SCALES], b_scale[NARROW_SCALES];
    bool half; /* c and the result are f16 */
    hone_emu_arithmetic mode;
} narrow_dot;

float narrow_run(const narrow_dot *n, float c);

#endif
