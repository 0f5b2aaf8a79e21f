/* test_shim_occupancy.c - occupancy against figures worked out by hand and against the toolkit's
 * own header. */
#include "tests/emulator/shim_driver.h"

#include "core/status.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

#include <cuda_occupancy.h>

static shim_driver d;
static CUfunction add;

static void start(const char *gpu)
{
    shim_driver_start(&d, gpu);
    add = shim_driver_function(&d, shim_add_ptx, "add");
}

static int active_blocks(int registers, int threads, size_t shared)
{
    const hone_emu_resources resources = {.registers = registers};
    int blocks = -1;
    ck_assert_int_eq(d.emu->set_resources(add, &resources, NULL), HONE_OK);
    SHIM_OK(&d, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, threads, shared));
    return blocks;
}

/* By hand. sm_89: 48 warps, 24 CTAs, 64 Ki registers, 100 KiB shared of which a CTA may have 99;
 * sm_90: 64 warps, 32 CTAs, 228 KiB and 227. A warp's registers come in 256s from a quarter of the
 * file; 1 KiB of shared is reserved. */
static const struct {
    const char *gpu;
    int registers, threads;
    size_t shared;
    int blocks;
} by_hand[] = {
    {"rtx4090", 32, 256, 0, 6},      /* 48 warps / 8 */
    {"rtx4090", 16, 32, 0, 24},      /* CTAs */
    {"rtx4090", 40, 1024, 0, 1},     /* 48 / 32 warps */
    {"rtx4090", 128, 128, 0, 4},     /* 16384 / 4096 = 4 warps a quarter: 16 / 4 */
    {"rtx4090", 255, 128, 0, 2},     /* 16384 / 8192 = 2 a quarter: 8 / 4 */
    {"rtx4090", 168, 384, 0, 1},     /* 16384 / 5376 = 3 a quarter: 12 / 12 */
    {"rtx4090", 32, 128, 49152, 2},  /* 100 KiB / 49 KiB */
    {"rtx4090", 32, 128, 101376, 1}, /* all of it */
    {"rtx4090", 32, 128, 101377, 0},
    {"h20", 32, 256, 0, 8}, /* 64 warps / 8 */
    {"h20", 16, 32, 0, 32}, /* CTAs */
    {"h20", 128, 128, 0, 4},
    {"h20", 168, 384, 0, 1},
    {"h20", 64, 1024, 0, 1},    /* 65536 / 2048 = 32 warps */
    {"h20", 65, 1024, 0, 0},    /* 72 * 32 = 2304 a warp: 28 */
    {"h20", 32, 128, 49152, 4}, /* 228 KiB / 49 KiB */
    {"h20", 32, 128, 75776, 3}, /* 228 / 75 */
    {"h20", 32, 128, 232448, 1},
    {"h20", 0, 1024, 0, 2}, /* nobody said how many registers: threads bind */
};

START_TEST(occupancy_is_what_the_rules_give_by_hand)
{
    start(by_hand[_i].gpu);
    ck_assert_int_eq(active_blocks(by_hand[_i].registers, by_hand[_i].threads, by_hand[_i].shared),
                     by_hand[_i].blocks);
}
END_TEST

static int attribute(CUdevice_attribute which)
{
    int value = 0;
    SHIM_OK(&d, cuDeviceGetAttribute(&value, which, 0));
    return value;
}

/* The device as cuda_occupancy.h wants it, from the attributes that a program reads. */
static cudaOccDeviceProp toolkit_device(void)
{
    cudaOccDeviceProp p;
    memset(&p, 0, sizeof p);
    p.computeMajor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    p.computeMinor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    p.maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    p.maxThreadsPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    p.regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    p.regsPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    p.warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    p.sharedMemPerBlock = (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    p.sharedMemPerMultiprocessor =
        (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    p.numSms = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    p.sharedMemPerBlockOptin =
        (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    p.reservedSharedMemPerBlock =
        (size_t)attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    return p;
}

static const char *const gpus[] = {"a100", "rtx4090", "h20", "h100", "b200", "rtx5090"};

START_TEST(occupancy_is_what_the_toolkits_header_gives)
{
    static const int threads[] = {32, 96, 128, 160, 256, 384, 512, 1024};
    static const size_t shared[] = {0, 1000, 16384, 40960, 49152};
    start(gpus[_i]);
    const cudaOccDeviceProp device = toolkit_device();
    const cudaOccDeviceState state = {.cacheConfig = CACHE_PREFER_NONE, .carveoutConfig = 100};
    for (int registers = 16; registers <= 248; registers += 8) {
        const cudaOccFuncAttributes function = {.maxThreadsPerBlock = 1024,
                                                .numRegs = registers,
                                                .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
                                                .maxDynamicSharedSizeBytes =
                                                    device.sharedMemPerBlockOptin};
        for (size_t i = 0; i < ARRAY_LEN(threads) * ARRAY_LEN(shared); i++) {
            int t = threads[i % ARRAY_LEN(threads)];
            size_t s = shared[i / ARRAY_LEN(threads)];
            cudaOccResult expected;
            ck_assert_int_eq(cudaOccMaxActiveBlocksPerMultiprocessor(&expected, &device, &function,
                                                                     &state, t, s),
                             CUDA_OCC_SUCCESS);
            ck_assert_msg(active_blocks(registers, t, s) == expected.activeBlocksPerMultiprocessor,
                          "%s: %d registers, %d threads, %zu bytes: %d, not %d", gpus[_i],
                          registers, t, s, active_blocks(registers, t, s),
                          expected.activeBlocksPerMultiprocessor);
        }
    }
}
END_TEST

static size_t shared_of(int threads)
{
    return (size_t)threads * 64;
}

START_TEST(the_best_block_fills_the_device)
{
    int grid = 0, block = 0;
    start("h20");
    active_blocks(32, 32, 0);
    SHIM_OK(&d, cuOccupancyMaxPotentialBlockSize(&grid, &block, add, NULL, 0, 0));
    ck_assert_int_eq(block, 1024);
    ck_assert_int_eq(grid, 2 * 78);
    SHIM_OK(&d, cuOccupancyMaxPotentialBlockSize(&grid, &block, add, NULL, 0, 300));
    ck_assert_int_eq(block, 256);
    ck_assert_int_eq(grid, 8 * 78);
    SHIM_OK(&d, cuOccupancyMaxPotentialBlockSize(&grid, &block, add, shared_of, 0, 0));
    ck_assert_int_eq(block, 1024);
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE,
               cuOccupancyMaxPotentialBlockSize(&grid, &block, add, NULL, 0, -1));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE,
               cuOccupancyMaxActiveBlocksPerMultiprocessor(&grid, add, 0, 0));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("shim_occupancy");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, occupancy_is_what_the_rules_give_by_hand, 0, ARRAY_LEN(by_hand));
    tcase_add_loop_test(tests, occupancy_is_what_the_toolkits_header_gives, 0, ARRAY_LEN(gpus));
    tcase_add_test(tests, the_best_block_fills_the_device);
    return suite_run("emulator/shim_occupancy", tests);
}
