// sort.cu - from a router's topk_ids to the rows of a grouped product: a stable counting sort of
// all entries by expert, every expert's rows padded to a unit.
//
// Every CTA counts all entries (those outside of its own chunk by shared atomics, which only add):
// where experts begin, and what comes before the chunk. The chunk's own ranks are by warp and batch
// of 32, among lanes that match: no order hangs on an atomic. CTAs behind the last chunk only pad.
// Domains and launch: sort.yaml.
#include "device/vector.cuh"
#include "device/warp.cuh"

enum GroupLayout : int { CONTIGUOUS = 1, GROUPS_MASKED = 2, PSUM = 3, GROUPED_K = 4 };

struct Config {
    int layout;  // GroupLayout
    int wide;    // 1: topk_ids are 64 bits each
    int align;   // bytes that operands' bases are multiples of
    int experts; // of this rank
    int unit;    // rows that an expert's begin at multiples of
    int threads; // of a CTA
    int items;   // entries of a thread
};

template <int Wide> struct IdOf {
    using Type = i32;
};
template <> struct IdOf<1> {
    using Type = i64;
};

template <Config C> struct Sort {
    using Id = typename IdOf<C.wide>::Type;
    static constexpr int kWarps = C.threads / 32;
    static constexpr u32 kChunk = C.threads * C.items; // entries of a CTA
    static constexpr int kVec = 16 / int(sizeof(Id));  // of an access
    static constexpr int kAhead = 4;                   // accesses in flight
    static constexpr int kTurns = ceil_div(C.experts, C.threads);
    static constexpr int kRuns = ceil_div(C.experts, 32); // of 32 experts, a warp's at a time

    static_assert(C.threads % 32 == 0 && C.threads <= 1024, "threads: whole warps");
    static_assert(C.items >= 1 && kChunk <= 65535, "items: a chunk's counts fit 16 bits");
    static_assert(C.experts >= 1 && C.experts <= 512, "experts: 1 to 512");

    u32 before[C.experts], behind[C.experts]; // entries of chunks before the CTA's and behind it
    u32 begin[C.experts], held[C.experts];    // first row, and rows
    u32 sums[kRuns], end; // padded rows of 32 experts; the row behind all padding
    u16 own[kWarps][C.experts];               // the chunk's: of a warp, then of those before it
};

// An expert, or -1 for any other value.
template <Config C, typename Id> __device__ __forceinline__ i32 expert_of(Id id)
{
    return u64(i64(id)) < u64(C.experts) ? i32(id) : -1;
}

template <Config C> __device__ __forceinline__ u32 padded(u32 rows)
{
    return (rows + (C.unit - 1)) / C.unit * C.unit;
}

template <Config C> __device__ __forceinline__ void add(u32 *table, typename Sort<C>::Id id)
{
    const i32 expert = expert_of<C>(id);

    if (expert >= 0) {
        atomicAdd(table + expert, 1u);
    }
}

// Entries [from, to) into a table; `from`: a multiple of an access.
template <Config C>
__device__ __forceinline__ void count(const typename Sort<C>::Id *ids, u32 from, u32 to, u32 *table)
{
    using S = Sort<C>;
    constexpr u32 kStep = C.threads * S::kVec;
    const u32 whole = to / S::kVec * S::kVec;

    for (u32 at = from + threadIdx.x * S::kVec; at < whole; at += S::kAhead * kStep) {
        Pack<typename S::Id, S::kVec> in[S::kAhead];
#pragma unroll
        for (int t = 0; t < S::kAhead; t++) {
            if (at + t * kStep < whole) {
                in[t] = pack_load<S::kVec, C.align>(ids + at + t * kStep);
            }
        }
#pragma unroll
        for (int t = 0; t < S::kAhead; t++) {
#pragma unroll
            for (int i = 0; i < S::kVec && at + t * kStep < whole; i++) {
                add<C>(table, in[t].v[i]);
            }
        }
    }
    if (from < to && threadIdx.x < to - whole) {
        add<C>(table, ids[whole + threadIdx.x]);
    }
}

