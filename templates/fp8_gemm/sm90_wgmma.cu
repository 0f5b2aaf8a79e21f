// sm90_wgmma.cu - D[b,m,n] = sum over k of A[b,m,k] * SFA * B[b,n,k] * SFB (+ D), e4m3 operands,
// bf16 or fp32 D, for Hopper.
//
// Each CTA is a pipeline (docs/kernels/fp8_gemm.md has the picture). The last warpgroup loads: one
// warp has the copy engine fill a ring of stages, 128 of K each, three warps bring the scales
// along. The other warpgroups multiply with wgmma and add what the tensor core summed over one
// scale group (its 13 bits hold no longer sum well) to fp32 registers: sum = fma(scale of row *
// scale of column, part, sum). K runs in one fixed order.
//
// One operand gives the instruction's 64 rows, the other its 8 to 256 columns: A and B, or with
// `swap` B and A, so that few rows of A do not pay for 64. Here "row" and "column" mean those; D is
// turned around when it is stored. Domains and launch: sm90_wgmma.yaml.
#include "device/barrier.cuh"
#include "device/scale_stage.cuh"
#include "device/tensor_copy.cuh"
#include "device/wgmma.cuh"
#include "device/wgmma_output.cuh"

struct Config {
    int block_m, block_n;          // CTA tile
    bool swap;                     // rows are B's
    int row_groups, column_groups; // warpgroups that multiply, along rows and columns
    int chunk;                     // columns of one wgmma
    int sets;                      // partial sums in flight of a warpgroup
    int stages;                    // K blocks in shared memory
    int pair;    // two CTAs share a load: 1 that of the columns' operand, 2 of the rows', 0 none
    int split_k; // CTAs that share a tile along K
    int raster;  // tile rows that CTAs in flight share, for L2
    bool staged; // D through shared memory and the copy engine
    int loader_registers; // of a thread that loads; the others share what is left
    int residency;        // CTAs of an SM that registers are kept for
    int a_gran_k, b_gran_mn, b_gran_k;
    bool a_ue8m0, a_packed, b_ue8m0, b_packed;
    bool out_f32, accumulate;
};

