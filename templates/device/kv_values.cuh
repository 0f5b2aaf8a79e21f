// kv_values.cuh - codes of a KV cache as floats, and loads that hand each lane its pieces of them.
#pragma once
#include "device/kv_pieces.cuh"

// Four e4m3 codes; NaN stays NaN.
__device__ __forceinline__ void e4m3x4_to(u32 word, float (&x)[4])
{
#if __CUDA_ARCH__ >= 890
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u32 pair;
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(u16(word >> (16 * i))));
        x[2 * i] = to_float(f16{u16(pair)});
        x[2 * i + 1] = to_float(f16{u16(pair >> 16)});
    }
#else
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const u32 code = word >> (8 * i), magnitude = code & 0x7fu;
        // A float of the code's bits is 2^-120 of it, subnormal where the code is.
        const float value = __uint_as_float(magnitude << 20) * __uint_as_float(247u << 23);
        x[i] = __uint_as_float(magnitude == 0x7fu ? 0x7fffffffu
                                                  : __float_as_uint(value) | (code & 0x80u) << 24);
    }
#endif
}

// Eight e2m1 codes: a float of a code's bits is 2^-126 of it.
__device__ __forceinline__ void e2m1x8_to(u32 word, float (&x)[8])
{
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const u32 code = word >> (4 * i);
        x[i] = __uint_as_float((code & 7u) << 22 | (code & 8u) << 28) * __uint_as_float(253u << 23);
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
