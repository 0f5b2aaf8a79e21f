/* test_ptx_faults.c - one small wrong kernel for each detector: the kind, the PTX line and the lane
 * must be right; and right kernels that look like wrong ones must pass. */
#include "tests/emulator/fault_case.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Line 1 of the body is line 8 of the text. `data`: 256 bytes written, then 256 that are not. */
#define HEAD                                                                                       \
    ".version 8.8\n.target sm_90\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 data, .param .u64 gone)\n{\n"                                   \
    ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %x<9>; .shared .align 16 .b8 s[512]; .local "   \
    ".align 8 .b8 l[64];\n"                                                                        \
    "ld.param.u64 %x0, [data]; ld.param.u64 %x1, [gone]; mov.u32 %r0, %tid.x; mul.wide.u32 %x2, "  \
    "%r0, 4; add.s64 %x3, %x0, %x2; shl.b32 %r9, %r0, 2;\n"
#define LINE 8

static const struct {
    const char *name, *body, *kind;
    int line, lane;
    uint32_t threads;
} cases[] = {
    {"a store past the end of an allocation", "add.s64 %x4, %x3, 452;\nst.global.u32 [%x4], %r0;",
     "out-of-bounds", 1, 15, 32},
    {"a load far from everything", "mov.u64 %x4, 64;\nld.global.u32 %r1, [%x4];", "out-of-bounds",
     1, 0, 32},
    {"a load through a null pointer, generic", "mov.u64 %x4, 0;\nld.u32 %r1, [%x4];",
     "out-of-bounds", 1, 0, 32},
    {"a load of freed memory", "nanosleep.u32 1;\n\nld.global.u32 %r1, [%x1];", "use-after-free", 2,
     0, 32},
    {"a misaligned vector load",
     "setp.ne.u32 %p1, %r0, 3;\n@%p1 ret;\nld.global.v2.u32 {%r1, %r2}, [%x3];", "misaligned", 2, 3,
     32},
    {"a shared store past the end",
     "mov.u32 %r1, s; add.u32 %r1, %r1, %r9;\nst.shared.u32 [%r1+400], %r0;", "out-of-bounds", 1,
     28, 32},
    {"a misaligned shared load", "mov.u32 %r1, s;\nld.shared.v4.u32 {%r1,%r2,%r3,%r4}, [%r1+8];",
     "misaligned", 1, 0, 32},
    {"a local load past the end", "mov.u64 %x4, l;\nld.local.u32 %r1, [%x4+64];", "out-of-bounds",
     1, 0, 32},
    {"a global value that was never written reaches a store",
     "ld.global.u32 %r1, [%x3+256];\nadd.u32 %r2, %r1, 1;\nst.global.u32 [%x3], %r2;",
     "uninitialised", 2, 0, 32},
    {"a shared value that was never written reaches a branch",
     "mov.u32 %r1, s;\nld.shared.u32 %r2, [%r1];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra L;\nL:",
     "uninitialised", 3, 0, 32},
    {"one lane's poison travels through shfl to its readers",
     "mov.u32 %r2, 1; setp.ne.u32 %p1, %r0, 5; mov.u32 %r3, s;\n@!%p1 ld.shared.u32 %r2, "
     "[%r3];\nshfl.sync.idx.b32 %r4, %r2, 5, 31, -1;\nst.global.u32 [%x3], %r4;",
     "uninitialised", 3, 0, 32},
    {"poison as an address",
     "mov.u32 %r1, s;\nld.shared.u32 %r2, [%r1+4];\nadd.u32 %r2, %r2, %r1;\nld.shared.u32 %r3, "
     "[%r2];",
     "uninitialised", 3, 0, 32},
    {"a register that one path leaves unset",
     "setp.lt.u32 %p1, %r0, 7;\n@%p1 mov.u32 %r1, 3;\nst.global.u32 [%x3], %r1;", "uninitialised",
     2, 7, 32},
    {"poison in a matrix operand",
     "mov.u32 %r1, s; mov.u32 %r2, 0;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, "
     "[%r1];\nmma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%r4,%r5,%r6,%r7}, "
     "{%r3,%r2,%r2,%r2}, {%r2,%r2}, {%r2,%r2,%r2,%r2};",
     "uninitialised", 2, 0, 32},
    {"cp.async read before its wait",
     "mov.u32 %r1, s; add.u32 %r1, %r1, %r9;\ncp.async.ca.shared.global [%r1], [%x3], "
     "4;\ncp.async.commit_group;\nld.shared.u32 %r2, [%r1];\nst.global.u32 [%x3], %r2;",
     "async-misuse", 3, 0, 32},
    {"cp.async waited for one group too few",
     "mov.u32 %r1, s; add.u32 %r1, %r1, %r9;\ncp.async.ca.shared.global [%r1], [%x3], "
     "4;\ncp.async.commit_group;\ncp.async.wait_group 1;\nld.shared.u32 %r2, [%r1];\nst.global.u32 "
     "[%x3], %r2;",
     "async-misuse", 4, 0, 32},
    {"cp.async from a misaligned source",
     "mov.u32 %r1, s;\nadd.s64 %x4, %x0, 8;\ncp.async.cg.shared.global [%r1], [%x4], 16;",
     "misaligned", 2, 0, 32},
    {"a barrier that half a warp reaches while the other half is at another",
     "setp.lt.u32 %p1, %r0, 16;\n@%p1 bra A;\nbar.sync 0;\nbra B;\nA:\nbar.sync 1;\nB:",
     "barrier-divergence", 5, 0, 32},
    {"two warps at different barriers",
     "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\nbar.sync 1;\nbra B;\nA:\nbar.sync 2;\nB:", "deadlock",
     5, 0, 64},
    {"a named barrier that expects more threads than come", "bar.sync 3, 96;", "deadlock", 0, 0,
     64},
    {"barrier counts that do not agree",
     "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\nbar.sync 1, 96;\nA:\nbar.sync 1, 64;",
     "barrier-divergence", 2, 0, 64},
    {"shfl from a lane that does not take part",
     "setp.ge.u32 %p1, %r0, 16;\n@%p1 bra L;\nshfl.sync.bfly.b32 %r1, %r0, 16, 31, 0xffff;\n"
     "st.global.u32 [%x3], %r1;\nL:",
     "uninitialised", 3, 0, 32},
    {"a lane outside of the member mask that it gives",
     "mov.u32 %r2, 0x7fffffff;\nshfl.sync.idx.b32 %r1, %r0, 0, 31, %r2;", "membermask", 1, 31, 32},
    {"bar.warp.sync by lanes that are not in its mask",
     "setp.lt.u32 %p1, %r0, 4;\n@%p1 bar.warp.sync 0xe;", "membermask", 1, 0, 32},
    {"lanes that wait for one another at two places",
     "setp.lt.u32 %p1, %r0, 16;\n@%p1 bra A;\nbar.warp.sync -1;\nbra B;\nA:\nshfl.sync.idx.b32 "
     "%r1, %r0, 0, 31, -1;\nB:",
     "membermask", 5, 0, 32},
    {"a loop without an end", "L:\nbra L;", "hang", 1, 0, 32},
    {"trap in one lane", "setp.eq.u32 %p1, %r0, 9;\n@%p1 trap;", "trap", 1, 9, 32},
    {"a branch table overrun",
     "bra G;\nT: .branchtargets A, B;\nG:\nbrx.idx %r0, T;\nA:\nB:", "out-of-bounds", 3, 2, 32},

    {"poison that a select drops",
     "mov.u32 %r1, s; ld.shared.u32 %r2, [%r1];\nsetp.eq.u32 %p1, %r0, 99;\nselp.b32 %r3, %r2, "
     "%r0, %p1;\nst.global.u32 [%x3], %r3;",
     NULL, 0, 0, 32},
    {"poison that is overwritten",
     "mov.u32 %r1, s; ld.shared.u32 %r2, [%r1];\nmov.u32 %r2, 4;\nst.global.u32 [%x3], %r2;", NULL,
     0, 0, 32},
    {"poison copied through shared memory and never used",
     "mov.u32 %r1, s; ld.shared.u32 %r2, [%r1];\nst.shared.u32 [%r1+8], %r2;", NULL, 0, 0, 32},
    {"cp.async waited for",
     "mov.u32 %r1, s; add.u32 %r1, %r1, %r9;\ncp.async.ca.shared.global [%r1], [%x3], "
     "4;\ncp.async.commit_group;\ncp.async.wait_group 0;\nld.shared.u32 %r2, [%r1];\nst.global.u32 "
     "[%x3], %r2;",
     NULL, 0, 0, 32},
    {"a warp that leaves before the barrier of the others",
     "setp.ge.u32 %p1, %r0, 32;\n@%p1 ret;\nbar.sync 0;", NULL, 0, 0, 96},
    {"lanes that leave before the barrier of their warp",
     "setp.ge.u32 %p1, %r0, 20;\n@%p1 ret;\nbar.sync 0;", NULL, 0, 0, 32},
    {"an out-of-line path that comes back to a barrier",
     "setp.lt.u32 %p1, %r0, 16;\n@%p1 bra FAR;\nNEAR:\nbar.sync 0;\nret;\nFAR:\nadd.u32 %r1, %r0, "
     "1;\nbra NEAR;",
     NULL, 0, 0, 64},
    {"a lane that spins until a lane behind it writes",
     "mov.u32 %r1, s; mov.u32 %r2, 0; st.shared.u32 [%r1], %r2;\nsetp.eq.u32 %p1, %r0, 7;\n@%p1 "
     "bra W;\nSPIN:\nld.volatile.shared.u32 %r2, [%r1];\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra "
     "SPIN;\nret;\nW:\nmov.u32 %r3, 1;\nst.shared.u32 [%r1], %r3;",
     NULL, 0, 0, 32},
};