template <Config C> struct Tile {
    static constexpr int kRows = C.swap ? C.block_n : C.block_m;
    static constexpr int kColumns = C.swap ? C.block_m : C.block_n;
    static constexpr int kGroups = C.row_groups * C.column_groups; // warpgroups that multiply
    static constexpr int kThreads = 128 * (kGroups + 1);
    static constexpr int kCluster = C.split_k > 1 ? C.split_k : C.pair > 0 ? 2 : 1;
    // Of one warpgroup: tiles of 64 rows, and columns cut into chunks.
    static constexpr int kTiles = kRows / 64 / C.row_groups;
    static constexpr int kWide = kColumns / C.column_groups, kChunks = kWide / C.chunk;
    // A unit is what fills one set: the wgmmas of a promotion interval for one tile and chunk.
    static constexpr int kInterval = least(C.a_gran_k, C.b_gran_k), kIntervals = 128 / kInterval;
    static constexpr int kUnits = kIntervals * kTiles * kChunks;

    static constexpr int kRowBytes = kRows * 128, kColumnBytes = kColumns * 128;
    static constexpr int kRowGran = C.swap ? C.b_gran_mn : 1,
                         kColumnGran = C.swap ? 1 : C.b_gran_mn;
    static constexpr int kRowStep = kRowGran == 1 ? 1 : 32;
    static constexpr int kColumnStep = common_divisor(kWide, kColumnGran);
    static constexpr ScaleShape kRowScales = {kRows / kRowStep,
                                              kRowStep,
                                              kRowGran,
                                              C.swap ? C.b_gran_k : C.a_gran_k,
                                              C.swap ? C.b_ue8m0 : C.a_ue8m0,
                                              C.swap ? C.b_packed : C.a_packed,
                                              true};
    static constexpr ScaleShape kColumnScales = {kColumns / kColumnStep,
                                                 kColumnStep,
                                                 kColumnGran,
                                                 C.swap ? C.a_gran_k : C.b_gran_k,
                                                 C.swap ? C.a_ue8m0 : C.b_ue8m0,
                                                 C.swap ? C.a_packed : C.b_packed,
                                                 false};
    using RowScales = ScaleStage<kRowScales>;
    using ColumnScales = ScaleStage<kColumnScales>;

    // Shared memory, from its beginning.
    static constexpr int kColumnsAt = C.stages * kRowBytes;
    static constexpr int kOutputAt = kColumnsAt + C.stages * kColumnBytes;
    static constexpr int kOutputBytes = C.staged ? kRows * kColumns * (C.out_f32 ? 4 : 2) : 0;
    static constexpr int kRowScalesAt = kOutputAt + kOutputBytes;
    static constexpr int kColumnScalesAt = kRowScalesAt + C.stages * RowScales::kBytes;
    static constexpr int kBarriersAt = kColumnScalesAt + C.stages * ColumnScales::kBytes;
    static constexpr int kShared = kBarriersAt + C.stages * 16;

    // Registers of a thread: at entry all alike, then setmaxnreg moves them to those that multiply.
    static constexpr int kEntry = least(65536 / (kThreads * C.residency) / 8 * 8, 255);
    static constexpr int kMultiplier =
        least((kEntry * (kGroups + 1) - C.loader_registers) / kGroups / 8 * 8, 240);
    static constexpr bool kMoves = kEntry < 232;

    static_assert(kRows % (64 * C.row_groups) == 0, "rows: whole m64 tiles for each warpgroup");
    static_assert(kColumns % C.column_groups == 0 && kWide % C.chunk == 0 && C.chunk % 8 == 0 &&
                      C.chunk <= 256,
                  "chunk: divides a warpgroup's columns, 8 to 256");
    static_assert(C.sets == 1 || (C.sets == 2 && kUnits % 2 == 0),
                  "sets: a block's units alternate");
    static_assert(C.stages >= 2 && C.raster >= 1 && C.residency >= 1, "stages, raster, residency");
    static_assert(C.pair == 0 || C.split_k == 1, "a cluster shares loads or K, not both");
    static_assert(C.split_k == 1 || kRows * kColumns * 4 <= kOutputAt,
                  "partial sums lie where stages were");
    static_assert(C.a_gran_k % kInterval == 0 && C.b_gran_k % kInterval == 0,
                  "promotion within one group");
};

// A tile of D that a cluster makes, and the K blocks that this CTA sums for it.
struct Work {
    i32 batch, row, column; // first element that this CTA makes, in rows and columns
    i32 first, blocks;      // K blocks
};

template <Config C> struct Schedule {
    using T = Tile<C>;
    i32 tiles_m, tiles_n, tiles; // of clusters
    i32 k_blocks;
    i32 rank; // of this CTA in its cluster

    static constexpr int kTileRows = T::kRows * (C.pair == 1 ? 2 : 1);
    static constexpr int kTileColumns = T::kColumns * (C.pair == 2 ? 2 : 1);

    // Each role makes its own: fewer registers live for all of them.
    static __device__ __forceinline__ Schedule make(i32 m, i32 n, i32 k, i32 batch)
    {
        const i32 tiles_m = ceil_div(m, C.swap ? kTileColumns : kTileRows);
        const i32 tiles_n = ceil_div(n, C.swap ? kTileRows : kTileColumns);
        return {.tiles_m = tiles_m,
                .tiles_n = tiles_n,
                .tiles = tiles_m * tiles_n * batch,
                .k_blocks = ceil_div(k, 128),
                .rank = T::kCluster > 1 ? i32(cluster_rank()) : 0};
    }

    __device__ __forceinline__ i32 first() const
    {
        return i32(blockIdx.x) / T::kCluster;
    }

    __device__ __forceinline__ i32 step() const
    {
        return i32(gridDim.x) / T::kCluster;
    }

    // Runs of `raster` tile rows of D go through all columns, so that CTAs in flight share B.
    __device__ __forceinline__ Work at(i32 index) const
    {
        const i32 b = index / (tiles_m * tiles_n), inside = index % (tiles_m * tiles_n);
        const i32 run = inside / (C.raster * tiles_n), within = inside % (C.raster * tiles_n);
        const i32 high = min(C.raster, tiles_m - run * C.raster);
        const i32 m = run * C.raster + within % high, n = within / high;
        const i32 part = C.split_k > 1 ? rank : 0;
        const i32 first = i32(i64(k_blocks) * part / C.split_k);
        return {.batch = b,
                .row = (C.swap ? n : m) * kTileRows + (C.pair == 1 ? rank * T::kRows : 0),
                .column = (C.swap ? m : n) * kTileColumns + (C.pair == 2 ? rank * T::kColumns : 0),
                .first = first,
                .blocks = i32(i64(k_blocks) * (part + 1) / C.split_k) - first};
    }
};

