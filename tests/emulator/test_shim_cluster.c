/* test_shim_cluster.c - claims about launches of clusters, of all CTAs at once and of those that
 * wait for one another, and about how much memory may be taken, through the driver's names. */
#include "tests/emulator/shim_driver.h"

#include "core/status.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
/* Each CTA stores how many CTAs its cluster has at out[its number]. */
#define RANKS                                                                                      \
    "{\n.reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<3>;\n"                                    \
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %cluster_nctarank;\n"           \
    "mov.pred %p1, %is_explicit_cluster;\n@%p1 add.u32 %r2, %r2, 100;\n"                           \
    "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r2;\nret;\n}\n"
static const char ranks_ptx[] =
    HEAD ".visible .entry free(.param .u64 out)\n.maxntid 1\n" RANKS
         ".visible .entry four(.param .u64 out)\n.maxntid 1\n.reqnctapercluster 4, 1, 1\n" RANKS
         ".visible .entry said(.param .u64 out)\n.maxntid 1\n.explicitcluster\n"
         ".maxclusterrank 4\n" RANKS
         ".visible .entry exact(.param .u64 out)\n.reqntid 32, 2, 1\n{ret;}\n";

static shim_driver d;
static CUdeviceptr out;

enum { CTAS = 16 };

static CUlaunchAttribute cluster(unsigned x, unsigned y, unsigned z)
{
    CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    a.value.clusterDim.x = x;
    a.value.clusterDim.y = y;
    a.value.clusterDim.z = z;
    return a;
}

static CUresult launch(CUfunction f, unsigned ctas, CUlaunchAttribute *attributes, unsigned count)
{
    void *params[] = {&out};
    const CUlaunchConfig config = {.gridDimX = ctas,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 1,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .attrs = attributes,
                                   .numAttrs = count};
    return d.cuLaunchKernelEx(&config, f, params, NULL);
}

static void start(void)
{
    shim_driver_start(&d, "h20");
    SHIM_OK(&d, cuMemAlloc(&out, 4 * CTAS));
}

/* Of the function, the grid's CTAs, the cluster (0: no attribute), and what comes of it. */
static const struct {
    const char *function;
    unsigned ctas, size;
    bool large;
    CUresult result;
    unsigned stored;
} launches[] = {
    {"free", 16, 0, false, CUDA_SUCCESS, 1},
    {"free", 16, 1, false, CUDA_SUCCESS, 101},
    {"free", 16, 2, false, CUDA_SUCCESS, 102},
    {"free", 16, 8, false, CUDA_SUCCESS, 108},
    {"free", 12, 8, false, CUDA_ERROR_INVALID_CLUSTER_SIZE, 0},
    {"free", 16, 16, false, CUDA_ERROR_INVALID_CLUSTER_SIZE, 0},
    {"free", 16, 16, true, CUDA_SUCCESS, 116},
    {"free", 32, 32, true, CUDA_ERROR_INVALID_CLUSTER_SIZE, 0},
    {"four", 16, 0, false, CUDA_SUCCESS, 104},
    {"four", 16, 4, false, CUDA_SUCCESS, 104},
    {"four", 16, 2, false, CUDA_ERROR_INVALID_CLUSTER_SIZE, 0},
    {"four", 10, 0, false, CUDA_ERROR_INVALID_CLUSTER_SIZE, 0},
    {"said", 16, 0, false, CUDA_ERROR_INVALID_CLUSTER_SIZE, 0},
    {"said", 16, 4, false, CUDA_SUCCESS, 104},
    {"said", 16, 8, false, CUDA_ERROR_INVALID_CLUSTER_SIZE, 0},
};

