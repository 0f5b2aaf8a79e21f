// e2m1_codes.cuh - e2m1 by arithmetic on pairs of 16-bit floats, to nearest with ties to the even
// code: for architectures whose units do not convert to it.
//
// Let q be a magnitude up to 6. Floats of 2q + 2^n - 4 have last places of 1 up to 2q = 4, and of 2
// from there on, if n is the mantissa's bits and one: which are e2m1's steps up to q = 4, so that
// one sum rounds q once, with ties to the even code, and its bits, less those of 2^n - 4, are the
// code. From 4 on the step is twice as long, and the sum q + 2^n rounds to it and has the same bits
// for the same codes: the lesser of the two sums has the code plus 4 in its lowest three bits.
#pragma once
#include "device/pairs.cuh"

// f16: for quotients of bf16 by an e4m3 scale, as products with the scale's inverse. A quotient
// that is no tie lies 2^-8 of itself or more from one, and what is rounded here errs by less. A tie
// is an f16; the inverse, rounded down by up to 0.46 of its last place, takes 1.75 and 3.5 to the
// f16 below, but not with kQuotientUp more. tests/core/test_quantise.c tries all scales and
// numbers.
constexpr u32 kQuotientUp = 0x07350735u; // 1.1e-4, twice

struct HalfPairs {
    static constexpr u32 kSmall = 0x67fc67fcu, kLarge = 0x68006800u; // 2044, 2048: each twice

    __device__ __forceinline__ static u32 least(u32 a, u32 b)
    {
        u32 y;
        asm("min.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
        return y;
    }

    __device__ __forceinline__ static u32 line(u32 x, u32 slope, u32 from)
    {
        u32 y;
        asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(x), "r"(slope), "r"(from));
        return y;
    }
};

// For quotients by a power of two, which are exact.
struct BrainPairs {
    static constexpr u32 kSmall = 0x437c437cu, kLarge = 0x43804380u; // 252, 256: each twice

    __device__ __forceinline__ static u32 least(u32 a, u32 b)
    {
        u32 y;
        asm("min.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
        return y;
    }

    __device__ __forceinline__ static u32 line(u32 x, u32 slope, u32 from)
    {
        u32 y;
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(x), "r"(slope), "r"(from));
        return y;
    }
};

// A pair's codes plus 4, in the lowest three bits of its halves, without their signs. `two` and
// `one` make 2q and q of a magnitude.
template <typename Pairs> __device__ __forceinline__ u32 e2m1_pair(u32 magnitude, u32 two, u32 one)
{
    return Pairs::least(Pairs::line(magnitude, two, Pairs::kSmall),
                        Pairs::line(magnitude, one, Pairs::kLarge));
}

// The same of q.
__device__ __forceinline__ u32 e2m1_pair_of(u32 q)
{
    u32 whole;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(whole) : "r"(q), "r"(HalfPairs::kLarge));
    return HalfPairs::least(HalfPairs::line(q, 0x40004000u, HalfPairs::kSmall), whole);
}

// Eight codes of four such pairs with the signs of `x`, the first in the lowest nibble.
__device__ __forceinline__ u32 e2m1x8_join(const u32 (&pair)[4], const u32 (&x)[4])
{
    u32 four[2], word;
#pragma unroll
    for (int i = 0; i < 2; i++) { // in bytes: even, even, odd, odd
        const u32 signs = bytes_of<0x7351>(x[2 * i], x[2 * i + 1]) >> 4;
        asm("lop3.b32 %0, 0x08080808, %1, %2, 0xca;" // a ? b : c
            : "=r"(four[i])
            : "r"(signs), "r"(bytes_of<0x6240>(pair[2 * i], pair[2 * i + 1])));
    }
    const u32 even = bytes_of<0x5410>(four[0], four[1]), odd = bytes_of<0x7632>(four[0], four[1]);
    asm("lop3.b32 %0, 0x0f0f0f0f, %1, %2, 0xca;" : "=r"(word) : "r"(even), "r"(odd << 4));
    return word ^ 0x44444444u; // plus 4, or less, modulo 8
}

// The power of two from amax / 6 on: 6 is 1.5 * 2^2, so that a mantissa up to 0.5 stays in its
// binade. The floors of amax are 1e-4, or 6 * 2^-126. Of two tiles at once: bf16 of the amaxima
// become bf16 of the scales and of their inverses.
template <int Rule> __device__ __forceinline__ PowerPair e2m1_scales(u32 amax)
{
    constexpr u32 kFloor = Rule == POW2_AMAX ? 0x38d138d1u : 0x01c001c0u;
    const u32 above = (larger_pair<bf16>(amax, kFloor) + 0x003f003fu) & 0xff80ff80u; // four times
    return {above - 0x01000100u, 0x80008000u - above};
}

// Codes of eight finite bf16 of the tile whose scale is half `half` of these.
__device__ __forceinline__ u32 e2m1x8_of(const u32 (&x)[4], const PowerPair &two, int half)
{
    const u32 by_two = half_of(two.inverse + 0x00800080u, half);
    const u32 by_one = half_of(two.inverse, half);
    u32 pair[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        pair[i] = e2m1_pair<BrainPairs>(x[i] & kMagnitudes, by_two, by_one);
    }
    return e2m1x8_join(pair, x);
}
