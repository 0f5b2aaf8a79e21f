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

// What this warpgroup has of a tile in shared memory: keys of e4m3 stay there until they are
// multiplied, e2m1 goes to registers.
template <Config C> struct HeldTile {
    using S = Shape<C>;
    NibbleRows<S::kDims> rows;
    u64 keys;
    float scale; // of the key whose scores this thread stores
    bool there;  // that its page is one

    __device__ __forceinline__ void load(const u8 *shared, i32 stage)
    {
        const u32 codes = shared_address(shared) + stage * S::kKeyBytes;
        const u8 *const scales = shared + S::kScalesAt + stage * (S::kKeys * 4);
        const i32 own = i32(threadIdx.x) / 128 * 64, mine = own + score_key();
        const u32 pages = reinterpret_cast<const u32 *>(shared + S::kPagesAt)[stage];
        there = pages >> (mine / C.box) & 1;
        if constexpr (C.e2m1) {
            rows.load(codes, reinterpret_cast<const u32 *>(scales), own);
            scale = kNibblesScale;
        } else {
            keys = wgmma_operand(codes + own * S::kDims);
            scale = reinterpret_cast<const float *>(scales)[mine];
        }
    }
};

// A tile's scores by this warpgroup, once the tile is there; `first`: its first key's number.
// logits: of the request's first row.
template <Config C, typename Out>
__device__ __forceinline__ void score_tile(const u8 *shared, i32 stage, i32 slot, i32 first,
                                           const Job<C> &job, Out *logits, i64 stride)
{
    using S = Shape<C>;
    const Barriers<C> barriers = {shared_address(shared)};
    const i32 key = first + i32(threadIdx.x) / 128 * 64 + score_key();
    const u64 queries = wgmma_operand(barriers.base + S::kQueriesAt + slot * S::kQueryBytes);
    const i32 column = i32(threadIdx.x % 4) * 2;
    const float *const weight =
        reinterpret_cast<const float *>(shared + S::kWeightsAt + slot * S::kWeightBytes) + column;
    const float *const scales =
        reinterpret_cast<const float *>(shared + S::kQueryScalesAt + slot * S::kQueryScaleBytes) +
        column;
    Out *const to = logits + key;
    HeldTile<C> held;
    held.load(shared, stage);
    if constexpr (C.e2m1) {
        warp_arrive(barriers.free(stage));
    }
#pragma unroll 1
    for (int t = 0; t < C.next_n; t += C.unit) {
        ScorePart<C.heads, C.unit> part;
        const u64 columns = queries + (t * C.heads * S::kDims >> 4);
        if constexpr (C.e2m1) {
            nibble_products<S::kDims, C.joint, S::kColumns>(part, held.rows, columns,
                                                            scales + t * C.heads);
        } else {
            score_products<S::kDims>(part, held.keys, columns);
            if (t + C.unit == C.next_n) {
                warp_arrive(barriers.free(stage));
            }
        }
        score_unit<C.heads, C.unit>(part, weight + t * C.heads, [&](int of, float sum) {
            if (key < job.lengths[t + of]) {
                store_logit(to + (t + of) * stride,
                            held.there ? sum * held.scale : minus_infinity());
            }
        });
    }
}

template <Config C, typename Out>
__device__ __forceinline__ void score_all(const u8 *shared, Out *logits, i64 stride)
{
    using S = Shape<C>;
    const Barriers<C> barriers = {shared_address(shared)};
    const Job<C> *const jobs = reinterpret_cast<const Job<C> *>(shared + S::kJobsAt);
    Turn<C.stages> tile;
    Turn<C.slots> slot;
    for (;; slot.advance()) {
        barrier_wait<false>(barriers.asked(slot.place), slot.parity);
        const Job<C> &job = jobs[slot.place];
        const i32 from = job.from, past = job.past;
        if (from < 0) {
            break;
        }
        Out *const row = logits + i64(job.request) * C.next_n * stride;
        for (i32 first = from; first < past; first += S::kKeys, tile.advance()) {
            barrier_wait<false>(barriers.full(tile.place), tile.parity);
            score_tile<C>(shared, tile.place, slot.place, first, job, row, stride);
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
                                const i32 *__restrict__ lengths, const i32 *__restrict__ table,
                                void *to, i32 batch, i32 width, i64 stride, i32 pages,
                                i64 table_stride, i32 page_shift)
{
    using Out = typename ElementOf<C.out_f32 ? F32 : BF16>::Type;
    extern __shared__ __align__(1024) u8 shared[];
    if (threadIdx.x == 0) {
        Barriers<C>{shared_address(shared)}.init();
    }
    __syncthreads();
    if (__shfl_sync(0xffffffffu, i32(threadIdx.x) / 128, 0) == C.groups) {
        const Cache cache = {&keys_map, &scales_map, table, table_stride, pages, page_shift};
        load_all<C>(shared, {&q_map, &weights_map, q, q_scale}, cache, {lengths, batch, width});
    } else {
        score_all<C>(shared, static_cast<Out *>(to), stride);
    }
}
