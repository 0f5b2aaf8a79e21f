/* test_profile.c - counters of a sample with their error, counters by line, and the CUDA lines that
 * PTX tells of. */
#include "tests/emulator/counters_bench.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CTA n stores n times, so that stores tell the CTAs apart. */
static const char uneven[] =
    KERNEL("mov.u32 %r1, %ctaid.x;\nL: setp.eq.u32 %p1, %r1, 0; @%p1 bra E;\n"
           "st.global.u32 [%rd0], %r0; sub.u32 %r1, %r1, 1; bra L;\nE:");

static double error_of(const counters_bench *t, size_t field)
{
    return t->estimate.error[field / sizeof(uint64_t)];
}

static void run_sample(counters_bench *t, const uint64_t *ctas, size_t len, int32_t threads)
{
    counters_bench_open(t, uneven);
    t->b.launch.threads = threads;
    t->b.launch.sample = ctas;
    t->b.launch.sample_len = len;
    t->b.launch.checks = HONE_EMU_CHECK_MEMORY; /* CTAs store to the same words */
    ck_assert_int_eq(counters_bench_launch(t, 10, 1, 16384), HONE_OK);
}

/* CTAs 2, 4 and 9 of ten: mean 5, variance (9 + 1 + 16) / 2 = 13, so that the total is 50 and its
 * error 10 sqrt(13 / 3 (1 - 3 / 10)). */
START_TEST(a_sample_is_scaled_with_its_standard_error)
{
    const uint64_t ctas[] = {2, 4, 9};
    counters_bench t;

    run_sample(&t, ctas, 3, 1);
    ck_assert_uint_eq(t.b.counters.global_store_requests, 15);
    ck_assert_uint_eq(t.estimate.total.global_store_requests, 50);
    ck_assert_double_eq_tol(error_of(&t, FIELD(global_store_requests)),
                            10 * sqrt(13.0 / 3 * (1 - 0.3)), 1e-9);
    ck_assert_uint_eq(t.estimate.total.ctas_run, 3);
    ck_assert_uint_eq(t.estimate.total.ctas_total, 10);
    /* every CTA has one warp that runs ld.param once: no spread */
    ck_assert_double_eq(error_of(&t, FIELD(divergent_branches)), 0);
    /* CTAs share lines: no error can be stated */
    ck_assert(isnan(error_of(&t, FIELD(unique_lines))));
    counters_bench_close(&t);
}
END_TEST

START_TEST(a_whole_grid_has_no_error_and_a_lone_cta_no_known_one)
{
    const uint64_t one[] = {7}, all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    counters_bench t;

    run_sample(&t, NULL, 0, 1);
    ck_assert_uint_eq(t.estimate.total.global_store_requests, 45);
    ck_assert_double_eq(error_of(&t, FIELD(global_store_requests)), 0);
    counters_bench_close(&t);
    run_sample(&t, all, 10, 1);
    ck_assert_uint_eq(t.estimate.total.global_store_requests, 45);
    ck_assert_double_eq(error_of(&t, FIELD(global_store_requests)), 0);
    counters_bench_close(&t);
    run_sample(&t, one, 1, 1);
    ck_assert_uint_eq(t.estimate.total.global_store_requests, 70);
    ck_assert(isnan(error_of(&t, FIELD(global_store_requests))));
    counters_bench_close(&t);
}
END_TEST

/* Sums, samples and lines of several host threads are those of one. */
START_TEST(host_threads_count_together)
{
    const uint64_t ctas[] = {9, 1, 4, 7, 2};
    counters_bench one, many;

    run_sample(&one, _i == 0 ? NULL : ctas, _i == 0 ? 0 : 5, 1);
    run_sample(&many, _i == 0 ? NULL : ctas, _i == 0 ? 0 : 5, 3);
    ck_assert_mem_eq(&one.b.counters, &many.b.counters, sizeof one.b.counters);
    ck_assert_mem_eq(&one.estimate.total, &many.estimate.total, sizeof one.estimate.total);
    ck_assert_double_eq_tol(error_of(&one, FIELD(global_store_requests)),
                            error_of(&many, FIELD(global_store_requests)), 1e-9);
    ck_assert_uint_eq(one.profile.len, many.profile.len);
    for (size_t n = 0; n < one.profile.len; n++) {
        hone_emu_line a = one.profile.lines[n], b = many.profile.lines[n];
        a.source = b.source = NULL;
        ck_assert_mem_eq(&a, &b, sizeof a);
    }
    counters_bench_close(&one);
    counters_bench_close(&many);
}
END_TEST

