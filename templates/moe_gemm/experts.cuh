// experts.cuh - what grouped products by mma.sync share: every CTA takes tiles of one expert in
// turn, and stores their sums to D, as they are or behind an activation.
//
// A persistent grid: every CTA makes the table of experts' blocks of block_m rows
// (device/expert_tiles.cuh) and takes block_m x block_n tiles in turn, so that experts cost by
// their rows and no host is asked. Behind an activation a tile's block_n columns are half gates,
// half ups (device/halves.cuh). A template includes it behind its own Config and Tile.
#pragma once
#include "device/expert_fill.cuh"
#include "device/gated_tile.cuh"
#include "device/raster.cuh"

// Columns of D that B's rows make.
template <Config C> __device__ __forceinline__ i32 columns_of(i32 rows)
{
    return C.activation == PLAIN ? rows : rows / 2;
}

// D, and where its scales are if it is codes.
struct ExpertTarget {
    void *d;
    CodesTarget codes;
    const i32 *labels;
    i32 m, n; // D's rows of a matrix, and columns
};

// This CTA's share of D's rows that no expert has, if they are asked for.
template <Config C>
__device__ __forceinline__ void fill_others(const ExpertGroups &of, const ExpertTarget &to)
{
    if constexpr (C.fill) {
        constexpr i32 kWarps = Tile<C>::kThreads / 32, kWidth = C.out_group > 0 ? 1
                                                                : C.out_f32     ? 4
                                                                                : 2;
        fill_rows<C.layout, C.align>(of, static_cast<u8 *>(to.d), i64(to.n) * kWidth,
                                     i32(blockIdx.x) * kWarps + i32(threadIdx.x) / 32,
                                     i32(gridDim.x) * kWarps);
    }
}

// All tiles of this CTA: `body` of a block and of the tile's first column of D.
template <Config C, typename Body>
__device__ __forceinline__ void each_tile(u32 *table, const ExpertGroups &of, i32 n, Body body)
{
    using Tiles = ExpertTiles<C.layout, C.block_m>;
    const Tiles tiles{table, of};
    if (threadIdx.x < 32) {
        Tiles::make(table, of);
    }
    __syncthreads(); // the table is there
    const i32 blocks = tiles.blocks(), tiles_n = ceil_div(n, C.block_n);
    for (i32 tile = i32(blockIdx.x); tile < blocks * tiles_n; tile += i32(gridDim.x)) {
        const TilePlace place = tile_place<C.raster>(tile, blocks, tiles_n);
        body(tiles.at(place.m), place.n * columns_of<C>(C.block_n));
        __syncthreads(); // all have read what the next tile's stages overwrite
    }
}

// A warp's sums to D, by the whole CTA. (row, column): of D's tile, where the warp's begin; `first`
// is the tile's first column of D. `holds`: of warps that share a tile along K, this one has the
// sum. `ring`: what the tile's stages were.
template <Config C, int TR, int TC>
__device__ __forceinline__ void store_sums(const float (&sum)[TR][TC][4], bool holds, u8 *ring,
                                           const ExpertTarget &to, const ExpertBlock &block,
                                           i32 first, i32 row, i32 column)
{
    using Out = typename ElementOf<C.out_f32 ? F32 : BF16>::Type;
    constexpr bool kGated = C.activation != PLAIN;
    constexpr int kHigh = kGated && C.swap ? TR / 2 : TR, kWide = kGated && !C.swap ? TC / 2 : TC;
    const ExpertRows<C.layout> rows = {to.labels, block.expert, block.end};
    const i64 matrix = i64(block.matrix) * to.m * to.n;
    float v[kHigh][kWide][4];
    if constexpr (kGated) {
        activate_tiles<C.activation, C.swap>(v, sum);
    }
    if constexpr (C.out_group == 0) {
        const auto &made = [&]() -> const float(&)[kHigh][kWide][4] {
            if constexpr (kGated) {
                return v;
            } else {
                return sum;
            }
        }();
        Out *d = static_cast<Out *>(to.d) + matrix;
        if (holds) {
            if constexpr (C.swap) {
                output_tile_turned<C.align, false>(made, d, to.n, block.row + row, first + column,
                                                   rows, to.n);
            } else {
                output_tile<C.align, false>(made, d, to.n, block.row + row, first + column, rows,
                                            to.n);
            }
        }
    } else {
        using Codes = CodesTile<CodesShape{C.block_m, C.block_n / 2, Tile<C>::kThreads, C.out_group,
                                           C.out_rule, C.out_ue8m0, C.out_packed, C.align}>;
        static_assert(Codes::kBytes <= C.stages * Tile<C>::kStage, "D's tile fits in the ring");
        float *tile = reinterpret_cast<float *>(ring);
        __syncthreads(); // all are done with the stages
        if (holds) {
            Codes::template put<C.swap>(tile, v, row, column);
        }
        __syncthreads(); // D's tile is there
        Codes::store(tile, static_cast<u8 *>(to.d) + matrix, to.codes, block.matrix, block.row,
                     first, rows, to.n);
    }
}
