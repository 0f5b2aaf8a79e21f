// mqa.cuh - scores of an indexer's keys against one query token, by a warp: sum over heads of
// weight times max(0, q . k), q and k of e4m3.
//
// Keys are the rows of mma.sync, heads its columns, so that a lane has sums of few keys and a quad
// shares them. Tiles in shared memory are device/mma.cuh's, rows of 64 bytes at least.
#pragma once
#include "device/formats.cuh"
#include "device/tile_copy.cuh"

template <int Dims> constexpr int kRowBytes = Dims < 64 ? 64 : Dims;

// A warp's keys in registers, 16 * High of them.
template <int Dims, int High> struct Keys {
    static constexpr int kSteps = Dims / 32;

    u32 fragment[High][kSteps][4];

    // `tile`: of the warp's first key, a multiple of 16.
    __device__ __forceinline__ void load(u32 tile)
    {
        constexpr int kRow = kRowBytes<Dims>;
        const u32 lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < High; i++) {
#pragma unroll
            for (int s = 0; s < kSteps; s++) {
                load_matrix4(fragment[i][s],
                             tile + (i * 16 + lane % 16) * kRow + step_chunk<kRow>(s, lane / 16));
            }
        }
    }
};

// Weight times max(0, product) of this lane's heads, whose weights begin at `weight`.
template <int High, int Tiles>
__device__ __forceinline__ void add_heads(float (&sum)[2 * High],
                                          const float (&dot)[High][Tiles][4], const float *weight)
{
#pragma unroll
    for (int t = 0; t < Tiles; t++) {
        const float2 w = *reinterpret_cast<const float2 *>(weight + t * 8);
#pragma unroll
        for (int i = 0; i < High; i++) { // fmaxf of NaN and 0 is 0
            sum[2 * i] = fmaf(fmaxf(dot[i][t][0], 0.0f), w.x, sum[2 * i]);
            sum[2 * i] = fmaf(fmaxf(dot[i][t][1], 0.0f), w.y, sum[2 * i]);
            sum[2 * i + 1] = fmaf(fmaxf(dot[i][t][2], 0.0f), w.x, sum[2 * i + 1]);
            sum[2 * i + 1] = fmaf(fmaxf(dot[i][t][3], 0.0f), w.y, sum[2 * i + 1]);
        }
    }
}

// A quad's lanes have a quarter of the heads each.
template <int Sums> __device__ __forceinline__ void add_quads(float (&sum)[Sums])
{
#pragma unroll
    for (int i = 0; i < Sums; i++) {
        sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 1);
        sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 2);
    }
}

// sum[i]: of key lane / 4 + 8 * i, in all lanes of a quad. `query`: a token's heads in shared
// memory; `weights`: theirs.
template <int Heads, int Dims, int High>
__device__ __forceinline__ void score_keys(float (&sum)[2 * High], const Keys<Dims, High> &keys,
                                           u32 query, const float *weights)
{
    constexpr int kTiles = Heads < 16 ? 1 : 2, kRow = kRowBytes<Dims>, kSteps = Dims / 32;
    const float *weight = weights + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2 * High; i++) {
        sum[i] = 0.0f;
    }
#pragma unroll 2
    for (int head = 0; head < Heads; head += 8 * kTiles) {
        float part[High][kTiles][4] = {};
#pragma unroll
        for (int s = 0; s < kSteps; s++) {
            u32 column[kTiles][2];
            load_columns<kRow>(column, query + head * kRow, s);
#pragma unroll
            for (int i = 0; i < High; i++) {
#pragma unroll
                for (int t = 0; t < kTiles; t++) {
                    mma_e4m3(part[i][t], keys.fragment[i][s], column[t]);
                }
            }
        }
        add_heads(sum, part, weight + head);
    }
    add_quads(sum);
}

// The sum that this lane stores, of key lane / 4 + 8 * (lane % 4); with 16 keys half of the lanes
// store none.
template <int High> __device__ __forceinline__ float own_sum(const float (&sum)[2 * High])
{
    float own = sum[0];
#pragma unroll
    for (int i = 1; i < 2 * High; i++) {
        own = threadIdx.x % 4 == i ? sum[i] : own;
    }
    return own;
}

__device__ __forceinline__ i32 own_key()
{
    return i32(threadIdx.x % 32 / 4 + threadIdx.x % 4 * 8);
}

__device__ __forceinline__ void store_logit(float *to, float x)
{
    *to = x;
}

__device__ __forceinline__ void store_logit(bf16 *to, float x)
{
    to->bits = u16(bf16x2_from(x, x));
}

__device__ __forceinline__ float minus_infinity()
{
    return __uint_as_float(0xff800000u);
}

// Four-byte numbers, `count` of them, `there` of which exist; the rest become 0.
template <int Threads>
__device__ __forceinline__ void copy_numbers(u32 to, const void *from, i32 count, i32 there)
{
    const u8 *const bytes = static_cast<const u8 *>(from);
    for (i32 i = i32(threadIdx.x); i < count; i += Threads) {
        async_copy<4>(to + i * 4, bytes + (i < there ? i * 4 : 0), i < there);
    }
}
