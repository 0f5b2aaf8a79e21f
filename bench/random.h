/* random.h - the seeded generator behind inputs and samples: the same everywhere for a seed
 * (splitmix64). */
#ifndef HONE_BENCH_RANDOM_H
#define HONE_BENCH_RANDOM_H

#include <stdint.h>

/* The next 64 random bits of `*state`. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in (0, 1). */
static inline double random_unit(uint64_t *state)
{
    return ((double)(random_next(state) >> 12) + 0.5) * 0x1p-52;
}

#endif
