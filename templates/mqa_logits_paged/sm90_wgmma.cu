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
#include "mqa_logits_paged/schedule.cuh"
#include "sm90/scores.cuh"

struct Config {
    int heads, next_n;
    bool out_f32;
    int groups; // warpgroups that multiply
    int unit;   // query tokens of a product
    int box;    // keys of a load
    int split;  // keys of a unit of work
    int stages;
    int slots;
    int residency; // CTAs of an SM that registers are kept for
};

// What a warpgroup is told of a request's part: keys [from, past); from < 0: there are no more.
template <Config C> struct Job {
    i32 from, past, request;
    i32 lengths[C.next_n]; // within the row
};

template <Config C> struct Shape {
    static constexpr int kDims = 128, kKeys = C.groups * 64, kThreads = C.groups * 128 + 32;
    static constexpr int kColumns = C.next_n * C.heads;              // heads of all query tokens
    static constexpr int kPart = kColumns / ceil_div(kColumns, 256); // of one load
    static constexpr int kBoxes = kKeys / C.box;
    static constexpr int kKeyBytes = kKeys * kDims, kQueryBytes = kColumns * kDims;
    static constexpr int kWeightBytes = ceil_div(kColumns * 4, 128) * 128;

    // Shared memory, from its beginning.
    static constexpr int kQueriesAt = C.stages * kKeyBytes;
    static constexpr int kScalesAt = kQueriesAt + C.slots * kQueryBytes;
    static constexpr int kWeightsAt = kScalesAt + C.stages * kKeys * 4;
    static constexpr int kJobsAt = kWeightsAt + C.slots * kWeightBytes;
    static constexpr int kPagesAt = kJobsAt + C.slots * int(sizeof(Job<C>)); // bits, of boxes
    static constexpr int kBarriersAt = ceil_div(kPagesAt + C.stages * 4, 8) * 8;

    static_assert(kKeys % C.box == 0 && C.box % 32 == 0 && kBoxes <= 32, "box: parts of a tile");
    static_assert(C.split % kKeys == 0, "split: whole tiles");
    static_assert(C.next_n % C.unit == 0 && C.unit * C.heads <= 256, "unit: parts of next_n");
    static_assert(C.stages >= 2 && C.slots >= 1, "stages: one is read while others come");
};

// Barriers: a stage is full, is free; a slot is.
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
    __device__ __forceinline__ u32 asked(i32 slot) const
    {
        return full(2 * C.stages + slot);
    }
    __device__ __forceinline__ u32 done(i32 slot) const
    {
        return full(2 * C.stages + C.slots + slot);
    }

    __device__ __forceinline__ void init() const
    {
        for (i32 s = 0; s < C.stages; s++) {
            barrier_init(full(s), 1);
            barrier_init(free(s), C.groups * 4);
        }
        for (i32 s = 0; s < C.slots; s++) {
            barrier_init(asked(s), 1);
            barrier_init(done(s), C.groups * 4);
        }
        barrier_init_fence();
    }
};

// Where keys lie.
struct Cache {
    const TensorMap *keys, *scales;
    const i32 *table; // of the first request
    i64 table_stride;
    i32 pages, page_shift;
};

// A request's tiles, of keys [from, past): the loading warp, lane by lane a box.
template <Config C>
__device__ __forceinline__ void load_tiles(u8 *shared, Turn<C.stages> &turn, const Cache &cache,
                                           i32 request, i32 from, i32 past)
{
    using S = Shape<C>;
    constexpr i32 kTilesOfTable = 32 / S::kBoxes; // whose entries a warp holds
    const Barriers<C> barriers = {shared_address(shared)};
    const i32 lane = i32(threadIdx.x % 32), mask = (1 << cache.page_shift) - 1;
    const i32 *const table = cache.table + request * cache.table_stride;
    const auto entry = [&](i32 j) { return j < past ? table[j >> cache.page_shift] : -1; };
    const bool loads = lane < S::kBoxes;
    i32 j = from + lane * C.box, held = -1, next = entry(j);
    for (i32 tile = 0; from + tile * S::kKeys < past; turn.advance(), tile++) {
        const i32 own = tile % kTilesOfTable;
        if (own == 0) {
            held = next;
            j += kTilesOfTable * S::kKeys;
            next = entry(j);
        }
        const i32 page = __shfl_sync(0xffffffffu, held, own * S::kBoxes + lane % S::kBoxes);
        const bool there = u32(page) < u32(cache.pages);
        const u32 pages = __ballot_sync(0xffffffffu, loads && there);
        const u32 full = barriers.full(turn.place);
        barrier_wait<false>(barriers.free(turn.place), turn.parity ^ 1);
        if (lane == 0) {
            reinterpret_cast<u32 *>(shared + S::kPagesAt)[turn.place] = pages;
            barrier_arrive_expect(full, S::kKeyBytes + S::kKeys * 4);
        }
        __syncwarp();
        if (loads) {
            const i32 within = (from + tile * S::kKeys + lane * C.box) & mask;
            const i32 z = there ? page : cache.pages; // outside
            const u32 row = turn.place * S::kKeys + lane * C.box;
            tensor_load(barriers.base + row * S::kDims, cache.keys, full, 0, within, z);
            tensor_load(barriers.base + S::kScalesAt + row * 4, cache.scales, full, within, 0, z);
        }
    }
}

