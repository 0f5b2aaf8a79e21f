// ranges.cuh - the keys that query tokens have, of a CTA's tokens and chunk of keys, and the cells
// that have none.
#pragma once
#include "device/mqa.cuh"

// Keys [from, to) of a token.
struct Range {
    i32 from, to;
};

__device__ __forceinline__ Range clamped(i32 start, i32 end, i32 keys)
{
    const i32 from = min(max(start, 0), keys), to = min(max(end, 0), keys);
    return {from, max(from, to)};
}

// The union of the ranges of Tokens tokens from `first` on, of `tokens`; each one's into `own`
// (shared).
template <int Tokens, bool Compressed>
__device__ __forceinline__ Range ranges_of(Range *own, const i32 *start, const i32 *end, i32 first,
                                           i32 tokens, i32 keys, i32 width)
{
    const i32 t = i32(threadIdx.x);
    if (t < Tokens) {
        Range r = {0, 0};
        if (first + t < tokens) {
            r = clamped(start[first + t], end[first + t], keys);
            if (Compressed) {
                r.to = r.from + min(r.to - r.from, width); // what has no column is not stored
            }
        }
        own[t] = r;
    }
    __syncthreads();
    Range all = {0x7fffffff, 0};
#pragma unroll
    for (int i = 0; i < Tokens; i++) {
        const Range r = own[i];
        all.from = r.from < r.to ? min(all.from, r.from) : all.from;
        all.to = r.from < r.to ? max(all.to, r.to) : all.to;
    }
    return all;
}

// -inf in the columns of [from, to) that have no key.
template <int Tokens, bool Compressed, int Threads, typename Out>
__device__ __forceinline__ void clean_rows(Out *logits, i64 stride, const Range *own, i32 first,
                                           i32 tokens, i32 from, i32 to)
{
    for (i32 t = 0; t < Tokens && first + t < tokens; t++) {
        const i32 live = Compressed ? 0 : own[t].from, len = own[t].to - own[t].from;
        Out *const row = logits + (first + t) * stride;
        for (i32 c = from + i32(threadIdx.x); c < to; c += Threads) {
            if (c < live || c >= live + len) {
                store_logit(row + c, minus_infinity());
            }
        }
    }
}