/* What is said of each, word for word; a '*' stands for an address. */
static const struct {
    const char *name, *message;
} messages[] = {
    {"a store past the end of an allocation", "4 bytes at * lie in no allocation"},
    {"a load far from everything", "4 bytes at 0x40 lie in no allocation"},
    {"a load through a null pointer, generic", "4 bytes at 0 lie in no allocation"},
    {"a load of freed memory", "4 bytes at *: the allocation was freed"},
    {"a misaligned vector load", "address * of an access of 8 bytes is not a multiple of 8"},
    {"a shared store past the end", "4 bytes at offset 512 of shared memory; it has 512 bytes"},
    {"a misaligned shared load", "address 0x8 of an access of 16 bytes is not a multiple of 16"},
    {"a local load past the end", "4 bytes at offset 64 of local memory; it has 64 bytes"},
    {"a global value that was never written reaches a store",
     "the value stored comes from memory or a register that was never written"},
    {"a shared value that was never written reaches a branch",
     "the predicate comes from memory or a register that was never written"},
    {"one lane's poison travels through shfl to its readers",
     "the value stored comes from memory or a register that was never written"},
    {"poison as an address", "the address comes from memory or a register that was never written"},
    {"a register that one path leaves unset",
     "the value stored comes from memory or a register that was never written"},
    {"poison in a matrix operand",
     "an operand of the matrix unit comes from memory or a register that was never written"},
    {"cp.async read before its wait",
     "4 bytes at offset 0 of shared memory: a copy that will write byte 0 is still in flight"},
    {"cp.async waited for one group too few",
     "4 bytes at offset 0 of shared memory: a copy that will write byte 0 is still in flight"},
    {"cp.async from a misaligned source",
     "cp.async of 16 bytes from *, which is not a multiple of that"},
    {"a barrier that half a warp reaches while the other half is at another",
     "lanes 0000ffff of the warp wait here, lanes ffff0000 never come"},
    {"two warps at different barriers", "no warp can go on: warp 0 line 13 barrier 2 (32 of 64); "
                                        "warp 1 line 10 barrier 1 (32 of 64);"},
    {"a named barrier that expects more threads than come",
     "no warp can go on: warp 0-1 line 8 barrier 3 (64 of 96);"},
    {"barrier counts that do not agree",
     "barrier 1: 96 threads are given here, 64 elsewhere; both must agree and be a multiple of 32"},
    {"shfl from a lane that does not take part",
     "the value stored comes from memory or a register that was never written"},
    {"a lane outside of the member mask that it gives",
     "lanes ffffffff run this with member mask 7fffffff, which leaves lane 31 out"},
    {"bar.warp.sync by lanes that are not in its mask",
     "lanes 0000000f run this with member mask 0000000e, which leaves lane 0 out"},
    {"lanes that wait for one another at two places",
     "member mask ffffffff: lanes 0000ffff wait here, lanes ffff0000 never come (lane 16 is at "
     "line 10)"},
    {"a loop without an end", "past the instruction budget; a loop does not end, or waits for a "
                              "CTA that runs later: warp 0 line 9;"},
    {"trap in one lane", "the kernel executed trap"},
    {"a branch table overrun", "branch table has 2 entries, index is 2"},
};

