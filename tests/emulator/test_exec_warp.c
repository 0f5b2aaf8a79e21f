/* test_exec_warp.c - lanes and warps together: ldmatrix layouts, shuffles, votes, matches, atomics,
 * barriers, divergence; and counters by hand. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t in[96 * 4], out[96 * 4];

/* One block of `threads`; results are in `out`. */
static void run(ptx_bench *b, const char *body, uint32_t in_words, uint32_t out_words,
                uint32_t threads)
{
    char *ptx = ptx_bench_wrap(body, in_words, out_words);

    ptx_bench_open(b);
    ck_assert_msg(ptx_bench_load(b, ptx) == HONE_OK, "%s\n%s", b->error.message, ptx);
    uint64_t d_in = ptx_bench_buffer(b, in, sizeof in),
             d_out = ptx_bench_buffer(b, NULL, sizeof out);
    hone_status status = ptx_bench_run(b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){threads, 1, 1},
                                       (void *[]){&d_in, &d_out});
    ck_assert_msg(status == HONE_OK, "line %d: %s", b->fault.ptx_line, b->error.message);
    ptx_bench_read(b, d_out, out, sizeof out);
    free(ptx);
}

/* Element e of matrix m sits at half (m * 64 + e) of shared memory and holds that number. By the
 * PTX figures, element (row, column) goes to thread 4 * row + column / 2, half column % 2;
 * transposed, rows and columns change places. */
static void ldmatrix(bool transposed)
{
    char body[1024];
    ptx_bench b;

    snprintf(body, sizeof body,
             ".shared .align 16 .b8 s[512]; mov.u32 %%r1, s; shl.b32 %%r2, %%r0, 4; add.u32 %%r1, "
             "%%r1, %%r2;\n"
             "st.shared.v4.u32 [%%r1], {%%a0, %%a1, %%a2, %%a3}; bar.sync 0;\n"
             "ldmatrix.sync.aligned.m8n8.x4%s.shared.b16 {%%d0, %%d1, %%d2, %%d3}, [%%r1];",
             transposed ? ".trans" : "");
    for (uint32_t n = 0; n < 128; n++) {
        in[n] = (2 * n + 1) << 16 | 2 * n;
    }
    run(&b, body, 4, 4, 32);
    for (uint32_t m = 0; m < 4; m++) {
        for (uint32_t e = 0; e < 64; e++) {
            uint32_t row = e / 8, column = e % 8;
            uint32_t thread = transposed ? 4 * column + row / 2 : 4 * row + column / 2;
            uint32_t half = transposed ? row % 2 : column % 2;
            ck_assert_uint_eq(out[thread * 4 + m] >> 16 * half & 0xffff, m * 64 + e);
        }
    }
    ck_assert_uint_eq(b.counters.shared_requests, 2); /* the store and the load */
    ck_assert_uint_eq(b.counters.shared_wavefronts, 8);
    ptx_bench_close(&b);
}

/* Neighbours' addresses in local memory look like one run of bytes, and the same address like one
 * place: each lane has its own all the same. */
START_TEST(each_lane_has_its_own_local_memory)
{
    ptx_bench b;

    run(&b,
        ".local .align 4 .b8 l[128]; mov.u32 %r1, l; shl.b32 %r2, %r0, 2; add.u32 %r2, %r1, %r2;\n"
        "mov.u32 %r3, 0;\nFILL: st.local.u32 [%r1], 7; add.u32 %r1, %r1, 4; add.u32 %r3, %r3, 1;\n"
        "setp.lt.u32 %p0, %r3, 32; @%p0 bra FILL;\n"
        "st.local.u32 [%r2], %r0; ld.local.u32 %d0, [%r2]; mov.u32 %d1, 0; mov.u32 %r3, 0;\n"
        "SUM: sub.u32 %r1, %r1, 4; ld.local.u32 %r4, [%r1]; add.u32 %d1, %d1, %r4;\n"
        "add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, 32; @%p0 bra SUM;",
        0, 2, 32);
    for (uint32_t lane = 0; lane < 32; lane++) {
        ck_assert_uint_eq(out[2 * lane], lane);
        ck_assert_uint_eq(out[2 * lane + 1], 31 * 7 + lane);
    }
    ptx_bench_close(&b);
}
END_TEST

START_TEST(ldmatrix_spreads_rows_and_transposed_columns)
{
    ldmatrix(false);
    ldmatrix(true);
}
END_TEST

