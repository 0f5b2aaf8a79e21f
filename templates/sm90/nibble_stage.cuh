// nibble_stage.cuh - a stage of a Hopper product whose rows are e2m1, as a warpgroup that
// multiplies sees it: rows are codes in shared memory, and registers where wgmma takes them from.
//
// A stage's rows are 64 bytes, as a tensor map with swizzle 64 leaves them.
#pragma once
#include "sm90/multiply.cuh"

// What a stage's products and promotions need.
template <Config C> struct NibbleStage {
    using T = Tile<C>;
    u32 row_slot, column_slot; // shared addresses
    i32 row;
    u64 columns;

    static __device__ __forceinline__ NibbleStage make(const Multiplier<C> &m)
    {
        NibbleStage s;
        s.row_slot = m.slot(T::RowScales::kBytes);
        s.row = m.row;
        s.column_slot = m.slot(T::ColumnScales::kBytes) + m.column * 4;
        s.columns = m.columns();
        return s;
    }

    // One wgmma: 32 of K for a chunk of columns.
    template <bool Accumulate>
    __device__ __forceinline__ void multiply(Part<C> &part, const u32 (&a)[4], int chunk,
                                             int step) const
    {
        wgmma_multiply<Accumulate>(part, a, columns + ((chunk * C.chunk * 128 + step * 32) >> 4));
    }

    // Where the columns' scales for that 32 of K lie.
    __device__ __forceinline__ u32 column_scales(int step) const
    {
        const int column_group = step * 32 / T::kColumnScales.gran_k;
        return column_slot + column_group * T::kColumnScales.lines * 4;
    }

    // The products of an interval that begins with that step.
    template <int Groups>
    __device__ __forceinline__ void add(Sums<C> &sum, const Part<C> &part,
                                        const RowScales<C, Groups> &scales, int tile, int chunk,
                                        int step) const
    {
        const int row_group = step * Groups / 4;
        promote<C>(sum[tile][chunk], part, scales.upper[tile][row_group],
                   scales.lower[tile][row_group], nullptr, column_scales(step), chunk);
    }
};
