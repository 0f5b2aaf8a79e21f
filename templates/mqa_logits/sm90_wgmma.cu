// sm90_wgmma.cu - logits of query tokens against keys that lie side by side, for Hopper: an
// indexer's scores while it prefills.
//
// A CTA has `tokens` query tokens, whose heads stay in shared memory, and a chunk of keys. One warp
// has the copy engine fill a ring of stages, tiles of 64 keys for each of the warpgroups that
// multiply; tiles that no token's range has are left out. While a tile is there the tokens pass, a
// unit of them in one product. Only keys of a token's own range are stored, and with `clean` -inf
// in the chunk's other columns. Domains and launch: sm90_wgmma.yaml.
#include "mqa_logits/ranges.cuh"
#include "sm90/nibble_scores.cuh"

struct Config {
    int heads, dims;
    bool e2m1; // q and k; else e4m3
    bool compressed, clean;
    bool out_f32;
    int tokens; // of a CTA
    int groups; // warpgroups that multiply
    int unit;   // query tokens of a product
    int chunk;  // keys of a CTA
    int stages;
    int residency; // CTAs of an SM that registers are kept for
};

template <Config C> struct Shape {
    static constexpr int kKeys = C.groups * 64, kMultiply = C.groups * 128;
    static constexpr int kThreads = kMultiply + 32;
    static constexpr int kColumns = C.tokens * C.heads;              // heads of all tokens
    static constexpr int kPart = kColumns / ceil_div(kColumns, 256); // of one load
    static constexpr int kRow = C.e2m1 ? C.dims / 2 : C.dims;
    static constexpr int kKeyBytes = kKeys * kRow, kQueryBytes = kColumns * C.dims;

    // Shared memory, from its beginning.
    static constexpr int kQueriesAt = C.stages * kKeyBytes;
    static constexpr int kScalesAt = ceil_div(kQueriesAt + kQueryBytes, 128) * 128;
    static constexpr int kWeightsAt = kScalesAt + C.stages * kKeys * 4;
    static constexpr int kQueryScalesAt = kWeightsAt + kColumns * 4;
    static constexpr int kBoundsAt = kQueryScalesAt + (C.e2m1 ? kColumns * C.dims / 8 : 0);
    static constexpr int kBarriersAt = kBoundsAt + C.tokens * 8;
    static constexpr int kWideAt = kBarriersAt + C.stages * 16 + 8; // whether queries of e2m1 are

    static_assert(C.chunk % kKeys == 0, "chunk: whole tiles");
    static_assert(C.tokens % C.unit == 0 && C.unit * C.heads <= 256, "unit: parts of the tokens");
    static_assert(C.stages >= 2 && C.tokens <= kThreads, "stages: one is read while others come");
};

// Barriers: a stage is full, is free; the queries are there.
template <Config C> struct Barriers {
    u32 base; // shared address of the kernel's memory

    __device__ __forceinline__ u32 full(i32 stage) const
    {
        return base + Shape<C>::kBarriersAt + stage * 8;
    }
    __device__ __forceinline__ u32 free(i32 stage) const
    {
        return full(C.stages + stage);
    }
    __device__ __forceinline__ u32 queries() const
    {
        return full(2 * C.stages);
    }

    __device__ __forceinline__ void init() const
    {
        for (i32 s = 0; s < C.stages; s++) {
            barrier_init(full(s), 1);
            barrier_init(free(s), C.groups * 4);
        }
        barrier_init(queries(), 1);
        barrier_init_fence();
    }
};

struct Sources {
    const TensorMap *q, *k, *scales, *weights;
    NibbleQueries nibbles; // queries of e2m1
};

// The queries, from head `head` on, `there` heads of which exist: the loading warp.
template <Config C>
__device__ __forceinline__ void load_queries(u8 *shared, const Sources &from, i32 head, i32 there)
{
    using S = Shape<C>;
    const Barriers<C> barriers = {shared_address(shared)};
    const u32 to = barriers.base + S::kQueriesAt, queries = barriers.queries();
    if constexpr (C.e2m1) {
        const NibbleQueries own = {from.nibbles.codes + i64(head) * S::kRow,
                                   from.nibbles.words + head, from.nibbles.weights + head, there};
        const bool wide =
            expand_queries<C.dims>({to, reinterpret_cast<float *>(shared + S::kQueryScalesAt),
                                    reinterpret_cast<float *>(shared + S::kWeightsAt)},
                                   own, S::kColumns);
        if (threadIdx.x % 32 == 0) {
            *reinterpret_cast<i32 *>(shared + S::kWideAt) = wide;
        }
        warp_arrive(queries);
    } else if (threadIdx.x % 32 == 0) {
        barrier_arrive_expect(queries, S::kQueryBytes + S::kColumns * 4);
        for (i32 at = 0; at < S::kColumns; at += S::kPart) {
            tensor_load(to + at * C.dims, from.q, queries, 0, head + at, 0);
            tensor_load(barriers.base + S::kWeightsAt + at * 4, from.weights, queries, head + at, 0,
                        0);
        }
    }
}

// The tiles of keys [first, past), by one thread.
template <Config C>
__device__ __forceinline__ void load_tiles(u8 *shared, const Sources &from, i32 first, i32 past)
{
    using S = Shape<C>;
    const Barriers<C> barriers = {shared_address(shared)};
    Turn<C.stages> turn;
    for (i32 key = first; key < past; key += S::kKeys, turn.advance()) {
        const u32 full = barriers.full(turn.place);
        barrier_wait<false>(barriers.free(turn.place), turn.parity ^ 1);
        barrier_arrive_expect(full, S::kKeyBytes + S::kKeys * 4);
        tensor_load(barriers.base + turn.place * S::kKeyBytes, from.k, full, 0, key, 0);
        tensor_load(barriers.base + S::kScalesAt + turn.place * (S::kKeys * 4), from.scales, full,
                    key, 0, 0);
    }
}