START_TEST(shuffles_follow_segments_and_clamps)
{
    ptx_bench b;

    for (uint32_t n = 0; n < 32; n++) {
        in[n] = 100 + n;
    }
    run(&b,
        "shfl.sync.up.b32 %d0|%p1, %a0, 3, 0, -1; selp.b32 %d1, 1, 0, %p1;\n"
        "shfl.sync.down.b32 %d2, %a0, 2, 0x181f, -1;\n" /* segments of 8 lanes: mask 0x18, clamp
                                                           0x1f */
        "shfl.sync.idx.b32 %d3, %a0, 9, 0x1f, -1;",
        1, 4, 32);
    for (uint32_t n = 0; n < 32; n++) {
        ck_assert_uint_eq(out[n * 4], 100 + (n < 3 ? n : n - 3));
        ck_assert_uint_eq(out[n * 4 + 1], n >= 3);
        ck_assert_uint_eq(out[n * 4 + 2], 100 + (n % 8 < 6 ? n + 2 : n));
        ck_assert_uint_eq(out[n * 4 + 3], 109);
    }
    ptx_bench_close(&b);
}
END_TEST

START_TEST(votes_matches_and_reductions_see_every_lane)
{
    ptx_bench b;

    for (uint32_t n = 0; n < 32; n++) {
        in[n] = n % 3;
    }
    run(&b,
        "setp.eq.u32 %p1, %a0, 1; vote.sync.ballot.b32 %d0, %p1, -1; match.any.sync.b32 %d1, %a0, "
        "-1;\n"
        "sub.s32 %r3, 5, %r0; redux.sync.min.s32 %r4, %r3, -1; redux.sync.add.u32 %r5, %a0, -1; "
        "add.s32 %d2, %r4, %r5;\n"
        "elect.sync %r6|%p2, -1; selp.b32 %r7, 16, 0, %p2; vote.sync.any.pred %p3, !%p1, -1; "
        "vote.sync.all.pred %p4, %p1, -1;\n"
        "@%p3 add.u32 %r7, %r7, 1; @!%p4 add.u32 %r7, %r7, 2; mov.u32 %d3, %r7;",
        1, 4, 32);
    for (uint32_t n = 0; n < 32; n++) {
        uint32_t same = 0, ones = 0;
        for (uint32_t k = 0; k < 32; k++) {
            same |= (uint32_t)(k % 3 == n % 3) << k;
            ones |= (uint32_t)(k % 3 == 1) << k;
        }
        ck_assert_uint_eq(out[n * 4], ones);
        ck_assert_uint_eq(out[n * 4 + 1], same);
        ck_assert_uint_eq(out[n * 4 + 2], (uint32_t)(5 - 31 + 31));
        ck_assert_uint_eq(out[n * 4 + 3], n == 0 ? 19 : 3);
    }
    ptx_bench_close(&b);
}
END_TEST

START_TEST(atomics_of_every_kind_add_up)
{
    ptx_bench b;
    float sum = 0;

    for (uint32_t n = 0; n < 96; n++) {
        float f = 0.25f * (float)n;
        memcpy(&in[n], &f, sizeof f);
        sum += f;
    }
    run(&b,
        ".shared .align 16 .b32 s[8]; .shared .align 8 .b64 w; mov.u32 %r1, s; setp.ne.u32 %p1, "
        "%r0, 0; @%p1 bra WAIT;\n"
        "mov.u32 %r2, 0; mov.u64 %x1, 0; st.shared.v4.u32 [s], {%r2, %r2, %r2, -1}; "
        "st.shared.v4.u32 [s+16], {%r2, %r2, %r2, %r2}; st.shared.u64 [w], %x1;\n"
        "WAIT: bar.sync 0;\n"
        "atom.shared.add.u32 %r3, [s], 2; red.shared.add.f32 [s+4], %a0; red.shared.max.s32 [s+8], "
        "%r0; red.shared.min.u32 [s+12], %r0;\n"
        "cvt.u64.u32 %x2, %r0; red.shared.add.u64 [w], %x2; atom.shared.inc.u32 %r4, [s+16], 9; "
        "mov.u32 %r6, 0;\n"
        "LOCK: atom.acquire.cta.shared.cas.b32 %r5, [s+20], 0, 1; setp.ne.u32 %p2, %r5, 0; @%p2 "
        "bra LOCK;\n"
        "ld.shared.u32 %r7, [s+24]; add.u32 %r7, %r7, 3; st.shared.u32 [s+24], %r7; "
        "atom.release.cta.shared.exch.b32 %r8, [s+20], 0;\n"
        "mov.u32 %r9, 0x3f803f80; red.shared.add.noftz.bf16x2 [s+28], %r9; bar.sync 0;\n"
        "ld.shared.u32 %d0, [s]; ld.shared.u32 %d1, [s+4]; ld.shared.u32 %r10, [s+8]; "
        "ld.shared.u32 %r11, [s+12]; shl.b32 %r11, %r11, 8; add.u32 %d2, %r10, %r11;\n"
        "ld.shared.u64 %x3, [w]; cvt.u32.u64 %r12, %x3; ld.shared.u32 %r13, [s+16]; ld.shared.u32 "
        "%r14, [s+24]; shl.b32 %r13, %r13, 16; shl.b32 %r14, %r14, 20; add.u32 %d3, %r12, %r13; "
        "add.u32 %d3, %d3, %r14;",
        1, 4, 96);
    for (uint32_t n = 0; n < 96; n++) {
        float got;
        memcpy(&got, &out[n * 4 + 1], sizeof got);
        ck_assert_uint_eq(out[n * 4], 192);
        ck_assert(got == sum);
        ck_assert_uint_eq(out[n * 4 + 2], 95);
        ck_assert_uint_eq(out[n * 4 + 3], 95 * 96 / 2 + (96 % 10 << 16) + (96 * 3 << 20));
    }
    ck_assert_uint_gt(b.counters.atomics, 3 * 8);
    ptx_bench_close(&b);
}
END_TEST

