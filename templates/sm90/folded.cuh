// folded.cuh - products of e2m1 whose groups of 32 share a scale for 128 of K where that is exact:
// a code goes through a table of its group, that of e4m3 times the power of two that it is away.
//
// A thread's share of 32 of K is four codes at each of two places in each of two rows (wgmma.cuh).
#pragma once
#include "sm90/nibble_stage.cuh"

// Where this thread's codes of a stage lie, and the tables that they go through.
template <Config C> struct Folded {
    using T = Tile<C>;
    const u8 *slot;    // of the stage's scales
    const u32 *tables; // of the upper row of the first tile
    u32 first;         // shared address of that row's first codes
    u32 positive;      // e2m1_positive's

    static __device__ __forceinline__ Folded make(const Multiplier<C> &m, u32 positive)
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
        const uint4 *from = reinterpret_cast<const uint4 *>(tables) + tile * 64 / T::kRowStep;
        const uint4 u = from[0], l = from[T::kRowStep == 1 ? 8 : 0];
        return {{u.x, u.y, u.z, u.w}, {l.x, l.y, l.z, l.w}};
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

// All products of a stage, one interval of one tile and chunk after the other.
template <Config C, int Interval>
__device__ __forceinline__ void folded_products(const NibbleStage<C> &now, const Folded<C> &codes,
                                                Sums<C> &sum, Part<C> &part)
{
    using T = Tile<C>;
    constexpr int kSteps = Interval / 32;
    RowScales<C, least(4 / kSteps, T::RowScales::kGroups)> scales;
    scales.template load<T::kRowScalesAt>(now.row_slot, now.row);
#pragma unroll
    for (int i = 0; i < 4 / kSteps * T::kTiles; i++) {
        const int tile = i % T::kTiles, step = i / T::kTiles * kSteps;
        const typename Folded<C>::Tables tables = codes.tables_of(tile);
        u32 a[kSteps][4];
#pragma unroll
        for (int chunk = 0; chunk < T::kChunks; chunk++) {
#pragma unroll
            for (int s = 0; s < kSteps; s++) {
                if (chunk == 0) {
                    codes.expand(a[s], tables, tile, step + s);
                }
                wgmma_fence();
                if (s == 0) {
                    now.template multiply<false>(part, a[s], chunk, step + s);
                } else {
                    now.template multiply<true>(part, a[s], chunk, step + s);
                }
            }
            wgmma_commit();
            wgmma_wait<0>();
            wgmma_hold(part);
            now.add(sum, part, scales, tile, chunk, step);
        }
    }
}

// A warpgroup whose rows all share multiplies 128 of K at once.
template <Config C>
__device__ __forceinline__ void folded_stage(const NibbleStage<C> &now, const Folded<C> &codes,
                                             Sums<C> &sum)
{
    Part<C> part;
    if (codes.shares(now.row)) {
        folded_products<C, 128>(now, codes, sum, part);
    } else {
        folded_products<C, 32>(now, codes, sum, part);
    }
}