// Every token's scores of a tile's keys, the first of which is `first`, by this warpgroup. logits:
// of the first token.
template <Config C, typename Out>
__device__ __forceinline__ void score_tile(const u8 *shared, const NibbleSeat<C.dims> &seat,
                                           i32 stage, i32 first, Out *logits, i64 stride)
{
    using S = Shape<C>;
    const Barriers<C> barriers = {shared_address(shared)};
    const i32 own = i32(threadIdx.x) / 128 * 64, mine = own + score_key(), key = first + mine;
    const u32 tile = barriers.base + stage * S::kKeyBytes;
    const u64 keys = wgmma_operand<C.dims>(tile + own * S::kRow);
    const u32 queries = barriers.base + S::kQueriesAt;
    const i32 column = i32(threadIdx.x % 4) * 2;
    const float *const weight = reinterpret_cast<const float *>(shared + S::kWeightsAt) + column;
    const float *const scales =
        reinterpret_cast<const float *>(shared + S::kQueryScalesAt) + column;
    const Range *const bounds = reinterpret_cast<const Range *>(shared + S::kBoundsAt);
    const u8 *const of_keys = shared + S::kScalesAt + stage * (S::kKeys * 4);
    const u32 words = barriers.base + S::kScalesAt + stage * (S::kKeys * 4);
    NibbleRows<C.dims> rows;
    float scale;
    if constexpr (C.e2m1) {
        rows.load(seat, tile, words, *reinterpret_cast<const i32 *>(shared + S::kWideAt) != 0);
        scale = rows.scale;
        if (!rows.wide) {
            warp_arrive(barriers.free(stage));
        }
    } else {
        scale = reinterpret_cast<const float *>(of_keys)[mine];
    }
    const auto store = [&](int token, float score) {
        const Range r = bounds[token];
        if (key >= r.from && key < r.to) {
            const i32 column = C.compressed ? key - r.from : key;
            store_logit(logits + token * stride + column, score);
        }
    };
#pragma unroll 1
    for (int t = 0; t < C.tokens; t += C.unit) {
        ScorePart<C.heads, C.unit> part;
        const u64 columns = wgmma_operand<C.dims>(queries + t * C.heads * C.dims);
        if constexpr (C.e2m1) {
            nibble_products(part, rows, columns);
        } else {
            score_products<C.dims>(part, keys, columns);
            if (t + C.unit == C.tokens) {
                warp_arrive(barriers.free(stage));
            }
        }
        score_unit<C.heads, C.unit>(part, weight + t * C.heads,
                                    [&](int of, float sum) { store(t + of, sum * scale); });
    }
    if (C.e2m1 && rows.wide) {
        score_wide<C.heads, C.dims, S::kColumns>(seat, tile, words, queries, scales, weight,
                                                 C.tokens, store);
        warp_arrive(barriers.free(stage));
    }
}

template <Config C>
__global__ void __launch_bounds__(Shape<C>::kThreads, C.residency)
    mqa_logits_sm90_wgmma(const __grid_constant__ TensorMap q_map,
                          const __grid_constant__ TensorMap k_map,
                          const __grid_constant__ TensorMap scales_map,
                          const __grid_constant__ TensorMap weights_map, const u8 *__restrict__ q,
                          const u32 *__restrict__ q_scale, const float *__restrict__ weights,
                          const i32 *__restrict__ start, const i32 *__restrict__ end, void *to,
                          i32 tokens, i32 keys, i32 width, i64 stride)
{
    using S = Shape<C>;
    using Out = typename ElementOf<C.out_f32 ? F32 : BF16>::Type;
    extern __shared__ __align__(1024) u8 shared[];
    Out *const logits = static_cast<Out *>(to);
    const Barriers<C> barriers = {shared_address(shared)};
    Range *const own = reinterpret_cast<Range *>(shared + S::kBoundsAt);
    const i32 blocks = ceil_div(tokens, C.tokens);
    const i32 first = i32(blockIdx.x) % blocks * C.tokens;
    const i32 chunk = i32(i64(blockIdx.x) / blocks * C.chunk);

    if (threadIdx.x == 0) {
        barriers.init();
    }
    const Range all =
        ranges_of<C.tokens, C.compressed>(own, start, end, first, tokens, keys, width);
    const i32 from = max(all.from - chunk, 0) / S::kKeys * S::kKeys + chunk;
    const i32 past = min(all.to, chunk + C.chunk);
    if (__shfl_sync(0xffffffffu, i32(threadIdx.x) / 128, 0) == C.groups) {
        if (from < past) {
            const Sources sources = {
                &q_map, &k_map, &scales_map, &weights_map, {q, q_scale, weights, 0}};
            load_queries<C>(shared, sources, first * C.heads,
                            min(tokens - first, C.tokens) * C.heads);
            if (threadIdx.x % 32 == 0) {
                load_tiles<C>(shared, sources, from, past);
            }
        }
        return;
    }
    if constexpr (C.clean) {
        clean_rows<C.tokens, C.compressed, S::kMultiply>(logits, stride, own, first, tokens, chunk,
                                                         min(width, chunk + C.chunk));
    }
    if (from < past) {
        barrier_wait<false>(barriers.queries(), 0);
    }
    const NibbleSeat<C.dims> seat(i32(threadIdx.x) / 128 * 64);
    Turn<C.stages> tile;
    for (i32 key = from; key < past; key += S::kKeys, tile.advance()) {
        barrier_wait<false>(barriers.full(tile.place), tile.parity);
        score_tile<C>(shared, seat, tile.place, key, logits + first * stride, stride);
    }
}
