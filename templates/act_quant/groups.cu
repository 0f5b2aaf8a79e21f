// groups.cu - q, scale = quantise(x [m, k]): e4m3 codes and one scale for each group of 32 or 128
// along k.
//
// A group is `group / vec` neighbouring lanes, each of which holds `vec` elements; x is read once
// and q written once. Scales go to their final layout, its padding included: a padding scale is 1.0
// (0x7f), so that a reader of whole words meets neither NaN nor an undefined byte. Codes and scales
// equal core/numfmt.h's, byte for byte. Domains and launch: groups.yaml.
#include "device/quantise.cuh"
#include "device/scale_layout.cuh"

struct Config {
    int in, group, rule;
    bool ue8m0, packed; // scales
    int align;          // bytes that operands and rows are multiples of
    int vec;            // elements of a lane
    int threads, rows;  // of a CTA
    int repeat;         // groups that a lane has in flight
};

template <Config C> struct Work {
    using Element = typename ElementOf<C.in>::Type;
    static constexpr int kLanes = C.group / C.vec;
    using Part = GroupPart<Element, C.vec, kLanes>;
    static constexpr int kColumns = C.threads / kLanes / C.rows; // groups of a row at a time

    static_assert(C.group == 32 || C.group == 128, "group: 32 or 128");
    static_assert(C.vec >= 4 && is_pow2(C.vec) && kLanes >= 1 && kLanes <= 32,
                  "vec: a group fits a warp");
    static_assert(C.threads % 32 == 0 && C.threads <= 1024, "threads: whole warps");
    static_assert(kColumns >= 1 && kColumns * kLanes * C.rows == C.threads,
                  "rows: every lane has a group");
    static_assert(C.vec * C.repeat <= 64, "repeat: what a lane holds stays in registers");
    static_assert(!C.ue8m0 || rule_is_pow2(C.rule),
                  "ue8m0 scales need a rule that makes powers of two");
};

// m x groups are quantised; scales are written for rows_padded x groups_padded. Scale strides:
// device/scale_layout.cuh.
template <Config C>
__global__ void __launch_bounds__(C.threads)
    act_quant_groups(const typename Work<C>::Element *__restrict__ x, u8 *__restrict__ q,
                     void *__restrict__ scale, i64 m, i64 k, i64 rows_padded, i64 groups_padded,
                     i64 scale_row, i64 scale_group)
{
    using W = Work<C>;
    const i32 lane = i32(threadIdx.x % W::kLanes), unit = i32(threadIdx.x / W::kLanes);
    const i64 row = i64(blockIdx.x) * C.rows + unit / W::kColumns;
    const i64 first = i64(blockIdx.y) * W::kColumns * C.repeat + unit % W::kColumns;
    const i64 groups = k / C.group;

    typename W::Part in[C.repeat] = {};
#pragma unroll
    for (int t = 0; t < C.repeat; t++) {
        const i64 group = first + t * W::kColumns;
        if (row < m && group < groups) {
            in[t].template load<C.align>(x + row * k + group * C.group, lane);
        }
    }
#pragma unroll
    for (int t = 0; t < C.repeat; t++) {
        const i64 group = first + t * W::kColumns;
        const bool valid = row < m && group < groups;
        float value[C.vec], divided[C.vec];
        in[t].floats(value);
        const u32 own = largest_bits(value);
        const float s = group_scale<C.rule>(group_amax<W::kLanes>(value, own));
        if (valid) {
            divide_all<C.rule>(divided, value, s, own < kInfinityBits);
            W::Part::template store<C.align>(q + row * k + group * C.group, lane, divided);
        }
        if (lane == 0 && row < rows_padded && group < groups_padded) {
            const i64 at = scale_offset<C.packed>(row, group, scale_row, scale_group);
            store_scale<C.ue8m0>(scale, at, valid ? s : 1.0f);
        }
    }
}
