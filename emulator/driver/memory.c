/* memory.c - device and pinned host memory of a context. */
#include "emulator/driver/shim.h"

#include <stdlib.h>

typedef struct host_block { /* pinned memory: reached by kernels at its own address */
    shim_object head;
    void *bytes;
    uint64_t size;
    unsigned flags;
    bool registered; /* the caller's own memory */
} host_block;

CUresult CUDAAPI cuMemGetInfo(size_t *free_out, size_t *total)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, free_out != NULL && total != NULL);
    if (result == CUDA_SUCCESS) {
        *total = (size_t)c->device->gpu.facts.mem_bytes;
        *free_out = *total - shim_context_used(c->device);
        shim_leave(c);
    }
    return result;
}

/* The contexts of a device share its capacity, each in an address range of its own. */
static CUresult allocate(shim_context *c, uint64_t bytes, uint64_t *address)
{
    hone_error error;
    uint64_t left = (uint64_t)c->device->gpu.facts.mem_bytes - shim_context_used(c->device);
    if (bytes > left) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return shim_result(memory_allocate(c->memory, bytes, address, &error));
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr *dptr, size_t bytesize)
{
    shim_context *c = NULL;
    uint64_t address = 0;
    CUresult result = shim_enter(&c, dptr != NULL && bytesize != 0);
    if (result == CUDA_SUCCESS) {
        result = allocate(c, bytesize, &address);
        if (result == CUDA_SUCCESS) {
            *dptr = address;
        }
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuMemFree(CUdeviceptr dptr)
{
    hone_error error = {0};
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, true);
    if (result == CUDA_SUCCESS) {
        result = dptr != 0 ? shim_result(memory_free(c->memory, dptr, &error)) : CUDA_SUCCESS;
        if (result != CUDA_SUCCESS) {
            shim_note(c->device, result, "out-of-bounds", error.message);
        }
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, true);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    const memory_range *range = memory_find(c->memory, dptr);
    if (range == NULL || range->freed) {
        result = CUDA_ERROR_NOT_FOUND;
    } else {
        if (pbase != NULL) {
            *pbase = range->begin;
        }
        if (psize != NULL) {
            *psize = range->end - range->begin;
        }
    }
    shim_leave(c);
    return result;
}

static void release_host(shim_object *self)
{
    host_block *h = (host_block *)(void *)self;
    memory_release(self->context->memory, h->bytes, NULL);
    if (!h->registered) {
        free(h->bytes);
        memory_discharge(self->context->memory, h->size);
    }
}

/* The host block that begins at `p`; NULL when there is none. */
static host_block *find_host(const shim_context *c, const void *p)
{
    for (shim_object *o = c->objects; o != NULL; o = o->next) {
        host_block *h = (host_block *)(void *)o;
        if (o->kind == SHIM_HOST && h->bytes == p) {
            return h;
        }
    }
    return NULL;
}

/* Make `bytes` known to the device; on success the block owns them unless `registered`. */
static CUresult adopt(shim_context *c, void *bytes, size_t size, unsigned flags, bool registered)
{
    hone_status status = memory_adopt(c->memory, bytes, size, NULL);
    if (status != HONE_OK) {
        return shim_result(status);
    }
    host_block *h = shim_object_new(c, SHIM_HOST, sizeof *h);
    if (h == NULL) {
        memory_release(c->memory, bytes, NULL);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    h->head.release = release_host;
    h->bytes = bytes;
    h->size = size;
    h->flags = flags;
    h->registered = registered;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    const unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    void *bytes = NULL;
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, pp != NULL && bytesize != 0 && (Flags & ~known) == 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = shim_result(memory_charge(c->memory, bytesize, NULL));
    if (result == CUDA_SUCCESS) {
        result = posix_memalign(&bytes, 4096, bytesize) == 0
                     ? adopt(c, bytes, bytesize, Flags, false)
                     : CUDA_ERROR_OUT_OF_MEMORY;
        if (result == CUDA_SUCCESS) {
            *pp = bytes;
        } else {
            free(bytes);
            memory_discharge(c->memory, bytesize);
        }
    }
    shim_leave(c);
    return result;
}

CUresult CUDAAPI cuMemAllocHost(void **pp, size_t bytesize)
{
    return cuMemHostAlloc(pp, bytesize, CU_MEMHOSTALLOC_DEVICEMAP);
}

CUresult CUDAAPI cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
    const unsigned known =
        CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, p != NULL && bytesize != 0 && (Flags & ~known) == 0);
    if (result == CUDA_SUCCESS) {
        result = adopt(c, p, bytesize, Flags, true);
        shim_leave(c);
    }
    return result == CUDA_ERROR_INVALID_VALUE && p != NULL && c != NULL
               ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
               : result;
}

/* Give back pinned memory of the kind that the call is for. */
static CUresult drop_host(void *p, bool registered, CUresult otherwise)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, p != NULL);
    if (result == CUDA_SUCCESS) {
        host_block *h = find_host(c, p);
        if (h != NULL && h->registered == registered) {
            shim_object_destroy(&h->head);
        } else {
            result = otherwise;
        }
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuMemFreeHost(void *p)
{
    return drop_host(p, false, CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemHostUnregister(void *p)
{
    return drop_host(p, true, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, pdptr != NULL && Flags == 0);
    if (result == CUDA_SUCCESS) {
        const memory_range *range = memory_find(c->memory, (uint64_t)(uintptr_t)p);
        if (range != NULL && find_host(c, (const void *)(uintptr_t)range->begin) != NULL) {
            *pdptr = (CUdeviceptr)(uintptr_t)p;
        } else {
            result = CUDA_ERROR_INVALID_VALUE;
        }
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, pFlags != NULL);
    if (result == CUDA_SUCCESS) {
        const host_block *h = find_host(c, p);
        if (h != NULL) {
            *pFlags = h->flags;
        } else {
            result = CUDA_ERROR_INVALID_VALUE;
        }
        shim_leave(c);
    }
    return result;
}
