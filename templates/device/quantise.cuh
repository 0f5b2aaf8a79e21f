// quantise.cuh - a group's scale and payload, made together: the payload is divided by the rounded
// scale.
//
// The scale rules are hone_scale_rule's; amax is taken over the finite elements. Codes and scales
// are those of core/numfmt.h, byte for byte.
#pragma once
#include "device/pairs.cuh"
#include "device/vector.cuh"
#include "device/warp.cuh"

constexpr u32 kInfinityBits = 0x7f800000u;

// A magnitude's bits, where few ask for them: of the intrinsic compilers make moves that all lanes
// execute.
__device__ __forceinline__ u32 magnitude_bits(float x)
{
    u32 bits;
    asm("and.b32 %0, %1, 0x7fffffff;" : "=r"(bits) : "f"(x));
    return bits;
}

// Bits of the largest magnitude, which order as the magnitudes do; NaN and infinity are the
// largest.
template <int N> __device__ __forceinline__ u32 largest_bits(const float (&x)[N])
{
#if __CUDA_ARCH__ >= 860
    float largest = x[0];
#pragma unroll
    for (int i = 1; i < N; i++) {
        asm("max.NaN.xorsign.abs.f32 %0, %1, %2;" : "=f"(largest) : "f"(largest), "f"(x[i]));
    }
    return __float_as_uint(largest) & 0x7fffffffu;
#else
    u32 largest = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        largest = max(largest, __float_as_uint(x[i]) & 0x7fffffffu);
    }
    return largest;
#endif
}

// As largest_bits, of the finite elements.
template <int N> __device__ __forceinline__ u32 finite_bits(const float (&x)[N])
{
    u32 largest = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        const u32 magnitude = magnitude_bits(x[i]);
        largest = max(largest, magnitude < kInfinityBits ? magnitude : 0);
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
        own = finite_bits(x);
    }
    return __uint_as_float(lanes_max<Lanes>(own));
}

// Of N elements those that are NaN or infinite.
template <int N> __device__ __forceinline__ u32 special_count(const float (&x)[N])
{
    u32 count = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        count += magnitude_bits(x[i]) >= kInfinityBits;
    }
    return count;
}

constexpr float kE4m3Max = 448.0f;
constexpr float kAmaxFloor = 1e-4f;
constexpr float kSmallestNormal = 1.17549435e-38f;

__device__ constexpr bool rule_is_pow2(int rule)
{
    return rule == POW2_AMAX || rule == POW2_SCALE || rule == POW2_TINY;
}

// The smallest power of two >= amax / 448 as a ue8m0 code. 448 is 1.75 * 2^8, so that a mantissa up
// to 0.75 stays in its binade; the next float's quotient is 0.57 units above the power of two and
// rounds away from it. The floors are 1e-4 of amax, or of the scale (2^-13), or floats' own.
template <int Rule> __device__ __forceinline__ u32 pow2_code(float amax)
{
    const u32 bits = __float_as_uint(Rule == POW2_AMAX ? fmaxf(amax, kAmaxFloor) : amax);
    const u32 code = ((bits + 0x1fffffu) >> 23) - 8;
    return Rule == POW2_AMAX ? code : u32(max(i32(code), Rule == POW2_TINY ? 1 : 114));
}

template <int Rule> __device__ __forceinline__ float group_scale(float amax)
{
    static_assert(Rule >= POW2_AMAX && Rule <= POW2_TINY, "a rule of hone_scale_rule");
    if constexpr (rule_is_pow2(Rule)) {
        return __uint_as_float(pow2_code<Rule>(amax) << 23);
    } else if constexpr (Rule == RAW_AMAX) {
        return __fdiv_rn(fmaxf(amax, kAmaxFloor), kE4m3Max);
    } else {
        return fmaxf(__fdiv_rn(amax, kE4m3Max), kSmallestNormal);
    }
}

// Below it remainders may underflow while their codes are not yet zero, and above its inverse what
// inverses leave. 2^-80
constexpr float kSmallestDivisor = 8.2718061e-25f;

__device__ __forceinline__ bool divides_quickly(float s)
{
    return s >= kSmallestDivisor && s <= 1.0f / kSmallestDivisor;
}

// What is known of a quotient's dividend, and asked of the quotient. LONG: fl32(x / s) of any x.
// SHORT: the same of an x that has at most 11 significant bits, as the amax has that s was made
// of. CLOSE: x is itself known to some units in the last place, and the quotient needs no more.
enum Dividend : int { LONG = 0, SHORT = 1, CLOSE = 2 };

// 1 / s, of a divisor that divides quickly.
template <Dividend Kind> struct Inverse;

// From the rounded inverse and two corrections: the first leaves q within one unit in the last
// place, from where the second rounds as division does (Markstein).
template <> struct Inverse<LONG> {
    float minus_s, inverse;

    __device__ __forceinline__ explicit Inverse(float s)
        : minus_s(-s), inverse(__fdiv_rn(1.0f, s))
    {
    }

    __device__ __forceinline__ float times(float x) const
    {
        float q = x * inverse;
        q = fmaf(fmaf(q, minus_s, x), inverse, q);
        q = fmaf(fmaf(q, minus_s, x), inverse, q);
        return copysignf(q, x); // -0 stays
    }
};

// The inverse in two parts, of which the second is what the first lacks: 2^-48 of the quotient are
// lost before it is rounded. There are so few short quotients that tests/core/test_quantise.c tries
// them all. Neither part is negative, so that zeros keep their signs.
template <> struct Inverse<SHORT> {
    float high, low;

    __device__ __forceinline__ explicit Inverse(float s)
        : high(__frcp_rd(s)), low(fmaf(-high, s, 1.0f) * high)
    {
    }

    __device__ __forceinline__ float times(float x) const
    {
        return fmaf(x, high, x * low);
    }
};

