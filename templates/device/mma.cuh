// mma.cuh - ldmatrix and mma.sync for e4m3: D[16,8] += A[16,32] * B[8,32]^T in fp32. sm_89 and later.
//
// Fragments by lane: A and D rows are lane/4 and lane/4 + 8; B and D columns follow from lane/4 and lane%4 as the PTX
// manual has them. A tile in shared memory is rows of `RowBytes` whose 16-byte chunks are XORed, so that the eight rows
// of one ldmatrix phase fall into eight different bank groups.
#pragma once
#include "device/types.cuh"

// What a row's chunk numbers are XORed with. It depends on row % 8 alone.
template <int RowBytes>
__device__ __forceinline__ u32 tile_swizzle(u32 row)
{
    static_assert(RowBytes == 64 || RowBytes == 128 || RowBytes == 256, "rows of 4, 8 or 16 chunks");
    constexpr u32 kRowsPerLine = RowBytes >= 128 ? 1 : 128 / RowBytes; // rows in one pass over the banks
    return (row / kRowsPerLine) & (least(RowBytes / 16, 8) - 1);
}

template <int RowBytes>
__device__ __forceinline__ u32 tile_offset(u32 row, u32 chunk)
{
    return row * RowBytes + ((chunk ^ tile_swizzle<RowBytes>(row)) << 4);
}

__device__ __forceinline__ void load_matrix4(u32 (&r)[4], u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

__device__ __forceinline__ void load_matrix2(u32 (&r)[2], u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(address));
}

__device__ __forceinline__ void mma_e4m3(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
