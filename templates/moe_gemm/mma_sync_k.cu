// mma_sync_k.cu - D[e,m,n] = sum over expert e's k of A[m,k] * SFA * B[n,k] * SFB (+ D[e,m,n]), a
// weight gradient in one launch, e4m3 operands, fp32 D.
//
// A persistent grid over the tiles of every expert, those with the longest K first
// (device/expert_k.cuh); a tile's products are fp8_gemm/mma_sync's. Rows of A and B are as long as
// an expert's K. Domains and launch: mma_sync_k.yaml.
#include "device/expert_k.cuh"
#include "device/raster.cuh"
#include "fp8_gemm/mma_sync_parts.cuh"
#include "fp8_gemm/mma_sync_pipeline.cuh"

// Strides of scales are in elements.
struct Operands {
    const u8 *a, *b;
    const void *a_scale, *b_scale;
    i32 m, n;
    i64 a_scale_row, a_scale_group, b_scale_row, b_scale_group;
};

// The K blocks of an expert's tile, whose first row and column are m0 and n0. Scales of the experts
// before lie before its own.
template <Config C>
__device__ __forceinline__ Pipeline<C> pipeline_of(const Operands &o, const ExpertKRange &of,
                                                   i32 m0, i32 n0, u8 *ring)
{
    using T = Tile<C>;
    const i64 before = i64(of.first) * C.a_gran_k;
    const i32 k = of.count * C.a_gran_k;
    return {
        .copy_a = {o.a + before * o.m + i64(m0) * k, k, o.m - m0, k},
        .copy_b = {o.b + before * o.n + i64(n0) * k, k, o.n - n0, k},
        .scales_a = {.base = o.a_scale,
                     .row_stride = o.a_scale_row,
                     .group_stride = o.a_scale_group,
                     .first_group = of.first,
                     .first_row = m0,
                     .rows = o.m,
                     .groups = of.count},
        .scales_b = {.base = o.b_scale,
                     .row_stride = o.b_scale_row,
                     .group_stride = o.b_scale_group,
                     .first_group = of.first,
                     .first_row = n0,
                     .rows = o.n,
                     .groups = of.count},
        .ring = shared_address(ring),
        .scales = reinterpret_cast<float *>(ring + C.stages * T::kStage),
        .first = 0,
        .blocks = ceil_div(k, C.block_k),
    };
}

template <Config C>
__global__ void __launch_bounds__(Tile<C>::kThreads, C.residency)
    moe_gemm_mma_sync_k(const u8 *__restrict__ a, const void *__restrict__ a_scale,
                        const u8 *__restrict__ b, const void *__restrict__ b_scale,
                        const i32 *__restrict__ groups, float *d, i32 m, i32 n, i32 k, i32 experts,
                        i64 a_scale_row, i64 a_scale_group, i64 b_scale_row, i64 b_scale_group)
{
    using T = Tile<C>;
    using Experts = ExpertK<C.a_gran_k, !C.accumulate>; // D is zeros where an expert has no K
    extern __shared__ __align__(128) u8 shared[];
    u32 *table = reinterpret_cast<u32 *>(shared + C.stages * T::kStage + 2 * 4 * T::kScales);
    Experts::make(table, {groups, m, experts, 1}, k);
    __syncthreads(); // the order is there
    const Experts order{table, experts};
    const Operands all = {a, b,           a_scale,       b_scale,     m,
                          n, a_scale_row, a_scale_group, b_scale_row, b_scale_group};
    const i32 tiles_m = ceil_div(m, C.block_m), tiles_n = ceil_div(n, C.block_n);
    const i32 each = tiles_m * tiles_n;
    const WarpPlace warp = warp_place<C>();
    for (i32 tile = i32(blockIdx.x); tile < order.count() * each; tile += i32(gridDim.x)) {
        const ExpertKRange of = order.at(tile / each);
        const TilePlace place = tile_place<C.raster>(tile % each, tiles_m, tiles_n);
        const i32 m0 = place.m * C.block_m, n0 = place.n * C.block_n;
        Pipeline<C> line = pipeline_of<C>(all, of, m0, n0, shared);
        Sums<C> sum = {};
        multiply_all<C>(sum, line, warp);
        if (add_all<C>(sum, shared, nullptr, nullptr, 0)) {
            store_tile<C>(sum, d + i64(of.expert) * m * n, n, m0 + warp.m, n0 + warp.n, m, n);
        }
        __syncthreads(); // all have read what the next tile's stages overwrite
    }
}