/* By line: the PTX's own, with the CUDA line that .loc says. */
static const char lined[] =
    ".version 8.8\n"                                                     /* 1 */
    ".target sm_90a\n"                                                   /* 2 */
    ".address_size 64\n"                                                 /* 3 */
    ".visible .entry k(.param .u64 buffer) {\n"                          /* 4 */
    ".reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"             /* 5 */
    "ld.param.u64 %rd0, [buffer];\n"                                     /* 6 */
    ".loc 1 10 3\n"                                                      /* 7 */
    "mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4;\n"                  /* 8 */
    ".loc 2 20 0, function_name $L__info_string0, inlined_at 1 11 7\n"   /* 9 */
    "add.s64 %rd1, %rd0, %rd1;\n"                                        /* 10 */
    "setp.lt.u32 %p1, %r0, 4;\n"                                         /* 11 */
    "@%p1 ld.global.u32 %r1, [%rd1];\n"                                  /* 12 */
    ".loc 3 30 0, function_name $L__info_string0+5, inlined_at 2 20 0\n" /* 13 */
    "st.global.u32 [%rd1+512], %r0;\n"                                   /* 14 */
    "ret;\n}\n"                                                          /* 15 */
    ".file 1 \"dir/k.cu\", 12, 34\n.file 2 \"a.cuh\"\n.file 3 \"b.cuh\"\n"
    ".section .debug_str {\n$L__info_string0:\n.b8 95,90,0\n}\n";

static const hone_emu_line *line_of(const counters_bench *t, int32_t ptx_line)
{
    for (size_t n = 0; n < t->profile.len; n++) {
        if (t->profile.lines[n].ptx_line == ptx_line) {
            return &t->profile.lines[n];
        }
    }
    ck_abort_msg("no line %d", ptx_line);
    return NULL;
}

START_TEST(a_profile_has_each_line_with_its_source)
{
    counters_bench t;
    uint64_t warp = 0, sectors = 0;

    counters_bench_run(&t, lined, 32, HONE_EMU_AT_ISSUE);
    for (size_t n = 0; n < t.profile.len; n++) {
        warp += t.profile.lines[n].warp_instructions;
        sectors += t.profile.lines[n].global_sectors;
        ck_assert(n == 0 || t.profile.lines[n].ptx_line > t.profile.lines[n - 1].ptx_line);
    }
    ck_assert_uint_eq(warp, t.b.counters.warp_instructions);
    ck_assert_uint_eq(sectors, t.b.counters.global_sectors);
    const hone_emu_line *first = line_of(&t, 6), *two = line_of(&t, 8), *load = line_of(&t, 12),
                        *store = line_of(&t, 14);
    ck_assert_str_eq(first->source, "");
    ck_assert_int_eq(first->source_line, 0);
    ck_assert_str_eq(two->source, "dir/k.cu");
    ck_assert_int_eq(two->source_line, 10);
    ck_assert_uint_eq(two->warp_instructions, 2);
    ck_assert_str_eq(load->source, "a.cuh");
    ck_assert_uint_eq(load->global_sectors, 1);
    ck_assert_uint_eq(load->predicated_off, 28);
    ck_assert_str_eq(store->source, "b.cuh");
    ck_assert_int_eq(store->source_line, 30);
    ck_assert_uint_eq(store->global_sectors, 4);
    counters_bench_close(&t);
}
END_TEST

