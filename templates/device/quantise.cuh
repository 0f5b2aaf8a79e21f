// quantise.cuh - a group's scale and payload, made together: the payload is divided by the rounded
// scale.
//
// The scale rules are hone_scale_rule's; amax is taken over the finite elements. Codes and scales
// are those of core/numfmt.h, byte for byte.
#pragma once
#include "device/formats.cuh"
#include "device/vector.cuh"
#include "device/warp.cuh"

constexpr u32 kInfinityBits = 0x7f800000u;

// Bits of the largest magnitude, which order as the magnitudes do; NaN and infinity are the
// largest.
template <int N> __device__ __forceinline__ u32 largest_bits(const float (&x)[N])
{
    u32 largest = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        largest = max(largest, __float_as_uint(x[i]) & 0x7fffffffu);
    }
    return largest;
}

// The largest finite magnitude of a group that `Lanes` neighbouring lanes hold, in all of them. NaN
// and infinity must not make a scale; they are rare, so that only a warp that has one filters them
// out. `own` is this lane's largest_bits. The whole warp must take part.
template <int Lanes, int N>
__device__ __forceinline__ float group_amax(const float (&x)[N], u32 own)
{
    if (__ballot_sync(0xffffffffu, own >= kInfinityBits) != 0) {
        own = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            const u32 magnitude = __float_as_uint(x[i]) & 0x7fffffffu;
            own = max(own, magnitude < kInfinityBits ? magnitude : 0);
        }
    }
    return __uint_as_float(lanes_max<Lanes>(own));
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

// Below it remainders may underflow while their codes are not yet zero. 2^-80
constexpr float kSmallestDivisor = 8.2718061e-25f;

// fl32(x / s) of a finite x, from the rounded reciprocal and two corrections: the first leaves q
// within one unit in the last place, from where the second rounds as division does (Markstein).
__device__ __forceinline__ float divide(float x, float minus_s, float inverse)
{
    float q = x * inverse;
    q = fmaf(fmaf(q, minus_s, x), inverse, q);
    q = fmaf(fmaf(q, minus_s, x), inverse, q);
    return __uint_as_float(__float_as_uint(q) | (__float_as_uint(x) & 0x80000000u)); // -0 stays
}

// y = fl32(x / s). By a power of two the product with 1/s is the same number, and cheaper. `plain`:
// x is finite.
template <int Rule, int N>
__device__ __forceinline__ void divide_all(float (&y)[N], const float (&x)[N], float s, bool plain)
{
    if constexpr (rule_is_pow2(Rule)) {
        const float inverse = __uint_as_float(0x7f000000u - __float_as_uint(s));
#pragma unroll
        for (int i = 0; i < N; i++) {
            y[i] = x[i] * inverse;
        }
    } else if (plain && s >= kSmallestDivisor) {
        const float inverse = __fdiv_rn(1.0f, s);
#pragma unroll
        for (int i = 0; i < N; i++) {
            y[i] = divide(x[i], -s, inverse);
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) {
            y[i] = __fdiv_rn(x[i], s);
        }
    }
}

// One lane's part of a group: N elements in pieces of at most 16 bytes; neighbouring lanes hold
// neighbouring pieces, so that each access of a warp is one run.
template <typename T, int N, int Lanes> struct GroupPart {
    static constexpr int kPiece = least(N, 16 / int(sizeof(T)));
    static constexpr int kPieces = N / kPiece;
    static_assert(kPiece % 4 == 0, "codes are made four at a time");

    Pack<T, kPiece> piece[kPieces];

    // `group` is the group's first element.
    template <int Align> __device__ __forceinline__ void load(const T *group, i32 lane)
    {
#pragma unroll
        for (int p = 0; p < kPieces; p++) {
            piece[p] = pack_load<kPiece, Align>(group + (p * Lanes + lane) * kPiece);
        }
    }

    __device__ __forceinline__ void floats(float (&x)[N]) const
    {
#pragma unroll
        for (int i = 0; i < N; i++) {
            x[i] = to_float(piece[i / kPiece].v[i % kPiece]);
        }
    }

    // The group's codes, of elements that floats gave divided by the scale.
    template <int Align>
    __device__ __forceinline__ static void store(u8 *group, i32 lane, const float (&y)[N])
    {
#pragma unroll
        for (int p = 0; p < kPieces; p++) {
            Pack<u8, kPiece> codes;
#pragma unroll
            for (int i = 0; i < kPiece; i += 4) {
                const float *four = &y[p * kPiece + i];
                *reinterpret_cast<u32 *>(&codes.v[i]) =
                    e4m3x4_from(four[0], four[1], four[2], four[3]);
            }
            pack_store<Align>(group + (p * Lanes + lane) * kPiece, codes);
        }
    }
};

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
