/* integer.h - what C's division lacks, for numbers that are known to be in range: a >= 0, b > 0. */
#ifndef HONE_CORE_INTEGER_H
#define HONE_CORE_INTEGER_H

#include <stdint.h>

static inline int64_t integer_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static inline uint64_t integer_ceil_div_u64(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

static inline uint64_t integer_least_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The next multiple of `unit`. */
static inline int64_t integer_round_up(int64_t a, int64_t unit)
{
    return integer_ceil_div(a, unit) * unit;
}

static inline int64_t integer_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
