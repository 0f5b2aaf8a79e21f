// fold.cuh - e4m3 codes times a power of two below 1: exponents are shifted, and only what falls
// below 2^-6 is rounded, to nearest even. Codes equal core/fold.c's, byte for byte.
#pragma once
#include "device/types.cuh"

// One code times 2^-shift, shift >= 1; `inexact` grows by one when its value changes. NaN stays.
__device__ __forceinline__ u32 fold_code(u32 code, i32 shift, i32 &inexact)
{
    const i32 exponent = i32(code >> 3 & 15);
    if ((code & 0x7f) == 0x7f) {
        return code;
    }
    if (exponent > shift) {
        return code - u32(shift) * 8;
    }
    // In units of 2^-9: what lies below them is dropped; past five bits that is all, and less than
    // half.
    const u32 significand = exponent > 0 ? 8 | (code & 7) : code & 7;
    const i32 drop = min(shift - max(exponent - 1, 0), 5);
    const u32 half = 1u << (drop - 1), odd = significand >> drop & 1;
    inexact += (significand & (2 * half - 1)) != 0;
    return (code & 0x80) | (significand + half - 1 + odd) >> drop;
}

#if __CUDA_ARCH__ >= 890
// The two codes in the low half, none of them NaN, times 2^-shift, 1 <= shift <= 14. Products are
// exact in f16, whose last place is 2^-24; the conversion back is the only rounding.
__device__ __forceinline__ u32 fold_pair(u32 pair, i32 shift, i32 &inexact)
{
    const u32 factor = u32(15 - shift) * 0x04000400u;
    u32 product, back;
    u16 made;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(product) : "h"(u16(pair)));
    asm("mul.rn.f16x2 %0, %0, %1;" : "+r"(product) : "r"(factor));
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(made) : "r"(product));
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(back) : "h"(made));
    const u32 off = product ^ back;
    inexact += ((off & 0xffff) != 0) + (off > 0xffff);
    return made;
}
#endif

// Four codes of a word: at once where all stay normal numbers, which is the rule, else by pairs or,
// for NaN and far groups, one by one.
__device__ __forceinline__ u32 fold_codes(u32 word, i32 shift, i32 &inexact)
{
    if (shift == 0) {
        return word;
    }
    // A byte keeps its high bit when its exponent is larger than shift; no byte borrows from the
    // next.
    const u32 left = ((word & 0x78787878u) | 0x80808080u) - u32(shift + 1) * 0x08080808u;
    const bool normal = shift < 15 && (left & 0x80808080u) == 0x80808080u;
    const bool nan = (((word & 0x7f7f7f7fu) + 0x01010101u) & 0x80808080u) != 0;
    if (normal && !nan) {
        return word - u32(shift) * 0x08080808u;
    }
#if __CUDA_ARCH__ >= 890
    if (shift < 15 && !nan) {
        return fold_pair(word & 0xffff, shift, inexact) | fold_pair(word >> 16, shift, inexact)
                                                              << 16;
    }
#endif
    u32 made = 0;
#pragma unroll
    for (int i = 0; i < 32; i += 8) {
        made |= fold_code(word >> i & 0xff, shift, inexact) << i;
    }
    return made;
}
