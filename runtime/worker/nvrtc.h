/* nvrtc.h - the NVRTC library, found and opened by the worker alone. */
#ifndef HONE_RUNTIME_WORKER_NVRTC_H
#define HONE_RUNTIME_WORKER_NVRTC_H

#include "runtime/wire.h"

#include <nvrtc.h>

#define NVRTC_CALLS(X)                                                                             \
    X(nvrtcVersion)                                                                                \
    X(nvrtcGetErrorString)                                                                         \
    X(nvrtcCreateProgram)                                                                          \
    X(nvrtcDestroyProgram)                                                                         \
    X(nvrtcAddNameExpression)                                                                      \
    X(nvrtcCompileProgram)                                                                         \
    X(nvrtcGetProgramLogSize)                                                                      \
    X(nvrtcGetProgramLog)                                                                          \
    X(nvrtcGetPTXSize)                                                                             \
    X(nvrtcGetPTX)                                                                                 \
    X(nvrtcGetCUBINSize)                                                                           \
    X(nvrtcGetCUBIN)                                                                               \
    X(nvrtcGetLoweredName)

typedef struct nvrtc {
#define X(name) __typeof__(&name) name;
    NVRTC_CALLS(X)
#undef X
    int version;      /* major * 1000 + minor * 10 */
    char path[256];   /* of the library */
    char folder[256]; /* that it lies in */
    char build[96];   /* its build id in hex */
} nvrtc;

/* Look in HONE_CUDA_PATH and CUDA_HOME (toolkits or vendor wheels), then where the loader does,
 * then in a toolkit's usual places. `why` (256 bytes) says what was missing. */
bool nvrtc_open(nvrtc *out, char *why);

/* Compile a WIRE_COMPILE message and write the WIRE_ANSWER. False when the message is malformed. */
bool nvrtc_answer(const nvrtc *n, wire_reader *request, wire_writer *answer);

#endif
