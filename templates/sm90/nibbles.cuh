// nibbles.cuh - a multiplying warpgroup of a Hopper product whose rows are e2m1: their codes go
// from the stage to registers, become e4m3 there, and wgmma takes them from there.
//
// A stage's rows are 64 bytes, as a tensor map with swizzle 64 leaves them. A thread's share of 32
// of K is four codes at each of two places in each of two rows (wgmma.cuh).
#pragma once
#include "sm90/multiply.cuh"

// Where this thread's codes of a stage lie, and the tables that they go through.
template <Config C> struct Nibbles {
    using T = Tile<C>;
    const u8 *slot;    // of the stage's scales
    const u32 *tables; // of the upper row of the first tile
    u32 first;         // shared address of that row's first codes
    u32 positive;      // e2m1_positive's

    static __device__ __forceinline__ Nibbles make(const Multiplier<C> &m, u32 positive)
    {
        const i32 warp = i32(threadIdx.x) % 128 / 32, lane = i32(threadIdx.x) % 32;
        const i32 row = m.row + warp * 16 + lane / 4;
        const u8 *slot = m.shared + T::kRowScalesAt + m.ring.stage * T::RowScales::kBytes;
        return {
            slot,
            reinterpret_cast<const u32 *>(slot + T::RowScales::kTablesAt) + row / T::kRowStep * 4,
            m.ring.base + m.ring.stage * T::kRowBytes + swizzled<64>(row, lane % 4 * 2), positive};
    }

    template <int Offset> static __device__ __forceinline__ u32 codes(u32 at)
    {
        u32 four;
        asm volatile("ld.shared.u16 %0, [%1+%2];" : "=r"(four) : "r"(at), "n"(Offset) : "memory");
        return four;
    }

    // Of the thread's upper and lower row of a tile, for each 32 of K.
    struct Tables {
        u32 upper[4], lower[4];
    };

    __device__ __forceinline__ Tables tables_of(int tile) const
    {
        Tables t;
        if constexpr (C.fold) {
            const uint4 *from = reinterpret_cast<const uint4 *>(tables) + tile * 64 / T::kRowStep;
            const uint4 u = from[0], l = from[T::kRowStep == 1 ? 8 : 0];
            t.upper[0] = u.x, t.upper[1] = u.y, t.upper[2] = u.z, t.upper[3] = u.w;
            t.lower[0] = l.x, t.lower[1] = l.y, t.lower[2] = l.z, t.lower[3] = l.w;
        } else {
#pragma unroll
            for (int g = 0; g < 4; g++) {
                t.upper[g] = t.lower[g] = e2m1_table(0);
            }
        }
        return t;
    }

    // Step: which 32 of K. Rows of a tile are a multiple of 8 apart: they all have this swizzle.
    __device__ __forceinline__ void expand(u32 (&a)[4], const Tables &t, int tile, int step) const
    {
        constexpr int kLower = 8 * 64;
        const u32 at = (first ^ u32(step * 16)) + tile * 64 * 64;
        const u32 above = t.upper[step], below = t.lower[step];
        const u32 more_above = e2m1_table_upper(above), more_below = e2m1_table_upper(below);
        a[0] = e2m1x4_to_e4m3(codes<0>(at), above, more_above, positive);
        a[1] = e2m1x4_to_e4m3(codes<kLower>(at), below, more_below, positive);
        a[2] = e2m1x4_to_e4m3(codes<8>(at), above, more_above, positive);
        a[3] = e2m1x4_to_e4m3(codes<kLower + 8>(at), below, more_below, positive);
    }

    // Whether all rows of this warpgroup have one scale for the stage.
    __device__ __forceinline__ bool shares(i32 row) const
    {
        const u32 *flags = reinterpret_cast<const u32 *>(slot + T::RowScales::kFlagsAt) + row / 32;
        u32 apart = 0;
#pragma unroll
        for (int i = 0; i < T::kTiles * 2; i++) {
            apart |= flags[i];
        }
        return __shfl_sync(0xffffffffu, apart, 0) == 0;
    }
};

