// scores.cuh - an indexer's scores on Hopper, by a warpgroup: 64 keys are wgmma's rows, the heads
// of `Unit` query tokens its columns, so that a thread has sums of two keys and a quad shares them.
//
// Keys and queries are e4m3 in shared memory, rows of Dims bytes as a tensor map with that swizzle
// leaves them.
#pragma once
#include "device/barrier.cuh"
#include "device/mqa.cuh"
#include "device/tensor_copy.cuh"
#include "device/wgmma.cuh"

template <int Heads, int Unit> using ScorePart = float[Heads * Unit / 8][4];

// The products of a unit, until they are done.
template <int Dims, int Tiles>
__device__ __forceinline__ void score_products(float (&part)[Tiles][4], u64 keys, u64 queries)
{
    wgmma_fence();
    wgmma_multiply<false>(part, keys, queries);
#pragma unroll
    for (int s = 1; s < Dims / 32; s++) {
        wgmma_multiply<true>(part, keys + s * 2, queries + s * 2);
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_hold(part);
}

// Weight times max(0, product) of this thread's heads of one token, for its upper and lower key.
// `weight`: this thread's first, of the token.
template <int Heads, int Tiles>
__device__ __forceinline__ float2 head_sums(const float (&part)[Tiles][4], int token,
                                            const float *weight)
{
    float2 sum = {0.0f, 0.0f};
#pragma unroll
    for (int j = 0; j < Heads / 8; j++) {
        const float2 w = *reinterpret_cast<const float2 *>(weight + j * 8);
        const float(&x)[4] = part[token * (Heads / 8) + j];
        sum.x = fmaf(fmaxf(x[0], 0.0f), w.x, sum.x); // fmaxf of NaN and 0 is 0
        sum.x = fmaf(fmaxf(x[1], 0.0f), w.y, sum.x);
        sum.y = fmaf(fmaxf(x[2], 0.0f), w.x, sum.y);
        sum.y = fmaf(fmaxf(x[3], 0.0f), w.y, sum.y);
    }
    return sum;
}

// Of the 64 keys, the one whose scores this thread stores, and which token's of a pair.
__device__ __forceinline__ i32 score_key()
{
    const i32 lane = i32(threadIdx.x % 32);
    return i32(threadIdx.x % 128) / 32 * 16 + lane / 4 + lane % 2 * 8;
}

__device__ __forceinline__ i32 score_token()
{
    return i32(threadIdx.x / 2 % 2);
}

// A quad's sums of two keys for two tokens, each where it is stored.
__device__ __forceinline__ float quad_scores(float2 first, float2 second)
{
    const bool lower = threadIdx.x % 2 != 0, later = score_token() != 0;
    float a = lower ? first.y : first.x, b = lower ? second.y : second.x;
    a += __shfl_xor_sync(0xffffffffu, lower ? first.x : first.y, 1);
    b += __shfl_xor_sync(0xffffffffu, lower ? second.x : second.y, 1);
    return (later ? b : a) + __shfl_xor_sync(0xffffffffu, later ? a : b, 2);
}

// The same of one token: threads of both tokens have it.
__device__ __forceinline__ float quad_scores(float2 only)
{
    const bool lower = threadIdx.x % 2 != 0;
    float a = lower ? only.y : only.x;
    a += __shfl_xor_sync(0xffffffffu, lower ? only.x : only.y, 1);
    return a + __shfl_xor_sync(0xffffffffu, a, 2);
}

// Calls `store(token, score)` for each of a unit's tokens whose scores of its key this thread
// stores. `weight`: as head_sums, of the unit's first token.
template <int Heads, int Unit, typename Store>
__device__ __forceinline__ void score_unit(const ScorePart<Heads, Unit> &part, const float *weight,
                                           const Store &store)
{
#pragma unroll
    for (int t = 0; t + 1 < Unit; t += 2) {
        store(t + score_token(),
              quad_scores(head_sums<Heads>(part, t, weight + t * Heads),
                          head_sums<Heads>(part, t + 1, weight + (t + 1) * Heads)));
    }
    if constexpr (Unit % 2 == 1) {
        const float x = quad_scores(head_sums<Heads>(part, Unit - 1, weight + (Unit - 1) * Heads));
        if (score_token() == 0) {
            store(Unit - 1, x);
        }
    }
}

// A place in a ring, and the parity of its phase.
template <int Places> struct Turn {
    i32 place = 0;
    u32 parity = 0;

    __device__ __forceinline__ void advance()
    {
        place++;
        if (place == Places) {
            place = 0;
            parity ^= 1;
        }
    }
};

// This warp is done with what the barrier guards.
__device__ __forceinline__ void warp_arrive(u32 barrier)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        barrier_arrive(barrier);
    }
}
