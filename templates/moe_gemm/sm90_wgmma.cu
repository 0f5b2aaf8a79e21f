// sm90_wgmma.cu - D[r,n] = sum over k of A[r,k] * SFA * B[e,n,k] * SFB, where e is the expert of
// row r, for Hopper: the pipeline of sm90/pipeline.cuh over the blocks of rows that have an expert
// (device/expert_tiles.cuh). Rows without one are not written. Domains and launch: sm90_wgmma.yaml.
#include "sm90/pipeline.cuh"

// Strides are in elements; those by matrix are from expert to expert. groups: of C.layout.
template <Config C>
__global__ void __launch_bounds__(Tile<C>::kThreads, C.residency)
    moe_gemm_sm90_wgmma(const __grid_constant__ TensorMap a_map,
                        const __grid_constant__ TensorMap b_map,
                        const __grid_constant__ TensorMap d_map, const void *__restrict__ a_scale,
                        const void *__restrict__ b_scale, const i32 *__restrict__ groups, void *d,
                        i32 m, i32 n, i32 k, i32 experts, i32 row_align, i64 d_row, i64 d_matrix,
                        i64 a_scale_row, i64 a_scale_group, i64 a_scale_matrix, i64 b_scale_row,
                        i64 b_scale_group, i64 b_scale_matrix, void *d_scale, i64 d_scale_row,
                        i64 d_scale_group, i64 d_scale_matrix, void *workspace)
{
    pipeline<C>({.a_map = &a_map,
                 .b_map = &b_map,
                 .d_map = &d_map,
                 .a_scale = {a_scale, a_scale_row, a_scale_group, a_scale_matrix, 0, m,
                             ceil_div(k, C.a_gran_k), 0},
                 .b_scale = {b_scale, b_scale_row, b_scale_group, b_scale_matrix, 0, n,
                             ceil_div(k, C.b_gran_k), n / 2},
                 .d = d,
                 .d_row = d_row,
                 .d_batch = d_matrix,
                 .m = m,
                 .n = n,
                 .k = k,
                 .batch = 1,
                 .workspace = workspace,
                 .groups = {groups, m, experts, row_align},
                 .codes = {d_scale, d_scale_row, d_scale_group, d_scale_matrix}});
}
