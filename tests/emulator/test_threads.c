/* test_threads.c - claims about host threads: neither results nor counters nor the fault depend on
 * how many run a launch. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { CTAS = 301, THREADS = 64, WORDS = CTAS * THREADS };

/* Each thread mixes its word as often as its CTA's number modulo 5 says, so that CTAs end out of
 * order, and leaves the sum of its warp; CTAs from `wrong` on, every 7th, store past the end. */
static const char text[] =
    ".version 8.8\n.target sm_90\n.address_size 64\n"
    ".visible .entry mix(.param .u64 in, .param .u64 out, .param .u32 wrong)\n{\n"
    ".reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %x<9>; .shared .align 4 .b8 s[256];\n"
    "ld.param.u64 %x0, [in]; ld.param.u64 %x1, [out]; ld.param.u32 %r9, [wrong];\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;\n"
    "mad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %x2, %r3, 4; add.s64 %x3, %x0, %x2;\n"
    "add.s64 %x4, %x1, %x2; ld.global.u32 %r4, [%x3]; rem.u32 %r5, %r1, 5;\n"
    "LOOP:\n"
    "mad.lo.u32 %r4, %r4, 1664525, %r3; shf.l.wrap.b32 %r4, %r4, %r4, 7;\n"
    "shl.b32 %r6, %r0, 2; mov.u32 %r7, s; add.u32 %r6, %r6, %r7; st.shared.u32 [%r6], %r4;\n"
    "bar.sync 0;\nxor.b32 %r6, %r6, 4; ld.shared.u32 %r8, [%r6]; add.u32 %r4, %r4, %r8;\n"
    "bar.sync 0;\nsetp.ne.u32 %p1, %r5, 0; sub.u32 %r5, %r5, 1; @%p1 bra LOOP;\n"
    "redux.sync.add.u32 %r10, %r4, -1; mov.u32 %r11, %clock; shr.u32 %r11, %r11, 31;\n"
    "add.u32 %r4, %r4, %r10; add.u32 %r4, %r4, %r11; st.global.u32 [%x4], %r4;\n"
    "setp.lt.u32 %p2, %r1, %r9; @%p2 ret;\n"
    "sub.u32 %r12, %r1, %r9; rem.u32 %r12, %r12, 7; setp.ne.u32 %p3, %r12, 0; @%p3 ret;\n"
    "st.global.u32 [%x4+1000000], %r4;\nret;\n}\n"
    ".visible .entry sum(.param .u64 in, .param .u64 out)\n{\n"
    ".reg .b32 %r<9>; .reg .f32 %f<3>; .reg .b64 %x<9>;\n"
    "ld.param.u64 %x0, [in]; ld.param.u64 %x1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;\n"
    "mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %x2, %r3, 4;\n"
    "add.s64 %x3, %x0, %x2; ld.global.u32 %r4, [%x3]; cvt.rn.f32.u32 %f1, %r4;\n"
    "red.global.add.f32 [%x1], %f1;\nret;\n}\n";

static const int32_t counts[] = {2, 3, 8, 64};

typedef struct seen {
    hone_status status;
    hone_emu_counters counters;
    hone_emu_fault fault;
    hone_emu_estimate estimate;
    uint32_t out[WORDS];
} seen;

static void run(int32_t threads, uint32_t cluster, uint32_t wrong, const uint64_t *sample,
                uint64_t seed, seen *to)
{
    static uint32_t in[WORDS];
    ptx_bench b;

    for (uint32_t n = 0; n < WORDS; n++) {
        in[n] = n * 2654435761u;
    }
    memset(to, 0, sizeof *to);
    ptx_bench_open(&b);
    ck_assert_int_eq(ptx_bench_load(&b, text), HONE_OK);
    uint64_t from = ptx_bench_buffer(&b, in, sizeof in);
    uint64_t out = ptx_bench_buffer(&b, to->out, sizeof to->out);
    b.launch.checks = HONE_EMU_CHECK_ALL & ~HONE_EMU_CHECK_GLOBAL_RACES;
    b.launch.threads = threads;
    b.launch.cluster[0] = cluster;
    b.launch.schedule_seed = seed;
    b.launch.sample = sample;
    b.launch.sample_len = sample != NULL ? 20 : 0;
    b.launch.estimate = &to->estimate;
    to->status = ptx_bench_run(&b, "mix", (uint32_t[]){CTAS, 1, 1}, (uint32_t[]){THREADS, 1, 1},
                               (void *[]){&from, &out, &wrong});
    to->counters = b.counters;
    to->fault = b.fault;
    ptx_bench_read(&b, out, to->out, sizeof to->out);
    ptx_bench_close(&b);
}

