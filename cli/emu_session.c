/* emu_session.c - a kernel on an emulated device: its memory, its arguments, one launch after
 * another from the same start. */
#include "cli/emu.h"

#include "core/random.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls that a driver on a GPU machine may be too old for: only the emulator is asked. */
static void *emulator_call(const emu_session *s, const char *name)
{
    return dlsym(s->device->driver->library, name);
}

static hone_status check(const emu_session *s, CUresult result, const char *call, hone_error *error)
{
    return driver_check(s->device->driver, result, call, error);
}

/* Parameters as the kernel declares them: how many, and their sizes. */
static hone_status check_parameters(const emu_session *s, hone_error *error)
{
    CUresult (*info)(CUfunction, size_t, size_t *, size_t *) = NULL;
    void *call = emulator_call(s, "cuFuncGetParamInfo");
    size_t offset = 0, bytes = 0, given = 0, wanted = 0;

    if (call == NULL) {
        return status_set(error, HONE_ENVIRONMENT, NULL, 0,
                          "the emulator lacks cuFuncGetParamInfo");
    }
    memcpy(&info, &call, sizeof info);
    while (info(s->function, wanted, &offset, &bytes) == CUDA_SUCCESS) {
        wanted++;
    }
    for (size_t n = 0; n < s->o->memory_len; n++) {
        const launch_argument *a = s->o->memory[n];
        size_t have = a->kind == LAUNCH_BUFFER       ? 8
                      : a->kind == LAUNCH_TENSOR_MAP ? sizeof(CUtensorMap)
                                                     : a->value_bytes;
        if (!a->is_parameter) {
            continue;
        }
        if (given < wanted && info(s->function, given, &offset, &bytes) == CUDA_SUCCESS &&
            bytes != have) {
            return status_set(error, HONE_BAD_ARGUMENT, "--arg", 0,
                              "argument %zu has %zu bytes; the kernel's parameter has %zu", given,
                              have, bytes);
        }
        given++;
    }
    return given == wanted
               ? HONE_OK
               : status_set(error, HONE_BAD_ARGUMENT, "--arg", 0,
                            "%zu arguments are given; the kernel takes %zu", given, wanted);
}

static hone_status load_kernel(emu_session *s, const emu_code *c, hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *d = s->device->driver;
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    CUresult result =
        d->cuModuleLoadDataEx(&s->module, c->ptx, ARRAY_LEN(options), options, values);

    if (result != CUDA_SUCCESS) {
        log[sizeof log - 1] = '\0';
        return status_set(error, HONE_UNSUPPORTED, s->o->file, 0,
                          "the emulator does not take the PTX: %s", log);
    }
    TRY(check(s, d->cuModuleGetFunction(&s->function, s->module, c->entry), "cuModuleGetFunction",
              error));
    if (c->report.registers > 0) {
        const hone_emu_resources resources = {.registers = c->report.registers,
                                              .static_shared_bytes = c->report.static_shared_bytes,
                                              .local_bytes = c->report.stack_bytes,
                                              .spill_bytes = c->report.spill_bytes};
        TRY(d->emu->set_resources(s->function, &resources, error));
    }
    int most = 0;
    if (s->o->shared_bytes > 0 &&
        d->cuFuncSetAttribute(s->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                              (int)s->o->shared_bytes) != CUDA_SUCCESS) {
        d->cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                s->device->ordinal);
        status = status_set(error, HONE_BAD_ARGUMENT, "--shared", 0,
                            "%u bytes and the kernel's own are more than the %d that a CTA of the "
                            "device may have",
                            s->o->shared_bytes, most);
        goto done;
    }
    if (s->o->cluster[0] * s->o->cluster[1] * s->o->cluster[2] > 8) { /* asked for by hand */
        TRY(check(s,
                  d->cuFuncSetAttribute(s->function,
                                        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                  "--cluster", error));
    }
    TRY(check_parameters(s, error));
done:
    return status;
}

/* Clusters drawn at random without replacement, each named by its first CTA: the error that goes
 * with a sample holds for no other way to choose. */
static hone_status set_sample(const emu_session *s, hone_error *error)
{
    const emu_options *o = s->o;
    const hone_emu_api *emu = s->device->driver->emu;
    uint64_t size = (uint64_t)o->cluster[0] * o->cluster[1] * o->cluster[2], state = o->seed;
    uint64_t x = o->grid[0] / o->cluster[0], y = o->grid[1] / o->cluster[1];
    uint64_t all = x * y * (o->grid[2] / o->cluster[2]), len = (o->sample + size - 1) / size;
    uint64_t taken = 0, *list = NULL;

    if (len == 0 || len >= all) {
        return emu->set_sample(s->device->ordinal, NULL, 0, error);
    }
    list = calloc(len, sizeof *list);
    if (list == NULL) {
        return status_set(error, HONE_NO_MEMORY, "--sample", 0, "a list of CTAs");
    }
    for (uint64_t n = 0; taken < len; n++) { /* each of those left is as likely as any other */
        if (random_below(&state, all - n) < len - taken) {
            list[taken++] =
                n % x * o->cluster[0] +
                (n / x % y * o->cluster[1] + n / x / y * o->cluster[2] * o->grid[1]) * o->grid[0];
        }
    }
    hone_status status = emu->set_sample(s->device->ordinal, list, len, error);
    free(list);
    return status;
}

