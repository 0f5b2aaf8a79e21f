// async_copy.cuh - cp.async: global to shared memory past the registers, in groups that are waited for in order.
#pragma once
#include "device/types.cuh"

__device__ __forceinline__ u32 shared_address(const void *p)
{
    return u32(__cvta_generic_to_shared(p));
}

// 16 bytes, or 16 zeros when `valid` is false; `from` must be a legal address even then.
__device__ __forceinline__ void async_copy16(u32 to, const void *from, bool valid)
{
    const u32 bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Until at most `Pending` of this thread's groups are still on their way.
template <int Pending>
__device__ __forceinline__ void async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
