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
    bool wide; // with gran_k 32: a line's four groups of a stage are one aligned access
    bool fold = false;
    int half = 0; // not 0: rows come so many at a time, from the first on and from `jump` beyond
};

// Where an operand's scales lie; strides as scale_layout.cuh says.
struct ScaleSource {
    const void *base;
    i64 row_stride, group_stride;
    i64 batch_stride; // elements from batch to batch
    i64 batch_groups; // groups from batch to batch, where they lie side by side; else 0
    i32 rows, groups; // of the operand
    i32 jump;         // rows between a first half's and its second's
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
};

// Two ue8m0 codes of a word, the bytes that the selector names, as bf16: 0 is 2^-127, 255 NaN.
template <u32 Selector> __device__ __forceinline__ u32 ue8m0_pair(u32 word)
{
    u32 pair;
    asm("{\n"
        ".reg .b32 x;\n"
        "prmt.b32 x, %1, 0, %2;\n"
        "shl.b32 x, x, 7;\n"
        "max.u16x2 x, x, %3;\n"
        "fma.rn.bf16x2 %0, x, %4, x;\n" // infinity times 0
        "}"
        : "=r"(pair)
        : "r"(word), "n"(Selector), "r"(0x00400040u), "r"(0u));
    return pair;
}

// Four ue8m0 codes of a word, lowest first, as floats.
__device__ __forceinline__ float4 ue8m0x4_decode(u32 word)
{
    const u32 low = ue8m0_pair<0x4140>(word), high = ue8m0_pair<0x4342>(word);
    return make_float4(__uint_as_float(low << 16), __uint_as_float(low & 0xffff0000u),
                       __uint_as_float(high << 16), __uint_as_float(high & 0xffff0000u));
}