START_TEST(results_and_counters_do_not_depend_on_the_threads)
{
    static seen one, many;

    for (uint64_t seed = 0; seed < 2; seed++) {
        for (uint32_t cluster = 1; cluster <= 7; cluster += 6) { /* 301 is 7 times 43 */
            run(1, cluster, CTAS, NULL, seed, &one);
            run(counts[_i], cluster, CTAS, NULL, seed, &many);
            ck_assert_int_eq(one.status, HONE_OK);
            ck_assert_int_eq(many.status, HONE_OK);
            ck_assert_uint_eq(many.counters.ctas_run, CTAS);
            ck_assert_mem_eq(&one.counters, &many.counters, sizeof one.counters);
            ck_assert_mem_eq(one.out, many.out, sizeof one.out);
        }
    }
}
END_TEST

START_TEST(the_fault_is_that_of_the_first_cluster)
{
    static const uint32_t wrong[] = {0, 1, 36, 150, 300};
    static seen one, many;

    for (size_t n = 0; n < ARRAY_LEN(wrong); n++) {
        run(1, 1, wrong[n], NULL, 0, &one);
        run(counts[_i], 1, wrong[n], NULL, 0, &many);
        ck_assert_int_eq(one.status, HONE_WRONG);
        ck_assert_int_eq(many.status, HONE_WRONG);
        ck_assert_uint_eq(many.fault.cta, wrong[n]);
        ck_assert_int_eq(many.fault.ptx_line, one.fault.ptx_line);
        ck_assert_int_eq(many.fault.warp, one.fault.warp);
        ck_assert_int_eq(many.fault.lane, one.fault.lane);
        ck_assert_str_eq(many.fault.kind, "out-of-bounds");
        ck_assert_uint_eq(many.counters.ctas_run, wrong[n] + 1);
        /* CTAs behind the fault may have touched memory before it came */
        many.counters.unique_lines = one.counters.unique_lines;
        ck_assert_mem_eq(&one.counters, &many.counters, sizeof one.counters);
    }
}
END_TEST

START_TEST(a_sample_is_estimated_to_the_same_figures)
{
    static seen one, many;
    uint64_t sample[20];

    for (uint64_t n = 0; n < ARRAY_LEN(sample); n++) {
        sample[n] = (n * 17 + 5) % CTAS;
    }
    run(1, 1, CTAS, sample, 0, &one);
    run(counts[_i], 1, CTAS, sample, 0, &many);
    ck_assert_int_eq(many.status, HONE_OK);
    ck_assert_mem_eq(&one.counters, &many.counters, sizeof one.counters);
    ck_assert_mem_eq(&one.estimate, &many.estimate, sizeof one.estimate);
    ck_assert_mem_eq(one.out, many.out, sizeof one.out);
}
END_TEST

/* Floats added in the order in which CTAs come: one thread, whatever was asked for. */
START_TEST(ctas_that_add_to_one_place_do_so_in_order)
{
    static uint32_t in[WORDS];
    uint32_t sums[2];

    for (uint32_t n = 0; n < WORDS; n++) {
        in[n] = n * 2654435761u;
    }
    for (int n = 0; n < 2; n++) {
        ptx_bench b;
        float zero = 0;
        ptx_bench_open(&b);
        ck_assert_int_eq(ptx_bench_load(&b, text), HONE_OK);
        uint64_t from = ptx_bench_buffer(&b, in, sizeof in), out = ptx_bench_buffer(&b, &zero, 4);
        b.launch.checks = HONE_EMU_CHECK_MEMORY;
        b.launch.threads = n == 0 ? 1 : counts[_i];
        ck_assert_int_eq(ptx_bench_run(&b, "sum", (uint32_t[]){CTAS, 1, 1},
                                       (uint32_t[]){THREADS, 1, 1}, (void *[]){&from, &out}),
                         HONE_OK);
        ptx_bench_read(&b, out, &sums[n], 4);
        ptx_bench_close(&b);
    }
    ck_assert_uint_eq(sums[0], sums[1]);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("threads");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, results_and_counters_do_not_depend_on_the_threads, 0,
                        (int)ARRAY_LEN(counts));
    tcase_add_loop_test(tests, the_fault_is_that_of_the_first_cluster, 0, (int)ARRAY_LEN(counts));
    tcase_add_loop_test(tests, a_sample_is_estimated_to_the_same_figures, 0,
                        (int)ARRAY_LEN(counts));
    tcase_add_loop_test(tests, ctas_that_add_to_one_place_do_so_in_order, 0,
                        (int)ARRAY_LEN(counts));
    return suite_run_here("emulator/threads", tests);
}
