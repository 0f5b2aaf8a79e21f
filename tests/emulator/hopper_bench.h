/* hopper_bench.h - the kernels of tests/emulator/hopper on an emulated H200, through its driver,
 * each compared with a reference on the host.
 *
 * Inputs are small integers and scales powers of two, so that every sum is exact in every
 * arithmetic and a result is right or wrong to the bit. */
#ifndef HONE_TESTS_EMULATOR_HOPPER_BENCH_H
#define HONE_TESTS_EMULATOR_HOPPER_BENCH_H

#include "tests/emulator/shim_driver.h"

#include <stdbool.h>

typedef struct hopper_outcome {
    CUresult result;      /* of the first call that failed */
    hone_emu_fault fault; /* when `result` says so */
    bool wrong;
    char text[256];  /* what is wrong, or the fault's kind and message */
    uint64_t digest; /* of the output's bytes */
} hopper_outcome;

typedef struct hopper_bench {
    shim_driver driver;
    CUmodule module;
    CUdeviceptr buffers[16]; /* of one run */
    size_t buffers_len;
    CUtensorMapSwizzle swizzle; /* of maps that are swizzled: 128 bytes, unless a mutant says */
    hopper_outcome *out;
} hopper_bench;

typedef struct hopper_kernel {
    const char *name, *file, *option; /* option: NVRTC's, or NULL */
    void (*run)(hopper_bench *b);     /* buffers, launch, comparison; failures into b->out */
} hopper_kernel;

extern const hopper_kernel hopper_kernels[];
extern const size_t hopper_kernels_len;
/* Fails the test when there is none. */
const hopper_kernel *hopper_find(const char *name);

void hopper_open(hopper_bench *b);
/* The kernel's text with what all share before it; the caller frees it. */
char *hopper_source(const hopper_kernel *k);
/* False (after a line that says SKIP) without NVRTC; the test fails when it does not compile, and
 * when the emulator does not take it. */
bool hopper_load(hopper_bench *b, const hopper_kernel *k, const char *source);
void hopper_unload(hopper_bench *b);
/* One run with that schedule and timing, all checks on. Leaves the device as it was. */
hopper_outcome hopper_run(hopper_bench *b, const hopper_kernel *k, uint64_t seed,
                          hone_emu_timing timing);

/* ---- for the runs of kernels; after the first failure they do nothing ---- */

/* `content` NULL: zeros. Freed after the run. */
CUdeviceptr hopper_buffer(hopper_bench *b, const void *content, size_t bytes);
typedef struct hopper_box {
    CUtensorMapDataType type;
    CUdeviceptr at;
    uint64_t cols, rows, pitch; /* pitch: bytes */
    uint32_t box_cols, box_rows;
    bool swizzled;
} hopper_box;
CUtensorMap hopper_map(hopper_bench *b, const hopper_box *box);
typedef struct hopper_launch {
    const char *entry;
    unsigned grid[3], threads, shared, cluster; /* cluster 0: as the kernel says */
    bool dependent;                             /* on the launch before, programmatically */
    void **params;
} hopper_launch;
void hopper_start(hopper_bench *b, const hopper_launch *launch);
/* Waits, then compares `bytes` at `from` with `expected`. */
void hopper_compare(hopper_bench *b, CUdeviceptr from, const void *expected, size_t bytes);

/* A small integer, -limit to limit, by index: the same in every run. */
int hopper_number(uint64_t index, int limit);
uint8_t hopper_e4m3(int small);                     /* of -4 to 4 */
uint16_t hopper_f16(int small), hopper_bf16(float); /* nearest even */

#endif
