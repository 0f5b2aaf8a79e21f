/* subscribe.c - the one client that may profile, and what it may ask about handles. */
#include "emulator/cupti/state.h"

#include <stdio.h>
#include <string.h>

/* What a subscriber's handle points at. No callback of the callback API is ever made. */
struct CUpti_Subscriber_st {
    char unused;
};
static struct CUpti_Subscriber_st subscriber_token;

static const char nameless[] = "a client without a name";

static CUptiResult subscribe(CUpti_SubscriberHandle *subscriber, const char *name, char *old,
                             size_t old_size)
{
    cupti_state *s = cupti_lock();
    CUptiResult result = (CUptiResult)s->faults.subscribe;
    const char *holder = s->subscriber;
    if (result == CUPTI_SUCCESS && holder[0] != '\0') {
        result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    } else if (result != CUPTI_SUCCESS) {
        holder = "CUPTI for another tool"; /* that the fault pretends */
    }
    if (result == CUPTI_SUCCESS) {
        snprintf(s->subscriber, sizeof s->subscriber, "CUPTI for %s", name);
        *subscriber = &subscriber_token;
    } else if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && old != NULL &&
               old_size != 0) {
        snprintf(old, old_size, "%s", holder);
    }
    cupti_unlock();
    return result;
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                                    void *userdata)
{
    (void)callback;
    (void)userdata;
    return subscriber != NULL ? subscribe(subscriber, nameless, NULL, 0)
                              : CUPTI_ERROR_INVALID_PARAMETER;
}

#if CUPTI_API_VERSION >= 130000
CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber,
                                       CUpti_CallbackFunc callback, void *userdata,
                                       CUpti_SubscriberParams *pParams)
{
    if (subscriber == NULL ||
        (pParams != NULL && pParams->structSize != CUpti_SubscriberParams_STRUCT_SIZE)) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    if (pParams == NULL) {
        return cuptiSubscribe(subscriber, callback, userdata);
    }
    const char *name = pParams->subscriberName != NULL ? pParams->subscriberName : nameless;
    return subscribe(subscriber, name, pParams->oldSubscriberName, pParams->oldSubscriberSize);
}
#endif

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    cupti_state *s = cupti_lock();
    bool held = subscriber == &subscriber_token && s->subscriber[0] != '\0';
    if (held) {
        s->subscriber[0] = '\0';
    }
    cupti_unlock();
    return held ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult CUPTIAPI cuptiFinalize(void)
{
    cupti_state *s = cupti_lock();
    cupti_queue_flush(s);
    cupti_forget_kinds(s);
    s->request = NULL;
    s->complete = NULL;
    s->latency = false;
    s->subscriber[0] = '\0';
    cupti_unlock();
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version)
{
    if (version == NULL) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

/* That of the current context's device, else of the first. */
CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t *timestamp)
{
    if (timestamp == NULL) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    const shim_context *c = shim_context_current();
    shim_device *d = c != NULL ? c->device : shim_device_at(0);
    *timestamp = CUPTI_EPOCH_NS;
    if (d != NULL) {
        pthread_mutex_lock(&d->lock);
        *timestamp += (uint64_t)d->clock_ns;
        shim_unlock(d);
    }
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetContextId(CUcontext context, uint32_t *contextId)
{
    if (contextId == NULL) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    const shim_context *c = shim_handle_get(SHIM_CONTEXT, context);
    if (c == NULL) {
        return CUPTI_ERROR_INVALID_CONTEXT;
    }
    *contextId = (uint32_t)c->id;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext context, uint32_t *deviceId)
{
    if (deviceId == NULL) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    const shim_context *c =
        context != NULL ? shim_handle_get(SHIM_CONTEXT, context) : shim_context_current();
    if (c == NULL) {
        return CUPTI_ERROR_INVALID_DEVICE;
    }
    *deviceId = (uint32_t)c->device->ordinal;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t perThreadStream,
                                        uint32_t *streamId)
{
    if (streamId == NULL) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    const shim_context *c =
        context != NULL ? shim_handle_get(SHIM_CONTEXT, context) : shim_context_current();
    if (c == NULL) {
        return CUPTI_ERROR_INVALID_STREAM;
    }
    pthread_mutex_lock(&c->device->lock);
    uint32_t id =
        shim_stream_id(c, stream == NULL && perThreadStream != 0 ? CU_STREAM_PER_THREAD : stream);
    shim_unlock(c->device);
    if (id == 0) {
        return CUPTI_ERROR_INVALID_STREAM;
    }
    *streamId = id;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *streamId)
{
    return cuptiGetStreamIdEx(context, stream, 0, streamId);
}
