// codes.cuh - where a product that makes e4m3 of D puts the scales.
#pragma once
#include "device/quantise.cuh"
#include "device/scale_layout.cuh"

// What a launch says of D's scales: strides as scale_layout.cuh says, from matrix to matrix too.
struct CodesTarget {
    void *scale;
    i64 scale_row, scale_group, scale_matrix;

    // The scale of a row's group, of `groups`. A row's last word of packed scales is whole.
    template <bool Ue8m0, bool Packed>
    __device__ __forceinline__ void store(i32 matrix, i32 row, i32 group, i32 groups, float s) const
    {
        const i64 at =
            matrix * scale_matrix + scale_offset<Packed>(row, group, scale_row, scale_group);
        store_scale<Ue8m0>(scale, at, s);
        if constexpr (Packed) {
            for (i32 pad = group + 1; group + 1 == groups && pad % 4 != 0; pad++) {
                store_scale<Ue8m0>(scale, at + pad - group, 1.0f);
            }
        }
    }
};
