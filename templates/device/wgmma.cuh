// wgmma.cuh - a warpgroup's matrix products: D[64 x N] (+)= A[64 x 32] B[N x 32]^T, e4m3 or e5m2,
// sums in fp32 registers.
//
// Operands are K-major in shared memory, rows of 128 bytes as a tensor map with swizzle 128 leaves
// them (or of 64, 32); A may lie in registers instead. Element d[j][i] of thread t is row
// t / 32 * 16 + t % 32 / 4 + i / 2 * 8, column j * 8 + t % 4 * 2 + i % 2.
#pragma once
#include "device/types.cuh"

// Of K-major rows of Span bytes, with that swizzle: eight rows are 8 Span bytes. `at` is where the
// first row begins, plus the offset of the first of K within the row.
template <int Span = 128> __device__ __forceinline__ u64 wgmma_operand(u32 at)
{
    constexpr u64 kSwizzle = Span == 128 ? 1 : Span == 64 ? 2 : 3;
    return u64((at & 0x3ffff) >> 4) | u64(1) << 16 | u64(8 * Span >> 4) << 32 | kSwizzle << 62;
}

// Before a product whose accumulators this thread touched, or whose operand registers it wrote.
__device__ __forceinline__ void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// All but the last N groups are done.
template <int N> __device__ __forceinline__ void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// Keeps the compiler from moving reads of an accumulator over the wait before; emits nothing.
template <int Tiles> __device__ __forceinline__ void wgmma_hold(float (&d)[Tiles][4])
{
#pragma unroll
    for (int j = 0; j < Tiles; j++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            asm volatile("" : "+f"(d[j][i])::"memory");
        }
    }
}

// wgmma_multiply<Accumulate>(d, a, b): d = A B, or d += A B. `a` and `b` are wgmma_operand's; in the
// second form a[0..3] are this thread's bytes of A: rows r and r + 8 (r = t / 32 * 16 + t % 32 / 4)
// with K t % 4 * 4 + 0..3, then both with K 16 further. wgmma_multiply_e5m2 is that of e5m2.

