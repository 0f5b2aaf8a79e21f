/* wide.h - an exact sum of floats: 640 bits of fixed point, least unit 2^-300.
 *
 * Wide enough for 2^20 products of any two bf16 numbers: |product| < 2^257, least unit 2^-266. */
#ifndef HONE_EMULATOR_TENSOR_WIDE_H
#define HONE_EMULATOR_TENSOR_WIDE_H

#include <stdbool.h>
#include <stdint.h>

#define TENSOR_WIDE_LIMBS 10
#define TENSOR_WIDE_UNIT  (-300)

typedef struct tensor_wide {
    uint64_t limb[TENSOR_WIDE_LIMBS]; /* two's complement, least first */
} tensor_wide;

/* sum += magnitude * 2^exponent, or -=. exponent in [-300, 276]. */
void tensor_wide_add(tensor_wide *sum, uint64_t magnitude, int32_t exponent, bool negative);

/* The sum in a double whose last bit is set when it is not exact: rounded on to fp32 or f16, it
 * gives what the whole sum does. */
double tensor_wide_odd(const tensor_wide *sum);

#endif
