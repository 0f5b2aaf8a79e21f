// mqa_scaled.cuh - device/mqa.cuh of e2m1 by sm_120a's block-scaled mma.sync, which takes codes two
// a byte and the ue8m0 scale of each 32 of K: D[16,8] += (A[16,64] * SFA) * (B[8,64] * SFB)^T in
// fp32.
//
// A row in shared memory is 64 bytes of codes, as one of Dims / 2 e4m3 is, and its word of scales.
#pragma once
#include "device/mqa_nibbles.cuh"

// Words of scales: of rows from lanes 2 * pair and 2 * pair + 1 of each four, of columns from lane
// `one`; of both bytes `byte` and the next.
struct WordChoice {
    u32 rows, columns;
    u16 pair, one, byte;
};

__device__ __forceinline__ void mma_words(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2],
                                          const WordChoice &s)
{
    asm volatile(
        "mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1"
        ".f32.ue8m0 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, {%10}, {%14,%12}, "
        "{%11}, {%14,%13};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(s.rows),
          "r"(s.columns), "h"(s.pair), "h"(s.one), "h"(s.byte));
}

// A warp's keys in registers, 16 * High of them; a lane's word is that of the key whose sum it
// stores.
template <int Dims, int High> struct ScaledKeys {
    Keys<Dims / 2, High> codes;
    u32 word;

    // `tile`: of the warp's first key, a multiple of 16; `words`: its scales.
    __device__ __forceinline__ void load(u32 tile, const u32 *words)
    {
        codes.load(tile);
        word = words[u32(own_key()) % (16 * High)];
    }
};

// As score_keys; `words`: scales of the token's heads.
template <int Heads, int Dims, int High>
__device__ __forceinline__ void score_scaled(float (&sum)[2 * High],
                                             const ScaledKeys<Dims, High> &keys, u32 query,
                                             const float *weights, const u32 *words)
{
    constexpr int kTiles = least(Heads / 8, 4); // whose words a register of each lane holds
    const float *weight = weights + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2 * High; i++) {
        sum[i] = 0.0f;
    }
#pragma unroll 1
    for (int head = 0; head < Heads; head += 8 * kTiles) {
        const u32 word = words[u32(head) + u32(own_key()) % (8 * kTiles)];
        float part[High][kTiles][4] = {};
#pragma unroll
        for (int s = 0; s < Dims / 64; s++) {
            u32 column[kTiles][2];
            load_columns<64>(column, query + head * 64, s);
#pragma unroll
            for (int i = 0; i < High; i++) {
#pragma unroll
                for (int t = 0; t < kTiles; t++) {
                    mma_words(part[i][t], keys.codes.fragment[i][s], column[t],
                              {keys.word, word, u16(i), u16(t), u16(2 * s)});
                }
            }
        }
        add_heads(sum, part, weight + head);
    }
    add_quads(sum);
}

template <bool Scaled, bool E2m1, int Dims, int High> struct HeldOrScaled {
    using Type = HeldKeys<E2m1, Dims, High>;
};
template <int Dims, int High> struct HeldOrScaled<true, true, Dims, High> {
    using Type = ScaledKeys<Dims, High>;
};
