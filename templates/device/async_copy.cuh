// async_copy.cuh - cp.async: global to shared memory past the registers, in groups that are waited
// for in order.
#pragma once
#include "device/types.cuh"

__device__ __forceinline__ u32 shared_address(const void *p)
{
    return u32(__cvta_generic_to_shared(p));
}

// Bytes (4, 8 or 16), or as many zeros when `valid` is false; `from` must be a legal address even
// then. Whole 16-byte lines bypass L1, which narrower copies cannot.
template <int Bytes>
__device__ __forceinline__ void async_copy(u32 to, const void *from, bool valid)
{
    const u64 source = __cvta_generic_to_global(from);
    const u32 present = valid ? Bytes : 0;
    if constexpr (Bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(source),
                     "r"(present)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(source),
                     "n"(Bytes), "r"(present)
                     : "memory");
    }
}

__device__ __forceinline__ void async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Until at most `Pending` of this thread's groups are still on their way.
template <int Pending> __device__ __forceinline__ void async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
