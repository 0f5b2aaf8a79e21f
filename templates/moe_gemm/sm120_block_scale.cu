// sm120_block_scale.cu - D[r,n] = sum over k of A[r,k] * SFA * B[e,n,k] * SFB, e the expert of row
// r, A of e4m3, B of e4m3 or e2m1, all scales ue8m0; D bf16 or fp32, or behind an activation of
// gates and ups also e4m3 with scales. For sm_120a. Rows without an expert are not written.
//
// Tiles by experts.cuh; a tile's products are sm120/pipeline.cuh's. Domains and launch:
// sm120_block_scale.yaml.
#include "sm120/pipeline.cuh"

#include "moe_gemm/experts.cuh" // of the Config and Tile above

// What every tile of a launch has in common. Strides are in bytes; `matrix`: of A's scales from one
// matrix to the next (masked), `expert`: of B's.
struct Operands {
    const u8 *a, *a_scale, *b, *b_scale;
    i32 m, n, k;
    i64 a_scale_row, a_scale_group, a_scale_matrix, b_scale_row, b_scale_group, b_scale_expert;
};

// The K blocks of an expert's tile, D's columns from `column` on. `ring` holds the stages and
// behind them the scales.
template <Config C>
__device__ __forceinline__ Pipeline<C> pipeline_of(const Operands &o, const ExpertBlock &block,
                                                   i32 column, u8 *ring)
{
    const i32 rows_b = columns_of<C>(o.n), bytes_b = C.b_e2m1 ? o.k / 2 : o.k;
    Pipeline<C> line = {
        .copy_a = {o.a + (i64(block.matrix) * o.m + block.row) * o.k, o.k, block.end - block.row,
                   o.k},
        .copy_b = {o.b + (i64(block.expert) * o.n + column) * bytes_b, bytes_b, rows_b - column,
                   bytes_b, rows_b},
        .scales_a = {.group_stride = o.a_scale_group, .groups = ceil_div(o.k, C.a_gran_k)},
        .scales_b = {.group_stride = o.b_scale_group, .groups = ceil_div(o.k, C.b_gran_k)},
        .ring = shared_address(ring),
        .scales = reinterpret_cast<u32 *>(ring + C.stages * Tile<C>::kStage),
        .first = 0,
        .last = ceil_div(o.k, C.block_k),
    };
    line.scales_a.open(o.a_scale + block.matrix * o.a_scale_matrix, o.a_scale_row, block.row,
                       block.end);
    line.scales_b.open(o.b_scale + block.expert * o.b_scale_expert, o.b_scale_row, column, rows_b,
                       rows_b);
    return line;
}

template <Config C>
__global__ void __launch_bounds__(Tile<C>::kThreads, C.residency)
    moe_gemm_sm120_block_scale(const u8 *__restrict__ a, const u8 *__restrict__ a_scale,
                               const u8 *__restrict__ b, const u8 *__restrict__ b_scale,
                               const i32 *__restrict__ groups, void *d, i32 m, i32 n, i32 k,
                               i32 experts, i32 row_align, i64 a_scale_row, i64 a_scale_group,
                               i64 a_scale_matrix, i64 b_scale_row, i64 b_scale_group,
                               i64 b_scale_expert, void *d_scale, i64 d_scale_row,
                               i64 d_scale_group, i64 d_scale_matrix)
{
    using T = Tile<C>;
    extern __shared__ __align__(128) u8 shared[];
    u32 *table = reinterpret_cast<u32 *>(shared + C.stages * T::kStage) + 2 * T::kWords;
    const Operands all = {a,
                          a_scale,
                          b,
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
    const i32 warp = i32(threadIdx.x) / 32;
    const i32 row = warp % C.warps_r * T::kWarpR, column = warp / C.warps_r * T::kWarpC;
    const i32 of_b = columns_of<C>(C.swap ? row : column), of_a = C.swap ? column : row;
    const ExpertGroups of = {groups, m, experts, row_align};
    each_tile<C>(table, of, n, [&](const ExpertBlock &block, i32 first) {
        Pipeline<C> line = pipeline_of<C>(all, block, first, shared);
        Sums<C> sum = {};
        multiply_all<C>(sum, line, row, column);
        store_sums<C>(sum, true, shared, to, block, first, of_a, of_b);
    });
    fill_others<C>(of, to);
}
