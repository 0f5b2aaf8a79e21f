// output.cuh - runs of fp32 results, rounded to the output's dtype and stored, or added to what is
// there.
#pragma once
#include "device/formats.cuh"
#include "device/vector.cuh"

template <int N>
__device__ __forceinline__ void pack_round(Pack<float, N> &pack, const float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        pack.v[i] = x[i];
    }
}

template <int N>
__device__ __forceinline__ void pack_round(Pack<bf16, N> &pack, const float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        *reinterpret_cast<u32 *>(&pack.v[i]) = bf16x2_from(x[i], x[i + 1]);
    }
}

// N elements at `to`, of which the first `present` lie within the row; at least one does. Where
// rows are aligned to whole runs, either all do or none.
template <int Align, bool Accumulate, int N, typename T>
__device__ __forceinline__ void output_run(T *to, float (&x)[N], i32 present)
{
    const bool whole = Align >= N * int(sizeof(T)) || present >= N;
    Pack<T, N> pack = {};
    if constexpr (Accumulate) {
        if (whole) {
            pack = pack_load<N, Align>(to);
        } else {
            pack.v[0] = to[0];
        }
#pragma unroll
        for (int i = 0; i < N; i++) {
            x[i] += to_float(pack.v[i]);
        }
    }
    pack_round(pack, x);
    if (whole) {
        constexpr int kAlign = Align < int(sizeof(T)) ? int(sizeof(T)) : Align;
        pack_store<kAlign>(to, pack);
        return;
    }
    static_assert(N <= 2 || Align >= N * int(sizeof(T)), "a run that may be cut has two elements");
    to[0] = pack.v[0];
}

// What a lane holds of the upper or lower eight rows of an mma tile.
__device__ __forceinline__ float2 row_pair(const float (&tile)[4], int half)
{
    return half == 0 ? make_float2(tile[0], tile[1]) : make_float2(tile[2], tile[3]);
}

// Each lane holds a pair of columns of two neighbouring tiles. Neighbouring lanes exchange pairs,
// so that the even one has four columns of the first tile and the odd one four of the second:
// stores twice as wide, whole sectors.
__device__ __forceinline__ void exchange_pairs(float (&run)[4], float2 first, float2 second,
                                               bool odd)
{
    const float x = __shfl_xor_sync(0xffffffffu, odd ? first.x : second.x, 1);
    const float y = __shfl_xor_sync(0xffffffffu, odd ? first.y : second.y, 1);
    run[0] = odd ? x : first.x;
    run[1] = odd ? y : first.y;
    run[2] = odd ? second.x : x;
    run[3] = odd ? second.y : y;
}

// Which rows of D are stored: the first m, or what another type of `rows` says.
__device__ __forceinline__ bool row_kept(i32 m, i32 row)
{
    return row < m;
}

// A warp's sums, tiles of 16 x 8 as mma.sync leaves them, to row-major D; the first element is
// (row, column). Rows that are not kept and columns past n are not stored. The whole warp must take
// part.
template <int Align, bool Accumulate, int TilesM, int TilesN, typename T, typename Rows>
__device__ __forceinline__ void output_tile(const float (&sum)[TilesM][TilesN][4], T *d, i64 stride,
                                            i32 row, i32 column, const Rows &rows, i32 n)
{
    constexpr bool kWide = Align >= 4 * int(sizeof(T)) && TilesN % 2 == 0;
    const i32 lane = i32(threadIdx.x) % 32;
    // Wide: an odd lane's run begins in the second tile, two columns before its own pair.
    const i32 first = column + lane % 4 * 2 + (kWide ? lane % 2 * 6 : 0);
#pragma unroll
    for (int i = 0; i < TilesM * 2; i++) {
        const i32 r = row + i * 8 + lane / 4;
        const bool kept = row_kept(rows, r);
#pragma unroll
        for (int j = 0; j < TilesN; j += kWide ? 2 : 1) {
            const float2 pair = row_pair(sum[i / 2][j], i % 2);
            const i32 c = first + j * 8;
            float run[kWide ? 4 : 2] = {pair.x, pair.y};
            if constexpr (kWide) {
                exchange_pairs(run, pair, row_pair(sum[i / 2][j + 1], i % 2), lane % 2 == 1);
            }
            if (kept && c < n) {
                output_run<Align, Accumulate>(d + r * stride + c, run, n - c);
            }
        }
    }
}

// The same for sums whose tiles have 16 of D's columns as rows and 8 of its rows as columns. Lanes
// of neighbouring columns of D exchange, so that each has two columns of one row.
template <int Align, bool Accumulate, int TilesN, int TilesM, typename T, typename Rows>
__device__ __forceinline__ void output_tile_turned(const float (&sum)[TilesN][TilesM][4], T *d,
                                                   i64 stride, i32 row, i32 column,
                                                   const Rows &rows, i32 n)
{
    const i32 lane = i32(threadIdx.x) % 32;
    const bool odd = lane / 4 % 2 == 1;
#pragma unroll
    for (int i = 0; i < TilesN * 2; i++) {
        const i32 c = column + i * 8 + lane / 8 * 2;
#pragma unroll
        for (int j = 0; j < TilesM; j++) {
            const float2 pair = row_pair(sum[i / 2][j], i % 2);
            const float other = __shfl_xor_sync(0xffffffffu, odd ? pair.x : pair.y, 4);
            const i32 r = row + j * 8 + lane % 4 * 2 + odd;
            float run[2] = {odd ? other : pair.x, odd ? pair.y : other};
            if (c < n && row_kept(rows, r)) {
                output_run<Align, Accumulate>(d + r * stride + c, run, n - c);
            }
        }
    }
}
