// mma_sync.cu - D[b,m,n] = sum over k of A[b,m,k] * SFA * B[b,n,k] * SFB (+ D), e4m3 operands, bf16
// or fp32 D.
//
// One CTA makes a block_m x block_n tile, or with split_k a part of K of it. cp.async fills a ring
// of `stages` K blocks; warps read them by ldmatrix and multiply with mma.sync m16n8k32. A tensor
// core of sm_89 keeps 13 fraction bits, so a partial sum lives for `promote` elements of K at most,
// never across a scale group, and is then added to fp32 registers: sum = fma(sfa * sfb, part, sum).
// K runs in one order, its parts are added in theirs. Tails in M, N and K are zeros in shared
// memory and are not stored. Domains and launch: mma_sync.yaml.
#include "device/raster.cuh"
#include "fp8_gemm/mma_sync_parts.cuh"
#include "fp8_gemm/mma_sync_pipeline.cuh"

// Strides are in elements. a_first_group: groups of A's scales from batch to batch, where the
// batches lie side by side. parts, arrived: of CTAs that share tiles (mma_sync_parts.cuh).
template <Config C>
__global__ void __launch_bounds__(Tile<C>::kThreads, C.residency)
    fp8_gemm_mma_sync(const u8 *__restrict__ a, const void *__restrict__ a_scale,
                      const u8 *__restrict__ b, const void *__restrict__ b_scale, void *d, i32 m,
                      i32 n, i32 k, i64 a_row, i64 a_batch, i64 d_row, i64 d_batch, i64 a_scale_row,
                      i64 a_scale_group, i64 a_scale_batch, i64 a_first_group, i64 b_scale_row,
                      i64 b_scale_group, i64 b_scale_batch, u32 *arrived, float4 *parts)
{
    using T = Tile<C>;
    using Out = typename ElementOf<C.out_f32 ? F32 : BF16>::Type;
    extern __shared__ __align__(128) u8 shared[];
    const i64 batch = blockIdx.z;
    const i32 tile = i32(blockIdx.x) / C.split_k, part = i32(blockIdx.x) % C.split_k;
    const i32 blocks = ceil_div(k, C.block_k), each = blocks / C.split_k, more = blocks % C.split_k;
    const TilePlace at =
        tile_place<C.raster>(tile, ceil_div(m, C.block_m), ceil_div(n, C.block_n));
    const i32 m0 = at.m * C.block_m, n0 = at.n * C.block_n;
    Pipeline<C> line{
        .copy_a = {a + batch * a_batch + m0 * a_row, a_row, m - m0, k},
        .copy_b = {b + (batch * n + n0) * k, k, n - n0, k},
        .scales_a = {.base = a_scale,
                     .first = batch * a_scale_batch,
                     .row_stride = a_scale_row,
                     .group_stride = a_scale_group,
                     .first_group = batch * a_first_group,
                     .first_row = m0,
                     .rows = m,
                     .groups = ceil_div(k, C.a_gran_k)},
        .scales_b = {.base = b_scale,
                     .first = batch * b_scale_batch,
                     .row_stride = b_scale_row,
                     .group_stride = b_scale_group,
                     .first_row = n0,
                     .rows = n,
                     .groups = ceil_div(k, C.b_gran_k)},
        .ring = shared_address(shared),
        .scales = reinterpret_cast<float *>(shared + C.stages * T::kStage),
        .first = part * each + min(part, more),
        .blocks = each + (part < more),
    };
    const WarpPlace warp = warp_place<C>();
    Sums<C> sum = {};
    multiply_all<C>(sum, line, warp);
    if (add_all<C>(sum, shared, arrived, parts, part)) {
        store_tile<C>(sum, static_cast<Out *>(d) + batch * d_batch, d_row, m0 + warp.m, n0 + warp.n,
                      m, n);
    }
}
