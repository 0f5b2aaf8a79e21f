/* record.c - from what a driver call did to the records that a profiler reads. */
#include "emulator/cupti/state.h"

#include <cupti_driver_cbid.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names in records outlive their module (the client may not free them), so that each is kept once,
 * for good. A lock of its own: it is taken while a device is held. */
typedef struct kept_name {
    struct kept_name *next;
    char text[];
} kept_name;
static struct {
    pthread_mutex_t lock;
    kept_name *first;
} names = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *cupti_keep_name(const char *text)
{
    pthread_mutex_lock(&names.lock);
    kept_name *n = names.first;
    while (n != NULL && strcmp(n->text, text) != 0) {
        n = n->next;
    }
    if (n == NULL) {
        size_t bytes = strlen(text) + 1;
        n = malloc(sizeof *n + bytes);
        if (n != NULL) {
            memcpy(n->text, text, bytes);
            n->next = names.first;
            names.first = n;
        }
    }
    pthread_mutex_unlock(&names.lock);
    return n != NULL ? n->text : NULL;
}

static uint64_t stamp(double ns)
{
    return CUPTI_EPOCH_NS + (uint64_t)ns;
}

/* The device's note, with what every kind has; NULL without memory: nothing is recorded. */
static cupti_note *begin_note(shim_context *c, CUpti_ActivityKind kind, uint32_t cbid)
{
    cupti_note *n = calloc(1, sizeof *n);
    if (n == NULL) {
        return NULL;
    }
    n->context = (uint32_t)c->id;
    n->cbid = cbid;
    n->size = (uint32_t)cupti_record_bytes(kind);
    n->record.kind = kind;
    free(c->device->note); /* of a call that failed on its way out */
    c->device->note = n;
    return n;
}

static void describe_kernel(const shim_function *f, const CUlaunchConfig *config,
                            cupti_kernel_record *k)
{
    bool known = f->resources.registers != 0;
    k->registersPerThread = (uint16_t)f->resources.registers;
    k->gridX = (int32_t)config->gridDimX;
    k->gridY = (int32_t)config->gridDimY;
    k->gridZ = (int32_t)config->gridDimZ;
    k->blockX = (int32_t)config->blockDimX;
    k->blockY = (int32_t)config->blockDimY;
    k->blockZ = (int32_t)config->blockDimZ;
    k->staticSharedMemory = (int32_t)f->facts.static_shared_bytes;
    k->dynamicSharedMemory = (int32_t)config->sharedMemBytes;
    k->sharedMemoryExecuted = f->facts.static_shared_bytes + config->sharedMemBytes;
    k->localMemoryPerThread = known ? (uint32_t)f->resources.local_bytes : f->facts.local_bytes;
    k->name = cupti_keep_name(f->facts.name);
    k->clusterX = f->facts.required_cluster[0];
    k->clusterY = f->facts.required_cluster[1];
    k->clusterZ = f->facts.required_cluster[2];
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttributeValue *v = &config->attrs[i].value;
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            k->clusterX = v->clusterDim.x;
            k->clusterY = v->clusterDim.y;
            k->clusterZ = v->clusterDim.z;
        } else if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && v->cooperative != 0) {
            k->launchType = CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE;
        }
    }
}

