// schedule.cuh - a CTA's share of all requests' splits: unit w of them is split w - W of the
// request with W <= w < W + its splits, in order. CTA c of n has units c * q + min(c, r) on, q or
// q + 1 of them, q and r being quotient and rest of their number by n (kernels.md 3.3).
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

// A whole warp. Each lane adds up a run of requests; the one whose run has the first unit looks for
// it.
template <typename R> __device__ __forceinline__ Share share_of(const R &requests)
{
    const i32 lane = i32(threadIdx.x % 32), each = requests.batch / 32 + (requests.batch % 32 != 0);
    const i32 first = i32(min(i64(lane) * each, i64(requests.batch)));
    const i32 past = i32(min(i64(first) + each, i64(requests.batch)));
    i64 sum = 0;
    for (i32 b = first; b < past; b++) {
        sum += requests.splits(b);
    }
    i64 upto = sum;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const i64 other = __shfl_up_sync(0xffffffffu, upto, step);
        upto += lane >= step ? other : 0;
    }
    const i64 before = upto - sum, total = __shfl_sync(0xffffffffu, upto, 31);
    const i64 ctas = gridDim.x, cta = blockIdx.x, quotient = total / ctas, rest = total % ctas;
    const i64 unit = cta * quotient + min(cta, rest), units = quotient + (cta < rest);
    const bool mine = unit >= before && unit < upto;
    i32 b = first;
    i64 left = unit - before;
    if (mine) {
        for (i32 n = requests.splits(b); left >= n; n = requests.splits(b)) {
            left -= n;
            b++;
        }
    }
    const u32 found = __ballot_sync(0xffffffffu, mine); // none where there are no units
    const i32 from = max(__ffs(i32(found)) - 1, 0);
    return {__shfl_sync(0xffffffffu, b, from), __shfl_sync(0xffffffffu, i32(left), from), units};
}
