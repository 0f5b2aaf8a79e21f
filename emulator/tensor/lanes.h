/* lanes.h - one warp's matrix product in vectors of 16 rows; private to the emulator.
 *
 * The same source (tile.h) is compiled for AVX-512, for AVX2 with FMA and for the baseline.
 */
#ifndef HONE_EMULATOR_TENSOR_LANES_H
#define HONE_EMULATOR_TENSOR_LANES_H

#include "emulator/tensor/tensor.h"

/* False, and d untouched, when an operand is not finite or an exponent too extreme for the lanes:
 * the caller then goes element by element. d may alias c. */
typedef bool tensor_lanes_fn(uint32_t *const d[4], const tensor_call *call);

tensor_lanes_fn tensor_lanes_avx512, tensor_lanes_avx2, tensor_lanes_baseline;

/* The same of tensor_group.h's functions. */
typedef struct tensor_group {
    void (*open_rows)(tensor_rows *r);
    void (*open_columns)(tensor_columns *c);
    bool (*run)(uint32_t *const *d, const tensor_group_call *call);
} tensor_group;

extern const tensor_group tensor_group_avx512, tensor_group_avx2, tensor_group_baseline;

#endif