// What a stage's products and promotions need.
template <Config C> struct NibbleStage {
    using T = Tile<C>;
    Nibbles<C> nibbles;
    u32 row_slot, column_slot; // shared addresses
    i32 row;
    u64 columns;

    static __device__ __forceinline__ NibbleStage make(const Multiplier<C> &m, u32 positive)
    {
        NibbleStage s;
        s.nibbles = Nibbles<C>::make(m, positive);
        s.row_slot = m.slot(T::RowScales::kBytes);
        s.row = m.row;
        s.column_slot = m.slot(T::ColumnScales::kBytes) + m.column * 4;
        s.columns = m.columns();
        return s;
    }

    // One wgmma: 32 of K for a chunk of columns.
    template <bool Accumulate>
    __device__ __forceinline__ void multiply(Part<C> &part, const u32 (&a)[4], int chunk,
                                             int step) const
    {
        wgmma_fence();
        wgmma_multiply<Accumulate>(part, a, columns + ((chunk * C.chunk * 128 + step * 32) >> 4));
    }

    // The products of an interval that begins with that step.
    template <int Groups>
    __device__ __forceinline__ void add(Sums<C> &sum, const Part<C> &part,
                                        const RowScales<C, Groups> &scales, int tile, int chunk,
                                        int step) const
    {
        const int row_group = step * Groups / 4, column_group = step * 32 / T::kColumnScales.gran_k;
        promote<C>(sum[tile][chunk], part, scales.upper[tile][row_group],
                   scales.lower[tile][row_group], nullptr,
                   column_slot + column_group * T::kColumnScales.lines * 4, chunk);
    }

    // All products of the stage, one interval of one tile and chunk after the other.
    template <int Interval> __device__ __forceinline__ void all(Sums<C> &sum, Part<C> &part) const
    {
        constexpr int kSteps = Interval / 32;
        RowScales<C, least(4 / kSteps, T::RowScales::kGroups)> scales;
        scales.template load<T::kRowScalesAt>(row_slot, row);
#pragma unroll
        for (int i = 0; i < 4 / kSteps * T::kTiles; i++) {
            const int tile = i % T::kTiles, step = i / T::kTiles * kSteps;
            const typename Nibbles<C>::Tables tables = nibbles.tables_of(tile);
            u32 a[kSteps][4];
#pragma unroll
            for (int chunk = 0; chunk < T::kChunks; chunk++) {
#pragma unroll
                for (int s = 0; s < kSteps; s++) {
                    if (chunk == 0) {
                        nibbles.expand(a[s], tables, tile, step + s);
                    }
                    if (s == 0) {
                        multiply<false>(part, a[s], chunk, step + s);
                    } else {
                        multiply<true>(part, a[s], chunk, step + s);
                    }
                }
                wgmma_commit();
                wgmma_wait<0>();
                wgmma_hold(part);
                add(sum, part, scales, tile, chunk, step);
            }
        }
    }
};

// A stage with two sets: the products of unit u + 1 run while unit u is added up, and its codes are
// expanded while unit u multiplies. Nothing runs on over the end of the loop's body: where rows are
// registers ptxas then makes all wgmma wait (C7513).
template <Config C>
__device__ __forceinline__ void nibbles_stage(const NibbleStage<C> &now, Sums<C> &sum,
                                              Part<C> (&part)[2])
{
    using T = Tile<C>;
    const typename Nibbles<C>::Tables tables = now.nibbles.tables_of(0);
    RowScales<C> scales;
    u32 a[2][4];
    scales.template load<T::kRowScalesAt>(now.row_slot, now.row);
    now.nibbles.expand(a[0], tables, 0, 0);
    now.template multiply<false>(part[0], a[0], 0, 0);
    wgmma_commit();
#pragma unroll
    for (int u = 0; u < T::kUnits; u++) {
        const int next = u + 1, set = next / T::kChunks % 2, step = next / (T::kTiles * T::kChunks);
        if (next < T::kUnits && next % T::kChunks == 0) {
            now.nibbles.expand(a[set], tables, next / T::kChunks % T::kTiles, step);
        }
        wgmma_wait<0>();
        wgmma_hold(part[u % 2]);
        if (next < T::kUnits) {
            now.template multiply<false>(part[next % 2], a[set], next % T::kChunks, step);
            wgmma_commit();
        }
        now.add(sum, part[u % 2], scales, u / T::kChunks % T::kTiles, u % T::kChunks,
                u / (T::kTiles * T::kChunks));
    }
}

template <Config C>
__device__ __forceinline__ void nibbles_tile(Multiplier<C> &line, Sums<C> &sum, i32 blocks)
{
    Part<C> part[C.sets];
    const u32 positive = e2m1_positive();
    for (i32 b = 0; b < blocks; b++) {
        barrier_wait<false>(line.ring.full(), line.ring.parity);
        const NibbleStage<C> now = NibbleStage<C>::make(line, positive);
        if constexpr (C.sets == 2) {
            nibbles_stage<C>(now, sum, part);
        } else if constexpr (C.fold) {
            if (now.nibbles.shares(line.row)) {
                now.template all<128>(sum, part[0]);
            } else {
                now.template all<32>(sum, part[0]);
            }
        } else {
            now.template all<Tile<C>::kInterval>(sum, part[0]);
        }
        line.release(line.ring.empty());
        line.ring.advance();
    }
}