#define A4      "{%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f0, %f0, %f0, %f0};"
#define D4      "{%f1, %f2, %f3, %f4}, "
#define PRODUCT "mma.sync.aligned.m16n8k16.row.col.f32."
/* The body begins at line 12. */
static const char classes[] =
    KERNEL("mov.b32 %r1, 0; mov.f32 %f0, 0f00000000; add.u32 %r2, %r0, 1;\n" /* 12 */
           "add.f32 %f5, %f0, %f0; ex2.approx.f32 %f6, %f0; cvt.rn.f32.u32 %f7, "
           "%r0;\n" /* 13 */
           "mov.f64 %d0, 0d3FF0000000000000; add.f64 %d1, %d0, %d0; mov.b16 %h0, 0; "
           "add.f16 %h1, %h0, %h0;\n"                                        /* 14 */
           PRODUCT "bf16.bf16.f32 " D4 A4 "\n"                               /* 15 */
           PRODUCT "bf16.bf16.f32 " D4 A4 PRODUCT "f16.f16.f32 " D4 A4 "\n"  /* 16 */
           "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 " D4 A4 "\n" /* 17 */
           "setp.lt.u32 %p1, %r0, 8; @%p1 bra A; st.local.u32 [l], %r0;\nA: bar.sync 0;");

/* In each of two CTAs of one warp each instruction runs once. */
START_TEST(a_line_has_its_classes_and_its_products_by_kind)
{
    counters_bench t;

    counters_bench_open(&t, classes);
    ck_assert_int_eq(counters_bench_launch(&t, 2, 32, 16384), HONE_OK);
    ck_assert_uint_eq(line_of(&t, 10)->memory, 2);
    ck_assert_uint_eq(line_of(&t, 12)->alu, 6);
    ck_assert_uint_eq(line_of(&t, 12)->warp_instructions, 6);
    ck_assert_uint_eq(line_of(&t, 13)->fp32, 2);
    ck_assert_uint_eq(line_of(&t, 13)->sfu, 2);
    ck_assert_uint_eq(line_of(&t, 13)->conversion, 2);
    ck_assert_uint_eq(line_of(&t, 13)->alu, 0);
    ck_assert_uint_eq(line_of(&t, 14)->alu, 4);
    ck_assert_uint_eq(line_of(&t, 14)->fp64, 2);
    ck_assert_uint_eq(line_of(&t, 14)->half, 2);
    ck_assert_uint_eq(line_of(&t, 18)->alu, 2);     /* setp */
    ck_assert_uint_eq(line_of(&t, 18)->control, 2); /* bra */
    ck_assert_uint_eq(line_of(&t, 18)->memory, 2);  /* by the 24 lanes that did not branch */
    ck_assert_uint_eq(line_of(&t, 18)->thread_instructions, 2 * (32 + 32 + 24));
    ck_assert_uint_eq(line_of(&t, 19)->control, 2); /* bar */
    /* 16 x 8 x 16 multiply-adds, 16 x 8 x 32 of e4m3 */
    const hone_emu_line *one = line_of(&t, 15), *both = line_of(&t, 16), *fp8 = line_of(&t, 17);
    ck_assert_uint_eq(one->tensor, 2);
    ck_assert_uint_eq(one->macs, 4096);
    ck_assert_uint_eq(one->tensor_macs[HONE_EMU_MMA_BF16], 4096);
    ck_assert_uint_eq(one->tensor_macs[HONE_EMU_MMA_F16], 0);
    ck_assert_uint_eq(both->tensor, 4);
    ck_assert_uint_eq(both->macs, 8192);
    ck_assert_uint_eq(both->tensor_macs[HONE_EMU_MMA_BF16], 4096);
    ck_assert_uint_eq(both->tensor_macs[HONE_EMU_MMA_F16], 4096);
    ck_assert_uint_eq(fp8->tensor_macs[HONE_EMU_MMA_FP8], 8192);
    ck_assert_uint_eq(fp8->tensor_macs[HONE_EMU_MMA_BF16], 0);
    counters_bench_close(&t);
}
END_TEST

