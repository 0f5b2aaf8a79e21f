/* counters_bench.h - one launch of a kernel `k(buffer)` with all that is counted of it. */
#ifndef HONE_TESTS_EMULATOR_COUNTERS_BENCH_H
#define HONE_TESTS_EMULATOR_COUNTERS_BENCH_H

#include "tests/emulator/ptx_bench.h"

/* Registers: %tid is %r0, the buffer %rd0 (16 KiB, written), shared memory `s` (8 KiB). */
#define KERNEL(body)                                                                               \
    ".version 8.8\n.target sm_90a\n.address_size 64\n"                                             \
    ".const .align 16 .b32 c[32]; .visible .entry k(.param .u64 buffer)\n{\n"                      \
    ".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .f64 %d<4>;\n"    \
    ".reg .b16 %h<4>;\n"                                                                           \
    ".shared .align 128 .b8 s[8192];\n.local .align 4 .b8 l[16];\n"                                \
    "ld.param.u64 %rd0, [buffer];\nmov.u32 %r0, %tid.x;\n" body "\nret;\n}\n"

#define FIELD(name) offsetof(hone_emu_counters, name)

typedef struct counters_bench {
    ptx_bench b;
    hone_emu_estimate estimate;
    machine_profile profile;
} counters_bench;

/* The device and the kernel, launch not yet done; fails the test when the text is refused. */
void counters_bench_open(counters_bench *t, const char *ptx);
/* One CTA over the buffer; fails the test when the kernel does. */
void counters_bench_run(counters_bench *t, const char *ptx, uint32_t threads,
                        hone_emu_timing timing);
/* A grid of CTAs of `threads` over a buffer of `bytes`, with what t->b.launch says. */
hone_status counters_bench_launch(counters_bench *t, uint32_t ctas, uint32_t threads,
                                  uint64_t bytes);
void counters_bench_close(counters_bench *t);

#endif