// clang-format off
// Operand texts and constraints of the first 4, 8, 12 ... accumulators.
#define WGMMA_TEXT_4 "%0, %1, %2, %3"
#define WGMMA_TEXT_8 WGMMA_TEXT_4 ", %4, %5, %6, %7"
#define WGMMA_TEXT_12 WGMMA_TEXT_8 ", %8, %9, %10, %11"
#define WGMMA_TEXT_16 WGMMA_TEXT_12 ", %12, %13, %14, %15"
#define WGMMA_TEXT_20 WGMMA_TEXT_16 ", %16, %17, %18, %19"
#define WGMMA_TEXT_24 WGMMA_TEXT_20 ", %20, %21, %22, %23"
#define WGMMA_TEXT_28 WGMMA_TEXT_24 ", %24, %25, %26, %27"
#define WGMMA_TEXT_32 WGMMA_TEXT_28 ", %28, %29, %30, %31"
#define WGMMA_TEXT_36 WGMMA_TEXT_32 ", %32, %33, %34, %35"
#define WGMMA_TEXT_40 WGMMA_TEXT_36 ", %36, %37, %38, %39"
#define WGMMA_TEXT_44 WGMMA_TEXT_40 ", %40, %41, %42, %43"
#define WGMMA_TEXT_48 WGMMA_TEXT_44 ", %44, %45, %46, %47"
#define WGMMA_TEXT_52 WGMMA_TEXT_48 ", %48, %49, %50, %51"
#define WGMMA_TEXT_56 WGMMA_TEXT_52 ", %52, %53, %54, %55"
#define WGMMA_TEXT_60 WGMMA_TEXT_56 ", %56, %57, %58, %59"
#define WGMMA_TEXT_64 WGMMA_TEXT_60 ", %60, %61, %62, %63"
#define WGMMA_TEXT_68 WGMMA_TEXT_64 ", %64, %65, %66, %67"
#define WGMMA_TEXT_72 WGMMA_TEXT_68 ", %68, %69, %70, %71"
#define WGMMA_TEXT_76 WGMMA_TEXT_72 ", %72, %73, %74, %75"
#define WGMMA_TEXT_80 WGMMA_TEXT_76 ", %76, %77, %78, %79"
#define WGMMA_TEXT_84 WGMMA_TEXT_80 ", %80, %81, %82, %83"
#define WGMMA_TEXT_88 WGMMA_TEXT_84 ", %84, %85, %86, %87"
#define WGMMA_TEXT_92 WGMMA_TEXT_88 ", %88, %89, %90, %91"
#define WGMMA_TEXT_96 WGMMA_TEXT_92 ", %92, %93, %94, %95"
#define WGMMA_TEXT_100 WGMMA_TEXT_96 ", %96, %97, %98, %99"
#define WGMMA_TEXT_104 WGMMA_TEXT_100 ", %100, %101, %102, %103"
#define WGMMA_TEXT_108 WGMMA_TEXT_104 ", %104, %105, %106, %107"
#define WGMMA_TEXT_112 WGMMA_TEXT_108 ", %108, %109, %110, %111"
#define WGMMA_TEXT_116 WGMMA_TEXT_112 ", %112, %113, %114, %115"
#define WGMMA_TEXT_120 WGMMA_TEXT_116 ", %116, %117, %118, %119"
#define WGMMA_TEXT_124 WGMMA_TEXT_120 ", %120, %121, %122, %123"
#define WGMMA_TEXT_128 WGMMA_TEXT_124 ", %124, %125, %126, %127"
#define WGMMA_TILE(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define WGMMA_TILES_1 WGMMA_TILE(0)
#define WGMMA_TILES_2 WGMMA_TILES_1, WGMMA_TILE(1)
#define WGMMA_TILES_3 WGMMA_TILES_2, WGMMA_TILE(2)
#define WGMMA_TILES_4 WGMMA_TILES_3, WGMMA_TILE(3)
#define WGMMA_TILES_5 WGMMA_TILES_4, WGMMA_TILE(4)
#define WGMMA_TILES_6 WGMMA_TILES_5, WGMMA_TILE(5)
#define WGMMA_TILES_7 WGMMA_TILES_6, WGMMA_TILE(6)
#define WGMMA_TILES_8 WGMMA_TILES_7, WGMMA_TILE(7)
#define WGMMA_TILES_9 WGMMA_TILES_8, WGMMA_TILE(8)
#define WGMMA_TILES_10 WGMMA_TILES_9, WGMMA_TILE(9)
#define WGMMA_TILES_11 WGMMA_TILES_10, WGMMA_TILE(10)
#define WGMMA_TILES_12 WGMMA_TILES_11, WGMMA_TILE(11)
#define WGMMA_TILES_13 WGMMA_TILES_12, WGMMA_TILE(12)
#define WGMMA_TILES_14 WGMMA_TILES_13, WGMMA_TILE(13)
#define WGMMA_TILES_15 WGMMA_TILES_14, WGMMA_TILE(14)
#define WGMMA_TILES_16 WGMMA_TILES_15, WGMMA_TILE(15)
#define WGMMA_TILES_17 WGMMA_TILES_16, WGMMA_TILE(16)
#define WGMMA_TILES_18 WGMMA_TILES_17, WGMMA_TILE(17)
#define WGMMA_TILES_19 WGMMA_TILES_18, WGMMA_TILE(18)
#define WGMMA_TILES_20 WGMMA_TILES_19, WGMMA_TILE(19)
#define WGMMA_TILES_21 WGMMA_TILES_20, WGMMA_TILE(20)
#define WGMMA_TILES_22 WGMMA_TILES_21, WGMMA_TILE(21)
#define WGMMA_TILES_23 WGMMA_TILES_22, WGMMA_TILE(22)
#define WGMMA_TILES_24 WGMMA_TILES_23, WGMMA_TILE(23)
#define WGMMA_TILES_25 WGMMA_TILES_24, WGMMA_TILE(24)
#define WGMMA_TILES_26 WGMMA_TILES_25, WGMMA_TILE(25)
#define WGMMA_TILES_27 WGMMA_TILES_26, WGMMA_TILE(26)
#define WGMMA_TILES_28 WGMMA_TILES_27, WGMMA_TILE(27)
#define WGMMA_TILES_29 WGMMA_TILES_28, WGMMA_TILE(28)
#define WGMMA_TILES_30 WGMMA_TILES_29, WGMMA_TILE(29)
#define WGMMA_TILES_31 WGMMA_TILES_30, WGMMA_TILE(30)
#define WGMMA_TILES_32 WGMMA_TILES_31, WGMMA_TILE(31)

#define WGMMA_DEFINE(n, tiles, text, r0, r1, r2, r3, r4, r5)                                        \
    template <bool Accumulate>                                                                      \
    __device__ __forceinline__ void wgmma_multiply(float (&d)[tiles][4], u64 a, u64 b)              \
    {                                                                                               \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " r2 ", 0;\n"                                \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k32.f32.e4m3.e4m3 "                    \
                     "{" text "}, " r0 ", " r1 ", p, 1, 1;\n}"                                      \
                     : WGMMA_TILES_##tiles                                                          \
                     : "l"(a), "l"(b), "n"(int(Accumulate)) : "memory");                            \
    }                                                                                               \
    template <bool Accumulate>                                                                      \
    __device__ __forceinline__ void wgmma_multiply(float (&d)[tiles][4], const u32 (&a)[4], u64 b)  \
    {                                                                                               \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " r5 ", 0;\n"                                \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k32.f32.e4m3.e4m3 "                    \
                     "{" text "}, {" r0 ", " r1 ", " r2 ", " r3 "}, " r4 ", p, 1, 1;\n}"            \
                     : WGMMA_TILES_##tiles                                                          \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(int(Accumulate))     \
                     : "memory");                                                                   \
    }                                                                                               \
    template <bool Accumulate>                                                                      \
    __device__ __forceinline__ void wgmma_multiply_e5m2(float (&d)[tiles][4], const u32 (&a)[4],    \
                                                        u64 b)                                      \
    {                                                                                               \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " r5 ", 0;\n"                                \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k32.f32.e5m2.e5m2 "                    \
                     "{" text "}, {" r0 ", " r1 ", " r2 ", " r3 "}, " r4 ", p, 1, 1;\n}"            \
                     : WGMMA_TILES_##tiles                                                          \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(int(Accumulate))     \
                     : "memory");                                                                   \
    }

