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

// A bit where a score is large enough. Two instructions; the compiler makes three.
__device__ __forceinline__ void mark(u32 &hits, float x, float least, u32 bit)
{
    asm("{\n"
        ".reg .pred enough;\n"
        "setp.ge.f32 enough, %1, %2;\n"
        "@enough or.b32 %0, %0, %3;\n"
        "}"
        : "+r"(hits)
        : "f"(x), "f"(least), "r"(bit));
}

// The part of a row that a CTA walks, and its list.
template <Config C, bool Merges> struct Work {
    using R = Row<C, Merges>;
    static constexpr int kCluster = Merges ? 1 : C.cluster;
    static constexpr int kSampled = 2;                              // units of a thread
    static constexpr int kSample = C.threads * kSampled * R::kUnit; // candidates
    static constexpr u32 kFew = 4;                                  // hits of a lane
    static_assert(C.threads % 32 == 0 && C.threads >= 128 && C.threads <= 1024, "threads: warps");
    static_assert(is_pow2(C.list) && C.list >= C.threads, "list: a power of two");
    static_assert(C.cluster == 1 || C.parts == 1, "parts: of rows that no cluster shares");

    R row;
    Shared<C> &s;
    u64 *list;
    u32 *work; // behind the list: a bitmap of the part, or what is sorted
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

        return select<C>(s, exact ? k : want, exact ? C.list : want + want / 4, walked);
    }

    // What reaches the bound, into the list: in any order, and as far as there is room. How many.
    // Exact: ties at the bound are told apart by index. Else scores alone are compared.
    __device__ __forceinline__ u32 collect(u64 bound, bool exact)
    {
        const i32 lane = i32(threadIdx.x % 32);
        const float least = score_of_key(u32(bound >> 32));

        if (threadIdx.x == 0) {
            s.count = 0;
        }
        __syncthreads();
#pragma unroll 1
        for (i32 u = first + i32(threadIdx.x); u - lane < stop();
             u += R::kAhead * C.threads) { // a warp's lanes go together
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
#pragma unroll
                for (int i = 0; i < R::kBatch; i++) {
                    mark(hits, x[i], least, 1u << i);
                }
                hits &= there;
            }
            if (__any_sync(0xffffffffu, hits != 0)) {
                append(u, x, hits);
            }
        }
        __syncthreads();
#pragma unroll 1
        for (u32 i = threadIdx.x; s.count <= C.list && i < s.count; i += C.threads) {
            const uint2 raw = reinterpret_cast<const uint2 *>(list)[i];
            list[i] = candidate_of(order_key(__uint_as_float(raw.y)), i32(raw.x));
        }
        __syncthreads();
        return s.count;
    }

    // A warp's hits of a batch, those of a lane side by side: scores and indices as they are. All
    // or none of them: what there is no room for is counted alone.
    __device__ __forceinline__ void append(i32 u, const float (&x)[R::kBatch], u32 hits)
    {
        const u32 own = u32(__popc(hits)), up_to = lanes_up_to(own);
        uint2 *raw = reinterpret_cast<uint2 *>(list);
        u32 at = 0;

        if (threadIdx.x % 32 == 31) {
            at = atomicAdd(&s.count, up_to);
            at = at + up_to <= C.list ? at : u32(C.list);
        }
        at = __shfl_sync(0xffffffffu, at, 31);
        if (at == C.list) {
            return;
        }
        raw += at + up_to - own;
        if (!__any_sync(0xffffffffu, own > kFew)) { // read anew what is close at hand
#pragma unroll 1
            for (; hits != 0; hits &= hits - 1) {
                const i32 i = __ffs(i32(hits)) - 1;
                const i32 index = row.index(u + i / R::kUnit * C.threads, i % R::kUnit);
                const float again = row.score_of(index);
                *raw++ = make_uint2(u32(index), __float_as_uint(again));
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < R::kBatch; i++) {
            if ((hits & 1u << i) != 0) {
                const i32 index = row.index(u + i / R::kUnit * C.threads, i % R::kUnit);
                *raw++ = make_uint2(u32(index), __float_as_uint(x[i]));
            }
        }
    }

    // Fills the list with the k best of the row and no more than it has room for. How many.
    __device__ __forceinline__ u32 gather()
    {
        const i32 most = each * R::kUnit; // the same for the whole cluster
        const bool guessed = most > C.list && most >= 4 * kSample;
        const u64 from = most <= C.list ? 1 : bound(!guessed);
        u32 held = collect(from, !guessed || from >> 32 == 0), total = 0, lost = 0;

        ranks_before<C>(s, held, total);
        ranks_before<C>(s, held > C.list ? 1 : 0, lost);
        if (lost > 0 || (total < k && from > 1)) { // the same for the whole cluster
            held = collect(bound(true), true);
        }
        return held;
    }

    __device__ __forceinline__ void run(i32 *out)
    {
        const bool by_index = C.sort == BY_INDEX || (C.parts > 1 && !Merges);

        if (by_index && !Merges && C.drop == 0 && C.pick != LISTED_BLOCKS && row.len <= i32(k) &&
            C.parts == 1) { // nothing to choose
#pragma unroll 1
            for (i32 i = threadIdx.x; i < i32(k) && (kCluster == 1 || cluster_rank() == 0);
                 i += C.threads) {
                out[i] = i < row.len ? row.written(i) : -1;
            }
            return;
        }
        const u32 held = gather();
        u32 total = 0;
        ranks_before<C>(s, held, total);
        const u64 from = total <= k ? 1 : select<C>(s, k, k, Listed{list, held});
        const Chosen<C, Merges> chosen{row, s, list, work, out, k, first, units, from, held};
        if (by_index) {
            chosen.by_index();
        } else {
            chosen.by_score();
        }
    }
};

// Part `slice` of `slices` of a row.
template <Config C, bool Merges>
__device__ __forceinline__ void choose(const Operands<C> &o, i32 *out, i64 at, i32 slice,
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
               const i32 *__restrict__ list, i32 *__restrict__ chosen, i64 width, i64 stride, i32 k)
{
    const Operands<C> o{scores, start, end, list, nullptr, width, stride, k};
    const i64 row = blockIdx.x / C.parts;

    choose<C, false>(o, chosen + i64(blockIdx.x) * k, row, i32(blockIdx.x % C.parts), C.parts);
}

template <Config C>
__global__ void __launch_bounds__(C.threads, 1024 / C.threads)
    topk_merge(const typename ScoreOf<C.in>::Type *__restrict__ scores,
               const i32 *__restrict__ start, const i32 *__restrict__ end,
               const i32 *__restrict__ list, const i32 *__restrict__ chosen,
               i32 *__restrict__ index, i64 width, i64 stride, i32 k)
{
    const Operands<C> o{scores, start, end, list, chosen, width, stride, k};

    choose<C, true>(o, index + i64(blockIdx.x) * k, blockIdx.x, 0, 1);
}
