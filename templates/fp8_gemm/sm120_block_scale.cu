// sm120_block_scale.cu - D[b,m,n] = sum over k of A[b,m,k] * SFA * B[b,n,k] * SFB (+ D), A of e4m3,
// B of e4m3 or e2m1, all scales ue8m0, bf16 or fp32 D. For sm_120a.
//
// One CTA makes a block_m x block_n tile, or its share of K for one. cp.async fills a ring of
// `stages` K blocks; warps read them by ldmatrix and multiply with block-scaled mma.sync, which
// applies the scales itself and keeps 25 fraction bits, so that sums stay in its accumulator over
// all of K. `swap`: the instruction's 16 rows are B's, for few rows of A. Tails in M, N and K are
// zeros in shared memory and are not stored. Domains and launch: sm120_block_scale.yaml.
#include "device/block_scale.cuh"
#include "device/output.cuh"
#include "device/scale_words.cuh"
#include "device/split_sum.cuh"
#include "device/tile_copy.cuh"
#include "device/turn.cuh"

struct Config {
    int block_m, block_n, block_k; // CTA tile
    bool swap;                     // rows are B's
    int warps_r, warps_c;          // warps along rows and columns
    int stages;                    // K blocks in shared memory
    int split_k;                   // CTAs that share a tile along K
    int raster;                    // tile rows that CTAs in flight share, for L2
    int residency;                 // CTAs of an SM that registers are kept for
    int a_gran_k, b_gran_mn, b_gran_k;
    bool a_packed, b_packed; // scales
    bool b_e2m1;
    bool out_f32, accumulate;
    int align; // bytes that operands and rows are multiples of
};

// One operand: its rows in a tile, what fills them, and their scales.
template <Config C, bool IsB> struct Operand {
    static constexpr int kRows = IsB ? C.block_n : C.block_m;
    static constexpr int kThreads = C.warps_r * C.warps_c * 32;
    static constexpr bool kE2m1 = IsB && C.b_e2m1;
    static constexpr int kBytes = kRows * C.block_k; // of a stage
    using Copy = TileCopy<kRows, C.block_k, kThreads, C.align, kE2m1 ? 8 : 16>;
    using Scales = ScaleWords<kRows, IsB ? C.b_gran_mn : 1, IsB ? C.b_gran_k : C.a_gran_k,
                              C.block_k, kThreads, IsB ? C.b_packed : C.a_packed>;
};

template <Config C> struct Tile {
    using A = Operand<C, false>;
    using B = Operand<C, true>;
    using Rows = Operand<C, C.swap>;
    using Columns = Operand<C, !C.swap>;
    static constexpr int kThreads = A::kThreads;
    static constexpr int kWarpR = Rows::kRows / C.warps_r, kWarpC = Columns::kRows / C.warps_c;
    static constexpr int kTilesR = kWarpR / 16, kTilesC = kWarpC / 8;
    static constexpr int kStage = A::kBytes + B::kBytes;
    static constexpr int kWords = A::kRows + B::kRows; // of scales, of a block

    static_assert(Rows::kRows % (16 * C.warps_r) == 0, "rows: whole m16 tiles for each warp");
    static_assert(Columns::kRows % (8 * C.warps_c) == 0, "columns: whole n8 tiles for each warp");
    static_assert(kThreads >= 32 && kThreads <= 512, "warps: 1 to 16");
    static_assert(C.stages >= 2 && C.raster >= 1 && C.residency >= 1, "stages, raster, residency");
    static_assert(is_pow2(C.align) && C.align <= 16, "align: 1 to 16");
};

template <Config C> using Sums = float[Tile<C>::kTilesR][Tile<C>::kTilesC][4];

// First row and column of a tile of D. Bands of `raster` tile rows go through all columns, so that
// CTAs in flight share B.
template <Config C>
__device__ __forceinline__ void place_tile(i32 index, i32 tiles_m, i32 tiles_n, i32 *m0, i32 *n0)
{
    const i32 band = index / (C.raster * tiles_n), within = index - band * C.raster * tiles_n;
    const i32 first = band * C.raster, high = min(C.raster, tiles_m - first);
    *m0 = (first + within % high) * C.block_m;
    *n0 = within / high * C.block_n;
}