static const char *message_of(const char *name)
{
    for (size_t n = 0; n < ARRAY_LEN(messages); n++) {
        if (strcmp(messages[n].name, name) == 0) {
            return messages[n].message;
        }
    }
    return "";
}

static hone_status run_body(ptx_bench *b, const char *body, uint32_t threads, bool checks)
{
    static uint8_t zeros[256];
    char text[8192];

    snprintf(text, sizeof text, "%s%s\nret;\n}\n" FAULT_CASE_FILE, HEAD, body);
    ptx_bench_open(b);
    b->launch.checks = checks ? HONE_EMU_CHECK_ALL : 0;
    uint64_t data = ptx_bench_buffer(b, NULL, 512), gone = ptx_bench_buffer(b, zeros, 256);
    ck_assert_int_eq(memory_write(b->memory, data, zeros, sizeof zeros, &b->error), HONE_OK);
    ck_assert_int_eq(memory_free(b->memory, gone, &b->error), HONE_OK);
    hone_status status = ptx_bench_load(b, text);
    ck_assert_msg(status == HONE_OK, "%s: %s", body, b->error.message);
    return ptx_bench_run(b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){threads, 1, 1},
                         (void *[]){&data, &gone});
}

START_TEST(a_wrong_kernel_is_caught_where_it_is_wrong_and_a_right_one_passes)
{
    ptx_bench b;
    hone_status status = run_body(&b, cases[_i].body, cases[_i].threads, true);

    if (cases[_i].kind == NULL) {
        ck_assert_msg(status == HONE_OK, "%s: %s", cases[_i].name, b.error.message);
    } else {
        ck_assert_msg(status == HONE_WRONG, "%s: not caught", cases[_i].name);
        ck_assert_msg(strcmp(b.fault.kind, cases[_i].kind) == 0 &&
                          b.fault.ptx_line == LINE + cases[_i].line &&
                          b.fault.lane == cases[_i].lane && b.fault.result != 0,
                      "%s: %s at line %d lane %d (%d): %s", cases[_i].name, b.fault.kind,
                      b.fault.ptx_line - LINE, b.fault.lane, b.fault.result, b.fault.message);
        ck_assert_msg(fault_case_matches(message_of(cases[_i].name), b.fault.message), "%s: %s",
                      cases[_i].name, b.fault.message);
        ck_assert_str_eq(b.fault.kernel, "k");
    }
    ptx_bench_close(&b);
}
END_TEST

