/* device.c - cuInit, and what devices there are. */
#include "emulator/driver/shim.h"

#include <stdio.h>
#include <string.h>

CUresult CUDAAPI cuInit(unsigned int Flags)
{
    return Flags == 0 ? shim_start() : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuDriverGetVersion(int *driverVersion)
{
    if (driverVersion == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *driverVersion = SHIM_VERSION;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
    if (shim_device_count() == 0) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = (int)shim_device_count();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
    shim_device *d = NULL;
    CUresult result = shim_lock(ordinal, device != NULL, &d);
    if (result == CUDA_SUCCESS) {
        *device = d->ordinal;
        shim_unlock(d);
    }
    return result;
}

/* The name says what it is, so that no modelled time passes for a measured one (emulator.md 8). */
CUresult CUDAAPI cuDeviceGetName(char *name, int len, CUdevice dev)
{
    shim_device *d = NULL;
    CUresult result = shim_lock(dev, name != NULL && len > 0, &d);
    if (result == CUDA_SUCCESS) {
        snprintf(name, (size_t)len, "hone emulator: %s", d->gpu.facts.name);
        shim_unlock(d);
    }
    return result;
}

/* The same for the same GPU at the same ordinal in every process: 64-bit FNV-1a of the slug, then
 * the ordinal. */
CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    shim_device *d = NULL;
    CUresult result = shim_lock(dev, uuid != NULL, &d);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    uint64_t words[2] = {UINT64_C(0xcbf29ce484222325), (uint64_t)d->ordinal};
    for (const char *c = d->gpu.slug; *c != '\0'; c++) {
        words[0] = (words[0] ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
    }
    memcpy(uuid->bytes, words, sizeof uuid->bytes);
    shim_unlock(d);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem(size_t *bytes, CUdevice dev)
{
    shim_device *d = NULL;
    CUresult result = shim_lock(dev, bytes != NULL, &d);
    if (result == CUDA_SUCCESS) {
        *bytes = (size_t)d->gpu.facts.mem_bytes;
        shim_unlock(d);
    }
    return result;
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    shim_device *d = NULL;
    CUresult result = shim_lock(dev, pciBusId != NULL && len > 0, &d);
    if (result == CUDA_SUCCESS) {
        snprintf(pciBusId, (size_t)len, "0000:%02X:00.0", (unsigned)d->ordinal + 1);
        shim_unlock(d);
    }
    return result;
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    shim_device *d = NULL;
    CUresult result = shim_lock(dev, canAccessPeer != NULL, &d);
    if (result == CUDA_SUCCESS) {
        shim_unlock(d);
        result = shim_lock(peerDev, true, &d);
    }
    if (result == CUDA_SUCCESS) {
        shim_unlock(d);
        *canAccessPeer = 0;
    }
    return result;
}