WGMMA_DEFINE(8, 1, WGMMA_TEXT_4, "%4", "%5", "%6", "%7", "%8", "%9")
WGMMA_DEFINE(16, 2, WGMMA_TEXT_8, "%8", "%9", "%10", "%11", "%12", "%13")
WGMMA_DEFINE(24, 3, WGMMA_TEXT_12, "%12", "%13", "%14", "%15", "%16", "%17")
WGMMA_DEFINE(32, 4, WGMMA_TEXT_16, "%16", "%17", "%18", "%19", "%20", "%21")
WGMMA_DEFINE(40, 5, WGMMA_TEXT_20, "%20", "%21", "%22", "%23", "%24", "%25")
WGMMA_DEFINE(48, 6, WGMMA_TEXT_24, "%24", "%25", "%26", "%27", "%28", "%29")
WGMMA_DEFINE(56, 7, WGMMA_TEXT_28, "%28", "%29", "%30", "%31", "%32", "%33")
WGMMA_DEFINE(64, 8, WGMMA_TEXT_32, "%32", "%33", "%34", "%35", "%36", "%37")
WGMMA_DEFINE(72, 9, WGMMA_TEXT_36, "%36", "%37", "%38", "%39", "%40", "%41")
WGMMA_DEFINE(80, 10, WGMMA_TEXT_40, "%40", "%41", "%42", "%43", "%44", "%45")
WGMMA_DEFINE(88, 11, WGMMA_TEXT_44, "%44", "%45", "%46", "%47", "%48", "%49")
WGMMA_DEFINE(96, 12, WGMMA_TEXT_48, "%48", "%49", "%50", "%51", "%52", "%53")
WGMMA_DEFINE(104, 13, WGMMA_TEXT_52, "%52", "%53", "%54", "%55", "%56", "%57")
WGMMA_DEFINE(112, 14, WGMMA_TEXT_56, "%56", "%57", "%58", "%59", "%60", "%61")
WGMMA_DEFINE(120, 15, WGMMA_TEXT_60, "%60", "%61", "%62", "%63", "%64", "%65")
WGMMA_DEFINE(128, 16, WGMMA_TEXT_64, "%64", "%65", "%66", "%67", "%68", "%69")
WGMMA_DEFINE(136, 17, WGMMA_TEXT_68, "%68", "%69", "%70", "%71", "%72", "%73")
WGMMA_DEFINE(144, 18, WGMMA_TEXT_72, "%72", "%73", "%74", "%75", "%76", "%77")
WGMMA_DEFINE(152, 19, WGMMA_TEXT_76, "%76", "%77", "%78", "%79", "%80", "%81")
WGMMA_DEFINE(160, 20, WGMMA_TEXT_80, "%80", "%81", "%82", "%83", "%84", "%85")
WGMMA_DEFINE(168, 21, WGMMA_TEXT_84, "%84", "%85", "%86", "%87", "%88", "%89")
WGMMA_DEFINE(176, 22, WGMMA_TEXT_88, "%88", "%89", "%90", "%91", "%92", "%93")
WGMMA_DEFINE(184, 23, WGMMA_TEXT_92, "%92", "%93", "%94", "%95", "%96", "%97")
WGMMA_DEFINE(192, 24, WGMMA_TEXT_96, "%96", "%97", "%98", "%99", "%100", "%101")
WGMMA_DEFINE(200, 25, WGMMA_TEXT_100, "%100", "%101", "%102", "%103", "%104", "%105")
WGMMA_DEFINE(208, 26, WGMMA_TEXT_104, "%104", "%105", "%106", "%107", "%108", "%109")
WGMMA_DEFINE(216, 27, WGMMA_TEXT_108, "%108", "%109", "%110", "%111", "%112", "%113")
WGMMA_DEFINE(224, 28, WGMMA_TEXT_112, "%112", "%113", "%114", "%115", "%116", "%117")
WGMMA_DEFINE(232, 29, WGMMA_TEXT_116, "%116", "%117", "%118", "%119", "%120", "%121")
WGMMA_DEFINE(240, 30, WGMMA_TEXT_120, "%120", "%121", "%122", "%123", "%124", "%125")
WGMMA_DEFINE(248, 31, WGMMA_TEXT_124, "%124", "%125", "%126", "%127", "%128", "%129")
WGMMA_DEFINE(256, 32, WGMMA_TEXT_128, "%128", "%129", "%130", "%131", "%132", "%133")
// clang-format on

#undef WGMMA_DEFINE
