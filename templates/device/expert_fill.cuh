// expert_fill.cuh - rows of D that no expert has, made zeros where a launch asks for them. Nobody
// else writes those rows, so that their order is free.
#pragma once
#include "device/expert_tiles.cuh"
#include "device/vector.cuh"

// Whether an expert has row `row` of all matrices. The whole warp asks for the same one.
template <int Layout> __device__ __forceinline__ bool expert_has(const ExpertGroups &of, i64 row)
{
    if constexpr (Layout == GROUPED_ROWS) {
        return u32(of.groups[row]) < u32(of.experts);
    } else if constexpr (Layout == GROUPED_COUNTS) {
        return row % of.m < of.groups[row / of.m];
    } else {
        typename ExpertTiles<Layout, 1>::Spans spans;
        bool has = false;
        for (i32 base = 0; base < of.experts; base += 32) {
            const auto span = spans.next(of, base + i32(threadIdx.x) % 32);
            has = has || (row >= span.first && row < span.end);
        }
        return __any_sync(0xffffffffu, has);
    }
}

// Every `warps`-th row from `first` on, by one whole warp. Rows are `bytes` long, a multiple of
// Align.
template <int Layout, int Align>
__device__ __forceinline__ void fill_rows(const ExpertGroups &of, u8 *d, i64 bytes, i32 first,
                                          i32 warps)
{
    using W = typename Word<least(Align, 16)>::Type;
    const i64 rows = i64(of.m) * (Layout == GROUPED_COUNTS ? of.experts : 1);
#pragma unroll 1
    for (i64 row = first; row < rows; row += warps) {
        if (!expert_has<Layout>(of, row)) {
            W *to = reinterpret_cast<W *>(d + row * bytes);
            for (i64 i = threadIdx.x % 32; i < bytes / i64(sizeof(W)); i += 32) {
                to[i] = W{};
            }
        }
    }
}
