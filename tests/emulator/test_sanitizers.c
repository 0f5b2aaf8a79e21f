/* test_sanitizers.c - bounds, lifetimes, alignment, values that nobody wrote: for each rule a
 * kernel that breaks it, and its twin. The bodies' registers are in fault_case.h. Below is where
 * each detector is tested. */
#include "tests/emulator/fault_case.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

/* A value that nobody wrote. */
#define POISON "ld.shared.u32 %r9, [%r4+4096];\n"
#define MMA(a)                                                                                     \
    "mov.u32 %r12, 0;\nmma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%f0, %f1, %f2, %f3}, " \
    "{" a ", %r12, %r12, %r12}, {%r12, %r12}, {%f4, %f5, %f6, %f7};"
#define SUM "mov.f32 %f4, 0f00000000; mov.f32 %f5, %f4; mov.f32 %f6, %f4; mov.f32 %f7, %f4;\n"

/* clang-format off */
static const fault_case cases[] = {
    {"a global store past the end", 32, 1, 0,
     "st.global.u32 [%x1+8128], %r0;", 10, 16, 0, "out-of-bounds",
     "4 bytes at * lie in no allocation",
     "st.global.u32 [%x1+8064], %r0;"},
    {"a global load through a null pointer", 32, 1, 0,
     "mov.u64 %x4, 64;\nld.global.u32 %r9, [%x4];", 11, 0, 0, "out-of-bounds",
     "4 bytes at 0x40 lie in no allocation",
     "mov.u64 %x4, %x0;\nld.global.u32 %r9, [%x4];"},
    {"a generic load through a null pointer", 32, 1, 0,
     "mov.u64 %x4, 0;\nld.u32 %r9, [%x4];", 11, 0, 0, "out-of-bounds", "4 bytes at 0 lie in no allocation",
     "cvta.shared.u64 %x4, s;\nst.u32 [%x4], %r3;"},
    {"an atomic past the end", 32, 1, 0,
     "red.global.add.u32 [%x1+8180], 1;", 10, 3, 0, "out-of-bounds",
     "4 bytes at * lie in no allocation",
     "red.global.add.u32 [%x1+8064], 1;"},
    {"a shared store past the end", 32, 1, 0,
     "st.shared.u32 [%r4+8080], %r0;", 10, 28, 0, "out-of-bounds", "4 bytes at offset 8192 of shared memory; it has 8192 bytes",
     "st.shared.u32 [%r4+8064], %r0;"},
    {"a local load past the end", 32, 1, 0,
     "mov.u64 %x4, l;\nld.local.u32 %r9, [%x4+64];", 11, 0, 0, "out-of-bounds", "4 bytes at offset 64 of local memory; it has 64 bytes",
     "mov.u64 %x4, l;\nst.local.u32 [%x4+60], %r0; ld.local.u32 %r9, [%x4+60];"},
    {"a load past the parameters", 32, 1, 0,
     "mov.u64 %x4, data; cvta.param.u64 %x4, %x4;\nld.u64 %x5, [%x4+24];", 11, 0, 0, "out-of-bounds", "8 bytes at offset 24 of the parameters; they have 24 bytes",
     "mov.u64 %x4, data; cvta.param.u64 %x4, %x4;\nld.u64 %x5, [%x4+16];"},
    {"a load of freed memory", 32, 1, 0,
     "nanosleep.u32 1;\nld.global.u32 %r9, [%x10];", 11, 0, 0, "use-after-free", "4 bytes at *: the allocation was freed",
     "nanosleep.u32 1;\nld.global.u32 %r9, [%x9];"},
    {"a misaligned vector load", 32, 1, 0,
     "setp.ge.u32 %p6, %r0, 3;\n@%p6 ld.global.v2.u32 {%r9, %r10}, [%x1];", 11, 3, 0, "misaligned",
     "address * of an access of 8 bytes is not a multiple of 8",
     "and.b32 %r11, %r0, 1; setp.eq.u32 %p6, %r11, 0;\n@%p6 ld.global.v2.u32 {%r9, %r10}, [%x1];"},
    {"a misaligned shared store", 32, 1, 0,
     "st.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0};", 10, 1, 0, "misaligned", "address 0x4 of an access of 16 bytes is not a multiple of 16",
     "shl.b32 %r9, %r0, 4; st.shared.v4.u32 [%r9], {%r0, %r0, %r0, %r0};"},

    {"a generic store into constant memory", 32, 1, 0,
     "mov.u64 %x4, c; cvta.const.u64 %x4, %x4;\n@%p4 st.u32 [%x4+4], %r0;", 11, 0, 0, "out-of-bounds",
     "a store into constant memory: kernels only read it",
     "mov.u64 %x4, c; cvta.const.u64 %x4, %x4;\nld.u32 %r9, [%x4+4]; ld.const.u32 %r10, [%x4+28];"},
    {"an atomic on constant memory", 32, 1, 0,
     "mov.u64 %x4, c;\nred.global.add.u32 [%x4], 1;", 11, 0, 0, "out-of-bounds",
     "a store into constant memory: kernels only read it", NULL},
    {"a bulk store into constant memory", 32, 1, 0,
     "st.shared.u32 [%r4], %r0; mov.u64 %x4, c; fence.proxy.async; bar.warp.sync -1;\n"
     "@%p4 cp.async.bulk.global.shared::cta.bulk_group [%x4], [s], 32;", 11, 0, 0, "out-of-bounds",
     "a store into constant memory: kernels only read it", NULL},

    {"poison stored to global memory", 32, 1, 0,
     "ld.global.u32 %r9, [%x9+256];\nadd.u32 %r10, %r9, 1;\nst.global.u32 [%x1], %r10;", 12, 0, 0, "uninitialised",
     "the value stored comes from memory or a register that was never written",
     "ld.global.u32 %r9, [%x9+252];\nadd.u32 %r10, %r9, 1;\nst.global.u32 [%x1], %r10;"},
    {"poison decides a branch", 32, 1, 0,
     POISON "setp.eq.u32 %p6, %r9, 0;\n@%p6 bra L;\nL:", 12, 0, 0, "uninitialised",
     "the predicate comes from memory or a register that was never written",
     POISON "setp.eq.u32 %p6, %r9, 0;\nselp.u32 %r10, 1, 2, %p6;"},
    {"poison as an address", 32, 1, 0,
     POISON "ld.shared.u32 %r10, [%r9];", 11, 0, 0, "uninitialised",
     "the address comes from memory or a register that was never written",
     POISON "mov.u32 %r9, 4096;\nld.shared.u32 %r10, [%r9];"},
    {"poison decides whether to store", 32, 1, 0,
     POISON "setp.eq.u32 %p6, %r9, 0;\n@%p6 st.shared.u32 [%r4], %r0;", 12, 0, 0, "uninitialised",
     "the predicate comes from memory or a register that was never written",
     POISON "setp.eq.u32 %p6, %r9, 0; setp.lt.u32 %p7, %r0, 64; or.pred %p6, %p6, %p7;\n@%p6 st.shared.u32 [%r4], %r0;"},
    {"a poisoned comparison that no other one decides", 32, 1, 0,
     POISON "setp.eq.u32 %p6, %r9, 0; setp.lt.u32 %p7, %r0, 64;\nand.pred %p6, %p6, %p7;\n@%p6 bra L;\nL:", 13, 0, 0, "uninitialised",
     "the predicate comes from memory or a register that was never written",
     POISON "setp.eq.u32 %p6, %r9, 0; setp.gt.u32 %p7, %r0, 64;\nand.pred %p6, %p6, %p7;\n@%p6 bra L;\nL:"},
    {"poison in the matrix unit", 32, 1, 0,
     POISON SUM MMA("%r9"), 13, 0, 0, "uninitialised",
     "an operand of the matrix unit comes from memory or a register that was never written",
     POISON SUM MMA("%r12")},
    {"poison added by an atomic", 32, 1, 0,
     POISON "red.global.add.u32 [%x1], %r9;", 11, 0, 0, "uninitialised",
     "an operand of the atomic comes from memory or a register that was never written",
     POISON "red.global.add.u32 [%x1], %r0;"},
    {"an atomic on global memory that nobody wrote", 32, 1, 0,
     "@%p4 red.global.add.u32 [%x9+256], %r0;", 10, 0, 0, "uninitialised",
     "an atomic of 4 bytes on global memory that was never written",
     "@%p4 atom.global.exch.b32 %r9, [%x9+256], %r0;\n@%p4 red.global.add.u32 [%x9+256], %r0;"},
    {"a bulk reduction onto global memory that nobody wrote", 32, 1, 0,
     "mov.u32 %r9, 0; @%p4 st.shared.v4.u32 [s], {%r9, %r9, %r9, %r9}; fence.proxy.async;\n@%p4 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%x9+256], [s], 16;\n@%p4 cp.async.bulk.commit_group; @%p4 cp.async.bulk.wait_group 0;",
     11, 0, 0, "uninitialised", "byte 0 of the 16 in global memory that are reduced was never written",
     "mov.u32 %r9, 0; @%p4 st.shared.v4.u32 [s], {%r9, %r9, %r9, %r9}; fence.proxy.async;\n@%p4 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%x9], [s], 16;\n@%p4 cp.async.bulk.commit_group; @%p4 cp.async.bulk.wait_group 0;"},
    {"a cp.async from more bytes than it copies", 32, 1, 0,
     "mov.u32 %r9, 8; @%p4 cp.async.ca.shared.global [s], [%x0], 4, %r9;\n@%p4 cp.async.wait_all;", 10, 0, 0, "precondition",
     "cp.async of 4 bytes from a source of 8",
     "mov.u32 %r9, 3; @%p4 cp.async.ca.shared.global [s], [%x0], 4, %r9;\n@%p4 cp.async.wait_all;"},
    {"poison chooses where to branch", 32, 1, 0,
     POISON "T: .branchtargets A, B;\nbrx.idx %r9, T;\nA:\nmov.u32 %r10, 1;\nB:", 12, 0, 0, "uninitialised",
     "the index of a branch comes from memory or a register that was never written",
     "T: .branchtargets A, B;\nand.b32 %r9, %r0, 1;\nbrx.idx %r9, T;\nA:\nmov.u32 %r10, 1;\nB:"},
    {"poison that a barrier votes on", 32, 1, 0,
     POISON "setp.eq.u32 %p6, %r9, 0;\nbarrier.cta.red.popc.aligned.u32 %r10, 0, %p6;", 12, 0, 0, "uninitialised",
     "an operand of the barrier comes from memory or a register that was never written",
     POISON "setp.eq.u32 %p6, %r0, 0;\nbarrier.cta.red.popc.aligned.u32 %r10, 0, %p6;"},
    {"poison that a lane hands to another", 32, 1, 0,
     "mov.u32 %r9, 1; setp.eq.u32 %p6, %r0, 5;\n@%p6 ld.shared.u32 %r9, [%r4+4096];\nshfl.sync.idx.b32 %r10, %r9, 5, 31, -1;\nst.global.u32 [%x1], %r10;",
     13, 0, 0, "uninitialised", "the value stored comes from memory or a register that was never written",
     "mov.u32 %r9, 1; setp.eq.u32 %p6, %r0, 5;\n@%p6 ld.shared.u32 %r9, [%r4+4096];\nshfl.sync.idx.b32 %r10, %r9, 4, 31, -1;\nst.global.u32 [%x1], %r10;"},
    {"a lane of a half warp that hands on what it got from the other half", 32, 1, 0,
     "setp.ge.u32 %p6, %r0, 16; @%p6 bra L; setp.lt.u32 %p7, %r0, 9;\nshfl.sync.down.b32 %r9, %r0, 8, 31, 0xffff;\n@%p7 st.global.u32 [%x1], %r9;\nL:",
     12, 8, 0, "uninitialised", "the value stored comes from memory or a register that was never written",
     "setp.ge.u32 %p6, %r0, 16; @%p6 bra L; setp.lt.u32 %p7, %r0, 8;\nshfl.sync.down.b32 %r9, %r0, 8, 31, 0xffff;\n@%p7 st.global.u32 [%x1], %r9;\nL:"},
    {"a value shuffled through a predicate that says where it comes from", 32, 1, 0,
     POISON "shfl.sync.up.b32 %r10|%p6, %r9, 1, 0, -1;\n@%p6 st.global.u32 [%x1], %r10;", 12, 1, 0, "uninitialised",
     "the value stored comes from memory or a register that was never written",
     POISON "shfl.sync.up.b32 %r10|%p6, %r9, 1, 0, -1;\n@%p6 st.global.u32 [%x1], %r0;"},
    {"a register that one path leaves unset", 32, 1, 0,
     "setp.lt.u32 %p6, %r0, 7;\n@%p6 mov.u32 %r9, 3;\nst.global.u32 [%x1], %r9;", 12, 7, 0, "uninitialised",
     "the value stored comes from memory or a register that was never written",
     "setp.lt.u32 %p6, %r0, 7;\n@%p6 mov.u32 %r9, 3;\n@!%p6 mov.u32 %r9, 4;\nst.global.u32 [%x1], %r9;"},
    {"a scale that was never written is used", 32, 1, 0,
     "ld.shared.f32 %f0, [%r4+4096];\nmov.f32 %f1, 0f3f800000; setp.lt.u32 %p6, %r0, 32;\nselp.f32 %f2, %f0, %f1, %p6;\nmul.f32 %f3, %f2, %f1;\nst.global.f32 [%x1], %f3;",
     14, 0, 0, "uninitialised", "the value stored comes from memory or a register that was never written",
     "ld.shared.f32 %f0, [%r4+4096];\nmov.f32 %f1, 0f3f800000; setp.gt.u32 %p6, %r0, 32;\nselp.f32 %f2, %f0, %f1, %p6;\nmul.f32 %f3, %f2, %f1;\nst.global.f32 [%x1], %f3;"},
    {"a copied row of which a part was never written", 32, 1, 0,
     "ld.global.v4.u32 {%r9, %r10, %r11, %r12}, [%x9+256];\nst.shared.v4.u32 [s+4096], {%r9, %r10, %r11, %r12};\nld.shared.u32 %r13, [s+4100];\nst.global.u32 [%x1], %r13;",
     13, 0, 0, "uninitialised", "the value stored comes from memory or a register that was never written",
     "ld.global.v4.u32 {%r9, %r10, %r11, %r12}, [%x9+256];\nst.shared.v4.u32 [s+4096], {%r9, %r10, %r11, %r12};\nld.shared.u32 %r13, [s+4100];\n"},
    {"a bulk store of bytes that nobody wrote", 32, 1, 0,
     "setp.eq.u32 %p9, %r0, 0;\n@%p9 cp.async.bulk.global.shared::cta.bulk_group [%x3], [s], 128;\ncp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
     11, 0, 0, "uninitialised", "byte 0 of the 128 that go to global memory was never written",
     "setp.eq.u32 %p9, %r0, 0; st.shared.u32 [%r4], %r0; fence.proxy.async; bar.warp.sync -1;\n@%p9 cp.async.bulk.global.shared::cta.bulk_group [%x3], [s], 128;\ncp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"},
    {"cp.async read before its wait", 32, 1, 0,
     "cp.async.ca.shared.global [%r4], [%x1], 4;\ncp.async.commit_group;\nld.shared.u32 %r9, [%r4];\ncp.async.wait_group 0;", 12, 0, 0, "async-misuse", "4 bytes at offset 0 of shared memory: a copy that will write byte 0 is still in flight",
     "cp.async.ca.shared.global [%r4], [%x1], 4;\ncp.async.commit_group;\ncp.async.wait_group 0;\nld.shared.u32 %r9, [%r4];"},
    {"a bulk copy's destination before it has landed", 32, 1, 0,
     "setp.eq.u32 %p9, %r0, 0; @%p9 mbarrier.init.shared::cta.b64 [s+8000], 1; bar.sync 0;\n@%p9 mbarrier.arrive.expect_tx.shared::cta.b64 _, [s+8000], 128;\n"
     "@%p9 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%x0], 128, [s+8000];\nld.shared.u32 %r9, [%r4];\n"
     "W: mbarrier.try_wait.parity.shared::cta.b64 %p8, [s+8000], 0; @!%p8 bra W;", 13, 0, 0, "async-misuse", "read of 4 bytes at shared offset 0, which a bulk copy issued by warp 0 of CTA 0 writes at line 12; the reader has not waited for it",
     "setp.eq.u32 %p9, %r0, 0; @%p9 mbarrier.init.shared::cta.b64 [s+8000], 1; bar.sync 0;\n@%p9 mbarrier.arrive.expect_tx.shared::cta.b64 _, [s+8000], 128;\n"
     "@%p9 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%x0], 128, [s+8000];\n"
     "W: mbarrier.try_wait.parity.shared::cta.b64 %p8, [s+8000], 0; @!%p8 bra W;\nld.shared.u32 %r9, [%r4];"},
    {"a plain load of an mbarrier", 32, 1, 0,
     "setp.eq.u32 %p9, %r0, 0; @%p9 mbarrier.init.shared::cta.b64 [s+8000], 1; bar.sync 0;\nld.shared.u32 %r9, [s+8004];", 11, 0, 0, "mbarrier", "4 bytes at offset 8004 of shared memory: an mbarrier lives at 8000",
     "setp.eq.u32 %p9, %r0, 0; @%p9 mbarrier.init.shared::cta.b64 [s+8000], 1; bar.sync 0;\n@%p9 mbarrier.inval.shared::cta.b64 [s+8000]; bar.sync 0;"},
    {"lanes that arrive again before the rest of their warp", 32, 1, 0,
     "setp.lt.u32 %p6, %r0, 16; @!%p6 bra L;\nbarrier.arrive 1, 64;\nbarrier.arrive 1, 64;\nL:", 12, 0, 0, "barrier-divergence",
     "barrier 1: lanes 0000ffff arrive again while the rest of their warp has not arrived once",
     "barrier.arrive 1, 64;\nbarrier.sync 1, 64;"},
    {"an aligned barrier that lanes name differently", 32, 1, 0,
     "and.b32 %r9, %r0, 1;\nbar.sync %r9, 32;", 11, 0, 0, "barrier-divergence",
     "an aligned barrier of which lanes aaaaaaaa name another, or another count, than lanes 55555555",
     "and.b32 %r9, %r2, 1;\nbar.sync %r9, 32;"},
    {"more arrivals pending than an mbarrier counts", 32, 1, 0,
     "@%p4 mbarrier.init.shared::cta.b64 [s+8000], 1048575;\n@%p4 cp.async.mbarrier.arrive.shared::cta.b64 [s+8000];", 11, 0, 0, "mbarrier",
     "mbarrier at 8000: more than 1048575 arrivals pending",
     "@%p4 mbarrier.init.shared::cta.b64 [s+8000], 1048574;\n@%p4 cp.async.mbarrier.arrive.shared::cta.b64 [s+8000];"},
};
/* clang-format on */

