/* random.h - the one seeded generator (splitmix64): the same numbers everywhere for a seed. */
#ifndef HONE_CORE_RANDOM_H
#define HONE_CORE_RANDOM_H

#include <stdint.h>

/* The next 64 random bits of `*state`. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform below `len` > 0: the few numbers that would favour some results are drawn again. */
static inline uint64_t random_below(uint64_t *state, uint64_t len)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % len, x = random_next(state);

    while (x >= limit) {
        x = random_next(state);
    }
    return x % len;
}

/* Uniform in (0, 1). */
static inline double random_unit(uint64_t *state)
{
    return ((double)(random_next(state) >> 12) + 0.5) * 0x1p-52;
}

#endif
