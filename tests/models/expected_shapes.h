/* expected_shapes.h - a table of matrices that derivation must give. */
#ifndef HONE_TESTS_EXPECTED_SHAPES_H
#define HONE_TESTS_EXPECTED_SHAPES_H

#include <stddef.h>
#include <stdint.h>

typedef struct expected_shape {
    const char *model, *use, *split;
    int32_t layers;
    struct {
        int64_t n, k, batch;
    } at[3]; /* TP 1, 4, 8 */
} expected_shape;

extern const expected_shape expected_shapes[];
extern const size_t expected_shapes_len;

#endif
