/* symbol.c - cuGetProcAddress: a plain name, and a CUDA version that says which of its forms
 * is meant. */
#include "emulator/driver/shim.h"

#include <string.h>

/* Name as asked for, and the CUDA version that brought the form which cuda.h gives it today. An
 * older form, where there is one, follows in a row of its own (compat.c). */
#define CALLS(X)                                                                                   \
    X(cuCtxCreate, 12050)                                                                          \
    X(cuCtxDestroy, 4000)                                                                          \
    X(cuCtxGetApiVersion, 3020)                                                                    \
    X(cuCtxGetCacheConfig, 3020)                                                                   \
    X(cuCtxGetCurrent, 4000)                                                                       \
    X(cuCtxGetDevice, 2000)                                                                        \
    X(cuCtxGetFlags, 7000)                                                                         \
    X(cuCtxGetId, 12000)                                                                           \
    X(cuCtxGetLimit, 3010)                                                                         \
    X(cuCtxGetStreamPriorityRange, 5050)                                                           \
    X(cuCtxPopCurrent, 4000)                                                                       \
    X(cuCtxPushCurrent, 4000)                                                                      \
    X(cuCtxSetCacheConfig, 3020)                                                                   \
    X(cuCtxSetCurrent, 4000)                                                                       \
    X(cuCtxSetFlags, 12010)                                                                        \
    X(cuCtxSetLimit, 3010)                                                                         \
    X(cuCtxSynchronize, 2000)                                                                      \
    X(cuDeviceCanAccessPeer, 4000)                                                                 \
    X(cuDeviceGet, 2000)                                                                           \
    X(cuDeviceGetAttribute, 2000)                                                                  \
    X(cuDeviceGetCount, 2000)                                                                      \
    X(cuDeviceGetName, 2000)                                                                       \
    X(cuDeviceGetPCIBusId, 4010)                                                                   \
    X(cuDeviceGetUuid, 11040)                                                                      \
    X(cuDevicePrimaryCtxGetState, 7000)                                                            \
    X(cuDevicePrimaryCtxRelease, 11000)                                                            \
    X(cuDevicePrimaryCtxReset, 11000)                                                              \
    X(cuDevicePrimaryCtxRetain, 7000)                                                              \
    X(cuDevicePrimaryCtxSetFlags, 11000)                                                           \
    X(cuDeviceTotalMem, 3020)                                                                      \
    X(cuDriverGetVersion, 2020)                                                                    \
    X(cuEventCreate, 2000)                                                                         \
    X(cuEventDestroy, 4000)                                                                        \
    X(cuEventElapsedTime, 12080)                                                                   \
    X(cuEventQuery, 2000)                                                                          \
    X(cuEventRecord, 2000)                                                                         \
    X(cuEventRecordWithFlags, 11010)                                                               \
    X(cuEventSynchronize, 2000)                                                                    \
    X(cuFuncGetAttribute, 2020)                                                                    \
    X(cuFuncGetModule, 11000)                                                                      \
    X(cuFuncGetName, 12030)                                                                        \
    X(cuFuncGetParamInfo, 12040)                                                                   \
    X(cuFuncIsLoaded, 12040)                                                                       \
    X(cuFuncSetAttribute, 9000)                                                                    \
    X(cuFuncSetCacheConfig, 3000)                                                                  \
    X(cuGetErrorName, 6000)                                                                        \
    X(cuGetErrorString, 6000)                                                                      \
    X(cuGetProcAddress, 12000)                                                                     \
    X(cuInit, 2000)                                                                                \
    X(cuKernelGetFunction, 12000)                                                                  \
    X(cuKernelGetName, 12030)                                                                      \
    X(cuLaunchCooperativeKernel, 9000)                                                             \
    X(cuLaunchHostFunc, 10000)                                                                     \
    X(cuLaunchKernel, 4000)                                                                        \
    X(cuLaunchKernelEx, 11060)                                                                     \
    X(cuLibraryGetGlobal, 12000)                                                                   \
    X(cuLibraryGetKernel, 12000)                                                                   \
    X(cuLibraryGetModule, 12000)                                                                   \
    X(cuLibraryLoadData, 12000)                                                                    \
    X(cuLibraryUnload, 12000)                                                                      \
    X(cuMemAlloc, 3020)                                                                            \
    X(cuMemAllocHost, 3020)                                                                        \
    X(cuMemFree, 3020)                                                                             \
    X(cuMemFreeHost, 2000)                                                                         \
    X(cuMemGetAddressRange, 3020)                                                                  \
    X(cuMemGetInfo, 3020)                                                                          \
    X(cuMemHostAlloc, 2020)                                                                        \
    X(cuMemHostGetDevicePointer, 3020)                                                             \
    X(cuMemHostGetFlags, 2030)                                                                     \
    X(cuMemHostRegister, 6050)                                                                     \
    X(cuMemHostUnregister, 4000)                                                                   \
    X(cuMemcpy, 4000)                                                                              \
    X(cuMemcpyAsync, 4000)                                                                         \
    X(cuMemcpyDtoD, 3020)                                                                          \
    X(cuMemcpyDtoDAsync, 3020)                                                                     \
    X(cuMemcpyDtoH, 3020)                                                                          \
    X(cuMemcpyDtoHAsync, 3020)                                                                     \
    X(cuMemcpyHtoD, 3020)                                                                          \
    X(cuMemcpyHtoDAsync, 3020)                                                                     \
    X(cuMemsetD16, 3020)                                                                           \
    X(cuMemsetD16Async, 3020)                                                                      \
    X(cuMemsetD32, 3020)                                                                           \
    X(cuMemsetD32Async, 3020)                                                                      \
    X(cuMemsetD8, 3020)                                                                            \
    X(cuMemsetD8Async, 3020)                                                                       \
    X(cuModuleGetFunction, 2000)                                                                   \
    X(cuModuleGetGlobal, 3020)                                                                     \
    X(cuModuleGetLoadingMode, 11070)                                                               \
    X(cuModuleLoadData, 2000)                                                                      \
    X(cuModuleLoadDataEx, 2010)                                                                    \
    X(cuModuleUnload, 2000)                                                                        \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050)                                           \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000)                                  \
    X(cuOccupancyMaxActiveClusters, 11070)                                                         \
    X(cuOccupancyMaxPotentialBlockSize, 6050)                                                      \
    X(cuOccupancyMaxPotentialBlockSizeWithFlags, 7000)                                             \
    X(cuOccupancyMaxPotentialClusterSize, 11070)                                                   \
    X(cuStreamCreate, 2000)                                                                        \
    X(cuStreamCreateWithPriority, 5050)                                                            \
    X(cuStreamDestroy, 4000)                                                                       \
    X(cuStreamGetCtx, 9020)                                                                        \
    X(cuStreamGetFlags, 5050)                                                                      \
    X(cuStreamGetPriority, 5050)                                                                   \
    X(cuStreamIsCapturing, 10000)                                                                  \
    X(cuStreamQuery, 2000)                                                                         \
    X(cuStreamSynchronize, 2000)                                                                   \
    X(cuStreamWaitEvent, 3020)                                                                     \
    X(cuTensorMapEncodeIm2col, 12000)                                                              \
    X(cuTensorMapEncodeIm2colWide, 12080)                                                          \
    X(cuTensorMapEncodeTiled, 12000)                                                               \
    X(cuTensorMapReplaceAddress, 12000)

