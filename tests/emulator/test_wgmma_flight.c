/* test_wgmma_flight.c - the rules of wgmma: registers in flight, fences, descriptors, warpgroups.
 */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include "core/status.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Four warps, or as many as a case says; shared memory of ones in e4m3. The body begins at line 20;
 * %d and %e are accumulators, %a registers of A, %xa and %xb descriptors. */
static const char head[] =
    ".version 8.8\n.target sm_90a\n.address_size 64\n"
    ".visible .entry k(.param .u64 out)\n{\n"
    ".shared .align 1024 .b8 buffer[16384];\n"
    ".reg .pred %p<4>; .reg .f32 %d<8>, %e<8>, %f<8>; .reg .b32 %r<8>, %a<4>;\n"
    ".reg .b64 %x<8>, %xa, %xb;\n"
    "ld.param.u64 %x0, [out]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, buffer;\n"
    "cvt.u64.u32 %x1, %r1; add.s64 %x1, %x0, %x1; add.s32 %r3, %r2, %r1; mov.u32 %r4, 0;\n"
    "fill: st.shared.u32 [%r3], 0x38383838; add.s32 %r3, %r3, 512; add.s32 %r4, %r4, 1;\n"
    "setp.lt.u32 %p0, %r4, 16; @%p0 bra fill;\n"
    "fence.proxy.async; bar.sync 0;\n"
    "mov.b64 %xa, 0x4000004000010000;\n"
    "mov.b64 %xb, 0x4000004000010100;\n"
    "mov.f32 %d0, 0f3F800000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;\n"
    "mov.f32 %e0, %d0; mov.f32 %e1, %d0; mov.f32 %e2, %d0; mov.f32 %e3, %d0;\n"
    "mov.b32 %a0, 0x38383838; mov.b32 %a1, %a0; mov.b32 %a2, %a0; mov.b32 %a3, %a0;\n"
    "mov.f32 %f0, 0f40000000; add.s32 %r5, %r0, 1;\n";
static const char tail[] = "\nst.global.f32 [%x1], %d0;\nret;\n}\n";

#define FENCE   "wgmma.fence.sync.aligned;\n"
#define COMMIT  "wgmma.commit_group.sync.aligned;\n"
#define WAIT    "wgmma.wait_group.sync.aligned 0;\n"
#define MMA     "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 "
#define MMA_D   MMA "{%d0, %d1, %d2, %d3}, %xa, %xb, 1, 1, 1;\n"
#define MMA_E   MMA "{%e0, %e1, %e2, %e3}, %xa, %xb, 1, 1, 1;\n"
#define MMA_RS  MMA "{%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, %xb, 1, 1, 1;\n"
#define MOVE_DE "mov.f32 %e0, %d0; mov.f32 %e1, %d1; mov.f32 %e2, %d2; mov.f32 %e3, %d3;\n"
#define MOVE_ED "mov.f32 %d0, %e0; mov.f32 %d1, %e1; mov.f32 %d2, %e2; mov.f32 %d3, %e3;\n"

static hone_status run_body(ptx_bench *b, const char *body, uint32_t threads, float out[128])
{
    char *text = calloc(1, sizeof head + strlen(body) + sizeof tail);
    static float none[128];
    uint64_t to = ptx_bench_buffer(b, none, sizeof none);

    strcat(strcat(strcpy(text, head), body), tail);
    ck_assert_msg(ptx_bench_load(b, text) == HONE_OK, "%s", b->error.message);
    free(text);
    hone_status status =
        ptx_bench_run(b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){threads, 1, 1}, (void *[]){&to});
    ptx_bench_read(b, to, out, sizeof none);
    return status;
}

