// kv_pieces.cuh - what a lane holds of a row of bf16: pieces of one access of 16 bytes each, their
// largest magnitudes, and codes that meet in one lane for accesses as wide.
//
// `Threads` neighbouring threads hold a row: piece r of thread l is the row's piece r * Threads +
// l, so that a warp's loads and stores are runs.
#pragma once
#include "device/pairs.cuh"
#include "device/vector.cuh"
#include "device/warp.cuh"

constexpr u32 kSpecial = 0x7f80u; // from here on a magnitude is infinity or NaN

// Whether one of some pairs of magnitudes is infinity or NaN.
template <int N> __device__ __forceinline__ bool has_special(const u32 (&maxima)[N])
{
    u32 any = 0;
#pragma unroll
    for (int m = 0; m < N; m++) {
        any |= maxima[m] + 0x00800080u;
    }
    return (any & 0x80008000u) != 0;
}

// Both halves' larger magnitudes of two pairs, each pair's in a half of its own.
__device__ __forceinline__ u32 largest_each(u32 a, u32 b)
{
    return larger_pair<bf16>(bytes_of<0x5410>(a, b), bytes_of<0x7632>(a, b));
}

// Make `with` of NaN and infinities; how many there were. Rare.
template <int N> __device__ __forceinline__ u32 replace_special_halves(u32 (&pair)[N], u32 with)
{
    u32 count = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        const u32 low = pair[i] & 0xffffu, high = pair[i] >> 16;
        const bool low_special = (low & kSpecial) == kSpecial,
                   high_special = (high & kSpecial) == kSpecial;
        count += low_special + high_special;
        pair[i] = (low_special ? with : low) | (high_special ? with : high) << 16;
    }
    return count;
}

template <int Pieces> struct RowPart {
    static constexpr int kMaxima = (Pieces + 1) / 2; // registers of two pieces' maxima

    u32 pair[Pieces][4];

    // `own` is the thread's first piece.
    template <int Threads, int Align> __device__ __forceinline__ void load(const u8 *own)
    {
#pragma unroll
        for (int r = 0; r < Pieces; r++) {
            copy_bytes < 16, Align<2 ? 2 : Align>(pair[r], own + r * Threads * 16);
        }
    }

    // The larger magnitudes of a piece's pairs, under some sign.
    __device__ __forceinline__ u32 largest(int r) const
    {
        return larger_pair<bf16>(larger_pair<bf16>(pair[r][0], pair[r][1]),
                                 larger_pair<bf16>(pair[r][2], pair[r][3]));
    }

    // Each piece's largest magnitude: piece r's in half r % 2 of register r / 2. A last one alone
    // is in both.
    __device__ __forceinline__ void maxima(u32 (&out)[kMaxima]) const
    {
        u32 each[Pieces];
#pragma unroll
        for (int r = 0; r < Pieces; r++) {
            each[r] = largest(r);
        }
#pragma unroll
        for (int m = 0; m < kMaxima; m++) {
            out[m] = largest_each(each[2 * m], each[least(2 * m + 1, Pieces - 1)]) & kMagnitudes;
        }
    }

    // Make `with` of NaN and infinities; how many there were. Rare.
    __device__ __forceinline__ u32 replace_specials(u32 with)
    {
        u32 count = 0;
#pragma unroll
        for (int r = 0; r < Pieces; r++) {
            count += replace_special_halves(pair[r], with);
        }
        return count;
    }

    __device__ __forceinline__ void floats(int r, float (&x)[8]) const
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            x[2 * i] = low_float(pair[r][i]);
            x[2 * i + 1] = high_float(pair[r][i]);
        }
    }
};

// The maxima over each aligned run of `Lanes` lanes, in all of them. The whole warp takes part.
template <int Lanes, int N> __device__ __forceinline__ void lanes_larger(u32 (&pair)[N])
{
    static_assert(is_pow2(Lanes) && Lanes <= 32, "runs of 1, 2, 4 ... 32 lanes");
    if constexpr (Lanes > 1) {
#pragma unroll
        for (int m = 0; m < N; m++) {
            pair[m] = larger_pair<bf16>(pair[m], lane_xor<Lanes / 2>(pair[m]));
        }
        lanes_larger<Lanes / 2>(pair);
    }
}

// Piece r's maximum, as the bits of a float.
template <int N> __device__ __forceinline__ u32 piece_max(const u32 (&maxima)[N], int r)
{
    return r % 2 == 0 ? maxima[r / 2] << 16 : maxima[r / 2] & 0xffff0000u;
}

// The maximum of all of a lane's pieces, in both halves.
template <int N> __device__ __forceinline__ void join_maxima(u32 (&pair)[N])
{
#pragma unroll
    for (int m = 1; m < N; m++) {
        pair[0] = larger_pair<bf16>(pair[0], pair[m]);
    }
    pair[0] = larger_pair<bf16>(pair[0], bytes_of<0x1032>(pair[0], pair[0]));
#pragma unroll
    for (int m = 1; m < N; m++) {
        pair[m] = pair[0];
    }
}

// Tiles are encoded two at a time: prepare(m) makes what those of register m need, and
// encode(r, h, two) piece r of it, in half h.
template <int Pieces, typename Prepare, typename Encode>
__device__ __forceinline__ void encode_pieces(const Prepare &prepare, const Encode &encode)
{
#pragma unroll
    for (int m = 0; m < (Pieces + 1) / 2; m++) {
        const auto two = prepare(m);
#pragma unroll
        for (int h = 0; h < 2 && 2 * m + h < Pieces; h++) {
            encode(2 * m + h, h, two);
        }
    }
}

// What a piece became in `Words` words, gathered in the first of each run of lanes that makes 16
// bytes. The whole warp takes part.
template <int Words> struct Run {
    static constexpr int kLanes = 4 / Words;

    u32 word[4];

    Run() = default;

    __device__ __forceinline__ explicit Run(const u32 (&own)[Words])
    {
        gather<0>(own);
    }

  private:
    template <int W> __device__ __forceinline__ void gather(const u32 (&own)[Words])
    {
        if constexpr (W < Words) {
            word[W] = own[W];
        } else {
            word[W] = lane_xor<W / Words>(own[W % Words]);
        }
        if constexpr (W < 3) {
            gather<W + 1>(own);
        }
    }
};

// Of all pieces of a lane.
template <int Words, int Pieces> struct Runs {
    Run<Words> run[Pieces];

    __device__ __forceinline__ explicit Runs(const u32 (&own)[Pieces][Words])
    {
#pragma unroll
        for (int r = 0; r < Pieces; r++) {
            run[r] = Run<Words>(own[r]);
        }
    }
};

// A lane's share of a tail as e4m3 without a scale: a warp's are one run.
template <int Align, int Pairs>
__device__ __forceinline__ void store_plain(u8 *to, const u32 (&tail)[Pairs])
{
    alignas(4) u16 code[Pairs];
#pragma unroll
    for (int i = 0; i < Pairs; i++) {
        code[i] = u16(e4m3x2_from(low_float(tail[i]), high_float(tail[i])));
    }
    copy_bytes<2 * Pairs, Align>(to, code);
}
