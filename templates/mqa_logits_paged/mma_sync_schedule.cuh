// mma_sync_schedule.cuh - a CTA's share of all requests' splits: unit w of them is split w - W of
// the request with W <= w < W + its splits, in order. CTA c of n has units c * q + min(c, r) on, q
// or q + 1 of them, q and r being quotient and rest of their number by n (kernels.md 3.3).
#pragma once
#include "device/types.cuh"

// Units [split, split + units) that begin in `request`.
struct Share {
    i32 request, split;
    i64 units;
};

template <int NextN, int Split> struct Requests {
    const i32 *lengths; // [batch, NextN]
    i32 batch, width;

    // That some of its query tokens see.
    __device__ __forceinline__ i32 keys(i32 request) const
    {
        i32 most = 0;
#pragma unroll
        for (int t = 0; t < NextN; t++) {
            most = max(most, lengths[i64(request) * NextN + t]);
        }
        return min(most, width);
    }

    __device__ __forceinline__ i32 splits(i32 request) const
    {
        const i32 n = keys(request);
        return n / Split + (n % Split != 0);
    }
};

// Every thread of the CTA takes part. scratch: shared, Threads + 2 numbers. Each thread adds up a
// run of requests; the one whose run has the first unit looks for it.
template <int Threads, typename R>
__device__ __forceinline__ Share share_of(const R &requests, i64 *scratch)
{
    const i32 each = requests.batch / Threads + (requests.batch % Threads != 0);
    const i32 first = min(i64(threadIdx.x) * each, i64(requests.batch));
    const i32 past = min(first + each, requests.batch);
    i64 sum = 0;
    for (i32 b = first; b < past; b++) {
        sum += requests.splits(b);
    }
    scratch[threadIdx.x] = sum;
    __syncthreads();
    i64 before = 0, total = 0;
    for (i32 t = 0; t < Threads; t++) {
        const i64 other = scratch[t];
        before += t < i32(threadIdx.x) ? other : 0;
        total += other;
    }
    const i64 ctas = gridDim.x, cta = blockIdx.x, quotient = total / ctas, rest = total % ctas;
    const i64 unit = cta * quotient + min(cta, rest), units = quotient + (cta < rest);
    i64 *const found = scratch + Threads;
    if (unit >= before && unit < before + sum) {
        i32 b = first;
        i64 left = unit - before;
        for (i32 n = requests.splits(b); left >= n; n = requests.splits(b)) {
            left -= n;
            b++;
        }
        found[0] = b;
        found[1] = left;
    }
    __syncthreads();
    return {i32(units > 0 ? found[0] : 0), i32(units > 0 ? found[1] : 0), units};
}
