/* driver.h - the CUDA driver as one table of entry points, filled by dlopen.
 *
 * From libcuda.so.1 on a GPU machine or from the project's own libhone_emu.so; code that calls
 * `driver->cuLaunchKernel` cannot tell which. Nothing links -lcuda: such a program does not start
 * on a host without a driver. A table is immutable once open and is shared freely between threads.
 */
#ifndef HONE_RUNTIME_DRIVER_H
#define HONE_RUNTIME_DRIVER_H

#include "core/status.h"
#include "include/hone_emu.h"

#include <cuda.h>

/* Every driver call that the project makes. Adding one is one row here (and one export of the
 * emulator). */
#define DRIVER_CALLS(X)                                                                            \
    X(cuInit)                                                                                      \
    X(cuDriverGetVersion)                                                                          \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceGetUuid)                                                                             \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDeviceTotalMem)                                                                            \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuCtxGetCurrent)                                                                             \
    X(cuCtxSetCurrent)                                                                             \
    X(cuCtxSynchronize)                                                                            \
    X(cuModuleLoadDataEx)                                                                          \
    X(cuModuleUnload)                                                                              \
    X(cuModuleGetFunction)                                                                         \
    X(cuFuncGetAttribute)                                                                          \
    X(cuFuncSetAttribute)                                                                          \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                 \
    X(cuLaunchKernel)                                                                              \
    X(cuLaunchKernelEx)                                                                            \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemGetInfo)                                                                                \
    X(cuMemcpyHtoD)                                                                                \
    X(cuMemcpyDtoH)                                                                                \
    X(cuMemcpyDtoD)                                                                                \
    X(cuMemsetD8)                                                                                  \
    X(cuMemsetD32)                                                                                 \
    X(cuMemsetD8Async)                                                                             \
    X(cuStreamCreate)                                                                              \
    X(cuStreamDestroy)                                                                             \
    X(cuStreamSynchronize)                                                                         \
    X(cuStreamIsCapturing)                                                                         \
    X(cuEventCreate)                                                                               \
    X(cuEventDestroy)                                                                              \
    X(cuEventRecord)                                                                               \
    X(cuEventSynchronize)                                                                          \
    X(cuEventElapsedTime)                                                                          \
    X(cuTensorMapEncodeTiled)

typedef struct driver {
#define X(name) __typeof__(&name) name;
    DRIVER_CALLS(X)
#undef X
    void *library;           /* dlopen's handle */
    const hone_emu_api *emu; /* the emulator's extension table; NULL on a real driver */
    char path[256];          /* of the library that answered */
} driver;

/* Open libcuda.so.1 and fill the table; cuInit is called. HONE_NO_DEVICE when there is no driver or
 * no device, naming what is missing. Caller closes *out. */
hone_status driver_open_cuda(driver **out, hone_error *error);

/* Open libhone_emu.so (named by HONE_EMU_PATH, or beside this library or program, or in the
 * install's folders) as every GPU that hone describes. HONE_ENVIRONMENT when it is not found.
 * Caller closes *out. */
hone_status driver_open_emulator(driver **out, hone_error *error);

/* Gives the table back; the library stays mapped, since a captured graph or a thread may still be
 * in it. */
void driver_close(driver *d); /* NULL is fine */

/* HONE_OK for CUDA_SUCCESS; else HONE_DRIVER (or HONE_NO_MEMORY) with the call, CUresult's name and
 * text. */
hone_status driver_check(const driver *d, CUresult result, const char *call, hone_error *error);

#endif
