// formats.cuh - narrow number formats: e4m3, bf16, f16, ue8m0. Round to nearest even; e4m3
// saturates; NaN is 0x7f.
//
// The hardware converts to e4m3 from sm_89 on; before that the same codes are made by integer
// arithmetic.
#pragma once
#include "device/types.cuh"

// What a 16-bit float is stored as; distinct types, so that overloads read the right format.
struct bf16 {
    u16 bits;
};
struct f16 {
    u16 bits;
};

template <int D> struct ElementOf;
template <> struct ElementOf<F32> {
    using Type = float;
};
template <> struct ElementOf<BF16> {
    using Type = bf16;
};
template <> struct ElementOf<F16> {
    using Type = f16;
};

__device__ __forceinline__ float to_float(float x)
{
    return x;
}

__device__ __forceinline__ float to_float(bf16 x)
{
    return __uint_as_float(u32(x.bits) << 16);
}

__device__ __forceinline__ float to_float(f16 x)
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}

// Two floats as bf16, `low` in the low half.
__device__ __forceinline__ u32 bf16x2_from(float low, float high)
{
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// 2^(code - 127) for codes 1..254 by the exponent field alone; 0 is 2^-127, which is subnormal;
// 0xff is NaN.
__device__ __forceinline__ float ue8m0_decode(u8 code)
{
    const u32 bits = code == 0 ? 0x00400000u : code == 0xff ? 0x7fffffffu : u32(code) << 23;
    return __uint_as_float(bits);
}

// The smallest power of two >= s as a ue8m0 code: exponent + (mantissa != 0), clamped to [1, 254].
// Bits only: a rounded logarithm is one binade off near powers of two.
__device__ __forceinline__ u8 ue8m0_ceil(float s)
{
    const u32 bits = __float_as_uint(s);
    const u32 code = (bits >> 23) + ((bits & 0x7fffffu) != 0);
    return u8(min(max(code, 1u), 254u));
}

// One e4m3 code without the hardware's conversion.
__device__ __forceinline__ u32 e4m3_by_bits(float x)
{
    const u32 bits = __float_as_uint(x), sign = (bits >> 24) & 0x80u;
    u32 magnitude = bits & 0x7fffffffu, code;
    if (magnitude > 0x7f800000u) {
        return 0x7f;
    }
    if (magnitude < 0x3c800000u) { // below 2^-6: 16384's last place is the subnormals' quantum 2^-9
        code = __float_as_uint(__uint_as_float(magnitude) + 16384.0f) - 0x46800000u;
    } else {
        magnitude += 0x7ffffu + ((magnitude >> 20) & 1u);
        code = (magnitude >> 20) - (120u << 3);
    }
    return sign | min(code, 0x7eu);
}

// Two e4m3 codes, `low` in the low byte.
__device__ __forceinline__ u32 e4m3x2_from(float low, float high)
{
#if __CUDA_ARCH__ >= 890
    u16 pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return e4m3_by_bits(low) | e4m3_by_bits(high) << 8;
#endif
}

__device__ __forceinline__ u32 e4m3x4_from(float a, float b, float c, float d)
{
#if __CUDA_ARCH__ >= 890
    u32 four;
    asm("{\n.reg .b16 low, high;\n"
        "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\ncvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
        "mov.b32 %0, {low, high};\n}"
        : "=r"(four)
        : "f"(a), "f"(b), "f"(c), "f"(d));
    return four;
#else
    return e4m3x2_from(a, b) | e4m3x2_from(c, d) << 16;
#endif
}

// Two e4m3 codes as floats; NaN stays NaN.
__device__ __forceinline__ void e4m3x2_to(u32 codes, float &low, float &high)
{
#if __CUDA_ARCH__ >= 890
    asm("{\n.reg .b32 pair;\n.reg .b16 low, high;\ncvt.rn.f16x2.e4m3x2 pair, %2;\n"
        "mov.b32 {low, high}, pair;\ncvt.f32.f16 %0, low;\ncvt.f32.f16 %1, high;\n}"
        : "=f"(low), "=f"(high)
        : "h"(u16(codes)));
#else
    // A float of the code's bits is 2^-120 of it, subnormal where the code is.
    const float scale = __uint_as_float(247u << 23);
    const u32 a = codes & 0x7fu, b = codes >> 8 & 0x7fu;
    low = a == 0x7fu ? __uint_as_float(0x7fffffffu)
                     : __uint_as_float(a << 20 | (codes & 0x80u) << 24) * scale;
    high = b == 0x7fu ? __uint_as_float(0x7fffffffu)
                      : __uint_as_float(b << 20 | (codes & 0x8000u) << 16) * scale;
#endif
}

// The halves of a pair of bf16 as floats: assembly, for one instruction each.
__device__ __forceinline__ float low_float(u32 pair)
{
    float x;
    asm("shl.b32 %0, %1, 16;" : "=f"(x) : "r"(pair));
    return x;
}

__device__ __forceinline__ float high_float(u32 pair)
{
    float x;
    asm("and.b32 %0, %1, 0xffff0000;" : "=f"(x) : "r"(pair));
    return x;
}

// Element i of elements that lie in words.
template <typename T> __device__ __forceinline__ float word_float(const u32 *word, int i);
template <> __device__ __forceinline__ float word_float<float>(const u32 *word, int i)
{
    return __uint_as_float(word[i]);
}
template <> __device__ __forceinline__ float word_float<bf16>(const u32 *word, int i)
{
    return i % 2 == 0 ? low_float(word[i / 2]) : high_float(word[i / 2]);
}
template <> __device__ __forceinline__ float word_float<f16>(const u32 *word, int i)
{
    float y;
    if (i % 2 == 0) {
        asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.f32.f16 %0, low;\n}"
            : "=f"(y)
            : "r"(word[i / 2]));
    } else {
        asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.f32.f16 %0, high;\n}"
            : "=f"(y)
            : "r"(word[i / 2]));
    }
    return y;
}
