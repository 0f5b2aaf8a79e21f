// tokens.cu - y[t, :] = sum over j of weight[t, j] * d[place[t, j], :]: experts' rows back in the
// tokens' order.
//
// A thread sums `vec` columns of a token, each row of d read once and y written once; `batch` rows
// are in flight before the first is added. Always in the order of j, by fused multiply-adds in fp32
// from y or 0 on, so that no config has other bits. Rows without a place are not read. Domains and
// launch: tokens.yaml.
#include "device/formats.cuh"
#include "device/vector.cuh"
#include "device/warp.cuh"

struct Config {
    int in, out;    // Dtype
    int accumulate; // 1: y is added to
    int align;      // bytes that operands and rows are multiples of
    int topk;       // entries of a token
    int vec;        // columns of an access
    int threads;    // of a CTA
    int tokens;     // of a CTA
    int repeat;     // accesses of a thread to a row
    int batch;      // entries in flight
};

template <Config C> struct Work {
    using In = typename ElementOf<C.in>::Type;
    using Out = typename ElementOf<C.out>::Type;
    static constexpr int kLanes = C.threads / C.tokens;                   // of a token
    static constexpr int kEntries = least(common_divisor(C.batch, C.topk), 4); // of an access
    static constexpr int kPacks = C.batch / kEntries;

    static_assert(C.threads % 32 == 0 && C.threads <= 1024, "threads: whole warps");
    static_assert(kLanes * C.tokens == C.threads, "tokens: as many threads each");
    static_assert(is_pow2(C.vec) && is_pow2(C.batch), "vec, batch: whole accesses");
    static_assert(C.vec * int(sizeof(In)) <= 16 && C.vec * C.repeat <= 32,
                  "vec, repeat: what a thread holds stays in registers");
};

// Columns of a row as they lie in memory, in words: one access each way.
template <typename T, int N, int Align> struct Columns {
    static constexpr int kBytes = N * int(sizeof(T));

    alignas(kBytes < 4 ? 4 : kBytes) u32 word[kBytes < 4 ? 1 : kBytes / 4];

    __device__ __forceinline__ void load(const T *from)
    {
        if constexpr (kBytes == 2) {
            word[0] = *reinterpret_cast<const u16 *>(from); // all of the word
        } else {
            copy_bytes<kBytes, Align>(word, from);
        }
    }

    // Assembly: NVRTC takes some stores of four words apart, and each then touches every sector.
    __device__ __forceinline__ void store(T *to) const
    {
        if constexpr (kBytes == 16 && Align >= 16) {
            asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(
                             __cvta_generic_to_global(to)),
                         "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3])
                         : "memory");
        } else if constexpr (kBytes == 8 && Align >= 8) {
            asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)),
                         "r"(word[0]), "r"(word[1])
                         : "memory");
        } else {
            copy_bytes<kBytes, Align>(to, word);
        }
    }

    __device__ __forceinline__ float at(int i) const
    {
        return word_float<T>(word, i);
    }
};

template <Config C>
__device__ __forceinline__ void store_sum(typename Work<C>::Out *y, const float (&sum)[C.vec])
{
    Columns<typename Work<C>::Out, C.vec, C.align> made;

#pragma unroll
    for (int i = 0; i < C.vec; i++) {
        if constexpr (C.out == F32) {
            made.word[i] = __float_as_uint(sum[i]);
        } else if (i % 2 == 0) {
            made.word[i / 2] = bf16x2_from(sum[i], i + 1 < C.vec ? sum[i + 1] : 0.0f);
        }
    }
    made.store(y);
}

// Entries of this token that name no row, by one CTA of its columns.
template <Config C>
__device__ __forceinline__ void count(const i32 *place, u64 *dropped, bool there, i32 lane, i32 m)
{
    u32 mine = 0;

    for (i32 j = lane; there && j < C.topk; j += Work<C>::kLanes) {
        mine += place[j] < -1 || place[j] >= m ? 1 : 0;
    }
    const u32 all = lanes_sum(mine);
    if (all > 0 && threadIdx.x % 32 == 0) {
        atomicAdd(dropped, u64(all));
    }
}