// The loading warp.
template <Config C>
__device__ __forceinline__ void load_all(u8 *shared, const TensorMap *q, const TensorMap *weights,
                                         const Cache &cache, const Requests<C.next_n, C.split> &all)
{
    using S = Shape<C>;
    const Barriers<C> barriers = {shared_address(shared)};
    Job<C> *const jobs = reinterpret_cast<Job<C> *>(shared + S::kJobsAt);
    const i32 lane = i32(threadIdx.x % 32);
    Share share = share_of(all);
    Turn<C.stages> tiles;
    Turn<C.slots> slot;
    for (; share.units > 0; share.request++, share.split = 0) {
        const i32 keys = all.keys(share.request);
        const i64 run = min(i64(ceil_div(keys, C.split)) - share.split, share.units);
        if (run <= 0) {
            continue;
        }
        const i32 from = share.split * C.split, past = i32(min(i64(keys), from + run * C.split));
        Job<C> &job = jobs[slot.place];
        barrier_wait<false>(barriers.done(slot.place), slot.parity ^ 1);
        if (lane < C.next_n) {
            job.lengths[lane] = min(all.lengths[i64(share.request) * C.next_n + lane], all.width);
        }
        __syncwarp();
        if (lane == 0) {
            const u32 asked = barriers.asked(slot.place);
            job.from = from, job.past = past, job.request = share.request;
            barrier_arrive_expect(asked, S::kQueryBytes + S::kColumns * 4);
            for (i32 at = 0; at < S::kColumns; at += S::kPart) {
                tensor_load(barriers.base + S::kQueriesAt + slot.place * S::kQueryBytes +
                                at * S::kDims,
                            q, asked, 0, at, share.request);
                tensor_load(barriers.base + S::kWeightsAt + slot.place * S::kWeightBytes + at * 4,
                            weights, asked, at, 0, share.request);
            }
        }
        __syncwarp();
        load_tiles<C>(shared, tiles, cache, share.request, from, past);
        share.units -= run;
        slot.advance();
    }
    barrier_wait<false>(barriers.done(slot.place), slot.parity ^ 1);
    if (lane == 0) {
        jobs[slot.place].from = -1;
        barrier_arrive(barriers.asked(slot.place));
    }
    __syncwarp();
}

// A tile's scores by this warpgroup, once the tile is there; `first`: its first key's number.
// logits: of the request's first row.
template <Config C, typename Out>
__device__ __forceinline__ void score_tile(const u8 *shared, i32 stage, i32 slot, i32 first,
                                           const Job<C> &job, Out *logits, i64 stride)
{
    using S = Shape<C>;
    const Barriers<C> barriers = {shared_address(shared)};
    const i32 own = i32(threadIdx.x) / 128 * 64, mine = own + score_key(), key = first + mine;
    const u64 keys = wgmma_operand(barriers.base + stage * S::kKeyBytes + own * S::kDims);
    const u64 queries = wgmma_operand(barriers.base + S::kQueriesAt + slot * S::kQueryBytes);
    const float *const weight =
        reinterpret_cast<const float *>(shared + S::kWeightsAt + slot * S::kWeightBytes) +
        threadIdx.x % 4 * 2;
    const float scale =
        reinterpret_cast<const float *>(shared + S::kScalesAt)[stage * S::kKeys + mine];
    const u32 pages = reinterpret_cast<const u32 *>(shared + S::kPagesAt)[stage];
    const bool there = pages >> (mine / C.box) & 1;
    Out *const to = logits + key;
#pragma unroll 1
    for (int t = 0; t < C.next_n; t += C.unit) {
        ScorePart<C.heads, C.unit> part;
        score_products<S::kDims>(part, keys, queries + (t * C.heads * S::kDims >> 4));
        if (t + C.unit == C.next_n) {
            warp_arrive(barriers.free(stage));
        }
        score_unit<C.heads, C.unit>(part, weight + t * C.heads, [&](int of, float sum) {
            if (key < job.lengths[t + of]) {
                store_logit(to + (t + of) * stride, there ? sum * scale : minus_infinity());
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
        load_all<C>(shared, &q_map, &weights_map, cache, {lengths, batch, width});
    } else {
        score_all<C>(shared, static_cast<Out *>(to), stride);
    }
}
