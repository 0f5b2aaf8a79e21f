// sm90_wgmma.cu - D[b,m,n] = sum over k of A[b,m,k] * SFA * B[b,n,k] * SFB (+ D), e4m3 operands (B
// also e2m1), bf16 or fp32 D, for Hopper: the pipeline of sm90/pipeline.cuh. Domains and launch:
// sm90_wgmma.yaml, sm90_wgmma_fp4.yaml.
#include "sm90/pipeline.cuh"

// Strides are in elements. a_first_group: groups of A's scales from batch to batch, where the
// batches lie side by side.
template <Config C>
__global__ void __launch_bounds__(Tile<C>::kThreads, C.residency)
    fp8_gemm_sm90_wgmma(const __grid_constant__ TensorMap a_map,
                        const __grid_constant__ TensorMap b_map,
                        const __grid_constant__ TensorMap d_map, const void *__restrict__ a_scale,
                        const void *__restrict__ b_scale, void *d, i32 m, i32 n, i32 k, i32 batch,
                        i64 d_row, i64 d_batch, i64 a_scale_row, i64 a_scale_group,
                        i64 a_scale_batch, i64 a_first_group, i64 b_scale_row, i64 b_scale_group,
                        i64 b_scale_batch, void *workspace)
{
    pipeline<C>({.a_map = &a_map,
                 .b_map = &b_map,
                 .d_map = &d_map,
                 .a_scale = {a_scale, a_scale_row, a_scale_group, a_scale_batch, a_first_group, m,
                             ceil_div(k, C.a_gran_k)},
                 .b_scale = {b_scale, b_scale_row, b_scale_group, b_scale_batch, 0, n,
                             ceil_div(k, C.b_gran_k)},
                 .d = d,
                 .d_row = d_row,
                 .d_batch = d_batch,
                 .m = m,
                 .n = n,
                 .k = k,
                 .batch = batch,
                 .workspace = workspace});
}
