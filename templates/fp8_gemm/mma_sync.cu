// mma_sync.cu - D[b,m,n] = sum over k of A[b,m,k] * SFA * B[b,n,k] * SFB (+ D), e4m3 operands, bf16
// or fp32 D.
//
// One CTA makes a block_m x block_n tile. cp.async fills a ring of `stages` K blocks; warps read
// them by ldmatrix and multiply with mma.sync m16n8k32. A tensor core of sm_89 keeps 13 fraction
// bits, so a partial sum lives for `promote` elements of K at most, never across a scale group, and
// is then added to fp32 registers: sum = fma(sfa * sfb, part, sum). K runs in one fixed order.
// Tails in M, N and K are zeros in shared memory and are not stored. Domains and launch:
// mma_sync.yaml.
#include "device/output.cuh"
#include "device/scale_tile.cuh"
#include "device/tile_copy.cuh"

struct Config {
    int block_m, block_n, block_k; // CTA tile
    int warps_m, warps_n;          // warps along M and N
    int stages;                    // K blocks in shared memory
    int promote;                   // elements of K between additions to fp32
    int raster;                    // tile rows that CTAs in flight share, for L2
    int residency;                 // CTAs of an SM that registers are kept for
    int a_gran_k, b_gran_mn, b_gran_k;
    bool a_ue8m0, a_packed, b_ue8m0, b_packed; // scales
    bool out_f32, accumulate;
    int align; // bytes that operands and rows are multiples of
};

template <Config C> struct Tile {
    static constexpr int kThreads = C.warps_m * C.warps_n * 32;
    static constexpr int kWarpM = C.block_m / C.warps_m, kWarpN = C.block_n / C.warps_n;
    static constexpr int kTilesM = kWarpM / 16, kTilesN = kWarpN / 8;
    static constexpr int kSteps = C.promote / 32; // mma.sync along K for one partial sum
    static constexpr int kBytesA = C.block_m * C.block_k, kBytesB = C.block_n * C.block_k;
    static constexpr int kStage = kBytesA + kBytesB;
    static constexpr bool kColumnScales =
        C.b_gran_mn == 1; // a scale for each column, else for eight at least

    using CopyA = TileCopy<C.block_m, C.block_k, kThreads, C.align>;
    using CopyB = TileCopy<C.block_n, C.block_k, kThreads, C.align>;
    using ScalesA =
        ScaleTile<C.block_m, 1, 1, C.a_gran_k, C.block_k, kThreads, C.a_ue8m0, C.a_packed>;
    using ScalesB = ScaleTile<kColumnScales ? C.block_n : C.block_n / 8, kColumnScales ? 1 : 8,
                              C.b_gran_mn, C.b_gran_k, C.block_k, kThreads, C.b_ue8m0, C.b_packed>;
    static constexpr int kScales = ScalesA::kCount + ScalesB::kCount;

    static_assert(C.block_m % (16 * C.warps_m) == 0, "block_m: whole m16 tiles for each warp");
    static_assert(C.block_n % (8 * C.warps_n) == 0, "block_n: whole n8 tiles for each warp");
    static_assert(kThreads >= 32 && kThreads <= 512, "warps: 1 to 16");
    static_assert(C.promote == 32 || C.promote == 64 || C.promote == 128,
                  "promote: within the unit's 13 bits");
    static_assert(C.block_k % C.promote == 0, "promote: divides a K block");
    static_assert(C.a_gran_k % C.promote == 0 && C.b_gran_k % C.promote == 0,
                  "promote: within one scale group");
    static_assert(C.stages >= 2 && C.raster >= 1 && C.residency >= 1, "stages, raster, residency");
    static_assert(is_pow2(C.align) && C.align <= 16, "align: 1 to 16");
};

template <Config C> using Sums = float[Tile<C>::kTilesM][Tile<C>::kTilesN][4];

// Tile row and column of this CTA. Runs of `raster` tile rows go through all columns, so that CTAs
// in flight share B.
template <Config C>
__device__ __forceinline__ void tile_place(i32 tiles_m, i32 tiles_n, i32 *tile_m, i32 *tile_n)
{
    const i32 run = i32(blockIdx.x) / (C.raster * tiles_n),
              within = i32(blockIdx.x) % (C.raster * tiles_n);
    const i32 rows = min(C.raster, tiles_m - run * C.raster);
    *tile_m = run * C.raster + within % rows;
    *tile_n = within / rows;
}

// Add a partial sum of 16 rows to fp32: a scale for rows lane/4 and lane/4 + 8, and for each tile
// or column of B.
template <Config C>
__device__ __forceinline__ void add_scaled(float (&sum)[Tile<C>::kTilesN][4],
                                           const float (&part)[Tile<C>::kTilesN][4],
                                           const float *a_scales, const float *b_scales)
{
    const float low = a_scales[0], high = a_scales[8];
#pragma unroll
    for (int j = 0; j < Tile<C>::kTilesN; j++) {
        float left, right;
        if constexpr (Tile<C>::kColumnScales) {
            const float2 pair = *reinterpret_cast<const float2 *>(b_scales + j * 8);
            left = pair.x, right = pair.y;
        } else {
            left = right = b_scales[j];
        }
        sum[j][0] = fmaf(low * left, part[j][0], sum[j][0]);
        sum[j][1] = fmaf(low * right, part[j][1], sum[j][1]);
        sum[j][2] = fmaf(high * left, part[j][2], sum[j][2]);
        sum[j][3] = fmaf(high * right, part[j][3], sum[j][3]);
    }
}

