/* shim_driver.h - libhone_emu.so as a program loads it: by name, and through nothing but its
 * exports. */
#ifndef HONE_TESTS_SHIM_DRIVER_H
#define HONE_TESTS_SHIM_DRIVER_H

#include "include/hone_emu.h"

#include <check.h>
#include <cuda.h>

#define SHIM_DRIVER_CALLS(X)                                                                       \
    X(cuInit)                                                                                      \
    X(cuDriverGetVersion)                                                                          \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuGetProcAddress)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceGetUuid)                                                                             \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDeviceGetPCIBusId)                                                                         \
    X(cuDeviceCanAccessPeer)                                                                       \
    X(cuDeviceTotalMem)                                                                            \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuDevicePrimaryCtxReset)                                                                     \
    X(cuDevicePrimaryCtxGetState)                                                                  \
    X(cuDevicePrimaryCtxSetFlags)                                                                  \
    X(cuCtxCreate)                                                                                 \
    X(cuCtxDestroy)                                                                                \
    X(cuCtxPushCurrent)                                                                            \
    X(cuCtxPopCurrent)                                                                             \
    X(cuCtxSetCurrent)                                                                             \
    X(cuCtxGetCurrent)                                                                             \
    X(cuCtxGetDevice)                                                                              \
    X(cuCtxGetFlags)                                                                               \
    X(cuCtxSetFlags)                                                                               \
    X(cuCtxGetId)                                                                                  \
    X(cuCtxGetApiVersion)                                                                          \
    X(cuCtxGetLimit)                                                                               \
    X(cuCtxSetLimit)                                                                               \
    X(cuCtxGetCacheConfig)                                                                         \
    X(cuCtxSetCacheConfig)                                                                         \
    X(cuCtxGetStreamPriorityRange)                                                                 \
    X(cuCtxSynchronize)                                                                            \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleLoadDataEx)                                                                          \
    X(cuModuleUnload)                                                                              \
    X(cuModuleGetFunction)                                                                         \
    X(cuModuleGetGlobal)                                                                           \
    X(cuLibraryLoadData)                                                                           \
    X(cuLibraryUnload)                                                                             \
    X(cuLibraryGetKernel)                                                                          \
    X(cuLibraryGetModule)                                                                          \
    X(cuLibraryGetGlobal)                                                                          \
    X(cuKernelGetFunction)                                                                         \
    X(cuKernelGetName)                                                                             \
    X(cuFuncGetAttribute)                                                                          \
    X(cuFuncSetAttribute)                                                                          \
    X(cuFuncGetModule)                                                                             \
    X(cuFuncGetName)                                                                               \
    X(cuFuncGetParamInfo)                                                                          \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                 \
    X(cuOccupancyMaxPotentialBlockSize)                                                            \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemGetInfo)                                                                                \
    X(cuMemGetAddressRange)                                                                        \
    X(cuMemAllocHost)                                                                              \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemFreeHost)                                                                               \
    X(cuMemHostRegister)                                                                           \
    X(cuMemHostUnregister)                                                                         \
    X(cuMemHostGetDevicePointer)                                                                   \
    X(cuMemHostGetFlags)                                                                           \
    X(cuMemcpy)                                                                                    \
    X(cuMemcpyHtoD)                                                                                \
    X(cuMemcpyDtoH)                                                                                \
    X(cuMemcpyDtoD)                                                                                \
    X(cuMemcpyHtoDAsync)                                                                           \
    X(cuMemcpyDtoHAsync)                                                                           \
    X(cuMemcpyDtoDAsync)                                                                           \
    X(cuMemsetD8)                                                                                  \
    X(cuMemsetD16)                                                                                 \
    X(cuMemsetD32)                                                                                 \
    X(cuMemsetD32Async)                                                                            \
    X(cuStreamCreate)                                                                              \
    X(cuStreamCreateWithPriority)                                                                  \
    X(cuStreamDestroy)                                                                             \
    X(cuStreamSynchronize)                                                                         \
    X(cuStreamQuery)                                                                               \
    X(cuStreamGetPriority)                                                                         \
    X(cuStreamGetFlags)                                                                            \
    X(cuStreamGetCtx)                                                                              \
    X(cuStreamIsCapturing)                                                                         \
    X(cuStreamWaitEvent)                                                                           \
    X(cuLaunchHostFunc)                                                                            \
    X(cuEventCreate)                                                                               \
    X(cuEventDestroy)                                                                              \
    X(cuEventRecord)                                                                               \
    X(cuEventSynchronize)                                                                          \
    X(cuEventQuery)                                                                                \
    X(cuEventElapsedTime)                                                                          \
    X(cuLaunchKernel)                                                                              \
    X(cuLaunchKernelEx)                                                                            \
    X(cuLaunchCooperativeKernel)                                                                   \
    X(cuOccupancyMaxActiveClusters)                                                                \
    X(cuOccupancyMaxPotentialClusterSize)                                                          \
    X(cuTensorMapEncodeTiled)                                                                      \
    X(cuTensorMapEncodeIm2col)                                                                     \
    X(cuTensorMapEncodeIm2colWide)                                                                 \
    X(cuTensorMapReplaceAddress)

typedef struct shim_driver {
#define X(name) __typeof__(&name) name;
    SHIM_DRIVER_CALLS(X)
#undef X
    void *library;
    const hone_emu_api *emu;
} shim_driver;

/* Two steps, so that cuda.h's renaming comes first. */
#define SHIM_DRIVER_SYMBOL(name) SHIM_DRIVER_TEXT(name)
#define SHIM_DRIVER_TEXT(name)   #name

/* The library, loaded into this process (a test's own: Check forks). Fails the test when a name is
 * missing. */
void shim_driver_load(shim_driver *out);

/* Loaded, as the GPUs named (comma-separated slugs), initialised, with device 0's primary context
 * current. */
void shim_driver_start(shim_driver *out, const char *slugs);

/* Each claim on a result names the call and what the driver calls the result. */
#define SHIM_OK(d, call)              SHIM_GIVES(d, CUDA_SUCCESS, call)
#define SHIM_GIVES(d, expected, call) shim_driver_claim(d, expected, (d)->call, #call, __LINE__)
void shim_driver_claim(const shim_driver *d, CUresult expected, CUresult result, const char *call,
                       int line);

/* The function of that name in PTX text, which must load; its text is shown when it does not. */
CUfunction shim_driver_function(const shim_driver *d, const char *ptx, const char *name);

/* add(a, b, c, n): c[i] = a[i] + b[i] for i < n. */
extern const char shim_add_ptx[];
/* tail(p, offset): writes 7 at that offset of dynamic shared memory and copies it to *p; at most 64
 * threads. A global variable `answer` is 42. */
extern const char shim_tail_ptx[];

/* Arguments of `add` as they lie in a parameter buffer: a[i] = i, b[i] = 2 i, c without a value. */
enum { SHIM_VECTOR_LEN = 1000 };
typedef struct shim_vectors {
    CUdeviceptr a, b, c;
    uint32_t n;
} shim_vectors;
shim_vectors shim_vectors_make(const shim_driver *d);
void shim_vectors_check(const shim_driver *d, const shim_vectors *v); /* c[i] is 3 i */

#endif
