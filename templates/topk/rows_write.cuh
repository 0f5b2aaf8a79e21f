// rows_write.cuh - what was chosen, in order: by index from a bitmap of the part, which has no
// trace of the order in which bits were set; by score, or of rows too long for a bitmap, with a
// network that sorts.
#pragma once
#include "topk/rows_select.cuh"

// The candidates of a list that reach a bound.
template <Config C, bool Merges, typename Out> struct Chosen {
    static constexpr int kCluster = Merges ? 1 : C.cluster;

    const Row<C, Merges> &row;
    Shared<C> &s;
    const u64 *list;
    u32 *work; // the bitmap
    Out *out;  // of the row
    u32 k;
    i32 first, units; // of the part
    u64 from;
    u32 held; // in the list

    __device__ __forceinline__ void by_index() const
    {
        const i32 words = (units * Row<C, Merges>::kUnit + 31) / 32, base = row.index(first, 0);
        const i32 run = (words + C.threads - 1) / C.threads * 32; // words of a warp
        const i32 begin = min(run * i32(threadIdx.x / 32), words), end = min(begin + run, words);
        const i32 lane = i32(threadIdx.x % 32);
        u32 own = 0, all = 0, total = 0;

#pragma unroll 1
        for (i32 i = threadIdx.x; i < words; i += C.threads) {
            work[i] = 0;
        }
        __syncthreads();
#pragma unroll 1
        for (u32 i = threadIdx.x; i < held; i += C.threads) {
            if (list[i] >= from) {
                const u32 bit = u32(candidate_index(list[i]) - base);
                atomicOr(work + bit / 32, 1u << bit % 32);
            }
        }
        __syncthreads();
#pragma unroll 1
        for (i32 w = begin + lane; w < end; w += 32) {
            own += u32(__popc(work[w]));
        }
        u32 at = warps_before<C>(s, warp_sum(own), all);
        at += ranks_before<C>(s, all, total);
#pragma unroll 1
        for (i32 w = begin; w < end; w += 32) {
            u32 bits = w + lane < end ? work[w + lane] : 0;
            const u32 own_bits = u32(__popc(bits)), up_to = lanes_up_to(own_bits);
#pragma unroll 1
            for (u32 to = at + up_to - own_bits; bits != 0; bits &= bits - 1, to++) {
                put(to, base + (w + lane) * 32 + __ffs(i32(bits)) - 1);
            }
            at += __shfl_sync(0xffffffffu, up_to, 31);
        }
        fill(total);
    }

    // An index; a part's choice has its score beside it, so that who merges need not look.
    __device__ __forceinline__ void put(u32 to, i32 candidate) const
    {
        if constexpr (sizeof(Out) == sizeof(u64)) {
            out[to] = candidate_of(order_key(row.score_of(candidate)), candidate);
        } else {
            out[to] = row.written(candidate);
        }
    }

    // -1 behind the last one, or no candidate, by the first CTA.
    __device__ __forceinline__ void fill(u32 total) const
    {
        if (kCluster == 1 || cluster_rank() == 0) {
#pragma unroll 1
            for (u32 i = total + threadIdx.x; i < k; i += C.threads) {
                out[i] = sizeof(Out) == sizeof(u64) ? 0 : -1;
            }
        }
    }

    // What a network sorts: by score a candidate as it is, by index with its halves exchanged.
    __device__ __forceinline__ static u64 turned(u64 candidate)
    {
        return C.sort == BY_SCORE ? candidate : candidate << 32 | candidate >> 32;
    }

    // The first CTA gets all that are chosen, in place of its list, and sorts them: by score, or by
    // index where no bitmap has room.
    __device__ __forceinline__ void by_network() const
    {
        constexpr int kOwn = C.list / C.threads;
        static_assert(kOwn <= 8, "list: a thread keeps its part in registers");
        u64 *chosen = const_cast<u64 *>(list), kept[kOwn];
        u32 size = 2, own = 0, all = 0, total = 0;

        while (size < k) {
            size *= 2;
        }
#pragma unroll
        for (int n = 0; n < kOwn; n++) {
            const u32 i = u32(n * C.threads) + threadIdx.x;
            kept[n] = i < held && list[i] >= from ? list[i] : 0;
            own += kept[n] != 0 ? 1 : 0;
        }
        u32 at = sum_before<C>(s, own, all); // all of the CTA have read
        at += ranks_before<C>(s, all, total);
#pragma unroll
        for (int n = 0; n < kOwn; n++) {
            if (kept[n] != 0) {
                if constexpr (kCluster > 1) {
                    cluster_put(chosen + at++, 0, turned(kept[n]));
                } else {
                    chosen[at++] = turned(kept[n]);
                }
            }
        }
        sync_all<C>();
        if (kCluster > 1 && cluster_rank() != 0) {
            return;
        }
#pragma unroll 1
        for (u32 i = total + threadIdx.x; i < size; i += C.threads) {
            chosen[i] = 0;
        }
        sort(chosen, size);
#pragma unroll 1
        for (u32 i = threadIdx.x; i < total; i += C.threads) {
            out[i] = row.written(candidate_index(turned(chosen[i])));
        }
        fill(total);
    }

    // Descending, by a bitonic network.
    __device__ __forceinline__ void sort(u64 *x, u32 size) const
    {
#pragma unroll 1
        for (u32 run = 2; run <= size; run *= 2) {
#pragma unroll 1
            for (u32 step = run / 2; step > 0; step /= 2) {
                __syncthreads(); // each step has its pairs
#pragma unroll 1
                for (u32 i = threadIdx.x; i < size / 2; i += C.threads) {
                    const u32 low = i / step * step * 2 + i % step, high = low + step;
                    const bool falls = (low & run) == 0;
                    const u64 a = x[low], b = x[high];
                    if ((a < b) == falls) {
                        x[low] = b;
                        x[high] = a;
                    }
                }
            }
        }
        __syncthreads();
    }
};
