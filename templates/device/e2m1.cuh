// e2m1.cuh - e2m1 codes (0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign) to e4m3, four at a time, also times a
// power of two: then groups of codes with scales of their own can share one.
#pragma once
#include "device/formats.cuh"

// The e4m3 codes of the eight magnitudes, with the sign set.
struct alignas(8) E2m1Table {
    u32 low, high;
};

// Of the magnitudes times 2^shift, for -8 <= shift <= 6: those products are e4m3's. Below -5 the
// first are subnormal, and no longer a step of exponent apart.
__device__ __forceinline__ E2m1Table e2m1_table(i32 shift)
{
    const u32 high = 0x4c484440u + u32(shift) * 0x08080808u + (shift == -8 ? 0x0204u : 0u);
    const u32 low = shift <= -6 ? 0x0c080400u >> (-6 - shift) : 0x3c383000u + u32(shift) * 0x08080800u;
    return {low | 0x80808080u, high | 0x80808080u};
}

// Byte i of the result is byte number `selector`'s digit i of low and high. A digit's fourth bit
// asks for that byte's sign in all eight bits.
__device__ __forceinline__ u32 select_bytes(u32 low, u32 high, u32 selector)
{
    u32 bytes;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(low), "r"(high), "r"(selector));
    return bytes;
}

// Four codes, the first in the lowest digit of 16 bits, by way of a table. -0 keeps its sign.
__device__ __forceinline__ u32 e2m1x4_to_e4m3(u32 codes, E2m1Table table)
{
    const u32 negative = select_bytes(table.low, table.high, codes & 0x7777u);
    const u32 positive = select_bytes(0x40404040u, 0x40404040u, codes); // 0x40, or 0 with a sign
    return negative - 2 * positive;
}

// Four groups of e2m1 and their ue8m0 scales, of which the first `present` are there. `shared`:
// with these tables they have one scale, by no rounding; else each has its own and tables that
// change nothing.
struct FoldedGroups {
    bool shared;
    float scale[4];
    E2m1Table table[4];

    static __device__ __forceinline__ FoldedGroups make(const u32 (&code)[4], i32 present)
    {
        FoldedGroups f;
        i32 top = 0, least = 255;
#pragma unroll
        for (int g = 0; g < 4; g++) {
            top = g < present ? max(top, i32(code[g])) : top;
            least = g < present ? min(least, i32(code[g])) : least;
        }
        // The largest takes 2^6 (6 * 2^6 = 384), the least at least 2^-8; 255 is NaN.
        f.shared = top - least <= 14 && top < 255;
        const i32 base = max(top - 6, 0);
#pragma unroll
        for (int g = 0; g < 4; g++) {
            const bool there = g < present; // zeros where not
            f.scale[g] = f.shared ? ue8m0_decode(u8(base)) : there ? ue8m0_decode(u8(code[g])) : 0.0f;
            f.table[g] = e2m1_table(f.shared && there ? i32(code[g]) - base : 0);
        }
        return f;
    }
};
