// rows.cu - index[r, :] = the k best scores of a row (docs/kernels/indexer.md), read once.
//
// A sample of the row gives a bound that rather more than k candidates reach. One walk over the row
// puts those in a list in shared memory; the k-th best of the list is then found exactly. Where the
// list has no room for all, or too few reach the bound, the bound is made exact by histograms of
// the whole row, and the row is walked again: nothing is dropped. The list has no order, and none
// shows: indices are written from a bitmap, or sorted with their scores. A cluster shares a row;
// parts of rows, chosen from apart, are merged by a second launch. Domains and launch: rows.yaml.
#include "topk/rows_select.cuh"
#include "topk/rows_write.cuh"

// The part of a row that a CTA walks, and its list.
template <Config C, bool Merges> struct Work {
    using R = Row<C, Merges>;
    static constexpr int kCluster = Merges ? 1 : C.cluster;
    static constexpr int kSampled = 2;                              // units of a thread
    static constexpr int kSample = C.threads * kSampled * R::kUnit; // candidates
    static constexpr int kFew = 4;                                  // hits of a lane
    static constexpr u32 kLost = 1 << 24; // stands for more than a list has room for
    static_assert(C.threads % 32 == 0 && C.threads >= 128 && C.threads <= 1024, "threads: warps");
    static_assert(is_pow2(C.list) && C.list >= C.threads, "list: a power of two");
    static_assert(C.cluster == 1 || C.parts == 1, "parts: of rows that no cluster shares");

    R row;
    Shared<C> &s;
    u64 *list;
    u32 *work; // behind the list: a bitmap of the part
    u32 k;
    i32 each;         // units of a part, the last ones but fewer
    i32 first, units; // of this part

    __device__ __forceinline__ i32 stop() const
    {
        return first + units;
    }

    __device__ __forceinline__ u64 candidate(i32 unit, float x, u32 there, int i) const
    {
        const i32 index = row.index(unit, i % R::kUnit);
        return there >> i & 1 ? candidate_of(order_key(x), index) : 0;
    }

    // What select goes through: some or all units of the part; the list.
    struct Walked {
        const Work &w;
        i32 from, stop, step;

        template <typename Take> __device__ __forceinline__ void each(Take take) const
        {
#pragma unroll 1
            for (i32 u = from; u < stop; u += step) {
                float x[R::kUnit];
                const u32 there = w.row.template read<1>(u, 0, w.stop(), x);
#pragma unroll
                for (int i = 0; i < R::kUnit; i++) {
                    take(w.candidate(u, x[i], there, i));
                }
            }
        }
    };
    struct Listed {
        const u64 *list;
        u32 held;

        template <typename Take> __device__ __forceinline__ void each(Take take) const
        {
#pragma unroll 1
            for (u32 i = threadIdx.x; i < held; i += C.threads) {
                take(list[i]);
            }
        }
    };

    // A bound from a sample of the row, spread over the part, that is rarely out of place. Exact:
    // one that k or more of the row reach, but no more than the list has room for.
    __device__ __forceinline__ u64 bound(bool exact)
    {
        const i32 apart = max(each / kSampled, 1), thread = i32(threadIdx.x);
        const i32 sampled = first + i32(i64(apart) * thread / C.threads);
        const i64 enough = min((k + C.list) / 2, 2 * k + 512); // candidates of the row
        const u32 want = u32(max(enough * kSample / (i64(max(each, 1)) * R::kUnit), 1ll));
        const Walked walked = exact ? Walked{*this, first + thread, stop(), C.threads}
                                    : Walked{*this, sampled, sampled + kSampled * apart, apart};

        return select<C, false>(s, exact ? k : want, exact ? C.list : want + want / 4, walked);
    }

    // What reaches the bound, into the list: in any order, and as far as there is room. How many.
    // Exact: ties at the bound are told apart by index. Else scores alone are compared.
    __device__ __forceinline__ u32 collect(u64 bound, bool exact)
    {
        const i32 lane = i32(threadIdx.x % 32);
        const float least =
            score_of_key(u32(bound >> 32)); // of a key that ends in zeros: above -inf

        if (threadIdx.x == 0) {
            s.count = 0;
        }
        __syncthreads();
        i32 u = first + i32(threadIdx.x); // a warp's lanes go together
        if constexpr (R::kPairs) {
            const u32 twice = least_bf16(least) * 0x00010001u;
            const i32 last = (R::kPairedAhead - 1) * C.threads + 31;
#pragma unroll 1
            for (; !exact && row.whole(u - lane, u - lane + last, stop());
                 u += R::kPairedAhead * C.threads) {
                append_pairs(u, row.paired_hits(u, C.threads, twice));
            }
        }
#pragma unroll 1
        for (; u - lane < stop(); u += R::kAhead * C.threads) {
            float x[R::kBatch];
            u32 hits = 0;
            const u32 there = row.template read<R::kAhead>(u, C.threads, stop(), x);
            if (exact) {
#pragma unroll
                for (int i = 0; i < R::kBatch; i++) {
                    const i32 unit = u + i / R::kUnit * C.threads;
                    hits |= candidate(unit, x[i], there, i) >= bound ? 1u << i : 0;
                }
            } else {
                mark(hits, x, least);
                hits &= there;
            }
            append(u, hits);
        }
        __syncthreads();
#pragma unroll 1
        for (u32 i = threadIdx.x; s.count <= C.list && i < s.count; i += C.threads) {
            const i32 index = i32(reinterpret_cast<const u32 *>(list)[2 * i]);
            list[i] = candidate_of(order_key(row.score_of(index)), index);
        }
        __syncthreads();
        return s.count;
    }

    // Room for a lane's hits: all or none of them, what there is no room for is counted alone.
    __device__ __forceinline__ u32 *room(u32 &hits)
    {
        const u32 own = u32(__popc(i32(hits)));
        const u32 to = own > 0 ? atomicAdd(&s.count, own) : 0;

        hits = to + own <= C.list ? hits : 0;
        return reinterpret_cast<u32 *>(list + to);
    }

    // A lane's hits of a batch, side by side: their indices.
    __device__ __forceinline__ void append(i32 u, u32 hits)
    {
        const i32 base = row.index(u, 0);
        u32 *to = room(hits);

        if (!__any_sync(0xffffffffu, __popc(i32(hits)) > kFew)) {
#pragma unroll 1
            for (; hits != 0; to += 2) {
                const u32 i = take_highest(hits);
                *to = u32(base) + i / R::kUnit * (R::kUnit * C.threads) + i % R::kUnit;
            }
            __syncwarp(); // the next batch is read together
            return;
        }
#pragma unroll
        for (int i = 0; i < R::kBatch; i++) {
            if ((hits & 1u << i) != 0) {
                *to = u32(base + i / R::kUnit * (R::kUnit * C.threads) + i % R::kUnit);
                to += 2;
            }
        }
    }

    // The same of Row::paired_hits.
    __device__ __forceinline__ void append_pairs(i32 u, u32 hits)
    {
        const i32 base = row.index(u, 0);
        u32 *to = room(hits);

#pragma unroll 1
        for (; hits != 0; to += 2) {
            const u32 i = take_highest(hits);
            *to = u32(base) + i % 16 / 4 * (8 * C.threads) + i % 4 * 2 + i / 16;
        }
        __syncwarp(); // the next batch is read together
    }

    // Fills the list with the k best of the row and no more than it has room for. How many, and how
    // many the lists of the cluster have.
    __device__ __forceinline__ u32 gather(u32 &total)
    {
        const i32 most = each * R::kUnit; // the same for the whole cluster
        const bool guessed = most > C.list && most >= 4 * kSample;
        const u64 from = most <= C.list ? 1 : bound(!guessed);
        u32 held = collect(from, !guessed || from >> 32 == 0);

        ranks_before<C>(s, held <= C.list ? held : kLost, total);
        if (total >= kLost || (total < k && from > 1)) { // the same for the whole cluster
            held = collect(bound(true), true);
            ranks_before<C>(s, held, total);
        }
        return held;
    }

    // Where indices go, or what parts chose.
    template <typename Out> __device__ __forceinline__ void run(Out *out)
    {
        constexpr bool kPart = C.parts > 1 && !Merges;
        const bool by_index = C.sort == BY_INDEX || kPart;

        if constexpr (!kPart && !Merges && C.drop == 0 && C.pick != LISTED_BLOCKS) {
            if (by_index && row.len <= i32(k)) { // nothing to choose
#pragma unroll 1
                for (i32 i = threadIdx.x; i < i32(k) && (kCluster == 1 || cluster_rank() == 0);
                     i += C.threads) {
                    out[i] = i < row.len ? row.written(i) : -1;
                }
                return;
            }
        }
        u32 total = 0;
        const u32 held = gather(total);
        const u64 from = total <= k ? 1 : select<C, true>(s, k, k, Listed{list, held});
        const Chosen<C, Merges, Out> chosen{row, s, list, work, out, k, first, units, from, held};
        if constexpr (kPart) {
            chosen.by_index();
        } else if constexpr (C.network == 0) {
            chosen.by_index();
        } else {
            chosen.by_network();
        }
    }
};

