// split_sum.cuh - K split among CTAs: each leaves its sums in global memory, and the last to come
// adds all of them up, always in the order of the parts, so that the bits do not depend on who was
// last.
#pragma once
#include "device/types.cuh"

// Whether this CTA is the last of `Parts` at `counter`, which begins at 0. What the others wrote
// before is visible to all threads of the last one.
template <int Parts> __device__ __forceinline__ bool arrive_last(u32 *counter)
{
    u32 before = 0;
    __syncthreads(); // all of this CTA's stores are done
    if (threadIdx.x == 0) {
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                     : "=r"(before)
                     : "l"(__cvta_generic_to_global(counter))
                     : "memory");
    }
    return __syncthreads_or(before == Parts - 1);
}

// This CTA's sums are part `part` of tile `tile`. In the last CTA to come they become the whole;
// false in the others.
template <int Parts, int Threads, int TilesR, int TilesC>
__device__ __forceinline__ bool split_sum(float (&sum)[TilesR][TilesC][4], float4 *parts,
                                          u32 *counter, i64 tile, i32 part)
{
    constexpr int kEach = TilesR * TilesC * Threads; // float4 of a part
    float4 *first = parts + tile * Parts * kEach + threadIdx.x;
#pragma unroll
    for (int i = 0; i < TilesR * TilesC; i++) {
        const float(&x)[4] = sum[i / TilesC][i % TilesC];
        __stcg(first + part * kEach + i * Threads, make_float4(x[0], x[1], x[2], x[3]));
    }
    if (!arrive_last<Parts>(counter)) {
        return false;
    }
#pragma unroll
    for (int i = 0; i < TilesR * TilesC * 4; i++) {
        sum[i / 4 / TilesC][i / 4 % TilesC][i % 4] = 0.0f;
    }
#pragma unroll 1 // one part's loads at a time: more would not leave registers
    for (int p = 0; p < Parts; p++) {
#pragma unroll
        for (int i = 0; i < TilesR * TilesC; i++) {
            float(&x)[4] = sum[i / TilesC][i % TilesC];
            const float4 y = __ldcg(first + p * kEach + i * Threads);
            x[0] += y.x, x[1] += y.y, x[2] += y.z, x[3] += y.w;
        }
    }
    return true;
}
