// rows_bits.cuh - a bit for each score that reaches a bound, and bits taken one after the other.
#pragma once
#include "device/vector.cuh"

// A bit for each score that is large enough, the first's the lowest. Two instructions; the compiler
// makes three.
template <int N, int I = 0>
__device__ __forceinline__ void mark(u32 &hits, const float (&x)[N], float least)
{
    if constexpr (I < N) {
        asm("{\n"
            ".reg .pred enough;\n"
            "setp.ge.f32 enough, %1, %2;\n"
            "@enough or.b32 %0, %0, %3;\n"
            "}"
            : "+r"(hits)
            : "f"(x[I]), "f"(least), "n"(1u << I));
        mark<N, I + 1>(hits, x, least);
    }
}

// The highest bit that is set, which then is not.
__device__ __forceinline__ u32 take_highest(u32 &bits)
{
    const u32 at = 31 - u32(__clz(i32(bits)));

    bits ^= 1u << at;
    return at;
}

// The least bf16 that is no less than this, which some bf16 is.
__device__ __forceinline__ u32 least_bf16(float x)
{
    const u32 bits = __float_as_uint(x);
    return (bits >> 31 != 0 ? bits : bits + 0xffffu) >> 16;
}

// A bit for each score of these words that is at least both of `least`, of bf16; bit i stands for
// the lower half of word i, bit 16 + i for its upper one.
template <int N> __device__ __forceinline__ u32 pair_hits(const Pack<u32, 4> (&word)[N], u32 least)
{
    u32 hits = 0;

    static_assert(N <= 4, "16 words have 32 scores");
#pragma unroll
    for (int i = 0; i < 4 * N; i++) {
        u32 enough;
        asm("set.ge.u32.bf16x2 %0, %1, %2;" : "=r"(enough) : "r"(word[i / 4].v[i % 4]), "r"(least));
        hits |= enough & 0x00010001u << i;
    }
    return hits;
}
