// rows_select.cuh - the n-th best of a set of candidates, by a histogram of the next 11 bits of
// those that are still in question, round after round. Candidates are 64 bits of which no two are
// alike, so that every tie is settled; sums in bins do not depend on the order of additions.
#pragma once
#include "device/barrier.cuh"
#include "device/cluster_words.cuh"
#include "device/warp.cuh"
#include "topk/rows_read.cuh"

constexpr int kDigit = 11, kBins = 1 << kDigit;

// What a CTA keeps beside its list of candidates.
template <Config C> struct Shared {
    alignas(16) u32 bins[kBins];
    u32 sums[32];           // of warps
    u32 alike[4];           // bits that all candidates have, and those that any has
    u32 count, share;       // candidates in the list; what other CTAs of the cluster ask for
    u32 bin, above, inside; // what a round found
};

template <Config C> __device__ __forceinline__ void sync_all()
{
    if constexpr (C.cluster > 1) {
        cluster_sync();
    } else {
        __syncthreads();
    }
}

// The sum of this lane's and of all below it.
__device__ __forceinline__ u32 lanes_up_to(u32 x)
{
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        asm volatile("{\n" // the predicate says whether there is such a lane
                     ".reg .pred below;\n"
                     ".reg .u32 more;\n"
                     "shfl.sync.up.b32 more|below, %0, %1, 0, 0xffffffff;\n"
                     "@below add.u32 %0, %0, more;\n"
                     "}"
                     : "+r"(x)
                     : "r"(step));
    }
    return x;
}

// The sum over the warp, in all of its lanes, by one instruction.
__device__ __forceinline__ u32 warp_sum(u32 x)
{
    return __reduce_add_sync(0xffffffffu, x);
}

// Sums of the warps before this one, of which each gives its own, and of all.
template <Config C> __device__ __forceinline__ u32 warps_before(Shared<C> &s, u32 own, u32 &all)
{
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    if (lane == 0) {
        s.sums[warp] = own;
    }
    __syncthreads();
    const u32 warps = lane < C.threads / 32 ? s.sums[lane] : 0;
    all = warp_sum(warps);
    const u32 before = warp_sum(lane < warp ? warps : 0);
    __syncthreads();
    return before;
}

// Sums of all threads before this one, and of all.
template <Config C> __device__ __forceinline__ u32 sum_before(Shared<C> &s, u32 x, u32 &all)
{
    const u32 up_to = lanes_up_to(x);

    return warps_before<C>(s, __shfl_sync(0xffffffffu, up_to, 31), all) + up_to - x;
}

// What each CTA of the cluster has: of those before this one, and of all.
template <Config C> __device__ __forceinline__ u32 ranks_before(Shared<C> &s, u32 x, u32 &all)
{
    u32 before = 0;

    all = x;
    if constexpr (C.cluster > 1) {
        const u32 rank = cluster_rank();
        if (threadIdx.x == 0) {
            s.share = x;
        }
        cluster_sync();
        all = 0;
#pragma unroll 1
        for (u32 r = 0; r < C.cluster; r++) {
            const u32 other = cluster_word(&s.share, r);
            before += r < rank ? other : 0;
            all += other;
        }
        cluster_sync();
    }
    return before;
}

// In which bin, from the highest on, the `want`-th is: sets bin, above and inside. All in the bins.
template <Config C> __device__ __forceinline__ u32 find_bin(Shared<C> &s, u32 want)
{
    constexpr int kOwn = kBins / C.threads;
    const u32 low = kBins - (threadIdx.x + 1) * kOwn, top = low + kOwn - 1;
    u32 own[kOwn], sum = 0, all = 0; // from the highest on

    if constexpr (C.cluster > 1) {
#pragma unroll
        for (int i = 0; i < kOwn; i++) {
            own[i] = 0;
        }
#pragma unroll 1
        for (u32 r = 0; r < C.cluster; r++) {
            u32 others[kOwn];
            cluster_words<kOwn>(others, s.bins + low, r);
#pragma unroll
            for (int i = 0; i < kOwn; i++) {
                own[i] += others[kOwn - 1 - i];
            }
        }
    } else {
        const auto bins = pack_load<kOwn, 4 * kOwn>(s.bins + low);
#pragma unroll
        for (int i = 0; i < kOwn; i++) {
            own[i] = bins.v[kOwn - 1 - i];
        }
    }
#pragma unroll
    for (int i = 0; i < kOwn; i++) {
        sum += own[i];
    }
    const u32 of_warp = warp_sum(sum);
    u32 above = warps_before<C>(s, of_warp, all);
    if (above < want && want <= above + of_warp) { // one warp at most
        above += lanes_up_to(sum) - sum;
#pragma unroll
        for (int i = 0; i < kOwn; i++) {
            if (above < want && want <= above + own[i]) {
                s.bin = top - i;
                s.above = above;
                s.inside = own[i];
            }
            above += own[i];
        }
    }
    sync_all<C>(); // the bins have been read, the bin is there
    return all;
}

