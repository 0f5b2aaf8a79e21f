/* test_shim_budget.c - claims about HONE_EMU_MEMORY: what a kernel has in flight counts, and so
 * does pinned memory; past the limit there is CUDA's code, and what is over is given back. */
#include "tests/emulator/shim_driver.h"

#include "core/status.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static shim_driver d;

/* One kernel for each kind of operation: `n` of them are started, and none is waited for before the
 * last. */
#define HEAD                                                                                       \
    ".version 8.8\n.target sm_90a\n.address_size 64\n"                                             \
    ".visible .entry k(.param .u64 in, .param .u32 n)\n.maxntid 128\n{\n"                          \
    ".reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %x<5>;\n"                                       \
    ".shared .align 128 .b8 s[40960]; .shared .align 8 .b64 bar;\n"                                \
    "ld.param.u64 %x1, [in]; ld.param.u32 %r1, [n]; mov.u32 %r2, s; mov.u32 %r3, %tid.x;\n"        \
    "setp.ne.u32 %p1, %r3, 0; mov.u32 %r4, 0;\n"
#define EACH(operation, step)                                                                      \
    "L: " operation "\nadd.u32 %r2, %r2, " step ";\nadd.u32 %r4, %r4, 1; setp.lt.u32 %p2, "        \
    "%r4, %r1;\n@%p2 bra L;\n"
#define TAIL "ret;\n}\n"
#define ONE  "@%p1 bra E;\n" /* a thread */
#define BARRIER                                                                                    \
    "mbarrier.init.shared::cta.b64 [bar], 1; shl.b32 %r5, %r1, 4;\n"                               \
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], %r5;\n"
#define LANDED "W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0; @!%p3 bra W;\nE: "

static const struct {
    const char *name, *text;
    uint32_t few, many, threads;
    const char *limit; /* enough for few, not for many */
} kinds[] = {
    {"cp.async",
     HEAD "shl.b32 %r6, %r3, 2; add.u32 %r2, %r2, %r6; cvt.u64.u32 %x2, %r6;\n"
          "add.u64 %x1, %x1, %x2;\n" EACH("cp.async.ca.shared.global [%r2], [%x1], 4;",
                                          "128") "cp.async.wait_all;\n" TAIL,
     8, 320, 32, "512K"},
    {"bulk loads",
     HEAD ONE BARRIER EACH(
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%x1], 16, "
         "[bar];",
         "16") LANDED TAIL,
     8, 2500, 32, "1M"},
    {"bulk stores",
     HEAD ONE "st.shared.v2.u64 [%r2], {%x1, %x1}; fence.proxy.async.shared::cta;\n" EACH(
         "cp.async.bulk.global.shared::cta.bulk_group [%x1], [%r2], 16;\nadd.u64 %x1, %x1, 16;",
         "0") "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nE: " TAIL,
     8, 4000, 32, "1M"},
    {"wgmma",
     HEAD "shl.b32 %r5, %r3, 6; add.u32 %r5, %r5, %r2; mov.u32 %r6, 0; mov.u64 %x3, 0;\n"
          "st.shared.v2.u64 [%r5], {%x3, %x3}; st.shared.v2.u64 [%r5+16], {%x3, %x3};\n"
          "st.shared.v2.u64 [%r5+32], {%x3, %x3}; st.shared.v2.u64 [%r5+48], {%x3, %x3};\n"
          "fence.proxy.async; bar.sync 0;\nshr.u32 %r5, %r2, 4; cvt.u64.u32 %x3, %r5;\n"
          "or.b64 %x3, %x3, 0x0000001000080000;\n"
          "mov.u32 %r7, 0; mov.u32 %r8, 0; mov.u32 %r9, 0; wgmma.fence.sync.aligned;\n" EACH(
              "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%r6, %r7, %r8, %r9}, %x3, "
              "%x3, 1, 1, 1;",
              "0") "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n" TAIL,
     8, 6000, 128, "2M"},
};

static CUresult launch(CUfunction f, CUdeviceptr in, uint32_t n, uint32_t threads)
{
    void *params[] = {&in, &n};
    return d.cuLaunchKernel(f, 1, 1, 1, threads, 1, 1, 0, NULL, params, NULL);
}

