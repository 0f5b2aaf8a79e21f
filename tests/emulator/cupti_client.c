/* cupti_client.c - the callbacks and calls of a client of the activity API. */
#include "tests/emulator/cupti_client.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

shim_driver cupti_client_driver;
cupti_calls cupti_client_calls;
cupti_client cupti_client_state = {.lock = PTHREAD_MUTEX_INITIALIZER, .size = 64 * 1024};
CUfunction cupti_client_add;

static const struct {
    const char *symbol;
    size_t offset;
} slots[] = {
#define X(name) {#name, offsetof(cupti_calls, name)},
    CUPTI_CALLS(X)
#undef X
};

static size_t record_bytes(CUpti_ActivityKind kind)
{
    switch ((int)kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(kernel_record);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_DEVICE:
        return sizeof(CUpti_ActivityDevice5);
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return sizeof(CUpti_ActivityAPI);
    default:
        return sizeof(CUpti_ActivityExternalCorrelation);
    }
}

void cupti_client_request(uint8_t **buffer, size_t *size, size_t *most)
{
    pthread_mutex_lock(&cupti_client_state.lock);
    cupti_client_state.requested++;
    *buffer = cupti_client_state.declines ? NULL : aligned_alloc(8, cupti_client_state.size + 8);
    *buffer = *buffer != NULL ? *buffer + cupti_client_state.shift : NULL;
    *size = cupti_client_state.size;
    *most = cupti_client_state.most;
    pthread_mutex_unlock(&cupti_client_state.lock);
}

void cupti_client_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                           size_t valid)
{
    CUpti_Activity *record = NULL;
    CUptiResult result = CUPTI_SUCCESS;
    (void)context;
    (void)stream;
    pthread_mutex_lock(&cupti_client_state.lock);
    cupti_client_state.completed++;
    cupti_client_state.outside += size != cupti_client_state.size || valid > size;
    while ((result = cupti_client_calls.cuptiActivityGetNextRecord(buffer, valid, &record)) ==
           CUPTI_SUCCESS) {
        cupti_client_state.outside +=
            (uintptr_t)record % 8 != 0 || cupti_client_state.len == CUPTI_CLIENT_RECORDS;
        memcpy(cupti_client_state.records[cupti_client_state.len++ % CUPTI_CLIENT_RECORDS], record,
               record_bytes(record->kind));
    }
    cupti_client_state.invalid += result != CUPTI_ERROR_MAX_LIMIT_REACHED;
    pthread_mutex_unlock(&cupti_client_state.lock);
    free(buffer - cupti_client_state.shift);
}

void cupti_client_load(void)
{
    shim_driver_load(&cupti_client_driver);
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        void *address = dlsym(cupti_client_driver.library, slots[i].symbol);
        ck_assert_msg(address != NULL, "%s is not exported", slots[i].symbol);
        memcpy((char *)&cupti_client_calls + slots[i].offset, &address, sizeof address);
    }
}

void cupti_client_start(const char *slugs)
{
    cupti_client_load();
    shim_driver_start(&cupti_client_driver, slugs);
    cupti_client_add = shim_driver_function(&cupti_client_driver, shim_add_ptx, "add");
    ck_assert_int_eq(cupti_client_calls.cuptiActivityRegisterCallbacks(cupti_client_request,
                                                                       cupti_client_complete),
                     CUPTI_SUCCESS);
}

void cupti_client_enable(CUpti_ActivityKind kind)
{
    ck_assert_int_eq(cupti_client_calls.cuptiActivityEnable(kind), CUPTI_SUCCESS);
}

size_t cupti_client_flush(void)
{
    ck_assert_int_eq(cupti_client_calls.cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    ck_assert_uint_eq(cupti_client_state.invalid, 0);
    ck_assert_uint_eq(cupti_client_state.outside, 0);
    return cupti_client_state.len;
}

size_t cupti_client_dropped(void)
{
    size_t n = 99;
    ck_assert_int_eq(cupti_client_calls.cuptiActivityGetNumDroppedRecords(NULL, 0, &n),
                     CUPTI_SUCCESS);
    return n;
}

void cupti_client_launch(unsigned grid, CUstream stream)
{
    shim_vectors v = {0, 0, 0, 0}; /* every thread leaves at once */
    void *params[] = {&v.a, &v.b, &v.c, &v.n};
    SHIM_OK(&cupti_client_driver,
            cuLaunchKernel(cupti_client_add, grid, 1, 1, 128, 1, 1, 16, stream, params, NULL));
}

const kernel_record *cupti_client_kernel(size_t i)
{
    return (const kernel_record *)(const void *)cupti_client_state.records[i];
}
