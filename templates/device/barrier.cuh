// barrier.cuh - mbarriers, named barriers, clusters, flags and dependent launches: what sm_90 has
// to order the parts of a warp-specialised kernel.
//
// Barriers are named by their shared address (eight bytes, aligned). A wait names the parity of the
// phase that it waits for: 0 the first; waiting for parity 1 of a fresh barrier returns at once.
#pragma once
#include "device/types.cuh"

__device__ __forceinline__ void barrier_init(u32 barrier, u32 arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

// Makes inits visible to the whole cluster and to the copy engine.
__device__ __forceinline__ void barrier_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and has the phase wait for `bytes` of copies too.
__device__ __forceinline__ void barrier_arrive_expect(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

// At the same offset in the CTA of that rank in the cluster.
__device__ __forceinline__ void barrier_arrive_at(u32 barrier, u32 rank)
{
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
                 "}" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}

// Cluster: also sees what other CTAs of the cluster did before they arrived.
template <bool Cluster> __device__ __forceinline__ void barrier_wait(u32 barrier, u32 parity)
{
    if constexpr (Cluster) {
        asm volatile("{\n"
                     ".reg .pred done;\n"
                     "again:\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                     "@done bra come;\n"
                     "bra again;\n"
                     "come:\n"
                     "}" ::"r"(barrier),
                     "r"(parity)
                     : "memory");
    } else {
        asm volatile("{\n"
                     ".reg .pred done;\n"
                     "again:\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                     "@done bra come;\n"
                     "bra again;\n"
                     "come:\n"
                     "}" ::"r"(barrier),
                     "r"(parity)
                     : "memory");
    }
}

// Barrier 0 is __syncthreads.
__device__ __forceinline__ void named_sync(u32 id, u32 threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Shared memory of the whole cluster too.
__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

__device__ __forceinline__ u32 cluster_rank()
{
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// Four floats at the same offset in the CTA of that rank.
__device__ __forceinline__ float4 cluster_load(u32 address, u32 rank)
{
    float4 x;
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];\n"
                 "}"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(address), "r"(rank)
                 : "memory");
    return x;
}

// A word of global memory that one CTA sets and another waits for. The thread that raises it tells
// of all that it saw before, as by a barrier of its CTA.
__device__ __forceinline__ void flag_raise(u32 *flag)
{
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(flag))
                 : "memory");
}

__device__ __forceinline__ void flag_wait(const u32 *flag)
{
    asm volatile("{\n"
                 ".reg .pred up;\n"
                 ".reg .u32 seen;\n"
                 "again:\n"
                 "ld.acquire.gpu.global.u32 seen, [%0];\n"
                 "setp.ne.u32 up, seen, 0;\n"
                 "@up bra come;\n"
                 "bra again;\n"
                 "come:\n"
                 "}" ::"l"(__cvta_generic_to_global(flag))
                 : "memory");
}

// The launch before this one in the stream is done and its writes are seen: comes before the first
// touch of global memory.
__device__ __forceinline__ void grid_wait()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// The next launch of the stream may begin to set up; it still waits for this one's end.
__device__ __forceinline__ void grid_release()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

template <int Registers> __device__ __forceinline__ void registers_raise()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <int Registers> __device__ __forceinline__ void registers_lower()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