/* What is well: products of 32 ones each, added to 1; `sum` is what %d0 then holds. */
static const struct {
    const char *name, *body;
    float sum;
} good[] = {
    {"one product", FENCE MMA_D COMMIT WAIT, 33},
    {"two that add on need no second fence", FENCE MMA_D MMA_D COMMIT WAIT, 65},
    {"a group that is not waited for yet",
     FENCE MMA_D COMMIT MMA_E COMMIT
     "wgmma.wait_group.sync.aligned 1;\nadd.f32 %d0, %d0, %f0;\n" WAIT,
     35},
    {"copies take accumulators along", FENCE MMA_D MOVE_DE MMA_E COMMIT MOVE_ED WAIT, 65},
    {"the register that was copied from is free",
     FENCE MMA_D MOVE_DE COMMIT "add.f32 %d1, %f0, %f0;\n" WAIT "mov.f32 %d0, %e0;\n", 33},
    {"copies between a fence and its product",
     "add.f32 %e0, %e0, %f0;\n" FENCE MOVE_ED MMA_D COMMIT WAIT, 35},
    {"constants there, too",
     "add.f32 %d0, %d0, %f0;\n" FENCE "mov.f32 %d0, 0f00000000;\n" MMA_D COMMIT WAIT, 32},
    {"a fence after each use",
     FENCE MMA_D COMMIT WAIT "add.f32 %d0, %d0, %f0;\n" FENCE MMA_D COMMIT WAIT, 67},
    {"A in registers, twice", FENCE MMA_RS MMA_RS COMMIT WAIT, 65},
    {"copies of registers of A", FENCE MMA_RS "mov.b32 %r6, %a0;\n" COMMIT WAIT, 33},
    {"scale-d false forgets",
     FENCE MMA_D MMA "{%d0, %d1, %d2, %d3}, %xa, %xb, 0, 1, 1;\n" COMMIT WAIT, 32},
    {"another shape behind a fence",
     FENCE MMA_D COMMIT FENCE
     "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3 {%d0, %d1, %d2, %d3, %e0, %e1, %e2, %e3}"
     ", %xa, %xb, 1, 1, 1;\n" COMMIT WAIT,
     65},
};

START_TEST(what_the_rules_allow_runs_in_both_timings)
{
    for (int timing = HONE_EMU_AT_ISSUE; timing <= HONE_EMU_LATEST; timing++) {
        ptx_bench b;
        float out[128];
        ptx_bench_open(&b);
        b.launch.timing = (hone_emu_timing)timing;
        hone_status status = run_body(&b, good[_i].body, 128, out);
        ck_assert_msg(status == HONE_OK && b.fault.result == 0, "%s: line %d %s", good[_i].name,
                      b.fault.ptx_line, b.fault.message);
        for (int n = 0; n < 128; n++) {
            ck_assert_msg(out[n] == good[_i].sum, "%s: %g", good[_i].name, (double)out[n]);
        }
        ptx_bench_close(&b);
    }
}
END_TEST

