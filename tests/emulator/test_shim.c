/* test_shim.c - claims about devices, contexts, handles and names of the emulated driver. */
#include "tests/emulator/shim_driver.h"

#include "core/status.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"
#include <stdbool.h>

#include <check.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static shim_driver d;

static void start_h20(void)
{
    shim_driver_start(&d, "h20,rtx4090,b200");
}

START_TEST(nothing_works_before_cu_init_but_asking_the_version)
{
    int value = 0;
    CUcontext context = NULL;
    CUdeviceptr p = 0;
    shim_driver_load(&d);
    SHIM_OK(&d, cuDriverGetVersion(&value));
    ck_assert_int_eq(value, 13000);
    SHIM_GIVES(&d, CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&value));
    SHIM_GIVES(&d, CUDA_ERROR_NOT_INITIALIZED, cuDeviceGet(&value, 0));
    SHIM_GIVES(&d, CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&context));
    SHIM_GIVES(&d, CUDA_ERROR_NOT_INITIALIZED, cuDevicePrimaryCtxRetain(&context, 0));
    SHIM_GIVES(&d, CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&p, 16));
    ck_assert_int_eq(d.emu->set_checks(0, 1, NULL), HONE_NO_DEVICE);
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuInit(1));
}
END_TEST

START_TEST(the_default_is_one_h20_that_says_it_is_emulated)
{
    char name[96];
    int count = 0;
    size_t bytes = 0;
    shim_driver_load(&d);
    SHIM_OK(&d, cuInit(0));
    SHIM_OK(&d, cuInit(0));
    SHIM_OK(&d, cuDeviceGetCount(&count));
    ck_assert_int_eq(count, 1);
    SHIM_OK(&d, cuDeviceGetName(name, sizeof name, 0));
    ck_assert_str_eq(name, "hone emulator: NVIDIA H20");
    SHIM_OK(&d, cuDeviceGetName(name, 5, 0));
    ck_assert_str_eq(name, "hone");
    SHIM_OK(&d, cuDeviceTotalMem(&bytes, 0));
    ck_assert_uint_eq(bytes, (size_t)97285 << 20);
}
END_TEST

START_TEST(devices_are_chosen_by_name_before_cu_init_and_not_after)
{
    static const char *const unknown[] = {"h20", "h21"}, *const two[] = {"h20", "l40s"};
    hone_error error = {0};
    int count = 0;
    shim_driver_load(&d);
    ck_assert_int_eq(d.emu->set_devices(unknown, 2, &error), HONE_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(error.message, "h21"));
    ck_assert_int_eq(d.emu->set_devices(two, 0, NULL), HONE_BAD_ARGUMENT);
    ck_assert_int_eq(d.emu->set_devices(two, 2, NULL), HONE_OK);
    SHIM_OK(&d, cuInit(0));
    SHIM_OK(&d, cuDeviceGetCount(&count));
    ck_assert_int_eq(count, 2);
    ck_assert_int_eq(d.emu->set_devices(two, 2, NULL), HONE_OK);
    ck_assert_int_eq(d.emu->set_devices(two, 1, NULL), HONE_BAD_ARGUMENT);
}
END_TEST