START_TEST(a_wrong_kernel_is_told_with_its_cuda_line)
{
    ptx_bench b;
    char body[8192];
    int lines = (int)fault_case_lines(cases[_i].body, body, sizeof body);
    int line = cases[_i].line < lines ? cases[_i].line : lines - 1;

    if (cases[_i].kind == NULL) {
        return;
    }
    ck_assert_int_eq(run_body(&b, body, cases[_i].threads, true), HONE_WRONG);
    ck_assert_str_eq(b.fault.source, "k.cu");
    ck_assert_msg(b.fault.source_line == FAULT_CASE_LINE + line, "%s: CUDA line %d", cases[_i].name,
                  b.fault.source_line);
    ptx_bench_close(&b);
}
END_TEST

START_TEST(with_checks_off_unwritten_memory_is_no_fault_but_bounds_still_are)
{
    ptx_bench b;

    ck_assert_int_eq(
        run_body(&b, "ld.global.u32 %r1, [%x3+256];\nst.global.u32 [%x3], %r1;", 32, false),
        HONE_OK);
    ptx_bench_close(&b);
    ck_assert_int_eq(run_body(&b, "st.global.u32 [%x3+512], %r0;", 32, false), HONE_WRONG);
    ck_assert_str_eq(b.fault.kind, "out-of-bounds");
    ptx_bench_close(&b);
}
END_TEST

/* Half of the last warp has exited at a barrier: the manual lets it, strict does not; lanes that a
 * block never had are no such. */
