// groups.cu - q, q_scale = fold(a [m, k], a_scale): e4m3 codes with a ue8m0 scale for each 32 of k
// get one for each 128, the largest of the four; the codes of the others are shifted down.
//
// A block of 128 is 128 / vec neighbouring lanes, each of which holds `vec` codes of one group; a
// is read once and q written once. Padding of q_scale's layout becomes 1.0 (0x7f). Elements whose
// value changes are counted, once for each warp. Bytes equal hone_fold_scales's. Domains and
// launch: groups.yaml.
#include "device/fold.cuh"
#include "device/scale_layout.cuh"
#include "device/vector.cuh"
#include "device/warp.cuh"

struct Config {
    bool packed, q_packed; // scales
    int align;             // bytes that operands and rows are multiples of
    int vec;               // codes of a lane
    int threads, rows;     // of a CTA
    int repeat;            // blocks that a lane has in flight
};

template <Config C> struct Work {
    static constexpr int kGroup = 32, kBlock = 128;
    static constexpr int kLanes = kBlock / C.vec;
    static constexpr int kColumns = C.threads / kLanes / C.rows; // blocks of a row at a time

    static_assert(C.vec >= 4 && C.vec <= 16 && is_pow2(C.vec), "vec: a block fits a warp");
    static_assert(C.threads % 32 == 0 && C.threads <= 1024, "threads: whole warps");
    static_assert(kColumns >= 1 && kColumns * kLanes * C.rows == C.threads,
                  "rows: every lane has a block");
    static_assert(C.vec * C.repeat <= 64, "repeat: what a lane holds stays in registers");
};

// m x k is folded; q_scale is written for rows_padded x blocks_padded. Scale strides:
// device/scale_layout.cuh.
template <Config C>
__global__ void __launch_bounds__(C.threads)
    fold_groups(const u8 *__restrict__ a, const u8 *__restrict__ a_scale, u8 *__restrict__ q,
                u8 *__restrict__ q_scale, u64 *__restrict__ inexact, i64 m, i64 k, i64 rows_padded,
                i64 blocks_padded, i64 scale_row, i64 scale_group, i64 q_scale_row,
                i64 q_scale_group)
{
    using W = Work<C>;
    const i32 lane = i32(threadIdx.x % W::kLanes), unit = i32(threadIdx.x / W::kLanes);
    const i64 row = i64(blockIdx.x) * C.rows + unit / W::kColumns;
    const i64 first = i64(blockIdx.y) * W::kColumns * C.repeat + unit % W::kColumns;

    Pack<u8, C.vec> in[C.repeat] = {};
    u32 scale[C.repeat] = {};
#pragma unroll
    for (int t = 0; t < C.repeat; t++) {
        const i64 at = (first + t * W::kColumns) * W::kBlock + lane * C.vec;
        if (row < m && at < k) {
            in[t] = pack_load<C.vec, C.align>(a + row * k + at);
            scale[t] = a_scale[scale_offset<C.packed>(row, at / W::kGroup, scale_row, scale_group)];
        }
    }
    i32 changed = 0;
#pragma unroll
    for (int t = 0; t < C.repeat; t++) {
        const i64 block = first + t * W::kColumns, at = block * W::kBlock + lane * C.vec;
        const u32 largest = lanes_max<W::kLanes>(scale[t]);
        if (row < m && at < k) {
#pragma unroll
            for (int i = 0; i < C.vec; i += 4) {
                u32 *word = reinterpret_cast<u32 *>(&in[t].v[i]);
                *word = fold_codes(*word, i32(largest - scale[t]), changed);
            }
            pack_store<C.align>(q + row * k + at, in[t]);
        }
        if (lane == 0 && row < rows_padded && block < blocks_padded) {
            const bool padding = row >= m || at >= k;
            q_scale[scale_offset<C.q_packed>(row, block, q_scale_row, q_scale_group)] =
                u8(padding ? 0x7f : largest);
        }
    }
    const u32 all = lanes_sum(u32(changed));
    if (all > 0 && threadIdx.x % 32 == 0) {
        atomicAdd(inexact, u64(all));
    }
}