static const struct {
    const char *name, *body;
    uint32_t threads;
    const char *kind;
    int32_t line;
    const char *message;
} bad[] = {
    {"read", FENCE MMA_D COMMIT "add.f32 %f1, %f0, %d3;\n" WAIT, 128, "async-misuse", 23,
     "register of a wgmma that is still in flight (issued at line 21) is read here"},
    {"written", FENCE MMA_D COMMIT "mov.f32 %d2, 0f00000000;\n" WAIT, 128, "async-misuse", 23,
     "register of a wgmma that is still in flight (issued at line 21) is written here"},
    {"read after a wait that does not cover it",
     FENCE MMA_D COMMIT MMA_E COMMIT
     "wgmma.wait_group.sync.aligned 1;\nadd.f32 %e0, %e0, %f0;\n" WAIT,
     128, "async-misuse", 26,
     "register of a wgmma that is still in flight (issued at line 23) is read here"},
    {"not committed", FENCE MMA_D WAIT "add.f32 %d0, %d0, %f0;\n", 128, "async-misuse", 23,
     "register of a wgmma that is still in flight (issued at line 21) is read here"},
    {"read where a copy took it", FENCE MMA_D MOVE_DE COMMIT "add.f32 %f1, %f0, %e3;\n" WAIT, 128,
     "async-misuse", 24,
     "register of a wgmma that is still in flight (issued at line 21) is read here"},
    {"A written", FENCE MMA_RS COMMIT "add.s32 %a1, %r0, 1;\n" WAIT, 128, "async-misuse", 23,
     "register of a wgmma that is still in flight (issued at line 21) is written here"},
    {"no fence at all", MMA_D COMMIT WAIT, 128, "async-misuse", 20,
     "the first wgmma has no wgmma.fence before it"},
    {"an accumulator written behind the fence", FENCE "add.f32 %d3, %d3, %f0;\n" MMA_D COMMIT WAIT,
     128, "async-misuse", 22,
     "wgmma uses a register that was written at line 21, with no wgmma.fence in between"},
    {"an accumulator read between products",
     FENCE MMA_D COMMIT WAIT "add.f32 %f1, %d3, %f0;\n" MMA_D COMMIT WAIT, 128, "async-misuse", 25,
     "wgmma uses a register that was read at line 24, with no wgmma.fence in between"},
    {"A written behind the fence", FENCE "add.s32 %a1, %r0, 1;\n" MMA_RS COMMIT WAIT, 128,
     "async-misuse", 22,
     "wgmma uses a register that was written at line 21, with no wgmma.fence in between"},
    {"another shape without a fence",
     FENCE MMA_D COMMIT
     "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3 {%d0, %d1, %d2, %d3, %e0, %e1, %e2, %e3}"
     ", %xa, %xb, 1, 1, 1;\n" COMMIT WAIT,
     128, "async-misuse", 23,
     "register of a wgmma that is still in flight (issued at line 21) is written here"},
    {"three warps", FENCE MMA_D COMMIT WAIT, 96, "precondition", 21,
     "wgmma needs a warpgroup of 4 warps; the CTA's 3 end in this one"},
    {"past the end", FENCE "mov.b64 %xb, 0x40000040000103ff;\n" MMA_D COMMIT WAIT, 128,
     "out-of-bounds", 22,
     "descriptor 40000040000103ff of B reaches to 17408; the CTA's shared memory ends at 16384"},
    {"another base offset than its start has",
     FENCE "mov.b64 %xb, 0x4006004000010108;\n" MMA_D COMMIT WAIT, 128, "precondition", 22,
     "descriptor 4006004000010108 of B starts at 4224, 768 bytes into its swizzle pattern of 1024; "
     "its base offset is 3"},
    {"past the end, aligned",
     FENCE "mov.b64 %xb, 0x40000040000103fe;\n"
           "mov.b64 %xb, 0x40000040000103c0;\nmov.b64 %xa, 0x4000004000010380;\n" MMA_D COMMIT WAIT,
     128, "out-of-bounds", 24,
     "descriptor 4000004000010380 of A reaches to 22528; the CTA's shared memory ends at 16384"},
    {"lanes that differ",
     FENCE "and.b32 %r5, %r0, 31; cvt.u64.u32 %x2, %r5; add.s64 %xb, %xb, %x2;\n" MMA_D COMMIT WAIT,
     128, "precondition", 22,
     "the descriptor of B is 4000004000010101 in lane 1 and 4000004000010100 in lane 0"},
    {"warps that differ",
     FENCE "setp.gt.u32 %p1, %r0, 63; @%p1 add.s64 %xb, %xb, 2;\n" MMA_D COMMIT WAIT, 128,
     "precondition", 22,
     "wgmma 1 of warp 0 is not that of warp 3, of the same warpgroup: line 22, A "
     "4000004000010000, B 4000004000010102 there"},
    {"poison in A",
     ".reg .b32 %none;\n" FENCE MMA
     "{%d0, %d1, %d2, %d3}, {%a0, %none, %a2, %a3}, %xb, 1, 1, 1;\n" COMMIT WAIT,
     128, "uninitialised", 22,
     "a register of A comes from memory or a register that was never written"},
    {"poison in scale-d",
     ".reg .pred %none;\n" FENCE MMA "{%d0, %d1, %d2, %d3}, %xa, %xb, %none, 1, 1;\n" COMMIT WAIT,
     128, "uninitialised", 22, "scale-d comes from memory or a register that was never written"},
    {"lanes that differ in scale-d",
     FENCE "and.b32 %r6, %r0, 1; setp.eq.u32 %p1, %r6, 0;\n" MMA
           "{%d0, %d1, %d2, %d3}, %xa, %xb, %p1, 1, 1;\n" COMMIT WAIT,
     128, "precondition", 22, "scale-d is true in lanes 55555555 and false in the others"},
    {"B where a copy has not been waited for",
     "setp.eq.u32 %p1, %r0, 96;\n@%p1 cp.async.ca.shared.global [%r2+4096], [%x0], 4;\n" FENCE MMA_D
         COMMIT WAIT,
     128, "async-misuse", 23,
     "B is read at 4096 of shared memory, where a copy in flight will write"},
    {"A where an mbarrier lives",
     "setp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\n" FENCE MMA_D COMMIT
         WAIT,
     128, "mbarrier", 23, "A is read at 0 of shared memory, where an mbarrier lives"},
};

