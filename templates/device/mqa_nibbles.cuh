// mqa_nibbles.cuh - device/mqa.cuh of e2m1 with a ue8m0 scale for each 32 of K: codes become e4m3
// in registers, exactly, and a product of 32 is scaled before it is added to the others.
//
// Rows of 64 bytes in shared memory hold codes two a byte; a K step is one 16-byte chunk. A lane's
// four bytes of it are the step's fragment twice: their low nibbles and their high ones. That is
// another order of K than memory's, and the same for keys and queries.
#pragma once
#include "device/mqa.cuh"

// Four codes as e4m3 of 2^-6 times their value: exponent and mantissa fall into place, and e2m1's
// subnormal becomes one of e4m3's.
__device__ __forceinline__ u32 low_nibbles(u32 word)
{
    return (word & 0x07070707u) << 2 | (word & 0x08080808u) << 4;
}

__device__ __forceinline__ u32 high_nibbles(u32 word)
{
    return (word & 0x70707070u) >> 2 | (word & 0x80808080u);
}

constexpr float kNibblesScale = 4096.0f; // what two such factors take away

// A warp's keys in registers, 16 * High of them, and the scales of those that are this lane's sums.
template <int Dims, int High> struct NibbleKeys {
    static constexpr int kSteps = Dims / 32;

    u32 fragment[High][kSteps][4];
    float scale[2 * High][kSteps];

    // `tile`: of the warp's first key, a multiple of 16; `words`: its scales.
    __device__ __forceinline__ void load(u32 tile, const u32 *words)
    {
        const u32 lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < High; i++) {
#pragma unroll
            for (int p = 0; p < kSteps / 2; p++) { // rows of step 2p, then of 2p + 1
                u32 r[4];
                load_matrix4(r, tile + (i * 16 + lane % 16) * 64 + step_chunk<64>(p, lane / 16));
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    u32(&to)[4] = fragment[i][2 * p + half];
                    to[0] = low_nibbles(r[2 * half]), to[1] = low_nibbles(r[2 * half + 1]);
                    to[2] = high_nibbles(r[2 * half]), to[3] = high_nibbles(r[2 * half + 1]);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < 2 * High; i++) {
            const u32 word = words[lane / 4 + 8 * i];
#pragma unroll
            for (int s = 0; s < kSteps; s++) {
                scale[i][s] = ue8m0_decode(u8(word >> (8 * s)));
            }
        }
    }
};

// As score_keys. `scales`: of the token's heads for step 0, those of step s lie s * Stride on.
template <int Heads, int Stride, int Dims, int High>
__device__ __forceinline__ void score_nibbles(float (&sum)[2 * High],
                                              const NibbleKeys<Dims, High> &keys, u32 query,
                                              const float *weights, const float *scales)
{
    constexpr int kTiles = Heads < 16 ? 1 : 2, kSteps = Dims / 32;
    const u32 own = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2 * High; i++) {
        sum[i] = 0.0f;
    }
#pragma unroll 1
    for (int head = 0; head < Heads; head += 8 * kTiles) {
        float dot[High][kTiles][4] = {};
        u32 word[kTiles][2];
#pragma unroll
        for (int s = 0; s < kSteps; s++) {
            if (s % 2 == 0) {
                load_columns<64>(word, query + head * 64, s / 2);
            }
#pragma unroll
            for (int t = 0; t < kTiles; t++) {
                const u32 column[2] = {low_nibbles(word[t][s % 2]), high_nibbles(word[t][s % 2])};
                const float2 q =
                    *reinterpret_cast<const float2 *>(scales + s * Stride + head + t * 8 + own);
#pragma unroll
                for (int i = 0; i < High; i++) {
                    float part[4] = {};
                    mma_e4m3(part, keys.fragment[i][s], column);
                    const float low = keys.scale[2 * i][s], high = keys.scale[2 * i + 1][s];
                    dot[i][t][0] = fmaf(part[0] * low, q.x, dot[i][t][0]);
                    dot[i][t][1] = fmaf(part[1] * low, q.y, dot[i][t][1]);
                    dot[i][t][2] = fmaf(part[2] * high, q.x, dot[i][t][2]);
                    dot[i][t][3] = fmaf(part[3] * high, q.y, dot[i][t][3]);
                }
            }
        }
        add_heads(sum, dot, weights + head + own);
    }
    add_quads(sum);
}

template <bool E2m1, int Dims, int High> struct HeldOf {
    using Type = Keys<Dims, High>;
};
template <int Dims, int High> struct HeldOf<true, Dims, High> {
    using Type = NibbleKeys<Dims, High>;
};
template <bool E2m1, int Dims, int High> using HeldKeys = typename HeldOf<E2m1, Dims, High>::Type;

// Words of `count` heads, `there` of which exist, as floats: step s of head i at s * count + i.
template <int Dims, int Threads>
__device__ __forceinline__ void expand_scales(float *to, const u32 *words, i32 count, i32 there)
{
    for (i32 i = i32(threadIdx.x); i < count; i += Threads) {
        const u32 word = i < there ? words[i] : 0;
#pragma unroll
        for (int s = 0; s < Dims / 32; s++) {
            to[s * count + i] = ue8m0_decode(u8(word >> (8 * s)));
        }
    }
}
