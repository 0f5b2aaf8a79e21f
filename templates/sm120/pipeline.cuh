// pipeline.cuh - a tile's K blocks through the ring of shared memory into sums, by sm_120's
// block-scaled mma.sync, and those to D.
//
// cp.async fills a ring of `stages` K blocks; warps read them by ldmatrix and multiply with
// block-scaled mma.sync, which applies the scales itself and keeps 25 fraction bits, so that sums
// stay in its accumulator over all of K. `swap`: the instruction's 16 rows are B's, for few rows of
// A. Tails in M, N and K are zeros in shared memory and are not stored.
#pragma once
#include "sm120/tile.cuh"

// A warp's words of scales in shared memory: those of rows from `rows` on, of columns from
// `columns` on. A lane that has none of its own takes another's, which is not used.
template <Config C> struct WarpScales {
    using T = Tile<C>;
    u32 rows[ceil_div(T::kTilesR, 2)], columns[ceil_div(T::kTilesC, 4)];

    __device__ __forceinline__ void load(const u32 *of_rows, const u32 *of_columns)
    {
        const u32 eight = threadIdx.x % 4 * 8 + threadIdx.x % 32 / 4;
#pragma unroll
        for (int i = 0; i < T::kTilesR; i += 2) {
            rows[i / 2] = of_rows[i * 16 + (i + 1 < T::kTilesR ? eight : eight % 16)];
        }
#pragma unroll
        for (int j = 0; j < T::kTilesC; j += 4) {
            columns[j / 4] =
                of_columns[least(T::kTilesC - j, 4) == 4 ? j * 8 + eight
                                                         : min(j * 8 + eight, T::kWarpC - 1u)];
        }
    }
};

// One K block of a warp's tile. `rows` and `columns` are the warp's in shared memory.
template <Config C>
__device__ __forceinline__ void multiply_block(Sums<C> &sum, u32 rows, u32 columns,
                                               const WarpScales<C> &scales)
{
    using T = Tile<C>;
#pragma unroll
    for (int step = 0; step < C.block_k / 32; step++) {
        u32 right[T::kTilesC][2];
        load_eights<C.block_k, T::Columns::kE2m1>(right, columns, step);
#pragma unroll
        for (int i = 0; i < T::kTilesR; i++) {
            u32 left[4];
            load_sixteen<C.block_k, T::Rows::kE2m1>(left, rows + i * 16 * C.block_k, step);
#pragma unroll
            for (int j = 0; j < T::kTilesC; j++) {
                mma_scaled<T::Rows::kE2m1, T::Columns::kE2m1>(
                    sum[i][j], left, right[j],
                    {scales.rows[i / 2], scales.columns[j / 4], u16(i % 2), u16(j % 4), u16(step)});
            }
        }
    }
}

// The ring of K blocks in shared memory, and what fills it.
template <Config C> struct Pipeline {
    using T = Tile<C>;

    typename T::A::Copy copy_a;
    typename T::B::Copy copy_b;
    typename T::A::Scales scales_a;
    typename T::B::Scales scales_b;
    u32 ring;    // shared address of the first stage
    u32 *scales; // two blocks' scales, behind the stages
    i32 first, last;

    __device__ __forceinline__ u32 stage(i32 block) const
    {
        return ring + (block - first) % C.stages * T::kStage;
    }

    __device__ __forceinline__ u32 *slot(i32 block) const
    {
        return scales + block % 2 * T::kWords;
    }

    __device__ __forceinline__ void load(i32 block) const
    {
        if (block < last) {
            copy_a.load(stage(block), block);
            copy_b.load(stage(block) + T::A::kBytes, block);
        }
        async_commit(); // also when empty: async_wait counts groups
    }

    __device__ __forceinline__ void fetch_scales(i32 block)
    {
        scales_a.fetch(block);
        scales_b.fetch(block);
    }

    // Of `block`, fetched before; then start on the block after it.
    __device__ __forceinline__ void store_scales(i32 block)
    {
        scales_a.store(slot(block));
        scales_b.store(slot(block) + T::A::kRows);
        fetch_scales(block + 1);
    }
};

// All K blocks of a warp's tile, its rows and columns from (row, column) of the CTA's on.
template <Config C>
__device__ __forceinline__ void multiply_all(Sums<C> &sum, Pipeline<C> &line, i32 row, i32 column)
{
    using T = Tile<C>;
    constexpr int kRowsAt = C.swap ? T::A::kRows : 0, kColumnsAt = C.swap ? 0 : T::A::kRows;

    for (int s = 0; s < C.stages - 1; s++) {
        line.load(line.first + s);
    }
    line.fetch_scales(line.first);
    line.store_scales(line.first);
    for (i32 block = line.first; block < line.last; block++) {
        async_wait<C.stages - 2>();
        __syncthreads(); // this block is in place, and all warps are done with the one before
        line.load(block + C.stages - 1);
        line.store_scales(block + 1);
        const u32 stage = line.stage(block);
        WarpScales<C> scales;
        scales.load(line.slot(block) + kRowsAt + row, line.slot(block) + kColumnsAt + column);
        multiply_block<C>(sum, stage + (kRowsAt + row) * C.block_k,
                          stage + (kColumnsAt + column) * C.block_k, scales);
    }
}

// A warp's sums to D. Swapped, they are of D transposed and are turned first; of a last m8 tile
// alone, the lower eight rows do not exist.
template <Config C, typename T>
__device__ __forceinline__ void output_sums(const Sums<C> &sum, T *d, i64 stride, i32 row,
                                            i32 column, i32 m, i32 n)
{
    if constexpr (C.swap) {
        using W = Tile<C>;
        float turned[ceil_div(W::kTilesC, 2)][2 * W::kTilesR][4] = {};
        turn_tiles(turned, sum);
        output_tile<C.align, C.accumulate>(turned, d, stride, column, row,
                                           min(m, column + W::kWarpC), n);
    } else {
        output_tile<C.align, C.accumulate>(sum, d, stride, row, column, m, n);
    }
}