// A warp's words of scales in shared memory: those of rows from `rows` on, of columns from
// `columns` on. A lane that has none of its own takes another's, which is not used.
template <Config C> struct WarpScales {
    using T = Tile<C>;
    u32 rows[ceil_div(T::kTilesR, 2)], columns[ceil_div(T::kTilesC, 4)];

    __device__ __forceinline__ void load(const u32 *of_rows, const u32 *of_columns)
    {
        const u32 eight = threadIdx.x % 4 * 8 + threadIdx.x % 32 / 4;
#pragma unroll
        for (int i = 0; i < T::kTilesR; i += 2) {
            rows[i / 2] = of_rows[i * 16 + (i + 1 < T::kTilesR ? eight : eight % 16)];
        }
#pragma unroll
        for (int j = 0; j < T::kTilesC; j += 4) {
            columns[j / 4] =
                of_columns[least(T::kTilesC - j, 4) == 4 ? j * 8 + eight
                                                         : min(j * 8 + eight, T::kWarpC - 1u)];
        }
    }
};

// One K block of a warp's tile. `rows` and `columns` are the warp's in shared memory.
template <Config C>
__device__ __forceinline__ void multiply_block(Sums<C> &sum, u32 rows, u32 columns,
                                               const WarpScales<C> &scales)
{
    using T = Tile<C>;
#pragma unroll
    for (int step = 0; step < C.block_k / 32; step++) {
        u32 right[T::kTilesC][2];
        load_eights<C.block_k, T::Columns::kE2m1>(right, columns, step);
#pragma unroll
        for (int i = 0; i < T::kTilesR; i++) {
            u32 left[4];
            load_sixteen<C.block_k, T::Rows::kE2m1>(left, rows + i * 16 * C.block_k, step);
#pragma unroll
            for (int j = 0; j < T::kTilesC; j++) {
                mma_scaled<T::Rows::kE2m1, T::Columns::kE2m1>(
                    sum[i][j], left, right[j],
                    {scales.rows[i / 2], scales.columns[j / 4], u16(i % 2), u16(j % 4), u16(step)});
            }
        }
    }
}

// The ring of K blocks in shared memory, and what fills it.
template <Config C> struct Pipeline {
    using T = Tile<C>;

    typename T::A::Copy copy_a;
    typename T::B::Copy copy_b;
    typename T::A::Scales scales_a;
    typename T::B::Scales scales_b;
    u32 ring;    // shared address of the first stage
    u32 *scales; // two blocks' scales, behind the stages
    i32 first, last;

    __device__ __forceinline__ u32 stage(i32 block) const
    {
        return ring + (block - first) % C.stages * T::kStage;
    }

    __device__ __forceinline__ u32 *slot(i32 block) const
    {
        return scales + block % 2 * T::kWords;
    }

    __device__ __forceinline__ void load(i32 block) const
    {
        if (block < last) {
            copy_a.load(stage(block), block);
            copy_b.load(stage(block) + T::A::kBytes, block);
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
        scales_b.store(slot(block) + T::A::kRows);
        fetch_scales(block + 1);
    }
};

// All K blocks of a warp's tile, its rows and columns from (row, column) of the CTA's on.
template <Config C>
__device__ __forceinline__ void multiply_all(Sums<C> &sum, Pipeline<C> &line, i32 row, i32 column)
{
    using T = Tile<C>;
    constexpr int kRowsAt = C.swap ? T::A::kRows : 0, kColumnsAt = C.swap ? 0 : T::A::kRows;

    for (int s = 0; s < C.stages - 1; s++) {
        line.load(line.first + s);
    }
    line.fetch_scales(line.first);
    line.store_scales(line.first);
    for (i32 block = line.first; block < line.last; block++) {
        async_wait<C.stages - 2>();
        __syncthreads(); // this block is in place, and all warps are done with the one before
        line.load(block + C.stages - 1);
        line.store_scales(block + 1);
        const u32 stage = line.stage(block);
        WarpScales<C> scales;
        scales.load(line.slot(block) + kRowsAt + row, line.slot(block) + kColumnsAt + column);
        multiply_block<C>(sum, stage + (kRowsAt + row) * C.block_k,
                          stage + (kColumnsAt + column) * C.block_k, scales);
    }
}

// A warp's sums to D. Swapped, they are of D transposed and are turned first; of a last m8 tile
// alone, the lower eight rows do not exist.
template <Config C, typename T>
__device__ __forceinline__ void output_sums(const Sums<C> &sum, T *d, i64 stride, i32 row,
                                            i32 column, i32 m, i32 n)
{
    if constexpr (C.swap) {
        using W = Tile<C>;
        float turned[ceil_div(W::kTilesC, 2)][2 * W::kTilesR][4] = {};
        turn_tiles(turned, sum);
        output_tile<C.align, C.accumulate>(turned, d, stride, column, row,
                                           min(m, column + W::kWarpC), n);
    } else {
        output_tile<C.align, C.accumulate>(sum, d, stride, row, column, m, n);
    }
}

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
    i32 m0, n0;
    place_tile<C>(tile, ceil_div(m, C.block_m), ceil_div(n, C.block_n), &m0, &n0);
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
