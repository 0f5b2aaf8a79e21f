// order_key.cuh - scores as integers that order alike, and candidates as integers of which no two
// are equal: the key above, the complement of the index below, so that of equal scores the lower
// index is the larger. Zero is no candidate.
#pragma once
#include "device/types.cuh"

// -0 becomes +0, NaN of either sign 0, below -inf.
__device__ __forceinline__ u32 order_key(float x)
{
    const u32 bits = __float_as_uint(__fadd_rn(x, 0.0f));
    const u32 key = bits ^ (u32(i32(bits) >> 31) | 0x80000000u);
    return x == x ? key : 0;
}

// The other way, of a key that is no NaN's.
__device__ __forceinline__ float score_of_key(u32 key)
{
    return __uint_as_float(key >> 31 != 0 ? key ^ 0x80000000u : ~key);
}

__device__ __forceinline__ u64 candidate_of(u32 key, i32 index)
{
    return u64(key) << 32 | ~u32(index);
}

__device__ __forceinline__ i32 candidate_index(u64 candidate)
{
    return i32(~u32(candidate));
}
