/* checked.h - arithmetic on strangers' numbers: false when the result does not fit. */
#ifndef HONE_CORE_CHECKED_H
#define HONE_CORE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool checked_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool checked_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool checked_add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool checked_sub_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_sub_overflow(a, b, out);
}

static inline bool checked_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* a * b * c, saturated: whoever sees UINT64_MAX at the end refuses the overflow, once. */
static inline uint64_t product_u64(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t ab, abc;

    return checked_mul_u64(a, b, &ab) && checked_mul_u64(ab, c, &abc) ? abc : UINT64_MAX;
}

/* The same of numbers that are not negative. */
static inline uint64_t product_i64(int64_t a, int64_t b, int64_t c)
{
    return product_u64((uint64_t)a, (uint64_t)b, (uint64_t)c);
}

#endif
