// scale_words.cuh - one operand's ue8m0 scales for the K blocks of a GEMM tile, as words in shared
// memory: a word for each row, a byte of it for each 32 of K. From any layout; a coarser scale is
// repeated, which is exact.
//
// The scales of a block are read into registers one block ahead of their use. Past the operand, in
// rows or in K, the data are zeros and the code is 0 (2^-127), never what lies there: that may be
// NaN.
#pragma once
#include "device/halves.cuh"
#include "device/scale_layout.cuh"
#include "device/vector.cuh"

// Rows of the tile; GranMn rows and GranK elements of K share a scale.
template <int Rows, int GranMn, int GranK, int BlockK, int Threads, bool Packed, int Half = 0>
struct ScaleWords {
    static constexpr int kGroups = GranK == 32 ? BlockK / 32 : 1; // of a word
    static constexpr int kEach = ceil_div(Rows, Threads);
    static_assert(BlockK == 64 || BlockK == 128, "a word is two or four scales");
    static_assert(GranK == 32 || GranK == 128, "groups of 32, or one that covers the block");

    const u8 *row_at[kEach]; // group 0 of a row's scales; NULL past the operand
    i64 group_stride;
    i32 first_group; // of this batch: not 0 where the batches' groups lie side by side
    i32 groups;      // of the operand
    u32 held[kEach];

    // `base` is the batch's first scale; the tile's first row and the operand's rows. jump: from
    // gates to ups (halves.cuh), of which `rows` are there.
    __device__ __forceinline__ void open(const u8 *base, i64 row_stride, i32 first_row, i32 rows,
                                         i32 jump = 0)
    {
#pragma unroll
        for (int t = 0; t < kEach; t++) {
            const i32 line = i32(threadIdx.x) + t * Threads;
            const i32 half = first_row + half_row<Half>(line);
            const i32 row = half + half_jump<Half>(line, jump);
            row_at[t] = line < Rows && half < rows ? base + row / GranMn * row_stride : nullptr;
        }
    }

    // The codes of groups `group` and after it, `left` of which exist.
    __device__ __forceinline__ u32 read(const u8 *row, i32 group, i32 left) const
    {
        using Wide = typename Word<kGroups>::Type;
        const u8 *at = row + scale_offset<Packed>(0, group, 0, group_stride);
        const bool beside = Packed || group_stride == 1, whole = Packed || left >= kGroups;
        u32 word = 0;
        if (beside && whole && u64(at) % kGroups == 0) {
            word = *reinterpret_cast<const Wide *>(at);
            return left < kGroups ? word & ((1u << 8 * left) - 1) : word;
        }
#pragma unroll 1 // one load after the other, but few instructions
        for (int g = 0; g < least(kGroups, left); g++) {
            word |= u32(row[scale_offset<Packed>(0, group + g, 0, group_stride)]) << 8 * g;
        }
        return word;
    }

    __device__ __forceinline__ void fetch(i32 block)
    {
        const i32 group = block * BlockK / GranK, left = groups - group;
#pragma unroll
        for (int t = 0; t < kEach; t++) {
            held[t] = 0;
            if (row_at[t] != nullptr && left > 0) {
                const u32 word = read(row_at[t], first_group + group, left);
                held[t] = GranK == 32 ? word : word * 0x01010101u;
            }
        }
    }

    __device__ __forceinline__ void store(u32 *slot) const
    {
#pragma unroll
        for (int t = 0; t < kEach; t++) {
            const u32 line = threadIdx.x + t * Threads;
            if (Rows % Threads == 0 || line < Rows) {
                slot[line] = held[t];
            }
        }
    }
};
