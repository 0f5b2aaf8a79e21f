/* compat.c - older forms of calls, under the names that older programs look for.
 *
 * cuda.h declares them only to whoever builds a driver, and then renames nothing: here names mean
 * themselves. */
#define __CUDA_API_VERSION_INTERNAL
#include "emulator/driver/shim.h"

CUresult shim_compat_ctx_create_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    return cuCtxCreate_v4(context, NULL, flags, device);
}

CUresult shim_compat_ctx_create_v3(CUcontext *context, CUexecAffinityParam *params, int params_len,
                                   unsigned flags, CUdevice device)
{
    CUctxCreateParams create = {.execAffinityParams = params, .numExecAffinityParams = params_len};
    return cuCtxCreate_v4(context, &create, flags, device);
}

CUresult shim_compat_get_proc_address(const char *symbol, void **pfn, int cudaVersion,
                                      cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return shim_compat_ctx_create_v2(pctx, flags, dev);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                                unsigned int flags, CUdevice dev)
{
    return shim_compat_ctx_create_v3(pctx, paramsArray, numParams, flags, dev);
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    return cuDeviceGetUuid_v2(uuid, dev);
}

CUresult CUDAAPI cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    return shim_compat_get_proc_address(symbol, pfn, cudaVersion, flags);
}
