/* test_counters.c - what a launch counts, against figures worked out by hand: each kernel's comment
 * says how. A sector has 32 bytes; shared memory has 32 banks of 4 bytes. */
#include "tests/emulator/counters_bench.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

typedef struct expected {
    size_t field;
    uint64_t value;
} expected;

/* Lane 0 makes an mbarrier behind 4 KiB of `s`, copies 512 bytes and arrives; all wait. */
#define BULK                                                                                       \
    KERNEL(                                                                                        \
        "mov.u32 %r1, s; setp.ne.u32 %p1, %r0, 0; @%p1 bra W;\n"                                   \
        "mbarrier.init.shared.b64 [%r1+4096], 1; fence.proxy.async;\n"                             \
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 512, "   \
        "[%r1+4096];\n"                                                                            \
        "mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r1+4096], 512;\n"                            \
        "W: bar.warp.sync -1;\n"                                                                   \
        "L: mbarrier.try_wait.parity.shared.b64 %p2, [%r1+4096], 0; @!%p2 bra L;")

/* 4 KiB of zeros; A and B are the same 2 KiB, K-major without a swizzle: 128 bytes from one 8 x 8
 * core matrix to the next along k, 256 along the rows. */
#define WGMMA                                                                                      \
    KERNEL(                                                                                        \
        "mov.u32 %r1, s; shl.b32 %r2, %r0, 5; add.u32 %r2, %r2, %r1; mov.u32 %r3, 0;\n"            \
        "st.shared.v4.u32 [%r2], {%r3, %r3, %r3, %r3};\n"                                          \
        "st.shared.v4.u32 [%r2+16], {%r3, %r3, %r3, %r3};\n"                                       \
        "fence.proxy.async; bar.sync 0;\n"                                                         \
        "shr.u32 %r4, %r1, 4; cvt.u64.u32 %rd2, %r4; or.b64 %rd2, %rd2, 0x1000080000;\n"           \
        "setp.ne.u32 %p1, %r3, 0; wgmma.fence.sync.aligned;\n"                                     \
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd2, %rd2, "   \
        "%p1, 1, 1, 0, 0;\n"                                                                       \
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;")

