/* error.c - names and texts of CUresult. */
#include "emulator/driver/shim.h"

/* value without its CUDA_ prefix, text */
#define ERRORS(X)                                                                                  \
    X(SUCCESS, "no error")                                                                         \
    X(ERROR_INVALID_VALUE, "invalid argument")                                                     \
    X(ERROR_OUT_OF_MEMORY, "out of memory")                                                        \
    X(ERROR_NOT_INITIALIZED, "initialization error")                                               \
    X(ERROR_DEINITIALIZED, "driver shutting down")                                                 \
    X(ERROR_STUB_LIBRARY, "CUDA driver is a stub library")                                         \
    X(ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable")               \
    X(ERROR_NO_DEVICE, "no CUDA-capable device is detected")                                       \
    X(ERROR_INVALID_DEVICE, "invalid device ordinal")                                              \
    X(ERROR_INVALID_IMAGE, "device kernel image is invalid")                                       \
    X(ERROR_INVALID_CONTEXT, "invalid device context")                                             \
    X(ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device")         \
    X(ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered")                              \
    X(ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture")                      \
    X(ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices")     \
    X(ERROR_INVALID_PTX, "a PTX JIT compilation failed")                                           \
    X(ERROR_UNSUPPORTED_PTX_VERSION,                                                               \
      "the provided PTX was compiled with an unsupported toolchain.")                              \
    X(ERROR_INVALID_SOURCE, "device kernel image is invalid")                                      \
    X(ERROR_FILE_NOT_FOUND, "file not found")                                                      \
    X(ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS")              \
    X(ERROR_INVALID_HANDLE, "invalid resource handle")                                             \
    X(ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state")               \
    X(ERROR_NOT_FOUND, "named symbol not found")                                                   \
    X(ERROR_NOT_READY, "device not ready")                                                         \
    X(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")                           \
    X(ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch")                    \
    X(ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated")                             \
    X(ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active in this process")           \
    X(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed")                                          \
    X(ERROR_ASSERT, "device-side assert triggered")                                                \
    X(ERROR_HOST_MEMORY_ALREADY_REGISTERED,                                                        \
      "part or all of the requested memory range is already mapped")                               \
    X(ERROR_HOST_MEMORY_NOT_REGISTERED,                                                            \
      "pointer does not correspond to a registered memory region")                                 \
    X(ERROR_HARDWARE_STACK_ERROR, "hardware stack error")                                          \
    X(ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered")                         \
    X(ERROR_MISALIGNED_ADDRESS, "misaligned address")                                              \
    X(ERROR_INVALID_ADDRESS_SPACE, "operation not supported on global/shared address space")       \
    X(ERROR_INVALID_PC, "invalid program counter")                                                 \
    X(ERROR_LAUNCH_FAILED, "unspecified launch failure")                                           \
    X(ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch")                 \
    X(ERROR_NOT_PERMITTED, "operation not permitted")                                              \
    X(ERROR_NOT_SUPPORTED, "operation not supported")                                              \
    X(ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing")        \
    X(ERROR_TIMEOUT, "wait operation timed out")                                                   \
    X(ERROR_INVALID_CLUSTER_SIZE, "invalid cluster size")                                          \
    X(ERROR_FUNCTION_NOT_LOADED, "function not loaded")                                            \
    X(ERROR_UNKNOWN, "unknown error")

static const struct {
    CUresult value;
    const char *name, *text;
} errors[] = {
#define X(name, text) {CUDA_##name, "CUDA_" #name, text},
    ERRORS(X)
#undef X
};

/* The row of a value, or its length when there is none. */
static size_t find_error(CUresult error)
{
    size_t i = 0;
    while (i < ARRAY_LEN(errors) && errors[i].value != error) {
        i++;
    }
    return i;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **pStr)
{
    size_t i = find_error(error);
    if (pStr == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pStr = i < ARRAY_LEN(errors) ? errors[i].name : NULL;
    return *pStr != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char **pStr)
{
    size_t i = find_error(error);
    if (pStr == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pStr = i < ARRAY_LEN(errors) ? errors[i].text : NULL;
    return *pStr != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