/* Producers arrive, a consumer waits: the consumer must see what they wrote, whatever the order of
 * warps. */
START_TEST(named_barriers_with_partial_counts_order_warps)
{
    ptx_bench b;
    static const char body[] =
        ".shared .b32 s[64]; mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r1, %r1, %r2; mov.u32 "
        "%d0, 0; setp.ge.u32 %p1, %r0, 64; @%p1 bra CONSUME;\n"
        "add.u32 %r3, %r0, 7; st.shared.u32 [%r1], %r3; bar.arrive 5, 96; bra JOIN;\n"
        "CONSUME: bar.sync 5, 96; ld.shared.u32 %r4, [%r1+-256]; ld.shared.u32 %r5, [%r1+-128]; "
        "add.u32 %d0, %r4, %r5;\n"
        "JOIN: setp.lt.u32 %p2, %r0, 3; bar.red.popc.u32 %d1, 0, %p2; bar.red.or.pred %p3, 0, %p2; "
        "bar.red.and.pred %p4, 0, %p2; selp.b32 %d2, 1, 0, %p3; selp.b32 %d3, 1, 0, %p4;";

    run(&b, body, 1, 4, 96);
    for (uint32_t n = 0; n < 96; n++) {
        ck_assert_uint_eq(out[n * 4], n < 64 ? 0 : (n - 64 + 7) + (n - 32 + 7));
        ck_assert_uint_eq(out[n * 4 + 1], 3);
        ck_assert_uint_eq(out[n * 4 + 2], 1);
        ck_assert_uint_eq(out[n * 4 + 3], 0);
    }
    ck_assert_uint_eq(b.counters.barriers, 12);
    ptx_bench_close(&b);
}
END_TEST

START_TEST(divergent_lanes_take_their_own_ways_and_meet_again)
{
    ptx_bench b;

    run(&b,
        "mov.u32 %r1, 0; mov.u32 %r2, %r0;\n" /* collatz steps of the lane's number: every lane its
                                                 own length */
        "LOOP: setp.le.u32 %p1, %r2, 1; @%p1 bra DONE; and.b32 %r3, %r2, 1; setp.eq.u32 %p2, %r3, "
        "0; @%p2 bra EVEN;\n"
        "mad.lo.u32 %r2, %r2, 3, 1; bra NEXT; EVEN: shr.u32 %r2, %r2, 1; NEXT: add.u32 %r1, %r1, "
        "1; bra LOOP;\n"
        "DONE: mov.u32 %d0, %r1; activemask.b32 %d1; rem.u32 %r5, %r0, 3; bra T; TABLE: "
        ".branchtargets A, B, C;\n"
        "T: brx.idx %r5, TABLE; A: mov.u32 %d2, 10; bra END; B: mov.u32 %d2, 20; bra END; C: "
        "mov.u32 %d2, 30; END: activemask.b32 %d3;",
        1, 4, 32);
    for (uint32_t n = 0; n < 32; n++) {
        uint32_t steps = 0;
        for (uint32_t x = n; x > 1; x = x % 2 ? 3 * x + 1 : x / 2) {
            steps++;
        }
        ck_assert_uint_eq(out[n * 4], steps);
        ck_assert_uint_eq(out[n * 4 + 1], UINT32_MAX);
        ck_assert_uint_eq(out[n * 4 + 2], 10 * (n % 3 + 1));
        ck_assert_uint_eq(out[n * 4 + 3], UINT32_MAX);
    }
    ptx_bench_close(&b);
}
END_TEST

