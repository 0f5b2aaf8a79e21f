/* test_wgmma_group.c - a warpgroup's wait: one warp gives a stage back for all four, since its wait
 * is over only when the products of all are. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include "core/status.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILES = 6, TILE = 1024, THREADS = 160, CONSUMERS = 128, SEEDS = 8 };

/* Four consumers and a producer. A (64 x 32 ones) lies at 0, the one stage of B (8 x 32) at 8192,
 * `full` at 9216 and `empty` behind it: %r1, %r2, %r3, %r4. The consumers' loop begins at line 18;
 * %r5 counts its tiles, %p0: warp 0's lane 0, %p1: warp 3. */
#define HEAD                                                                                       \
    ".version 8.8\n.target sm_90a\n.address_size 64\n"                                             \
    ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"                                      \
    ".shared .align 1024 .b8 s[9232];\n"                                                           \
    ".reg .pred %p<8>; .reg .f32 %d<4>; .reg .b32 %r<12>; .reg .b64 %x<4>, %xa, %xb;\n"            \
    "ld.param.u64 %x0, [in]; ld.param.u64 %x1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, s;\n"      \
    "add.u32 %r2, %r1, 8192; add.u32 %r3, %r1, 9216; add.u32 %r4, %r1, 9224;\n"                    \
    "setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p2, %r0, 128; shr.u32 %r6, %r0, 5;\n"                   \
    "setp.eq.u32 %p1, %r6, 3; setp.eq.u32 %p3, %r6, 4; mov.u32 %r5, 0; shl.b32 %r7, %r0, 2;\n"     \
    "@%p0 mbarrier.init.shared::cta.b64 [%r3], 1; @%p0 mbarrier.init.shared::cta.b64 [%r4], 1;\n"  \
    "add.u32 %r8, %r1, %r7;\nF: st.shared.u32 [%r8], 0x38383838; add.u32 %r8, %r8, 640;\n"         \
    "setp.lt.u32 %p4, %r8, %r2; @%p4 bra F; fence.proxy.async; bar.sync 0; @%p3 bra P;\n"          \
    "mov.b64 %xa, 0x4000004000010000; mov.b64 %xb, 0x4000004000010200;\n"                          \
    "mov.f32 %d0, 0f00000000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;\n"
/* The producer's lane 0 overwrites the stage as soon as it is given back. */
#define TAIL                                                                                       \
    "cvt.u64.u32 %x2, %r7; add.s64 %x1, %x1, %x2; st.global.f32 [%x1], %d0;\nret;\n"               \
    "P: @!%p2 ret;\n"                                                                              \
    "L: and.b32 %r6, %r5, 1; xor.b32 %r6, %r6, 1;\n"                                               \
    "E: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r4], %r6; @!%p4 bra E;\n"                  \
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 1024;\n"                                  \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%x0], 1024, "       \
    "[%r3];\n"                                                                                     \
    "add.s64 %x0, %x0, 1024; add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 6; @%p4 bra L;\nret;\n}\n"

#define CONSUME                                                                                    \
    "C: and.b32 %r6, %r5, 1;\n"                                                                    \
    "T: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r3], %r6;\n@!%p4 bra T;\n"                 \
    "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%d0, %d1, "   \
    "%d2, %d3}, %xa, %xb, 1, 1, 1;\n"
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define WAIT   "wgmma.wait_group.sync.aligned 0;\n"
#define ARRIVE "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r4];\n"
#define NEXT   "add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 6; @%p4 bra C;\n"

/* Powers of two in e4m3: 1, 2, 4, 1/2, 8 and 1/4; a product adds 32 times as much. */
static const uint8_t codes[TILES] = {0x38, 0x40, 0x48, 0x30, 0x50, 0x28};
static const float sum = 32 * (1 + 2 + 4 + 0.5f + 8 + 0.25f);

static hone_status run(ptx_bench *b, const char *text, uint64_t seed, hone_emu_timing timing,
                       float out[CONSUMERS])
{
    static uint8_t tiles[TILES][TILE];
    float none[CONSUMERS] = {0};

    ptx_bench_open(b);
    ck_assert_msg(ptx_bench_load(b, text) == HONE_OK, "%s", b->error.message);
    for (uint32_t n = 0; n < TILES; n++) {
        memset(tiles[n], codes[n], TILE);
    }
    b->launch.schedule_seed = seed;
    b->launch.timing = timing;
    uint64_t from = ptx_bench_buffer(b, tiles, sizeof tiles);
    uint64_t to = ptx_bench_buffer(b, none, sizeof none);
    hone_status status = ptx_bench_run(b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){THREADS, 1, 1},
                                       (void *[]){&from, &to});
    ptx_bench_read(b, to, out, sizeof none);
    return status;
}

START_TEST(one_warp_gives_the_stage_back_for_all_four)
{
    ptx_bench b;
    float out[CONSUMERS];

    hone_status status = run(&b, HEAD CONSUME COMMIT WAIT ARRIVE NEXT TAIL, (uint64_t)_i / 2,
                             (hone_emu_timing)(_i % 2), out);
    ck_assert_msg(status == HONE_OK, "line %d: %s: %s", b.fault.ptx_line, b.fault.kind,
                  b.fault.message);
    for (uint32_t n = 0; n < CONSUMERS; n++) {
        ck_assert_msg(out[n] == sum, "thread %u: %g, not %g", n, (double)out[n], (double)sum);
    }
    ptx_bench_close(&b);
}
END_TEST

/* Its products, and those of the others, may still read. */
START_TEST(a_stage_given_back_before_the_wait_is_reported)
{
    ptx_bench b;
    float out[CONSUMERS];

    hone_status status = run(&b, HEAD CONSUME COMMIT ARRIVE WAIT NEXT TAIL, (uint64_t)_i / 2,
                             (hone_emu_timing)(_i % 2), out);
    ck_assert_int_eq(status, HONE_WRONG);
    ck_assert_msg(strcmp(b.fault.kind, "race") == 0 || strcmp(b.fault.kind, "async-misuse") == 0,
                  "%s: %s", b.fault.kind, b.fault.message);
    ptx_bench_close(&b);
}
END_TEST

START_TEST(a_warp_that_never_commits_leaves_the_others_waiting)
{
    ptx_bench b;
    float out[CONSUMERS];

    hone_status status =
        run(&b, HEAD CONSUME "@%p1 bra B;\n" COMMIT WAIT ARRIVE NEXT "B: bar.sync 1, 128;\n" TAIL,
            (uint64_t)_i / 2, (hone_emu_timing)(_i % 2), out);
    ck_assert_int_eq(status, HONE_WRONG);
    ck_assert_str_eq(b.fault.kind, "deadlock");
    ck_assert_str_eq(b.fault.message,
                     "no warp can go on: warp 0-2 line 25 the other warps of its warpgroup; warp 3 "
                     "line 28 barrier 1 (32 of 128); warp 4 line 33 mbarrier 9224: phase 0, 0 of 1 "
                     "arrivals;");
    ck_assert_int_eq(b.fault.ptx_line, 25);
    ptx_bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("wgmma_group");

    tcase_add_loop_test(tests, one_warp_gives_the_stage_back_for_all_four, 0, 2 * SEEDS);
    tcase_add_loop_test(tests, a_stage_given_back_before_the_wait_is_reported, 0, 2 * SEEDS);
    tcase_add_loop_test(tests, a_warp_that_never_commits_leaves_the_others_waiting, 0, 2 * SEEDS);
    return suite_run("emulator/wgmma_group", tests);
}
