// sorted.cuh - the columns of a Hopper product whose rows are e2m1, in shared memory: what the copy
// engine brings is put into the order in which a word's codes become e4m3.
//
// Of each 32 of K the even ones come first, then the odd ones. Columns are few where that is worth
// it, rows are many: what sorting them costs is saved for each 64 rows.
#pragma once
#include "sm90/tile.cuh"

// 32 of K of a column, whose halves lie at `at` and at `at` ^ 16.
__device__ __forceinline__ void sort_bytes(u32 at)
{
    uint4 a, b;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a.x), "=r"(a.y), "=r"(a.z), "=r"(a.w)
                 : "r"(at)
                 : "memory");
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(b.x), "=r"(b.y), "=r"(b.z), "=r"(b.w)
                 : "r"(at ^ 16)
                 : "memory");
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at),
                 "r"(__byte_perm(a.x, a.y, 0x6420)), "r"(__byte_perm(a.z, a.w, 0x6420)),
                 "r"(__byte_perm(b.x, b.y, 0x6420)), "r"(__byte_perm(b.z, b.w, 0x6420))
                 : "memory");
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at ^ 16),
                 "r"(__byte_perm(a.x, a.y, 0x7531)), "r"(__byte_perm(a.z, a.w, 0x7531)),
                 "r"(__byte_perm(b.x, b.y, 0x7531)), "r"(__byte_perm(b.z, b.w, 0x7531))
                 : "memory");
}

// A stage's columns, once the engine has brought them, by so many threads. The columns of the
// operand lie as a tensor map with swizzle 128 leaves them.
template <Config C, int Threads>
__device__ __forceinline__ void sort_columns(const Ring<C> &ring, u32 thread)
{
    using T = Tile<C>;
    const u32 first = ring.base + T::kColumnsAt + ring.stage * T::kColumnBytes +
                      swizzled<128>(thread / 4, thread % 4 * 32);
    barrier_wait<false>(ring.landed(), ring.parity);
#pragma unroll 4
    for (int i = 0; i < T::kColumns * 4; i += Threads) {
        if (T::kColumns * 4 % Threads == 0 || i + i32(thread) < T::kColumns * 4) {
            sort_bytes(first + i * 32); // eight columns or 16 further: the same swizzle
        }
    }
    engine_fence();
}
