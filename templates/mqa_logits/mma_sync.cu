// mma_sync.cu - logits of query tokens against keys that lie side by side: an indexer's
// scores while it prefills.
//
// A CTA has `tokens` query tokens, whose heads stay in shared memory, and a chunk of keys. Tiles of
// `keys` keys come by cp.async in a ring of `stages`; those that no token's range has are left out.
// A warp keeps its keys in registers while the tokens pass (device/mqa.cuh). Only keys of a
// token's own range are stored, and with `clean` -inf in the chunk's other columns. Domains and
// launch: mma_sync.yaml.
#include "device/mqa_scaled.cuh"
#include "mqa_logits/ranges.cuh"

struct Config {
    int heads, dims;
    bool e2m1;   // q and k; else e4m3
    bool scaled; // of e2m1: by block-scaled products
    bool compressed, clean;
    bool out_f32;
    int align;     // bytes that bases and rows of q and k are multiples of
    int tokens;    // of a CTA
    int keys;      // of a tile
    int warp_keys; // 16 or 32
    int chunk;     // keys of a CTA
    int stages;
    int residency; // CTAs of an SM that registers are kept for
};

template <Config C> struct Shape {
    static constexpr int kThreads = C.keys / C.warp_keys * 32,
                         kRow = C.e2m1 ? 64 : kRowBytes<C.dims>;
    static constexpr int kColumns = C.tokens * C.heads; // heads of all tokens
    static constexpr int kStage = C.keys * (kRow + 4);  // keys, then their scales
    static constexpr int kBytes = C.e2m1 ? C.dims / 2 : C.dims;
    // behind queries, weights and scales of queries
    static constexpr int kScales = kColumns * (kRow + 4);
    static constexpr int kRing = kScales + (C.scaled ? kColumns * 4
                                            : C.e2m1 ? kColumns * C.dims / 8
                                                     : 0);
    static constexpr int kBounds = kRing + C.stages * kStage;

    static_assert(C.warp_keys == 16 || C.warp_keys == 32, "warp_keys: one or two of mma's rows");
    static_assert(C.chunk % C.keys == 0, "chunk: whole tiles");
    static_assert(C.stages >= 2 && C.tokens <= kThreads, "stages: one is read while others come");
    using CopyKeys = TileCopy<C.keys, kRow, kThreads, C.align>;
    using CopyQueries = TileCopy<kColumns, kRow, kThreads, C.align>;
};

template <Config C>
using Held = typename HeldOrScaled<C.scaled, C.e2m1, C.dims, C.warp_keys / 16>::Type;

// A CTA's queries with their weights and scales, of which `rows` heads exist from `head` on.
template <Config C>
__device__ __forceinline__ void load_queries(u8 *shared, const u8 *q, const u32 *q_scale,
                                             const float *weights, i64 head, i32 rows)
{
    using S = Shape<C>;
    const u32 base = shared_address(shared);
    const typename S::CopyQueries copy = {q + head * S::kBytes, S::kBytes, rows, S::kBytes};
    copy.load(base, 0);
    copy_numbers<S::kThreads>(base + S::kColumns * S::kRow, weights + head, S::kColumns, rows);
    if constexpr (C.scaled) {
        copy_numbers<S::kThreads>(base + S::kScales, q_scale + head, S::kColumns, rows);
    } else if constexpr (C.e2m1) {
        expand_scales<C.dims, S::kThreads>(reinterpret_cast<float *>(shared + S::kScales),
                                           q_scale + head, S::kColumns, rows);
    }
}