/* As late as the rules allow, all of them are in flight at once. */
START_TEST(operations_in_flight_count)
{
    uint32_t few = kinds[_i].few, many = kinds[_i].many, threads = kinds[_i].threads;
    CUdeviceptr in = 0, more = 0;

    setenv("HONE_EMU_MEMORY", kinds[_i].limit, 1);
    shim_driver_start(&d, "h20");
    CUfunction f = shim_driver_function(&d, kinds[_i].text, "k");
    SHIM_OK(&d, cuMemAlloc(&in, 65536));
    SHIM_OK(&d, cuMemsetD32(in, 0, 65536 / 4));
    ck_assert_int_eq(d.emu->set_timing(0, HONE_EMU_LATEST, NULL), HONE_OK);
    for (int n = 0; n < 3; n++) { /* no error that stays, and nothing kept */
        ck_assert_msg(launch(f, in, few, threads) == CUDA_SUCCESS, "%s", kinds[_i].name);
        ck_assert_msg(launch(f, in, many, threads) == CUDA_ERROR_OUT_OF_MEMORY, "%s",
                      kinds[_i].name);
    }
    SHIM_OK(&d, cuMemAlloc(&more, 65536));
}
END_TEST

/* The same kernels, with room. */
START_TEST(with_room_they_run)
{
    CUdeviceptr in = 0;

    setenv("HONE_EMU_MEMORY", "64M", 1);
    shim_driver_start(&d, "h20");
    CUfunction f = shim_driver_function(&d, kinds[_i].text, "k");
    SHIM_OK(&d, cuMemAlloc(&in, 65536));
    SHIM_OK(&d, cuMemsetD32(in, 0, 65536 / 4));
    ck_assert_int_eq(d.emu->set_timing(0, HONE_EMU_LATEST, NULL), HONE_OK);
    ck_assert_msg(launch(f, in, kinds[_i].many, kinds[_i].threads) == CUDA_SUCCESS, "%s",
                  kinds[_i].name);
}
END_TEST

enum { MIB = 1 << 20 };

/* Contents and shadow, as of device memory. */
START_TEST(pinned_memory_counts)
{
    void *p = NULL, *q = NULL;
    CUdeviceptr memory = 0;

    setenv("HONE_EMU_MEMORY", "16M", 1);
    shim_driver_start(&d, "h20");
    SHIM_GIVES(&d, CUDA_ERROR_OUT_OF_MEMORY, cuMemHostAlloc(&p, 9 * MIB, 0));
    for (int n = 0; n < 3; n++) {
        SHIM_OK(&d, cuMemHostAlloc(&p, 7 * MIB, 0));
        SHIM_GIVES(&d, CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocHost(&q, 2 * MIB));
        SHIM_GIVES(&d, CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&memory, 2 * MIB));
        SHIM_OK(&d, cuMemFreeHost(p));
        SHIM_OK(&d, cuMemAlloc(&memory, 7 * MIB));
        SHIM_GIVES(&d, CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocHost(&q, 2 * MIB));
        SHIM_OK(&d, cuMemFree(memory));
    }
}
END_TEST

/* The caller's own bytes were there already; what is known of each is not. */
START_TEST(registered_memory_counts_once)
{
    char *bytes = calloc(1, 20 * MIB);

    ck_assert_ptr_nonnull(bytes);
    setenv("HONE_EMU_MEMORY", "16M", 1);
    shim_driver_start(&d, "h20");
    SHIM_GIVES(&d, CUDA_ERROR_OUT_OF_MEMORY, cuMemHostRegister(bytes, 17 * MIB, 0));
    for (int n = 0; n < 3; n++) {
        SHIM_OK(&d, cuMemHostRegister(bytes, 15 * MIB, 0));
        SHIM_GIVES(&d, CUDA_ERROR_OUT_OF_MEMORY, cuMemHostRegister(bytes + 16 * MIB, 2 * MIB, 0));
        SHIM_OK(&d, cuMemHostUnregister(bytes));
    }
    SHIM_OK(&d, cuMemHostRegister(bytes, 15 * MIB, 0));
    SHIM_GIVES(&d, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(bytes, 16, 0));
    SHIM_OK(&d, cuMemHostUnregister(bytes));
    free(bytes);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("shim_budget");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, operations_in_flight_count, 0, (int)ARRAY_LEN(kinds));
    tcase_add_loop_test(tests, with_room_they_run, 0, (int)ARRAY_LEN(kinds));
    tcase_add_test(tests, pinned_memory_counts);
    tcase_add_test(tests, registered_memory_counts_once);
    return suite_run("emulator/shim_budget", tests);
}
