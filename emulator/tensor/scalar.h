/* scalar.h - matrix arithmetic one element at a time: every code, every exponent, no
 * shortcuts.
 *
 * The vector kernels hand it what they do not cover (NaN, infinities, extreme exponents). */
#ifndef HONE_EMULATOR_TENSOR_SCALAR_H
#define HONE_EMULATOR_TENSOR_SCALAR_H

#include "emulator/tensor/tensor.h"

/* A binary float format: exponent field above `fraction` bits, sign on top. */
typedef struct tensor_format {
    int32_t bits, fraction, bias;
    bool has_infinity; /* else the all-ones code alone is NaN (e4m3fn) */
} tensor_format;

/* The format of a floating type; `bits` is 0 for the integer types. */
tensor_format tensor_format_of(tensor_type type);

/* A number taken apart: (-1)^negative * significand * 2^(exponent - fraction bits). */
typedef struct tensor_number {
    int32_t exponent; /* fixed at the format's least for subnormals, -126 for zero */
    int32_t significand;
    bool negative, infinite, nan;
} tensor_number;

tensor_number tensor_number_of(uint32_t code, tensor_format format);

/* What a unit gives for every element that a NaN is part of. */
#define TENSOR_NAN 0x7fffffffu
bool tensor_is_nan(uint32_t code, tensor_format format);

/* magnitude * 2^(up - distance), toward zero; magnitude << up fits in 63 bits. */
int64_t tensor_aligned(int64_t magnitude, int32_t up, int32_t distance);
/* sum * 2^exponent as a unit of `mantissa` bits ends a step: toward zero to that many fraction bits
 * and to fp32's least unit, or (TENSOR_HALF) to the nearest f16. What passes the range becomes
 * infinite. */
float tensor_rounded(int64_t sum, int32_t exponent, int32_t mantissa);

#endif