// A candidate that begins as `prefix` does is one more in the bin of its bits from `low` on.
struct Count {
    u32 *bins;
    u64 prefix;
    i32 high, low;

    __device__ __forceinline__ void operator()(u64 c) const
    {
        if (c != 0 && (high == 64 || c >> high == prefix)) {
            atomicAdd(bins + (u32(c >> low) & ((1u << (high - low)) - 1)), 1u);
        }
    }
};

// The bits that all of a set's candidates begin with, which no round need look at: a list has what
// reaches a bound, much of which is alike. Sets prefix; how many bits follow.
template <Config C, typename Set>
__device__ __forceinline__ i32 common_prefix(Shared<C> &s, u64 &prefix, const Set &set)
{
    u64 all = ~0ull, any = 0;

    if (threadIdx.x < 4) {
        s.alike[threadIdx.x] = threadIdx.x < 2 ? ~0u : 0;
    }
    __syncthreads();
    set.each([&](u64 c) {
        all &= c;
        any |= c;
    });
    const u32 both[4] = {
        __reduce_and_sync(0xffffffffu, u32(all)), __reduce_and_sync(0xffffffffu, u32(all >> 32)),
        __reduce_or_sync(0xffffffffu, u32(any)), __reduce_or_sync(0xffffffffu, u32(any >> 32))};
    if (threadIdx.x % 32 == 0) {
        atomicAnd(s.alike, both[0]);
        atomicAnd(s.alike + 1, both[1]);
        atomicOr(s.alike + 2, both[2]);
        atomicOr(s.alike + 3, both[3]);
    }
    sync_all<C>();
    u32 bits[4] = {s.alike[0], s.alike[1], s.alike[2], s.alike[3]};
    if constexpr (C.cluster > 1) {
#pragma unroll 1
        for (u32 r = 0; r < C.cluster; r++) {
            u32 others[4];
            cluster_words<4>(others, s.alike, r);
            bits[0] &= others[0];
            bits[1] &= others[1];
            bits[2] |= others[2];
            bits[3] |= others[3];
        }
        cluster_sync(); // they have been read
    }
    const u64 differ = u64(bits[1] ^ bits[3]) << 32 | (bits[0] ^ bits[2]);
    const i32 high = 64 - __clzll(i64(differ));
    prefix = high < 64 ? (u64(bits[3]) << 32 | bits[2]) >> high : 0;
    return high;
}

// The same in the first round of those that need not begin alike.
struct CountFirst {
    u32 *bins;

    __device__ __forceinline__ void operator()(u64 c) const
    {
        if (c != 0) {
            atomicAdd(bins + (u32(c >> 32) >> (32 - kDigit)), 1u);
        }
    }
};

// A bound that `want` or more candidates reach, but `most` at most; 1, which every candidate
// reaches, where there are fewer than `want`. `set.each(take)` hands over all candidates of a
// thread. Alike: of a set with more than `want` of them, much of which begins alike.
template <Config C, bool Alike, typename Set>
__device__ __forceinline__ u64 select(Shared<C> &s, u32 want, u32 most, const Set &set)
{
    u64 prefix = 0;
    i32 high = 64;

    if constexpr (Alike) {
        high = common_prefix<C>(s, prefix, set);
    }

    for (;;) {
        const i32 low = max(high - kDigit, 0);
        pack_store<16>(s.bins + threadIdx.x * (kBins / C.threads), Pack<u32, kBins / C.threads>{});
        __syncthreads(); // the bins are clear
        if (!Alike && high == 64) {
            set.each(CountFirst{s.bins});
        } else {
            set.each(Count{s.bins, prefix, high, low});
        }
        sync_all<C>();
        if (find_bin<C>(s, want) < want) {
            return 1; // only in the first round
        }
        prefix = prefix << (high - low) | s.bin;
        const u32 inside = s.inside, reach = s.above + inside;
        if (reach <= most || low == 0) {
            const u64 bound = prefix << low;
            return bound > 0 ? bound : 1;
        }
        want -= s.above;
        most -= s.above;
        high = low;
    }
}