// One promotion interval, from K step `first` on. Either B's fragments of all its steps are kept
// while the rows pass, or the partial sums of all rows while the steps pass: whichever takes fewer
// registers.
template <Config C>
__device__ __forceinline__ void multiply_interval(Sums<C> &sum, u32 a, u32 b, const float *a_scales,
                                                  const float *b_scales, int first)
{
    using T = Tile<C>;
    constexpr bool kKeepB = T::kSteps * 2 + 8 <= T::kTilesM * 4;
    constexpr int kParts = kKeepB ? 1 : T::kTilesM, kHeld = kKeepB ? T::kSteps : 1;
    u32 held[kHeld][T::kTilesN][2];
#pragma unroll
    for (int s = 0; kKeepB && s < T::kSteps; s++) {
        load_columns<C.block_k>(held[s], b, first + s);
    }
#pragma unroll
    for (int i = 0; i < T::kTilesM; i += kParts) {
        float part[kParts][T::kTilesN][4] = {};
#pragma unroll
        for (int s = 0; s < T::kSteps; s++) {
            if constexpr (!kKeepB) {
                load_columns<C.block_k>(held[0], b, first + s);
            }
#pragma unroll
            for (int p = 0; p < kParts; p++) {
                multiply_step<C.block_k>(part[p], a + (i + p) * 16 * C.block_k,
                                         held[kKeepB ? s : 0], first + s);
            }
        }
#pragma unroll
        for (int p = 0; p < kParts; p++) {
            add_scaled<C>(sum[i + p], part[p], a_scales + (i + p) * 16, b_scales);
        }
    }
}

// One K block of a warp's tile. `a` and `b` are the warp's rows in shared memory, the scales those
// of this lane.
template <Config C>
__device__ __forceinline__ void multiply_block(Sums<C> &sum, u32 a, u32 b, const float *a_scales,
                                               const float *b_scales)
{
    using T = Tile<C>;
    constexpr int kLinesB = T::ScalesB::kCount / T::ScalesB::kGroups;
    constexpr int kUnroll =
        T::kTilesM * T::kTilesN <= 8 ? 4 : 1; // overlap where registers are free
#pragma unroll(kUnroll)
    for (int interval = 0; interval < C.block_k / C.promote; interval++) {
        multiply_interval<C>(sum, a, b, a_scales + interval * C.promote / C.a_gran_k * C.block_m,
                             b_scales + interval * C.promote / C.b_gran_k * kLinesB,
                             interval * T::kSteps);
    }
}

// The ring of K blocks in shared memory, and what fills it.
template <Config C> struct Pipeline {
    using T = Tile<C>;

    typename T::CopyA copy_a;
    typename T::CopyB copy_b;
    typename T::ScalesA scales_a;
    typename T::ScalesB scales_b;
    u32 ring;      // shared address of the first stage
    float *scales; // two blocks' scales, behind the stages
    i32 blocks;

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
            copy_a.load(stage(block), block);
            copy_b.load(stage(block) + T::kBytesA, block);
        }
        async_commit(); // also when empty: async_wait counts groups
    }

    __device__ __forceinline__ void fetch_scales(i32 block)
    {
        scales_a.fetch(block);
        scales_b.fetch(block);
    }

    // Of `block`, fetched before; then start on the block after it.
    __device__ __forceinline__ void store_scales(i32 block)
    {
        scales_a.store(slot(block));
        scales_b.store(slot(block) + T::ScalesA::kCount);
        fetch_scales(block + 1);
    }
};

// All K blocks of a warp's tile.
template <Config C>
__device__ __forceinline__ void multiply_all(Sums<C> &sum, Pipeline<C> &line, i32 warp_m,
                                             i32 warp_n)
{
    using T = Tile<C>;
    const i32 lane = i32(threadIdx.x) % 32;
    const i32 line_a = warp_m + lane / 4;
    const i32 line_b = T::kColumnScales ? warp_n + lane % 4 * 2 : warp_n / 8;

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
        const u32 stage = line.stage(block);
        const float *slot = line.slot(block);
        multiply_block<C>(sum, stage + warp_m * C.block_k, stage + T::kBytesA + warp_n * C.block_k,
                          slot + line_a, slot + T::ScalesA::kCount + line_b);
    }
}

// Strides are in elements. a_first_group: groups of A's scales from batch to batch, where the
// batches lie side by side.
template <Config C>
__global__ void __launch_bounds__(Tile<C>::kThreads, C.residency)
    fp8_gemm_mma_sync(const u8 *__restrict__ a, const void *__restrict__ a_scale,
                      const u8 *__restrict__ b, const void *__restrict__ b_scale, void *d, i32 m,
                      i32 n, i32 k, i64 a_row, i64 a_batch, i64 d_row, i64 d_batch, i64 a_scale_row,
                      i64 a_scale_group, i64 a_scale_batch, i64 a_first_group, i64 b_scale_row,
                      i64 b_scale_group, i64 b_scale_batch)
{
    using T = Tile<C>;
    using Out = typename ElementOf<C.out_f32 ? F32 : BF16>::Type;
    extern __shared__ __align__(128) u8 shared[];
    const i64 batch = blockIdx.z;
    i32 tile_m, tile_n;
    tile_place<C>(ceil_div(m, C.block_m), ceil_div(n, C.block_n), &tile_m, &tile_n);
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
        .blocks = ceil_div(k, C.block_k),
    };
    const i32 warp = i32(threadIdx.x) / 32;
    const i32 warp_m = warp % C.warps_m * T::kWarpM, warp_n = warp / C.warps_m * T::kWarpN;
    Sums<C> sum = {};
    multiply_all<C>(sum, line, warp_m, warp_n);
    output_tile<C.align, C.accumulate>(sum, static_cast<Out *>(d) + batch * d_batch, d_row,
                                       m0 + warp_m, n0 + warp_n, m, n);
}
