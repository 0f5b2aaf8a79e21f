/* test_dependent.c - a launch that may begin before the one before it has ended: what that one
 * writes is there behind griddepcontrol.wait, and not before. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include "core/status.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4096, THREADS = 64 };

/* %r0: thread; %x0, %x1: 4096 bytes each, of which the launch before knows the first alone; %x2,
 * %x3: the thread's words of them; %p0: warp 0. The body begins at line 10. */
#define HEAD                                                                                       \
    "{\n.shared .align 128 .b8 s[4096]; .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %x<8>;\n"     \
    "ld.param.u64 %x0, [a]; ld.param.u64 %x1, [b]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2;\n"    \
    "cvt.u64.u32 %x4, %r1; add.s64 %x2, %x0, %x4; add.s64 %x3, %x1, %x4;\n"                        \
    "setp.lt.u32 %p0, %r0, 32; mov.u32 %r2, s;\n"
#define MODULE      ".version 8.8\n.target sm_90\n.address_size 64\n"
#define ENTRY(name) ".visible .entry " name "(.param .u64 a, .param .u64 b)\n"
#define TAIL        "ret;\n}\n"

#define WAIT   "griddepcontrol.wait;\n"
#define STORE  "st.global.u32 [%x2], %r0;\n"
#define STORE8 "st.global.u8 [%x2], %r0;\n"
#define LOAD   "ld.global.u32 %r3, [%x2];\n"
#define OUT    "st.global.u32 [%x3], %r3;\n"
#define BULK                                                                                       \
    "setp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\nbar.sync 0;\n"        \
    "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;\n"                              \
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+128], [%x0], "    \
    "256, [%r2];\nL: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra L;\n"

#define BEFORE                                                                                     \
    " at offset 0 of a global allocation, which the launch before writes; no griddepcontrol.wait " \
    "before"

static const struct {
    const char *name, *first, *second;
    int line; /* of the fault; 0: none */
    const char *message;
} cases[] = {
    {"no wait", STORE, LOAD OUT, 10, "read of 4 bytes" BEFORE},
    {"a wait", STORE, WAIT LOAD OUT, 0, NULL},
    {"a wait behind the read", STORE, LOAD WAIT OUT, 10, "read of 4 bytes" BEFORE},
    {"one warp waits, then all meet", STORE, "@%p0 " WAIT "bar.sync 0;\n" LOAD OUT, 0, NULL},
    {"one warp waits, the other reads", STORE, "@!%p0 " WAIT "@%p0 " LOAD "@%p0 " OUT, 11,
     "read of 4 bytes" BEFORE},
    {"they meet before the wait", STORE, "bar.sync 0;\n@!%p0 " WAIT LOAD OUT, 12,
     "read of 4 bytes" BEFORE},
    {"written without a wait", STORE, "@%p0 " STORE, 10, "write of 4 bytes" BEFORE},
    {"an atomic", STORE, "red.global.add.u32 [%x2], 1;\n", 10, "atomic of 4 bytes" BEFORE},
    {"a bulk copy without a wait", STORE, BULK, 14, "bulk copy's read of 256 bytes" BEFORE},
    {"a bulk copy by a thread that waited", STORE, WAIT BULK, 0, NULL},
    {"what an atomic wrote", "red.global.add.u32 [%x2], 1;\n", LOAD, 10, "read of 4 bytes" BEFORE},
    {"what was read alone", LOAD, LOAD, 0, NULL},
    {"what a strong load read", "ld.relaxed.gpu.global.u32 %r3, [%x2];\n", LOAD, 0, NULL},
    {"bytes beside those that were written", STORE8, "ld.global.u8 %r3, [%x2+1];\n", 0, NULL},
    {"the bytes that were written", STORE8, "ld.global.u8 %r3, [%x2];\n", 10,
     "read of 1 bytes" BEFORE},
    {"what nobody wrote, without a wait", STORE, "ld.global.u32 %r3, [%x2+2048];\n" OUT, 0, NULL},
};

START_TEST(reads_come_behind_the_wait)
{
    char text[4096];
    static const uint8_t zeros[BYTES];
    machine_writes written = {.len = 0};
    uint32_t grid[] = {1, 1, 1}, block[] = {THREADS, 1, 1};
    ptx_bench b;

    snprintf(text, sizeof text, "%s%s%s%s%s%s%s%s%s", MODULE, ENTRY("second"), HEAD,
             cases[_i].second, TAIL, ENTRY("first"), HEAD, cases[_i].first, TAIL);
    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, text) == HONE_OK, "%s", b.error.message);
    uint64_t one = ptx_bench_buffer(&b, zeros, BYTES), two = ptx_bench_buffer(&b, zeros, BYTES);
    void *arguments[] = {&one, &two};
    b.launch.written = &written;
    ck_assert_int_eq(ptx_bench_run(&b, "first", grid, block, arguments), HONE_OK);
    b.launch.before = &written;
    b.launch.written = NULL;
    hone_status status = ptx_bench_run(&b, "second", grid, block, arguments);
    ck_assert_msg((status == HONE_OK) == (cases[_i].line == 0), "%s: line %d: %s", cases[_i].name,
                  b.fault.ptx_line, b.fault.message);
    if (cases[_i].line != 0) {
        ck_assert_str_eq(b.fault.kind, "race");
        ck_assert_str_eq(b.fault.message, cases[_i].message);
        ck_assert_int_eq(b.fault.ptx_line, cases[_i].line);
    }
    machine_writes_free(b.launch.memory, &written);
    ptx_bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("dependent");

    tcase_add_loop_test(tests, reads_come_behind_the_wait, 0, (int)ARRAY_LEN(cases));
    return suite_run("emulator/dependent", tests);
}