static const struct {
    const char *name, *ptx;
    expected counters[10]; /* ends with a field of 0, which is ctas_run */
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
    /* shared words side by side: every bank once */
    {"shared, stride of 1 word",
     KERNEL(
         "shl.b32 %r1, %r0, 2; mov.u32 %r2, s; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %r0;"),
     {{FIELD(shared_requests), 1},
      {FIELD(shared_store_requests), 1},
      {FIELD(shared_wavefronts), 1},
      {FIELD(shared_conflicts), 0}}},
    /* lanes n and n + 16 meet in bank 2n: two wavefronts for what one could do */
    {"shared, stride of 2 words",
     KERNEL(
         "shl.b32 %r1, %r0, 3; mov.u32 %r2, s; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %r0;"),
     {{FIELD(shared_wavefronts), 2}, {FIELD(shared_conflicts), 1}}},
    /* all in bank 0 */
    {"shared, stride of 32 words",
     KERNEL(
         "shl.b32 %r1, %r0, 7; mov.u32 %r2, s; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %r0;"),
     {{FIELD(shared_wavefronts), 32}, {FIELD(shared_conflicts), 31}}},
    /* lane n in bank 33 n = n mod 32 */
    {"shared, stride of 33 words",
     KERNEL("mul.lo.u32 %r1, %r0, 132; mov.u32 %r2, s; add.u32 %r1, %r1, %r2;"
            "st.shared.u32 [%r1], %r0;"),
     {{FIELD(shared_wavefronts), 1}, {FIELD(shared_conflicts), 0}}},
    /* one word for all: a broadcast */
    {"shared broadcast",
     KERNEL("mov.u32 %r2, s; ld.shared.u32 %r1, [%r2];"),
     {{FIELD(shared_load_requests), 1},
      {FIELD(shared_store_requests), 0},
      {FIELD(shared_wavefronts), 1},
      {FIELD(shared_conflicts), 0}}},
    /* 32 x 8 = 256 bytes: half a warp a wavefront */
    {"shared, 8 bytes side by side",
     KERNEL("shl.b32 %r1, %r0, 3; mov.u32 %r2, s; add.u32 %r1, %r1, %r2;"
            "st.shared.v2.u32 [%r1], {%r0, %r0};"),
     {{FIELD(shared_requests), 1}, {FIELD(shared_wavefronts), 2}, {FIELD(shared_conflicts), 0}}},
    /* 32 x 16 = 512 bytes: a quarter of a warp a wavefront */
    {"shared, 16 bytes side by side",
     KERNEL("shl.b32 %r1, %r0, 4; mov.u32 %r2, s; add.u32 %r1, %r1, %r2;"
            "st.shared.v4.u32 [%r1], {%r0, %r0, %r0, %r0};"),
     {{FIELD(shared_wavefronts), 4}, {FIELD(shared_conflicts), 0}}},
    /* 16 bytes of every 32: in a quarter, lanes n and n + 4 use the same four banks */
    {"shared, 16 bytes of every 32",
     KERNEL("shl.b32 %r1, %r0, 5; mov.u32 %r2, s; add.u32 %r1, %r1, %r2;"
            "st.shared.v4.u32 [%r1], {%r0, %r0, %r0, %r0};"),
     {{FIELD(shared_wavefronts), 8}, {FIELD(shared_conflicts), 4}}},
    /* registers of pairs come back two in one: 16 lanes of 16 bytes a wavefront, 32 of 8 */
    {"shared broadcast of 16 bytes",
     KERNEL("mov.u32 %r2, s; ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];"),
     {{FIELD(shared_wavefronts), 2}, {FIELD(shared_conflicts), 0}}},
    {"shared broadcast of 8 bytes",
     KERNEL("mov.u32 %r2, s; ld.shared.v2.u32 {%r3, %r4}, [%r2];"),
     {{FIELD(shared_wavefronts), 1}, {FIELD(shared_conflicts), 0}}},
    /* half a warp at 0, half at 32; and lanes n and n + 16 at 32 n: both as measured on H100 */
    {"shared, 16 bytes for half a warp",
     KERNEL("and.b32 %r1, %r0, 16; shl.b32 %r1, %r1, 1; mov.u32 %r2, s; add.u32 %r2, %r1, %r2;"
            "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];"),
     {{FIELD(shared_wavefronts), 2}, {FIELD(shared_conflicts), 0}}},
    {"shared, 16 bytes for lanes far apart",
     KERNEL("and.b32 %r1, %r0, 15; shl.b32 %r1, %r1, 5; mov.u32 %r2, s; add.u32 %r2, %r1, %r2;"
            "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];"),
     {{FIELD(shared_wavefronts), 8}, {FIELD(shared_conflicts), 4}}},
    /* lanes two apart share 16 bytes; a store of them gains nothing */
    {"shared, 16 bytes for lanes two apart",
     KERNEL("shr.b32 %r1, %r0, 2; shl.b32 %r1, %r1, 1; and.b32 %r2, %r0, 1;"
            "add.u32 %r1, %r1, %r2; shl.b32 %r1, %r1, 4; mov.u32 %r2, s; add.u32 %r2, %r1, %r2;"
            "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];"),
     {{FIELD(shared_wavefronts), 2}}},
    /* eight lanes without neighbours, of 16 bytes side by side: two of each quarter, as ever */
    {"shared, 16 bytes of every fourth lane",
     KERNEL("and.b32 %r1, %r0, 3; setp.ne.u32 %p1, %r1, 0; shl.b32 %r1, %r0, 2; mov.u32 %r2, s;"
            "add.u32 %r2, %r1, %r2; @!%p1 ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];"),
     {{FIELD(shared_wavefronts), 4}, {FIELD(shared_conflicts), 0}}},
    {"shared, neighbours store to one place",
     KERNEL("shr.b32 %r1, %r0, 1; shl.b32 %r1, %r1, 4; mov.u32 %r2, s; add.u32 %r2, %r1, %r2;"
            "st.shared.v4.u32 [%r2], {%r1, %r1, %r1, %r1};"),
     {{FIELD(shared_wavefronts), 4}, {FIELD(shared_conflicts), 0}}},
    /* rows of 16 bytes side by side: the eight of a matrix are 128 bytes, one wavefront */
    {"ldmatrix without conflicts",
     KERNEL("shl.b32 %r1, %r0, 4; mov.u32 %r2, s; add.u32 %r1, %r1, %r2;"
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r1];"),
     {{FIELD(shared_load_requests), 1},
      {FIELD(matrix_phases), 4},
      {FIELD(matrix_wavefronts), 4},
      {FIELD(shared_wavefronts), 4},
      {FIELD(shared_conflicts), 0}}},
    /* rows 128 bytes apart begin in one bank: eight wavefronts a matrix */
    {"ldmatrix with conflicts",
     KERNEL("shl.b32 %r1, %r0, 7; mov.u32 %r2, s; add.u32 %r1, %r1, %r2;"
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r1];"),
     {{FIELD(matrix_phases), 4}, {FIELD(matrix_wavefronts), 32}, {FIELD(shared_conflicts), 28}}},
    /* 144 bytes apart: each row four banks on; two matrices are two wavefronts */
    {"ldmatrix of padded rows",
     KERNEL("mul.lo.u32 %r1, %r0, 144; mov.u32 %r2, s; add.u32 %r1, %r1, %r2;"
            "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r3, %r4}, [%r1];"),
     {{FIELD(matrix_phases), 2}, {FIELD(matrix_wavefronts), 2}, {FIELD(shared_conflicts), 0}}},
    /* seven instructions: two of the frame, setp, bra, add by the 24 lanes that did not branch, add
       by all again, ret: 6 x 32 + 24 lanes. A branch's predicate is no predication. */
    {"divergence",
     KERNEL("setp.lt.u32 %p1, %r0, 8; @%p1 bra A; add.u32 %r1, %r0, 1;\nA: add.u32 %r2, %r0, 2;"),
     {{FIELD(warp_instructions), 7},
      {FIELD(thread_instructions), 216},
      {FIELD(divergent_branches), 1},
      {FIELD(predicated_off), 0},
      {FIELD(control), 2}}},
    /* An `if` whose end stands before it, at the top of a loop, as compilers put it: three times
       setp, bra, add and bra of 24 lanes, then add, setp, bra of all; three of the frame, mov, two
       bra. The eight lanes that come first do not run on alone. */
    {"divergence that ends before it begins",
     KERNEL("mov.u32 %r1, 0; bra B;\nA: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 3; @%p2 bra B;"
            "bra C;\nB: setp.lt.u32 %p1, %r0, 8; @%p1 bra A; add.u32 %r2, %r0, 1; bra A;\nC:"),
     {{FIELD(warp_instructions), 27}, {FIELD(divergent_branches), 3}, {FIELD(control), 12}}},
    /* five instructions of 32 lanes; the predicate is off in 24 of one */
    {"predicated off",
     KERNEL("setp.lt.u32 %p1, %r0, 8; @%p1 add.u32 %r1, %r0, 1;"),
     {{FIELD(warp_instructions), 5},
      {FIELD(thread_instructions), 160},
      {FIELD(predicated_off), 24},
      {FIELD(divergent_branches), 0}}},
    /* one request of 32 lanes on one word; it counts among the stores */
    {"global atomic",
     KERNEL("red.global.add.u32 [%rd0], %r0;"),
     {{FIELD(atomics), 1},
      {FIELD(global_store_requests), 1},
      {FIELD(global_store_sectors), 1},
      {FIELD(memory), 2}}},
    /* 32 x 16 bytes from global memory: 16 sectors; copy, commit and wait are asynchronous */
    {"cp.async",
     KERNEL(
         "shl.b32 %r1, %r0, 4; mov.u32 %r2, s; add.u32 %r1, %r1, %r2; mul.wide.u32 %rd1, %r0, 16;"
         "add.s64 %rd1, %rd0, %rd1; cp.async.cg.shared.global [%r1], [%rd1], 16;"
         "cp.async.commit_group; cp.async.wait_group 0;"),
     {{FIELD(async_copy_bytes), 512},
      {FIELD(global_load_sectors), 16},
      {FIELD(global_load_requests), 1},
      {FIELD(async), 3}}},
    /* one of each class; ld.param and st.local are memory, mov %tid and bar, ret the rest */
    {"classes",
     KERNEL("mov.f32 %f0, 0f3F800000; mov.f64 %d0, 0d3FF0000000000000; mov.b16 %h0, 0;"
            "add.f32 %f1, %f0, %f0; add.f64 %d1, %d0, %d0; add.f16 %h1, %h0, %h0;"
            "ex2.approx.f32 %f2, %f0; cvt.rn.f32.u32 %f3, %r0; st.local.u32 [l], %r0; bar.sync 0;"),
     {{FIELD(fp32), 1},
      {FIELD(fp64), 1},
      {FIELD(half), 1},
      {FIELD(sfu), 1},
      {FIELD(conversion), 1},
      {FIELD(memory), 2},
      {FIELD(control), 2},
      {FIELD(barriers), 1}}},
    /* 32 lanes x 4 bytes of a lane's own memory */
    {"local memory",
     KERNEL("st.local.u32 [l+4], %r0; ld.local.u32 %r1, [l+4];"),
     {{FIELD(local_requests), 2}, {FIELD(local_bytes), 256}, {FIELD(global_requests), 0}}},
    /* two loads that the constants' cache serves */
    {"constant memory",
     KERNEL("mul.wide.u32 %rd1, %r0, 4; mov.u64 %rd2, c;"
            "add.s64 %rd1, %rd1, %rd2; ld.const.u32 %r1, [%rd1]; ld.const.u32 %r1, [c+4];"),
     {{FIELD(constant_requests), 2},
      {FIELD(memory), 3},
      {FIELD(global_requests), 0},
      {FIELD(global_sectors), 0},
      {FIELD(unique_lines), 0}}},
    /* 16 x 8 x 16 products */
    {"mma",
     KERNEL("mov.b32 %r1, 0; mov.f32 %f0, 0f00000000;"
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4},"
            " {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f0, %f0, %f0, %f0};"),
     {{FIELD(tensor), 1},
      {FIELD(tensor_macs[HONE_EMU_MMA_BF16]), 2048},
      {FIELD(tensor_macs[HONE_EMU_MMA_F16]), 0},
      {FIELD(warpgroup_macs[HONE_EMU_MMA_BF16]), 0}}},
};

