/* warm.h - rows of a matrix read once in the order of memory, into the second cache. */
#ifndef HONE_CONVERT_WARM_H
#define HONE_CONVERT_WARM_H

#include <stdint.h>

/* A block's rows lie pages apart, which no processor foresees: `rows` rows of `bytes` bytes, those
 * of a band of blocks, are touched before the first of them is worked on. */
static inline void warm_rows(const uint8_t *from, uint64_t stride, uint64_t rows, uint64_t bytes)
{
    uint8_t sum = 0;

    for (uint64_t r = 0; r < rows; r++) {
        const volatile uint8_t *row = from + r * stride;
        for (uint64_t at = 0; at < bytes; at += 64) {
            sum |= row[at];
        }
    }
    (void)sum;
}

#endif
