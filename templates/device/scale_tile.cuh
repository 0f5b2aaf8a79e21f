// scale_tile.cuh - one operand's scales for the K blocks of a GEMM tile, as fp32 in shared memory.
//
// The scales of a block are read into registers one block ahead of their use, so that their latency
// hides behind the tensor cores, whatever their layout and dtype.
#pragma once
#include "device/formats.cuh"
#include "device/halves.cuh"
#include "device/scale_layout.cuh"

// Lines: entries of the tile for one group, `Step` rows of the operand apart; GranMn rows and GranK
// elements of K share a scale.
template <int Lines, int Step, int GranMn, int GranK, int BlockK, int Threads, bool Ue8m0,
          bool Packed, int Half = 0>
struct ScaleTile {
    static constexpr int kGroups = ceil_div(BlockK, GranK);
    static constexpr int kCount = Lines * kGroups; // floats of shared memory for a block
    static constexpr int kEach = ceil_div(kCount, Threads);
    static_assert(BlockK % GranK == 0 || GranK % BlockK == 0,
                  "a K block is whole groups or lies in one");
    static_assert(GranMn == 1 || GranMn % Step == 0, "an entry's rows share one scale");
    static_assert(Half % Step == 0, "an entry is gates, or ups");

    const void *base;
    i64 first; // element of the batch's first scale
    i64 row_stride, group_stride;
    i64 first_group;  // of this batch: not 0 where the batches' groups lie side by side
    i32 first_row;    // of the tile
    i32 rows, groups; // of the operand
    i32 jump;         // rows from gates to ups (halves.cuh), of which `rows` are there
    float held[kEach];

    __device__ __forceinline__ float read(i32 row, i32 group) const
    {
        const i64 at = first + scale_offset<Packed>(row / GranMn, first_group + group, row_stride,
                                                    group_stride);
        if constexpr (Ue8m0) {
            return ue8m0_decode(static_cast<const u8 *>(base)[at]);
        } else {
            return static_cast<const float *>(base)[at];
        }
    }

    // Outside the operand the data are zeros, and so is the scale.
    __device__ __forceinline__ void fetch(i32 block)
    {
#pragma unroll
        for (int t = 0; t < kEach; t++) {
            const u32 i = threadIdx.x + t * Threads;
            const i32 at = i32(i % Lines) * Step, row = first_row + half_row<Half>(at);
            const i32 group = block * BlockK / GranK + i32(i / Lines);
            const bool valid = i < kCount && row < rows && group < groups;
            held[t] = valid ? read(row + half_jump<Half>(at, jump), group) : 0.0f;
        }
    }

    // Element (line, group) goes to slot[group * Lines + line].
    __device__ __forceinline__ void store(float *slot) const
    {
#pragma unroll
        for (int t = 0; t < kEach; t++) {
            const u32 i = threadIdx.x + t * Threads;
            if (i < kCount) {
                slot[i] = held[t];
            }
        }
    }
};
