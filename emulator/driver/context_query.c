/* context_query.c - what a context can be asked, and the settings that it keeps. */
#include "emulator/driver/shim.h"

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, device != NULL);
    if (result == CUDA_SUCCESS) {
        *device = c->device->ordinal;
        shim_leave(c);
    }
    return result;
}

/* Work is finished when its call returns; what is left to report is the fault. */
CUresult CUDAAPI cuCtxSynchronize(void)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, true);
    if (result == CUDA_SUCCESS) {
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int *flags)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, flags != NULL);
    if (result == CUDA_SUCCESS) {
        *flags = c->flags;
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuCtxSetFlags(unsigned int flags)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, (flags & ~(unsigned)CU_CTX_FLAGS_MASK) == 0);
    if (result == CUDA_SUCCESS) {
        c->flags = flags;
        shim_leave(c);
    }
    return result;
}

/* The context of a handle; NULL stands for the current one. */
static shim_context *named_context(CUcontext ctx)
{
    return ctx == NULL ? shim_context_current() : shim_handle_get(SHIM_CONTEXT, ctx);
}

CUresult CUDAAPI cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    const shim_context *c = named_context(ctx);
    if (c == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (ctxId == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ctxId = c->id;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    if (named_context(ctx) == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (version == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *version = 3020; /* the ABI that every driver since CUDA 3.2 answers */
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, pvalue != NULL);
    if (result == CUDA_SUCCESS) {
        if ((unsigned)limit < CU_LIMIT_MAX) {
            *pvalue = c->limits[limit];
        } else {
            result = CUDA_ERROR_UNSUPPORTED_LIMIT;
        }
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value)
{
    bool settable = (unsigned)limit < CU_LIMIT_MAX && limit != CU_LIMIT_SHMEM_SIZE &&
                    limit != CU_LIMIT_CIG_ENABLED;
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, true);
    if (result == CUDA_SUCCESS) {
        if (settable) {
            c->limits[limit] = value;
        }
        shim_leave(c);
    }
    return result != CUDA_SUCCESS || settable ? result : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, pconfig != NULL);
    if (result == CUDA_SUCCESS) {
        *pconfig = c->cache;
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, (unsigned)config <= CU_FUNC_CACHE_PREFER_EQUAL);
    if (result == CUDA_SUCCESS) {
        c->cache = config;
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, true);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (leastPriority != NULL) {
        *leastPriority = 0;
    }
    if (greatestPriority != NULL) {
        *greatestPriority = SHIM_PRIORITY_GREATEST;
    }
    shim_leave(c);
    return CUDA_SUCCESS;
}