// Where an expert's rows begin before they are cut, and how many they are with their padding.
// Experts of a run of 32 lie in a warp's lanes; `begin` becomes their places within the run.
template <Config C> __device__ __forceinline__ void place_run(Sort<C> &s, i32 expert, u32 rows)
{
    const i32 lane = i32(threadIdx.x) % 32;
    u32 up_to = rows;

#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const u32 more = __shfl_up_sync(0xffffffffu, up_to, step);
        up_to += lane >= step ? more : 0;
    }
    if (expert < C.experts) {
        s.begin[expert] = up_to - rows;
    }
    if (lane == 31 && expert / 32 < Sort<C>::kRuns) {
        s.sums[expert / 32] = up_to;
    }
}

// Each expert's totals: of warps before, of the whole chunk, of all chunks. In `held` how many
// there are, cut later.
template <Config C> __device__ __forceinline__ void total(Sort<C> &s)
{
    using S = Sort<C>;

#pragma unroll
    for (int turn = 0; turn < S::kTurns; turn++) {
        const i32 expert = turn * C.threads + i32(threadIdx.x);
        u32 all = 0;
        if (expert < C.experts) {
#pragma unroll
            for (int w = 0; w < S::kWarps; w++) {
                const u32 own = s.own[w][expert];
                s.own[w][expert] = u16(all);
                all += own;
            }
            all += s.before[expert] + s.behind[expert];
            s.held[expert] = all;
        }
        if constexpr (C.layout != GROUPS_MASKED) {
            place_run<C>(s, expert, padded<C>(all));
        }
    }
}

// Cuts rows at m; the first CTA writes what there is of each expert. Entries without a row.
template <Config C>
__device__ __forceinline__ u32 cut(Sort<C> &s, i32 *groups, i32 *counts, u32 m)
{
    using S = Sort<C>;
    const i32 lane = i32(threadIdx.x) % 32;
    u32 lost = 0;

#pragma unroll
    for (int turn = 0; turn < S::kTurns; turn++) {
        const i32 expert = turn * C.threads + i32(threadIdx.x);
        u32 runs = 0;
        if constexpr (C.layout != GROUPS_MASKED) {
            runs = lanes_sum(lane < expert / 32 && lane < S::kRuns ? s.sums[lane] : 0);
        }
        if (expert < C.experts) {
            const u32 all = s.held[expert];
            const u32 wanted = C.layout == GROUPS_MASKED ? 0 : runs + s.begin[expert];
            const u32 begin = min(wanted, m), held = min(all, m - begin);
            const u32 first = C.layout == GROUPS_MASKED ? u32(expert) * m : begin;
            s.begin[expert] = first;
            s.held[expert] = held;
            if (expert == C.experts - 1) {
                s.end = min(wanted + padded<C>(all), m);
            }
            if (blockIdx.x == 0) {
                lost += all - held;
                counts[expert] = i32(held);
                if constexpr (C.layout != CONTIGUOUS) {
                    groups[expert] = i32(C.layout == PSUM        ? first + held
                                         : C.layout == GROUPED_K ? padded<C>(held)
                                                                 : held);
                }
            }
        }
    }
    return lost;
}

template <Config C> __device__ __forceinline__ void pad(i32 *groups, i32 *source, u32 row)
{
    source[row] = -1;
    if constexpr (C.layout == CONTIGUOUS) {
        groups[row] = -1;
    }
}

// Rows without an entry, shared out over the whole grid.
template <Config C>
__device__ __forceinline__ void pad_all(const Sort<C> &s, i32 *groups, i32 *source, u32 m)
{
    const u32 thread = blockIdx.x * C.threads + threadIdx.x, threads = gridDim.x * C.threads;

    if constexpr (C.layout == GROUPS_MASKED) {
        for (u32 row = thread; row < C.experts * m; row += threads) {
            const u32 expert = row / m;
            if (row - expert * m >= s.held[expert]) {
                pad<C>(groups, source, row);
            }
        }
        return;
    }
    for (u32 expert = thread / 32; expert < C.experts; expert += threads / 32) {
        const u32 stop = expert + 1 < C.experts ? s.begin[expert + 1] : s.end;
        for (u32 row = s.begin[expert] + s.held[expert] + threadIdx.x % 32; row < stop; row += 32) {
            pad<C>(groups, source, row);
        }
    }
    for (u32 row = s.end + thread; row < m; row += threads) {
        pad<C>(groups, source, row);
    }
}

