// e2m1_codes.cuh - e2m1 by arithmetic on pairs of 16-bit floats, to nearest with ties to the even
// code, saturating at 6, the sign of zero kept: for architectures whose units do not convert to it.
//
// What comes in is twice the number. Adding 2^m * e, where e is the power of two below it (2 at
// least) and m puts the sum's last place at e / 2, rounds it to e2m1's own step; what the sum's
// mantissa then counts, and twice the exponent field of e, make the code: of 2, 4 and 8 the latter
// is 0, 2 and 4 modulo 8.
#pragma once
#include "device/types.cuh"

// f16: for quotients of bf16 by an e4m3 scale. A quotient that is no tie lies
// 2^-8 of itself or more from one, f16 and an approximate reciprocal err by 2^-11, and a tie is an
// f16 that both round to.
struct HalfPairs {
    static constexpr u32 kOne = 0x3c003c00u, kTwo = 0x40004000u, kTwelve = 0x4a004a00u,
                         kExponent = 0x7c007c00u;
    static constexpr u32 kMantissa = 10;

    __device__ __forceinline__ static u32 least(u32 a, u32 b)
    {
        u32 y;
        asm("min.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
        return y;
    }

    __device__ __forceinline__ static u32 largest(u32 a, u32 b)
    {
        u32 y;
        asm("max.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
        return y;
    }

    __device__ __forceinline__ static u32 sum(u32 a, u32 b)
    {
        u32 y;
        asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(kOne), "r"(b));
        return y;
    }
};

// For quotients by a power of two, which are exact.
struct BrainPairs {
    static constexpr u32 kOne = 0x3f803f80u, kTwo = 0x40004000u, kTwelve = 0x41404140u,
                         kExponent = 0x7f807f80u;
    static constexpr u32 kMantissa = 7;

    __device__ __forceinline__ static u32 least(u32 a, u32 b)
    {
        u32 y;
        asm("min.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
        return y;
    }

    __device__ __forceinline__ static u32 largest(u32 a, u32 b)
    {
        u32 y;
        asm("max.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
        return y;
    }

    __device__ __forceinline__ static u32 sum(u32 a, u32 b)
    {
        u32 y;
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(kOne), "r"(b));
        return y;
    }
};

// Each half's code in its lowest four bits. `Clamp`: it may be above 6.
template <typename Pairs, bool Clamp> __device__ __forceinline__ u32 e2m1_pair(u32 twice)
{
    constexpr u32 kUp = Pairs::kMantissa - 1; // binades from e to what is added
    u32 magnitude = twice & 0x7fff7fffu, code;
    if (Clamp) {
        magnitude = Pairs::least(magnitude, Pairs::kTwelve);
    }
    const u32 e = Pairs::largest(magnitude, Pairs::kTwo) & Pairs::kExponent;
    const u32 sum = Pairs::sum(magnitude, e + (kUp << Pairs::kMantissa) * 0x10001u) + (e >> kUp);
    // (sum & 7) | (sign << 3) of each half
    asm("lop3.b32 %0, %1, %2, %3, 0xca;"
        : "=r"(code)
        : "r"(0x00070007u), "r"(sum), "r"((twice >> 12) & 0x00080008u));
    return code;
}

// Eight codes of four pairs, the first in the lowest nibble.
template <typename Pairs, bool Clamp>
__device__ __forceinline__ u32 e2m1x8_from(const u32 (&pair)[4])
{
    u32 half[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const u32 low = e2m1_pair<Pairs, Clamp>(pair[2 * i]),
                  high = e2m1_pair<Pairs, Clamp>(pair[2 * i + 1]), both = high * 256 + low;
        half[i] = both | both >> 12;
    }
    return __byte_perm(half[0], half[1], 0x5410);
}
