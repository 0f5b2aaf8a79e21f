/* result.c - names and texts of CUptiResult. */
#include "emulator/cupti/state.h"

/* name without CUPTI_, text */
#define RESULTS(X)                                                                                 \
    X(SUCCESS, "no error")                                                                         \
    X(ERROR_INVALID_PARAMETER, "an argument is not valid")                                         \
    X(ERROR_INVALID_DEVICE, "no such device")                                                      \
    X(ERROR_INVALID_CONTEXT, "no such context")                                                    \
    X(ERROR_INVALID_OPERATION, "not possible now: another call must come first")                   \
    X(ERROR_OUT_OF_MEMORY, "out of memory")                                                        \
    X(ERROR_HARDWARE, "the counters failed")                                                       \
    X(ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, "the space given is too small")                         \
    X(ERROR_API_NOT_IMPLEMENTED, "not implemented")                                                \
    X(ERROR_MAX_LIMIT_REACHED, "there is no more")                                                 \
    X(ERROR_NOT_READY, "not ready yet")                                                            \
    X(ERROR_NOT_COMPATIBLE, "does not go together with what is enabled")                           \
    X(ERROR_NOT_INITIALIZED, "no connection to the driver")                                        \
    X(ERROR_QUEUE_EMPTY, "the queue is empty")                                                     \
    X(ERROR_INVALID_HANDLE, "no such handle")                                                      \
    X(ERROR_INVALID_STREAM, "no such stream")                                                      \
    X(ERROR_INVALID_KIND, "no such kind of record, or one that is not complete")                   \
    X(ERROR_DISABLED, "disabled, for another profiler is in the way")                              \
    X(ERROR_HARDWARE_BUSY, "the counters are in use")                                              \
    X(ERROR_NOT_SUPPORTED, "not supported on this device")                                         \
    X(ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "not supported on a virtual GPU")                    \
    X(ERROR_INSUFFICIENT_PRIVILEGES, "the user may not profile")                                   \
    X(ERROR_LEGACY_PROFILER_NOT_SUPPORTED, "the old profiler is not supported")                    \
    X(ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "somebody else has subscribed")                    \
    X(ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, "the virtual GPU may not be profiled")     \
    X(ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, "not supported in confidential computing")       \
    X(ERROR_CMP_DEVICE_NOT_SUPPORTED, "not supported on a mining GPU")                             \
    X(ERROR_MIG_DEVICE_NOT_SUPPORTED, "not supported on a part of a GPU")                          \
    X(ERROR_SLI_DEVICE_NOT_SUPPORTED, "not supported on coupled GPUs")                             \
    X(ERROR_WSL_DEVICE_NOT_SUPPORTED, "not supported under WSL")                                   \
    X(ERROR_UNKNOWN, "unknown error")

static const struct {
    CUptiResult value;
    const char *name, *text;
} results[] = {
#define X(name, text) {CUPTI_##name, "CUPTI_" #name, text},
    RESULTS(X)
#undef X
};

/* Its row, or how many there are. */
static size_t find_result(CUptiResult result)
{
    size_t i = 0;
    while (i < ARRAY_LEN(results) && results[i].value != result) {
        i++;
    }
    return i;
}

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char **str)
{
    size_t i = find_result(result);
    if (str == NULL || i == ARRAY_LEN(results)) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    *str = results[i].name;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetErrorMessage(CUptiResult result, const char **str)
{
    size_t i = find_result(result);
    if (str == NULL || i == ARRAY_LEN(results)) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    *str = results[i].text;
    return CUPTI_SUCCESS;
}