/* The detectors of the specification, the kinds that they report, and the suites below
 * tests/emulator that hold them to it. */
static const struct {
    const char *detector, *kind, *suites;
} detectors[] = {
    {"out of bounds", "out-of-bounds", "sanitizers ptx_faults memory bulk tensor_copy"},
    {"use after free", "use-after-free", "sanitizers ptx_faults memory"},
    {"misaligned", "misaligned", "sanitizers ptx_faults bulk"},
    {"uninitialised", "uninitialised", "sanitizers ptx_faults bulk tensor_copy wgmma"},
    {"races", "race", "race race_engines"},
    {"async misuse", "async-misuse", "sanitizers race_engines wgmma_flight mbarrier bulk"},
    {"proxy fences", "proxy-fence", "race_engines"},
    {"barrier divergence", "barrier-divergence", "sanitizers ptx_faults cluster"},
    {"bad membermask", "membermask", "ptx_faults"},
    {"deadlock", "deadlock", "ptx_faults cluster mbarrier"},
    {"mbarrier protocol", "mbarrier", "sanitizers mbarrier bulk"},
};

START_TEST(a_detector_that_is_said_to_be_tested_here_is)
{
    bool found = strstr(detectors[_i].suites, "sanitizers") == NULL;

    for (size_t n = 0; n < ARRAY_LEN(cases); n++) {
        found = found || strcmp(cases[n].kind, detectors[_i].kind) == 0;
    }
    ck_assert_msg(found, "%s", detectors[_i].detector);
}
END_TEST

