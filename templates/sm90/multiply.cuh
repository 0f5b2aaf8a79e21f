// multiply.cuh - a multiplying warpgroup of a Hopper product: products of a stage, and their
// promotion to fp32 sums.
#pragma once
#include "device/wgmma.cuh"
#include "sm90/tile.cuh"

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

// Scales of the rows of this thread for a stage: of its upper and lower row of each tile, of all
// groups of K or of the first ones.
template <Config C, int Groups = Tile<C>::RowScales::kGroups> struct RowScales {
    using T = Tile<C>;
    static constexpr int kGroups = Groups, kStride = T::RowScales::kGroups;
    float upper[T::kTiles][kGroups], lower[T::kTiles][kGroups];

    // From the slot of a stage, At beyond `slot`; `first_row`: the warpgroup's.
    template <int At> __device__ __forceinline__ void load(u32 slot, i32 first_row)
    {
#pragma unroll
        for (int t = 0; t < T::kTiles; t++) {
            load_tile<At>(slot, first_row, t);
        }
    }

    template <int At> __device__ __forceinline__ void load_tile(u32 slot, i32 first_row, int t)
    {
        const i32 warp = i32(threadIdx.x) % 128 / 32, lane = i32(threadIdx.x) % 32;
        const i32 row = first_row + warp * 16 + (T::kRowGran == 1 ? lane / 4 : 0);
        const u32 at =
            slot + row / T::kRowStep * (kStride * 4) + t * (64 / T::kRowStep * kStride * 4);
        scales_load<At>(upper[t], at);
        if constexpr (T::kRowGran == 1) {
            scales_load<At + 8 * kStride * 4>(lower[t], at);
        } else {
#pragma unroll
            for (int g = 0; g < kGroups; g++) {
                lower[t][g] = upper[t][g];
            }
        }
    }
};

// sum += row scale * column scale * part. The scales of the warpgroup's columns for one group of K
// are `lines`, one for each step of columns, or where each column has its own lie at `slot`.
template <Config C>
__device__ __forceinline__ void promote(Part<C> &sum, const Part<C> &part, float upper, float lower,
                                        const float *lines, u32 slot, int chunk)
{
    using T = Tile<C>;
#pragma unroll
    for (int j = 0; j < C.chunk / 8; j++) {
        float left, right;
        if constexpr (T::kColumnGran == 1) {
            float pair[2];
            scales_load<T::kColumnScalesAt>(pair, slot + (chunk * C.chunk + j * 8) * 4 +
                                                      threadIdx.x % 4 * 8);
            left = pair[0], right = pair[1];
        } else {
            left = right = lines[(chunk * C.chunk + j * 8) / T::kColumnStep];
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

    // Of the stage: a slot of so many bytes, from the first stage's.
    __device__ __forceinline__ u32 slot(int bytes) const
    {
        return ring.base + ring.stage * bytes;
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

    // The products after unit u's: of this stage, or the first ones of the next unless there is
    // none.
    template <bool Last>
    __device__ __forceinline__ void start_next(Part<C> (&part)[C.sets], u64 a, u64 b, int u) const
    {
        if (u + 1 < T::kUnits) {
            start_unit<C>(part[(u + 1) % 2], a, b, u + 1);
        } else if (!Last) {
            barrier_wait<false>(ring.full(), ring.parity);
            start_unit<C>(part[0], rows(), columns(), 0);
        }
    }

    // One stage. With two sets the products of unit u + 1 run while unit u is added up, also from
    // stage to stage: its first unit is started already, and unless it is the last, the next
    // stage's is started here. They start when unit u is done, or with a queue of two before, so
    // that the tensor core goes on at once. A group that runs on over the end of the loop's body
    // must be the only one (wait 0), or ptxas makes all wgmma wait.
    template <bool Last>
    __device__ __forceinline__ void stage(Sums<C> &sum, Part<C> (&part)[C.sets])
    {
        const u64 a = rows(), b = columns();
        const u32 empty = ring.empty();
        const u32 column_slot = slot(T::ColumnScales::kBytes) + column / T::kColumnStep * 4;
        RowScales<C> scales;
        scales.template load<T::kRowScalesAt>(slot(T::RowScales::kBytes), row);
        ring.advance();
        float lines[kLines];
        if constexpr (T::kColumnGran != 1 && T::ColumnScales::kGroups == 1) {
            scales_load<T::kColumnScalesAt>(lines, column_slot);
        }
#pragma unroll
        for (int u = 0; u < T::kUnits; u++) {
            const int interval = u / (T::kTiles * T::kChunks), tile = u / T::kChunks % T::kTiles;
            const int row_group = interval % RowScales<C>::kGroups;
            const u32 from =
                column_slot + interval % T::ColumnScales::kGroups * T::kColumnScales.lines * 4;
            if constexpr (C.sets == 1) {
                start_unit<C>(part[0], a, b, u);
            }
            if (T::kColumnGran != 1 && T::ColumnScales::kGroups > 1 &&
                u % (T::kTiles * T::kChunks) == 0) {
                scales_load<T::kColumnScalesAt>(lines, from);
            }
            const bool early = C.queue == 2 && u > 0, more = u + 1 < T::kUnits || !Last;
            if (early) {
                start_next<Last>(part, a, b, u);
            }
            if (early && more) {
                wgmma_wait<1>();
            } else {
                wgmma_wait<0>();
            }
            wgmma_hold(part[u % C.sets]);
            if (C.sets == 2 && !early) {
                start_next<Last>(part, a, b, u);
            }
            if (u + 1 == T::kUnits && T::kColumnGran != 1) {
                release(empty);
            }
            promote<C>(sum[tile][u % T::kChunks], part[u % C.sets], scales.upper[tile][row_group],
                       scales.lower[tile][row_group], lines, from, u % T::kChunks);
        }
        if constexpr (T::kColumnGran == 1) {
            release(empty);
        }
    }

    // Another warpgroup's or CTA's share of the tile has rows, this one's has none.
    __device__ __forceinline__ void skip(i32 blocks)
    {
        for (i32 b = 0; b < blocks; b++, ring.advance()) {
            barrier_wait<false>(ring.full(), ring.parity);
            release(ring.empty());
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
