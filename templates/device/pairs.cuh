// pairs.cuh - pairs of bf16 or f16 in one register: magnitudes, products with powers of two, halves
// as floats.
#pragma once
#include "device/formats.cuh"

constexpr u32 kMagnitudes = 0x7fff7fffu; // of a pair
constexpr u32 kNan = 0x7fffu;            // bf16's and f16's

// The larger magnitudes of two pairs, half by half, under some sign; NaN is the largest and becomes
// 0x7fff.
template <typename T> __device__ __forceinline__ u32 larger_pair(u32 a, u32 b)
{
    u32 larger;
#if __CUDA_ARCH__ >= 860
    if constexpr (is_same<T, bf16>) {
        asm("max.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    } else {
        asm("max.NaN.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    }
#else
    a &= kMagnitudes, b &= kMagnitudes;
    if constexpr (is_same<T, bf16>) {
        asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    } else {
        asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    }
#endif
    return larger;
}

// x * scale, exact but for underflow, of a pair of bf16; `scale` is a power of two, twice. A zero
// keeps its sign.
__device__ __forceinline__ u32 scale_pair(u32 x, u32 scale)
{
    u32 y;
#if __CUDA_ARCH__ >= 900
    asm("mul.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(scale));
#else
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(x), "r"(scale), "r"(0x80008000u));
#endif
    return y;
}

// Bytes of two words by a selector that is known: __byte_perm would load it first.
template <u32 Selector> __device__ __forceinline__ u32 bytes_of(u32 a, u32 b)
{
    u32 y;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "n"(Selector));
    return y;
}

// Half `Half` of a pair, twice.
template <int Half> __device__ __forceinline__ u32 half_twice(u32 pair)
{
    return bytes_of < Half == 0 ? 0x1010u : 0x3232u > (pair, pair);
}

// One half of a pair, twice.
__device__ __forceinline__ u32 half_of(u32 pair, int half)
{
    return half == 0 ? half_twice<0>(pair) : half_twice<1>(pair);
}

// bf16 of the scales of two tiles, powers of two, and of their inverses.
struct PowerPair {
    u32 scale, inverse;
};