// One thread's share of the stages of one tile: every Threads-th line, Ahead stages at a time. A
// line past the operand has the scales of the last one: its sums are not stored.
template <ScaleShape S, int Threads, int Ahead> struct ScaleReads {
    using Stage = ScaleStage<S>;
    static constexpr int kGroups = Stage::kGroups, kEach = ceil_div(S.lines, Threads);
    static constexpr int kSize = S.ue8m0 ? 1 : 4;
    static constexpr bool kFours = kGroups == 4, kWords = kFours && S.ue8m0;
    static constexpr int kHeld = kWords ? 1 : kGroups;

    const u8 *line_at[kEach]; // the batch's first group of each line; packed: that group's word
    i64 group_stride;         // bytes
    i32 within, groups;       // packed: the first group's place in its word; of the operand
    u32 held[Ahead][kEach][kHeld]; // as read: a float's bits, a byte, or four

    __device__ __forceinline__ void open(const ScaleSource &from, i32 batch, i32 first_row,
                                         u32 thread)
    {
        const i64 first = batch * from.batch_groups;
        group_stride = from.group_stride * kSize;
        within = S.packed ? i32(first & 3) : 0;
        groups = from.groups;
        const u8 *base = static_cast<const u8 *>(from.base) + batch * from.batch_stride * kSize +
                         (S.packed ? first >> 2 : first) * group_stride;
#pragma unroll
        for (int t = 0; t < kEach; t++) {
            const i32 line = least(i32(thread) + t * Threads, S.lines - 1);
            i32 at = line * S.step;
            if constexpr (S.half != 0) {
                at = at / (2 * S.half) * S.half + at % S.half + at / S.half % 2 * from.jump;
            }
            const i32 row = least(first_row + at, from.rows - 1);
            line_at[t] = base + row / S.gran_mn * from.row_stride * kSize;
        }
    }

    __device__ __forceinline__ const u8 *place(const u8 *line, i32 group) const
    {
        return line + scale_offset<S.packed>(0, group, 0, group_stride);
    }

    // From group to group; hidden from a compiler that would keep the addresses of all in
    // registers.
    __device__ __forceinline__ void step(const u8 *&at) const
    {
        at += group_stride;
        asm volatile("" : "+l"(at));
    }

    // Four codes, of which `left` exist. The padding of a row's last word may be read, and is not
    // kept: it may be NaN.
    __device__ __forceinline__ u32 read_codes(const u8 *line, i32 group, i32 left) const
    {
        const u8 *at = place(line, group);
        u32 word = 0;
        if constexpr (S.wide) {
            return *reinterpret_cast<const u32 *>(at);
        }
        if constexpr (S.packed) {
#pragma unroll 1 // rare: batches side by side share words
            for (int g = 0; g < least(4, left); g++) {
                word |= u32(*place(line, group + g)) << 8 * g;
            }
        } else {
#pragma unroll
            for (int g = 0; g < 4; g++, step(at)) {
                word |= g < left ? u32(*at) << 8 * g : 0;
            }
        }
        return word;
    }

    __device__ __forceinline__ void read(u32 (&to)[kHeld], const u8 *line, i32 group,
                                         i32 left) const
    {
        if constexpr (kWords) {
            to[0] = read_codes(line, group, left);
            return;
        }
        const u8 *at = place(line, group);
        if constexpr (!kFours) {
            to[0] = S.ue8m0 ? u32(*at) : *reinterpret_cast<const u32 *>(at);
        } else if constexpr (S.wide) {
            const uint4 four = *reinterpret_cast<const uint4 *>(at);
            to[0] = four.x, to[1 % kHeld] = four.y, to[2 % kHeld] = four.z, to[3 % kHeld] = four.w;
        } else {
#pragma unroll
            for (int g = 0; g < kHeld; g++, step(at)) {
                to[g] = g < left ? *reinterpret_cast<const u32 *>(at) : 0;
            }
        }
    }

    // Nothing past the operand's last stage, which nobody stores.
    __device__ __forceinline__ void fetch(int slot, i32 block)
    {
        const i32 left = groups - block * kGroups;
        if (left > 0) {
#pragma unroll
            for (int t = 0; t < kEach; t++) {
                read(held[slot][t], line_at[t], within + block * kGroups, left);
            }
            if (S.wide && S.packed && !S.fold && left < 4) { // a row's last word: its padding
#pragma unroll
                for (int t = 0; t < kEach; t++) {
                    held[slot][t][0] &= (1u << 8 * left) - 1;
                }
            }
        }
    }

    // Scales, tables and flags to the stage that begins at `to`. The whole warp takes part. A line
    // whose groups share a scale has it four times, so that adding up each group for itself is
    // right for it too.
    __device__ __forceinline__ void store_folded(u8 *to, int slot, i32 block, u32 thread) const
    {
#pragma unroll
        for (int t = 0; t < kEach; t++) {
            const int line = int(thread) + t * Threads;
            const E2m1Groups four = E2m1Groups::make(held[slot][t][0], groups - block * kGroups);
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

    __device__ __forceinline__ void store(float *to, int slot, u32 thread) const
    {
#pragma unroll
        for (int t = 0; t < kEach; t++) {
            const int line = int(thread) + t * Threads;
            const u32(&of)[kHeld] = held[slot][t];
            if (S.lines % Threads != 0 && line >= S.lines) {
                continue;
            }
            if constexpr (!kFours) {
                to[line] = S.ue8m0 ? ue8m0_decode(u8(of[0])) : __uint_as_float(of[0]);
            } else {
                const float4 scale = four_of(of);
                if constexpr (S.by_line) {
                    reinterpret_cast<float4 *>(to)[line] = scale;
                } else {
                    to[line] = scale.x, to[S.lines + line] = scale.y;
                    to[2 * S.lines + line] = scale.z, to[3 * S.lines + line] = scale.w;
                }
            }
        }
    }

    static __device__ __forceinline__ float4 four_of(const u32 (&of)[kHeld])
    {
        if constexpr (kWords) {
            return ue8m0x4_decode(of[0]);
        } else {
            return make_float4(__uint_as_float(of[0]), __uint_as_float(of[1 % kHeld]),
                               __uint_as_float(of[2 % kHeld]), __uint_as_float(of[3 % kHeld]));
        }
    }
};

// N floats in a row from shared memory at `from` + Offset, four or two at a time where N is a
// multiple of as many: they lie at one. Addresses of 32 bits spare the multiplying warps what 64
// cost.
template <int Offset = 0, int Wide = 0, int N>
__device__ __forceinline__ void scales_load(float (&to)[N], u32 from)
{
    constexpr int kWide = Wide > 0 ? Wide : N % 4 == 0 ? 4 : N % 2 == 0 ? 2 : 1;
    if constexpr (kWide == 4) {
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4+%5];"
                     : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                     : "r"(from), "n"(Offset));
    } else if constexpr (kWide == 2) {
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2+%3];"
                     : "=f"(to[0]), "=f"(to[1])
                     : "r"(from), "n"(Offset));
    } else {
        asm volatile("ld.shared.f32 %0, [%1+%2];" : "=f"(to[0]) : "r"(from), "n"(Offset));
    }
    if constexpr (N > kWide) {
        scales_load<Offset + kWide * 4, kWide>(reinterpret_cast<float(&)[N - kWide]>(to[kWide]),
                                               from);
    }
}
