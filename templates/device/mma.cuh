// mma.cuh - ldmatrix and mma.sync for e4m3: D[16,8] += A[16,32] * B[8,32]^T in fp32. sm_89 and
// later.
//
// Fragments by lane: A and D rows are lane/4 and lane/4 + 8; B and D columns follow from lane/4 and
// lane%4 as the PTX manual has them. A tile in shared memory is rows of `RowBytes` whose 16-byte
// chunks are XORed, so that the eight rows of one ldmatrix phase fall into eight different bank
// groups.
#pragma once
#include "device/types.cuh"

// What a row's chunk numbers are XORed with. It depends on row % 8 alone.
template <int RowBytes> __device__ __forceinline__ u32 tile_swizzle(u32 row)
{
    static_assert(RowBytes == 64 || RowBytes == 128 || RowBytes == 256,
                  "rows of 4, 8 or 16 chunks");
    constexpr u32 kRowsPerLine =
        RowBytes >= 128 ? 1 : 128 / RowBytes; // rows in one pass over the banks
    return (row / kRowsPerLine) & (least(RowBytes / 16, 8) - 1);
}

template <int RowBytes> __device__ __forceinline__ u32 tile_offset(u32 row, u32 chunk)
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
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Chunk that this lane reads of K step `step` (two chunks; `half` of them), as a byte offset.
template <int RowBytes> __device__ __forceinline__ u32 step_chunk(int step, u32 half)
{
    return ((u32(step) * 2 + half) ^ tile_swizzle<RowBytes>(threadIdx.x % 32)) << 4;
}

// B's fragments for one K step of 8 * Tiles columns, which are rows of the tile at `b`; two tiles
// at a time where there are two. The first row is a multiple of eight.
template <int RowBytes, int Tiles>
__device__ __forceinline__ void load_columns(u32 (&fragments)[Tiles][2], u32 b, int step)
{
    const u32 lane = threadIdx.x % 32, chunk = step_chunk<RowBytes>(step, lane / 8 % 2);
    const u32 pair_row = (lane / 16 * 8 + lane % 8) * RowBytes, single_row = lane % 8 * RowBytes;
#pragma unroll
    for (int j = 0; j + 1 < Tiles; j += 2) {
        u32 r[4];
        load_matrix4(r, b + j * 8 * RowBytes + pair_row + chunk);
        fragments[j][0] = r[0], fragments[j][1] = r[1];
        fragments[j + 1][0] = r[2], fragments[j + 1][1] = r[3];
    }
    if constexpr (Tiles % 2 == 1) {
        load_matrix2(fragments[Tiles - 1], b + (Tiles - 1) * 8 * RowBytes + single_row + chunk);
    }
}

// One K step of 16 rows, those at `a`: part += A * B. The first row is a multiple of 16.
template <int RowBytes, int Tiles>
__device__ __forceinline__ void multiply_step(float (&part)[Tiles][4], u32 a,
                                              const u32 (&b)[Tiles][2], int step)
{
    const u32 lane = threadIdx.x % 32;
    u32 fragment[4];
    load_matrix4(fragment, a + lane % 16 * RowBytes + step_chunk<RowBytes>(step, lane / 16));
#pragma unroll
    for (int j = 0; j < Tiles; j++) {
        mma_e4m3(part[j], fragment, b[j]);
    }
}
