// cluster_words.cuh - words of another CTA's shared memory, in a cluster. cluster_sync orders them.
#pragma once
#include "device/async_copy.cuh"

// At the same offset in the CTA of that rank.
__device__ __forceinline__ u32 cluster_word(const u32 *own, u32 rank)
{
    u32 x;
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %1, %2;\n"
                 "ld.shared::cluster.u32 %0, [remote];\n"
                 "}"
                 : "=r"(x)
                 : "r"(shared_address(own)), "r"(rank)
                 : "memory");
    return x;
}

// Some of them, one behind the other: 2, or a multiple of 4 at a multiple of 16 bytes.
template <int N>
__device__ __forceinline__ void cluster_words(u32 (&x)[N], const u32 *own, u32 rank)
{
    static_assert(N == 2 || N % 4 == 0, "8 bytes, or 16 at once");
    u32 remote;

    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(remote)
        : "r"(shared_address(own)), "r"(rank));
    if constexpr (N == 2) {
        asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];"
                     : "=r"(x[0]), "=r"(x[1])
                     : "r"(remote)
                     : "memory");
    } else {
#pragma unroll
        for (int i = 0; i < N; i += 4) {
            asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(x[i]), "=r"(x[i + 1]), "=r"(x[i + 2]), "=r"(x[i + 3])
                         : "r"(remote + 4 * i)
                         : "memory");
        }
    }
}

__device__ __forceinline__ void cluster_put(u64 *own, u32 rank, u64 x)
{
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "st.shared::cluster.u64 [remote], %2;\n"
                 "}" ::"r"(shared_address(own)),
                 "r"(rank), "l"(x)
                 : "memory");
}
