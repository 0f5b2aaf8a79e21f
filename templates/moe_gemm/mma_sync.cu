// mma_sync.cu - D[r,n] = sum over k of A[r,k] * SFA * B[e,n,k] * SFB, e the expert of row r, e4m3
// operands, bf16 or fp32 D. Rows without an expert are not written.
//
// A persistent grid: every CTA makes the table of experts' blocks of block_m rows
// (device/expert_tiles.cuh) and takes block_m x block_n tiles in turn, so that experts cost by
// their rows and no host is asked. A tile is one expert's; its products are fp8_gemm/mma_sync's.
// Domains and launch: mma_sync.yaml.
#include "device/expert_tiles.cuh"
#include "fp8_gemm/mma_sync_parts.cuh"
#include "fp8_gemm/mma_sync_pipeline.cuh"

// What every tile of a launch has in common. Strides are in elements; `matrix`: of A's scales from
// one matrix to the next (masked), `expert`: of B's.
struct Operands {
    const u8 *a, *b;
    const void *a_scale, *b_scale;
    i32 n, k;
    i64 a_scale_row, a_scale_group, a_scale_matrix, b_scale_row, b_scale_group, b_scale_expert;
};

// The K blocks of an expert's tile. `ring` holds the stages and behind them the scales.
template <Config C>
__device__ __forceinline__ Pipeline<C> pipeline_of(const Operands &o, const ExpertBlock &block,
                                                   i32 m, i32 n0, u8 *ring)
{
    using T = Tile<C>;
    return {
        .copy_a = {o.a + (i64(block.matrix) * m + block.row) * o.k, o.k, block.end - block.row,
                   o.k},
        .copy_b = {o.b + (i64(block.expert) * o.n + n0) * o.k, o.k, o.n - n0, o.k},
        .scales_a = {.base = o.a_scale,
                     .first = block.matrix * o.a_scale_matrix,
                     .row_stride = o.a_scale_row,
                     .group_stride = o.a_scale_group,
                     .first_row = block.row,
                     .rows = block.end,
                     .groups = ceil_div(o.k, C.a_gran_k)},
        .scales_b = {.base = o.b_scale,
                     .first = block.expert * o.b_scale_expert,
                     .row_stride = o.b_scale_row,
                     .group_stride = o.b_scale_group,
                     .first_row = n0,
                     .rows = o.n,
                     .groups = ceil_div(o.k, C.b_gran_k)},
        .ring = shared_address(ring),
        .scales = reinterpret_cast<float *>(ring + C.stages * T::kStage),
        .first = 0,
        .blocks = ceil_div(o.k, C.block_k),
    };
}

template <Config C>
__global__ void __launch_bounds__(Tile<C>::kThreads, C.residency)
    moe_gemm_mma_sync(const u8 *__restrict__ a, const void *__restrict__ a_scale,
                      const u8 *__restrict__ b, const void *__restrict__ b_scale,
                      const i32 *__restrict__ groups, void *d, i32 m, i32 n, i32 k, i32 experts,
                      i32 row_align, i64 a_scale_row, i64 a_scale_group, i64 a_scale_matrix,
                      i64 b_scale_row, i64 b_scale_group, i64 b_scale_expert)
{
    using T = Tile<C>;
    using Out = typename ElementOf<C.out_f32 ? F32 : BF16>::Type;
    using Tiles = ExpertTiles<C.layout, C.block_m>;
    extern __shared__ __align__(128) u8 shared[];
    u32 *table = reinterpret_cast<u32 *>(shared + C.stages * T::kStage + 2 * 4 * T::kScales);
    const Tiles tiles{table, {groups, m, experts, row_align}};
    if (threadIdx.x < 32) {
        Tiles::make(table, tiles.of);
    }
    __syncthreads(); // the table is there
    const Operands all = {a,
                          b,
                          a_scale,
                          b_scale,
                          n,
                          k,
                          a_scale_row,
                          a_scale_group,
                          a_scale_matrix,
                          b_scale_row,
                          b_scale_group,
                          b_scale_expert};
    const i32 blocks = tiles.blocks(), tiles_n = ceil_div(n, C.block_n);
    const WarpPlace warp = warp_place<C>();
    for (i32 tile = i32(blockIdx.x); tile < blocks * tiles_n; tile += i32(gridDim.x)) {
        i32 index, tile_n;
        tile_place<C>(tile, blocks, tiles_n, &index, &tile_n);
        const ExpertBlock block = tiles.at(index);
        Pipeline<C> line = pipeline_of<C>(all, block, m, tile_n * C.block_n, shared);
        Sums<C> sum = {};
        multiply_all<C>(sum, line, warp);
        if (add_all<C>(sum, shared, nullptr, nullptr, 0)) {
            const ExpertRows<C.layout> rows = {groups, block.expert, block.end};
            store_tile<C>(sum, static_cast<Out *>(d) + i64(block.matrix) * m * n, n,
                          block.row + warp.m, tile_n * C.block_n + warp.n, rows, n);
        }
        __syncthreads(); // all have read what the next tile's stages overwrite
    }
}
