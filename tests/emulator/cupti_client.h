/* cupti_client.h - a client of libhone_emu.so's activity API, through its exports alone. */
#ifndef HONE_TESTS_CUPTI_CLIENT_H
#define HONE_TESTS_CUPTI_CLIENT_H

#include "tests/emulator/shim_driver.h"

#include <cupti_activity.h>
#include <cupti_version.h>
#include <pthread.h>
#include <stdbool.h>

#define CUPTI_CALLS(X)                                                                             \
    X(cuptiActivityRegisterCallbacks)                                                              \
    X(cuptiActivityEnable)                                                                         \
    X(cuptiActivityEnableAndDump)                                                                  \
    X(cuptiActivityDisable)                                                                        \
    X(cuptiActivityEnableContext)                                                                  \
    X(cuptiActivityDisableContext)                                                                 \
    X(cuptiActivityFlushAll)                                                                       \
    X(cuptiActivityFlushPeriod)                                                                    \
    X(cuptiActivityGetNextRecord)                                                                  \
    X(cuptiActivityGetNumDroppedRecords)                                                           \
    X(cuptiActivityGetAttribute)                                                                   \
    X(cuptiActivitySetAttribute)                                                                   \
    X(cuptiActivityPushExternalCorrelationId)                                                      \
    X(cuptiActivityPopExternalCorrelationId)                                                       \
    X(cuptiActivityEnableLatencyTimestamps)                                                        \
    X(cuptiActivityEnableHWTrace)                                                                  \
    X(cuptiGetTimestamp)                                                                           \
    X(cuptiGetVersion)                                                                             \
    X(cuptiGetResultString)                                                                        \
    X(cuptiGetErrorMessage)                                                                        \
    X(cuptiGetContextId)                                                                           \
    X(cuptiGetStreamIdEx)                                                                          \
    X(cuptiGetDeviceId)                                                                            \
    X(cuptiSubscribe)                                                                              \
    X(cuptiUnsubscribe)                                                                            \
    X(cuptiFinalize)

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
#endif

typedef struct cupti_calls {
#define X(name) __typeof__(&name) name;
    CUPTI_CALLS(X)
#undef X
} cupti_calls;

/* What the client's callbacks give and got. Records are copied out, as a timer does. */
enum { CUPTI_CLIENT_RECORDS = 4096, CUPTI_CLIENT_LARGEST = 512 };
typedef struct cupti_client {
    pthread_mutex_t lock;
    size_t size, most, shift; /* of buffers: bytes, records at most, bytes off alignment */
    bool declines;
    size_t requested, completed, invalid, outside;
    size_t len;
    _Alignas(8) uint8_t records[CUPTI_CLIENT_RECORDS][CUPTI_CLIENT_LARGEST];
} cupti_client;

/* One a process, as the activity API has one; Check forks for each test. */
extern shim_driver cupti_client_driver;
extern cupti_calls cupti_client_calls;
extern cupti_client cupti_client_state;
extern CUfunction cupti_client_add; /* shim_add_ptx, in device 0's primary context */

/* The library and its names; nothing of it called. */
void cupti_client_load(void);
/* Loaded, initialised as `slugs`, with callbacks and `add`. */
void cupti_client_start(const char *slugs);

void cupti_client_enable(CUpti_ActivityKind kind);
/* How many records have come by now, none of them crooked. */
size_t cupti_client_flush(void);
size_t cupti_client_dropped(void);
/* `add` of `grid` CTAs whose threads leave at once. */
void cupti_client_launch(unsigned grid, CUstream stream);
const kernel_record *cupti_client_kernel(size_t i);
void cupti_client_request(uint8_t **buffer, size_t *size, size_t *most);
void cupti_client_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                           size_t valid);

#endif
