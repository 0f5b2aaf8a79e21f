/* copy.c - copies and fills. An asynchronous one is done when it returns, as the API permits.
 */
#include "emulator/cupti/record.h"
#include "emulator/driver/shim.h"

#include <string.h>

/* End a copy: a range that the device does not have is the caller's error, and its reason is kept.
 */
static CUresult finish(shim_context *c, hone_status status, const hone_error *error)
{
    CUresult result = shim_result(status);
    if (result != CUDA_SUCCESS) {
        shim_note(c->device, result, "out-of-bounds", error->message);
    }
    shim_leave(c);
    return result;
}

/* A copy for the activity API's record. */
typedef struct transfer {
    CUstream stream;
    cupti_direction direction;
    size_t bytes;
    double begin_ns;
} transfer;

static CUresult finish_copy(shim_context *c, const transfer *t, hone_status status,
                            const hone_error *error)
{
    if (status == HONE_OK) {
        cupti_copy(c, t->stream, t->direction, t->bytes, t->begin_ns);
    }
    return finish(c, status, error);
}

/* Advance the model's clock by DRAM traffic. The host's link is not modelled: its copies take no
 * time. */
static void move_bytes(shim_context *c, double bytes)
{
    double rate = (double)c->device->gpu.facts.mem_bytes_per_s;
    if (rate > 0) {
        c->device->clock_ns += bytes / rate * 1e9;
    }
}

/* Enter for work on a stream. */
static CUresult enter_stream(shim_context **c, CUstream stream, bool arguments)
{
    CUresult result = shim_enter(c, arguments);
    if (result == CUDA_SUCCESS && !shim_stream_valid(*c, stream)) {
        shim_leave(*c);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return result;
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                                   CUstream hStream)
{
    hone_error error = {0};
    shim_context *c = NULL;
    CUresult result = enter_stream(&c, hStream, srcHost != NULL || ByteCount == 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    const transfer made = {hStream, CUPTI_TO_DEVICE, ByteCount, c->device->clock_ns};
    hone_status status = memory_write(c->memory, dstDevice, srcHost, ByteCount, &error);
    return finish_copy(c, &made, status, &error);
}

CUresult CUDAAPI cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                   CUstream hStream)
{
    hone_error error = {0};
    shim_context *c = NULL;
    CUresult result = enter_stream(&c, hStream, dstHost != NULL || ByteCount == 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    const transfer made = {hStream, CUPTI_TO_HOST, ByteCount, c->device->clock_ns};
    hone_status status = memory_read(c->memory, srcDevice, dstHost, ByteCount, &error);
    return finish_copy(c, &made, status, &error);
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                   CUstream hStream)
{
    hone_error error = {0};
    shim_context *c = NULL;
    CUresult result = enter_stream(&c, hStream, true);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    const transfer made = {hStream, CUPTI_ON_DEVICE, ByteCount, c->device->clock_ns};
    move_bytes(c, 2.0 * (double)ByteCount);
    hone_status status = memory_copy(c->memory, dstDevice, srcDevice, ByteCount, &error);
    return finish_copy(c, &made, status, &error);
}

/* Addresses of host and device never overlap, so that each side is what the table says. */
static cupti_direction direction_of(const shim_context *c, uint64_t to, uint64_t from)
{
    bool to_device = memory_find(c->memory, to) != NULL;
    bool from_device = memory_find(c->memory, from) != NULL;
    if (to_device) {
        return from_device ? CUPTI_ON_DEVICE : CUPTI_TO_DEVICE;
    }
    return from_device ? CUPTI_TO_HOST : CUPTI_ON_HOST;
}

static hone_status copy_any(shim_context *c, CUdeviceptr to, CUdeviceptr from, const transfer *t,
                            hone_error *error)
{
    switch (t->direction) {
    case CUPTI_ON_DEVICE:
        return memory_copy(c->memory, to, from, t->bytes, error);
    case CUPTI_TO_DEVICE:
        return memory_write(c->memory, to, (const void *)(uintptr_t)from, t->bytes, error);
    case CUPTI_TO_HOST:
        return memory_read(c->memory, from, (void *)(uintptr_t)to, t->bytes, error);
    case CUPTI_ON_HOST:
        break;
    }
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, t->bytes);
    return HONE_OK;
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    hone_error error = {0};
    shim_context *c = NULL;
    CUresult result = enter_stream(&c, hStream, (dst != 0 && src != 0) || ByteCount == 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    const transfer made = {hStream, direction_of(c, dst, src), ByteCount, c->device->clock_ns};
    hone_status status = copy_any(c, dst, src, &made, &error);
    return finish_copy(c, &made, status, &error);
}

static CUresult fill(CUdeviceptr to, uint32_t value, uint32_t width, size_t count, CUstream stream)
{
    hone_error error = {0};
    shim_context *c = NULL;
    CUresult result = enter_stream(&c, stream, true);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    double begin_ns = c->device->clock_ns;
    move_bytes(c, (double)count * width);
    hone_status status = memory_fill(c->memory, to, value, width, count, &error);
    if (status == HONE_OK) {
        cupti_fill(c, stream, value, (uint64_t)count * width, begin_ns);
    }
    return finish(c, status, &error);
}

CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    return cuMemcpyHtoDAsync(dstDevice, srcHost, ByteCount, NULL);
}

CUresult CUDAAPI cuMemcpyDtoH(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    return cuMemcpyDtoHAsync(dstHost, srcDevice, ByteCount, NULL);
}

CUresult CUDAAPI cuMemcpyDtoD(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    return cuMemcpyDtoDAsync(dstDevice, srcDevice, ByteCount, NULL);
}

CUresult CUDAAPI cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return cuMemcpyAsync(dst, src, ByteCount, NULL);
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N,
                                 CUstream hStream)
{
    return fill(dstDevice, uc, 1, N, hStream);
}

CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N,
                                  CUstream hStream)
{
    return fill(dstDevice, us, 2, N, hStream);
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N,
                                  CUstream hStream)
{
    return fill(dstDevice, ui, 4, N, hStream);
}

CUresult CUDAAPI cuMemsetD8(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    return fill(dstDevice, uc, 1, N, NULL);
}

CUresult CUDAAPI cuMemsetD16(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
    return fill(dstDevice, us, 2, N, NULL);
}

CUresult CUDAAPI cuMemsetD32(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
    return fill(dstDevice, ui, 4, N, NULL);
}

SHIM_ALIAS(cuMemcpyHtoD, _ptds);
SHIM_ALIAS(cuMemcpyDtoH, _ptds);
SHIM_ALIAS(cuMemcpyDtoD, _ptds);
SHIM_ALIAS(cuMemcpy, _ptds);
SHIM_ALIAS(cuMemsetD8, _ptds);
SHIM_ALIAS(cuMemsetD16, _ptds);
SHIM_ALIAS(cuMemsetD32, _ptds);
SHIM_ALIAS(cuMemcpyHtoDAsync, _ptsz);
SHIM_ALIAS(cuMemcpyDtoHAsync, _ptsz);
SHIM_ALIAS(cuMemcpyDtoDAsync, _ptsz);
SHIM_ALIAS(cuMemcpyAsync, _ptsz);
SHIM_ALIAS(cuMemsetD8Async, _ptsz);
SHIM_ALIAS(cuMemsetD16Async, _ptsz);
SHIM_ALIAS(cuMemsetD32Async, _ptsz);
