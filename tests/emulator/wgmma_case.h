/* wgmma_case.h - one wgmma.mma_async in a test: its PTX, its operands laid out in shared memory by
 * CuTe's canonical layouts (written apart from the emulator's), and what it must give. */
#ifndef HONE_TESTS_EMULATOR_WGMMA_CASE_H
#define HONE_TESTS_EMULATOR_WGMMA_CASE_H

#include "emulator/tensor/tensor.h"
#include "tests/emulator/ptx_bench.h"

enum {
    WGMMA_CASE_M = 64,
    WGMMA_CASE_N = 256,
    WGMMA_CASE_K = 32,
    WGMMA_CASE_SHARED = 96 * 1024,
    WGMMA_CASE_THREADS = 128,
};

/* Where an operand lies and how: swizzle is the number of bits of CuTe's Swizzle<bits, 4, 3>. */
typedef struct wgmma_layout {
    uint32_t start, leading, stride, swizzle, base;
    bool across; /* MN-major */
} wgmma_layout;

typedef struct wgmma_case {
    uint32_t n, shared; /* columns; bytes that the layouts take */
    tensor_type a_type, b_type;
    const char *result; /* "f32", "f16", "s32" */
    bool registers_a, accumulate, saturate;
    int scale_a, scale_b;
    wgmma_layout a_layout, b_layout;
    hone_emu_arithmetic mode;
    hone_emu_timing timing;
    uint32_t a[WGMMA_CASE_M][WGMMA_CASE_K], b[WGMMA_CASE_N][WGMMA_CASE_K]; /* codes */
    uint32_t c[WGMMA_CASE_M][WGMMA_CASE_N], d[WGMMA_CASE_M][WGMMA_CASE_N]; /* bits */
} wgmma_case;

uint32_t wgmma_case_depth(tensor_type type); /* k of the instruction */
/* Layouts that hold the case's operands one behind the other. `across` for 16-bit types only. */
void wgmma_case_place(wgmma_case *c, uint32_t swizzle_a, bool across_a, uint32_t swizzle_b,
                      bool across_b);
/* Seeded operands: finite numbers of all sizes. */
void wgmma_case_fill(wgmma_case *c, uint64_t seed);
/* c->d by the emulated kernel; the status of the launch, whose fault is in the bench. */
hone_status wgmma_case_run(wgmma_case *c, ptx_bench *b);
/* An element by the scalar unit. */
uint32_t wgmma_case_expected(const wgmma_case *c, uint32_t row, uint32_t column);

#endif