// The ring of stages: which one is next, and the parity of its phase.
template <Config C> struct Ring {
    u32 base; // shared address of the kernel's memory
    i32 stage = 0;
    u32 parity = 0;

    __device__ __forceinline__ void advance()
    {
        stage++;
        if (stage == C.stages) {
            stage = 0;
            parity ^= 1;
        }
    }

    __device__ __forceinline__ u32 full() const
    {
        return base + Tile<C>::kBarriersAt + stage * 8;
    }

    __device__ __forceinline__ u32 empty() const
    {
        return full() + C.stages * 8;
    }
};

// One warp's lane has the engine load the operands of every stage.
template <Config C>
__device__ __forceinline__ void load_operands(Ring<C> ring, const Schedule<C> &schedule,
                                              const TensorMap *rows, const TensorMap *columns)
{
    using T = Tile<C>;
    for (i32 i = schedule.first(); i < schedule.tiles; i += schedule.step()) {
        const Work w = schedule.at(i);
#pragma unroll 1
        for (i32 b = 0; b < w.blocks; b++, ring.advance()) {
            const u32 to_rows = ring.base + ring.stage * T::kRowBytes;
            const u32 to_columns = ring.base + T::kColumnsAt + ring.stage * T::kColumnBytes;
            const i32 k = (w.first + b) * 128, half = schedule.rank;
            barrier_wait<C.pair != 0>(ring.empty(), ring.parity ^ 1);
            barrier_arrive_expect(ring.full(), T::kRowBytes + T::kColumnBytes);
            if constexpr (C.pair == 2) {
                tensor_load_multicast(to_rows + half * (T::kRowBytes / 2), rows, ring.full(), 3, k,
                                      w.row + half * (T::kRows / 2), w.batch);
            } else {
                tensor_load(to_rows, rows, ring.full(), k, w.row, w.batch);
            }
            if constexpr (C.pair == 1) {
                tensor_load_multicast(to_columns + half * (T::kColumnBytes / 2), columns,
                                      ring.full(), 3, k, w.column + half * (T::kColumns / 2),
                                      w.batch);
            } else {
                tensor_load(to_columns, columns, ring.full(), k, w.column, w.batch);
            }
        }
    }
}

// Some warps bring one operand's scales of every stage, reading ahead.
template <Config C, ScaleShape S, int Threads, int At>
__device__ __forceinline__ void load_scales(Ring<C> ring, const Schedule<C> &schedule,
                                            const ScaleSource &source, u8 *shared, u32 thread)
{
    constexpr bool kRows = At == Tile<C>::kRowScalesAt;
    constexpr int kAhead =
        ScaleReads<S, Threads, 1>::kEach * ScaleReads<S, Threads, 1>::kHeld >= 4 ? 1 : 2;
    ScaleReads<S, Threads, kAhead> reads;
    for (i32 i = schedule.first(); i < schedule.tiles; i += schedule.step()) {
        const Work w = schedule.at(i);
        reads.open(source, w.batch, kRows ? w.row : w.column, thread);
#pragma unroll
        for (int a = 0; a < kAhead; a++) {
            reads.fetch(a, w.first + a);
        }
#pragma unroll 1 // registers are scarce here
        for (i32 from = 0; from < w.blocks; from += kAhead) {
#pragma unroll
            for (int a = 0; a < kAhead; a++) {
                if (from + a < w.blocks) {
                    const i32 block = w.first + from + a;
                    barrier_wait<C.pair != 0>(ring.empty(), ring.parity ^ 1);
                    reads.store(
                        reinterpret_cast<float *>(shared + At + ring.stage * ScaleStage<S>::kBytes),
                        a, block, thread);
                    __syncwarp();
                    if (thread % 32 == 0) {
                        barrier_arrive(ring.full());
                    }
                    ring.advance();
                    reads.fetch(a, block + kAhead);
                }
            }
        }
    }
}