START_TEST(counters_are_what_a_hand_counts)
{
    ptx_bench b;

    run(&b,
        ".shared .align 16 .b8 s[8192]; mov.u32 %r1, s; shl.b32 %r2, %r0, 7; add.u32 %r3, %r1, "
        "%r2; st.shared.u32 [%r3], %r0;\n" /* one bank: 32 wavefronts */
        "bar.warp.sync -1; st.shared.u32 [s+4], %r1; shl.b32 %r4, %r0, 3; add.u32 %r5, %r1, %r4; "
        "mov.u64 %x1, 0; bar.warp.sync -1; st.shared.u64 [%r5], %x1;\n" /* 1 and 2 */
        "setp.lt.u32 %p1, %r0, 4; mov.u32 %d0, %a0; @%p1 add.f32 %d0, %a0, %a0;",
        1, 1, 32);
    ck_assert_uint_eq(b.counters.shared_requests, 3);
    ck_assert_uint_eq(b.counters.shared_wavefronts, 35);
    ck_assert_uint_eq(b.counters.global_requests, 2);
    ck_assert_uint_eq(b.counters.global_sectors, 8);
    ck_assert_uint_eq(b.counters.global_load_bytes, 128);
    ck_assert_uint_eq(b.counters.global_store_bytes, 128);
    ck_assert_uint_eq(b.counters.unique_lines, 2);
    ck_assert_uint_eq(b.counters.fp32, 1);
    ck_assert_uint_eq(b.counters.thread_instructions, 32 * b.counters.warp_instructions);
    ck_assert_uint_eq(b.counters.ctas_total, 1);
    ptx_bench_close(&b);
}
END_TEST

START_TEST(a_sample_runs_only_its_ctas)
{
    ptx_bench b;
    static const uint64_t sample[] = {7, 0, 3};
    static uint32_t blocks[8];
    static const char text[] =
        ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
        ".reg .b32 %r<4>; .reg .b64 %x<4>; ld.param.u64 %x0, [out]; mov.u32 %r0, %ctaid.x; mov.u32 "
        "%r1, %ctaid.y;\n"
        "mad.lo.u32 %r0, %r1, 4, %r0; mul.wide.u32 %x1, %r0, 4; add.s64 %x0, %x0, %x1; add.u32 "
        "%r0, %r0, 1; st.global.u32 [%x0], %r0; ret;\n}\n";

    ptx_bench_open(&b);
    ck_assert_int_eq(ptx_bench_load(&b, text), HONE_OK);
    uint64_t d = ptx_bench_buffer(&b, blocks, sizeof blocks);
    b.launch.sample = sample;
    b.launch.sample_len = ARRAY_LEN(sample);
    ck_assert_int_eq(
        ptx_bench_run(&b, "k", (uint32_t[]){4, 2, 1}, (uint32_t[]){1, 1, 1}, (void *[]){&d}),
        HONE_OK);
    ptx_bench_read(&b, d, blocks, sizeof blocks);
    for (uint32_t n = 0; n < 8; n++) {
        ck_assert_uint_eq(blocks[n], n == 0 || n == 3 || n == 7 ? n + 1 : 0);
    }
    ck_assert_uint_eq(b.counters.ctas_run, 3);
    ck_assert_uint_eq(b.counters.ctas_total, 8);
    ptx_bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("exec_warp");

    tcase_add_test(tests, each_lane_has_its_own_local_memory);
    tcase_add_test(tests, ldmatrix_spreads_rows_and_transposed_columns);
    tcase_add_test(tests, shuffles_follow_segments_and_clamps);
    tcase_add_test(tests, votes_matches_and_reductions_see_every_lane);
    tcase_add_test(tests, atomics_of_every_kind_add_up);
    tcase_add_test(tests, named_barriers_with_partial_counts_order_warps);
    tcase_add_test(tests, divergent_lanes_take_their_own_ways_and_meet_again);
    tcase_add_test(tests, counters_are_what_a_hand_counts);
    tcase_add_test(tests, a_sample_runs_only_its_ctas);
    return suite_run("emulator/exec_warp", tests);
}
