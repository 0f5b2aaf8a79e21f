// sm90_wgmma_load.cuh - the config and shared memory of sm90_wgmma.cu, and its loading warp: the
// CTA's share of requests, their queries into slots, tiles of their keys into a ring of stages.
#pragma once
#include "mqa_logits_paged/schedule.cuh"
#include "sm90/nibble_scores.cuh"

struct Config {
    int heads, next_n;
    bool e2m1; // q and keys; else e4m3
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
    i32 wide;              // e2m1: some of its queries have no anchor
    i32 lengths[C.next_n]; // within the row
};

template <Config C> struct Shape {
    static constexpr int kDims = 128, kRow = C.e2m1 ? 64 : 128, kKeys = C.groups * 64,
                         kThreads = C.groups * 128 + 32;
    static constexpr int kColumns = C.next_n * C.heads;              // heads of all query tokens
    static constexpr int kPart = kColumns / ceil_div(kColumns, 256); // of one load
    static constexpr int kBoxes = kKeys / C.box;
    static constexpr int kKeyBytes = kKeys * kRow, kQueryBytes = kColumns * kDims;
    static constexpr int kWeightBytes = ceil_div(kColumns * 4, 128) * 128;
    static constexpr int kQueryScaleBytes = C.e2m1 ? kColumns * kDims / 8 : 0;

    // Shared memory, from its beginning.
    static constexpr int kQueriesAt = C.stages * kKeyBytes;
    static constexpr int kScalesAt = kQueriesAt + C.slots * kQueryBytes;
    static constexpr int kWeightsAt = kScalesAt + C.stages * kKeys * 4;
    static constexpr int kQueryScalesAt = kWeightsAt + C.slots * kWeightBytes;
    static constexpr int kJobsAt = kQueryScalesAt + C.slots * kQueryScaleBytes;
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
            tensor_load(barriers.base + row * S::kRow, cache.keys, full, 0, within, z);
            tensor_load(barriers.base + S::kScalesAt + row * 4, cache.scales, full, within, 0, z);
        }
    }
}

// What query tokens need.
struct Queries {
    const TensorMap *map, *weights;
    NibbleQueries nibbles; // of e2m1
};

// A request's, into a slot: the loading warp.
template <Config C>
__device__ __forceinline__ void load_queries(u8 *shared, i32 slot, const Queries &q, i32 request,
                                             Job<C> &job)
{
    using S = Shape<C>;
    const Barriers<C> barriers = {shared_address(shared)};
    const u32 asked = barriers.asked(slot);
    const u32 to = barriers.base + S::kQueriesAt + slot * S::kQueryBytes;
    if constexpr (C.e2m1) {
        const i64 head = i64(request) * S::kColumns;
        const NibbleQueries from = {q.nibbles.codes + head * S::kRow, q.nibbles.words + head,
                                    q.nibbles.weights + head, S::kColumns};
        u8 *const scales = shared + S::kQueryScalesAt + slot * S::kQueryScaleBytes;
        u8 *const weights = shared + S::kWeightsAt + slot * S::kWeightBytes;
        const bool wide = expand_queries<S::kDims>(
            {to, reinterpret_cast<float *>(scales), reinterpret_cast<float *>(weights)}, from,
            S::kColumns);
        if (threadIdx.x % 32 == 0) {
            job.wide = wide;
        }
        warp_arrive(asked);
    } else if (threadIdx.x % 32 == 0) {
        barrier_arrive_expect(asked, S::kQueryBytes + S::kColumns * 4);
        for (i32 at = 0; at < S::kColumns; at += S::kPart) {
            tensor_load(to + at * S::kDims, q.map, asked, 0, at, request);
            tensor_load(barriers.base + S::kWeightsAt + slot * S::kWeightBytes + at * 4, q.weights,
                        asked, at, 0, request);
        }
    }
    __syncwarp();
}

// The loading warp.
template <Config C>
__device__ __forceinline__ void load_all(u8 *shared, const Queries &q, const Cache &cache,
                                         const Requests<C.next_n, C.split> &all)
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
        if (lane == 0) {
            job.from = from, job.past = past, job.request = share.request;
        }
        __syncwarp();
        load_queries<C>(shared, slot.place, q, share.request, job);
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