// Every token's scores of a tile's keys, the first of which is `first`, by this warp; `stage`:
// where the tile lies. logits: of the first token.
template <Config C, typename Out>
__device__ __forceinline__ void score_tile(const u8 *shared, i32 stage, i32 first, Out *logits,
                                           i64 stride)
{
    using S = Shape<C>;
    constexpr int kHigh = C.warp_keys / 16;
    const u32 base = shared_address(shared);
    const float *const weight = reinterpret_cast<const float *>(shared + S::kColumns * S::kRow);
    const float *const scales = reinterpret_cast<const float *>(shared + S::kScales);
    const u32 *const words = reinterpret_cast<const u32 *>(shared + S::kScales);
    const Range *const own = reinterpret_cast<const Range *>(shared + S::kBounds);
    const i32 warp_first = i32(threadIdx.x) / 32 * C.warp_keys, mine = warp_first + own_key();
    const i32 key = first + mine;
    const void *const of_keys = shared + stage + C.keys * S::kRow;
    const bool stores = threadIdx.x % 4 < 2 * kHigh;
    Held<C> held;
    float scale = C.scaled ? 1.0f : kNibblesScale;
    if constexpr (C.e2m1) {
        held.load(base + stage + warp_first * S::kRow,
                  static_cast<const u32 *>(of_keys) + warp_first);
    } else {
        held.load(base + stage + warp_first * S::kRow);
        scale = stores ? static_cast<const float *>(of_keys)[mine] : 0.0f;
    }
#pragma unroll 1
    for (int t = 0; t < C.tokens; t++) {
        float sum[2 * kHigh];
        const u32 query = base + t * C.heads * S::kRow;
        if constexpr (C.scaled) {
            score_scaled<C.heads>(sum, held, query, weight + t * C.heads, words + t * C.heads);
        } else if constexpr (C.e2m1) {
            score_nibbles<C.heads, S::kColumns>(sum, held, query, weight + t * C.heads,
                                                scales + t * C.heads);
        } else {
            score_keys<C.heads>(sum, held, query, weight + t * C.heads);
        }
        const float x = own_sum<kHigh>(sum) * scale;
        const Range r = own[t];
        if (stores && key >= r.from && key < r.to) {
            const i32 column = C.compressed ? key - r.from : key;
            store_logit(logits + t * stride + column, x);
        }
    }
}

template <Config C>
__global__ void __launch_bounds__(Shape<C>::kThreads, C.residency)
    mqa_logits_mma_sync(const u8 *__restrict__ q, const u32 *__restrict__ q_scale,
                        const u8 *__restrict__ k, const void *__restrict__ k_scale,
                        const float *__restrict__ weights, const i32 *__restrict__ start,
                        const i32 *__restrict__ end, void *to, i32 tokens, i32 keys, i32 width,
                        i64 stride)
{
    using S = Shape<C>;
    using Out = typename ElementOf<C.out_f32 ? F32 : BF16>::Type;
    extern __shared__ __align__(128) u8 shared[];
    Out *const logits = static_cast<Out *>(to);
    const u32 ring = shared_address(shared) + S::kRing;
    Range *const own = reinterpret_cast<Range *>(shared + S::kBounds);
    const i32 blocks = ceil_div(tokens, C.tokens);
    const i32 first = i32(blockIdx.x) % blocks * C.tokens;
    const i32 chunk = i32(i64(blockIdx.x) / blocks * C.chunk);
    const i32 rows = min(tokens - first, C.tokens) * C.heads;

    const Range all =
        ranges_of<C.tokens, C.compressed>(own, start, end, first, tokens, keys, width);
    const i32 from = max(all.from - chunk, 0) / C.keys * C.keys + chunk;
    const i32 past = min(all.to, chunk + C.chunk);
    const i32 tiles = past > from ? (past - from - 1) / C.keys + 1 : 0;
    if (tiles > 0) {
        load_queries<C>(shared, q, q_scale, weights, i64(first) * C.heads, rows);
    }
    const auto load = [&](i32 tile) {
        if (tile < tiles) {
            const u32 stage = ring + tile % C.stages * S::kStage;
            const i32 at = from + tile * C.keys;
            const typename S::CopyKeys copy = {k + i64(at) * S::kBytes, S::kBytes, keys - at,
                                               S::kBytes};
            copy.load(stage, 0);
            copy_numbers<S::kThreads>(stage + C.keys * S::kRow,
                                      static_cast<const u32 *>(k_scale) + at, C.keys, keys - at);
        }
        async_commit(); // also when empty: async_wait counts groups
    };
    for (int s = 0; s < C.stages - 1; s++) {
        load(s);
    }
    if constexpr (C.clean) {
        clean_rows<C.tokens, C.compressed, S::kThreads>(logits, stride, own, first, tokens, chunk,
                                                        min(width, chunk + C.chunk));
    }
    for (i32 tile = 0; tile < tiles; tile++) {
        async_wait<C.stages - 2>();
        __syncthreads(); // this tile is in place, and all warps are done with the one before
        load(tile + C.stages - 1);
        score_tile<C>(shared, S::kRing + tile % C.stages * S::kStage, from + tile * C.keys,
                      logits + first * stride, stride);
    }
}
