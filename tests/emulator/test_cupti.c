/* test_cupti.c - the activity API of libhone_emu.so, as a timer uses it. */
#include "tests/emulator/cupti_client.h"
#include "tests/support/suite.h"

#include <string.h>

static shim_driver *const d = &cupti_client_driver;
static cupti_calls *const c = &cupti_client_calls;
static cupti_client *const client = &cupti_client_state;

static void start(void)
{
    cupti_client_start("h200");
}

START_TEST(a_kernel_leaves_a_record_of_what_it_was)
{
    hone_emu_resources resources = {.registers = 21, .local_bytes = 48};
    CUcontext context = NULL;
    CUstream stream = NULL;
    uint32_t stream_id = 0, context_id = 0, device_id = 9;
    SHIM_OK(d, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    SHIM_OK(d, cuCtxGetCurrent(&context));
    ck_assert_int_eq(d->emu->set_resources(cupti_client_add, &resources, NULL), HONE_OK);
    ck_assert_int_eq(c->cuptiGetStreamIdEx(context, stream, 0, &stream_id), CUPTI_SUCCESS);
    ck_assert_int_eq(c->cuptiGetContextId(context, &context_id), CUPTI_SUCCESS);
    ck_assert_int_eq(c->cuptiGetDeviceId(context, &device_id), CUPTI_SUCCESS);
    cupti_client_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cupti_client_launch(5, stream);
    ck_assert_uint_eq(client->len, 0); /* not before the flush */
    ck_assert_uint_eq(cupti_client_flush(), 1);
    const kernel_record *k = cupti_client_kernel(0);
    ck_assert_int_eq(k->kind, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    ck_assert_str_eq(k->name, "add");
    ck_assert_uint_ne(k->start, 0);
    ck_assert_uint_gt(k->end, k->start);
    ck_assert_uint_eq(k->registersPerThread, 21);
    ck_assert_uint_eq(k->localMemoryPerThread, 48);
    ck_assert_int_eq(k->gridX, 5);
    ck_assert_int_eq(k->gridY * k->gridZ, 1);
    ck_assert_int_eq(k->blockX, 128);
    ck_assert_int_eq(k->blockY * k->blockZ, 1);
    ck_assert_int_eq(k->staticSharedMemory, 0);
    ck_assert_int_eq(k->dynamicSharedMemory, 16);
    ck_assert_uint_eq(k->deviceId, device_id);
    ck_assert_uint_eq(k->contextId, context_id);
    ck_assert_uint_eq(k->streamId, stream_id);
    ck_assert_uint_ne(k->correlationId, 0);
    ck_assert_uint_eq(k->queued, CUPTI_TIMESTAMP_UNKNOWN);
    ck_assert_uint_eq(k->submitted, CUPTI_TIMESTAMP_UNKNOWN);
    ck_assert_uint_eq(k->launchType, CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR);
    ck_assert_uint_eq(k->completed, CUPTI_TIMESTAMP_UNKNOWN);
}
END_TEST

/* Two kernels that do nothing, one of which says of how many CTAs its clusters are. */
static const char pairs_ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                                ".visible .entry pair() .reqnctapercluster 2, 1, 1 { ret; }\n"
                                ".visible .entry any() { ret; }\n";

START_TEST(a_record_has_the_shape_of_its_cluster)
{
    CUlaunchAttribute four = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    four.value.clusterDim.x = 4;
    four.value.clusterDim.y = four.value.clusterDim.z = 1;
    CUlaunchConfig config = {.gridDimX = 8,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 32,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = &four,
                             .numAttrs = 1};
    CUfunction pair = shim_driver_function(d, pairs_ptx, "pair");
    CUfunction any = shim_driver_function(d, pairs_ptx, "any");
    cupti_client_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    SHIM_OK(d, cuLaunchKernelEx(&config, any, NULL, NULL));
    SHIM_OK(d, cuLaunchKernel(pair, 8, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    SHIM_OK(d, cuLaunchKernel(any, 8, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    ck_assert_uint_eq(cupti_client_flush(), 3);
    ck_assert_uint_eq(cupti_client_kernel(0)->clusterX, 4);
    ck_assert_uint_eq(cupti_client_kernel(1)->clusterX, 2);
    ck_assert_uint_eq(cupti_client_kernel(1)->clusterY, 1);
    ck_assert_uint_eq(cupti_client_kernel(2)->clusterX, 0);
}
END_TEST

START_TEST(records_stand_in_order_and_do_not_overlap)
{
    uint64_t before = 0, after = 0;
    CUevent start = NULL, end = NULL;
    float ms = 0;
    SHIM_OK(d, cuEventCreate(&start, 0));
    SHIM_OK(d, cuEventCreate(&end, 0));
    cupti_client_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    ck_assert_int_eq(c->cuptiActivityEnableLatencyTimestamps(1), CUPTI_SUCCESS);
    ck_assert_int_eq(c->cuptiGetTimestamp(&before), CUPTI_SUCCESS);
    SHIM_OK(d, cuEventRecord(start, NULL));
    for (unsigned i = 0; i < 20; i++) {
        cupti_client_launch(i + 1, NULL);
    }
    SHIM_OK(d, cuEventRecord(end, NULL));
    SHIM_OK(d, cuEventElapsedTime(&ms, start, end));
    ck_assert_int_eq(c->cuptiGetTimestamp(&after), CUPTI_SUCCESS);
    ck_assert_uint_eq(cupti_client_flush(), 20);
    for (size_t i = 0; i < 20; i++) {
        const kernel_record *k = cupti_client_kernel(i);
        ck_assert_int_eq(k->gridX, (int)i + 1);
        ck_assert_uint_ge(k->start, i == 0 ? before : cupti_client_kernel(i - 1)->end);
        ck_assert_uint_gt(k->end, k->start);
        ck_assert_uint_eq(k->queued, k->start);
        ck_assert_uint_eq(k->submitted, k->start);
        ck_assert_uint_eq(k->correlationId, cupti_client_kernel(0)->correlationId + i);
    }
    ck_assert_uint_eq(cupti_client_kernel(19)->end, after);
    ck_assert_double_eq_tol((double)(cupti_client_kernel(19)->end - cupti_client_kernel(0)->start),
                            (double)ms * 1e6, 2);
}
END_TEST

START_TEST(the_serialising_kind_gives_the_same_record_under_its_name)
{
    cupti_client_enable(CUPTI_ACTIVITY_KIND_KERNEL);
    cupti_client_launch(1, NULL);
    cupti_client_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cupti_client_launch(1, NULL);
    ck_assert_uint_eq(cupti_client_flush(), 2);
    ck_assert_int_eq(cupti_client_kernel(0)->kind, CUPTI_ACTIVITY_KIND_KERNEL);
    ck_assert_int_eq(cupti_client_kernel(1)->kind, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}
END_TEST

START_TEST(what_is_not_enabled_leaves_none)
{
    shim_vectors v = shim_vectors_make(d);
    cupti_client_launch(1, NULL);
    cupti_client_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    SHIM_OK(d, cuMemsetD8(v.a, 0, 16));
    ck_assert_int_eq(c->cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    cupti_client_launch(1, NULL);
    ck_assert_uint_eq(cupti_client_flush(), 0);
    ck_assert_uint_eq(client->requested, 0);
}
END_TEST

START_TEST(copies_and_fills_leave_records)
{
    static const uint8_t kinds[] = {
        CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH,
        CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH};
    shim_vectors v = shim_vectors_make(d);
    uint8_t host[4000];
    cupti_client_enable(CUPTI_ACTIVITY_KIND_MEMCPY);
    cupti_client_enable(CUPTI_ACTIVITY_KIND_MEMSET);
    SHIM_OK(d, cuMemcpyHtoD(v.a, host, 4000));
    SHIM_OK(d, cuMemcpyDtoH(host, v.a, 3000));
    SHIM_OK(d, cuMemcpyDtoD(v.b, v.a, 2000));
    SHIM_OK(d, cuMemcpy((CUdeviceptr)(uintptr_t)host, v.a, 1000));
    SHIM_OK(d, cuMemsetD32(v.c, 0x01020304, 500));
    SHIM_GIVES(d, CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(v.a, host, 1 << 20));
    ck_assert_uint_eq(cupti_client_flush(), 5);
    for (size_t i = 0; i < 4; i++) {
        const CUpti_ActivityMemcpy6 *m = (const void *)client->records[i];
        ck_assert_int_eq(m->kind, CUPTI_ACTIVITY_KIND_MEMCPY);
        ck_assert_uint_eq(m->copyKind, kinds[i]);
        ck_assert_uint_eq(m->bytes, 4000 - 1000 * i);
        ck_assert_uint_ge(m->end, m->start);
    }
    const CUpti_ActivityMemset4 *m = (const void *)client->records[4];
    ck_assert_int_eq(m->kind, CUPTI_ACTIVITY_KIND_MEMSET);
    ck_assert_uint_eq(m->value, 0x01020304);
    ck_assert_uint_eq(m->bytes, 2000);
    ck_assert_uint_gt(m->end, m->start);
}
END_TEST

/* A device's name says that no time in these records was measured. */
static void check_device(size_t i, const char *slug)
{
    char name[160];
    const CUpti_ActivityDevice5 *r = (const void *)client->records[i];
    SHIM_OK(d, cuDeviceGetName(name, sizeof name, (CUdevice)i));
    ck_assert_int_eq(r->kind, CUPTI_ACTIVITY_KIND_DEVICE);
    ck_assert_uint_eq(r->id, i);
    ck_assert_str_eq(r->name, name);
    ck_assert_msg(strstr(r->name, "emulator") != NULL && strstr(r->name, slug) != NULL, "%s",
                  r->name);
    ck_assert_uint_eq(r->computeCapabilityMajor, 9);
    ck_assert_uint_gt(r->numMultiprocessors, 70);
}

START_TEST(devices_leave_records_at_cuinit_and_when_asked)
{
    cupti_client_load();
    ck_assert_int_eq(c->cuptiActivityRegisterCallbacks(cupti_client_request, cupti_client_complete),
                     CUPTI_SUCCESS);
    cupti_client_enable(CUPTI_ACTIVITY_KIND_DEVICE);
    shim_driver_start(d, "h200,h20");
    ck_assert_uint_eq(cupti_client_flush(), 2);
    check_device(0, "H200");
    check_device(1, "H20");
    SHIM_OK(d, cuInit(0)); /* they came already */
    ck_assert_uint_eq(cupti_client_flush(), 2);
    client->len = 0;
    ck_assert_int_eq(c->cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_DEVICE), CUPTI_SUCCESS);
    ck_assert_uint_eq(cupti_client_flush(), 2);
    check_device(1, "H20");
}
END_TEST

START_TEST(external_ids_precede_the_api_record_of_their_call)
{
    const CUpti_ExternalCorrelationKind kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    uint64_t last = 0;
    cupti_client_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cupti_client_enable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    ck_assert_int_eq(c->cuptiActivityPushExternalCorrelationId(kind, 7), CUPTI_SUCCESS);
    cupti_client_launch(1, NULL); /* no API record: no external one */
    ck_assert_uint_eq(cupti_client_flush(), 1);
    cupti_client_enable(CUPTI_ACTIVITY_KIND_DRIVER);
    ck_assert_int_eq(c->cuptiActivityPushExternalCorrelationId(kind, 8), CUPTI_SUCCESS);
    cupti_client_launch(2, NULL);
    ck_assert_int_eq(c->cuptiActivityPopExternalCorrelationId(kind, &last), CUPTI_SUCCESS);
    ck_assert_uint_eq(last, 8);
    ck_assert_int_eq(c->cuptiActivityPopExternalCorrelationId(kind, NULL), CUPTI_SUCCESS);
    ck_assert_int_eq(c->cuptiActivityPopExternalCorrelationId(kind, NULL), CUPTI_ERROR_QUEUE_EMPTY);
    cupti_client_launch(3, NULL);
    ck_assert_uint_eq(cupti_client_flush(),
                      6); /* 1: kernel; 2: external, API, kernel; 3: API, kernel */
    const CUpti_ActivityExternalCorrelation *e = (const void *)client->records[1];
    const CUpti_ActivityAPI *a = (const void *)client->records[2];
    ck_assert_int_eq(e->kind, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    ck_assert_int_eq(e->externalKind, kind);
    ck_assert_uint_eq(e->externalId, 8);
    ck_assert_int_eq(a->kind, CUPTI_ACTIVITY_KIND_DRIVER);
    ck_assert_uint_eq(a->correlationId, e->correlationId);
    ck_assert_uint_eq(cupti_client_kernel(3)->correlationId, e->correlationId);
    ck_assert_int_eq(((const CUpti_Activity *)(const void *)client->records[4])->kind,
                     CUPTI_ACTIVITY_KIND_DRIVER);
    ck_assert_int_eq(c->cuptiActivityPushExternalCorrelationId(0, 1),
                     CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

/* Buffers that the client gives, and what seven launches leave in them. */
static const struct {
    const char *name;
    size_t size, most, shift;
    bool declines;
    size_t records, completed, dropped;
} buffers[] = {
    {"three records a buffer", 3 * sizeof(kernel_record) + 8, 0, 0, false, 7, 3, 0},
    {"exactly one record", sizeof(kernel_record), 0, 0, false, 7, 7, 0},
    {"room, but two at most", 65536, 2, 0, false, 7, 4, 0},
    {"too small for one", sizeof(kernel_record) - 8, 0, 0, false, 0, 7, 7},
    {"off alignment", 65536, 0, 4, false, 0, 7, 7},
    {"none", 65536, 0, 0, true, 0, 0, 7},
};

START_TEST(buffers_are_filled_and_given_back)
{
    client->size = buffers[_i].size;
    client->most = buffers[_i].most;
    client->shift = buffers[_i].shift;
    client->declines = buffers[_i].declines;
    cupti_client_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    for (unsigned i = 0; i < 7; i++) {
        cupti_client_launch(i + 1, NULL);
    }
    ck_assert_msg(cupti_client_flush() == buffers[_i].records, "%s: %zu records", buffers[_i].name,
                  client->len);
    ck_assert_uint_eq(client->completed, buffers[_i].completed);
    ck_assert_uint_eq(cupti_client_dropped(), buffers[_i].dropped);
    ck_assert_uint_eq(cupti_client_dropped(), 0); /* counted once */
    for (size_t i = 0; i < client->len; i++) {
        ck_assert_int_eq(cupti_client_kernel(i)->gridX, (int)i + 1);
    }
    size_t completed = client->completed;
    cupti_client_flush();
    ck_assert_uint_eq(client->completed, completed); /* nothing to give back */
}
END_TEST

START_TEST(a_name_outlives_its_module)
{
    CUmodule module = NULL;
    SHIM_OK(d, cuFuncGetModule(&module, cupti_client_add));
    cupti_client_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cupti_client_launch(1, NULL);
    cupti_client_launch(1, NULL);
    SHIM_OK(d, cuModuleUnload(module));
    ck_assert_uint_eq(cupti_client_flush(), 2);
    ck_assert_str_eq(cupti_client_kernel(0)->name, "add");
    ck_assert_ptr_eq(cupti_client_kernel(0)->name, cupti_client_kernel(1)->name);
}
END_TEST

START_TEST(a_context_decides_for_itself)
{
    CUcontext primary = NULL, other = NULL;
    const CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    SHIM_OK(d, cuCtxGetCurrent(&primary));
    SHIM_OK(d, cuCtxCreate(&other, NULL, 0, 0));
    CUfunction mine = cupti_client_add, others = shim_driver_function(d, shim_add_ptx, "add");
    ck_assert_int_eq(c->cuptiActivityEnableContext(other, kind), CUPTI_SUCCESS);
    cupti_client_add = others;
    cupti_client_launch(1, NULL);
    SHIM_OK(d, cuCtxSetCurrent(primary));
    cupti_client_add = mine;
    cupti_client_launch(2, NULL);
    ck_assert_uint_eq(cupti_client_flush(), 1);
    ck_assert_int_eq(cupti_client_kernel(0)->gridX, 1);
    cupti_client_enable(kind);
    ck_assert_int_eq(c->cuptiActivityDisableContext(primary, kind), CUPTI_SUCCESS);
    cupti_client_launch(3, NULL);
    SHIM_OK(d, cuCtxSetCurrent(other));
    cupti_client_add = others;
    cupti_client_launch(4, NULL);
    ck_assert_uint_eq(cupti_client_flush(), 2);
    ck_assert_int_eq(cupti_client_kernel(1)->gridX, 4);
    ck_assert_int_eq(c->cuptiActivityEnableContext((CUcontext)0x10, kind),
                     CUPTI_ERROR_INVALID_CONTEXT);
}
END_TEST

int main(void)
{
    TCase *cases[] = {tcase_create("started"), tcase_create("bare")};

    tcase_add_checked_fixture(cases[0], start, NULL);
    tcase_add_test(cases[0], a_kernel_leaves_a_record_of_what_it_was);
    tcase_add_test(cases[0], a_record_has_the_shape_of_its_cluster);
    tcase_add_test(cases[0], records_stand_in_order_and_do_not_overlap);
    tcase_add_test(cases[0], the_serialising_kind_gives_the_same_record_under_its_name);
    tcase_add_test(cases[0], what_is_not_enabled_leaves_none);
    tcase_add_test(cases[0], copies_and_fills_leave_records);
    tcase_add_test(cases[1], devices_leave_records_at_cuinit_and_when_asked);
    tcase_add_test(cases[0], external_ids_precede_the_api_record_of_their_call);
    tcase_add_loop_test(cases[0], buffers_are_filled_and_given_back, 0,
                        (int)(sizeof buffers / sizeof buffers[0]));
    tcase_add_test(cases[0], a_name_outlives_its_module);
    tcase_add_test(cases[0], a_context_decides_for_itself);
    return suite_run_cases("emulator/cupti", cases, 2);
}
