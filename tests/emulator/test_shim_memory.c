/* test_shim_memory.c - claims about memory, copies, streams and threads of the emulated driver. */
#include "tests/emulator/shim_driver.h"

#include "core/status.h"
#include "tests/support/suite.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static shim_driver d;

/* A hundred gigabytes that are hardly touched cost little: the host's own size does not matter. */
static void start(void)
{
    setenv("HONE_EMU_MEMORY", "1000G", 1);
    shim_driver_start(&d, "h20,l4");
}

static CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr p = 0;
    SHIM_OK(&d, cuMemAlloc(&p, bytes));
    return p;
}

START_TEST(a_hundred_gigabytes_fit_and_a_hundred_and_ten_do_not)
{
    const size_t large = (size_t)100 * 1000 * 1000 * 1000;
    CUdeviceptr p = 0, q = 0;
    size_t free_bytes = 0, total = 0;
    uint32_t value = 0;
    SHIM_OK(&d, cuMemAlloc(&p, large));
    SHIM_GIVES(&d, CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, 10 * (large / 100)));
    SHIM_OK(&d, cuMemGetInfo(&free_bytes, &total));
    ck_assert_uint_eq(total, (size_t)97285 << 20);
    ck_assert_uint_eq(free_bytes, total - large);
    SHIM_OK(&d, cuMemsetD32(p + large - 400, 0xabcd, 100));
    SHIM_OK(&d, cuMemcpyDtoH(&value, p + large - 4, 4));
    ck_assert_uint_eq(value, 0xabcd);
    SHIM_OK(&d, cuMemFree(p));
    SHIM_OK(&d, cuMemGetInfo(&free_bytes, &total));
    ck_assert_uint_eq(free_bytes, total);
}
END_TEST

START_TEST(contexts_of_a_device_share_its_capacity)
{
    CUcontext other = NULL;
    CUdeviceptr p = allocate((size_t)60 << 30), q = 0;
    uint32_t value = 0;
    SHIM_OK(&d, cuCtxCreate(&other, NULL, 0, 0));
    SHIM_GIVES(&d, CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, (size_t)60 << 30));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&value, p, 4));
    SHIM_OK(&d, cuCtxDestroy(other));
    SHIM_OK(&d, cuMemFree(p));
}
END_TEST

START_TEST(a_wrong_address_is_refused_with_its_reason)
{
    static uint8_t host[64];
    CUdeviceptr p = allocate(64);
    hone_emu_fault fault;
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(p + 1, host, 64));
    ck_assert_int_eq(d.emu->last_fault(0, &fault, NULL), HONE_OK);
    ck_assert_ptr_nonnull(strstr(fault.message, "ends 63 bytes later"));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host, p + 64, 1));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuMemsetD16(p + 1, 0, 1));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(p, NULL, 1));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuMemFree(p + 16));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&p, 0));
    SHIM_OK(&d, cuMemFree(0));
    SHIM_OK(&d, cuMemFree(p));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
    SHIM_OK(&d, cuCtxSynchronize());
}
END_TEST

START_TEST(copies_go_every_way)
{
    static uint32_t host[16], back[16];
    CUdeviceptr p = allocate(64), q = allocate(64);
    for (uint32_t i = 0; i < 16; i++) {
        host[i] = i * i;
    }
    SHIM_OK(&d, cuMemcpy(p, (CUdeviceptr)(uintptr_t)host, 64));
    SHIM_OK(&d, cuMemcpy(q, p, 64));
    SHIM_OK(&d, cuMemcpy((CUdeviceptr)(uintptr_t)back, q, 64));
    ck_assert_mem_eq(host, back, 64);
    memset(back, 0, sizeof back);
    SHIM_OK(&d, cuMemcpy((CUdeviceptr)(uintptr_t)back, (CUdeviceptr)(uintptr_t)host, 64));
    ck_assert_mem_eq(host, back, 64);
    SHIM_OK(&d, cuMemsetD8(p, 0x11, 64));
    SHIM_OK(&d, cuMemcpyDtoDAsync(q, p, 32, NULL));
    SHIM_OK(&d, cuMemcpyDtoHAsync(back, q, 64, CU_STREAM_PER_THREAD));
    ck_assert_uint_eq(back[7], 0x11111111);
    ck_assert_uint_eq(back[8], 64);
    SHIM_OK(&d, cuMemcpyHtoDAsync(q, host, 64, CU_STREAM_LEGACY));
    SHIM_OK(&d, cuMemsetD32Async(q, 5, 1, NULL));
    SHIM_OK(&d, cuMemsetD16(q + 4, 0x0102, 2));
    SHIM_OK(&d, cuMemcpyDtoH(back, q, 64));
    ck_assert_uint_eq(back[0], 5);
    ck_assert_uint_eq(back[1], 0x01020102);
    ck_assert_uint_eq(back[2], 4);
}
END_TEST

START_TEST(an_address_range_is_found_from_within)
{
    CUdeviceptr p = allocate(1000), base = 0;
    size_t size = 0;
    SHIM_OK(&d, cuMemGetAddressRange(&base, &size, p + 999));
    ck_assert_uint_eq(base, p);
    ck_assert_uint_eq(size, 1000);
    SHIM_GIVES(&d, CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, p + 1000));
}
END_TEST