static hone_status set_modes(const emu_session *s, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_emu_api *emu = s->device->driver->emu;
    int ordinal = s->device->ordinal;

    TRY(emu->set_arithmetic(ordinal, (hone_emu_arithmetic)s->o->arithmetic, error));
    TRY(emu->set_checks(ordinal, s->o->checks, error));
    TRY(emu->set_threads(ordinal, s->o->threads, error));
    TRY(set_sample(s, error));
done:
    return status;
}

hone_status emu_session_open(const emu_options *o, device *d, const emu_code *c, emu_session *out,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    emu_session s = {.o = o, .device = d};

    TRY(load_kernel(&s, c, error));
    TRY(set_modes(&s, error));
    for (size_t n = 0; n < o->memory_len; n++) {
        if (o->memory[n]->kind == LAUNCH_BUFFER) {
            TRY(emu_content(o->memory[n], &s.content[n], error));
        }
    }
    TRY(check(&s, d->driver->cuEventCreate(&s.begin, 0), "cuEventCreate", error));
    TRY(check(&s, d->driver->cuEventCreate(&s.end, 0), "cuEventCreate", error));
    *out = s;
    s = (emu_session){.device = NULL};
done:
    if (s.device != NULL) {
        emu_session_close(&s);
    }
    return status;
}

void emu_session_close(emu_session *s)
{
    const driver *d = s->device != NULL ? s->device->driver : NULL;

    free(s->places);
    for (size_t n = 0; d != NULL && n < s->o->memory_len; n++) {
        free(s->content[n]);
        if (s->address[n] != 0) {
            d->cuMemFree(s->address[n]);
        }
    }
    if (d != NULL && s->begin != NULL) {
        d->cuEventDestroy(s->begin);
    }
    if (d != NULL && s->end != NULL) {
        d->cuEventDestroy(s->end);
    }
    if (d != NULL && s->module != NULL) {
        d->cuModuleUnload(s->module);
    }
    *s = (emu_session){.device = NULL};
}

/* Memory as it is before a launch. What nobody writes is allocated anew: the old one was written
 * by the launch before. */
static hone_status prepare(emu_session *s, hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *d = s->device->driver;

    for (size_t n = 0; n < s->o->memory_len; n++) {
        const launch_argument *a = s->o->memory[n];
        if (a->kind != LAUNCH_BUFFER) {
            continue;
        }
        if (s->address[n] != 0 && s->content[n] == NULL) {
            TRY(check(s, d->cuMemFree(s->address[n]), "cuMemFree", error));
            s->address[n] = 0;
        }
        if (s->address[n] == 0) {
            TRY(check(s, d->cuMemAlloc(&s->address[n], a->bytes), "cuMemAlloc", error));
        }
        if (s->content[n] != NULL) {
            TRY(check(s, d->cuMemcpyHtoD(s->address[n], s->content[n], a->bytes), "cuMemcpyHtoD",
                      error));
        }
    }
done:
    return status;
}

static hone_status encode_map(const emu_session *s, const launch_map *m, CUtensorMap *out,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    __typeof__(&cuTensorMapEncodeTiled) encode = NULL;
    void *call = emulator_call(s, "cuTensorMapEncodeTiled");
    size_t which = 0;

    if (call == NULL) {
        return status_set(error, HONE_UNSUPPORTED, "tmap", 0, "the emulator has no tensor maps");
    }
    memcpy(&encode, &call, sizeof encode);
    TRY(emu_session_find(s, m->buffer, &which, error));
    CUresult result =
        encode(out, (CUtensorMapDataType)m->type, m->rank, (void *)(uintptr_t)s->address[which],
               (const cuuint64_t *)m->dims, (const cuuint64_t *)m->strides, m->box, m->steps,
               (CUtensorMapInterleave)m->interleave, (CUtensorMapSwizzle)m->swizzle,
               (CUtensorMapL2promotion)m->promotion, (CUtensorMapFloatOOBfill)m->fill);
    if (result != CUDA_SUCCESS) {
        hone_emu_fault why = {.result = 0};
        TRY(s->device->driver->emu->last_fault(s->device->ordinal, &why, error));
        status = status_set(error, HONE_BAD_ARGUMENT, "tmap", 0,
                            "cuTensorMapEncodeTiled refuses the map over %s: %s", m->buffer,
                            why.message);
    }
done:
    return status;
}

typedef struct parameters {
    CUtensorMap maps[LAUNCH_ARGUMENTS];
    void *pointers[LAUNCH_ARGUMENTS];
    size_t len;
} parameters;