/* Lines add up to the launch's counters, class by class and kind by kind. */
START_TEST(lines_add_up_to_the_launch)
{
    counters_bench t;
    hone_emu_line sum = {0};

    counters_bench_run(&t, classes, 64, HONE_EMU_AT_ISSUE);
    for (size_t n = 0; n < t.profile.len; n++) {
        const hone_emu_line *l = &t.profile.lines[n];
        ck_assert_uint_eq(l->warp_instructions, l->alu + l->fp32 + l->fp64 + l->half + l->sfu +
                                                    l->conversion + l->control + l->memory +
                                                    l->tensor + l->async);
        sum.alu += l->alu;
        sum.control += l->control;
        sum.memory += l->memory;
        sum.tensor += l->tensor;
        for (size_t k = 0; k < ARRAY_LEN(sum.tensor_macs); k++) {
            sum.tensor_macs[k] += l->tensor_macs[k];
        }
    }
    ck_assert_uint_eq(sum.alu, t.b.counters.alu);
    ck_assert_uint_eq(sum.control, t.b.counters.control);
    ck_assert_uint_eq(sum.memory, t.b.counters.memory);
    ck_assert_uint_eq(sum.tensor, t.b.counters.tensor);
    ck_assert_mem_eq(sum.tensor_macs, t.b.counters.tensor_macs, sizeof sum.tensor_macs);
    counters_bench_close(&t);
}
END_TEST

/* Lines 8, 9, 11, 12 load; 14 stores, 16 copies, 18 adds: of CUDA lines 10, 10, 11, 11, 12, 13,
 * 13. */
static const char touched[] =
    ".version 8.8\n.target sm_90a\n.address_size 64\n" /* 1 to 3 */
    ".visible .entry k(.param .u64 buffer) {\n"        /* 4 */
    ".reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .shared .align 16 .b8 s[512];\n"
    "ld.param.u64 %rd0, [buffer]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.s64 %rd1, "
    "%rd0, %rd1; mul.wide.u32 %rd2, %r0, 128; add.s64 %rd2, %rd0, %rd2; mov.u32 %r2, %ctaid.x; "
    "mul.wide.u32 %rd3, %r2, 4096; add.s64 %rd2, %rd2, %rd3; add.s64 %rd4, %rd1, %rd3;\n" /* 6 */
    ".loc 1 10 3\n"
    "ld.global.u32 %r1, [%rd1];\n"    /* 8: bytes 0 to 127: line 0 */
    "ld.global.u32 %r1, [%rd1+64];\n" /* 9: bytes 64 to 191: lines 0 and 1 */
    ".loc 1 11 3\n"
    "ld.global.u32 %r1, [%rd0];\n"      /* 11: line 0, */
    "ld.global.u32 %r1, [%rd0+8192];\n" /* 12: line 64 */
    ".loc 1 12 3\n"
    "st.global.u32 [%rd2], %r0;\n" /* 14: 32 lines of each CTA */
    ".loc 1 13 3\n"
    "shl.b32 %r3, %r0, 2; mov.u32 %r4, s; add.u32 %r3, %r3, %r4; cp.async.ca.shared.global [%r3], "
    "[%rd4], 4; cp.async.wait_all;\n" /* 16: line 0 of CTA 0's, line 0 of CTA 1's */
    ".loc 1 13 9\n"
    "red.global.add.u32 [%rd0+128], 1;\n" /* 18: line 1 */
    "ret;\n}\n.file 1 \"k.cu\"\n";

/* On one host thread or two. */
START_TEST(a_line_has_the_distinct_lines_that_it_touched)
{
    static const struct {
        int32_t ptx_line;
        uint64_t own, of_source;
    } want[] = {
        {8, 1, 2},    {9, 2, 2},  {11, 1, 2}, {12, 1, 2},
        {14, 64, 64}, {16, 2, 3}, {18, 1, 3}, {6, 0, 0},
    };
    counters_bench t;

    counters_bench_open(&t, touched);
    t.b.launch.threads = 1 + _i;
    t.b.launch.checks = HONE_EMU_CHECK_MEMORY; /* CTAs store where others load */
    ck_assert_int_eq(counters_bench_launch(&t, 2, 32, 16384), HONE_OK);
    for (size_t n = 0; n < ARRAY_LEN(want); n++) {
        const hone_emu_line *l = line_of(&t, want[n].ptx_line);
        ck_assert_msg(l->unique_lines == want[n].own && l->source_unique_lines == want[n].of_source,
                      "line %d: %d, and %d of its source", l->ptx_line, (int)l->unique_lines,
                      (int)l->source_unique_lines);
    }
    ck_assert_uint_eq(t.b.counters.unique_lines, 65); /* 0 to 63, and 64 */
    counters_bench_close(&t);
}
END_TEST

