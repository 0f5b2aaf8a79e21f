// quantise.cuh - a group's scale and payload, made together: the payload is divided by the rounded
// scale.
//
// The scale rules are hone_scale_rule's; amax is taken over the finite elements. Codes and scales
// are those of core/numfmt.h, byte for byte.
#pragma once
#include "device/formats.cuh"
#include "device/vector.cuh"

// |x|, and 0 for NaN and infinity, which must not make a scale.
__device__ __forceinline__ float finite_magnitude(float x)
{
    const float magnitude = fabsf(x);
    return magnitude < __uint_as_float(0x7f800000u) ? magnitude : 0.0f;
}

// Largest magnitude of one lane's part of a group.
template <int N> __device__ __forceinline__ float pack_amax(const float (&x)[N])
{
    float amax = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++) {
        amax = fmaxf(amax, finite_magnitude(x[i]));
    }
    return amax;
}

constexpr float kE4m3Max = 448.0f;
constexpr float kAmaxFloor = 1e-4f;
constexpr float kSmallestNormal = 1.17549435e-38f;

__device__ constexpr bool rule_is_pow2(int rule)
{
    return rule == POW2_AMAX || rule == POW2_SCALE;
}

template <int Rule> __device__ __forceinline__ float group_scale(float amax)
{
    static_assert(Rule >= POW2_AMAX && Rule <= RAW_TINY, "a rule of hone_scale_rule");
    float s;
    if constexpr (Rule == POW2_AMAX || Rule == RAW_AMAX) {
        s = __fdiv_rn(fmaxf(amax, kAmaxFloor), kE4m3Max);
    } else {
        s = fmaxf(__fdiv_rn(amax, kE4m3Max), Rule == POW2_SCALE ? kAmaxFloor : kSmallestNormal);
    }
    if constexpr (rule_is_pow2(Rule)) {
        s = ue8m0_decode(ue8m0_ceil(s));
    }
    return s;
}

// fl32(x / s) as e4m3. By a power of two the product with 1/s is the same number, and cheaper.
template <int Rule, int N>
__device__ __forceinline__ Pack<u8, N> pack_quantise(const float (&x)[N], float s)
{
    static_assert(N % 4 == 0, "codes are made four at a time");
    Pack<u8, N> codes;
    const float inverse =
        __uint_as_float(0x7f000000u - __float_as_uint(s)); // of a normal power of two
    float y[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        y[i] = rule_is_pow2(Rule) ? x[i] * inverse : __fdiv_rn(x[i], s);
    }
#pragma unroll
    for (int i = 0; i < N; i += 4) {
        *reinterpret_cast<u32 *>(&codes.v[i]) = e4m3x4_from(y[i], y[i + 1], y[i + 2], y[i + 3]);
    }
    return codes;
}

// Scale number `at` of an array; one that is ue8m0 is a power of two, whose exponent field is the
// code.
template <bool Ue8m0> __device__ __forceinline__ void store_scale(void *scales, i64 at, float s)
{
    if constexpr (Ue8m0) {
        static_cast<u8 *>(scales)[at] = u8(__float_as_uint(s) >> 23);
    } else {
        static_cast<float *>(scales)[at] = s;
    }
}