START_TEST(what_breaks_a_rule_is_named)
{
    ptx_bench b;
    float out[128];

    ptx_bench_open(&b);
    ck_assert_int_ne(run_body(&b, bad[_i].body, bad[_i].threads, out), HONE_OK);
    ck_assert_msg(b.fault.result != 0, "%s: no fault", bad[_i].name);
    ck_assert_msg(strcmp(b.fault.message, bad[_i].message) == 0, "%s: %s", bad[_i].name,
                  b.fault.message);
    ck_assert_str_eq(b.fault.kind, bad[_i].kind);
    ck_assert_int_eq(b.fault.ptx_line, bad[_i].line);
    ptx_bench_close(&b);
}
END_TEST

START_TEST(shared_memory_that_nobody_wrote_is_no_operand)
{
    static const char body[] =
        FENCE "mov.b64 %xb, 0x4000004000010400;\n" MMA_D COMMIT WAIT ".shared .b8 more[2048];\n";
    ptx_bench b;
    float out[128];

    ptx_bench_open(&b);
    b.launch.dynamic_shared_bytes = 4096;
    ck_assert_int_ne(run_body(&b, body, 128, out), HONE_OK);
    ck_assert_str_eq(b.fault.kind, "uninitialised");
    ck_assert_str_eq(b.fault.message,
                     "B is read at 16384 of shared memory, which was never written");
    ck_assert_uint_eq(b.fault.address, 16384);
    ck_assert_int_eq(b.fault.ptx_line, 22);
    ptx_bench_close(&b);
}
END_TEST

/* What overwrites an operand too early shows when products are done late. */
START_TEST(late_products_read_what_lies_there_then)
{
    static const char body[] =
        FENCE MMA_D COMMIT "bar.sync 0;\nst.shared.u32 [%r2+4096], 0;\nbar.sync 0;\n" WAIT;
    float sums[2];

    for (int timing = HONE_EMU_AT_ISSUE; timing <= HONE_EMU_LATEST; timing++) {
        ptx_bench b;
        float out[128];
        ptx_bench_open(&b);
        b.launch.checks = HONE_EMU_CHECK_MEMORY;
        b.launch.timing = (hone_emu_timing)timing;
        ck_assert_int_eq(run_body(&b, body, 128, out), HONE_OK);
        ck_assert_msg(b.fault.result == 0, "%s", b.fault.message);
        sums[timing] = out[0];
        ptx_bench_close(&b);
    }
    ck_assert_float_eq(sums[HONE_EMU_AT_ISSUE], 33);
    ck_assert_float_eq(sums[HONE_EMU_LATEST], 29);
}
END_TEST