// Some entries of a token, and what a thread has of their rows.
template <Config C> struct Batch {
    using W = Work<C>;

    Pack<i32, W::kEntries> row[W::kPacks];
    Pack<float, W::kEntries> factor[W::kPacks];
    Columns<typename W::In, C.vec, C.align> in[C.batch][C.repeat];

    // Entries from j on of the token whose places and weights these are.
    __device__ __forceinline__ void name(const i32 *place, const float *weight, int j)
    {
#pragma unroll
        for (int p = 0; p < W::kPacks; p++) {
            const bool inside = C.topk % C.batch == 0 || j + p * W::kEntries < C.topk;
#pragma unroll
            for (int i = 0; !inside && i < W::kEntries; i++) {
                row[p].v[i] = -1;
            }
            if (inside) {
                row[p] = pack_load<W::kEntries, C.align>(place + j + p * W::kEntries);
                factor[p] = pack_load<W::kEntries, C.align>(weight + j + p * W::kEntries);
            }
        }
    }

    __device__ __forceinline__ i32 at(int b) const
    {
        return row[b / W::kEntries].v[b % W::kEntries];
    }

    __device__ __forceinline__ void load(const typename W::In *d, i64 first, i64 n, i32 m)
    {
#pragma unroll
        for (int b = 0; b < C.batch; b++) {
#pragma unroll
            for (int t = 0; t < C.repeat; t++) {
                const i64 column = first + t * W::kLanes * C.vec;
                if (u32(at(b)) < u32(m) && column < n) {
                    in[b][t].load(d + i64(at(b)) * n + column);
                }
            }
        }
    }

    __device__ __forceinline__ void add(float (&sum)[C.repeat][C.vec], i64 first, i64 n,
                                        i32 m) const
    {
#pragma unroll
        for (int b = 0; b < C.batch; b++) {
            const float by = factor[b / W::kEntries].v[b % W::kEntries];
#pragma unroll
            for (int t = 0; t < C.repeat; t++) {
                if (u32(at(b)) < u32(m) && first + t * W::kLanes * C.vec < n) {
#pragma unroll
                    for (int i = 0; i < C.vec; i++) {
                        sum[t][i] = __fmaf_rn(by, in[b][t].at(i), sum[t][i]);
                    }
                }
            }
        }
    }
};

template <Config C>
__global__ void __launch_bounds__(C.threads)
    moe_combine_tokens(const typename Work<C>::In *__restrict__ d, const i32 *__restrict__ place,
                       const float *__restrict__ weight, u64 *__restrict__ dropped,
                       typename Work<C>::Out *__restrict__ y, i64 tokens, i64 n, i32 m)
{
    using W = Work<C>;
    const i32 lane = i32(threadIdx.x) % W::kLanes;
    const i64 token = i64(blockIdx.x) * C.tokens + i32(threadIdx.x) / W::kLanes;
    const i64 first = (i64(blockIdx.y) * C.repeat * W::kLanes + lane) * C.vec;
    const bool there = token < tokens;
    float sum[C.repeat][C.vec] = {};

    place += token * C.topk;
    weight += token * C.topk;
    if (blockIdx.y == 0) {
        count<C>(place, dropped, there, lane, m);
    }
    if (!there) {
        return;
    }
#pragma unroll
    for (int t = 0; C.accumulate && t < C.repeat; t++) {
        const i64 column = first + t * W::kLanes * C.vec;
        if (column < n) {
            Columns<typename W::Out, C.vec, C.align> old;
            old.load(y + token * n + column);
#pragma unroll
            for (int i = 0; i < C.vec; i++) {
                sum[t][i] = old.at(i);
            }
        }
    }
#pragma unroll 1
    for (int j = 0; j < C.topk; j += C.batch) {
        Batch<C> batch;
        batch.name(place, weight, j);
        batch.load(d, first, n, m);
        batch.add(sum, first, n, m);
    }
#pragma unroll
    for (int t = 0; t < C.repeat; t++) {
        const i64 column = first + t * W::kLanes * C.vec;
        if (column < n) {
            store_sum<C>(y + token * n + column, sum[t]);
        }
    }
}
