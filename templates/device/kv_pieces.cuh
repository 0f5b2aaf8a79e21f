// kv_pieces.cuh - what a lane holds of a row of bf16: pieces of one access each, their largest
// magnitudes, and exchanges that make wide stores of narrow codes.
//
// `Block` neighbouring lanes hold `Pieces * Block` neighbouring pieces: piece r of lane l is the
// block's piece r * Block + l, so that a warp's loads and stores are runs.
#pragma once
#include "device/formats.cuh"
#include "device/vector.cuh"

constexpr u32 kMagnitudes = 0x7fff7fffu; // of a pair of bf16
constexpr u32 kSpecial = 0x7f80u;        // from here on a magnitude is infinity or NaN
constexpr u32 kNan = 0x7fffu;

// The larger of two pairs, half by half; NaN is the largest and becomes 0x7fff.
__device__ __forceinline__ u32 larger_pair(u32 a, u32 b)
{
    u32 larger;
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
}

// Whether one of some maxima is infinity or NaN.
template <int N> __device__ __forceinline__ bool has_special(const u32 (&maxima)[N])
{
    u32 any = 0;
#pragma unroll
    for (int m = 0; m < N; m++) {
        any |= (maxima[m] & 0x7f807f80u) + 0x00800080u;
    }
    return (any & 0x80008000u) != 0;
}

// A pair by a power of two, which is given twice: exact, and a zero keeps its sign.
__device__ __forceinline__ u32 times_pair(u32 pair, u32 both)
{
    u32 product;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(product) : "r"(pair), "r"(both), "r"(0x80008000u));
    return product;
}

// The power of two with this exponent field, twice.
__device__ __forceinline__ u32 pow2_pair(u32 field)
{
    return field * 0x00800080u;
}

// The halves of a pair as floats.
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

template <int Elements, int Pieces> struct RowPart {
    static constexpr int kMaxima = (Pieces + 1) / 2; // registers of two pieces' maxima
    static_assert(Elements == 4 || Elements == 8, "a piece is an access of 8 or 16 bytes");

    u32 pair[Pieces][Elements / 2];

    // `own` is the lane's first piece, `stride` elements lie between its pieces.
    template <int Align> __device__ __forceinline__ void load(const bf16 *own, i32 stride)
    {
#pragma unroll
        for (int r = 0; r < Pieces; r++) {
            copy_bytes < Elements * 2, Align<2 ? 2 : Align>(pair[r], own + r * stride);
        }
    }

    // Each piece's largest magnitude: piece r's in half r % 2 of register r / 2.
    __device__ __forceinline__ void maxima(u32 (&out)[kMaxima]) const
    {
        u32 largest[Pieces + 1];
        largest[Pieces] = 0;
#pragma unroll
        for (int r = 0; r < Pieces; r++) {
            largest[r] = pair[r][0] & kMagnitudes;
#pragma unroll
            for (int i = 1; i < Elements / 2; i++) {
                largest[r] = larger_pair(largest[r], pair[r][i] & kMagnitudes);
            }
        }
#pragma unroll
        for (int m = 0; m < kMaxima; m++) {
            out[m] = larger_pair(__byte_perm(largest[2 * m], largest[2 * m + 1], 0x5410),
                                 __byte_perm(largest[2 * m], largest[2 * m + 1], 0x7632));
        }
    }

    // Make `with` of NaN and infinities; how many there were. Rare.
    __device__ __forceinline__ u32 replace_specials(u32 with)
    {
        u32 count = 0;
#pragma unroll
        for (int r = 0; r < Pieces; r++) {
#pragma unroll
            for (int i = 0; i < Elements / 2; i++) {
                const u32 low = pair[r][i] & 0xffffu, high = pair[r][i] >> 16;
                const bool low_special = (low & kSpecial) == kSpecial,
                           high_special = (high & kSpecial) == kSpecial;
                count += low_special + high_special;
                pair[r][i] = (low_special ? with : low) | (high_special ? with : high) << 16;
            }
        }
        return count;
    }

    __device__ __forceinline__ void floats(int r, float (&x)[Elements]) const
    {
#pragma unroll
        for (int i = 0; i < Elements; i++) {
            x[i] = i % 2 == 0 ? low_float(pair[r][i / 2]) : high_float(pair[r][i / 2]);
        }
    }
};

// The maxima over each aligned run of `Lanes` lanes, in all of them. The whole warp takes part.
template <int Lanes, int N> __device__ __forceinline__ void lanes_larger(u32 (&pair)[N])
{
    static_assert(is_pow2(Lanes) && Lanes <= 32, "runs of 1, 2, 4 ... 32 lanes");
#pragma unroll
    for (int step = 1; step < Lanes; step *= 2) {
#pragma unroll
        for (int m = 0; m < N; m++) {
            pair[m] = larger_pair(pair[m], __shfl_xor_sync(0xffffffffu, pair[m], step));
        }
    }
}

// Piece r's maximum, as the bits of a float.
template <int N> __device__ __forceinline__ u32 piece_max(const u32 (&maxima)[N], int r)
{
    return r % 2 == 0 ? maxima[r / 2] << 16 : maxima[r / 2] & 0xffff0000u;
}

// Of each X neighbouring lanes, lane i gives word group j to lane j's place i: rows become columns.
// The whole warp takes part; doing it twice undoes it.
template <int X, int Words> __device__ __forceinline__ void lanes_transpose(u32 (&word)[X][Words])
{
    const i32 lane = i32(threadIdx.x);
#pragma unroll
    for (int step = 1; step < X; step *= 2) {
        const bool upper = (lane & step) != 0;
#pragma unroll
        for (int a = 0; a < X; a++) {
            if ((a & step) != 0) {
                continue;
            }
#pragma unroll
            for (int w = 0; w < Words; w++) {
                const u32 sent = upper ? word[a][w] : word[a + step][w];
                const u32 got = __shfl_xor_sync(0xffffffffu, sent, step);
                word[a][w] = upper ? got : word[a][w];
                word[a + step][w] = upper ? word[a + step][w] : got;
            }
        }
    }
}

// Store what X pieces of each of X neighbouring lanes became, `Words` words a piece: each lane
// stores one run of them. `block` is the block's first byte, `first` the lane's first piece of
// these among the lane's own.
template <int Block, int Align, int X, int Words>
__device__ __forceinline__ void store_run(u8 *block, i32 lane, int first,
                                          const u32 (&word)[X][Words])
{
    constexpr int kBytes = X * Words * 4;
    u8 *const to = block + (first + lane % X) * Block * Words * 4 + lane / X * kBytes;
    copy_bytes<kBytes, least(Align, kBytes)>(to, word);
}