template <> struct Inverse<CLOSE> {
    float inverse;

    __device__ __forceinline__ explicit Inverse(float s) : inverse(__fdiv_rn(1.0f, s)) {}

    __device__ __forceinline__ float times(float x) const
    {
        return x * inverse;
    }
};

// -fl32(x / s) of a finite, short x, of which -1/s is given, or a float on the same side of each
// tie of e4m3 whatever s is. The signs are such that -0 becomes 0, and 0 becomes -0, without more.
__device__ __forceinline__ float minus_quotient(float x, float s, float minus_inverse)
{
    const float q = x * minus_inverse;
    return fmaf(fmaf(q, s, x), minus_inverse, q);
}

// y = fl32(x / s), NaN for an infinite x. By a power of two the product with 1/s is the same
// number, and cheaper. `plain`: x is finite.
template <int Rule, Dividend Kind = LONG, int N>
__device__ __forceinline__ void divide_all(float (&y)[N], const float (&x)[N], float s, bool plain)
{
    if constexpr (rule_is_pow2(Rule)) {
        const float inverse = __uint_as_float(0x7f000000u - __float_as_uint(s));
#pragma unroll
        for (int i = 0; i < N; i++) {
            y[i] = x[i] * inverse;
        }
    } else if (plain && divides_quickly(s)) {
        const Inverse<Kind> inverse(s);
#pragma unroll
        for (int i = 0; i < N; i++) {
            y[i] = inverse.times(x[i]);
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) {
            y[i] = __fdiv_rn(x[i], s);
        }
    }
    if (!plain) { // rare
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (magnitude_bits(x[i]) == kInfinityBits) {
                y[i] = __uint_as_float(0x7fffffffu);
            }
        }
    }
}

// Codes of elements that were divided by their scale, into bytes at multiples of Align.
template <int Align, int N> __device__ __forceinline__ void store_codes(u8 *to, const float (&y)[N])
{
    u32 word[N / 4];
#pragma unroll
    for (int i = 0; i < N; i += 4) {
        word[i / 4] = e4m3x4_from(y[i], y[i + 1], y[i + 2], y[i + 3]);
    }
    copy_bytes<N, Align>(to, word);
}

// N elements in words, as they came from memory.
template <typename T, int N> struct Words {
    static constexpr int kBytes = N * int(sizeof(T));
    static constexpr bool kShort = sizeof(T) == 2;

    u32 word[kBytes / 4];

    __device__ __forceinline__ void floats(float (&x)[N]) const
    {
#pragma unroll
        for (int i = 0; i < N; i++) {
            x[i] = word_float<T>(word, i);
        }
    }

    // As largest_bits of the floats.
    __device__ __forceinline__ u32 largest() const
    {
        if constexpr (!kShort) {
            float x[N];
            floats(x);
            return largest_bits(x);
        } else {
            u32 pair = word[0];
#pragma unroll
            for (int i = 1; i < N / 2; i++) {
                pair = larger_pair<T>(pair, word[i]);
            }
            const u32 larger = max(pair & 0x7fffu, pair >> 16 & 0x7fffu);
            return __float_as_uint(word_float<T>(&larger, 0));
        }
    }

    // Divided by their scale. `plain`: all are finite.
    template <int Rule>
    __device__ __forceinline__ void divided(float (&y)[N], float s, bool plain) const
    {
        float x[N];
        if constexpr (rule_is_pow2(Rule) && is_same<T, bf16>) {
            if (plain) { // in pairs: s is a power of two, its inverse a bf16
                const u32 high = 0x7f000000u - __float_as_uint(s), inverse = high | high >> 16;
#pragma unroll
                for (int i = 0; i < N; i += 2) {
                    const u32 pair = scale_pair(word[i / 2], inverse);
                    y[i] = word_float<T>(&pair, 0);
                    y[i + 1] = word_float<T>(&pair, 1);
                }
                return;
            }
        }
        floats(x);
        divide_all<Rule, kShort ? SHORT : LONG>(y, x, s, plain);
    }
};

// One lane's part of a group: N elements in pieces of at most 16 bytes; neighbouring lanes hold
// neighbouring pieces, so that each access of a warp is one run.
template <typename T, int N, int Lanes> struct GroupPart : Words<T, N> {
    static constexpr int kPiece = least(N, 16 / int(sizeof(T)));
    static constexpr int kPieces = N / kPiece;
    static constexpr int kWords = kPiece * int(sizeof(T)) / 4;
    static_assert(kPiece % 4 == 0, "codes are made four at a time");

    // `group` is the group's first element.
    template <int Align> __device__ __forceinline__ void load(const T *group, i32 lane)
    {
        constexpr int kAlign = Align < int(sizeof(T)) ? int(sizeof(T)) : Align;
#pragma unroll
        for (int p = 0; p < kPieces; p++) {
            copy_bytes<kWords * 4, kAlign>(&this->word[p * kWords],
                                           group + (p * Lanes + lane) * kPiece);
        }
    }

    // The group's codes, of elements that were divided by the scale.
    template <int Align>
    __device__ __forceinline__ static void store(u8 *group, i32 lane, const float (&y)[N])
    {
#pragma unroll
        for (int p = 0; p < kPieces; p++) {
            float part[kPiece];
#pragma unroll
            for (int i = 0; i < kPiece; i++) {
                part[i] = y[p * kPiece + i];
            }
            store_codes<Align>(group + (p * Lanes + lane) * kPiece, part);
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