static hone_status bind(emu_session *s, parameters *p, hone_error *error)
{
    hone_status status = HONE_OK;

    for (size_t n = 0; n < s->o->memory_len; n++) {
        launch_argument *a = s->o->memory[n];
        if (!a->is_parameter) {
            continue;
        }
        if (a->kind == LAUNCH_TENSOR_MAP) {
            TRY(encode_map(s, &a->map, &p->maps[p->len], error));
        }
        p->pointers[p->len] = a->kind == LAUNCH_BUFFER       ? (void *)&s->address[n]
                              : a->kind == LAUNCH_TENSOR_MAP ? (void *)&p->maps[p->len]
                                                             : (void *)a->value;
        p->len++;
    }
done:
    return status;
}

static CUresult launch(const emu_session *s, void **pointers)
{
    const emu_options *o = s->o;
    CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    cluster.value.clusterDim.x = o->cluster[0];
    cluster.value.clusterDim.y = o->cluster[1];
    cluster.value.clusterDim.z = o->cluster[2];
    const CUlaunchConfig shape = {
        .gridDimX = o->grid[0],
        .gridDimY = o->grid[1],
        .gridDimZ = o->grid[2],
        .blockDimX = o->block[0],
        .blockDimY = o->block[1],
        .blockDimZ = o->block[2],
        .sharedMemBytes = o->shared_bytes,
        .attrs = &cluster,
        .numAttrs = o->cluster[0] * o->cluster[1] * o->cluster[2] > 1,
    };

    return s->device->driver->cuLaunchKernelEx(&shape, s->function, pointers, NULL);
}

static hone_status take_places(emu_session *s, const hone_emu_api *emu, hone_error *error)
{
    hone_status status = HONE_OK;
    size_t len = 0;

    TRY(emu->last_places(s->device->ordinal, NULL, 0, &len, error));
    s->places = len > 0 ? malloc(len + 1) : NULL;
    if (s->places != NULL) {
        TRY(emu->last_places(s->device->ordinal, s->places, len + 1, &len, error));
    }
done:
    return status;
}

/* What a launch that did not end well left: the kernel's fault, or a refusal. */
static hone_status take_fault(emu_session *s, CUresult result, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_emu_api *emu = s->device->driver->emu;

    TRY(emu->last_fault(s->device->ordinal, &s->fault, error));
    TRY(take_places(s, emu, error));
    TRY(emu->reset(s->device->ordinal, error));
    if (s->fault.result == 0 || s->fault.ptx_line == 0) {
        status = status_set(error, HONE_BAD_ARGUMENT, s->o->file, 0,
                            "the launch is refused (CUresult %d): %s", (int)result,
                            s->fault.message[0] != '\0'
                                ? s->fault.message
                                : "are grid, block, cluster and shared memory within the device's "
                                  "limits?");
        s->fault = (hone_emu_fault){.result = 0};
    }
done:
    return status;
}

hone_status emu_session_launch(emu_session *s, uint64_t seed, int timing, bool *fine,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *d = s->device->driver;
    parameters *p = aligned_alloc(_Alignof(parameters), sizeof *p); /* maps want 64 bytes */
    float ms = 0;

    if (p == NULL) {
        return status_set(error, HONE_NO_MEMORY, s->o->file, 0, "parameters");
    }
    memset(p, 0, sizeof *p);
    s->fault = (hone_emu_fault){.result = 0};
    free(s->places);
    s->places = NULL;
    TRY(d->emu->set_schedule(s->device->ordinal, seed, error));
    TRY(d->emu->set_timing(s->device->ordinal, (hone_emu_timing)timing, error));
    TRY(prepare(s, error));
    TRY(bind(s, p, error));
    TRY(check(s, d->cuEventRecord(s->begin, NULL), "cuEventRecord", error));
    CUresult result = launch(s, p->pointers);
    *fine = result == CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) {
        TRY(take_fault(s, result, error));
        goto done;
    }
    TRY(check(s, d->cuEventRecord(s->end, NULL), "cuEventRecord", error));
    TRY(check(s, d->cuEventElapsedTime(&ms, s->begin, s->end), "cuEventElapsedTime", error));
    s->modelled_ns = (double)ms * 1e6;
done:
    free(p);
    return status;
}

hone_status emu_session_read(const emu_session *s, size_t which, uint8_t **out, hone_error *error)
{
    uint64_t len = s->o->memory[which]->bytes;
    uint8_t *bytes = malloc(len);

    if (bytes == NULL) {
        return status_set(error, HONE_NO_MEMORY, s->o->memory[which]->name, 0,
                          "a buffer of %llu bytes", (unsigned long long)len);
    }
    hone_status status = check(s, s->device->driver->cuMemcpyDtoH(bytes, s->address[which], len),
                               "cuMemcpyDtoH", error);
    if (status != HONE_OK) {
        free(bytes);
        return status;
    }
    *out = bytes;
    return HONE_OK;
}

hone_status emu_session_find(const emu_session *s, const char *name, size_t *which,
                             hone_error *error)
{
    for (size_t n = 0; n < s->o->memory_len; n++) {
        const launch_argument *a = s->o->memory[n];
        if (a->kind == LAUNCH_BUFFER && strcmp(a->name, name) == 0) {
            *which = n;
            return HONE_OK;
        }
    }
    return status_set(error, HONE_BAD_ARGUMENT, name, 0, "no buffer has that name");
}
