/* ptx_bench.h - a device in a test: memory, a module from PTX or (through NVRTC) from CUDA,
 * launches. */
#ifndef HONE_TESTS_EMULATOR_PTX_BENCH_H
#define HONE_TESTS_EMULATOR_PTX_BENCH_H

#include "emulator/emulator.h"

typedef struct ptx_bench {
    device_memory *memory;
    ptx_module *module;
    hone_emu_counters counters;
    hone_emu_fault fault;
    hone_error error;
    machine_launch launch; /* defaults; a test changes what it needs before ptx_bench_run */
} ptx_bench;

/* Aborts the test when the device cannot be made; load returns the status. */
void ptx_bench_open(ptx_bench *b);
hone_status ptx_bench_load(ptx_bench *b, const char *ptx);
void ptx_bench_close(ptx_bench *b);
uint64_t ptx_bench_buffer(ptx_bench *b, const void *content, uint64_t bytes); /* NULL: unwritten */
void ptx_bench_read(ptx_bench *b, uint64_t address, void *to, uint64_t bytes);
/* arguments: one pointer for each parameter, as cuLaunchKernel takes them. */
hone_status ptx_bench_run(ptx_bench *b, const char *kernel, const uint32_t grid[3],
                          const uint32_t block[3], void *const *arguments);

/* PTX of a CUDA source, to be freed; NULL (and a line on stderr that says SKIP) without NVRTC.
 * Fails the test when the source does not compile. options end with NULL. */
char *ptx_bench_compile(const char *source, const char *const *options);
/* `.visible .entry k(in, out)`: each thread of a grid along x loads `in_words` 32-bit words as
 * %a0.. and stores %d0.. (`out_words`); `body` stands between. To be freed. */
char *ptx_bench_wrap(const char *body, uint32_t in_words, uint32_t out_words);
/* Adds {%name3,%name4,...} to `text` at `used`; returns the new length. */
size_t ptx_bench_list(char *text, size_t used, const char *name, uint32_t first, uint32_t len);

#endif
