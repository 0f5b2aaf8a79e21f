// block_scale.cuh - sm_120a's mma.sync with a ue8m0 scale for each row, each column and 32 of K:
// D[16,8] += (A[16,32] * SFA) * (B[8,32] * SFB)^T in fp32, operands e4m3 or e2m1.
//
// Fragments lie in lanes as mma.cuh says, tiles in shared memory too: a byte for each element. A
// row of e2m1 has 8 bytes of codes in each 16-byte chunk, and 8 that are not read. A lane's scales
// are words: byte s is of K step s. Of four lanes, two give the words of an m16 tile's rows (lane/4
// and lane/4 + 8), so that one register serves two such tiles; one lane gives those of a column, so
// that one register serves four n8 tiles.
#pragma once
#include "device/mma.cuh"

// Four tiles of 8 rows by 16 of K, or two; lane l gives the address of row l % 8 of tile l / 8.
// Of e2m1 ldmatrix leaves a code in the lowest four bits of its byte, and the unit reads bits 2 to
// 5.
template <bool E2m1> __device__ __forceinline__ void load_bytes(u32 (&r)[4], u32 at)
{
    if constexpr (E2m1) {
        asm volatile("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at));
        r[0] <<= 2, r[1] <<= 2, r[2] <<= 2, r[3] <<= 2;
    } else {
        load_matrix4(r, at);
    }
}

template <bool E2m1> __device__ __forceinline__ void load_bytes(u32 (&r)[2], u32 at)
{
    if constexpr (E2m1) {
        asm volatile("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64 {%0,%1}, [%2];"
                     : "=r"(r[0]), "=r"(r[1])
                     : "r"(at));
        r[0] <<= 2, r[1] <<= 2;
    } else {
        load_matrix2(r, at);
    }
}

// The row operand of one K step: 16 rows, those at `tile`.
template <int RowBytes, bool E2m1>
__device__ __forceinline__ void load_sixteen(u32 (&r)[4], u32 tile, int step)
{
    const u32 lane = threadIdx.x % 32;
    load_bytes<E2m1>(r, tile + lane % 16 * RowBytes + step_chunk<RowBytes>(step, lane / 16));
}

// The column operand of one K step: tiles of eight, two at a time where there are two.
template <int RowBytes, bool E2m1, int Tiles>
__device__ __forceinline__ void load_eights(u32 (&fragments)[Tiles][2], u32 tile, int step)
{
    const u32 lane = threadIdx.x % 32;
    const u32 at = tile + lane % 8 * RowBytes + step_chunk<RowBytes>(step, lane / 8 % 2);
#pragma unroll
    for (int j = 0; j + 1 < Tiles; j += 2) {
        u32 r[4];
        load_bytes<E2m1>(r, at + (j + lane / 16) * 8 * RowBytes);
        fragments[j][0] = r[0], fragments[j][1] = r[1];
        fragments[j + 1][0] = r[2], fragments[j + 1][1] = r[3];
    }
    if constexpr (Tiles % 2 == 1) {
        load_bytes<E2m1>(fragments[Tiles - 1], at + (Tiles - 1) * 8 * RowBytes);
    }
}

// Words of scales and which of them the unit takes: of rows those of lanes 2 * pair and 2 * pair +
// 1 of each four, of columns that of lane `one`; of both byte `step`.
struct ScaleChoice {
    u32 rows, columns;
    u16 pair, one, step;
};

template <bool E2m1Rows, bool E2m1Columns>
__device__ __forceinline__ void mma_scaled(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2],
                                           const ScaleChoice &s)
{
#define MMA_SCALED(types)                                                                          \
    asm volatile(                                                                                  \
        "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32." types    \
        ".f32.ue8m0 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, {%10}, {%14,%12}, "      \
        "{%11}, {%14,%13};"                                                                        \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                           \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(s.rows),           \
          "r"(s.columns), "h"(s.pair), "h"(s.one), "h"(s.step))
    if constexpr (E2m1Rows) {
        MMA_SCALED("e2m1.e4m3");
    } else if constexpr (E2m1Columns) {
        MMA_SCALED("e4m3.e2m1");
    } else {
        MMA_SCALED("e4m3.e4m3");
    }
#undef MMA_SCALED
}
