// scale_layout.cuh - where scale (row, group) lies: row, col and tma layouts by two strides, packed
// ue8m0 by words.
//
// Strides are in elements (bytes for ue8m0) and come from the manifest: row layout (groups, 1), col
// (1, rows), tma (1, round_up(rows, 4)), packed (4, 4 * round_up(rows, 4)) with four groups in a
// word, lowest group first.
#pragma once
#include "device/types.cuh"

template <bool Packed>
__device__ __forceinline__ i64 scale_offset(i64 row, i64 group, i64 row_stride, i64 group_stride)
{
    if constexpr (Packed) {
        return row * row_stride + (group >> 2) * group_stride + (group & 3);
    } else {
        return row * row_stride + group * group_stride;
    }
}