/* Of engines: with the threads of the CTA, and when the engine works. */
static const struct {
    const char *name, *ptx;
    expected counters[10];
    uint32_t threads;
    hone_emu_timing timing;
} engines[] = {
    /* one lane starts one copy of 512 bytes and arrives once; the copy has landed when the warp
       first looks */
    {"bulk copy at issue",
     BULK,
     {{FIELD(tma_requests), 1},
      {FIELD(tma_load_bytes), 512},
      {FIELD(tma_store_bytes), 0},
      {FIELD(mbarrier_arrivals), 1},
      {FIELD(waits), 0},
      {FIELD(polls), 0},
      {FIELD(unique_lines), 4},
      {FIELD(global_sectors), 16},
      {FIELD(global_requests), 0}},
     32,
     HONE_EMU_AT_ISSUE},
    /* the same when it lands as late as it may: the first poll is in vain */
    {"bulk copy as late as may be",
     BULK,
     {{FIELD(tma_requests), 1}, {FIELD(tma_load_bytes), 512}, {FIELD(waits), 1}},
     32,
     HONE_EMU_LATEST},
    /* 64 x 8 x 16 products, by the four warps of a group; an instruction of each */
    {"wgmma",
     WGMMA,
     {{FIELD(tensor_macs[HONE_EMU_MMA_BF16]), 8192},
      {FIELD(warpgroup_macs[HONE_EMU_MMA_BF16]), 8192},
      {FIELD(barriers), 4}},
     128,
     HONE_EMU_AT_ISSUE},
};

