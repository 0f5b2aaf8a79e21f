// warp.cuh - reductions among neighbouring lanes of a warp. Every lane of the warp must take part.
#pragma once
#include "device/types.cuh"

// x of the lane whose number differs in the bits of Step: __shfl_xor_sync would load that first.
template <int Step> __device__ __forceinline__ u32 lane_xor(u32 x)
{
    u32 y;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=r"(y) : "r"(x), "n"(Step));
    return y;
}

// The maximum over each aligned run of `Lanes` lanes, in all of them.
template <int Lanes> __device__ __forceinline__ u32 lanes_max(u32 x)
{
    static_assert(is_pow2(Lanes) && Lanes <= 32, "runs of 1, 2, 4 ... 32 lanes");
#pragma unroll
    for (int step = Lanes / 2; step > 0; step /= 2) {
        x = max(x, __shfl_xor_sync(0xffffffffu, x, step));
    }
    return x;
}

// The sum over the whole warp, in all of its lanes.
__device__ __forceinline__ u32 lanes_sum(u32 x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
    }
    return x;
}
