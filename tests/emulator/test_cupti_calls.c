/* test_cupti_calls.c - who may use the activity API, what it refuses, faults on demand, threads. */
#include "tests/emulator/cupti_client.h"
#include "tests/support/suite.h"

#include <dlfcn.h>
#include <string.h>

static shim_driver *const d = &cupti_client_driver;
static cupti_calls *const c = &cupti_client_calls;
static cupti_client *const client = &cupti_client_state;

static void start(void)
{
    cupti_client_start("h200");
}

START_TEST(one_subscriber_at_a_time)
{
    CUpti_SubscriberHandle first = NULL, second = NULL;
    ck_assert_int_eq(c->cuptiSubscribe(NULL, NULL, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    ck_assert_int_eq(c->cuptiSubscribe(&first, NULL, NULL), CUPTI_SUCCESS);
    ck_assert_int_eq(c->cuptiSubscribe(&second, NULL, NULL),
                     CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    ck_assert_ptr_null(second);
    ck_assert_int_eq(c->cuptiUnsubscribe(first), CUPTI_SUCCESS);
    ck_assert_int_eq(c->cuptiUnsubscribe(first), CUPTI_ERROR_INVALID_PARAMETER);
    ck_assert_int_eq(c->cuptiSubscribe(&second, NULL, NULL), CUPTI_SUCCESS);
}
END_TEST

#if CUPTI_API_VERSION >= 130000
START_TEST(who_holds_it_is_told)
{
    __typeof__(&cuptiSubscribe_v2) subscribe = NULL;
    void *address = dlsym(d->library, "cuptiSubscribe_v2");
    char old[64] = "";
    CUpti_SubscriberParams params = {.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                                     .subscriberName = "a tool"};
    CUpti_SubscriberParams again = {.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                                    .oldSubscriberName = old,
                                    .oldSubscriberSize = sizeof old};
    CUpti_SubscriberHandle first = NULL, second = NULL;
    hone_emu_cupti_faults busy = {.subscribe = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED};
    memcpy(&subscribe, &address, sizeof address);
    ck_assert_int_eq(subscribe(&first, NULL, NULL, &params), CUPTI_SUCCESS);
    ck_assert_int_eq(subscribe(&second, NULL, NULL, &again),
                     CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    ck_assert_str_eq(old, "CUPTI for a tool");
    ck_assert_int_eq(c->cuptiUnsubscribe(first), CUPTI_SUCCESS);
    ck_assert_int_eq(d->emu->set_cupti_faults(&busy, NULL), HONE_OK);
    ck_assert_int_eq(subscribe(&second, NULL, NULL, &again),
                     CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    ck_assert_str_eq(old, "CUPTI for another tool");
    again.structSize--;
    ck_assert_int_eq(subscribe(&second, NULL, NULL, &again), CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST
#endif

START_TEST(faults_on_demand)
{
    CUpti_SubscriberHandle subscriber = NULL;
    const CUpti_ActivityKind kernel = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    hone_emu_cupti_faults faults = {.subscribe = CUPTI_ERROR_OUT_OF_MEMORY,
                                    .enable = CUPTI_ERROR_DISABLED};
    ck_assert_int_eq(d->emu->set_cupti_faults(&faults, NULL), HONE_OK);
    ck_assert_int_eq(c->cuptiSubscribe(&subscriber, NULL, NULL), CUPTI_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(c->cuptiActivityEnable(kernel), CUPTI_ERROR_DISABLED);
    faults = (hone_emu_cupti_faults){.enable = CUPTI_ERROR_INVALID_KIND, .enable_kind = kernel};
    ck_assert_int_eq(d->emu->set_cupti_faults(&faults, NULL), HONE_OK);
    ck_assert_int_eq(c->cuptiSubscribe(&subscriber, NULL, NULL), CUPTI_SUCCESS);
    ck_assert_int_eq(c->cuptiActivityEnable(kernel), CUPTI_ERROR_INVALID_KIND);
    cupti_client_enable(CUPTI_ACTIVITY_KIND_KERNEL);
    faults = (hone_emu_cupti_faults){.zero_timestamps = 1, .lose_every = 3};
    ck_assert_int_eq(d->emu->set_cupti_faults(&faults, NULL), HONE_OK);
    for (unsigned i = 1; i <= 7; i++) {
        cupti_client_launch(i, NULL);
    }
    ck_assert_uint_eq(cupti_client_flush(), 5);
    ck_assert_uint_eq(cupti_client_dropped(), 0); /* lost without a word */
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_ne(cupti_client_kernel(i)->gridX % 3, 0);
        ck_assert_uint_eq(cupti_client_kernel(i)->start, 0);
        ck_assert_uint_eq(cupti_client_kernel(i)->end, 0);
    }
    ck_assert_int_eq(d->emu->set_cupti_faults(NULL, NULL), HONE_OK);
    cupti_client_launch(3, NULL);
    ck_assert_uint_eq(cupti_client_flush(), 6);
    ck_assert_uint_ne(cupti_client_kernel(5)->start, 0);
}
END_TEST

START_TEST(a_launch_that_fails_leaves_no_record)
{
    cupti_client_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    ck_assert_int_eq(d->emu->set_launch_fault(0, 2, CUDA_ERROR_LAUNCH_FAILED, NULL), HONE_OK);
    cupti_client_launch(1, NULL);
    shim_vectors v = {0, 0, 0, 0};
    void *params[] = {&v.a, &v.b, &v.c, &v.n};
    SHIM_GIVES(d, CUDA_ERROR_LAUNCH_FAILED,
               cuLaunchKernel(cupti_client_add, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    ck_assert_uint_eq(cupti_client_flush(), 1);
}
END_TEST

START_TEST(calls_out_of_place_are_refused)
{
    CUpti_Activity *record = NULL;
    uint8_t byte[8] = {0};
    uint64_t value = 0;
    uint32_t id = 0;
    size_t size = 8;
    cupti_client_load();
    ck_assert_int_eq(c->cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
    ck_assert_int_eq(c->cuptiActivityRegisterCallbacks(NULL, cupti_client_complete),
                     CUPTI_ERROR_INVALID_PARAMETER);
    ck_assert_int_eq(c->cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING),
                     CUPTI_ERROR_INVALID_KIND);
    ck_assert_int_eq(c->cuptiActivityEnable((CUpti_ActivityKind)100), CUPTI_ERROR_INVALID_KIND);
    ck_assert_int_eq(c->cuptiActivityDisable(CUPTI_ACTIVITY_KIND_INVALID),
                     CUPTI_ERROR_INVALID_KIND);
    ck_assert_int_eq(c->cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
    ck_assert_int_eq(c->cuptiActivityGetNextRecord(NULL, 8, &record),
                     CUPTI_ERROR_INVALID_PARAMETER);
    ck_assert_int_eq(c->cuptiActivityGetNextRecord(byte, 0, &record),
                     CUPTI_ERROR_MAX_LIMIT_REACHED);
    ck_assert_int_eq(c->cuptiActivityGetNextRecord(byte, 8, &record), CUPTI_ERROR_INVALID_KIND);
    ck_assert_int_eq(c->cuptiActivityGetNumDroppedRecords(NULL, 0, NULL),
                     CUPTI_ERROR_INVALID_PARAMETER);
    ck_assert_int_eq(c->cuptiGetTimestamp(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    ck_assert_int_eq(c->cuptiGetDeviceId(NULL, &id), CUPTI_ERROR_INVALID_DEVICE);
    ck_assert_int_eq(c->cuptiGetStreamIdEx(NULL, NULL, 0, &id), CUPTI_ERROR_INVALID_STREAM);
    ck_assert_int_eq(c->cuptiActivityEnableHWTrace(1), CUPTI_ERROR_NOT_SUPPORTED);
    ck_assert_int_eq(
        c->cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_FORCE_INT, &size, &value),
        CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

START_TEST(attributes_are_kept)
{
    const CUpti_ActivityAttribute buffer = CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE;
    size_t value = 0, size = sizeof value, small = 4;
    ck_assert_int_eq(c->cuptiActivityGetAttribute(buffer, &size, &value), CUPTI_SUCCESS);
    ck_assert_uint_eq(value, 3200000);
    value = 1 << 20;
    ck_assert_int_eq(c->cuptiActivitySetAttribute(buffer, &size, &value), CUPTI_SUCCESS);
    value = 0;
    ck_assert_int_eq(c->cuptiActivityGetAttribute(buffer, &size, &value), CUPTI_SUCCESS);
    ck_assert_uint_eq(value, 1 << 20);
    ck_assert_int_eq(c->cuptiActivityGetAttribute(buffer, &small, &value),
                     CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
}
END_TEST

START_TEST(versions_results_and_the_end)
{
    const char *text = NULL;
    uint32_t version = 0;
    ck_assert_int_eq(c->cuptiGetVersion(&version), CUPTI_SUCCESS);
    ck_assert_uint_eq(version, CUPTI_API_VERSION);
    ck_assert_int_eq(c->cuptiGetResultString(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, &text),
                     CUPTI_SUCCESS);
    ck_assert_str_eq(text, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED");
    ck_assert_int_eq(c->cuptiGetErrorMessage(CUPTI_SUCCESS, &text), CUPTI_SUCCESS);
    ck_assert_str_eq(text, "no error");
    ck_assert_int_eq(c->cuptiGetResultString((CUptiResult)12345, &text),
                     CUPTI_ERROR_INVALID_PARAMETER);
    ck_assert_int_eq(c->cuptiActivityFlushPeriod(100), CUPTI_SUCCESS);
    cupti_client_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cupti_client_launch(1, NULL);
    ck_assert_int_eq(c->cuptiFinalize(), CUPTI_SUCCESS);
    ck_assert_uint_eq(client->len, 1); /* what there was is given back */
    cupti_client_launch(1, NULL);
    ck_assert_int_eq(c->cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
    ck_assert_uint_eq(client->len, 1);
}
END_TEST

enum { THREADS = 4, ROUNDS = 50 };

/* Each thread has a context, a device and ids of its own. */
static void *work(void *argument)
{
    CUdevice device = (CUdevice)((uintptr_t)argument % 2);
    CUcontext context = NULL;
    uint64_t now = 0, id = (uintptr_t)argument;
    shim_vectors v = {0, 0, 0, 0};
    void *params[] = {&v.a, &v.b, &v.c, &v.n};
    SHIM_OK(d, cuCtxCreate(&context, NULL, 0, device));
    CUfunction f = shim_driver_function(d, shim_add_ptx, "add");
    for (unsigned i = 0; i < ROUNDS; i++) {
        c->cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, id);
        SHIM_OK(d, cuLaunchKernel(f, i + 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
        c->cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, NULL);
        c->cuptiGetTimestamp(&now);
        if (i % 8 == 0) {
            c->cuptiActivityFlushAll(0);
        }
    }
    SHIM_OK(d, cuCtxDestroy(context));
    return NULL;
}

/* External records of `id`, each with its own kernel's record, in the order of the launches. */
static size_t count_rounds(uint64_t id)
{
    size_t found = 0;
    for (size_t i = 0; i + 2 < client->len; i++) {
        const CUpti_ActivityExternalCorrelation *e = (const void *)client->records[i];
        if (e->kind != CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION || e->externalId != id) {
            continue;
        }
        ck_assert_uint_eq(cupti_client_kernel(i + 2)->correlationId, e->correlationId);
        ck_assert_uint_eq(cupti_client_kernel(i + 2)->deviceId, id % 2);
        ck_assert_int_eq(cupti_client_kernel(i + 2)->gridX, (int)++found);
    }
    return found;
}

START_TEST(threads_share_the_queue)
{
    pthread_t threads[THREADS];
    cupti_client_start("h200,h20");
    client->size = 4096;
    cupti_client_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cupti_client_enable(CUPTI_ACTIVITY_KIND_DRIVER);
    cupti_client_enable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    for (uintptr_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, (void *)(i + 100)), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    ck_assert_uint_eq(cupti_client_flush(), 3 * THREADS * ROUNDS);
    ck_assert_uint_eq(cupti_client_dropped(), 0);
    ck_assert_uint_eq(client->completed, client->requested);
    for (uint64_t i = 0; i < THREADS; i++) {
        ck_assert_uint_eq(count_rounds(i + 100), ROUNDS);
    }
}
END_TEST

int main(void)
{
    TCase *cases[] = {tcase_create("started"), tcase_create("bare")};

    tcase_add_checked_fixture(cases[0], start, NULL);
    tcase_add_test(cases[0], one_subscriber_at_a_time);
#if CUPTI_API_VERSION >= 130000
    tcase_add_test(cases[0], who_holds_it_is_told);
#endif
    tcase_add_test(cases[0], faults_on_demand);
    tcase_add_test(cases[0], a_launch_that_fails_leaves_no_record);
    tcase_add_test(cases[1], calls_out_of_place_are_refused);
    tcase_add_test(cases[0], attributes_are_kept);
    tcase_add_test(cases[0], versions_results_and_the_end);
    tcase_add_test(cases[1], threads_share_the_queue);
    return suite_run_cases("emulator/cupti_calls", cases, 2);
}
