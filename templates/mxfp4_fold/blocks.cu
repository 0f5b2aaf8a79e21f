// blocks.cu - MXFP4 weights as e4m3 with one power-of-two scale a block.
//
// A group of 32 e2m1 codes with the ue8m0 byte e becomes e4m3 of code * 2^(e - s), s being the
// largest e of the block's groups that hold a value, less 6: exact when the exponents spread over
// at most 14, the nearest e4m3 else. The bytes are core/fold_mxfp4.h's. A lane holds `per` groups
// of 16 bytes each, which it reads once; a block's lanes agree on s, then each looks its codes up
// in eight bytes that it makes for the group. Lanes are laid over the rows of `side` blocks at
// once, so that rows of scales are longer runs. Domains and launch: blocks.yaml.
#include "device/formats.cuh"
#include "device/warp.cuh"

struct Config {
    int block_rows, block_cols; // that one scale covers
    bool ue8m0;                 // the new scales
    int threads;                // of a CTA
    int per;                    // groups of a lane
    int side;                   // blocks that a CTA's warps share, where a block has several
};

template <Config C> struct Work {
    static constexpr int kAcross = C.block_cols / 32; // groups of a block's row
    static constexpr int kLanes = C.block_rows * kAcross / C.per;
    static constexpr int kUnits = C.threads / kLanes; // blocks of a CTA, side by side
    static constexpr int kRow = kAcross * C.side;     // neighbouring lanes with groups of one row
    static constexpr int kStep = kLanes * C.side;     // from a lane's group to its next

    static_assert(C.block_cols % 32 == 0 && is_pow2(kAcross), "block_cols: whole groups");
    static_assert(kLanes * C.per == C.block_rows * kAcross && is_pow2(kLanes),
                  "per: every lane has its groups");
    static_assert(C.threads % 32 == 0 && C.threads <= 1024 && kUnits * kLanes == C.threads,
                  "threads: whole warps and whole blocks");
    static_assert(kLanes > 32 ? kUnits == C.side && is_pow2(C.side) && kRow <= 32 : C.side == 1,
                  "side: blocks of several warps are all of the CTA's");
};

constexpr u32 kNan = 0xff;

// The maximum over a block's lanes, in all of them. Of several warps each has lanes of all blocks,
// kAcross neighbours of each in turn.
template <Config C> __device__ __forceinline__ u32 block_max(u32 x)
{
    using W = Work<C>;
    if constexpr (W::kLanes <= 32) {
        return lanes_max<W::kLanes>(x);
    } else {
        constexpr int kWarps = C.threads / 32;
        __shared__ u32 warps[C.side][kWarps];
        x = lanes_max<W::kAcross>(x);
#pragma unroll
        for (int step = W::kRow; step < 32; step *= 2) {
            x = max(x, __shfl_xor_sync(0xffffffffu, x, step));
        }
        const u32 lane = threadIdx.x % 32, block = threadIdx.x / W::kAcross % C.side;
        if (lane < W::kRow && lane % W::kAcross == 0) {
            warps[block][threadIdx.x / 32] = x;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kWarps; i++) {
            x = max(x, warps[block][i]);
        }
        return x;
    }
}

// What the eight magnitudes become at 2^offset; NaN codes for a NaN exponent.
__device__ __forceinline__ void make_table(i32 offset, bool nan, u32 &low, u32 &high)
{
    // Below 2^-20 all of them vanish; above 2^6 there are none.
    const float unit = __uint_as_float(u32(max(offset, -20) + 127) << 23);
    low = e4m3x4_from(0.0f, 0.5f * unit, unit, 1.5f * unit);
    high = e4m3x4_from(2.0f * unit, 3.0f * unit, 4.0f * unit, 6.0f * unit);
    low = nan ? 0x7f7f7f7fu : low;
    high = nan ? 0x7f7f7f7fu : high;
}

// Four codes in the low 16 bits: their magnitudes select bytes, their signs go to each byte's top.
// With a nibble's top bit set, prmt gives the selected byte's sign eight times; the intrinsic hides
// that.
__device__ __forceinline__ u32 look_up(u32 low, u32 high, u32 codes)
{
    u32 signs; // 0xff where negative, 0x80 elsewhere
    asm("prmt.b32 %0, %1, %1, %2;" : "=r"(signs) : "r"(0x80808080u), "r"(codes));
    u32 four; // magnitudes, and the signs' top bits
    asm("lop3.b32 %0, %1, 0x80808080, %2, 0xea;"
        : "=r"(four)
        : "r"(signs << 7), "r"(__byte_perm(low, high, codes)));
    return four;
}

