/* launch.c - a launch: the driver's checks, the run, its modelled time, and what a fault
 * leaves behind. */
#include "emulator/cupti/record.h"
#include "emulator/driver/shim.h"

#include "models/perf.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { PARAMS_MAX = 32768 }; /* bytes of parameters that any arch takes */

/* .reqntid: the block has just this shape. */
static bool is_required_block(const shim_function *f, const CUlaunchConfig *config)
{
    const uint32_t *required = f->facts.required_threads;

    return required[0] == 0 ||
           (config->blockDimX == required[0] && config->blockDimY == required[1] &&
            config->blockDimZ == required[2]);
}

/* Shape of a launch against the limits of the device and of the function. */
static CUresult check_shape(const shim_function *f, const CUlaunchConfig *config)
{
    const gpu *g = &f->head.context->device->gpu;
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    bool grid = config->gridDimX >= 1 && config->gridDimX <= INT_MAX && config->gridDimY >= 1 &&
                config->gridDimY <= SHIM_GRID_YZ && config->gridDimZ >= 1 &&
                config->gridDimZ <= SHIM_GRID_YZ;
    bool block = config->blockDimX <= SHIM_DIM_XY && config->blockDimY <= SHIM_DIM_XY &&
                 config->blockDimZ <= SHIM_DIM_Z && threads >= 1 &&
                 threads <= f->facts.max_threads && is_required_block(f, config);
    if (!grid || !block || config->sharedMemBytes > (unsigned)f->dynamic_limit) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return shim_occupancy(g, f, (int)threads, config->sharedMemBytes) > 0
               ? CUDA_SUCCESS
               : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

/* A cooperative launch runs all of its CTAs at once. */
static CUresult check_resident(const shim_function *f, const CUlaunchConfig *config,
                               const shim_attributes *a, int *resident)
{
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    uint64_t ctas = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ;
    unsigned size = a->clustered ? a->cluster[0] * a->cluster[1] * a->cluster[2] : 1;

    *resident = shim_occupancy_clusters(f, (int)threads, config->sharedMemBytes, size);
    return a->cooperative && ctas / size > (uint64_t)*resident
               ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
               : CUDA_SUCCESS;
}

/* Parameters as one buffer, from CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE. */
static CUresult params_from_extra(const shim_function *f, void **extra, uint8_t *params)
{
    const void *buffer = NULL;
    const size_t *size = NULL;
    for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = extra[i + 1];
        } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            size = extra[i + 1];
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    uint32_t end =
        0; /* of the last parameter: a caller's buffer need not hold the padding behind it */
    if (f->facts.params_len > 0) {
        end = f->facts.param_offset[f->facts.params_len - 1] +
              f->facts.param_bytes[f->facts.params_len - 1];
    }
    if (size == NULL || (buffer == NULL && *size != 0) || *size < end || *size > PARAMS_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(params, buffer, end);
    return CUDA_SUCCESS;
}

/* Lay the parameters out in `params` (PARAMS_MAX bytes), from either of the two forms. */
static CUresult gather_params(const shim_function *f, void **pointers, void **extra,
                              uint8_t *params)
{
    if (pointers != NULL && extra != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (extra != NULL) {
        return params_from_extra(f, extra, params);
    }
    if (pointers == NULL && f->facts.params_len != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (uint32_t i = 0; i < f->facts.params_len; i++) {
        if (pointers[i] == NULL) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        memcpy(params + f->facts.param_offset[i], pointers[i], f->facts.param_bytes[i]);
    }
    return CUDA_SUCCESS;
}

/* Work of the whole grid, scaled from the CTAs that ran; what they share is not known. */
static perf_work work_of(const shim_function *f, const CUlaunchConfig *config,
                         const hone_emu_counters *n)
{
    double scale = n->ctas_run != 0 ? (double)n->ctas_total / (double)n->ctas_run : 0;
    perf_work work = {
        .threads = config->blockDimX * config->blockDimY * config->blockDimZ,
        .registers = f->resources.registers,
        .shared_bytes = (int32_t)(f->facts.static_shared_bytes + config->sharedMemBytes),
        .stages = 1,
    };

    perf_count(n, scale, &work);
    work.dram_bytes *= scale;
    return work;
}

static void advance_clock(const shim_function *f, const CUlaunchConfig *config,
                          const hone_emu_counters *counters)
{
    shim_device *d = f->head.context->device;
    perf_work work = work_of(f, config, counters);
    perf_answer answer;
    hone_status status = perf_predict(&d->gpu, &work, &answer, NULL);
    d->clock_ns += status == HONE_OK ? answer.ns : d->gpu.launch_ns;
}

/* Keep the fault and, where the hardware's context would be lost, make it stick. */
static CUresult fail_launch(shim_function *f, CUresult result)
{
    shim_context *c = f->head.context;
    hone_emu_fault *fault = &c->device->fault;
    fault->result = (int32_t)result;
    if (fault->kernel[0] == '\0') {
        snprintf(fault->kernel, sizeof fault->kernel, "%s", f->facts.name);
    }
    if (shim_result_sticks(result)) {
        c->sticky = result;
    }
    return result;
}

static CUresult run(shim_function *f, const CUlaunchConfig *config, const shim_attributes *a,
                    int resident, const uint8_t *params)
{
    shim_context *c = f->head.context;
    shim_device *d = c->device;
    hone_error error = {0};
    hone_emu_fault fault = {.warp = -1, .lane = -1};
    machine_writes written = {.len = 0};
    const machine_launch launch = {
        .before = a->overlaps && c->written_on == config->hStream ? &c->written : NULL,
        .written = &written,
        .kernel = f->kernel,
        .memory = c->memory,
        .params = params,
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .cluster = {a->cluster[0], a->cluster[1], a->cluster[2]},
        .cooperative = a->cooperative,
        .resident = (uint64_t)resident,
        .registers = f->resources.registers,
        .dynamic_shared_bytes = config->sharedMemBytes,
        .arch = d->gpu.facts.arch,
        .sm_count = d->gpu.facts.sm_count,
        .arithmetic = d->arithmetic,
        .schedule_seed = d->seed,
        .checks = d->checks,
        .timing = d->timing,
        .threads = d->threads,
        .sample = d->sample_len != 0 ? d->sample : NULL,
        .sample_len = d->sample_len,
        .profile = d->profiles ? &d->profile : NULL,
        .estimate = &d->estimate,
        .places = &d->places,
    };
    memset(&d->counters, 0, sizeof d->counters);
    memset(&d->estimate, 0, sizeof d->estimate);
    machine_profile_free(&d->profile);
    free(d->places);
    d->places = NULL;
    hone_status status = machine_run(&launch, &d->counters, &fault, &error);
    shim_forget_writes(c);
    c->written = written;
    c->written_on = config->hStream;
    if (status == HONE_OK) {
        double begin_ns = d->clock_ns;
        advance_clock(f, config, &d->counters);
        cupti_kernel(f, config, begin_ns);
        shim_event_record(c, a->event);
        return CUDA_SUCCESS;
    }
    CUresult result = (CUresult)fault.result;
    if (result == CUDA_SUCCESS) { /* not the kernel's fault: the emulator could not run it */
        result = shim_result(status) == CUDA_ERROR_UNKNOWN ? CUDA_ERROR_LAUNCH_FAILED
                                                           : shim_result(status);
        snprintf(fault.kind, sizeof fault.kind, "unsupported");
        snprintf(fault.message, sizeof fault.message, "%.383s", error.message);
    }
    d->fault = fault;
    return fail_launch(f, result);
}

/* A fault that the tuner's tests asked for, by number or by kernel. */
static CUresult injected_fault(shim_function *f, bool *skip)
{
    shim_device *d = f->head.context->device;
    CUresult result = CUDA_SUCCESS;

    d->launches++;
    if (d->fault_result != CUDA_SUCCESS && d->launches >= d->fault_from) {
        shim_note(d, d->fault_result, "injected", "asked for by hone_emu_api.set_launch_fault");
        return fail_launch(f, d->fault_result);
    }
    result = shim_fault_of_kernel(f, skip);
    return shim_result_sticks(result) ? fail_launch(f, result) : result;
}

static CUresult launch(shim_context *c, const CUlaunchConfig *config, CUfunction handle,
                       void **params, void **extra)
{
    _Alignas(16) uint8_t bytes[PARAMS_MAX];
    shim_function *f = NULL;
    shim_attributes a;
    int resident = 0;
    CUresult result = shim_function_of(c, handle, &f);
    if (result == CUDA_SUCCESS && !shim_stream_valid(c, config->hStream)) {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    result = result == CUDA_SUCCESS ? shim_attributes_read(f, config, &a) : result;
    result = result == CUDA_SUCCESS ? check_shape(f, config) : result;
    result = result == CUDA_SUCCESS ? shim_cluster_check(f, config, &a) : result;
    result = result == CUDA_SUCCESS ? check_resident(f, config, &a, &resident) : result;
    result = result == CUDA_SUCCESS ? gather_params(f, params, extra, bytes) : result;
    bool skip = false;
    result = result == CUDA_SUCCESS ? injected_fault(f, &skip) : result;
    return result == CUDA_SUCCESS && !skip ? run(f, config, &a, resident, bytes) : result;
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                                  void **extra)
{
    shim_context *c = NULL;
    bool arguments = config != NULL && (config->numAttrs == 0 || config->attrs != NULL);
    CUresult result = shim_enter_aside(&c, arguments);
    if (result == CUDA_SUCCESS) {
        result = launch(c, config, f, kernelParams, extra);
        shim_leave(c);
    }
    return result;
}

/* The launch that the calls with plain arguments mean. */
#define PLAIN_CONFIG(...)                                                                          \
    {                                                                                              \
        .gridDimX = gridDimX, .gridDimY = gridDimY, .gridDimZ = gridDimZ, .blockDimX = blockDimX,  \
        .blockDimY = blockDimY, .blockDimZ = blockDimZ, .sharedMemBytes = sharedMemBytes,          \
        .hStream = hStream, __VA_ARGS__                                                            \
    }

CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                unsigned int gridDimZ, unsigned int blockDimX,
                                unsigned int blockDimY, unsigned int blockDimZ,
                                unsigned int sharedMemBytes, CUstream hStream, void **kernelParams,
                                void **extra)
{
    const CUlaunchConfig config = PLAIN_CONFIG(.numAttrs = 0);

    return cuLaunchKernelEx(&config, f, kernelParams, extra);
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX,
                                           unsigned int gridDimY, unsigned int gridDimZ,
                                           unsigned int blockDimX, unsigned int blockDimY,
                                           unsigned int blockDimZ, unsigned int sharedMemBytes,
                                           CUstream hStream, void **kernelParams)
{
    CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    const CUlaunchConfig config = PLAIN_CONFIG(.attrs = &cooperative, .numAttrs = 1);

    return cuLaunchKernelEx(&config, f, kernelParams, NULL);
}

SHIM_ALIAS(cuLaunchKernel, _ptsz);
SHIM_ALIAS(cuLaunchCooperativeKernel, _ptsz);
SHIM_ALIAS(cuLaunchKernelEx, _ptsz);
