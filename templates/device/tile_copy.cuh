// tile_copy.cuh - the rows of one operand, brought to shared memory a K block at a time by cp.async.
#pragma once
#include "device/async_copy.cuh"
#include "device/mma.cuh"

// A tile of Rows rows by RowBytes bytes of K. Rows and K past the operand's end read as zeros.
template <int Rows, int RowBytes, int Threads>
struct TileCopy {
    static constexpr int kChunks = RowBytes / 16;
    static constexpr int kCount = Rows * kChunks;

    const u8 *first; // first row of the tile; a legal address
    i64 row_stride;  // bytes
    i32 rows;        // that the operand has from the first one on
    i32 k;

    __device__ __forceinline__ void load(u32 tile, i32 block) const
    {
#pragma unroll
        for (int t = 0; t < ceil_div(kCount, Threads); t++) {
            const i32 i = i32(threadIdx.x) + t * Threads;
            const i32 row = i / kChunks, chunk = i % kChunks;
            const i32 at = block * RowBytes + chunk * 16;
            const bool valid = row < rows && at < k;
            const u8 *from = first + (valid ? row * row_stride + at : 0);
            if (kCount % Threads == 0 || i < kCount) {
                async_copy16(tile + tile_offset<RowBytes>(row, chunk), from, valid);
            }
        }
    }
};
