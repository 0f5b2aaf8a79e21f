// tensor_copy.cuh - boxes of a tensor map, copied by the engine between global and shared memory.
//
// Coordinates are of the box's first element, innermost first: along the row, the row, the matrix.
// What lies outside the tensor is read as zeros and not written.
#pragma once
#include "device/types.cuh"

// A CUtensorMap, passed as `const __grid_constant__ TensorMap`.
struct alignas(64) TensorMap {
    char opaque[128];
};

__device__ __forceinline__ void tensor_prefetch(const TensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// A map of bytes that lies in shared memory (a multiple of 128): its matrices' first begins at
// `first`, and their rows are `row` bytes that lie one behind the other. One thread.
__device__ __forceinline__ void tensor_map_rows(u32 map, const void *first, u32 row)
{
    asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(map),
                 "l"(first)
                 : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(map),
                 "r"(row)
                 : "memory");
    asm volatile(
        "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"r"(map),
        "l"(u64(row))
        : "memory");
}

// The whole warp: that map to global memory, where copies find it once it is acquired.
__device__ __forceinline__ void tensor_map_publish(TensorMap *to, u32 map)
{
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync"
                 ".aligned [%0], [%1], 128;" ::"l"(__cvta_generic_to_global(to)),
                 "r"(map)
                 : "memory");
}

// Copies of this thread after it use the map as it was published.
__device__ __forceinline__ void tensor_map_acquire(const TensorMap *map)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

// Counts its bytes on the mbarrier.
__device__ __forceinline__ void tensor_load(u32 to, const TensorMap *map, u32 barrier, i32 x, i32 y,
                                            i32 z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

// Into each CTA of `mask`, at the same offset, with its bytes on the mbarrier at the same offset
// there.
__device__ __forceinline__ void tensor_load_multicast(u32 to, const TensorMap *map, u32 barrier,
                                                      u16 mask, i32 x, i32 y, i32 z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%4, %5, %6}], [%2], %3;" ::"r"(to),
                 "l"(map), "r"(barrier), "h"(mask), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

// Part of the thread's current group.
__device__ __forceinline__ void tensor_store(const TensorMap *map, u32 from, i32 x, i32 y, i32 z)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], "
                 "[%1];" ::"l"(map),
                 "r"(from), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

// Adds fp32 elements to what is there.
__device__ __forceinline__ void tensor_add(const TensorMap *map, u32 from, i32 x, i32 y, i32 z)
{
    asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group "
                 "[%0, {%2, %3, %4}], [%1];" ::"l"(map),
                 "r"(from), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

__device__ __forceinline__ void bulk_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// This thread's groups have read their sources, which may be written again.
__device__ __forceinline__ void bulk_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// This thread's groups are done.
__device__ __forceinline__ void bulk_wait()
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Writes of this thread to shared memory are seen by the engine after it.
__device__ __forceinline__ void engine_fence()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Offset of (row, byte) in rows of Span bytes (16, 32, 64, 128) as a tensor map with that swizzle
// lays them out, from a place that is a multiple of 8 Span: 16-byte pieces are exchanged by bits 7
// and up of the address.
template <int Span> __device__ __forceinline__ u32 swizzled(u32 row, u32 byte)
{
    const u32 at = row * Span + byte;
    return at ^ (at >> 3 & (Span - 16));
}
