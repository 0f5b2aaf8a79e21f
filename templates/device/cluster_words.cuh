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
