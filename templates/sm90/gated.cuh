// gated.cuh - D made of gates and ups, in a Hopper product: their activation, stored as it is or as
// e4m3 with a scale for each group of columns.
//
// A warpgroup's sums are gates, then as many ups (Tile::kHalf), so that a thread holds both of each
// element. Codes and scales are quantise.cuh's, of activations in fp32.
#pragma once
#include "device/activation.cuh"
#include "device/codes.cuh"
#include "sm90/output.cuh"

template <Config C> struct Gated {
    using T = Tile<C>;
    static constexpr int kTiles = C.swap ? T::kTiles / 2 : T::kTiles;
    static constexpr int kEights = (C.swap ? T::kWide : T::kHalf) / 8;
    using Values = float[kTiles][kEights][4];
    const Output<C> &out; // n: D's columns
    CodesTarget to;
    u32 largest; // shared address

    // Eight columns of a tile of 64 rows.
    static __device__ __forceinline__ const float (&piece(const Sums<C> &sum, int tile, int f))[4]
    {
        return sum[tile][f / (C.chunk / 8)][f % (C.chunk / 8)];
    }

    static __device__ __forceinline__ void activate_all(Values &v, const Sums<C> &sum)
    {
#pragma unroll
        for (int t = 0; t < kTiles; t++) {
#pragma unroll
            for (int f = 0; f < kEights; f++) {
                const float(&gate)[4] = piece(sum, t, f);
                const float(&up)[4] = piece(sum, C.swap ? t + kTiles : t, C.swap ? f : f + kEights);
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    v[t][f][i] = activate<C.activation>(gate[i], up[i]);
                }
            }
        }
    }

    __device__ __forceinline__ void store_scale_of(const Work &w, i32 row, i32 group, float s) const
    {
        to.store<C.out_ue8m0, C.out_packed>(w.batch, row, group, out.n / C.out_group, s);
    }

    // Two codes of each of four lanes and four pieces of eight columns: each lane gets the eight of
    // one piece.
    static __device__ __forceinline__ uint2 eight_codes(const u32 (&pair)[4])
    {
        const u32 q = threadIdx.x % 4;
        const u32 low = pair[0] | pair[1] << 16, high = pair[2] | pair[3] << 16;
        const u32 other = __shfl_xor_sync(0xffffffffu, q < 2 ? high : low, 2);
        // of lanes q and q ^ 2, two pieces: q < 2 the first two
        const u32 mine = q < 2 ? low : high;
        const u32 first = q < 2 ? mine : other,
                  second = q < 2 ? other : mine; // lanes below 2, above
        const bool odd = q % 2 == 1;
        const u32 keep = __byte_perm(first, second, odd ? 0x7632 : 0x5410);
        const u32 give = __byte_perm(first, second, odd ? 0x5410 : 0x7632);
        const u32 got = __shfl_xor_sync(0xffffffffu, give, 1);
        // keep: this piece's codes of lanes p and p + 2 where p is q % 2; got: of the other two
        const u32 even_lanes = odd ? got : keep, odd_lanes = odd ? keep : got;
        return make_uint2(__byte_perm(even_lanes, odd_lanes, 0x5410),
                          __byte_perm(even_lanes, odd_lanes, 0x7632));
    }

    // D's rows are the sums': a group is four neighbouring lanes'.
    __device__ __forceinline__ void codes(const Values &v, const Work &w, i32 row, i32 column) const
    {
        constexpr int kPieces = C.out_group / 8;
        const u32 lane = threadIdx.x % 32;
        u8 *d = reinterpret_cast<u8 *>(out.d) + w.batch * out.batch_stride;
#pragma unroll
        for (int i = 0; i < kTiles * 2; i++) {
            const i32 r =
                row + i / 2 * 64 + i32(threadIdx.x) % 128 / 32 * 16 + i32(lane) / 4 + i % 2 * 8;
            const bool kept = row_kept(out.rows_of(w), r);
#pragma unroll
            for (int g = 0; g < kEights / kPieces; g++) {
                float x[kPieces * 2], y[kPieces * 2];
#pragma unroll
                for (int j = 0; j < kPieces * 2; j++) {
                    x[j] = v[i / 2][g * kPieces + j / 2][i % 2 * 2 + j % 2];
                }
                const u32 own = largest_bits(x);
                const float s = group_scale<C.out_rule>(group_amax<4>(x, own));
                // What a gate made is known to 2^-20.
                divide_all<C.out_rule, CLOSE>(y, x, s, own < kInfinityBits);
                const i32 c = column + g * C.out_group;
                const bool there = kept && c < out.n;
#pragma unroll
                for (int j = 0; j < kPieces; j += 4) {
                    u32 pair[4];
#pragma unroll
                    for (int p = 0; p < 4; p++) {
                        pair[p] = e4m3x2_from(y[(j + p) * 2], y[(j + p) * 2 + 1]);
                    }
                    const uint2 eight = eight_codes(pair);
                    if (there) {
                        *reinterpret_cast<uint2 *>(d + r * out.row_stride + c +
                                                   (j + i32(lane) % 4) * 8) = eight;
                    }
                }
                if (there && lane % 4 == 0) {
                    store_scale_of(w, r, c / C.out_group, s);
                }
            }
        }
    }

    // D's columns are the sums' rows: a group is several strips of 16, of several warps.
    __device__ __forceinline__ void turned_codes(const Values &v, const Work &w, i32 row,
                                                 i32 column, i32 strip) const
    {
        constexpr int kStrips = C.out_group / 16;
        constexpr u32 kLine = T::kColumns * 4;
        const u32 lane = threadIdx.x % 32;
        u8 *d = reinterpret_cast<u8 *>(out.d) + w.batch * out.batch_stride;
        named_sync(8, T::kGroups * 128); // the last tile's are read
#pragma unroll
        for (int t = 0; t < kTiles; t++) {
#pragma unroll
            for (int f = 0; f < kEights; f++) {
                const float left[2] = {v[t][f][0], v[t][f][2]}, right[2] = {v[t][f][1], v[t][f][3]};
                u32 a = finite_bits(left), b = finite_bits(right);
#pragma unroll
                for (int step = 4; step < 32; step *= 2) {
                    a = max(a, __shfl_xor_sync(0xffffffffu, a, step));
                    b = max(b, __shfl_xor_sync(0xffffffffu, b, step));
                }
                if (lane < 4) {
                    shared_store(largest + (strip + t * 4) * kLine + (f * 8 + lane * 2) * 4,
                                 __uint_as_float(a), __uint_as_float(b));
                }
            }
        }
        named_sync(8, T::kGroups * 128);
#pragma unroll
        for (int t = 0; t < kTiles; t++) {
            const i32 own = strip + t * 4, first = own / kStrips * kStrips;
            const i32 c =
                row + t * 64 + i32(threadIdx.x) % 128 / 32 * 16; // the strip's column of D
#pragma unroll
            for (int f = 0; f < kEights; f++) {
                float amax[2] = {};
#pragma unroll
                for (int i = 0; i < kStrips; i++) {
                    float pair[2];
                    scales_load<0>(pair,
                                   largest + (first + i) * kLine + (f * 8 + lane % 4 * 2) * 4);
                    amax[0] = fmaxf(amax[0], pair[0]), amax[1] = fmaxf(amax[1], pair[1]);
                }
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const i32 r = column + f * 8 + i32(lane) % 4 * 2 + i;
                    const float x[2] = {v[t][f][i], v[t][f][i + 2]};
                    const float s = group_scale<C.out_rule>(amax[i]);
                    float y[2];
                    divide_all<C.out_rule, CLOSE>(y, x, s, largest_bits(x) < kInfinityBits);
                    const u32 pair = e4m3x2_from(y[0], y[1]);
                    if (row_kept(out.rows_of(w), r) && c < out.n) {
                        u8 *at = d + r * out.row_stride + c + lane / 4;
                        at[0] = u8(pair), at[8] = u8(pair >> 8);
                        if (own == first && lane < 4) {
                            store_scale_of(w, r, c / C.out_group, s);
                        }
                    }
                }
            }
        }
    }

    // (row, column): of D, where the warpgroup's begins; strip: the first of its warp.
    __device__ __forceinline__ void all(const Sums<C> &sum, const Work &w, i32 row, i32 column,
                                        i32 strip) const
    {
        Values v;
        activate_all(v, sum);
        if constexpr (!T::kCodes) {
#pragma unroll
            for (int t = 0; t < kTiles; t++) {
                out.store(reinterpret_cast<const float(&)[1][kEights][4]>(v[t]), out.rows_of(w),
                          w.batch, row + t * 64, column);
            }
        } else if constexpr (C.swap) {
            turned_codes(v, w, row, column, strip);
        } else {
            codes(v, w, row, column);
        }
    }
};
