/* test_counters.c - what a launch counts, against figures worked out by hand: each kernel's comment
 * says how. A sector has 32 bytes; shared memory has 32 banks of 4 bytes. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ONE                                                                                        \
    (const uint32_t[3])                                                                            \
    {                                                                                              \
        1, 1, 1                                                                                    \
    }
#define WARP                                                                                       \
    (const uint32_t[3])                                                                            \
    {                                                                                              \
        32, 1, 1                                                                                   \
    }

/* Registers: %tid is %r0, the buffer %rd0 (16 KiB, written), shared memory `s` (8 KiB). */
#define KERNEL(body)                                                                               \
    ".version 8.8\n.target sm_90a\n.address_size 64\n"                                             \
    ".visible .entry k(.param .u64 buffer)\n{\n"                                                   \
    ".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .f64 %d<4>;\n"    \
    ".reg .b16 %h<4>;\n"                                                                           \
    ".shared .align 128 .b8 s[8192];\n.local .align 4 .b8 l[16];\n"                                \
    "ld.param.u64 %rd0, [buffer];\nmov.u32 %r0, %tid.x;\n" body "\nret;\n}\n"

typedef struct bench {
    ptx_bench b;
    hone_emu_estimate estimate;
    machine_profile profile;
} bench;

static void run(bench *t, const char *ptx, const uint32_t grid[3], const uint32_t block[3])
{
    static const uint8_t content[16384] = {1};

    memset(t, 0, sizeof *t);
    ptx_bench_open(&t->b);
    ck_assert_msg(ptx_bench_load(&t->b, ptx) == HONE_OK, "%s", t->b.error.message);
    uint64_t buffer = ptx_bench_buffer(&t->b, content, sizeof content);
    void *arguments[] = {&buffer};
    t->b.launch.profile = &t->profile;
    t->b.launch.estimate = &t->estimate;
    hone_status status = ptx_bench_run(&t->b, "k", grid, block, arguments);
    ck_assert_msg(status == HONE_OK, "%s", t->b.error.message);
}

static void end(bench *t)
{
    machine_profile_free(&t->profile);
    ptx_bench_close(&t->b);
}

#define FIELD(name) offsetof(hone_emu_counters, name)
typedef struct expected {
    size_t field;
    uint64_t value;
} expected;

static const struct {
    const char *name, *ptx;
    expected counters[8]; /* ends with a field of 0, which is ctas_run */
} kernels[] = {
    /* 32 lanes x 4 bytes, side by side: 128 bytes = 4 sectors, of one line */
    {"coalesced 4 bytes",
     KERNEL("mul.wide.u32 %rd1, %r0, 4; add.s64 %rd1, %rd0, %rd1; ld.global.u32 %r1, [%rd1];"),
     {{FIELD(global_load_requests), 1},
      {FIELD(global_load_sectors), 4},
      {FIELD(global_load_bytes), 128},
      {FIELD(unique_lines), 1},
      {FIELD(global_store_requests), 0}}},
    /* the same by 16 bytes: 512 bytes = 16 sectors of 4 lines */
    {"coalesced 16 bytes",
     KERNEL("mul.wide.u32 %rd1, %r0, 16; add.s64 %rd1, %rd0, %rd1;"
            "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1];"),
     {{FIELD(global_requests), 1}, {FIELD(global_sectors), 16}, {FIELD(unique_lines), 4}}},
    /* every second word: 32 x 8 bytes = 256 bytes = 8 sectors of 2 lines, half of them unused */
    {"stride of 2 words",
     KERNEL("mul.wide.u32 %rd1, %r0, 8; add.s64 %rd1, %rd0, %rd1; ld.global.u32 %r1, [%rd1];"),
     {{FIELD(global_load_sectors), 8}, {FIELD(global_load_bytes), 128}, {FIELD(unique_lines), 2}}},
    /* every 32nd word: each lane a line of its own, 32 sectors */
    {"stride of 32 words",
     KERNEL("mul.wide.u32 %rd1, %r0, 128; add.s64 %rd1, %rd0, %rd1; ld.global.u32 %r1, [%rd1];"),
     {{FIELD(global_load_sectors), 32}, {FIELD(unique_lines), 32}}},
    /* bytes 4 to 131: sectors 0 to 4, lines 0 and 1 */
    {"misaligned by 4 bytes",
     KERNEL("mul.wide.u32 %rd1, %r0, 4; add.s64 %rd1, %rd0, %rd1; ld.global.u32 %r1, [%rd1+4];"),
     {{FIELD(global_load_sectors), 5}, {FIELD(unique_lines), 2}}},
    /* all lanes read one word: one sector, though 128 bytes are asked for */
    {"broadcast",
     KERNEL("ld.global.u32 %r1, [%rd0];"),
     {{FIELD(global_load_sectors), 1}, {FIELD(global_load_bytes), 128}}},
    /* stores count apart from loads */
    {"coalesced store",
     KERNEL("mul.wide.u32 %rd1, %r0, 4; add.s64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r0;"),
     {{FIELD(global_store_requests), 1},
      {FIELD(global_store_sectors), 4},
      {FIELD(global_store_bytes), 128},
      {FIELD(global_load_requests), 0}}},
    {NULL, NULL, {{0, 0}}},
};

START_TEST(counters_are_those_worked_out_by_hand)
{
    bench t;

    run(&t, kernels[_i].ptx, ONE, WARP);
    for (const expected *e = kernels[_i].counters; e->field != 0; e++) {
        uint64_t value = 0;
        memcpy(&value, (const char *)&t.b.counters + e->field, sizeof value);
        ck_assert_msg(value == e->value, "%s: counter %zu is %llu, not %llu", kernels[_i].name,
                      e->field / 8, (unsigned long long)value, (unsigned long long)e->value);
    }
    end(&t);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("counters");

    tcase_add_loop_test(tests, counters_are_those_worked_out_by_hand, 0,
                        (int)ARRAY_LEN(kernels) - 1);
    return suite_run_here("emulator/counters", tests);
}
