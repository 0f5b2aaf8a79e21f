// groups.cu - q, scale = quantise(act(x)): e4m3 codes and one scale for each group of 32, 64 or 128
// along k.
//
// A group is `group / vec` neighbouring lanes, each of which holds `vec` elements; x is read once
// and q written once. With a gate a row of x is k gates, then k ups. Scales go to their final
// layout, its padding included: a padding scale is 1.0 (0x7f), so that a reader of whole words
// meets neither NaN nor an undefined byte. Rows that there are not (MoE: past an expert's last, or
// of no expert) are neither read nor written. Rows that are gathered come from x's row of their
// entry, so that one launch orders tokens by expert and quantises them. Codes and scales equal
// core/numfmt.h's, byte for byte. Domains and launch: groups.yaml.
#include "device/activation.cuh"
#include "device/quantise.cuh"
#include "device/scale_layout.cuh"

struct Config {
    int in, group, rule, activation, row_set;
    bool count, ue8m0, packed; // count NaN and infinities; scales
    int align;                 // bytes that operands and rows are multiples of
    int vec;                   // elements of a lane
    int threads, rows;         // of a CTA
    int repeat;                // groups that a lane has in flight
};

template <Config C> struct Work {
    using Element = typename ElementOf<C.in>::Type;
    static constexpr int kLanes = C.group / C.vec;
    static constexpr int kInputs = C.activation == PLAIN ? 1 : 2;
    using Part = GroupPart<Element, C.vec, kLanes>;
    static constexpr int kColumns = C.threads / kLanes / C.rows; // groups of a row at a time

    static_assert(C.group == 32 || C.group == 64 || C.group == 128, "group: 32, 64 or 128");
    static_assert(C.vec >= 4 && is_pow2(C.vec) && kLanes >= 1 && kLanes <= 32,
                  "vec: a group fits a warp");
    static_assert(C.threads % 32 == 0 && C.threads <= 1024, "threads: whole warps");
    static_assert(kColumns >= 1 && kColumns * kLanes * C.rows == C.threads,
                  "rows: every lane has a group");
    static_assert(C.vec * C.repeat * kInputs <= 64, "repeat: what a lane holds stays in registers");
    static_assert(!C.ue8m0 || rule_is_pow2(C.rule),
                  "ue8m0 scales need a rule that makes powers of two");

    // What a lane holds of a group: plain elements, or gates and ups.
    struct Held {
        Part part[kInputs];

        // `first`: of the group in its row of x; ups lie k behind.
        __device__ __forceinline__ void load(const Element *first, i64 k, i32 lane)
        {
#pragma unroll
            for (int i = 0; i < kInputs; i++) {
                part[i].template load<C.align>(first + i * k, lane);
            }
        }

        __device__ __forceinline__ void floats(float (&x)[C.vec]) const
        {
            part[0].floats(x);
            if constexpr (kInputs == 2) {
                float up[C.vec];
                part[1].floats(up);
#pragma unroll
                for (int i = 0; i < C.vec; i++) {
                    x[i] = activate<C.activation>(x[i], up[i]);
                }
            }
        }

        // Plain elements stay in their format until they are divided.
        __device__ __forceinline__ u32 largest(const float (&x)[C.vec]) const
        {
            return kInputs == 1 ? part[0].largest() : largest_bits(x);
        }

        __device__ __forceinline__ void quantise(u8 *group, i32 lane, const float (&x)[C.vec],
                                                 float s, bool plain) const
        {
            float y[C.vec];
            if constexpr (kInputs == 1) {
                part[0].template divided<C.rule>(y, s, plain);
            } else {
                divide_all<C.rule, CLOSE>(y, x, s, plain); // what a gate made is known to 2^-20
            }
            Part::template store<C.align>(group, lane, y);
        }
    };
};

// Whether there is a row: of the expert's matrix and, by `rows`, of the set.
template <Config C>
__device__ __forceinline__ bool row_is_there(const i32 *rows, i64 row, i64 m, i64 expert,
                                             i32 entries)
{
    if (row >= m) {
        return false;
    }
    if constexpr (C.row_set == MASKED) {
        return row < rows[expert];
    } else if constexpr (C.row_set == LISTED) {
        return rows[row] >= 0;
    } else if constexpr (C.row_set == GATHERED) {
        return u32(rows[expert * m + row]) < u32(entries);
    }
    return true;
}

// m x groups of each expert are quantised; scales are written for rows_padded x groups_padded.
// Gathered rows have one of `entries`, topk for each row of x.
// Scale strides: device/scale_layout.cuh; scale_expert: from expert to expert.
template <Config C>
__global__ void __launch_bounds__(C.threads)
    act_quant_groups(const typename Work<C>::Element *__restrict__ x, u8 *__restrict__ q,
                     void *__restrict__ scale, const i32 *__restrict__ rows,
                     u64 *__restrict__ dropped, u64 *__restrict__ special, i64 m, i64 k,
                     i64 rows_padded, i64 groups_padded, i64 scale_row, i64 scale_group,
                     i64 scale_expert, i32 entries, i32 topk)
{
    using W = Work<C>;
    const i32 lane = i32(threadIdx.x % W::kLanes), unit = i32(threadIdx.x / W::kLanes);
    const i64 expert = blockIdx.z, row = i64(blockIdx.x) * C.rows + unit / W::kColumns;
    const i64 first = i64(blockIdx.y) * W::kColumns * C.repeat + unit % W::kColumns;
    const i64 groups = k / C.group, at_row = expert * m + row;
    const bool there = row_is_there<C>(rows, row, m, expert, entries);
    i64 from = at_row;
    if constexpr (C.row_set == GATHERED) {
        from = there ? rows[at_row] / topk : 0;
        if (row < m && first == 0 && lane == 0 && rows[at_row] >= entries) {
            atomicAdd(dropped, u64(1));
        }
    }

    // Lanes without a group hold zeros; where every row is there and those are more instructions
    // than an address, the last row's, or its last group.
    constexpr bool kLast = C.row_set == EVERY && W::kInputs * W::Part::kBytes >= 32;
    typename W::Held in[C.repeat] = {};
#pragma unroll
    for (int t = 0; t < C.repeat; t++) {
        const i64 group = first + t * W::kColumns;
        if constexpr (kLast) {
            const i64 held = row < m ? at_row : expert * m + m - 1;
            const u32 last = u32(min(i32(group), i32(groups) - 1));
            in[t].load(x + held * k * W::kInputs + u64(last) * C.group, k, lane);
        } else if (there && group < groups) {
            in[t].load(x + from * k * W::kInputs + group * C.group, k, lane);
        }
    }
#pragma unroll
    for (int t = 0; t < C.repeat; t++) {
        const i64 group = first + t * W::kColumns;
        const bool valid = there && group < groups;
        float value[C.vec];
        in[t].floats(value);
        const u32 own = in[t].largest(value);
        const float s = group_scale<C.rule>(group_amax<W::kLanes>(value, own));
        if (valid) {
            in[t].quantise(q + at_row * k + group * C.group, lane, value, s, own < kInfinityBits);
            if (C.count && own >= kInfinityBits) {
                atomicAdd(special, u64(special_count(value)));
            }
        }
        // Padding rows belong to every set; those that the set leaves out keep their scales.
        if (lane == 0 && (there || row >= m) && row < rows_padded && group < groups_padded) {
            const i64 at = scale_offset<C.packed>(row, group, scale_row, scale_group);
            store_scale<C.ue8m0>(scale, expert * scale_expert + at, valid ? s : 1.0f);
        }
    }
}