START_TEST(a_cluster_is_what_the_launch_and_the_function_say)
{
    CUfunction f = shim_driver_function(&d, ranks_ptx, launches[_i].function);
    CUlaunchAttribute a = cluster(launches[_i].size, 1, 1);
    uint32_t back[CTAS] = {0};

    if (launches[_i].large) {
        SHIM_OK(&d, cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    }
    ck_assert_int_eq(launch(f, launches[_i].ctas, &a, launches[_i].size > 0), launches[_i].result);
    SHIM_OK(&d, cuCtxSynchronize());
    if (launches[_i].result == CUDA_SUCCESS) {
        SHIM_OK(&d, cuMemcpyDtoH(back, out, sizeof back));
        for (int n = 0; n < CTAS; n++) {
            ck_assert_uint_eq(back[n], launches[_i].stored);
        }
    }
}
END_TEST

START_TEST(a_required_block_is_taken_in_just_that_shape)
{
    CUfunction f = shim_driver_function(&d, ranks_ptx, "exact");
    void *params[] = {&out};
    SHIM_OK(&d, cuLaunchKernel(f, 1, 1, 1, 32, 2, 1, 0, NULL, params, NULL));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE,
               cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
}
END_TEST

START_TEST(attributes_that_steer_are_taken_and_wrong_ones_are_not)
{
    CUfunction f = shim_driver_function(&d, ranks_ptx, "free");
    CUevent event = NULL, begin = NULL;
    float ms = 0;
    SHIM_OK(&d, cuEventCreate(&event, CU_EVENT_DEFAULT));
    SHIM_OK(&d, cuEventCreate(&begin, CU_EVENT_DEFAULT));
    SHIM_OK(&d, cuEventRecord(begin, NULL));
    CUlaunchAttribute good[] = {
        {.id = CU_LAUNCH_ATTRIBUTE_IGNORE},
        {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
         .value.programmaticStreamSerializationAllowed = 1},
        {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -1},
        {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
         .value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD},
        {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, .value.programmaticEvent.event = event},
        {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1},
    };
    ck_assert_int_eq(launch(f, CTAS, good, ARRAY_LEN(good)), CUDA_SUCCESS);
    SHIM_OK(&d, cuEventElapsedTime(&ms, begin, event));
    ck_assert_float_gt(ms, 0);
    CUlaunchAttribute bad[] = {
        {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
         .value.clusterSchedulingPolicyPreference = (CUclusterSchedulingPolicy)3},
        {.id = (CUlaunchAttributeID)99},
        {.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
         .value.deviceUpdatableKernelNode.deviceUpdatable = 1},
    };
    for (unsigned n = 0; n < ARRAY_LEN(bad); n++) {
        ck_assert_int_eq(launch(f, CTAS, &bad[n], 1), CUDA_ERROR_INVALID_VALUE);
    }
    CUlaunchAttribute nothing = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT};
    ck_assert_int_eq(launch(f, CTAS, &nothing, 1), CUDA_ERROR_INVALID_HANDLE);
    CUlaunchAttribute none = cluster(0, 1, 1);
    ck_assert_int_eq(launch(f, CTAS, &none, 1), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    ck_assert_int_eq(launch(f, CTAS, NULL, 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(a_function_says_which_clusters_it_takes)
{
    CUfunction four = shim_driver_function(&d, ranks_ptx, "four");
    CUfunction said = shim_driver_function(&d, ranks_ptx, "said");
    CUfunction any = shim_driver_function(&d, ranks_ptx, "free");
    const CUfunction_attribute width = CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
    int value = -1;
    SHIM_OK(&d, cuFuncGetAttribute(&value, width, four));
    ck_assert_int_eq(value, 4);
    SHIM_OK(&d, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, said));
    ck_assert_int_eq(value, 1);
    SHIM_GIVES(&d, CUDA_ERROR_NOT_PERMITTED, cuFuncSetAttribute(four, width, 2));
    SHIM_OK(&d, cuFuncSetAttribute(any, width, 2));
    ck_assert_int_eq(launch(any, CTAS, NULL, 0), CUDA_ERROR_INVALID_CLUSTER_SIZE); /* one of 3 */
    SHIM_OK(&d, cuFuncSetAttribute(any, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1));
    SHIM_OK(&d, cuFuncSetAttribute(any, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1));
    ck_assert_int_eq(launch(any, CTAS, NULL, 0), CUDA_SUCCESS);
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(any, width, -1));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE,
               cuFuncSetAttribute(any, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 2));
    SHIM_OK(&d, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
    ck_assert_int_eq(value, 1);
    SHIM_OK(&d, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0));
    ck_assert_int_eq(value, 1);
}
END_TEST

START_TEST(occupancy_counts_clusters)
{
    CUfunction any = shim_driver_function(&d, ranks_ptx, "free");
    CUfunction four = shim_driver_function(&d, ranks_ptx, "four");
    CUlaunchAttribute a = cluster(8, 1, 1);
    CUlaunchConfig config = {.gridDimX = 16,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = &a,
                             .numAttrs = 1};
    int value = 0;
    SHIM_OK(&d, cuOccupancyMaxActiveClusters(&value, any, &config));
    ck_assert_int_eq(value, 78 * 32 / 8);
    SHIM_OK(&d, cuOccupancyMaxPotentialClusterSize(&value, any, &config));
    ck_assert_int_eq(value, 8);
    SHIM_OK(&d, cuFuncSetAttribute(any, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    SHIM_OK(&d, cuOccupancyMaxPotentialClusterSize(&value, any, &config));
    ck_assert_int_eq(value, 16);
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_CLUSTER_SIZE,
               cuOccupancyMaxActiveClusters(&value, four, &config));
    config.numAttrs = 0;
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_CLUSTER_SIZE,
               cuOccupancyMaxActiveClusters(&value, any, &config));
    SHIM_OK(&d, cuOccupancyMaxActiveClusters(&value, four, &config));
    ck_assert_int_eq(value, 78 * 32 / 4);
    SHIM_OK(&d, cuOccupancyMaxPotentialClusterSize(&value, four, &config));
    ck_assert_int_eq(value, 4);
}
END_TEST

/* Each CTA adds one and waits until all have: out[0] counts, out[1] gets what each saw. */
static const char meet_ptx[] =
    HEAD ".visible .entry meet(.param .u64 out)\n"
         "{\n.reg .b32 %r<6>; .reg .b64 %rd<3>; .reg .pred %p<3>; .shared .b8 large[49152];\n"
         "ld.param.u64 %rd1, [out]; mov.u32 %r1, 1; mov.u32 %r2, %nctaid.x;\n"
         "red.release.gpu.global.add.u32 [%rd1], %r1;\n"
         "WAIT:\n"
         "ld.acquire.gpu.global.u32 %r3, [%rd1];\nsetp.lt.u32 %p1, %r3, %r2;\n@%p1 bra WAIT;\n"
         "atom.global.max.u32 %r4, [%rd1+4], %r3;\nret;\n}\n";

START_TEST(ctas_that_wait_for_one_another_meet)
{
    CUfunction f = shim_driver_function(&d, meet_ptx, "meet");
    void *params[] = {&out};
    uint32_t back[2] = {0};
    SHIM_OK(&d, cuMemsetD32(out, 0, 2));
    if (_i == 0) { /* the first waits for later ones: they join it */
        SHIM_OK(&d, cuLaunchKernel(f, 20, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    } else {
        SHIM_OK(&d, cuLaunchCooperativeKernel(f, 20, 1, 1, 1, 1, 1, 0, NULL, params));
    }
    SHIM_OK(&d, cuMemcpyDtoH(back, out, sizeof back));
    ck_assert_uint_eq(back[0], 20);
    ck_assert_uint_eq(back[1], 20);
}
END_TEST

/* 48 KiB of shared memory a CTA: four on an SM, and there are 78. */
START_TEST(a_cooperative_grid_must_be_resident)
{
    CUfunction f = shim_driver_function(&d, meet_ptx, "meet");
    void *params[] = {&out};
    SHIM_OK(&d, cuMemsetD32(out, 0, 2));
    SHIM_GIVES(&d, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
               cuLaunchCooperativeKernel(f, 78 * 4 + 1, 1, 1, 1, 1, 1, 0, NULL, params));
    SHIM_OK(&d, cuCtxSynchronize());
    SHIM_OK(&d, cuLaunchCooperativeKernel(f, 78 * 4, 1, 1, 1, 1, 1, 0, NULL, params));
}
END_TEST

START_TEST(clusters_need_hopper)
{
    shim_driver_start(&d, "rtx4090");
    static const char old_ptx[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n"
        "{ret;}\n";
    CUfunction f = shim_driver_function(&d, old_ptx, "k");
    CUlaunchAttribute a = cluster(2, 1, 1);
    int value = 1;
    ck_assert_int_eq(launch(f, 2, &a, 1), CUDA_ERROR_NOT_SUPPORTED);
    a = cluster(1, 1, 1);
    ck_assert_int_eq(launch(f, 2, &a, 1), CUDA_SUCCESS);
    SHIM_OK(&d, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
    ck_assert_int_eq(value, 0);
}
END_TEST

START_TEST(memory_past_the_budget_is_refused_and_what_is_freed_comes_back)
{
    CUdeviceptr p = 0, q = 0;
    setenv("HONE_EMU_MEMORY", "64M", 1);
    shim_driver_start(&d, "h20");
    SHIM_GIVES(&d, CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, UINT64_C(90) << 30));
    SHIM_GIVES(&d, CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, 33 << 20));
    for (int n = 0; n < 3; n++) { /* contents and shadow: twice */
        SHIM_OK(&d, cuMemAlloc(&p, 31 << 20));
        SHIM_GIVES(&d, CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, 2 << 20));
        SHIM_OK(&d, cuMemFree(p));
    }
}
END_TEST

START_TEST(a_launch_past_the_budget_is_refused_and_does_not_stick)
{
    void *params[] = {&out};
    setenv("HONE_EMU_MEMORY", "16M", 1);
    shim_driver_start(&d, "h20");
    CUfunction f = shim_driver_function(&d, meet_ptx, "meet");
    SHIM_OK(&d, cuMemAlloc(&out, 8));
    SHIM_OK(&d, cuMemsetD32(out, 0, 2));
    SHIM_GIVES(&d, CUDA_ERROR_OUT_OF_MEMORY,
               cuLaunchCooperativeKernel(f, 78 * 4, 1, 1, 1, 1, 1, 0, NULL, params));
    SHIM_OK(&d, cuLaunchCooperativeKernel(f, 2, 1, 1, 1, 1, 1, 0, NULL, params));
}
END_TEST

/* What is known of global memory's accesses counts as well, until the launch has ended. */
START_TEST(a_launch_whose_race_checks_pass_the_budget_is_refused)
{
    static const char sweep_ptx[] =
        HEAD ".visible .entry sweep(.param .u64 out, .param .u32 pages)\n{\n"
             ".reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<2>;\n"
             "ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [pages];\n"
             "L: st.global.u32 [%rd1], %r1; add.u64 %rd1, %rd1, 4096; sub.u32 %r1, %r1, 1;\n"
             "setp.ne.u32 %p1, %r1, 0; @%p1 bra L;\nret;\n}\n";
    uint32_t pages = (31 << 20) / 4096, few = 16;
    void *params[] = {&out, &pages};
    setenv("HONE_EMU_MEMORY", "66M", 1);
    shim_driver_start(&d, "h20");
    CUfunction f = shim_driver_function(&d, sweep_ptx, "sweep");
    SHIM_OK(&d, cuMemAlloc(&out, 31 << 20));
    for (int n = 0; n < 3; n++) {
        params[1] = &pages;
        SHIM_GIVES(&d, CUDA_ERROR_OUT_OF_MEMORY,
                   cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        params[1] = &few;
        SHIM_OK(&d, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    }
    ck_assert_int_eq(d.emu->set_checks(0, 7, NULL), HONE_OK);
    params[1] = &pages;
    SHIM_OK(&d, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
}
END_TEST

/* One thread stores n words, `step` bytes apart, and is another from one to the next; then a second
 * CTA stores to the first of them. */
static const char records_ptx[] =
    HEAD ".visible .entry records(.param .u64 out, .param .u32 n, .param .u32 step)\n{\n"
         ".reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p<2>;\n"
         "ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [step];\n"
         "cvt.u64.u32 %rd2, %r2; mov.u32 %r3, %ctaid.x; setp.ne.u32 %p1, %r3, 0;\n"
         "@%p1 bra E;\n"
         "L: st.global.u32 [%rd1], %r1; add.u64 %rd1, %rd1, %rd2; bar.warp.sync 1;\n"
         "sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;\nret;\n"
         "E: st.global.u32 [%rd1], %r1;\nret;\n}\n";
static const struct {
    const char *memory;
    uint32_t step, ctas;
    CUresult result;
} records[] = {
    {"64M", 16, 1, CUDA_SUCCESS},             /* 400,000 are in use: 8 MB, and a sweep's copy */
    {"64M", 16, 2, CUDA_ERROR_LAUNCH_FAILED}, /* a race */
    {"40M", 16, 1, CUDA_ERROR_OUT_OF_MEMORY}, /* their pages alone would fit */
    {"40M", 16, 2, CUDA_ERROR_OUT_OF_MEMORY},
    {"17M", 0, 1, CUDA_SUCCESS},             /* one is in use: there is room after each sweep, */
    {"17M", 0, 2, CUDA_ERROR_LAUNCH_FAILED}, /* which forgets none that is */
};

/* Records of accesses count as well: the detector sweeps for room, and never goes on without. */
START_TEST(records_of_the_race_checks_stay_within_the_budget)
{
    uint32_t n = 400000, step = records[_i].step;
    void *params[] = {&out, &n, &step};
    hone_emu_fault fault = {0};
    setenv("HONE_EMU_MEMORY", records[_i].memory, 1);
    shim_driver_start(&d, "h20");
    CUfunction f = shim_driver_function(&d, records_ptx, "records");
    SHIM_OK(&d, cuMemAlloc(&out, 8 << 20));
    SHIM_GIVES(&d, records[_i].result,
               cuLaunchKernel(f, records[_i].ctas, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    if (records[_i].result == CUDA_ERROR_LAUNCH_FAILED) {
        ck_assert_int_eq(d.emu->last_fault(0, &fault, NULL), HONE_OK);
        ck_assert_str_eq(fault.kind, "race");
        ck_assert_int_eq(fault.ptx_line, 13);
    } else {
        SHIM_OK(&d, cuMemAlloc(&out, 1)); /* no error that stays, and nothing kept */
    }
}
END_TEST

static const char *const no_sizes[] = {"x", "12Q", "-5", "0", "1G1", "99999999999G"};

START_TEST(a_budget_that_is_no_size_is_refused_at_once)
{
    const char *const names[] = {"h20"};
    setenv("HONE_EMU_MEMORY", no_sizes[_i], 1);
    shim_driver_load(&d);
    ck_assert_int_eq(d.emu->set_devices(names, 1, NULL), HONE_OK);
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuInit(0));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("shim_cluster"), *own = tcase_create("shim_cluster_own");

    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, start, NULL);
    tcase_add_loop_test(tests, a_cluster_is_what_the_launch_and_the_function_say, 0,
                        (int)ARRAY_LEN(launches));
    tcase_add_test(tests, a_required_block_is_taken_in_just_that_shape);
    tcase_add_test(tests, attributes_that_steer_are_taken_and_wrong_ones_are_not);
    tcase_add_test(tests, a_function_says_which_clusters_it_takes);
    tcase_add_test(tests, occupancy_counts_clusters);
    tcase_add_loop_test(tests, ctas_that_wait_for_one_another_meet, 0, 2);
    tcase_add_test(tests, a_cooperative_grid_must_be_resident);
    tcase_set_timeout(own, 60);
    tcase_add_test(own, clusters_need_hopper);
    tcase_add_test(own, memory_past_the_budget_is_refused_and_what_is_freed_comes_back);
    tcase_add_test(own, a_launch_past_the_budget_is_refused_and_does_not_stick);
    tcase_add_test(own, a_launch_whose_race_checks_pass_the_budget_is_refused);
    tcase_add_loop_test(own, records_of_the_race_checks_stay_within_the_budget, 0,
                        (int)ARRAY_LEN(records));
    tcase_add_loop_test(own, a_budget_that_is_no_size_is_refused_at_once, 0,
                        (int)ARRAY_LEN(no_sizes));
    return suite_run_cases("emulator/shim_cluster", (TCase *[]){tests, own}, 2);
}