START_TEST(a_kernel_reaches_pinned_memory_at_its_address)
{
    CUfunction add = shim_driver_function(&d, shim_add_ptx, "add");
    shim_vectors v = shim_vectors_make(&d);
    void *pinned = NULL;
    unsigned flags = 0;
    CUdeviceptr mapped = 0;
    SHIM_OK(&d, cuMemHostAlloc(&pinned, 4 * SHIM_VECTOR_LEN, CU_MEMHOSTALLOC_DEVICEMAP));
    SHIM_OK(&d, cuMemHostGetDevicePointer(&mapped, pinned, 0));
    SHIM_OK(&d, cuMemHostGetFlags(&flags, pinned));
    ck_assert_uint_eq(flags, CU_MEMHOSTALLOC_DEVICEMAP);
    void *params[] = {&v.a, &v.b, &mapped, &v.n};
    SHIM_OK(&d, cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
    ck_assert_float_eq(((const float *)pinned)[999], 2997);
    SHIM_OK(&d, cuMemFreeHost(pinned));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(&v));
    SHIM_GIVES(&d, CUDA_ERROR_ILLEGAL_ADDRESS,
               cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
}
END_TEST

START_TEST(registered_memory_is_the_callers_and_registered_once)
{
    static uint8_t bytes[8192];
    CUdeviceptr p = 0;
    SHIM_OK(&d, cuMemHostRegister(bytes, sizeof bytes, 0));
    SHIM_GIVES(&d, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(bytes, 16, 0));
    SHIM_OK(&d, cuMemHostGetDevicePointer(&p, bytes + 8, 0));
    ck_assert_uint_eq(p, (CUdeviceptr)(uintptr_t)(bytes + 8));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(bytes));
    SHIM_OK(&d, cuMemHostUnregister(bytes));
    SHIM_GIVES(&d, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(bytes));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&p, bytes, 0));
}
END_TEST

static void count_call(void *counter)
{
    ++*(int *)counter;
}

START_TEST(streams_have_flags_and_priorities_and_are_always_done)
{
    CUstream s = NULL;
    CUevent e = NULL;
    CUcontext context = NULL, current = NULL;
    unsigned flags = 0;
    int priority = 1, calls = 0;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&s, 7));
    SHIM_OK(&d, cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -99));
    SHIM_OK(&d, cuStreamGetFlags(s, &flags));
    ck_assert_uint_eq(flags, CU_STREAM_NON_BLOCKING);
    SHIM_OK(&d, cuStreamGetPriority(s, &priority));
    ck_assert_int_eq(priority, -5);
    SHIM_OK(&d, cuStreamGetPriority(NULL, &priority));
    ck_assert_int_eq(priority, 0);
    SHIM_OK(&d, cuStreamQuery(s));
    SHIM_OK(&d, cuStreamIsCapturing(s, &capture));
    ck_assert_int_eq(capture, CU_STREAM_CAPTURE_STATUS_NONE);
    SHIM_OK(&d, cuStreamGetCtx(s, &context));
    SHIM_OK(&d, cuCtxGetCurrent(&current));
    ck_assert_ptr_eq(context, current);
    SHIM_OK(&d, cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    SHIM_OK(&d, cuEventRecord(e, s));
    SHIM_OK(&d, cuStreamWaitEvent(NULL, e, 0));
    SHIM_OK(&d, cuLaunchHostFunc(s, count_call, &calls));
    ck_assert_int_eq(calls, 1);
    SHIM_OK(&d, cuStreamDestroy(s));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuLaunchHostFunc(s, count_call, &calls));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuMemcpyHtoDAsync(0, NULL, 0, s));
}
END_TEST

enum { THREADS = 4, ROUNDS = 50 };

/* Works in a device's primary context, as every thread of a server does. */
static void *work(void *argument)
{
    int device = (int)(intptr_t)argument % 2;
    CUcontext context = NULL;
    uint8_t host[256], back[256];
    memset(host, (int)(intptr_t)argument, sizeof host);
    SHIM_OK(&d, cuDevicePrimaryCtxRetain(&context, device));
    SHIM_OK(&d, cuCtxSetCurrent(context));
    CUfunction add = shim_driver_function(&d, shim_add_ptx, "add");
    for (int i = 0; i < ROUNDS; i++) {
        CUdeviceptr p = allocate(sizeof host);
        CUstream s = NULL;
        uint32_t n = 0;
        void *params[] = {&p, &p, &p, &n};
        SHIM_OK(&d, cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
        SHIM_OK(&d, cuMemcpyHtoDAsync(p, host, sizeof host, s));
        SHIM_OK(&d, cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
        SHIM_OK(&d, cuMemcpyDtoHAsync(back, p, sizeof back, s));
        ck_assert_mem_eq(host, back, sizeof host);
        SHIM_OK(&d, cuStreamDestroy(s));
        SHIM_OK(&d, cuMemFree(p));
    }
    SHIM_OK(&d, cuDevicePrimaryCtxRelease(device));
    return NULL;
}

START_TEST(threads_work_side_by_side)
{
    pthread_t threads[THREADS];
    CUcontext keep = NULL;
    SHIM_OK(&d, cuDevicePrimaryCtxRetain(&keep, 1));
    for (intptr_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("shim_memory");

    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, start, NULL);
    tcase_add_test(tests, a_hundred_gigabytes_fit_and_a_hundred_and_ten_do_not);
    tcase_add_test(tests, contexts_of_a_device_share_its_capacity);
    tcase_add_test(tests, a_wrong_address_is_refused_with_its_reason);
    tcase_add_test(tests, copies_go_every_way);
    tcase_add_test(tests, an_address_range_is_found_from_within);
    tcase_add_test(tests, a_kernel_reaches_pinned_memory_at_its_address);
    tcase_add_test(tests, registered_memory_is_the_callers_and_registered_once);
    tcase_add_test(tests, streams_have_flags_and_priorities_and_are_always_done);
    tcase_add_test(tests, threads_work_side_by_side);
    return suite_run("emulator/shim_memory", tests);
}