static const struct {
    int device;
    CUdevice_attribute attribute;
    int value;
} attributes[] = {
    {0, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {0, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {1, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8},
    {1, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 9},
    {2, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 10},
    {0, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 78},
    {1, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 128},
    {0, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {0, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {0, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {0, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {0, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {0, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {1, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 101376},
    {0, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {0, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {0, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {1, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536},
    {0, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {1, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 24},
    {0, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 60 << 20},
    {0, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {0, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {0, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0},
    {0, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 1},
    {1, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0},
    {0, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {0, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1},
    {1, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 2},
};

START_TEST(an_attribute_is_what_the_gpu_file_says)
{
    int value = -1;
    start_h20();
    SHIM_OK(&d, cuDeviceGetAttribute(&value, attributes[_i].attribute, attributes[_i].device));
    ck_assert_int_eq(value, attributes[_i].value);
}
END_TEST

START_TEST(clock_and_bus_multiply_to_the_bandwidth)
{
    int clock_khz = 0, bits = 0;
    start_h20();
    SHIM_OK(&d, cuDeviceGetAttribute(&clock_khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 0));
    SHIM_OK(&d, cuDeviceGetAttribute(&bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 0));
    ck_assert_double_eq_tol(2e3 * clock_khz * bits / 8, 4e12, 4e8);
}
END_TEST

START_TEST(devices_that_do_not_exist_and_attributes_without_a_name_are_refused)
{
    int value = 7;
    char text[64];
    CUuuid a, b;
    start_h20();
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&value, 3));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&value, -1));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, 0, 0));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE,
               cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(NULL, 10, 0));
    ck_assert_int_eq(value, 7);
    SHIM_OK(&d, cuDeviceGetUuid(&a, 0));
    SHIM_OK(&d, cuDeviceGetUuid(&b, 1));
    ck_assert_mem_ne(a.bytes, b.bytes, sizeof a.bytes);
    SHIM_OK(&d, cuDeviceGetPCIBusId(text, sizeof text, 1));
    ck_assert_str_eq(text, "0000:02:00.0");
    SHIM_OK(&d, cuDeviceCanAccessPeer(&value, 0, 1));
    ck_assert_int_eq(value, 0);
}
END_TEST

START_TEST(contexts_stack_for_each_thread)
{
    CUcontext primary = NULL, a = NULL, b = NULL, now = NULL;
    CUdevice device = -1;
    start_h20();
    SHIM_OK(&d, cuCtxGetCurrent(&primary));
    SHIM_OK(&d, cuCtxCreate(&a, NULL, 0, 1));
    SHIM_OK(&d, cuCtxGetDevice(&device));
    ck_assert_int_eq(device, 1);
    SHIM_OK(&d, cuCtxCreate(&b, NULL, CU_CTX_SCHED_SPIN, 1));
    SHIM_OK(&d, cuCtxPopCurrent(&now));
    ck_assert_ptr_eq(now, b);
    SHIM_OK(&d, cuCtxGetCurrent(&now));
    ck_assert_ptr_eq(now, a);
    SHIM_OK(&d, cuCtxDestroy(a));
    SHIM_OK(&d, cuCtxGetCurrent(&now));
    ck_assert_ptr_eq(now, primary);
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(a));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(primary));
    SHIM_OK(&d, cuCtxPushCurrent(b));
    SHIM_OK(&d, cuCtxPopCurrent(NULL));
    SHIM_OK(&d, cuCtxDestroy(b));
    SHIM_OK(&d, cuCtxSetCurrent(NULL));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&now));
}
END_TEST

START_TEST(a_context_destroyed_under_another_thread_is_noticed)
{
    CUcontext a = NULL, held = NULL;
    CUdeviceptr p = 0;
    start_h20();
    SHIM_OK(&d, cuCtxCreate(&a, NULL, 0, 0));
    SHIM_OK(&d, cuCtxPushCurrent(a));
    SHIM_OK(&d, cuCtxDestroy(a)); /* leaves the stack once, not twice */
    SHIM_OK(&d, cuCtxGetCurrent(&held));
    ck_assert_ptr_eq(held, a);
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&p, 16));
}
END_TEST

START_TEST(the_primary_context_is_one_and_dies_with_its_last_use)
{
    CUcontext first = NULL, second = NULL;
    CUdeviceptr p = 0;
    unsigned flags = 9;
    int active = -1;
    start_h20(); /* holds one use of device 0 */
    SHIM_OK(&d, cuDevicePrimaryCtxSetFlags(1, CU_CTX_SCHED_BLOCKING_SYNC));
    SHIM_OK(&d, cuDevicePrimaryCtxGetState(1, &flags, &active));
    ck_assert_uint_eq(flags, CU_CTX_SCHED_BLOCKING_SYNC);
    ck_assert_int_eq(active, 0);
    SHIM_OK(&d, cuCtxGetCurrent(&first));
    SHIM_OK(&d, cuDevicePrimaryCtxRetain(&second, 0));
    ck_assert_ptr_eq(first, second);
    SHIM_OK(&d, cuDevicePrimaryCtxRelease(0));
    SHIM_OK(&d, cuMemAlloc(&p, 16));
    SHIM_OK(&d, cuDevicePrimaryCtxRelease(0));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_CONTEXT, cuMemFree(p));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
}
END_TEST

START_TEST(a_reset_of_the_primary_context_destroys_what_it_holds)
{
    CUdeviceptr p = 0;
    CUstream stream = NULL;
    size_t before = 0, after = 0, total = 0;
    start_h20();
    SHIM_OK(&d, cuMemGetInfo(&before, &total));
    SHIM_OK(&d, cuMemAlloc(&p, 1 << 20));
    SHIM_OK(&d, cuStreamCreate(&stream, 0));
    SHIM_OK(&d, cuDevicePrimaryCtxReset(0));
    SHIM_OK(&d, cuMemGetInfo(&after, &total));
    ck_assert_uint_eq(before, after);
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
}
END_TEST

START_TEST(a_context_keeps_its_settings)
{
    size_t value = 0;
    unsigned flags = 0, version = 0;
    int least = 9, greatest = 9;
    CUfunc_cache cache = CU_FUNC_CACHE_PREFER_L1;
    unsigned long long id = 0;
    start_h20();
    SHIM_OK(&d, cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    ck_assert_uint_eq(value, 1024);
    SHIM_OK(&d, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    SHIM_OK(&d, cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    ck_assert_uint_eq(value, 4096);
    SHIM_GIVES(&d, CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxSetLimit(CU_LIMIT_MAX, 1));
    SHIM_GIVES(&d, CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxGetLimit(&value, CU_LIMIT_MAX));
    SHIM_OK(&d, cuCtxSetFlags(CU_CTX_SCHED_YIELD));
    SHIM_OK(&d, cuCtxGetFlags(&flags));
    ck_assert_uint_eq(flags, CU_CTX_SCHED_YIELD);
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuCtxSetFlags(1u << 30));
    SHIM_OK(&d, cuCtxGetCacheConfig(&cache));
    ck_assert_int_eq(cache, CU_FUNC_CACHE_PREFER_NONE);
    SHIM_OK(&d, cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_SHARED));
    SHIM_OK(&d, cuCtxGetCacheConfig(&cache));
    ck_assert_int_eq(cache, CU_FUNC_CACHE_PREFER_SHARED);
    SHIM_OK(&d, cuCtxGetStreamPriorityRange(&least, &greatest));
    ck_assert_int_eq(least, 0);
    ck_assert_int_lt(greatest, least);
    SHIM_OK(&d, cuCtxGetId(NULL, &id));
    ck_assert_uint_ne(id, 0);
    SHIM_OK(&d, cuCtxGetApiVersion(NULL, &version));
    ck_assert_uint_eq(version, 3020);
}
END_TEST

/* Bit patterns that are no handle: small numbers, the handles' own tag, addresses, and a live one
 * of another kind. */
static void *garbage(int i, CUcontext live)
{
    void *const rows[] = {
        (void *)3,
        (void *)0xdeadbeef,
        (void *)(uintptr_t)UINT64_MAX,
        (void *)(uintptr_t)0x5e000000ffffffff,
        (void *)(uintptr_t)0x5e04000000000000,
        &d,
        (void *)(uintptr_t)&garbage,
        live,
    };
    return rows[i];
}

START_TEST(a_garbage_handle_is_refused_and_never_followed)
{
    CUcontext current = NULL;
    CUfunction function = NULL;
    CUmodule module = NULL;
    CUkernel kernel = NULL;
    int value = 0;
    float ms = 0;
    start_h20();
    SHIM_OK(&d, cuCtxGetCurrent(&current));
    void *h = garbage(_i, current);
    if (_i != 7) {
        SHIM_GIVES(&d, CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(h));
        SHIM_GIVES(&d, CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(h));
    }
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(h));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&function, h, "f"));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuModuleGetGlobal(NULL, NULL, h, "f"));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(h));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuLibraryGetKernel(&kernel, h, "f"));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuLibraryGetModule(&module, h));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuKernelGetFunction(&function, h));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE,
               cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, h));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE,
               cuFuncSetAttribute(h, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE,
               cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, h, 32, 0));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE,
               cuLaunchKernel(h, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(h));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(h));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuEventRecord(h, NULL));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuEventSynchronize(h));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, h, h));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuEventDestroy(h));
    ck_assert_int_eq(d.emu->set_resources(h, &(hone_emu_resources){.registers = 32}, NULL),
                     HONE_BAD_ARGUMENT);
}
END_TEST

