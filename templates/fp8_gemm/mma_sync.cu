// mma_sync.cu - D[b,m,n] = sum over k of A[b,m,k] * SFA * B[b,n,k] * SFB (+ D), e4m3 operands, bf16
// or fp32 D.
//
// One CTA makes a block_m x block_n tile, or with split_k a part of K of it. cp.async fills a ring
// of `stages` K blocks; warps read them by ldmatrix and multiply with mma.sync m16n8k32. A tensor
// core of sm_89 keeps 13 fraction bits, so a partial sum lives for `promote` elements of K at most,
// never across a scale group, and is then added to fp32 registers: sum = fma(sfa * sfb, part, sum).
// K runs in one order, its parts are added in theirs. Tails in M, N and K are zeros in shared
// memory and are not stored. Domains and launch: mma_sync.yaml.
#include "fp8_gemm/mma_sync_multiply.cuh"
#include "fp8_gemm/mma_sync_parts.cuh"

// The ring of K blocks in shared memory, and what fills it.
template <Config C> struct Pipeline {
    using T = Tile<C>;

    typename T::CopyA copy_a;
    typename T::CopyB copy_b;
    typename T::ScalesA scales_a;
    typename T::ScalesB scales_b;
    u32 ring;          // shared address of the first stage
    float *scales;     // two blocks' scales, behind the stages
    i32 first, blocks; // of K, of this CTA

    __device__ __forceinline__ u32 stage(i32 block) const
    {
        return ring + block % C.stages * T::kStage;
    }

    __device__ __forceinline__ float *slot(i32 block) const
    {
        return scales + block % 2 * T::kScales;
    }

    __device__ __forceinline__ void load(i32 block) const
    {
        if (block < blocks) {
            copy_a.load(stage(block), first + block);
            copy_b.load(stage(block) + T::kBytesA, first + block);
        }
        async_commit(); // also when empty: async_wait counts groups
    }

    __device__ __forceinline__ void fetch_scales(i32 block)
    {
        scales_a.fetch(first + block);
        scales_b.fetch(first + block);
    }

    // Of `block`, fetched before; then start on the block after it.
    __device__ __forceinline__ void store_scales(i32 block)
    {
        scales_a.store(slot(block));
        scales_b.store(slot(block) + T::ScalesA::kCount);
        fetch_scales(block + 1);
    }
};

// Where a warp's part of the tile lies.
struct WarpPlace {
    i32 m, n;  // first row and column
    i32 share; // of K
};

template <Config C> __device__ __forceinline__ WarpPlace warp_place()
{
    constexpr i32 kWarps = C.warps_m * C.warps_n;
    const i32 warp = i32(threadIdx.x) / 32, of_sum = C.warps_k == 1 ? warp : warp % kWarps;
    return {of_sum % C.warps_m * (C.block_m / C.warps_m),
            of_sum / C.warps_m * (C.block_n / C.warps_n), C.warps_k == 1 ? 0 : warp / kWarps};
}

// All K blocks of a warp's tile.
template <Config C>
__device__ __forceinline__ void multiply_all(Sums<C> &sum, Pipeline<C> &line, const WarpPlace &warp)
{
    using T = Tile<C>;
    const i32 lane = i32(threadIdx.x) % 32;
    const i32 row = C.swap ? warp.n : warp.m, column = C.swap ? warp.m : warp.n;
    const i32 row_line = T::kRowScales ? row + lane / 4 : row / 16;
    const i32 column_line = T::kColumnScales ? column + lane % 4 * 2 : column / 8;

    for (int s = 0; s < C.stages - 1; s++) {
        line.load(s);
    }
    line.fetch_scales(0);
    line.store_scales(0);
    for (i32 block = 0; block < line.blocks; block++) {
        async_wait<C.stages - 2>();
        __syncthreads(); // this block is in place, and all warps are done with the one before
        line.load(block + C.stages - 1);
        line.store_scales(block + 1);
        const u32 a = line.stage(block), b = a + T::kBytesA;
        const float *scales_a = line.slot(block), *scales_b = scales_a + T::ScalesA::kCount;
        const BlockPlace at = {.rows = (C.swap ? b : a) + row * C.block_k,
                               .columns = (C.swap ? a : b) + column * C.block_k,
                               .row_scales = (C.swap ? scales_b : scales_a) + row_line,
                               .column_scales = (C.swap ? scales_a : scales_b) + column_line};
        multiply_block<C>(sum, at, warp.share);
    }
}

// A warp's sums to D; the first element is (row, column).
template <Config C, typename T>
__device__ __forceinline__ void store_tile(const Sums<C> &sum, T *d, i64 stride, i32 row,
                                           i32 column, i32 m, i32 n)
{
    if constexpr (C.swap) {
        output_tile_turned<C.align, C.accumulate>(sum, d, stride, row, column, m, n);
    } else {
        output_tile<C.align, C.accumulate>(sum, d, stride, row, column, m, n);
    }
}

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
    i32 tile_m, tile_n;
    tile_place<C>(tile, ceil_div(m, C.block_m), ceil_div(n, C.block_n), &tile_m, &tile_n);
    const i32 m0 = tile_m * C.block_m, n0 = tile_n * C.block_n;
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