START_TEST(what_is_not_executed_is_named)
{
    static const struct {
        const char *body, *message;
    } rows[] = {
        {"wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e4m3 {%d0, %d1, %d2, %d3}, %xa, %xb, "
         "%r0, 0, 1, 1, 1;\n",
         "sparse products are not executed"},
        {"wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%d0, %d1, %d2, %d3}, %xa, "
         "%xb, 1;\n",
         "products of single bits are not executed"},
        {"wgmma.mma_async.sync.aligned.m64n12k32.f32.e4m3.e4m3 {%d0, %d1, %d2, %d3}, %xa, %xb, 1, "
         "1, 1;\n",
         "line 20: wgmma.mma_async.sync.aligned.m64n12k32.f32.e4m3.e4m3"},
    };

    for (size_t n = 0; n < ARRAY_LEN(rows); n++) {
        char text[sizeof head + 512 + sizeof tail];
        ptx_bench b;
        ptx_bench_open(&b);
        strcat(strcat(strcpy(text, head), rows[n].body), tail);
        ck_assert_int_ne(ptx_bench_load(&b, text), HONE_OK);
        ck_assert_msg(strstr(b.error.message, rows[n].message) != NULL, "%s", b.error.message);
        ptx_bench_close(&b);
    }
}
END_TEST

START_TEST(strict_checks_refuse_constants_behind_the_fence)
{
    static const struct {
        const char *body, *message;
    } rows[] = {
        {FENCE "mov.f32 %d0, 0f00000000;\n" MMA_D COMMIT WAIT,
         "wgmma uses a register that was written at line 21, with no wgmma.fence in between"},
        {FENCE "mov.b32 %a2, 0;\n" MMA_RS COMMIT WAIT,
         "wgmma uses a register that was written at line 21, with no wgmma.fence in between"},
        {"mov.f32 %d0, 0f00000000; mov.b32 %a2, 0;\n" FENCE MMA_RS COMMIT WAIT, ""},
    };
    for (size_t n = 0; n < ARRAY_LEN(rows); n++) {
        ptx_bench b;
        float out[128];
        ptx_bench_open(&b);
        b.launch.checks = HONE_EMU_CHECK_ALL | HONE_EMU_CHECK_STRICT;
        run_body(&b, rows[n].body, 128, out);
        ck_assert_str_eq(b.fault.message, rows[n].message);
        ck_assert_int_eq(b.fault.ptx_line, rows[n].message[0] != '\0' ? 22 : 0);
        ptx_bench_close(&b);
    }
}
END_TEST

/* What NVRTC makes of "+f" operands: copies and constants wherever it likes. Accumulators that are
 * set to zero with no more ado; two sets in turn, one read while the other is in flight; A packed
 * in registers. All well, and the same sum. */