static void compare(const counters_bench *t, const char *name, const expected *list)
{
    for (const expected *e = list; e->field != 0; e++) {
        uint64_t value = 0;
        memcpy(&value, (const char *)&t->b.counters + e->field, sizeof value);
        ck_assert_msg(value == e->value, "%s: counter %zu is %llu, not %llu", name, e->field / 8,
                      (unsigned long long)value, (unsigned long long)e->value);
    }
}

START_TEST(counters_are_those_worked_out_by_hand)
{
    counters_bench t;

    counters_bench_run(&t, kernels[_i].ptx, 32, HONE_EMU_AT_ISSUE);
    compare(&t, kernels[_i].name, kernels[_i].counters);
    counters_bench_close(&t);
}
END_TEST

START_TEST(engines_count_alike_whenever_they_work)
{
    counters_bench t;

    counters_bench_run(&t, engines[_i].ptx, engines[_i].threads, engines[_i].timing);
    compare(&t, engines[_i].name, engines[_i].counters);
    counters_bench_close(&t);
}
END_TEST

/* How often a waiting warp looks is the schedule's; each look in vain is a turn of a loop of two.
 */
START_TEST(looks_in_vain_explain_a_late_copy_s_instructions)
{
    counters_bench early, late;

    counters_bench_run(&early, BULK, 32, HONE_EMU_AT_ISSUE);
    counters_bench_run(&late, BULK, 32, HONE_EMU_LATEST);
    ck_assert_uint_ge(late.b.counters.polls, 1);
    ck_assert_uint_eq(late.b.counters.warp_instructions,
                      early.b.counters.warp_instructions + 2 * late.b.counters.polls);
    counters_bench_close(&early);
    counters_bench_close(&late);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("counters");

    tcase_add_loop_test(tests, counters_are_those_worked_out_by_hand, 0, (int)ARRAY_LEN(kernels));
    tcase_add_loop_test(tests, engines_count_alike_whenever_they_work, 0, (int)ARRAY_LEN(engines));
    tcase_add_test(tests, looks_in_vain_explain_a_late_copy_s_instructions);
    return suite_run_here("emulator/counters", tests);
}