START_TEST(without_a_profile_the_counters_are_the_same)
{
    counters_bench with, without;

    counters_bench_run(&with, lined, 32, HONE_EMU_AT_ISSUE);
    counters_bench_open(&without, lined);
    without.b.launch.profile = NULL;
    ck_assert_int_eq(counters_bench_launch(&without, 1, 32, 16384), HONE_OK);
    ck_assert_mem_eq(&with.b.counters, &without.b.counters, sizeof with.b.counters);
    counters_bench_close(&with);
    counters_bench_close(&without);
}
END_TEST

/* A fault in a function that was inlined twice names its own line and the outermost caller's. */
START_TEST(a_fault_names_the_cuda_line)
{
    counters_bench t;

    counters_bench_open(&t, lined);
    ck_assert_int_eq(counters_bench_launch(&t, 1, 32, 512), HONE_WRONG);
    ck_assert_str_eq(t.b.fault.kind, "out-of-bounds");
    ck_assert_int_eq(t.b.fault.ptx_line, 14);
    ck_assert_str_eq(t.b.fault.source, "b.cuh");
    ck_assert_int_eq(t.b.fault.source_line, 30);
    ck_assert_str_eq(t.b.fault.caller, "dir/k.cu");
    ck_assert_int_eq(t.b.fault.caller_line, 11);
    counters_bench_close(&t);
}
END_TEST

/* Notes for a debugger that make no sense refuse no module. */
START_TEST(odd_line_information_is_passed_over)
{
    static const char *const odd[] = {
        ".loc\n",       ".loc 1\n",     ".loc 99999999999 1 1\n",
        ".loc 7 3 1\n", ".loc x y z\n", ".loc 1 2 3, inlined_at\n",
        ".file\n",      ".file 1\n",    ".file \"a\"\n",
    };
    char text[2048];
    counters_bench t;

    snprintf(text, sizeof text,
             ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 b) {\n"
             "%sret;\n}\n",
             odd[_i]);
    counters_bench_run(&t, text, 32, HONE_EMU_AT_ISSUE);
    ck_assert_uint_eq(t.b.counters.warp_instructions, 1);
    counters_bench_close(&t);
}
END_TEST

/* As the compiler itself says it. */
START_TEST(line_information_of_the_compiler_is_understood)
{
    static const char source[] = "__device__ __forceinline__ int next(const int *p) {\n"
                                 "    return p[1000000];\n"
                                 "}\n"
                                 "extern \"C\" __global__ void k(int *p) {\n"
                                 "    int a = p[threadIdx.x];\n"
                                 "    p[threadIdx.x] = a + next(p);\n"
                                 "}\n";
    const char *options[] = {"--gpu-architecture=sm_90a", "-lineinfo", NULL};
    char *ptx = ptx_bench_compile(source, options);
    counters_bench t;

    if (ptx == NULL) {
        return;
    }
    counters_bench_open(&t, ptx);
    ck_assert_int_eq(counters_bench_launch(&t, 1, 32, 128), HONE_WRONG);
    ck_assert_int_eq(t.b.fault.source_line, 2);
    ck_assert_int_eq(t.b.fault.caller_line, 6);
    const char *name = strstr(t.b.fault.source, "test.cu");
    ck_assert(name != NULL && strcmp(name, "test.cu") == 0);
    counters_bench_close(&t);
    free(ptx);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("profile");

    tcase_add_test(tests, a_sample_is_scaled_with_its_standard_error);
    tcase_add_test(tests, a_whole_grid_has_no_error_and_a_lone_cta_no_known_one);
    tcase_add_loop_test(tests, host_threads_count_together, 0, 2);
    tcase_add_test(tests, a_profile_has_each_line_with_its_source);
    tcase_add_test(tests, a_line_has_its_classes_and_its_products_by_kind);
    tcase_add_test(tests, lines_add_up_to_the_launch);
    tcase_add_loop_test(tests, a_line_has_the_distinct_lines_that_it_touched, 0, 2);
    tcase_add_test(tests, without_a_profile_the_counters_are_the_same);
    tcase_add_test(tests, a_fault_names_the_cuda_line);
    tcase_add_loop_test(tests, odd_line_information_is_passed_over, 0, 9);
    tcase_add_test(tests, line_information_of_the_compiler_is_understood);
    return suite_run_here("emulator/profile", tests);
}
