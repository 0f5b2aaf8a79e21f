// scale_stage.cuh - one operand's scales for the 128 of K of a pipeline stage: from any layout to
// fp32 in shared memory, by the warps that load.
//
// Reads run ahead of the stores, so that their latency does not bound the pipeline.
#pragma once
#include "device/e2m1.cuh"
#include "device/formats.cuh"
#include "device/scale_layout.cuh"

// Lines: entries of the tile for one group, `step` rows of the operand apart; gran_mn rows and
// gran_k elements of K share a scale. by_line: the line is the slower index in shared memory. fold:
// of four groups of e2m1 that may share a scale, with tables and flags behind the scales.
struct ScaleShape {
    int lines, step, gran_mn, gran_k;
    bool ue8m0, packed, by_line;
    bool fold = false;
};

// Where an operand's scales lie; strides as scale_layout.cuh says.
struct ScaleSource {
    const void *base;
    i64 row_stride, group_stride;
    i64 batch_stride; // elements from batch to batch
    i64 batch_groups; // groups from batch to batch, where they lie side by side; else 0
    i32 rows, groups; // of the operand
};

template <ScaleShape S> struct ScaleStage {
    static constexpr int kGroups = 128 / S.gran_k;   // of a stage
    static constexpr int kCount = S.lines * kGroups; // floats of a stage
    // With fold: a table for each scale, and for each 32 rows a word that is not 0 when some of
    // their groups are too far apart to share a scale.
    static constexpr int kTablesAt = ceil_div(kCount, 4) * 16;
    static constexpr int kFlagsAt = kTablesAt + (S.fold ? kCount * 4 : 0);
    static constexpr int kBytes = kFlagsAt + (S.fold ? ceil_div(S.lines * S.step, 128) * 16 : 0);
    static_assert(S.gran_k == 32 || S.gran_k == 128, "a stage is four groups of 32 or one of 128");
    static_assert(!S.fold || (S.ue8m0 && S.by_line && kGroups == 4 &&
                              (S.step == 32 || (S.step == 1 && S.lines % 64 == 0))),
                  "fold: e8m0 scales, a flag for each 32 rows");
    static_assert(S.gran_mn == 1 || S.gran_mn % S.step == 0, "an entry's rows share one scale");

    static __device__ __forceinline__ int index(int line, int group)
    {
        return S.by_line ? line * kGroups + group : group * S.lines + line;
    }
};