/* A copy that comes late keeps its arrival pending: more are then pending than a phase expects. */
START_TEST(more_arrivals_dropped_than_a_phase_expects_are_told)
{
    ptx_bench b;
    uint64_t data;
    static const uint8_t zeros[64];
    static const char text[] =
        ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 data)\n{\n"
        ".reg .b64 %x0; .shared .align 16 .b8 s[64];\nld.param.u64 %x0, [data];\n"
        "mbarrier.init.shared::cta.b64 [s], 1;\ncp.async.ca.shared.global [s+16], [%x0], 4;\n"
        "cp.async.mbarrier.arrive.shared::cta.b64 [s];\n"
        "mbarrier.arrive_drop.shared::cta.b64 _, [s], 2;\nret;\n}\n";

    ptx_bench_open(&b);
    b.launch.timing = HONE_EMU_LATEST;
    data = ptx_bench_buffer(&b, zeros, sizeof zeros);
    ck_assert_msg(ptx_bench_load(&b, text) == HONE_OK, "%s", b.error.message);
    ck_assert_int_ne(ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){1, 1, 1},
                                   (void *[]){&data}),
                     HONE_OK);
    ck_assert_str_eq(b.fault.message, "mbarrier at 0: 2 arrivals dropped of 1");
    ck_assert_str_eq(b.fault.kind, "mbarrier");
    ck_assert_int_eq(b.fault.ptx_line, 11);
    ptx_bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *tests = fault_case_tests("sanitizers", cases, ARRAY_LEN(cases));

    tcase_add_loop_test(tests, a_detector_that_is_said_to_be_tested_here_is, 0,
                        (int)ARRAY_LEN(detectors));
    tcase_add_test(tests, more_arrivals_dropped_than_a_phase_expects_are_told);
    return suite_run("emulator/sanitizers", tests);
}