template <Config C> using Part = float[C.chunk / 8][4];
template <Config C> using Sums = Part<C>[Tile<C>::kTiles][Tile<C>::kChunks];

// Start the products of a unit: the wgmmas of one promotion interval for a tile of rows and a
// chunk.
template <Config C>
__device__ __forceinline__ void start_unit(Part<C> &part, u64 rows, u64 columns, int unit)
{
    using T = Tile<C>;
    const int interval = unit / (T::kTiles * T::kChunks);
    const int tile = unit / T::kChunks % T::kTiles, chunk = unit % T::kChunks;
    const u64 a = rows + ((tile * 64 * 128 + interval * T::kInterval) >> 4);
    const u64 b = columns + ((chunk * C.chunk * 128 + interval * T::kInterval) >> 4);
    wgmma_fence();
    wgmma_multiply<false>(part, a, b);
#pragma unroll
    for (int s = 1; s < T::kInterval / 32; s++) {
        wgmma_multiply<true>(part, a + s * 2, b + s * 2);
    }
    wgmma_commit();
}

// Scales of the rows of this thread for a whole stage: of its upper and lower row of each tile.
template <Config C> struct RowScales {
    using T = Tile<C>;
    static constexpr int kGroups = T::RowScales::kGroups;
    float upper[T::kTiles][kGroups], lower[T::kTiles][kGroups];

    // `line`: of the warpgroup's first row.
    __device__ __forceinline__ void load(const float *slot, i32 first_row)
    {
        const i32 warp = i32(threadIdx.x) % 128 / 32, lane = i32(threadIdx.x) % 32;
#pragma unroll
        for (int t = 0; t < T::kTiles; t++) {
            const i32 row = first_row + t * 64 + warp * 16 + (T::kRowGran == 1 ? lane / 4 : 0);
            scales_load(upper[t], slot + row / T::kRowStep * kGroups);
            if constexpr (T::kRowGran == 1) {
                scales_load(lower[t], slot + (row + 8) * kGroups);
            } else {
#pragma unroll
                for (int g = 0; g < kGroups; g++) {
                    lower[t][g] = upper[t][g];
                }
            }
        }
    }
};

// sum += row scale * column scale * part. `columns` are the scales of the warpgroup's columns for
// one group of K: one for each step of columns, or for each column.
template <Config C>
__device__ __forceinline__ void promote(Part<C> &sum, const Part<C> &part, float upper, float lower,
                                        const float *columns, int chunk)
{
    using T = Tile<C>;
#pragma unroll
    for (int j = 0; j < C.chunk / 8; j++) {
        float left, right;
        if constexpr (T::kColumnGran == 1) {
            const i32 c = chunk * C.chunk + j * 8 + i32(threadIdx.x) % 4 * 2;
            const float2 pair = *reinterpret_cast<const float2 *>(columns + c);
            left = pair.x, right = pair.y;
        } else {
            left = right = columns[(chunk * C.chunk + j * 8) / T::kColumnStep];
        }
        sum[j][0] = fmaf(upper * left, part[j][0], sum[j][0]);
        sum[j][1] = fmaf(upper * right, part[j][1], sum[j][1]);
        sum[j][2] = fmaf(lower * left, part[j][2], sum[j][2]);
        sum[j][3] = fmaf(lower * right, part[j][3], sum[j][3]);
    }
}