// One thread's share of the stages of one tile: every Threads-th line, Ahead stages at a time.
template <ScaleShape S, int Threads, int Ahead> struct ScaleReads {
    using Stage = ScaleStage<S>;
    static constexpr int kGroups = Stage::kGroups, kEach = ceil_div(S.lines, Threads);
    static constexpr bool kWords = S.packed && kGroups == 4; // a line's scales are one word
    static constexpr int kHeld = kWords ? 1 : kGroups;

    const u8 *line_at[kEach]; // group 0 of each line; NULL past the operand
    i64 group_stride, first;  // first: group of the batch
    i32 groups;
    u32 held[Ahead][kEach][kHeld]; // as read: a float's bits, a byte, or four

    __device__ __forceinline__ void open(const ScaleSource &from, i32 batch, i32 first_row,
                                         u32 thread)
    {
        constexpr int kSize = S.ue8m0 ? 1 : 4;
#pragma unroll
        for (int t = 0; t < kEach; t++) {
            const i32 line = i32(thread) + t * Threads, row = first_row + line * S.step;
            const i64 at = batch * from.batch_stride + row / S.gran_mn * from.row_stride;
            line_at[t] = line < S.lines && row < from.rows
                             ? static_cast<const u8 *>(from.base) + at * kSize
                             : nullptr;
        }
        group_stride = from.group_stride * kSize;
        first = batch * from.batch_groups;
        groups = from.groups;
    }

    __device__ __forceinline__ u32 read(const u8 *at) const
    {
        return S.ue8m0 ? u32(*at) : *reinterpret_cast<const u32 *>(at);
    }

    __device__ __forceinline__ const u8 *place(const u8 *line, i64 group) const
    {
        return line + scale_offset<S.packed>(0, group, 0, group_stride);
    }

    // Four packed scales; the padding of a row's last word may be read, and is not used.
    __device__ __forceinline__ u32 read_word(const u8 *line, i64 group, i32 left) const
    {
        if (group % 4 == 0) {
            return *reinterpret_cast<const u32 *>(line + group / 4 * group_stride);
        }
        u32 word = 0;
#pragma unroll 1                                   // rare, and registers are scarce
        for (int g = 0; g < least(4, left); g++) { // batches side by side share words
            word |= read(place(line, group + g)) << 8 * g;
        }
        return word;
    }

    // The address walks from group to group, hidden from a compiler that would keep them all in
    // registers.
    __device__ __forceinline__ void fetch(int slot, i32 block)
    {
#pragma unroll
        for (int t = 0; t < kEach; t++) {
            const i64 group = first + block * kGroups;
            const i32 left = line_at[t] == nullptr ? 0 : groups - block * kGroups;
            if constexpr (kWords) {
                held[slot][t][0] = left > 0 ? read_word(line_at[t], group, left) : 0;
            } else {
                const u8 *at = place(line_at[t], group);
#pragma unroll
                for (int g = 0; g < kHeld; g++) {
                    held[slot][t][g] = g < left ? read(at) : 0;
                    at += group_stride;
                    asm volatile("" : "+l"(at));
                }
            }
        }
    }

    // Of group g: a float's bits, or a ue8m0 code.
    __device__ __forceinline__ u32 bits_of(int slot, int t, int g) const
    {
        return kWords ? held[slot][t][0] >> 8 * g & 0xff : held[slot][t][g % kHeld];
    }

    __device__ __forceinline__ u32 word_of(int slot, int t) const
    {
        return kWords ? held[slot][t][0]
                      : bits_of(slot, t, 0) | bits_of(slot, t, 1) << 8 | bits_of(slot, t, 2) << 16 |
                            bits_of(slot, t, 3) << 24;
    }

    // Scales, tables and flags to the stage that begins at `to`. The whole warp takes part. A line
    // whose groups share a scale has it four times, so that adding up each group for itself is
    // right for it too.
    __device__ __forceinline__ void store_folded(u8 *to, int slot, i32 block, u32 thread) const
    {
#pragma unroll
        for (int t = 0; t < kEach; t++) {
            const int line = int(thread) + t * Threads;
            const E2m1Groups four = E2m1Groups::make(
                word_of(slot, t), line_at[t] == nullptr ? 0 : groups - block * kGroups);
            const bool apart = !four.share();
            const bool some = S.step == 1 ? __any_sync(0xffffffffu, apart) : apart;
            const i32 shared_scale = four.shared_scale();
            const float s = ue8m0_decode(u8(shared_scale));
            float4 scale = make_float4(s, s, s, s);
            u32 table[4];
#pragma unroll
            for (int g = 0; g < 4; g++) {
                table[g] = e2m1_table(four.scale_of(g) - shared_scale);
            }
            if (some && apart) {
                scale = make_float4(
                    ue8m0_decode(u8(four.scale_of(0))), ue8m0_decode(u8(four.scale_of(1))),
                    ue8m0_decode(u8(four.scale_of(2))), ue8m0_decode(u8(four.scale_of(3))));
                table[0] = table[1] = table[2] = table[3] = e2m1_table(0);
            }
            if (line < S.lines) {
                reinterpret_cast<float4 *>(to)[line] = scale;
                reinterpret_cast<uint4 *>(to + Stage::kTablesAt)[line] =
                    make_uint4(table[0], table[1], table[2], table[3]);
            }
            if (S.step == 1 ? thread % 32 == 0 : line < S.lines) {
                reinterpret_cast<u32 *>(to + Stage::kFlagsAt)[line * S.step / 32] = some;
            }
        }
    }

    // Outside the operand the data are zeros, and so is the scale.
    __device__ __forceinline__ void store(float *to, int slot, i32 block, u32 thread) const
    {
#pragma unroll
        for (int t = 0; t < kEach; t++) {
            const int line = int(thread) + t * Threads;
#pragma unroll
            for (int g = 0; g < kGroups && line < S.lines; g++) {
                const u32 bits = bits_of(slot, t, g);
                const float scale = S.ue8m0 ? ue8m0_decode(u8(bits)) : __uint_as_float(bits);
                const bool present = line_at[t] != nullptr && block * kGroups + g < groups;
                to[Stage::index(line, g)] = present ? scale : 0.0f;
            }
        }
    }
};

// N floats in a row from shared memory, four or two at a time: they lie at a multiple of as many.
template <int N> __device__ __forceinline__ void scales_load(float (&to)[N], const float *from)
{
    if constexpr (N % 4 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 4) {
            const float4 x = *reinterpret_cast<const float4 *>(from + i);
            to[i] = x.x, to[i + 1] = x.y, to[i + 2] = x.z, to[i + 3] = x.w;
        }
    } else if constexpr (N % 2 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            const float2 x = *reinterpret_cast<const float2 *>(from + i);
            to[i] = x.x, to[i + 1] = x.y;
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) {
            to[i] = from[i];
        }
    }
}
