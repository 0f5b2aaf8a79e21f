/* stream.c - streams and events. All work of a device is serial, so that a stream is only a
 * name and an event is a reading of the device's modelled clock. */
#include "emulator/driver/shim.h"

typedef struct stream {
    shim_object head;
    unsigned flags;
    int priority;
    uint32_t id;
} stream;

/* Numbers of streams in a profiler's records, as the vendor's tools show them. */
enum { ID_LEGACY = 7, ID_PER_THREAD = 8, ID_FIRST = 13 };

typedef struct event {
    shim_object head;
    unsigned flags;
    bool recorded;
    double ns;
} event;

/* The default streams are named by small numbers. */
static bool is_default(CUstream s)
{
    return s == NULL || s == CU_STREAM_LEGACY || s == CU_STREAM_PER_THREAD;
}

bool shim_stream_valid(const shim_context *c, CUstream s)
{
    return is_default(s) || shim_object_get(c, SHIM_STREAM, s) != NULL;
}

uint32_t shim_stream_id(const shim_context *c, CUstream handle)
{
    if (is_default(handle)) {
        return handle == CU_STREAM_PER_THREAD ? ID_PER_THREAD : ID_LEGACY;
    }
    const stream *s = shim_object_get(c, SHIM_STREAM, handle);
    return s != NULL ? s->id : 0;
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, phStream != NULL && flags <= CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    stream *s = shim_object_new(c, SHIM_STREAM, sizeof *s);
    if (s != NULL) {
        s->flags = flags;
        s->id = ID_FIRST + c->streams_made++;
        s->priority = priority > 0 ? 0 : priority;
        if (s->priority < SHIM_PRIORITY_GREATEST) {
            s->priority = SHIM_PRIORITY_GREATEST;
        }
        *phStream = s->head.handle;
    }
    shim_leave(c);
    return s != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    return cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult CUDAAPI cuStreamDestroy(CUstream hStream)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, true);
    if (result == CUDA_SUCCESS) {
        stream *s = shim_object_get(c, SHIM_STREAM, hStream);
        if (s != NULL) {
            shim_object_destroy(&s->head);
        } else {
            result = CUDA_ERROR_INVALID_HANDLE;
        }
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuStreamSynchronize(CUstream hStream)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, true);
    if (result == CUDA_SUCCESS) {
        result = shim_stream_valid(c, hStream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuStreamQuery(CUstream hStream)
{
    return cuStreamSynchronize(hStream);
}

/* flags and priority of a stream; those of the default streams are 0. */
static CUresult stream_facts(CUstream handle, bool arguments, unsigned *flags, int *priority)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, arguments);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    const stream *s = shim_object_get(c, SHIM_STREAM, handle);
    if (s != NULL) {
        *flags = s->flags;
        *priority = s->priority;
    } else if (!is_default(handle)) {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    shim_leave(c);
    return result;
}

CUresult CUDAAPI cuStreamGetPriority(CUstream hStream, int *priority)
{
    unsigned flags = 0;
    int value = 0;
    CUresult result = stream_facts(hStream, priority != NULL, &flags, &value);
    if (result == CUDA_SUCCESS) {
        *priority = value;
    }
    return result;
}

CUresult CUDAAPI cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    unsigned value = 0;
    int priority = 0;
    CUresult result = stream_facts(hStream, flags != NULL, &value, &priority);
    if (result == CUDA_SUCCESS) {
        *flags = value;
    }
    return result;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    CUresult result = pctx != NULL ? cuStreamSynchronize(hStream) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? cuCtxGetCurrent(pctx) : result;
}

/* Nothing is ever captured here; programs ask before they launch. */
CUresult CUDAAPI cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    CUresult result =
        captureStatus != NULL ? cuStreamSynchronize(hStream) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
    }
    return result;
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, Flags == 0);
    if (result == CUDA_SUCCESS) {
        bool known = shim_stream_valid(c, hStream) && shim_handle_get(SHIM_EVENT, hEvent) != NULL;
        result = known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    CUresult result = fn != NULL ? cuStreamSynchronize(hStream) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        fn(userData); /* what came before it on the stream is done */
    }
    return result;
}

CUresult CUDAAPI cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, phEvent != NULL && (Flags & ~known) == 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    event *e = shim_object_new(c, SHIM_EVENT, sizeof *e);
    if (e != NULL) {
        e->flags = Flags;
        *phEvent = e->head.handle;
    }
    shim_leave(c);
    return e != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuEventDestroy(CUevent hEvent)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, true);
    if (result == CUDA_SUCCESS) {
        event *e = shim_object_get(c, SHIM_EVENT, hEvent);
        if (e != NULL) {
            shim_object_destroy(&e->head);
        } else {
            result = CUDA_ERROR_INVALID_HANDLE;
        }
        shim_leave(c);
    }
    return result;
}

void shim_event_record(shim_context *c, CUevent handle)
{
    event *e = handle != NULL ? shim_object_get(c, SHIM_EVENT, handle) : NULL;

    if (e != NULL) {
        e->recorded = true;
        e->ns = c->device->clock_ns;
    }
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, flags == CU_EVENT_RECORD_DEFAULT);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    event *e = shim_object_get(c, SHIM_EVENT, hEvent);
    if (e != NULL && shim_stream_valid(c, hStream)) {
        shim_event_record(c, hEvent);
    } else {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    shim_leave(c);
    return result;
}

CUresult CUDAAPI cuEventRecord(CUevent hEvent, CUstream hStream)
{
    return cuEventRecordWithFlags(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

CUresult CUDAAPI cuEventSynchronize(CUevent hEvent)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, true);
    if (result == CUDA_SUCCESS) {
        const event *e = shim_object_get(c, SHIM_EVENT, hEvent);
        result = e != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuEventQuery(CUevent hEvent)
{
    return cuEventSynchronize(hEvent);
}

/* Modelled time, never a measurement: the device's name says so. */
CUresult CUDAAPI cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, pMilliseconds != NULL);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    const event *start = shim_object_get(c, SHIM_EVENT, hStart);
    const event *end = shim_object_get(c, SHIM_EVENT, hEnd);
    bool timed = start != NULL && end != NULL && start->recorded && end->recorded &&
                 ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) == 0;
    if (timed) {
        *pMilliseconds = (float)((end->ns - start->ns) * 1e-6);
    } else {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    shim_leave(c);
    return result;
}

SHIM_ALIAS(cuStreamGetPriority, _ptsz);
SHIM_ALIAS(cuStreamGetFlags, _ptsz);
SHIM_ALIAS(cuStreamGetCtx, _ptsz);
SHIM_ALIAS(cuStreamIsCapturing, _ptsz);
SHIM_ALIAS(cuStreamWaitEvent, _ptsz);
SHIM_ALIAS(cuStreamQuery, _ptsz);
SHIM_ALIAS(cuStreamSynchronize, _ptsz);
SHIM_ALIAS(cuLaunchHostFunc, _ptsz);
SHIM_ALIAS(cuEventRecord, _ptsz);
SHIM_ALIAS(cuEventRecordWithFlags, _ptsz);
