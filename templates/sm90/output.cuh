// output.cuh - from a warpgroup's sums to D, in a Hopper product: directly, by the copy engine, or
// through the parts of a cluster that shares K.
#pragma once
#include "device/wgmma_output.cuh"
#include "sm90/multiply.cuh"
#include "sm90/schedule.cuh"

// D, and where a warpgroup's sums go.
template <Config C> struct Output {
    using T = Tile<C>;
    using Out = typename ElementOf<C.out_f32 ? F32 : BF16>::Type;
    using Staged = StagedTile<T::kWide, C.swap, C.out_f32>;
    const TensorMap *map;
    Out *d;
    i64 row_stride, batch_stride;
    i32 m, n;
    u32 to;            // shared address of the warpgroup's staged tiles
    const i32 *labels; // experts of rows, where they have them

    // Tiles of eight columns, the first at (row, column).
    template <int Tiles, typename Rows>
    __device__ __forceinline__ void store(const float (&sum)[1][Tiles][4], const Rows &rows,
                                          i32 batch, i32 row, i32 column) const
    {
        Out *base = d + batch * batch_stride;
        if constexpr (C.swap && T::kGroupedRows && !C.out_f32) { // few rows, or a tile's last ones
            output_turned_pairs(sum[0], base, row_stride, row + i32(threadIdx.x) % 128 / 32 * 16,
                                column, rows, n);
        } else if constexpr (C.swap) {
            output_turned<C.accumulate>(sum[0], base, row_stride,
                                        row + i32(threadIdx.x) % 128 / 32 * 16, column, rows, n);
        } else {
            output_tile<16, C.accumulate>(sum, base, row_stride,
                                          row + i32(threadIdx.x) % 128 / 32 * 16, column, rows, n);
        }
    }

    // The rows of D that a piece of work stores.
    __device__ __forceinline__ auto rows_of(const Work &w) const
    {
        if constexpr (!T::kGroupedRows) {
            return m;
        } else {
            return ExpertRows<C.layout>{labels, w.expert, w.end};
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

    // Whether this warpgroup has no rows of the tile: experts' rows come first.
    __device__ __forceinline__ bool nothing(const Work &w, i32 row, i32 column) const
    {
        constexpr int kShares = (C.swap ? C.column_groups : C.row_groups) *
                                (C.pair == (C.swap ? 2 : 1) ? 2 : 1); // of the block of rows
        if constexpr (!T::kGroupedRows || kShares == 1) {
            return false;
        } else {
            return !row_kept(rows_of(w), C.swap ? column : row);
        }
    }

    // Whether the engine may write this warpgroup's tiles: all their rows of D are to be stored, or
    // those that are not lie outside of D.
    __device__ __forceinline__ bool whole(const Work &w, i32 row, i32 column) const
    {
        if constexpr (!T::kGroupedRows) {
            return true;
        } else {
            const i32 first = C.swap ? column : row, count = C.swap ? T::kWide : T::kTiles * 64;
            bool kept = true;
            if constexpr (C.layout == GROUPED_ROWS) { // every warp looks at all of them
                for (i32 i = i32(threadIdx.x) % 32; i < count; i += 32) {
                    kept = kept && row_kept(rows_of(w), first + i);
                }
                kept = __all_sync(0xffffffffu, kept);
            } else {
                kept = first + count <= w.end;
            }
            return kept;
        }
    }

    __device__ __forceinline__ void all(const Sums<C> &sum, const Work &w, i32 row,
                                        i32 column) const
    {
        if constexpr (C.staged) {
            if (whole(w, row, column)) {
                stage(sum, w.batch, row, column);
                return;
            }
        }
        if constexpr (!C.staged || T::kGroupedRows) {
#pragma unroll
            for (int i = 0; i < T::kTiles * T::kChunks; i++) {
                store(reinterpret_cast<const float(&)[1][C.chunk / 8][4]>(
                          sum[i / T::kChunks][i % T::kChunks]),
                      rows_of(w), w.batch, row + i / T::kChunks * 64,
                      column + i % T::kChunks * C.chunk);
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
        out.store(total, out.m, batch, row + i / (T::kWide / 8) * 64,
                  column + i % (T::kWide / 8) * 8);
    }
}

// Clusters that share tiles: each CTA has room in the workspace for one tile's sums, which it gives
// to the member that ends the tile, and a flag for each of its warpgroups, 0 until they are there.
// Members wait for those before them only, which gave before they waited: CTAs begin in order.
template <Config C> struct Sharing {
    using T = Tile<C>;
    static constexpr int kPieces = T::kTiles * T::kWide / 8; // of four sums, of a thread
    static constexpr int kThreads = T::kGroups * 128;
    void *workspace;

    // Flags come first, in a multiple of 256 bytes.
    __device__ __forceinline__ u32 *flag(i32 cta) const
    {
        return static_cast<u32 *>(workspace) + cta * T::kGroups + threadIdx.x / 128;
    }

    __device__ __forceinline__ float4 *sums(i32 cta) const
    {
        const i64 flags = (i64(gridDim.x) * T::kGroups * 4 + 255) / 256 * 256;
        return reinterpret_cast<float4 *>(static_cast<u8 *>(workspace) + flags) +
               i64(cta) * kPieces * kThreads + threadIdx.x;
    }

    static __device__ __forceinline__ float (&piece(Sums<C> &sum, int i))[4]
    {
        return sum[i / (T::kWide / 8)][i % (T::kWide / 8) / (C.chunk / 8)][i % (C.chunk / 8)];
    }

    __device__ __forceinline__ void give(Sums<C> &sum) const
    {
        float4 *to = sums(i32(blockIdx.x));
#pragma unroll
        for (int i = 0; i < kPieces; i++) {
            const float(&x)[4] = piece(sum, i);
            to[i * kThreads] = make_float4(x[0], x[1], x[2], x[3]);
        }
        named_sync(1 + threadIdx.x / 128, 128);
        if (threadIdx.x % 128 == 0) {
            flag_raise(flag(i32(blockIdx.x)));
        }
    }

    // Adds what the members before this one, the nearest first, summed of the tile that begins at
    // the run's K block `begin`.
    __device__ __forceinline__ void take(Sums<C> &sum, const Schedule<C> &schedule, i32 begin) const
    {
        for (i32 who = schedule.member - 1, before = schedule.from; before > begin; who--) {
            before = schedule.begin_of(who);
            const i32 cta = i32(blockIdx.x) - (schedule.member - who) * T::kCluster;
            if (threadIdx.x % 128 == 0) {
                flag_wait(flag(cta));
            }
            named_sync(1 + threadIdx.x / 128, 128);
            const float4 *from = sums(cta);
#pragma unroll
            for (int i = 0; i < kPieces; i++) {
                const float4 x = from[i * kThreads];
                float(&to)[4] = piece(sum, i);
                to[0] += x.x, to[1] += x.y, to[2] += x.z, to[3] += x.w;
            }
        }
    }
};
