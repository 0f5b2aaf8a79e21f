// mma_sync_parts.cuh - sums of one tile that several warps, or several CTAs, made of parts of K,
// added in the parts' order: bits do not depend on who comes first.
#pragma once
#include "fp8_gemm/mma_sync_tile.cuh"

// A thread's sums as float4, `kSumThreads` apart, so that a warp's accesses are whole lines.
template <Config C> __device__ __forceinline__ void sums_store(float4 *to, const Sums<C> &sum)
{
    using T = Tile<C>;
#pragma unroll
    for (int i = 0; i < T::kHigh; i++) {
#pragma unroll
        for (int j = 0; j < T::kWide; j++) {
            const float(&x)[4] = sum[i][j];
            to[(i * T::kWide + j) * T::kSumThreads] = make_float4(x[0], x[1], x[2], x[3]);
        }
    }
}

template <Config C> __device__ __forceinline__ void sums_add(Sums<C> &sum, const float4 *from)
{
    using T = Tile<C>;
#pragma unroll
    for (int i = 0; i < T::kHigh; i++) {
#pragma unroll
        for (int j = 0; j < T::kWide; j++) {
            const float4 x = from[(i * T::kWide + j) * T::kSumThreads];
            float(&to)[4] = sum[i][j];
            to[0] += x.x, to[1] += x.y, to[2] += x.z, to[3] += x.w;
        }
    }
}

// Warps that share a tile within a CTA: the first ones get the sum. `ring` is where the stages
// were; nothing may be on its way there.
template <Config C> __device__ __forceinline__ void add_warps(Sums<C> &sum, u8 *ring)
{
    using T = Tile<C>;
    constexpr int kPart = T::kHigh * T::kWide * T::kSumThreads;
    const i32 share = i32(threadIdx.x) / T::kSumThreads;
    float4 *parts = reinterpret_cast<float4 *>(ring) + i32(threadIdx.x) % T::kSumThreads;

    __syncthreads(); // all have read the last stage
    if (share > 0) {
        sums_store<C>(parts + (share - 1) * kPart, sum);
    }
    __syncthreads(); // the sums are there
    if (share == 0) {
#pragma unroll
        for (int s = 1; s < C.warps_k; s++) {
            sums_add<C>(sum, parts + (s - 1) * kPart);
        }
    }
}

// One more CTA has arrived: how many came before.
__device__ __forceinline__ u32 arrive(u32 *counter)
{
    u32 before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(__cvta_generic_to_global(counter))
                 : "memory");
    return before;
}

// CTAs that share a tile: each puts its part into memory, and the one that comes last adds all of
// them; true there. The counter is 0 before the launch. All threads must take part.
template <Config C>
__device__ __forceinline__ bool add_parts(Sums<C> &sum, u32 *counter, float4 *parts, i64 tile,
                                          i32 part)
{
    using T = Tile<C>;
    constexpr int kEach = T::kHigh * T::kWide, kPart = kEach * T::kSumThreads;
    constexpr int kAtOnce = kEach <= 8 ? 16 / kEach : 1; // parts whose loads overlap
    const bool sums = C.warps_k == 1 || i32(threadIdx.x) < T::kSumThreads;
    float4 *first = parts + tile * C.split_k * kPart + i32(threadIdx.x) % T::kSumThreads;

    if (sums) {
        sums_store<C>(first + part * kPart, sum);
    }
    __syncthreads(); // the arrival below speaks for all threads
    bool last = false;
    if (threadIdx.x == 0) {
        last = arrive(counter + tile) == C.split_k - 1;
    }
    if (!__syncthreads_or(last)) {
        return false;
    }
    if (sums) {
#pragma unroll
        for (int i = 0; i < kEach * 4; i++) {
            sum[i / 4 / T::kWide][i / 4 % T::kWide][i % 4] = 0.0f;
        }
#pragma unroll(kAtOnce)
        for (int p = 0; p < C.split_k; p++) {
            const float4 *from = first + p * kPart;
            sums_add<C>(sum, from);
        }
    }
    return true;
}

// A tile's sum from all that made a part of it; true for the warps that have it then.
template <Config C>
__device__ __forceinline__ bool add_all(Sums<C> &sum, u8 *ring, u32 *arrived, float4 *parts,
                                        i32 part)
{
    if constexpr (C.warps_k > 1) {
        add_warps<C>(sum, ring);
    }
    if constexpr (C.split_k > 1) {
        const i64 tile = i64(blockIdx.z) * (gridDim.x / C.split_k) + blockIdx.x / C.split_k;
        if (!add_parts<C>(sum, arrived, parts, tile, part)) {
            return false;
        }
    }
    return C.warps_k == 1 || i32(threadIdx.x) < Tile<C>::kSumThreads;
}