// A warpgroup's way through the ring.
template <Config C> struct Multiplier {
    using T = Tile<C>;
    static constexpr int kLines = T::kColumnGran == 1 ? 1 : T::kWide / T::kColumnStep;
    Ring<C> ring;
    const u8 *shared;
    i32 row, column; // of the warpgroup in the CTA's tile

    __device__ __forceinline__ u64 rows() const
    {
        return wgmma_operand(ring.base + row * 128) + ring.stage * (T::kRowBytes >> 4);
    }

    __device__ __forceinline__ u64 columns() const
    {
        return wgmma_operand(ring.base + T::kColumnsAt + column * 128) +
               ring.stage * (T::kColumnBytes >> 4);
    }

    __device__ __forceinline__ const float *slot(int at, int bytes) const
    {
        return reinterpret_cast<const float *>(shared + at + ring.stage * bytes);
    }

    // This warp is done with the stage: in both CTAs where they share loads.
    __device__ __forceinline__ void release(u32 empty) const
    {
        const u32 lane = threadIdx.x % 32;
        __syncwarp();
        if constexpr (C.pair != 0) {
            if (lane < 2) {
                barrier_arrive_at(empty, lane);
            }
        } else if (lane == 0) {
            barrier_arrive(empty);
        }
    }

    // One stage. With two sets the products of unit u + 1 run while unit u is added up, also from
    // stage to stage: its first unit is started already, and unless it is the last, the next
    // stage's is started here. A group that runs on over the end of the loop's body must be the
    // only one (wait 0), or ptxas makes all wgmma wait.
    template <bool Last>
    __device__ __forceinline__ void stage(Sums<C> &sum, Part<C> (&part)[C.sets])
    {
        const u64 a = rows(), b = columns();
        const u32 empty = ring.empty();
        const float *column_slot =
            slot(T::kColumnScalesAt, T::ColumnScales::kBytes) + column / T::kColumnStep;
        RowScales<C> scales;
        scales.load(slot(T::kRowScalesAt, T::RowScales::kBytes), row);
        ring.advance();
#pragma unroll
        for (int u = 0; u < T::kUnits; u++) {
            const int interval = u / (T::kTiles * T::kChunks), tile = u / T::kChunks % T::kTiles;
            const int row_group = interval % RowScales<C>::kGroups;
            const float *from =
                column_slot + interval % T::ColumnScales::kGroups * T::kColumnScales.lines;
            float lines[kLines];
            if constexpr (C.sets == 1) {
                start_unit<C>(part[0], a, b, u);
            }
            if constexpr (T::kColumnGran != 1) {
                scales_load(lines, from);
            }
            wgmma_wait<0>();
            wgmma_hold(part[u % C.sets]);
            if constexpr (C.sets == 2) {
                if (u + 1 < T::kUnits) {
                    start_unit<C>(part[(u + 1) % 2], a, b, u + 1);
                } else if (!Last) {
                    barrier_wait<false>(ring.full(), ring.parity);
                    start_unit<C>(part[0], rows(), columns(), 0);
                }
            }
            if (u + 1 == T::kUnits && T::kColumnGran != 1) {
                release(empty);
            }
            promote<C>(sum[tile][u % T::kChunks], part[u % C.sets], scales.upper[tile][row_group],
                       scales.lower[tile][row_group], T::kColumnGran == 1 ? from : lines,
                       u % T::kChunks);
        }
        if constexpr (T::kColumnGran == 1) {
            release(empty);
        }
    }

    __device__ __forceinline__ void tile(Sums<C> &sum, i32 blocks)
    {
        Part<C> part[C.sets];
        if (blocks == 0) {
            return;
        }
        barrier_wait<false>(ring.full(), ring.parity);
        if constexpr (C.sets == 2) {
            start_unit<C>(part[0], rows(), columns(), 0);
        }
        for (i32 b = 1; b < blocks; b++) {
            stage<false>(sum, part);
            if constexpr (C.sets == 1) {
                barrier_wait<false>(ring.full(), ring.parity);
            }
        }
        stage<true>(sum, part);
    }
};

