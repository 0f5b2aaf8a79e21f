// sm90_wgmma_k.cu - D[e,m,n] = sum over expert e's k of A[m,k] * SFA * B[n,k] * SFB (+ D[e,m,n]),
// a weight gradient in one launch, for Hopper: the pipeline of sm90/pipeline.cuh over the tiles of
// every expert, those with the longest K first (device/expert_k.cuh). Rows of A and B are as long
// as an expert's K, so CTAs make the tensor maps (sm90/expert_maps.cuh). Domains and launch:
// sm90_wgmma_k.yaml.
#include "sm90/pipeline.cuh"

// a_map, b_map: patterns, of which address, row and stride are replaced. Strides of scales are in
// elements. maps: places for maps, of every CTA.
template <Config C>
__global__ void __launch_bounds__(Tile<C>::kThreads, C.residency)
    moe_gemm_sm90_wgmma_k(const __grid_constant__ TensorMap a_map,
                          const __grid_constant__ TensorMap b_map,
                          const __grid_constant__ TensorMap d_map, const u8 *a,
                          const void *__restrict__ a_scale, const u8 *b,
                          const void *__restrict__ b_scale, const i32 *__restrict__ groups, void *d,
                          i32 m, i32 n, i32 k, i32 experts, i64 a_scale_row, i64 a_scale_group,
                          i64 b_scale_row, i64 b_scale_group, void *maps)
{
    pipeline<C>({.a_map = &a_map,
                 .b_map = &b_map,
                 .d_map = &d_map,
                 .a_scale = {a_scale, a_scale_row, a_scale_group, 0, 1, m, 0, 0},
                 .b_scale = {b_scale, b_scale_row, b_scale_group, 0, 1, n, 0, 0},
                 .d = d,
                 .d_row = n,
                 .d_batch = i64(m) * n,
                 .m = m,
                 .n = n,
                 .k = k,
                 .batch = experts,
                 .workspace = maps,
                 .groups = {groups, m, experts, 1},
                 .codes = {},
                 .a = a,
                 .b = b});
}
