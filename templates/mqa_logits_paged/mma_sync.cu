// mma_sync.cu - logits of requests' query tokens against keys in a paged cache: an indexer's
// scores while it decodes.
//
// Work is parted by splits of `split` keys of a request, evenly over the grid
// (core/index_schedule.h): each CTA finds its first request by itself. A request's next_n query
// tokens pass together, so that a key is read once. Tiles of `keys` keys come by cp.async in a
// ring of `stages`; pages that are none are not followed, and their keys' logits are -inf. Domains
// and launch: mma_sync.yaml.
#include "device/mqa_scaled.cuh"
#include "mqa_logits_paged/schedule.cuh"

struct Config {
    int heads, next_n;
    bool e2m1;   // q and keys; else e4m3
    bool scaled; // of e2m1: by block-scaled products
    bool out_f32;
    int align;     // bytes that bases, rows of q and pages are multiples of
    int keys;      // of a tile
    int warp_keys; // 16 or 32
    int split;     // keys of a unit of work
    int stages;
    int residency; // CTAs of an SM that registers are kept for
};

template <Config C> struct Shape {
    static constexpr int kDims = 128, kRow = C.e2m1 ? 64 : 128;
    static constexpr int kThreads = C.keys / C.warp_keys * 32;
    static constexpr int kColumns = C.next_n * C.heads;
    static constexpr int kGroups = C.keys / 32; // of keys that share a page
    static constexpr int kStage = C.keys * (kRow + 4);
    // behind queries, weights and scales of queries
    static constexpr int kScales = kColumns * (kRow + 4);
    static constexpr int kRing = kScales + (C.scaled ? kColumns * 4
                                            : C.e2m1 ? kColumns * kDims / 8
                                                     : 0);
    static constexpr int kPages = kRing + C.stages * kStage; // of each stage's groups

    static_assert(C.warp_keys == 16 || C.warp_keys == 32, "warp_keys: one or two of mma's rows");
    static_assert(C.keys % 32 == 0 && C.split % C.keys == 0, "split: whole tiles");
    static_assert(C.stages >= 2 && kGroups <= kThreads, "stages: one is read while others come");
    using Held = typename HeldOrScaled<C.scaled, C.e2m1, kDims, C.warp_keys / 16>::Type;
    using CopyQueries = TileCopy<kColumns, kRow, kThreads, C.align>;
};

// Where a request's keys lie.
struct Cache {
    const u8 *base;
    const i32 *table; // the request's
    i64 pages, page_stride;
    i32 page_shift, scales_at;

    // Of key j; negative: none.
    __device__ __forceinline__ i64 page_of(i32 j) const
    {
        const i32 page = table[j >> page_shift];
        return u32(page) < u64(pages) ? page : -1;
    }
};

// Keys [first, first + keys) into a stage; those from `past` on and of pages that are none are
// zeros. `pages` receives whether each 32 of them have a page.
template <Config C>
__device__ __forceinline__ void load_tile(u32 stage, i32 *pages, const Cache &cache, i32 first,
                                          i32 past)
{
    using S = Shape<C>;
    constexpr int kChunks = S::kRow / 16, kStep = S::kThreads / kChunks;
    const i32 chunk = i32(threadIdx.x % kChunks), mask = (1 << cache.page_shift) - 1;
#pragma unroll 4
    for (int t = 0; t < C.keys / kStep; t++) {
        const i32 row = t * kStep + i32(threadIdx.x / kChunks), j = first + row;
        const i64 page = j < past ? cache.page_of(j) : -1;
        const u8 *const from = cache.base + page * cache.page_stride + (j & mask) * S::kRow;
        copy_chunk<C.align, 16>(stage + tile_offset<S::kRow>(row, chunk),
                                page >= 0 ? from + chunk * 16 : cache.base, page >= 0 ? 16 : 0);
    }
    for (i32 row = i32(threadIdx.x); row < C.keys; row += S::kThreads) {
        const i32 j = first + row;
        const i64 page = j < past ? cache.page_of(j) : -1;
        const u8 *const from =
            cache.base + page * cache.page_stride + cache.scales_at + (j & mask) * 4;
        async_copy<4>(stage + C.keys * S::kRow + row * 4, page >= 0 ? from : cache.base, page >= 0);
        if (row % 32 == 0) {
            pages[row / 32] = page >= 0;
        }
    }
}