// Part `slice` of `slices` of a row.
template <Config C, bool Merges, typename Out>
__device__ __forceinline__ void choose(const Operands<C> &o, Out *out, i64 at, i32 slice,
                                       i32 slices)
{
    extern __shared__ __align__(16) u64 list[];
    __shared__ Shared<C> s;
    const Row<C, Merges> row(o, at);
    const i32 units = row.units(), each = (units + slices - 1) / slices;
    const i32 first = min(slice * each, units);
    Work<C, Merges> w{row,      s,    list,  reinterpret_cast<u32 *>(list + C.list),
                      u32(o.k), each, first, min(each, units - first)};
    w.run(out);
    if constexpr (C.cluster > 1) {
        cluster_sync(); // nobody asks for this CTA's memory any more
    }
}

template <Config C>
__global__ void __launch_bounds__(C.threads, 1024 / C.threads)
    topk_rows(const typename ScoreOf<C.in>::Type *__restrict__ scores,
              const i32 *__restrict__ start, const i32 *__restrict__ end,
              const i32 *__restrict__ list, i32 *__restrict__ index, i64 width, i64 stride, i32 k)
{
    const Operands<C> o{scores, start, end, list, nullptr, width, stride, k};
    const i64 row = blockIdx.x / C.cluster;

    choose<C, false>(o, index + row * k, row, i32(blockIdx.x % C.cluster), C.cluster);
}

template <Config C>
__global__ void __launch_bounds__(C.threads, 1024 / C.threads)
    topk_parts(const typename ScoreOf<C.in>::Type *__restrict__ scores,
               const i32 *__restrict__ start, const i32 *__restrict__ end,
               const i32 *__restrict__ list, u64 *__restrict__ chosen, i64 width, i64 stride, i32 k)
{
    const Operands<C> o{scores, start, end, list, nullptr, width, stride, k};
    const i64 row = blockIdx.x / C.parts;

    choose<C, false>(o, chosen + i64(blockIdx.x) * k, row, i32(blockIdx.x % C.parts), C.parts);
}

template <Config C>
__global__ void __launch_bounds__(C.threads, 1024 / C.threads)
    topk_merge(const typename ScoreOf<C.in>::Type *__restrict__ scores,
               const i32 *__restrict__ start, const i32 *__restrict__ end,
               const i32 *__restrict__ list, const u64 *__restrict__ chosen,
               i32 *__restrict__ index, i64 width, i64 stride, i32 k)
{
    const Operands<C> o{scores, start, end, list, chosen, width, stride, k};

    choose<C, true>(o, index + i64(blockIdx.x) * k, blockIdx.x, 0, 1);
}
