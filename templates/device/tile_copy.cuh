// tile_copy.cuh - the rows of one operand, brought to shared memory a K block at a time by
// cp.async.
#pragma once
#include "device/async_copy.cuh"
#include "device/halves.cuh"
#include "device/mma.cuh"

// `Bytes` (16, or 8 that are half a chunk) of which the first `present` exist; the rest become
// zeros. `from` and `present` are multiples of Align. Below four bytes there is no cp.async: the
// words are put together here, correct and slow.
template <int Align, int Bytes>
__device__ __forceinline__ void copy_chunk(u32 to, const u8 *from, i32 present)
{
    constexpr int kPiece = least(Align, Bytes);
    if constexpr (Align >= 4) {
#pragma unroll
        for (int i = 0; i < Bytes; i += kPiece) {
            const bool valid = i < present;
            async_copy<kPiece>(to + i, valid ? from + i : from, valid);
        }
    } else {
        u32 word[4] = {};
#pragma unroll
        for (int i = 0; i < Bytes; i++) {
            word[i / 4] |= i < present ? u32(from[i]) << (i % 4 * 8) : 0;
        }
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(word[0]),
                     "r"(word[1]), "r"(word[2]), "r"(word[3])
                     : "memory");
    }
}

// A tile of Rows rows by RowBytes bytes of K. Rows and K past the operand's end read as zeros. Each
// 16-byte chunk of a row is filled with `Chunk` bytes: all of it, or its first half (e2m1).
template <int Rows, int RowBytes, int Threads, int Align, int Chunk = 16, int Half = 0>
struct TileCopy {
    static constexpr int kChunks = RowBytes / 16;

    const u8 *first; // first row of the tile; a legal address
    i64 row_stride;  // bytes
    i32 rows;        // that the operand has from the first one on
    i32 k;           // bytes of a row
    i32 jump = 0;    // rows from gates to ups (halves.cuh), of which `rows` are there

    // The source address is advanced, not computed anew for each chunk: many loop-invariant
    // products would be kept in registers across the main loop.
    __device__ __forceinline__ void load(u32 tile, i32 block) const
    {
        constexpr i32 kStep = Threads / kChunks; // rows from one chunk of a thread to its next
        static_assert(Threads % kChunks == 0, "a thread stays in one column of chunks");
        const i32 chunk = i32(threadIdx.x % kChunks), at = (block * kChunks + chunk) * Chunk;
        i32 row = i32(threadIdx.x / kChunks);
        const u8 *from = first + row * row_stride + at;
#pragma unroll 4
        for (int t = 0; t < ceil_div(Rows, kStep); t++) {
            if constexpr (Half != 0) {
                from = first + (half_row<Half>(row) + half_jump<Half>(row, jump)) * row_stride + at;
            }
            const i32 present = half_row<Half>(row) < rows ? k - at : 0;
            if (Rows % kStep == 0 || row < Rows) {
                copy_chunk<Align, Chunk>(tile + tile_offset<RowBytes>(row, chunk),
                                         present > 0 ? from : first, present);
            }
            row += kStep;
            from += kStep * row_stride;
        }
    }
};
