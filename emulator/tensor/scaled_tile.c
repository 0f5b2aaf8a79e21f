/* scaled_tile.c - a row of a product of narrow floats, in the host's vectors. */
#include "emulator/tensor/scaled_tile.h"

#include "emulator/tensor/scalar.h"

#include <string.h>

typedef int32_t row __attribute__((vector_size(4 * SCALED_COLUMNS)));
typedef uint32_t unsigned_row __attribute__((vector_size(4 * SCALED_COLUMNS)));

/* Sums of the aligned products in two halves, which 32 terms of 27 bits cannot overflow, and the
 * exponent that they are aligned to. */
typedef struct row_sum {
    int32_t high[SCALED_COLUMNS], low[SCALED_COLUMNS], most[SCALED_COLUMNS];
} row_sum;

#define INLINE static inline __attribute__((always_inline))

INLINE void sum_row(const scaled_tile *t, uint32_t r, int32_t up, row_sum *sum)
{
    row most, high = {0}, low = {0};

    memcpy(&most, sum->most, sizeof most);
    for (uint32_t k = 0; k < SCALED_DEPTH; k++) {
        row exponent;
        memcpy(&exponent, t->b_exponent[k], sizeof exponent);
        exponent += t->a_exponent[r][k];
        row larger = exponent > most;
        most = (exponent & larger) | (most & ~larger);
    }
    for (uint32_t k = 0; k < SCALED_DEPTH; k++) {
        row product, distance;
        memcpy(&product, t->b[k], sizeof product);
        memcpy(&distance, t->b_exponent[k], sizeof distance);
        product *= t->a[r][k];
        distance = most - (distance + t->a_exponent[r][k]);
        row far = distance > 31, negative = product < 0;
        distance = (distance & ~far) | (31 & far);
        unsigned_row magnitude = (unsigned_row)((product ^ negative) - negative) << up;
        row term = (row)(magnitude >> (unsigned_row)distance); /* toward zero */
        term = (term ^ negative) - negative;
        low += term & 0xffff;
        high += term >> 16;
    }
    memcpy(sum->high, &high, sizeof high);
    memcpy(sum->low, &low, sizeof low);
    memcpy(sum->most, &most, sizeof most);
}

static void sum_row_baseline(const scaled_tile *t, uint32_t r, int32_t up, row_sum *sum)
{
    sum_row(t, r, up, sum);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void sum_row_avx2(const scaled_tile *t, uint32_t r,
                                                         int32_t up, row_sum *sum)
{
    sum_row(t, r, up, sum);
}
#endif

static void sum_row_best(const scaled_tile *t, uint32_t r, int32_t up, row_sum *sum)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        sum_row_avx2(t, r, up, sum);
        return;
    }
#endif
    sum_row_baseline(t, r, up, sum);
}

void scaled_tile_row(const scaled_tile *t, uint32_t r, const float c[SCALED_COLUMNS],
                     float d[SCALED_COLUMNS])
{
    static const tensor_format float32 = {32, 23, 127, true};
    const int32_t up = NARROW_FRACTION - narrow_fraction(t->a_type) - narrow_fraction(t->b_type);
    tensor_number from[SCALED_COLUMNS];
    row_sum sum;

    for (uint32_t n = 0; n < SCALED_COLUMNS; n++) {
        uint32_t bits = 0;
        memcpy(&bits, &c[n], sizeof bits);
        from[n] = tensor_number_of(bits, float32);
        sum.most[n] = from[n].exponent;
    }
    sum_row_best(t, r, up, &sum);
    for (uint32_t n = 0; n < SCALED_COLUMNS; n++) {
        int64_t term = tensor_aligned(from[n].significand, NARROW_FRACTION - float32.fraction,
                                      sum.most[n] - from[n].exponent);
        int64_t all = (int64_t)sum.high[n] * 65536 + sum.low[n] + (from[n].negative ? -term : term);
        d[n] = tensor_rounded(all, sum.most[n] - NARROW_FRACTION, 23);
    }
}
