/* float_reference.h - floating-point operations in integers: exact sums, quotients and roots,
 * rounded once. Nothing of the host's floating point takes part. */
#ifndef HONE_TESTS_EMULATOR_FLOAT_REFERENCE_H
#define HONE_TESTS_EMULATOR_FLOAT_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

/* A format: bits in all, of the fraction, and the exponent's bias. */
typedef struct float_format {
    int bits, fraction, bias;
} float_format;
extern const float_format float_f16, float_bf16, float_f32, float_f64;

typedef enum float_rounding { FLOAT_RN, FLOAT_RZ, FLOAT_RM, FLOAT_RP } float_rounding;

/* A code taken apart: +-significand * 2^exponent. */
typedef struct float_number {
    bool negative, infinite, nan;
    uint64_t significand;
    int exponent;
} float_number;
float_number float_open(const float_format *f, uint64_t code);

/* Codes of the results; of a NaN the format's canonical one, all ones but for the sign. */
uint64_t float_fma(const float_format *f, uint64_t a, uint64_t b, uint64_t c, float_rounding way);
uint64_t float_add(const float_format *f, uint64_t a, uint64_t b, float_rounding way);
uint64_t float_multiply(const float_format *f, uint64_t a, uint64_t b, float_rounding way);
uint64_t float_divide(const float_format *f, uint64_t a, uint64_t b, float_rounding way);
uint64_t float_root(const float_format *f, uint64_t a, float_rounding way);
uint64_t float_convert(const float_format *to, const float_format *from, uint64_t a,
                       float_rounding way);

/* To a whole number of the same format. */
uint64_t float_integral(const float_format *f, uint64_t a, float_rounding way);

uint64_t float_nan(const float_format *f);
bool float_is_nan(const float_format *f, uint64_t code);
/* A subnormal as the zero of its sign; other codes as they are. */
uint64_t float_flushed(const float_format *f, uint64_t code);
/* -1, 0, 1; zeros are equal. No NaN. */
int float_order(const float_format *f, uint64_t a, uint64_t b);

#endif