START_TEST(a_stale_handle_does_not_name_its_slots_next_owner)
{
    CUstream first = NULL, second = NULL;
    start_h20();
    SHIM_OK(&d, cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    SHIM_OK(&d, cuStreamDestroy(first));
    SHIM_OK(&d, cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    SHIM_OK(&d, cuStreamSynchronize(second));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(first));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(first));
}
END_TEST

START_TEST(every_result_that_the_driver_gives_has_its_name_and_text)
{
    static const struct {
        CUresult result;
        const char *name, *text;
    } rows[] = {
        {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
        {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
        {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
        {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
         "an illegal memory access was encountered"},
        {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
         "too many resources requested for launch"},
    };
    const char *text = NULL;
    shim_driver_load(&d);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        SHIM_OK(&d, cuGetErrorName(rows[i].result, &text));
        ck_assert_str_eq(text, rows[i].name);
        SHIM_OK(&d, cuGetErrorString(rows[i].result, &text));
        ck_assert_str_eq(text, rows[i].text);
    }
    ck_assert_int_eq(d.cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    ck_assert_ptr_null(text);
}
END_TEST

START_TEST(get_proc_address_gives_the_form_that_the_version_means)
{
    static const struct {
        const char *name, *exported;
        int version;
        CUdriverProcAddressQueryResult found;
    } rows[] = {
        {"cuMemAlloc", "cuMemAlloc_v2", 13000, CU_GET_PROC_ADDRESS_SUCCESS},
        {"cuLaunchKernel", "cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_SUCCESS},
        {"cuCtxCreate", "cuCtxCreate_v4", 13000, CU_GET_PROC_ADDRESS_SUCCESS},
        {"cuGetProcAddress", "cuGetProcAddress_v2", 12000, CU_GET_PROC_ADDRESS_SUCCESS},
        {"cuEventElapsedTime", "cuEventElapsedTime_v2", 12080, CU_GET_PROC_ADDRESS_SUCCESS},
        {"cuLaunchKernelEx", NULL, 11000, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
        {"cuNoSuchCall", NULL, 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
        {"cuTensorMapEncodeTiled", "cuTensorMapEncodeTiled", 13000, CU_GET_PROC_ADDRESS_SUCCESS},
    };
    shim_driver_load(&d);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
        void *address = &d;
        SHIM_OK(&d, cuGetProcAddress(rows[i].name, &address, rows[i].version, 0, &found));
        ck_assert_int_eq(found, rows[i].found);
        ck_assert_ptr_eq(address, rows[i].exported ? dlsym(d.library, rows[i].exported) : NULL);
    }
    void *address = NULL;
    SHIM_GIVES(&d, CUDA_ERROR_NOT_FOUND,
               cuGetProcAddress("cuNoSuchCall", &address, 13000, 0, NULL));
    SHIM_OK(&d, cuGetProcAddress("cuCtxCreate", &address, 12000, 0, NULL));
    ck_assert_ptr_nonnull(address);
    ck_assert_ptr_ne(address, dlsym(d.library, "cuCtxCreate_v4"));
}
END_TEST

START_TEST(names_for_the_other_default_stream_are_exported_too)
{
    static const char *const rows[] = {"cuLaunchKernel_ptsz",  "cuLaunchKernelEx_ptsz",
                                       "cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoDAsync_v2_ptsz",
                                       "cuMemsetD8_v2_ptds",   "cuStreamSynchronize_ptsz",
                                       "cuEventRecord_ptsz",   "cuCtxCreate_v2",
                                       "cuEventElapsedTime",   "cuDeviceGetUuid"};
    shim_driver_load(&d);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ck_assert_msg(dlsym(d.library, rows[i]) != NULL, "%s is not exported", rows[i]);
    }
}
END_TEST

START_TEST(nothing_is_exported_but_the_driver_and_the_extension_table)
{
    char *bytes = file_read(HONE_EMU_FILE, NULL);
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(void *)bytes;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(void *)(bytes + head->e_shoff);
    size_t seen = 0;
    for (int i = 0; i < head->e_shnum; i++) {
        if (sections[i].sh_type != SHT_DYNSYM) {
            continue;
        }
        const Elf64_Sym *symbols = (const Elf64_Sym *)(void *)(bytes + sections[i].sh_offset);
        const char *names = bytes + sections[sections[i].sh_link].sh_offset;
        for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++) {
            const char *name = names + symbols[k].st_name;
            bool defined = symbols[k].st_shndx != SHN_UNDEF;
            bool ours = strncmp(name, "cu", 2) == 0 || strcmp(name, HONE_EMU_SYMBOL) == 0;
            ck_assert_msg(!defined || ours, "%s is exported", name);
            seen += defined;
        }
    }
    ck_assert_uint_gt(seen, 100);
    free(bytes);
}
END_TEST

START_TEST(structs_that_cross_the_boundary_have_the_drivers_sizes)
{
    ck_assert_uint_eq(sizeof(CUlaunchConfig), 56);
    ck_assert_uint_eq(offsetof(CUlaunchConfig, hStream), 32);
    ck_assert_uint_eq(sizeof(CUlaunchAttribute), 72);
    ck_assert_uint_eq(sizeof(CUctxCreateParams), 24);
    ck_assert_uint_eq(sizeof(CUuuid), 16);
    ck_assert_uint_eq(sizeof(CUdeviceptr), 8);
    ck_assert_uint_eq(sizeof(hone_emu_api), 8 + 17 * sizeof(void *));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("shim");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, nothing_works_before_cu_init_but_asking_the_version);
    tcase_add_test(tests, the_default_is_one_h20_that_says_it_is_emulated);
    tcase_add_test(tests, devices_are_chosen_by_name_before_cu_init_and_not_after);
    tcase_add_loop_test(tests, an_attribute_is_what_the_gpu_file_says, 0, ARRAY_LEN(attributes));
    tcase_add_test(tests, clock_and_bus_multiply_to_the_bandwidth);
    tcase_add_test(tests, devices_that_do_not_exist_and_attributes_without_a_name_are_refused);
    tcase_add_test(tests, contexts_stack_for_each_thread);
    tcase_add_test(tests, a_context_destroyed_under_another_thread_is_noticed);
    tcase_add_test(tests, the_primary_context_is_one_and_dies_with_its_last_use);
    tcase_add_test(tests, a_reset_of_the_primary_context_destroys_what_it_holds);
    tcase_add_test(tests, a_context_keeps_its_settings);
    tcase_add_loop_test(tests, a_garbage_handle_is_refused_and_never_followed, 0, 8);
    tcase_add_test(tests, a_stale_handle_does_not_name_its_slots_next_owner);
    tcase_add_test(tests, every_result_that_the_driver_gives_has_its_name_and_text);
    tcase_add_test(tests, get_proc_address_gives_the_form_that_the_version_means);
    tcase_add_test(tests, names_for_the_other_default_stream_are_exported_too);
    tcase_add_test(tests, nothing_is_exported_but_the_driver_and_the_extension_table);
    tcase_add_test(tests, structs_that_cross_the_boundary_have_the_drivers_sizes);
    return suite_run("emulator/shim", tests);
}
