// sm90_wgmma.cu - logits of requests' query tokens against keys in a paged cache, for Hopper: an
// indexer's scores while it decodes.
//
// Work is parted by splits of `split` keys of a request, evenly over the grid
// (core/index_schedule.h). One warp finds the CTA's share and has the copy engine fill a ring of
// stages, tiles of 64 keys for each of the warpgroups that multiply, a box for each page or part of
// one; and `slots` of what a request's query tokens need, so that the next request's come
// meanwhile. A request's next_n query tokens pass together, a unit of them in one product. Pages
// that are none are not followed: their box lies outside of the map, which reads zeros, and their
// keys' logits are -inf. Domains and launch: sm90_wgmma.yaml.
#include "mqa_logits_paged/sm90_wgmma_load.cuh"

// What stays of a multiplying thread.
template <Config C> struct Seat {
    u32 base;     // shared address of the kernel's memory
    i32 key;      // of a tile: whose scores it stores
    u32 page_bit; // of its page among a tile's
    NibbleSeat<Shape<C>::kDims> nibbles;

    __device__ __forceinline__ explicit Seat(const u8 *shared)
        : base(shared_address(shared)), key(i32(threadIdx.x) / 128 * 64 + score_key()),
          page_bit(1u << key / C.box), nibbles(i32(threadIdx.x) / 128 * 64)
    {
        hold(base, key, page_bit);
    }
};

// A request's query tokens, as a thread sees them.
template <Config C, typename Out> struct Asked {
    using S = Shape<C>;
    const Job<C> &job;
    u32 codes; // shared address of its queries
    u64 queries;
    const float *weight, *scales; // of this thread's first head
    Out *to;                      // the key's place in the first token's row
    bool wide;

    __device__ __forceinline__ Asked(const u8 *shared, const Seat<C> &seat, i32 slot, Out *logits,
                                     i64 stride)
        : job(reinterpret_cast<const Job<C> *>(shared + S::kJobsAt)[slot]),
          codes(seat.base + S::kQueriesAt + slot * S::kQueryBytes), queries(wgmma_operand(codes)),
          to(logits + i64(job.request) * C.next_n * stride + job.from + seat.key),
          wide(C.e2m1 && job.wide != 0)
    {
        const u32 column = threadIdx.x % 4 * 8;
        const u8 *const own = shared + column;
        weight = reinterpret_cast<const float *>(own + S::kWeightsAt + slot * S::kWeightBytes);
        scales =
            reinterpret_cast<const float *>(own + S::kQueryScalesAt + slot * S::kQueryScaleBytes);
        asm volatile("" : "+l"(queries)::"memory");
    }
};

// A tile's scores by this warpgroup, once the tile is there; `first`: its first key's number.
template <Config C, typename Out>
__device__ __forceinline__ void score_tile(const Seat<C> &seat, i32 stage, i32 first,
                                           const Asked<C, Out> &asked, i64 stride)
{
    using S = Shape<C>;
    const Barriers<C> barriers = {seat.base};
    const u32 codes = seat.base + stage * S::kKeyBytes;
    const u32 words = seat.base + S::kScalesAt + stage * (S::kKeys * 4);
    const bool there = (load_word(seat.base + S::kPagesAt + stage * 4) & seat.page_bit) != 0;
    NibbleRows<S::kDims> rows;
    u64 keys;
    float scale;
    if constexpr (C.e2m1) {
        rows.load(seat.nibbles, codes, words, asked.wide);
        scale = rows.scale;
        if (!rows.wide) {
            warp_arrive(barriers.free(stage));
        }
    } else {
        keys = wgmma_operand(codes + i32(threadIdx.x) / 128 * 64 * S::kDims);
        scale = __uint_as_float(load_word(words + seat.key * 4));
    }
    const auto store = [&](int token, float score) {
        if (first + seat.key < asked.job.lengths[token]) {
            store_logit(asked.to + token * stride, there ? score : minus_infinity());
        }
    };
#pragma unroll 1
    for (int t = 0; t < C.next_n; t += C.unit) {
        ScorePart<C.heads, C.unit> part;
        const u64 columns = asked.queries + (t * C.heads * S::kDims >> 4);
        if constexpr (C.e2m1) {
            nibble_products(part, rows, columns);
        } else {
            score_products<S::kDims>(part, keys, columns);
            if (t + C.unit == C.next_n) {
                warp_arrive(barriers.free(stage));
            }
        }
        score_unit<C.heads, C.unit>(part, asked.weight + t * C.heads,
                                    [&](int of, float sum) { store(t + of, sum * scale); });
    }
    if (C.e2m1 && rows.wide) {
        score_wide<C.heads, S::kDims, S::kColumns>(seat.nibbles, codes, words, asked.codes,
                                                   asked.scales, asked.weight, C.next_n, store);
        warp_arrive(barriers.free(stage));
    }
}

template <Config C, typename Out>
__device__ __forceinline__ void score_all(const u8 *shared, Out *logits, i64 stride)
{
    using S = Shape<C>;
    const Seat<C> seat(shared);
    const Barriers<C> barriers = {seat.base};
    Turn<C.stages> tile;
    Turn<C.slots> slot;
    for (;; slot.advance()) {
        barrier_wait<false>(barriers.asked(slot.place), slot.parity);
        Asked<C, Out> asked(shared, seat, slot.place, logits, stride);
        const i32 from = asked.job.from, past = asked.job.past;
        if (from < 0) {
            break;
        }
        for (i32 first = from; first < past; first += S::kKeys, tile.advance()) {
            barrier_wait<false>(barriers.full(tile.place), tile.parity);
            score_tile<C>(seat, tile.place, first, asked, stride);
            asked.to += S::kKeys;
        }
        warp_arrive(barriers.done(slot.place));
    }
}

template <Config C>
__global__ void __launch_bounds__(Shape<C>::kThreads, C.residency)
    mqa_logits_paged_sm90_wgmma(const __grid_constant__ TensorMap q_map,
                                const __grid_constant__ TensorMap keys_map,
                                const __grid_constant__ TensorMap scales_map,
                                const __grid_constant__ TensorMap weights_map,
                                const u8 *__restrict__ q, const u32 *__restrict__ q_scale,
                                const float *__restrict__ weights, const i32 *__restrict__ lengths,
                                const i32 *__restrict__ table, void *to, i32 batch, i32 width,
                                i64 stride, i32 pages, i64 table_stride, i32 page_shift)
{
    using Out = typename ElementOf<C.out_f32 ? F32 : BF16>::Type;
    extern __shared__ __align__(1024) u8 shared[];
    if (threadIdx.x == 0) {
        Barriers<C>{shared_address(shared)}.init();
    }
    __syncthreads();
    if (__shfl_sync(0xffffffffu, i32(threadIdx.x) / 128, 0) == C.groups) {
        const Cache cache = {&keys_map, &scales_map, table, table_stride, pages, page_shift};
        load_all<C>(shared, {&q_map, &weights_map, {q, q_scale, weights}}, cache,
                    {lengths, batch, width});
    } else {
        score_all<C>(shared, static_cast<Out *>(to), stride);
    }
}
