// e2m1.cuh - e2m1 codes (0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign) to e4m3: eight at a time by moving
// bits; or four at a time by a table, also times a power of two, so that groups of codes with
// scales of their own can share one.
#pragma once
#include "device/types.cuh"

// A code is this many times the e4m3 whose lowest two bits of exponent and highest of mantissa are
// the code's three: also 0.5, which is subnormal in both.
constexpr float kMovedUnit = 64.0f;

// The codes in the lower halves of a word's bytes, and those in the upper ones, so moved.
__device__ __forceinline__ void e2m1x8_move(u32 codes, u32 &lower, u32 &upper)
{
    // The sign is two places too low: 3 more carry it up. Where it is 0 they stay, and go.
    asm("{\n"
        ".reg .b32 x;\n"
        "and.b32 x, %1, 0x0f0f0f0f;\n"
        "mad.lo.u32 x, x, 4, 0x60606060;\n"
        "and.b32 %0, x, 0x9c9c9c9c;\n"
        "}"
        : "=r"(lower)
        : "r"(codes));
    asm("{\n"
        ".reg .b32 x;\n"
        "shr.u32 x, %1, 2;\n"
        "and.b32 x, x, 0x1c1c1c1c;\n"
        "lop3.b32 %0, %1, 0x80808080, x, 0xea;\n" // a & b | c
        "}"
        : "=r"(upper)
        : "r"(codes));
}

// A table from e2m1 to e4m3, by its lower half: the codes of 0, 0.5, 1 and 1.5 times 2^shift, with
// the sign set; in the upper one are 2, 3, 4 and 6. From -5 to 6 all products but 0 are normal
// e4m3, steps of exponent apart; from -8 on they would still be e4m3's, which only weights of
// hardly any use need.
constexpr i32 kLeastShift = -5, kMostShift = 6;

__host__ __device__ constexpr u32 e2m1_table(i32 shift)
{
    return 0xbcb8b080u + u32(shift) * 0x08080800u;
}

// 0x40404040 in a register. A CTA has no 1025th thread, which ptxas does not see: it would load a
// constant anew for each use.
__device__ __forceinline__ u32 e2m1_positive()
{
    return 0x40404040u + (threadIdx.x >> 10);
}

// prmt: byte i of the result is the byte of two words that digit i of the selector numbers; a
// digit's fourth bit asks for that byte's sign in all eight bits.
__device__ __forceinline__ u32 e2m1_table_upper(u32 table)
{
    u32 ones; // 1, 1, 1 and 1.5
    asm("prmt.b32 %0, %1, 0, 0x3222;" : "=r"(ones) : "r"(table));
    return ones + 0x10100c08u;
}

// Four codes, the first in the lowest digit of 16 bits. -0 keeps its sign.
__device__ __forceinline__ u32 e2m1x4_to_e4m3(u32 codes, u32 table, u32 upper, u32 positive)
{
    u32 magnitude, plus, bytes;
    asm("prmt.b32 %0, %1, %2, %3;"
        : "=r"(magnitude)
        : "r"(table), "r"(upper), "r"(codes & 0x7777u));
    asm("prmt.b32 %0, %1, 0x40404040, %2;" : "=r"(plus) : "r"(positive), "r"(codes)); // 0x40 or 0
    // magnitude - 2 * plus, in the multiplier: the other units are busy
    asm("mad.lo.u32 %0, %1, 0xfffffffe, %2;" : "=r"(bytes) : "r"(plus), "r"(magnitude));
    return bytes;
}

// Four groups of e2m1 codes, whose ue8m0 scales are the bytes of a word.
struct E2m1Groups {
    u32 word;
    i32 most, least;

    // Groups from `present` on have no codes but 0: they take the first one's scale.
    static __device__ __forceinline__ E2m1Groups make(u32 word, i32 present)
    {
        if (present < 4) {
            const u32 kept = present <= 0 ? 0 : ~(0xffffffffu << 8 * present);
            word = (word & kept) | ((word & kept & 0xff) * 0x01010101u & ~kept);
        }
        const i32 a = word & 0xff, b = word >> 8 & 0xff, c = word >> 16 & 0xff, d = word >> 24;
        return {word, max(max(a, b), max(c, d)), min(min(a, b), min(c, d))};
    }

    __device__ __forceinline__ i32 scale_of(int group) const
    {
        return word >> 8 * group & 0xff;
    }

    // Whether one scale does for all, by no rounding. 255 is NaN.
    __device__ __forceinline__ bool share() const
    {
        return most - least <= kMostShift - kLeastShift && most < 255;
    }

    // That scale: the largest group's 6 then becomes 6 * 2^6 = 384.
    __device__ __forceinline__ i32 shared_scale() const
    {
        return max(most - kMostShift, 0);
    }
};
