// kv_values.cuh - codes of a KV cache as floats, and loads that hand each lane its pieces of them.
#pragma once
#include "device/kv_pieces.cuh"

// Four e4m3 codes; NaN stays NaN.
__device__ __forceinline__ void e4m3x4_to(u32 word, float (&x)[4])
{
    e4m3x2_to(word, x[0], x[1]);
    e4m3x2_to(word >> 16, x[2], x[3]);
}

// Four e2m1 codes, the lowest nibbles, as pairs of bf16: the bytes of their magnitudes are looked
// up. `magnitudes`: without the bits of signs.
__device__ __forceinline__ void e2m1x4_to(u32 codes, u32 magnitudes, u32 (&pair)[2])
{
    u32 high, low, sign;
    asm("prmt.b32 %0, 0x3f3f3f00, 0x40404040, %1;" : "=r"(high) : "r"(magnitudes));
    asm("prmt.b32 %0, 0xc0800000, 0xc0804000, %1;" : "=r"(low) : "r"(magnitudes));
    // A selector's highest bit, the sign's here, asks for copies of the byte's: 0xff, else 0x80.
    asm("prmt.b32 %0, 0x80808080, 0x80808080, %1;" : "=r"(sign) : "r"(codes));
    asm("lop3.b32 %0, %1, 0x80808080, %2, 0xea;" : "=r"(high) : "r"(sign << 1), "r"(high));
    pair[0] = bytes_of<0x5140>(low, high);
    pair[1] = bytes_of<0x7362>(low, high);
}

// Eight e2m1 codes times a scale, which is a bf16, twice: exact but at the ends of bf16's range.
__device__ __forceinline__ void e2m1x8_scaled(u32 word, u32 scale, u32 (&pair)[4])
{
    const u32 magnitudes = word & 0x77777777u;
    u32 four[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        e2m1x4_to(word >> 16 * i, magnitudes >> 16 * i, four);
        pair[2 * i] = scale_pair(four[0], scale);
        pair[2 * i + 1] = scale_pair(four[1], scale);
    }
}

// What kind of scale a tile has.
enum ScaleKind : int { SCALE_ONE = 0, SCALE_F32 = 1, SCALE_UE8M0 = 2, SCALE_E4M3 = 3 };

__host__ __device__ constexpr int scale_bytes(int kind)
{
    return kind == SCALE_F32 ? 4 : 1;
}

template <int Kind, int Align> __device__ __forceinline__ float scale_load(const u8 *from)
{
    if constexpr (Kind == SCALE_F32) {
        u32 bits;
        copy_bytes<4, Align>(&bits, from);
        return __uint_as_float(bits);
    } else if constexpr (Kind == SCALE_UE8M0) {
        return ue8m0_decode(*from);
    } else {
        float x[4];
        e4m3x4_to(*from & 0x7fu, x);
        return x[0];
    }
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

// The words of the pieces of `X` neighbouring lanes, of which `first` is the X lanes' first piece
// and `stride` lies between a lane's own: each lane loads one run, then they are handed out. The
// whole warp takes part; lanes that are not `live` load nothing.
template <int Align, int X, int Words>
__device__ __forceinline__ void load_runs(const u8 *data, i32 lane, i32 stride, bool live,
                                          u32 (&word)[X][Words])
{
    constexpr int kBytes = X * Words * 4;
    if (live) {
        const u8 *const from = data + (lane % X * stride + lane / X * X) * Words * 4;
        copy_bytes<kBytes, least(Align, kBytes)>(word, from);
    }
    lanes_transpose(word);
}