// The chunk's entries of a thread: their experts, and how many of the warp's come before each. What
// is no expert and not -1.
template <Config C>
__device__ __forceinline__ u32 rank_own(Sort<C> &s, const typename Sort<C>::Id *ids, u32 first,
                                        u32 len, i32 (&expert)[C.items], u32 (&rank)[C.items])
{
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 wrong = 0;

#pragma unroll
    for (int i = 0; i < C.items; i++) {
        const u32 entry = first + i * 32;
        const auto id = entry < len ? ids[entry] : typename Sort<C>::Id(-1);
        expert[i] = expert_of<C>(id);
        wrong += expert[i] < 0 && id != -1 ? 1 : 0;
    }
#pragma unroll
    for (int i = 0; i < C.items; i++) {
        const u32 alike = __match_any_sync(0xffffffffu, expert[i]);
        const u32 leader = u32(__ffs(i32(alike))) - 1;
        u32 seen = 0;
        if (lane == leader && expert[i] >= 0) {
            seen = s.own[warp][expert[i]];
            s.own[warp][expert[i]] = u16(seen + u32(__popc(alike)));
        }
        rank[i] = __shfl_sync(0xffffffffu, seen, leader) + u32(__popc(alike & ((1u << lane) - 1)));
        __syncwarp();
    }
    return wrong;
}

template <Config C>
__global__ void __launch_bounds__(C.threads)
    moe_align_sort(const typename Sort<C>::Id *__restrict__ topk_ids, i32 *__restrict__ groups,
                   i32 *__restrict__ source, i32 *__restrict__ place, i32 *__restrict__ counts,
                   u64 *__restrict__ dropped, i32 entries, i32 m)
{
    using S = Sort<C>;
    __shared__ S s;
    const u32 len = u32(entries), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 chunk = blockIdx.x * S::kChunk, first = chunk + warp * (32 * C.items) + lane;
    i32 expert[C.items];
    u32 rank[C.items];

    for (u32 i = threadIdx.x; i < C.experts; i += C.threads) {
        s.before[i] = s.behind[i] = 0;
    }
    for (u32 i = lane; i < C.experts; i += 32) {
        s.own[warp][i] = 0;
    }
    __syncthreads();
    u32 lost = rank_own<C>(s, topk_ids, first, len, expert, rank);
    if (gridDim.x > 1) {
        count<C>(topk_ids, 0, min(chunk, len), s.before);
        count<C>(topk_ids, chunk + S::kChunk, len, s.behind);
    }
    __syncthreads();
    total<C>(s);
    __syncthreads();
    lost += cut<C>(s, groups, counts, C.layout == GROUPED_K ? u32(m) / C.unit * C.unit : u32(m));
    __syncthreads();
#pragma unroll
    for (int i = 0; i < C.items; i++) {
        const u32 entry = first + i * 32;
        if (entry < len) {
            const i32 x = max(expert[i], 0);
            const u32 nth = s.before[x] + s.own[warp][x] + rank[i], row = s.begin[x] + nth;
            const bool has = expert[i] >= 0 && nth < s.held[x];
            place[entry] = has ? i32(row) : -1;
            if (has) {
                source[row] = i32(entry);
                if constexpr (C.layout == CONTIGUOUS) {
                    groups[row] = x;
                }
            }
        }
    }
    pad_all<C>(s, groups, source, u32(m));
    const u32 all = lanes_sum(lost);
    if (all > 0 && lane == 0) {
        atomicAdd(dropped, u64(all));
    }
}