// D, and where a warpgroup's sums go.
template <Config C> struct Output {
    using T = Tile<C>;
    using Out = typename ElementOf<C.out_f32 ? F32 : BF16>::Type;
    using Staged = StagedTile<T::kWide, C.swap, C.out_f32>;
    const TensorMap *map;
    Out *d;
    i64 row_stride, batch_stride;
    i32 m, n;
    u32 to; // shared address of the warpgroup's staged tiles

    // Tiles of eight columns, the first at (row, column).
    template <int Tiles>
    __device__ __forceinline__ void store(const float (&sum)[1][Tiles][4], i32 batch, i32 row,
                                          i32 column) const
    {
        Out *base = d + batch * batch_stride;
        if constexpr (C.swap) {
            output_turned<C.accumulate>(sum[0], base, row_stride,
                                        row + i32(threadIdx.x) % 128 / 32 * 16, column, m, n);
        } else {
            output_tile<16, C.accumulate>(sum, base, row_stride,
                                          row + i32(threadIdx.x) % 128 / 32 * 16, column, m, n);
        }
    }

    // Through shared memory. The next tile's products run on while the engine writes.
    __device__ __forceinline__ void stage(const Sums<C> &sum, i32 batch, i32 row, i32 column) const
    {
        const u32 barrier = 1 + threadIdx.x / 128;
        const bool leader = threadIdx.x % 128 == 0;
        if (leader) {
            bulk_wait_read();
        }
        named_sync(barrier, 128);
#pragma unroll
        for (int i = 0; i < T::kTiles * T::kChunks; i++) {
            Staged::write(to + i / T::kChunks * Staged::kBytes, sum[i / T::kChunks][i % T::kChunks],
                          i % T::kChunks * C.chunk);
        }
        engine_fence();
        named_sync(barrier, 128);
        if (leader) {
#pragma unroll
            for (int t = 0; t < T::kTiles; t++) {
                const i32 r = row + t * 64;
                Staged::template send<C.accumulate>(
                    map, to + t * Staged::kBytes, C.swap ? column : r, C.swap ? r : column, batch);
            }
            bulk_commit();
        }
    }

    __device__ __forceinline__ void all(const Sums<C> &sum, i32 batch, i32 row, i32 column) const
    {
        if constexpr (C.staged) {
            stage(sum, batch, row, column);
        } else {
#pragma unroll
            for (int i = 0; i < T::kTiles * T::kChunks; i++) {
                store(reinterpret_cast<const float(&)[1][C.chunk / 8][4]>(
                          sum[i / T::kChunks][i % T::kChunks]),
                      batch, row + i / T::kChunks * 64, column + i % T::kChunks * C.chunk);
            }
        }
    }
};

// The CTAs of a cluster hold sums of parts of K: each adds up a share of the tile, in the CTAs'
// order, and stores it.
template <Config C>
__device__ __forceinline__ void add_parts(const Sums<C> &sum, const Output<C> &out, u32 base,
                                          i32 batch, i32 row, i32 column)
{
    using T = Tile<C>;
    constexpr int kPieces = T::kTiles * T::kWide / 8; // of eight columns, of a thread
    const u32 mine = base + threadIdx.x * 16;
    named_sync(8, T::kGroups * 128); // all are done with the stages
#pragma unroll
    for (int i = 0; i < kPieces; i++) {
        const float(&x)[4] =
            sum[i / (T::kWide / 8)][i % (T::kWide / 8) / (C.chunk / 8)][i % (C.chunk / 8)];
        shared_store4(mine + i * T::kGroups * 128 * 16, x);
    }
    cluster_sync();
    const i32 rank = i32(cluster_rank());
    for (i32 i = kPieces * rank / C.split_k; i < kPieces * (rank + 1) / C.split_k; i++) {
        float total[1][1][4] = {};
#pragma unroll
        for (u32 r = 0; r < C.split_k; r++) {
            const float4 x = cluster_load(mine + i * T::kGroups * 128 * 16, r);
            total[0][0][0] += x.x, total[0][0][1] += x.y, total[0][0][2] += x.z,
                total[0][0][3] += x.w;
        }
        out.store(total, batch, row + i / (T::kWide / 8) * 64, column + i % (T::kWide / 8) * 8);
    }
}