__device__ __forceinline__ uint4 look_up_16(u32 low, u32 high, u32 first, u32 second)
{
    return make_uint4(look_up(low, high, first), look_up(low, high, first >> 16),
                      look_up(low, high, second), look_up(low, high, second >> 16));
}

// Two lanes' groups, `at` each (-1: none): both write the even lane's, a half each, then the odd
// lane's, so that every store fills sectors. All lanes of the warp take part.
__device__ __forceinline__ void store_pair(uint4 *q, i64 at, uint4 first, uint4 second)
{
    constexpr u32 kAll = 0xffffffffu;
    const bool odd = threadIdx.x % 2 == 1;
    const i64 other = __shfl_xor_sync(kAll, at, 1), even_at = odd ? other : at,
              odd_at = odd ? at : other;
    const u32 left[4] = {first.x, first.y, first.z, first.w},
              right[4] = {second.x, second.y, second.z, second.w};
    u32 even[4], last[4]; // word by word: a choice between uint4s would be a branch, two stores
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const u32 got = __shfl_xor_sync(kAll, odd ? left[i] : right[i], 1);
        even[i] = odd ? got : left[i];
        last[i] = odd ? right[i] : got;
    }
    if (even_at >= 0) {
        q[2 * even_at + odd] = make_uint4(even[0], even[1], even[2], even[3]);
    }
    if (odd_at >= 0) {
        q[2 * odd_at + odd] = make_uint4(last[0], last[1], last[2], last[3]);
    }
}

// codes [batch, n, k / 2] and scale [batch, n, k / 32] to q [batch, n, k] and q_scale [batch,
// row_blocks, column_blocks]. A CTA makes kUnits blocks side by side.
template <Config C>
__global__ void __launch_bounds__(C.threads)
    mxfp4_fold_blocks(const uint4 *__restrict__ codes, const u8 *__restrict__ scale,
                      uint4 *__restrict__ q, void *__restrict__ q_scale, i64 n, i64 k,
                      i64 row_blocks, i64 column_blocks)
{
    using W = Work<C>;
    const i64 ctas = (column_blocks + W::kUnits - 1) / W::kUnits; // of a row of blocks
    const i64 line = i64(blockIdx.x) / ctas, batch = line / row_blocks;
    const i32 unit = W::kLanes > 32 ? i32(threadIdx.x) / W::kAcross % C.side
                                    : i32(threadIdx.x) / W::kLanes;
    const i64 column = i64(blockIdx.x) % ctas * W::kUnits + unit;
    const i64 first_row = line % row_blocks * C.block_rows, groups = k / 32;
    const i32 lane = i32(threadIdx.x) % W::kStep; // among `side` blocks

    uint4 held[C.per];
    u32 exponent[C.per];
    i64 at[C.per];   // of the group; -1: outside
    u32 largest = 0; // exponent + 1; 0: none counts
#pragma unroll
    for (int t = 0; t < C.per; t++) {
        const i32 place = lane + t * W::kStep;
        const i64 row = first_row + place / W::kRow,
                  group = column * W::kAcross + place % W::kAcross;
        const bool inside = row < n && group < groups;
        at[t] = inside ? (batch * n + row) * groups + group : -1;
        held[t] = inside ? codes[at[t]] : make_uint4(0, 0, 0, 0);
        exponent[t] = inside ? scale[at[t]] : 0;
        const u32 any = (held[t].x | held[t].y | held[t].z | held[t].w) & 0x77777777u;
        largest = max(largest, any != 0 && exponent[t] != kNan ? exponent[t] + 1 : 0);
    }
    largest = block_max<C>(largest);
    const u32 s = largest == 0 ? 0x7f : largest > 7 ? largest - 7 : 0;
#pragma unroll
    for (int t = 0; t < C.per; t++) {
        u32 low, high;
        make_table(i32(exponent[t]) - i32(s), exponent[t] == kNan, low, high);
        store_pair(q, at[t], look_up_16(low, high, held[t].x, held[t].y),
                   look_up_16(low, high, held[t].z, held[t].w));
    }
    if (lane < W::kRow && lane % W::kAcross == 0 && column < column_blocks) {
        const i64 place = line * column_blocks + column;
        if constexpr (C.ue8m0) {
            static_cast<u8 *>(q_scale)[place] = u8(s);
        } else {
            static_cast<float *>(q_scale)[place] = ue8m0_decode(u8(s));
        }
    }
}
