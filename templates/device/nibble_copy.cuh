// nibble_copy.cuh - the rows of an operand of e2m1, brought to shared memory a K block at a time as
// e4m3: for units that multiply bytes alone. Each code is expanded once, by the thread that loads.
//
// Codes are read into registers one block ahead of their use, so that their latency hides behind
// the tensor cores.
#pragma once
#include "device/e2m1.cuh"
#include "device/halves.cuh"
#include "device/mma.cuh"
#include "device/vector.cuh"

// As TileCopy: a tile of Rows rows by RowBytes of K; `k` is a row's codes in bytes, two a byte. A
// chunk of 16 elements is 8 bytes.
template <int Rows, int RowBytes, int Threads, int Align, int Half = 0> struct NibbleCopy {
    static constexpr int kChunks = RowBytes / 16;
    static constexpr i32 kStep = Threads / kChunks; // rows from one chunk of a thread to its next
    static constexpr int kEach = ceil_div(Rows, kStep);
    static_assert(Threads % kChunks == 0, "a thread stays in one column of chunks");

    const u8 *first; // first row of the tile
    i64 row_stride;  // bytes
    i32 rows;        // that the operand has from the first one on
    i32 k;
    i32 jump; // rows from gates to ups (halves.cuh), of which `rows` are there
    uint2 held[kEach];

    // The codes of a block; K's end is a multiple of 32 elements, zeros beyond it and past the
    // rows.
    __device__ __forceinline__ void fetch(i32 block)
    {
        const i32 at = (block * kChunks + i32(threadIdx.x % kChunks)) * 8;
#pragma unroll
        for (int t = 0; t < kEach; t++) {
            const i32 row = i32(threadIdx.x / kChunks) + t * kStep, half = half_row<Half>(row);
            held[t] = make_uint2(0, 0);
            if (row < Rows && half < rows && at < k) {
                copy_bytes<8, Align>(&held[t],
                                     first + (half + half_jump<Half>(row, jump)) * row_stride + at);
            }
        }
    }

    // What was fetched to `tile`; then the next block's is on its way.
    __device__ __forceinline__ void load(u32 tile, i32 block)
    {
        const u32 chunk = threadIdx.x % kChunks, table = e2m1_table(0);
        const u32 upper = e2m1_table_upper(table), positive = e2m1_positive();
#pragma unroll
        for (int t = 0; t < kEach; t++) {
            const i32 row = i32(threadIdx.x / kChunks) + t * kStep;
            const u32 code[4] = {held[t].x & 0xffff, held[t].x >> 16, held[t].y & 0xffff,
                                 held[t].y >> 16};
            u32 word[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                word[i] = e2m1x4_to_e4m3(code[i], table, upper, positive);
            }
            if (Rows % kStep == 0 || row < Rows) {
                asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(
                                 tile + tile_offset<RowBytes>(u32(row), chunk)),
                             "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3])
                             : "memory");
            }
        }
        fetch(block + 1);
    }
};