void cupti_note_kernel(const shim_function *f, const CUlaunchConfig *config, double begin_ns)
{
    shim_context *c = f->head.context;
    cupti_note *n = begin_note(c, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                               config->numAttrs != 0 ? CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx
                                                     : CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
    if (n == NULL) {
        return;
    }
    cupti_kernel_record *k = &n->record.kernel;
    describe_kernel(f, config, k);
    k->start = k->queued = k->submitted = stamp(begin_ns); /* nothing waits in a serial queue */
    k->end = stamp(c->device->clock_ns);
    k->deviceId = (uint32_t)c->device->ordinal;
    k->contextId = n->context;
    k->streamId = shim_stream_id(c, config->hStream);
    k->channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
}

void cupti_note_copy(shim_context *c, CUstream stream, cupti_direction direction, uint64_t bytes,
                     double begin_ns)
{
    static const struct {
        uint32_t cbid;
        uint8_t kind, from, to;
    } of[] = {
        [CUPTI_TO_DEVICE] = {CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
                             CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN,
                             CUPTI_ACTIVITY_MEMORY_KIND_DEVICE},
        [CUPTI_TO_HOST] = {CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
                           CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                           CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN},
        [CUPTI_ON_DEVICE] = {CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
                             CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                             CUPTI_ACTIVITY_MEMORY_KIND_DEVICE},
        [CUPTI_ON_HOST] = {CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH,
                           CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN, CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN},
    };
    cupti_note *n = begin_note(c, CUPTI_ACTIVITY_KIND_MEMCPY, of[direction].cbid);
    if (n == NULL) {
        return;
    }
    CUpti_ActivityMemcpy6 *m = &n->record.copy;
    m->copyKind = of[direction].kind;
    m->srcKind = of[direction].from;
    m->dstKind = of[direction].to;
    m->flags = stream != NULL ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
    m->bytes = bytes;
    m->start = stamp(begin_ns);
    m->end = stamp(c->device->clock_ns);
    m->deviceId = (uint32_t)c->device->ordinal;
    m->contextId = n->context;
    m->streamId = shim_stream_id(c, stream);
    m->channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
    m->copyCount = 1;
}

void cupti_note_fill(shim_context *c, CUstream stream, uint32_t value, uint64_t bytes,
                     double begin_ns)
{
    cupti_note *n =
        begin_note(c, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async);
    if (n == NULL) {
        return;
    }
    CUpti_ActivityMemset4 *m = &n->record.fill;
    m->value = value;
    m->bytes = bytes;
    m->start = stamp(begin_ns);
    m->end = stamp(c->device->clock_ns);
    m->deviceId = (uint32_t)c->device->ordinal;
    m->contextId = n->context;
    m->streamId = shim_stream_id(c, stream);
    m->flags = stream != NULL ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
    m->memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    m->channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
}

static void put_api(cupti_state *s, const cupti_note *n, uint64_t at, uint64_t kinds)
{
    CUpti_ActivityAPI record = {
        .kind = CUPTI_ACTIVITY_KIND_DRIVER,
        .cbid = n->cbid,
        .start = at,
        .end = at, /* the host's time is not modelled */
        .processId = (uint32_t)getpid(),
        .threadId = (uint32_t)(uintptr_t)pthread_self(),
        .correlationId = s->correlation,
        .returnValue = CUDA_SUCCESS,
    };
    if (kinds & CUPTI_KIND(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) {
        cupti_put_external(s, s->correlation);
    }
    cupti_queue_put(s, &record, sizeof record);
}

/* The last touches to a kernel's record: the kind that was asked for, and the faults. False: it is
 * not wanted, or lost. */
static bool finish_kernel(cupti_state *s, cupti_kernel_record *k, uint64_t kinds)
{
    bool concurrent = (kinds & CUPTI_KIND(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) != 0;
    if (!concurrent && (kinds & CUPTI_KIND(CUPTI_ACTIVITY_KIND_KERNEL)) == 0) {
        return false;
    }
    k->kind = concurrent ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL : CUPTI_ACTIVITY_KIND_KERNEL;
    k->correlationId = s->correlation;
    k->gridId = s->correlation;
    if (!s->latency) {
        k->queued = k->submitted = CUPTI_TIMESTAMP_UNKNOWN;
    }
    if (s->faults.zero_timestamps) {
        k->start = k->end = 0;
    }
    s->kernels++;
    return s->faults.lose_every == 0 || s->kernels % s->faults.lose_every != 0;
}

static bool finish_record(cupti_state *s, cupti_note *n, uint64_t kinds)
{
    switch ((int)n->record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return finish_kernel(s, &n->record.kernel, kinds);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        n->record.copy.correlationId = s->correlation;
        return (kinds & CUPTI_KIND(CUPTI_ACTIVITY_KIND_MEMCPY)) != 0;
    default:
        n->record.fill.correlationId = s->correlation;
        return (kinds & CUPTI_KIND(CUPTI_ACTIVITY_KIND_MEMSET)) != 0;
    }
}

static uint64_t start_of(const cupti_note *n)
{
    switch ((int)n->record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return n->record.kernel.start;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return n->record.copy.start;
    default:
        return n->record.fill.start;
    }
}

void cupti_file(cupti_note *note)
{
    cupti_state *s = cupti_lock();
    uint64_t kinds = cupti_kinds_of(s, note->context);
    s->correlation++;
    if (kinds & CUPTI_KIND(CUPTI_ACTIVITY_KIND_DRIVER)) {
        put_api(s, note, start_of(note), kinds);
    }
    if (finish_record(s, note, kinds)) {
        cupti_queue_put(s, &note->record, note->size);
    }
    cupti_unlock();
    free(note);
}