typedef struct symbol {
    const char *name;
    void *address;
    int since;
} symbol;

/* Function pointers as data: POSIX's dlsym needs the same of the platform. */
static const symbol symbols[] = {
#define X(name, since) {#name, (void *)(name), since},
    CALLS(X)
#undef X
        {"cuCtxCreate", (void *)shim_compat_ctx_create_v3, 11040},
    {"cuCtxCreate", (void *)shim_compat_ctx_create_v2, 3020},
    {"cuDeviceGetUuid", (void *)(cuDeviceGetUuid), 9020},
    {"cuEventElapsedTime", (void *)(cuEventElapsedTime), 2000},
    {"cuGetProcAddress", (void *)shim_compat_get_proc_address, 11030},
};

CUresult CUDAAPI cuGetProcAddress(const char *symbol_name, void **pfn, int cudaVersion,
                                  cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
    const cuuint64_t both =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (symbol_name == NULL || pfn == NULL || (flags & ~both) != 0 || flags == both) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void *address = NULL;
    for (size_t i = 0; i < ARRAY_LEN(symbols) && address == NULL; i++) {
        if (strcmp(symbols[i].name, symbol_name) == 0) {
            bool enough = cudaVersion >= symbols[i].since;
            address = enough ? symbols[i].address : NULL;
            found =
                enough ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        }
    }
    *pfn = address;
    if (symbolStatus != NULL) {
        *symbolStatus = found;
        return CUDA_SUCCESS;
    }
    return address != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