template <Config C>
__device__ __forceinline__ void multiply_all(Multiplier<C> line, const Schedule<C> &schedule,
                                             const Output<C> &out)
{
    for (i32 i = schedule.first(); i < schedule.tiles; i += schedule.step()) {
        const Work w = schedule.at(i);
        Sums<C> sum = {};
        line.tile(sum, w.blocks);
        if constexpr (C.split_k > 1) {
            add_parts<C>(sum, out, line.ring.base, w.batch, w.row + line.row,
                         w.column + line.column);
        } else {
            out.all(sum, w.batch, w.row + line.row, w.column + line.column);
        }
    }
    if (C.staged && threadIdx.x % 128 == 0) {
        bulk_wait();
    }
}

template <Config C> __device__ __forceinline__ void barriers_init(u32 base)
{
    using T = Tile<C>;
    for (int s = 0; s < C.stages; s++) {
        const u32 full = base + T::kBarriersAt + s * 8;
        barrier_init(full, 1 + 3); // the engine's warp and those of the scales
        barrier_init(full + C.stages * 8, T::kGroups * 4 * (C.pair != 0 ? 2 : 1));
    }
    barrier_init_fence();
}

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
                        i64 b_scale_batch)
{
    using T = Tile<C>;
    extern __shared__ __align__(1024) u8 shared[];
    const u32 base = u32(__cvta_generic_to_shared(shared));
    const i32 group = __shfl_sync(0xffffffffu, i32(threadIdx.x) / 128, 0);
    if (threadIdx.x == 0) {
        tensor_prefetch(&a_map);
        tensor_prefetch(&b_map);
        barriers_init<C>(base);
    }
    if constexpr (T::kCluster > 1) {
        cluster_sync();
    } else {
        __syncthreads();
    }
    grid_wait();
    grid_release();
    if (group == T::kGroups) {
        if constexpr (T::kMoves) {
            registers_lower<C.loader_registers>();
        }
        const Schedule<C> schedule = Schedule<C>::make(m, n, k, batch);
        const ScaleSource of_a = {a_scale,       a_scale_row, a_scale_group,          a_scale_batch,
                                  a_first_group, m,           ceil_div(k, C.a_gran_k)};
        const ScaleSource of_b = {b_scale, b_scale_row, b_scale_group,          b_scale_batch,
                                  0,       n,           ceil_div(k, C.b_gran_k)};
        const u32 thread = threadIdx.x % 128; // the first warp's lane drives the copy engine
        constexpr int kOfRows = T::kRowGran == 1 ? 64 : 32; // threads
        if (thread >= 32 + kOfRows) {
            load_scales<C, T::kColumnScales, 96 - kOfRows, T::kColumnScalesAt>(
                {base}, schedule, C.swap ? of_a : of_b, shared, thread - 32 - kOfRows);
        } else if (thread >= 32) {
            load_scales<C, T::kRowScales, kOfRows, T::kRowScalesAt>(
                {base}, schedule, C.swap ? of_b : of_a, shared, thread - 32);
        } else if (threadIdx.x % 32 == 0) {
            load_operands<C>({base}, schedule, C.swap ? &b_map : &a_map, C.swap ? &a_map : &b_map);
        }
        __syncwarp();
        if constexpr (C.split_k > 1) {
            cluster_sync(); // of add_parts
        }
    } else {
        if constexpr (T::kMoves) {
            registers_raise<T::kMultiplier>();
        }
        const Schedule<C> schedule = Schedule<C>::make(m, n, k, batch);
        const i32 row = group / C.column_groups * T::kTiles * 64,
                  column = group % C.column_groups * T::kWide;
        const Output<C> out = {&d_map,
                               static_cast<typename Output<C>::Out *>(d),
                               d_row,
                               d_batch,
                               m,
                               n,
                               base + T::kOutputAt + group * T::kTiles * Output<C>::Staged::kBytes};
        multiply_all<C>({{base}, shared, row, column}, schedule, out);
    }
    if constexpr (T::kCluster > 1) {
        cluster_sync(); // no CTA ends while another reads its memory or arrives on its barriers
    }
}
