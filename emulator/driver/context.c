/* context.c - contexts: primary and created ones, and each thread's stack of current ones. */
#include "emulator/driver/shim.h"

#include <stdlib.h>

#define FLAGS_KNOWN(flags) (((flags) & ~(unsigned)CU_CTX_FLAGS_MASK) == 0)

enum { STACK_MAX = 32 };

/* Handles, not pointers: a context that was destroyed elsewhere is found out when it is used. */
static _Thread_local struct {
    CUcontext stack[STACK_MAX];
    int len;
} thread;

static const size_t standard_limits[CU_LIMIT_MAX] = {
    [CU_LIMIT_STACK_SIZE] = 1024,
    [CU_LIMIT_PRINTF_FIFO_SIZE] = 8 << 20,
    [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
    [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
};

shim_context *shim_context_current(void)
{
    return thread.len > 0 ? shim_handle_get(SHIM_CONTEXT, thread.stack[thread.len - 1]) : NULL;
}

uint64_t shim_context_used(const shim_device *d)
{
    uint64_t total = 0;
    for (const shim_context *c = d->contexts; c != NULL; c = c->next) {
        if (c->alive) {
            uint64_t used = 0, capacity = 0;
            memory_info(c->memory, &used, &capacity);
            total += used;
        }
    }
    return total;
}

/* The device's lock is held in all of these. */
static CUresult open_context(shim_device *d, unsigned flags, shim_context **out)
{
    static uint64_t ids;
    shim_context *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    hone_status status = memory_open((uint64_t)d->gpu.facts.mem_bytes, &c->memory, NULL);
    c->handle = status == HONE_OK ? shim_handle_new(SHIM_CONTEXT, c) : NULL;
    if (c->handle == NULL) {
        memory_close(c->memory);
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory_set_budget(c->memory, shim_budget());
    c->device = d;
    c->alive = true;
    c->flags = flags;
    c->id = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < ARRAY_LEN(c->limits); i++) {
        c->limits[i] = standard_limits[i];
    }
    c->next = d->contexts;
    d->contexts = c;
    *out = c;
    return CUDA_SUCCESS;
}

static void destroy_objects(shim_context *c)
{
    while (c->objects != NULL) {
        shim_object_destroy(c->objects);
    }
}

static void close_context(shim_context *c)
{
    destroy_objects(c);
    shim_forget_writes(c);
    memory_close(c->memory);
    c->memory = NULL;
    c->alive = false;
    shim_handle_drop(c->handle);
}

/* Why a handle did not name a context. */
static CUresult no_context(void)
{
    return shim_device_count() == 0 ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult push(CUcontext handle)
{
    if (thread.len == STACK_MAX) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    thread.stack[thread.len++] = handle;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxCreate(CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
                             unsigned int flags, CUdevice dev)
{
    bool special = ctxCreateParams != NULL && (ctxCreateParams->numExecAffinityParams != 0 ||
                                               ctxCreateParams->cigParams != NULL);
    shim_device *d = NULL;
    shim_context *c = NULL;
    CUresult result = shim_lock(dev, pctx != NULL && FLAGS_KNOWN(flags), &d);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = special ? CUDA_ERROR_NOT_SUPPORTED : open_context(d, flags, &c);
    if (result == CUDA_SUCCESS && (result = push(c->handle)) != CUDA_SUCCESS) {
        close_context(c);
    }
    if (result == CUDA_SUCCESS) {
        *pctx = c->handle;
    }
    shim_unlock(d);
    return result;
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
    shim_context *c = shim_handle_get(SHIM_CONTEXT, ctx);
    if (c == NULL) {
        return no_context();
    }
    pthread_mutex_lock(&c->device->lock);
    CUresult result = c == c->device->primary ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && c->alive) {
        close_context(c);
    }
    shim_unlock(c->device);
    if (result == CUDA_SUCCESS && thread.len > 0 && thread.stack[thread.len - 1] == ctx) {
        thread.len--;
    }
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    shim_device *d = NULL;
    CUresult result = shim_lock(dev, pctx != NULL, &d);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (d->primary == NULL) {
        result = open_context(d, d->primary_flags, &d->primary);
    }
    if (result == CUDA_SUCCESS) {
        d->primary_uses++;
        *pctx = d->primary->handle;
    }
    shim_unlock(d);
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
    shim_device *d = NULL;
    CUresult result = shim_lock(dev, true, &d);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = d->primary == NULL ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
    if (d->primary != NULL && --d->primary_uses == 0) {
        close_context(d->primary);
        d->primary = NULL;
    }
    shim_unlock(d);
    return result;
}

/* Everything that the context owns is destroyed; its handle and the uses of it stay. */
static CUresult reset_context(shim_context *c)
{
    device_memory *fresh = NULL;
    hone_status status = memory_open((uint64_t)c->device->gpu.facts.mem_bytes, &fresh, NULL);
    if (status != HONE_OK) {
        return shim_result(status);
    }
    memory_set_budget(fresh, shim_budget());
    destroy_objects(c);
    shim_forget_writes(c);
    memory_close(c->memory);
    c->memory = fresh;
    c->sticky = CUDA_SUCCESS;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
    shim_device *d = NULL;
    CUresult result = shim_lock(dev, true, &d);
    if (result == CUDA_SUCCESS) {
        result = d->primary != NULL ? reset_context(d->primary) : CUDA_SUCCESS;
        shim_unlock(d);
    }
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    shim_device *d = NULL;
    CUresult result = shim_lock(dev, FLAGS_KNOWN(flags), &d);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    d->primary_flags = flags;
    if (d->primary != NULL) {
        d->primary->flags = flags;
    }
    shim_unlock(d);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    shim_device *d = NULL;
    CUresult result = shim_lock(dev, flags != NULL && active != NULL, &d);
    if (result == CUDA_SUCCESS) {
        *flags = d->primary_flags;
        *active = d->primary != NULL;
        shim_unlock(d);
    }
    return result;
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext ctx)
{
    if (shim_handle_get(SHIM_CONTEXT, ctx) == NULL) {
        return no_context();
    }
    return push(ctx);
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *pctx)
{
    if (thread.len == 0) {
        return no_context();
    }
    thread.len--;
    if (pctx != NULL) {
        *pctx = thread.stack[thread.len];
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext ctx)
{
    if (shim_device_count() == 0) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (ctx == NULL) {
        thread.len -= thread.len > 0;
        return CUDA_SUCCESS;
    }
    if (shim_handle_get(SHIM_CONTEXT, ctx) == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    thread.len -= thread.len > 0;
    return push(ctx);
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *pctx)
{
    if (shim_device_count() == 0) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (pctx == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pctx = thread.len > 0 ? thread.stack[thread.len - 1] : NULL;
    return CUDA_SUCCESS;
}
