// gated_tile.cuh - a tile of D made of gates and ups by mma.sync: activations of a warp's sums, and
// their codes with a scale for each group of columns.
//
// A warp's sums are gates, then the ups beside them, so that a thread holds both of an element.
// Groups of columns may be several warps': activations go through shared memory in fp32, where any
// lanes find a group's largest.
#pragma once
#include "device/activation.cuh"
#include "device/codes.cuh"
#include "device/output.cuh"

// Turned: the sums' rows are D's columns.
template <int Act, bool Turned, int VR, int VC, int TR, int TC>
__device__ __forceinline__ void activate_tiles(float (&v)[VR][VC][4], const float (&sum)[TR][TC][4])
{
    static_assert(TR == (Turned ? 2 * VR : VR) && TC == (Turned ? VC : 2 * VC), "gates and ups");
#pragma unroll
    for (int i = 0; i < VR; i++) {
#pragma unroll
        for (int j = 0; j < VC; j++) {
            const float(&gate)[4] = sum[i][j];
            const float(&up)[4] = sum[Turned ? i + VR : i][Turned ? j : j + VC];
#pragma unroll
            for (int x = 0; x < 4; x++) {
                v[i][j][x] = activate<Act>(gate[x], up[x]);
            }
        }
    }
}

struct CodesShape {
    int rows, columns, threads; // of D's tile; of a CTA
    int group, rule;            // elements that share a scale; hone_scale_rule
    bool ue8m0, packed;
    int align; // bytes that D's rows are multiples of
};

// A tile of activations in shared memory: rows of floats, padded so that a warp's stores of eight
// rows fall into different banks.
template <CodesShape S> struct CodesTile {
    static constexpr int kLine = S.columns + 8;
    static constexpr int kBytes = S.rows * kLine * 4;
    static constexpr int kLanes = S.group / 8; // of a group
    static_assert(S.columns % S.group == 0 && (S.group == 32 || S.group == 128), "whole groups");
    static_assert(S.rows * S.columns / 8 % 32 == 0, "whole warps make codes");

    // A warp's, the first at (row, column) of the tile.
    template <bool Turned, int VR, int VC>
    static __device__ __forceinline__ void put(float *tile, const float (&v)[VR][VC][4], i32 row,
                                               i32 column)
    {
        const i32 high = i32(threadIdx.x) % 32 / 4, low = i32(threadIdx.x) % 4 * 2;
#pragma unroll
        for (int i = 0; i < VR; i++) {
#pragma unroll
            for (int j = 0; j < VC; j++) {
#pragma unroll
                for (int x = 0; x < 4; x++) {
                    const i32 r = i * 16 + high + x / 2 * 8, c = j * 8 + low + x % 2;
                    tile[(row + (Turned ? c : r)) * kLine + column + (Turned ? r : c)] = v[i][j][x];
                }
            }
        }
    }

    // Codes and scales of all of it, by the whole CTA, for the rows of D that are kept; the tile's
    // first element is (row, column) of D, of n columns, at `d`.
    template <typename Rows>
    static __device__ __forceinline__ void store(const float *tile, u8 *d, const CodesTarget &to,
                                                 i32 matrix, i32 row, i32 column, const Rows &rows,
                                                 i32 n)
    {
#pragma unroll 1
        for (i32 t = i32(threadIdx.x); t < S.rows * S.columns / 8; t += S.threads) {
            const i32 r = t / (S.columns / 8), c = t % (S.columns / 8) * 8;
            const float4 *from = reinterpret_cast<const float4 *>(tile + r * kLine + c);
            const float4 left = from[0], right = from[1];
            const float x[8] = {left.x, left.y, left.z, left.w, right.x, right.y, right.z, right.w};
            const u32 own = largest_bits(x);
            const float s = group_scale<S.rule>(group_amax<kLanes>(x, own));
            float y[8];
            divide_all<S.rule>(y, x, s, own < kInfinityBits);
            if (row_kept(rows, row + r) && column + c < n) {
                store_codes<S.align>(d + i64(row + r) * n + column + c, y);
                if (t % kLanes == 0) {
                    to.store<S.ue8m0, S.packed>(matrix, row + r, (column + c) / S.group,
                                                n / S.group, s);
                }
            }
        }
    }
};
