// sm120_block_scale.cu - D[b,m,n] = sum over k of A[b,m,k] * SFA * B[b,n,k] * SFB (+ D), A of e4m3,
// B of e4m3 or e2m1, all scales ue8m0, bf16 or fp32 D. For sm_120a.
//
// One CTA makes a block_m x block_n tile, or its share of K for one, by the pipeline of
// sm120/pipeline.cuh. Domains and launch: sm120_block_scale.yaml.
#include "device/raster.cuh"
#include "device/split_sum.cuh"
#include "sm120/pipeline.cuh"

// Strides are in elements, those of A and B and their scales in bytes. a_first_group: groups of A's
// scales from batch to batch, where the batches lie side by side. arrived, parts: of split K.
template <Config C>
__global__ void __launch_bounds__(Tile<C>::kThreads, C.residency)
    fp8_gemm_sm120_block_scale(const u8 *__restrict__ a, const u8 *__restrict__ a_scale,
                               const u8 *__restrict__ b, const u8 *__restrict__ b_scale, void *d,
                               u32 *arrived, float4 *parts, i32 m, i32 n, i32 k, i64 a_row,
                               i64 a_batch, i64 d_row, i64 d_batch, i64 a_scale_row,
                               i64 a_scale_group, i64 a_scale_batch, i64 a_first_group,
                               i64 b_scale_row, i64 b_scale_group, i64 b_scale_batch)
{
    using T = Tile<C>;
    using Out = typename ElementOf<C.out_f32 ? F32 : BF16>::Type;
    extern __shared__ __align__(128) u8 shared[];
    const i64 batch = blockIdx.z;
    const i32 tiles = i32(gridDim.x) / C.split_k, tile = i32(blockIdx.x) / C.split_k;
    const i32 part = i32(blockIdx.x) % C.split_k, blocks = ceil_div(k, C.block_k);
    const i32 b_row = C.b_e2m1 ? k / 2 : k;
    const TilePlace at = tile_place<C.raster>(tile, ceil_div(m, C.block_m), ceil_div(n, C.block_n));
    const i32 m0 = at.m * C.block_m, n0 = at.n * C.block_n;
    Pipeline<C> line{
        .copy_a = {a + batch * a_batch + m0 * a_row, a_row, m - m0, k},
        .copy_b = {b + (batch * n + n0) * b_row, b_row, n - n0, b_row},
        .scales_a = {.group_stride = a_scale_group,
                     .first_group = i32(batch * a_first_group),
                     .groups = ceil_div(k, C.a_gran_k)},
        .scales_b = {.group_stride = b_scale_group, .groups = ceil_div(k, C.b_gran_k)},
        .ring = shared_address(shared),
        .scales = reinterpret_cast<u32 *>(shared + C.stages * T::kStage),
        .first = i32(i64(blocks) * part / C.split_k),
        .last = i32(i64(blocks) * (part + 1) / C.split_k),
    };
    line.scales_a.open(a_scale + batch * a_scale_batch, a_scale_row, m0, m);
    line.scales_b.open(b_scale + batch * b_scale_batch, b_scale_row, n0, n);
    const i32 warp = i32(threadIdx.x) / 32;
    const i32 row = warp % C.warps_r * T::kWarpR, column = warp / C.warps_r * T::kWarpC;
    Sums<C> sum = {};
    multiply_all<C>(sum, line, row, column);
    if constexpr (C.split_k > 1) {
        const i64 place = batch * tiles + tile;
        if (!split_sum<C.split_k, T::kThreads>(sum, parts, arrived + place, place, part)) {
            return;
        }
    }
    output_sums<C>(sum, static_cast<Out *>(d) + batch * d_batch, d_row, (C.swap ? n0 : m0) + row,
                   (C.swap ? m0 : n0) + column, m, n);
}
