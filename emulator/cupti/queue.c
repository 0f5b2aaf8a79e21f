/* queue.c - the client's buffers: asked for when there is none, given back when full or flushed. */
#include "emulator/cupti/state.h"

#include <string.h>

/* Records have no owner but the process, as the activity API has one queue. Under cupti_lock. */
static struct {
    uint8_t *bytes; /* NULL: none at hand */
    size_t size, used, records, most;
    size_t dropped;
} queue;

size_t cupti_record_bytes(CUpti_ActivityKind kind)
{
    switch ((int)kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(cupti_kernel_record);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_DEVICE:
        return sizeof(CUpti_ActivityDevice5);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return sizeof(CUpti_ActivityExternalCorrelation);
    default:
        return 0;
    }
}

void cupti_queue_flush(cupti_state *s)
{
    uint8_t *bytes = queue.bytes;
    size_t size = queue.size, used = queue.used;
    if (bytes == NULL) {
        return;
    }
    queue.bytes = NULL; /* the client may ask for more work from its callback */
    s->complete(NULL, 0, bytes, size, used);
}

/* A buffer of the client's that takes `bytes` more; false: it gave none. */
static bool make_room(cupti_state *s, size_t bytes)
{
    bool full = queue.bytes != NULL && (queue.size - queue.used < bytes ||
                                        (queue.most != 0 && queue.records == queue.most));
    if (full) {
        cupti_queue_flush(s);
    }
    if (queue.bytes != NULL) {
        return true;
    }
    uint8_t *given = NULL;
    size_t size = 0, most = 0;
    s->request(&given, &size, &most);
    if (given == NULL) {
        return false;
    }
    queue.bytes = given;
    queue.size = size;
    queue.most = most;
    queue.used = queue.records = 0;
    if (size >= bytes && (uintptr_t)given % ACTIVITY_RECORD_ALIGNMENT == 0) {
        return true;
    }
    cupti_queue_flush(s); /* too small, or crooked: it is the client's again */
    return false;
}

void cupti_queue_put(cupti_state *s, const void *record, size_t bytes)
{
    if (s->request == NULL || !make_room(s, bytes)) {
        cupti_queue_drop(1);
        return;
    }
    memcpy(queue.bytes + queue.used, record, bytes);
    queue.used += bytes;
    queue.records++;
}

void cupti_queue_drop(size_t records)
{
    queue.dropped += records;
}

size_t cupti_queue_dropped(void)
{
    size_t dropped = queue.dropped;
    queue.dropped = 0;
    return dropped;
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t streamId,
                                                       size_t *dropped)
{
    (void)context; /* one queue for all */
    (void)streamId;
    if (dropped == NULL) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    cupti_lock();
    *dropped = cupti_queue_dropped();
    cupti_unlock();
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag)
{
    CUptiResult result = CUPTI_ERROR_INVALID_OPERATION;
    cupti_state *s = cupti_lock();
    if (s->complete != NULL) {
        cupti_queue_flush(s); /* work is done when its call returns: nothing is ever incomplete */
        result = CUPTI_SUCCESS;
    }
    cupti_unlock();
    (void)flag;
    return result;
}

CUptiResult CUPTIAPI cuptiActivityFlush(CUcontext context, uint32_t streamId, uint32_t flag)
{
    (void)context;
    (void)streamId;
    return cuptiActivityFlushAll(flag);
}

/* Full buffers are given back at once: there is no worker to wake. */
CUptiResult CUPTIAPI cuptiActivityFlushPeriod(uint32_t time)
{
    (void)time;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t *buffer, size_t validBufferSizeBytes,
                                                CUpti_Activity **record)
{
    if (buffer == NULL || record == NULL) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    uint8_t *next = buffer;
    if (*record != NULL) {
        size_t bytes = cupti_record_bytes((*record)->kind);
        if (bytes == 0) {
            return CUPTI_ERROR_INVALID_KIND;
        }
        next = (uint8_t *)*record + bytes;
    }
    if (next < buffer || (size_t)(next - buffer) >= validBufferSizeBytes) {
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    }
    CUpti_Activity *found = (CUpti_Activity *)(void *)next;
    if (cupti_record_bytes(found->kind) == 0) {
        return CUPTI_ERROR_INVALID_KIND;
    }
    *record = found;
    return CUPTI_SUCCESS;
}
