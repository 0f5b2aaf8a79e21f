// expert_k.cuh - the K of a grouped product by expert: a table in shared memory that every CTA
// makes for itself at its start. Experts stand in the order of their work, the longest K first, so
// that tiles dealt out in turn leave no CTA more than one tile behind another.
//
// K counts in units of `Unit` elements, those of a scale. What the device is told may be anything:
// below 0 is 0, what is no whole unit is left out, and where all of K is dealt out the experts
// behind have none.
#pragma once
#include "device/expert_tiles.cuh"

// An expert's K, in units.
struct ExpertKRange {
    i32 expert, first, count;
};

// All: also experts without K, behind the others.
template <int Unit, bool All> struct ExpertK {
    // Where each expert's units begin, and the end of the last one's; the number of experts in the
    // order, and the order.
    const u32 *table;
    i32 experts;

    // The whole CTA, which synchronises after it.
    static __device__ __forceinline__ void make(u32 *table, const ExpertGroups &of, i32 k)
    {
        if (threadIdx.x < 32) {
            place_all(table, of, k / Unit);
        }
        __syncthreads();
        order_all(table, of.experts);
    }

    __device__ __forceinline__ i32 count() const
    {
        return All ? experts : i32(table[experts + 1]);
    }

    __device__ __forceinline__ ExpertKRange at(i32 index) const
    {
        const i32 expert = i32(table[experts + 2 + index]), first = i32(table[expert]);
        return {expert, first, i32(table[expert + 1]) - first};
    }

  private:
    // One warp. Sums stop at `units`, so that none overflows.
    static __device__ __forceinline__ void place_all(u32 *table, const ExpertGroups &of, i32 units)
    {
        const u32 lane = threadIdx.x % 32;
        i32 end = 0;
        u32 filled = 0;
#pragma unroll 1
        for (i32 base = 0; base < of.experts; base += 32) {
            const i32 expert = base + i32(lane);
            const bool present = expert < of.experts;
            i32 upto = present ? min(max(of.groups[expert], 0) / Unit, units) : 0;
#pragma unroll
            for (u32 d = 1; d < 32; d *= 2) {
                const i32 left = __shfl_up_sync(0xffffffffu, upto, d);
                upto = lane >= d ? min(upto + left, units) : upto;
            }
            upto = min(end + upto, units);
            const i32 left = __shfl_up_sync(0xffffffffu, upto, 1);
            const i32 first = lane == 0 ? end : left;
            if (present) {
                table[expert] = u32(first);
            }
            filled += __popc(__ballot_sync(0xffffffffu, upto > first));
            end = __shfl_sync(0xffffffffu, upto, 31);
        }
        if (lane == 0) {
            table[of.experts] = u32(end);
            table[of.experts + 1] = filled;
        }
    }

    // Each thread finds the places of some experts: those with more come before, and of the same
    // those with a lower number.
    static __device__ __forceinline__ void order_all(u32 *table, i32 experts)
    {
#pragma unroll 1
        for (i32 e = i32(threadIdx.x); e < experts; e += i32(blockDim.x)) {
            const u32 own = table[e + 1] - table[e];
            i32 place = 0;
            u32 from = table[0];
#pragma unroll 4
            for (i32 i = 0; i < experts; i++) {
                const u32 to = table[i + 1], other = to - from;
                place += other > own || (other == own && i < e) ? 1 : 0;
                from = to;
            }
            table[experts + 2 + place] = u32(e);
        }
    }
};
