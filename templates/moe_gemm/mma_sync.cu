// mma_sync.cu - D[r,n] = sum over k of A[r,k] * SFA * B[e,n,k] * SFB, e the expert of row r, A of
// e4m3, B of e4m3 or e2m1; D bf16 or fp32, or behind an activation of gates and ups also e4m3 with
// scales. Rows without an expert are not written.
//
// Tiles by experts.cuh; a tile's products are fp8_gemm/mma_sync's. Domains and launch:
// mma_sync.yaml.
#include "fp8_gemm/mma_sync_parts.cuh"
#include "fp8_gemm/mma_sync_pipeline.cuh"

#include "moe_gemm/experts.cuh" // of the Config and Tile above

// What every tile of a launch has in common. Strides are in elements; `matrix`: of A's scales from
// one matrix to the next (masked), `expert`: of B's.
struct Operands {
    const u8 *a, *b;
    const void *a_scale, *b_scale;
    i32 m, n, k;
    i64 a_scale_row, a_scale_group, a_scale_matrix, b_scale_row, b_scale_group, b_scale_expert;
};

// The K blocks of an expert's tile, D's columns from `column` on. `ring` holds the stages and
// behind them the scales.
template <Config C>
__device__ __forceinline__ Pipeline<C> pipeline_of(const Operands &o, const ExpertBlock &block,
                                                   i32 column, u8 *ring)
{
    using T = Tile<C>;
    const i32 rows_b = columns_of<C>(o.n), bytes_b = C.b_e2m1 ? o.k / 2 : o.k;
    return {
        .copy_a = {o.a + (i64(block.matrix) * o.m + block.row) * o.k, o.k, block.end - block.row,
                   o.k},
        .copy_b = {o.b + (i64(block.expert) * o.n + column) * bytes_b, bytes_b, rows_b - column,
                   bytes_b, rows_b},
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
                     .first_row = column,
                     .rows = rows_b,
                     .groups = ceil_div(o.k, C.b_gran_k),
                     .jump = rows_b},
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
                      i64 b_scale_row, i64 b_scale_group, i64 b_scale_expert, void *d_scale,
                      i64 d_scale_row, i64 d_scale_group, i64 d_scale_matrix)
{
    using T = Tile<C>;
    extern __shared__ __align__(128) u8 shared[];
    u32 *table = reinterpret_cast<u32 *>(shared + C.stages * T::kStage + 2 * 4 * T::kScales);
    const Operands all = {a,
                          b,
                          a_scale,
                          b_scale,
                          m,
                          n,
                          k,
                          a_scale_row,
                          a_scale_group,
                          a_scale_matrix,
                          b_scale_row,
                          b_scale_group,
                          b_scale_expert};
    const ExpertTarget to = {
        d, {d_scale, d_scale_row, d_scale_group, d_scale_matrix}, groups, m, columns_of<C>(n)};
    const WarpPlace warp = warp_place<C>();
    const ExpertGroups of = {groups, m, experts, row_align};
    each_tile<C>(table, of, n, [&](const ExpertBlock &block, i32 column) {
        Pipeline<C> line = pipeline_of<C>(all, block, column, shared);
        Sums<C> sum = {};
        multiply_all<C>(sum, line, warp);
        const bool holds = add_all<C>(sum, shared, nullptr, nullptr, 0);
        store_sums<C>(sum, holds, shared, to, block, column, warp.m, columns_of<C>(warp.n));
    });
    fill_others<C>(of, to);
}