START_TEST(strict_barriers_want_lanes_that_have_exited_too)
{
    static const struct {
        const char *body;
        uint32_t threads;
        hone_status strict;
    } kernels[] = {
        {"setp.ge.u32 %p1, %r0, 48;\n@%p1 ret;\nbar.sync 0;", 64, HONE_WRONG},
        {"setp.ge.u32 %p1, %r0, 48;\n@%p1 ret;\nbarrier.sync 0;", 64, HONE_OK},
        {"setp.ge.u32 %p1, %r0, 32;\n@%p1 ret;\nbar.sync 0;", 64, HONE_OK},
        {"setp.ge.u32 %p1, %r0, 48;\n@%p1 ret;\nvote.sync.any.pred %p2, %p1, -1;", 64, HONE_WRONG},
        {"setp.ge.u32 %p1, %r0, 48;\n@%p1 ret;\n@%p1 bar.warp.sync -1;", 64, HONE_OK},
        {"setp.ge.u32 %p1, %r0, 48;\n@%p1 ret;\nactivemask.b32 %r1; bar.warp.sync %r1;", 64,
         HONE_OK},
        {"vote.sync.any.pred %p2, %p1, -1;", 48, HONE_OK},
        {"bar.sync 0;", 48, HONE_OK},
        {"bar.sync 0;\nsetp.ge.u32 %p1, %r0, 48;\n@%p1 ret;\nmov.u32 %r1, 1;", 64, HONE_OK},
    };
    char text[4096];

    snprintf(text, sizeof text, "%s%s\nret;\n}\n", HEAD, kernels[_i / 2].body);
    for (int strict = 0; strict < 2; strict++) {
        hone_status want = strict ? kernels[_i / 2].strict : HONE_OK;
        uint64_t none = 0;
        ptx_bench b;
        ptx_bench_open(&b);
        b.launch.schedule_seed = (uint64_t)_i % 2;
        b.launch.checks = HONE_EMU_CHECK_ALL | (strict ? HONE_EMU_CHECK_STRICT : 0);
        ck_assert_msg(ptx_bench_load(&b, text) == HONE_OK, "%s", b.error.message);
        hone_status got =
            ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1},
                          (uint32_t[]){kernels[_i / 2].threads, 1, 1}, (void *[]){&none, &none});
        ck_assert_msg(got == want, "%s, strict %d: %s", kernels[_i / 2].body, strict,
                      b.error.message);
        if (want != HONE_OK) {
            ck_assert_str_eq(b.fault.kind,
                             strstr(text, "vote") != NULL ? "membermask" : "barrier-divergence");
            ck_assert_str_eq(b.fault.message, "strict: lanes 0000ffff of the warp are here, lanes "
                                              "ffff0000 have exited");
            ck_assert_int_eq(b.fault.ptx_line, LINE + 2);
            ck_assert_int_eq(b.fault.warp, 1);
        }
        ptx_bench_close(&b);
    }
}
END_TEST

START_TEST(a_fault_names_its_warp_and_cta)
{
    ptx_bench b;
    static const char text[] =
        ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n"
        ".reg .pred %p<9>; .reg .b32 %r<9>;\nmov.u32 %r1, %ctaid.y; setp.ne.u32 %p1, %r1, 2;\n"
        "@%p1 ret;\nmov.u32 %r2, %tid.x; setp.ne.u32 %p2, %r2, 70;\n@%p2 ret;\ntrap;\n}\n";

    ptx_bench_open(&b);
    ck_assert_int_eq(ptx_bench_load(&b, text), HONE_OK);
    ck_assert_int_eq(ptx_bench_run(&b, "k", (uint32_t[]){5, 3, 1}, (uint32_t[]){96, 1, 1}, NULL),
                     HONE_WRONG);
    ck_assert_uint_eq(b.fault.cta, 10);
    ck_assert_int_eq(b.fault.warp, 2);
    ck_assert_int_eq(b.fault.lane, 6);
    ck_assert_int_eq(b.fault.ptx_line, 11);
    ck_assert_int_eq(b.fault.result, 719);
    ck_assert_uint_eq(b.counters.ctas_run, 11);
    ptx_bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("ptx_faults");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_wrong_kernel_is_caught_where_it_is_wrong_and_a_right_one_passes, 0,
                        (int)ARRAY_LEN(cases));
    tcase_add_loop_test(tests, a_wrong_kernel_is_told_with_its_cuda_line, 0, (int)ARRAY_LEN(cases));
    tcase_add_test(tests, with_checks_off_unwritten_memory_is_no_fault_but_bounds_still_are);
    tcase_add_loop_test(tests, strict_barriers_want_lanes_that_have_exited_too, 0, 18);
    tcase_add_test(tests, a_fault_names_its_warp_and_cta);
    return suite_run("emulator/ptx_faults", tests);
}