static const char compiled[] =
    "typedef unsigned u32; typedef unsigned long long u64;\n"
    "__device__ u64 desc(u32 a) { return (u64)(a >> 4) | (u64)1 << 16 | (u64)64 << 32 | (u64)1 << "
    "62; }\n"
    "__device__ void fence() { asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\"); }\n"
    "__device__ void commit() { asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\"); "
    "}\n"
    "template <int n> __device__ void wait() {\n"
    "  asm volatile(\"wgmma.wait_group.sync.aligned %0;\" ::\"n\"(n) : \"memory\"); }\n"
    "#define D \"{%0, %1, %2, %3}\"\n"
    "#define OUT \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3])\n"
    "#define MMA \"wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 \" D\n"
    "__device__ void mma(float (&d)[4], u64 a, u64 b, int keep) {\n"
    "  asm volatile(\"{.reg .pred p; setp.ne.b32 p, %6, 0; \" MMA \", %4, %5, p, 1, 1;}\"\n"
    "    : OUT : \"l\"(a), \"l\"(b), \"r\"(keep)); }\n"
    "__device__ void mma_rs(float (&d)[4], u32 (&a)[4], u64 b) {\n"
    "  asm volatile(MMA \", {%4, %5, %6, %7}, %8, 1, 1, 1;\"\n"
    "    : OUT : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b)); }\n"
    "extern \"C\" __global__ void k(float *out, u32 one, int steps) {\n"
    "  __shared__ __align__(1024) u32 tile[4096];\n"
    "  for (u32 i = threadIdx.x; i < 4096; i += 128) tile[i] = one;\n"
    "  asm volatile(\"fence.proxy.async;\" ::: \"memory\"); __syncthreads();\n"
    "  u32 at = (u32)__cvta_generic_to_shared(tile);\n"
    "  u64 a = desc(at), b = desc(at + 8192);\n"
    "  float acc[4] = {0, 0, 0, 0};\n"
    "  for (int s = 0; s < steps; s++) { fence(); mma(acc, a, b, 1); commit(); wait<1>(); }\n"
    "  wait<0>();\n"
    "  float even[4], odd[4], sum[4] = {0, 0, 0, 0};\n"
    "  fence(); mma(even, a, b, 0); commit();\n"
    "  for (int s = 0; s < steps; s++) {\n"
    "    fence(); mma(odd, a, b, 0); commit(); wait<1>();\n"
    "    for (int i = 0; i < 4; i++) sum[i] += even[i];\n"
    "    fence(); mma(even, a, b, 0); commit(); wait<1>();\n"
    "    for (int i = 0; i < 4; i++) sum[i] += odd[i];\n"
    "  }\n"
    "  wait<0>();\n"
    "  for (int i = 0; i < 4; i++) sum[i] += even[i];\n"
    "  for (int s = 0; s < steps; s++) {\n"
    "    u32 r[4];\n"
    "    for (int i = 0; i < 4; i++) { r[i] = one ^ (tile[i + 4 * s] ^ one);\n"
    "      asm volatile(\"\" : \"+r\"(r[i]) :: \"memory\"); }\n"
    "    fence(); mma_rs(acc, r, b); mma_rs(acc, r, b); commit(); wait<0>();\n"
    "  }\n"
    "  out[threadIdx.x] = acc[0] + acc[1] + sum[2] + sum[3];\n"
    "}\n";

START_TEST(what_nvrtc_makes_of_asm_operands_is_well)
{
    static const char *const options[] = {"--gpu-architecture=sm_90a", NULL};
    char *ptx = ptx_bench_compile(compiled, options);

    for (int run = 0; ptx != NULL && run < 4; run++) {
        float out[128];
        ptx_bench b;
        uint32_t one = 0x38383838;
        int steps = 3;
        ptx_bench_open(&b);
        b.launch.timing = (hone_emu_timing)(run % 2);
        b.launch.schedule_seed = (uint64_t)(run / 2);
        uint64_t to = ptx_bench_buffer(&b, NULL, sizeof out);
        ck_assert_msg(ptx_bench_load(&b, ptx) == HONE_OK, "%s", b.error.message);
        b.launch.checks = HONE_EMU_CHECK_ALL | HONE_EMU_CHECK_STRICT;
        ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){128, 1, 1},
                      (void *[]){&to, &one, &steps});
        ck_assert_msg(b.fault.result == 0, "line %d: %s", b.fault.ptx_line, b.fault.message);
        ptx_bench_read(&b, to, out, sizeof out);
        for (int n = 0; n < 128; n++) { /* 3 and 6 products, and 7: each 32 */
            ck_assert_float_eq(out[n], 2 * 32 * (9 + 7));
        }
        ptx_bench_close(&b);
    }
    free(ptx);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("wgmma_flight");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, what_the_rules_allow_runs_in_both_timings, 0, ARRAY_LEN(good));
    tcase_add_loop_test(tests, what_breaks_a_rule_is_named, 0, ARRAY_LEN(bad));
    tcase_add_test(tests, shared_memory_that_nobody_wrote_is_no_operand);
    tcase_add_test(tests, late_products_read_what_lies_there_then);
    tcase_add_test(tests, what_is_not_executed_is_named);
    tcase_add_test(tests, strict_checks_refuse_constants_behind_the_fence);
    tcase_add_test(tests, what_nvrtc_makes_of_asm_operands_is_well);
    return suite_run("emulator/wgmma_flight", tests);
}