// What a CTA does of one request: keys [from, past).
template <Config C, typename Out>
__device__ __forceinline__ void score_request(u8 *shared, const Cache &cache, const i32 *lengths,
                                              Out *logits, i64 stride, i32 width, i32 from,
                                              i32 past)
{
    using S = Shape<C>;
    constexpr int kHigh = C.warp_keys / 16;
    const u32 base = shared_address(shared);
    const float *const weight = reinterpret_cast<const float *>(shared + S::kColumns * S::kRow);
    const float *const scales = reinterpret_cast<const float *>(shared + S::kScales);
    const u32 *const words = reinterpret_cast<const u32 *>(shared + S::kScales);
    i32 *const pages = reinterpret_cast<i32 *>(shared + S::kPages);
    const i32 tiles = ceil_div(past - from, C.keys);
    const auto load = [&](i32 tile) {
        if (tile < tiles) {
            const i32 slot = tile % C.stages;
            load_tile<C>(base + S::kRing + slot * S::kStage, pages + slot * S::kGroups, cache,
                         from + tile * C.keys, past);
        }
        async_commit(); // also when empty: async_wait counts groups
    };
    for (int s = 0; s < C.stages - 1; s++) {
        load(s);
    }
    const i32 warp_first = i32(threadIdx.x) / 32 * C.warp_keys, mine = warp_first + own_key();
    const bool stores = threadIdx.x % 4 < 2 * kHigh;
    for (i32 tile = 0; tile < tiles; tile++) {
        async_wait<C.stages - 2>();
        __syncthreads(); // this tile is in place, and all warps are done with the one before
        load(tile + C.stages - 1);
        const i32 slot = tile % C.stages, stage = S::kRing + slot * S::kStage;
        const i32 key = from + tile * C.keys + mine;
        const void *const of_keys = shared + stage + C.keys * S::kRow;
        typename S::Held held;
        float scale = C.scaled ? 1.0f : kNibblesScale;
        if constexpr (C.e2m1) {
            held.load(base + stage + warp_first * S::kRow,
                      static_cast<const u32 *>(of_keys) + warp_first);
        } else {
            held.load(base + stage + warp_first * S::kRow);
            scale = stores ? static_cast<const float *>(of_keys)[mine] : 0.0f;
        }
        const bool there = pages[slot * S::kGroups + warp_first / 32] != 0;
#pragma unroll 1
        for (int t = 0; t < C.next_n; t++) {
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
            const float x = there ? own_sum<kHigh>(sum) * scale : minus_infinity();
            if (stores && key < min(lengths[t], width)) {
                store_logit(logits + t * stride + key, x);
            }
        }
    }
    async_wait<0>();
    __syncthreads(); // before the next request's queries take their place
}

template <Config C>
__global__ void __launch_bounds__(Shape<C>::kThreads, C.residency)
    mqa_logits_paged_mma_sync(const u8 *__restrict__ q, const u32 *__restrict__ q_scale,
                              const u8 *__restrict__ cache, const float *__restrict__ weights,
                              const i32 *__restrict__ lengths, const i32 *__restrict__ table,
                              void *to, i32 batch, i32 width, i64 stride, i64 pages,
                              i64 page_stride, i64 table_stride, i32 page_shift, i32 scales_at)
{
    using S = Shape<C>;
    using Out = typename ElementOf<C.out_f32 ? F32 : BF16>::Type;
    extern __shared__ __align__(128) u8 shared[];
    const u32 base = shared_address(shared);
    const Requests<C.next_n, C.split> requests = {lengths, batch, width};
    Share share = share_of(requests);
    while (share.units > 0) {
        const i32 request = share.request, keys = requests.keys(request);
        const i64 run = min(i64(ceil_div(keys, C.split)) - share.split, share.units);
        if (run > 0) {
            const i64 row = i64(request) * C.next_n;
            const typename S::CopyQueries copy = {q + row * C.heads * S::kRow, S::kRow, S::kColumns,
                                                  S::kRow};
            copy.load(base, 0);
            copy_numbers<S::kThreads>(base + S::kColumns * S::kRow, weights + row * C.heads,
                                      S::kColumns, S::kColumns);
            if constexpr (C.scaled) {
                copy_numbers<S::kThreads>(base + S::kScales, q_scale + row * C.heads, S::kColumns,
                                          S::kColumns);
            } else if constexpr (C.e2m1) {
                expand_scales<S::kDims, S::kThreads>(reinterpret_cast<float *>(shared + S::kScales),
                                                     q_scale + row * C.heads, S::kColumns,
                                                     S::kColumns);
            }
            const Cache of = {
                cache, table + request * table_stride, pages, page_stride, page_shift, scales_at};
            const i32 from = share.split * C.split;
            score_request<C>(shared, of, lengths + row, static_cast<Out *>(to) + row * stride,
                             stride, width, from, i32(min(i64(keys), from + run * C.split)));
            share.units -= run;
        }
        share.request++;
        share.split = 0;
    }
}
