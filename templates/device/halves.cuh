// halves.cuh - an operand whose first half of rows are gates and whose second are ups, in a tile
// that has both: `Half` gates, the ups beside them, the next gates, so that one warp has both of an
// element of D. Half 0: an operand that has no halves.
#pragma once
#include "device/types.cuh"

// A tile's row among the gates, or the ups.
template <int Half> __device__ __forceinline__ i32 half_row(i32 row)
{
    return Half == 0 ? row : row / (2 * Half) * Half + row % Half;
}

// How many rows beyond that it lies: `jump` of an up.
template <int Half> __device__ __forceinline__ i32 half_jump(i32 row, i32 jump)
{
    return Half != 0 && row / Half % 2 == 1 ? jump : 0;
}
