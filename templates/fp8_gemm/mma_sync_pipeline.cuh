// mma_sync_pipeline.cuh - a tile's K blocks through the ring of shared memory into a CTA's sums,
// and those to D.
#pragma once
#include "fp8_gemm/mma_sync_multiply.cuh"

// The ring of K blocks in shared memory, and what fills it.
template <Config C> struct Pipeline {
    using T = Tile<C>;

    typename T::CopyA copy_a;
    typename T::CopyB copy_b;
    typename T::ScalesA scales_a;
    typename T::ScalesB scales_b;
    u32 ring;          // shared address of the first stage
    float *scales;     // two blocks' scales, behind the stages
    i32 first, blocks; // of K, of this CTA

    __device__ __forceinline__ u32 stage(i32 block) const
    {
        return ring + block % C.stages * T::kStage;
    }

    __device__ __forceinline__ float *slot(i32 block) const
    {
        return scales + block % 2 * T::kScales;
    }

    __device__ __forceinline__ void load(i32 block)
    {
        if (block < blocks) {
            copy_a.load(stage(block), first + block);
            copy_b.load(stage(block) + T::kBytesA, first + block);
        }
        async_commit(); // also when empty: async_wait counts groups
    }

    __device__ __forceinline__ void fetch_scales(i32 block)
    {
        scales_a.fetch(first + block);
        scales_b.fetch(first + block);
    }

    // Of `block`, fetched before; then start on the block after it.
    __device__ __forceinline__ void store_scales(i32 block)
    {
        scales_a.store(slot(block));
        scales_b.store(slot(block) + T::ScalesA::kCount);
        fetch_scales(block + 1);
    }
};

// Where a warp's part of the tile lies.
struct WarpPlace {
    i32 m, n;  // first row and column
    i32 share; // of K
};

template <Config C> __device__ __forceinline__ WarpPlace warp_place()
{
    constexpr i32 kWarps = C.warps_m * C.warps_n;
    const i32 warp = i32(threadIdx.x) / 32, of_sum = C.warps_k == 1 ? warp : warp % kWarps;
    return {of_sum % C.warps_m * (C.block_m / C.warps_m),
            of_sum / C.warps_m * (C.block_n / C.warps_n), C.warps_k == 1 ? 0 : warp / kWarps};
}

// All K blocks of a warp's tile.
template <Config C>
__device__ __forceinline__ void multiply_all(Sums<C> &sum, Pipeline<C> &line, const WarpPlace &warp)
{
    using T = Tile<C>;
    const i32 lane = i32(threadIdx.x) % 32;
    const i32 row = C.swap ? warp.n : warp.m, column = C.swap ? warp.m : warp.n;
    const i32 row_line = T::kRowScales ? row + lane / 4 : row / 16;
    const i32 column_line = T::kColumnScales ? column + lane % 4 * 2 : column / 8;

    if constexpr (C.b_e2m1) {
        line.copy_b.fetch(line.first);
    }
    for (int s = 0; s < C.stages - 1; s++) {
        line.load(s);
    }
    line.fetch_scales(0);
    line.store_scales(0);
    for (i32 block = 0; block < line.blocks; block++) {
        async_wait<C.stages - 2>();
        __syncthreads(); // this block is in place, and all warps are done with the one before
        line.load(block + C.stages - 1);
        line.store_scales(block + 1);
        const u32 a = line.stage(block), b = a + T::kBytesA;
        const float *scales_a = line.slot(block), *scales_b = scales_a + T::ScalesA::kCount;
        const BlockPlace at = {.rows = (C.swap ? b : a) + row * C.block_k,
                               .columns = (C.swap ? a : b) + column * C.block_k,
                               .row_scales = (C.swap ? scales_b : scales_a) + row_line,
                               .column_scales = (C.swap ? scales_a : scales_b) + column_line};
        multiply_block<C>(sum, at, warp.share);
    }
}

// A warp's sums to D; the first element is (row, column). `rows`: which of D's are stored
// (device/output.cuh).
template <Config C, typename T, typename Rows>
__device__ __forceinline__ void store_tile(const Sums<C> &sum, T *d, i64 stride, i32 row,
                                           i32 column, const Rows &rows, i32 n)
{
    if constexpr (C.swap) {
        output_tile_turned<C.align, C.accumulate>(sum, d, stride, row, column, rows, n);
    } else {
        output_tile<C.align, C.accumulate>(sum, d, stride, row, column, rows, n);
    }
}
