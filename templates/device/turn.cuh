// turn.cuh - a warp's sums of D transposed, turned to be D's: by shuffles, tile of 8 x 8 by tile.
#pragma once
#include "device/types.cuh"

// Of an 8 x 8 tile lane 4g + t holds row g, columns 2t and 2t + 1; the same of its transpose.
__device__ __forceinline__ float2 turn_eight(float left, float right)
{
    const u32 lane = threadIdx.x % 32, from = lane % 4 * 8 + lane / 8;
    const bool odd = lane / 4 % 2 == 1; // column of the source, of its pair
    float2 turned;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float x = __shfl_sync(0xffffffffu, left, from + i * 4);
        const float y = __shfl_sync(0xffffffffu, right, from + i * 4);
        (i == 0 ? turned.x : turned.y) = odd ? y : x;
    }
    return turned;
}

// Tiles of 16 x 8 become tiles of 16 x 8 of the transpose: two neighbours side by side give one's
// upper and lower rows. Where their number is odd, the last one's lower rows are left as they are.
template <int ToM, int ToN, int TilesR, int TilesC>
__device__ __forceinline__ void turn_tiles(float (&to)[ToM][ToN][4],
                                           const float (&from)[TilesR][TilesC][4])
{
    static_assert(ToM == ceil_div(TilesC, 2) && ToN == 2 * TilesR, "the transpose's tiles");
#pragma unroll
    for (int i = 0; i < 2 * TilesR; i++) {
#pragma unroll
        for (int j = 0; j < TilesC; j++) {
            const float(&x)[4] = from[i / 2][j];
            const float2 pair = turn_eight(x[i % 2 * 2], x[i % 2 * 2 + 1]);
            to[j / 2][i][j % 2 * 2] = pair.x;
            to[j / 2][i][j % 2 * 2 + 1] = pair.y;
        }
    }
}
