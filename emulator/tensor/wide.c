/* wide.c - exact sums of floats in fixed point. */
#include "emulator/tensor/wide.h"

#include <math.h>
#include <stddef.h>

void tensor_wide_add(tensor_wide *sum, uint64_t magnitude, int32_t exponent, bool negative)
{
    uint32_t place = 0;
    unsigned __int128 carry = 0, shifted = 0;

    if (magnitude == 0) {
        return;
    }
    place = (uint32_t)(exponent - TENSOR_WIDE_UNIT);
    shifted = (unsigned __int128)magnitude << (place % 64);
    carry = negative ? 1 : 0; /* minus x is not(x) + 1 */
    for (size_t i = 0; i < TENSOR_WIDE_LIMBS; i++) {
        uint64_t word = i == place / 64       ? (uint64_t)shifted
                        : i == place / 64 + 1 ? (uint64_t)(shifted >> 64)
                                              : 0;
        carry += (unsigned __int128)sum->limb[i] + (negative ? ~word : word);
        sum->limb[i] = (uint64_t)carry;
        carry >>= 64;
    }
}

/* The magnitude in `value`; true when the sum is negative. */
static bool wide_magnitude(const tensor_wide *sum, tensor_wide *value)
{
    bool negative = sum->limb[TENSOR_WIDE_LIMBS - 1] >> 63 != 0;
    unsigned __int128 carry = negative ? 1 : 0;

    for (size_t i = 0; i < TENSOR_WIDE_LIMBS; i++) {
        carry += negative ? ~sum->limb[i] : sum->limb[i];
        value->limb[i] = (uint64_t)carry;
        carry >>= 64;
    }
    return negative;
}

double tensor_wide_odd(const tensor_wide *sum)
{
    tensor_wide value = {{0}};
    bool negative = wide_magnitude(sum, &value), sticky = false;
    int32_t top = TENSOR_WIDE_LIMBS - 1, shift = 0;
    uint64_t high = 0, low = 0;
    double odd = 0.0;

    while (top >= 0 && value.limb[top] == 0) {
        top--;
    }
    if (top < 0) {
        return 0.0;
    }
    for (int32_t i = 0; i + 1 < top; i++) {
        sticky = sticky || value.limb[i] != 0;
    }
    low = top > 0 ? value.limb[top - 1] : 0;
    high = value.limb[top];
    shift = __builtin_clzll(high);
    if (shift > 0) {
        high = high << shift | low >> (64 - shift);
        low <<= shift;
    }
    sticky = sticky || low != 0 || (high & 0x7ff) != 0;
    high = (high & ~(uint64_t)0x7ff) | (sticky ? 0x800 : 0);
    odd = ldexp((double)high, TENSOR_WIDE_UNIT + 64 * top - shift);
    return negative ? -odd : odd;
}
