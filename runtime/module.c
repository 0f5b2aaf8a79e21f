/* module.c - loads compiled kernels and launches plans. The only place where kernels are launched.
 */
#include "runtime/module.h"

#include <stdlib.h>
#include <string.h>

typedef struct module_function {
    char *entry; /* name expression: what a plan's launch asks for */
    CUfunction handle;
    int32_t shared_bytes; /* static */
} module_function;

struct module {
    const device *device;
    CUmodule handle;
    size_t functions_len;
    module_function functions[JIT_MAX_ENTRIES];
};

static module_function *find_function(const module *m, const char *entry)
{
    for (size_t i = 0; i < m->functions_len; i++) {
        if (strcmp(m->functions[i].entry, entry) == 0) {
            return (module_function *)&m->functions[i];
        }
    }
    return NULL;
}

static hone_status load_code(module *m, const compiled *c, hone_error *error)
{
    const driver *d = m->device->driver;
    char log[300] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    const void *code = d->emu != NULL ? (const void *)c->ptx : c->cubin;
    CUresult result = d->cuModuleLoadDataEx(&m->handle, code, ARRAY_LEN(options), options, values);

    if (result != CUDA_SUCCESS && log[0] != '\0') {
        log[sizeof log - 1] = '\0';
        return status_set(error, HONE_DRIVER, NULL, 0,
                          "the driver refuses the code (CUresult %d): %s", (int)result, log);
    }
    return driver_check(d, result, "cuModuleLoadDataEx", error);
}

/* Blocks past 48 KiB are opted in to, up to all that the device has: what a launch asks for is
 * checked by plan. */
static hone_status allow_shared(const module *m, const module_function *f, hone_error *error)
{
    const driver *d = m->device->driver;
    const int most = m->device->gpu.facts.smem_per_block - f->shared_bytes;

    return driver_check(
        d, d->cuFuncSetAttribute(f->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most),
        "cuFuncSetAttribute", error);
}

static hone_status load_function(module *m, const jit_kernel *kernel, hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *d = m->device->driver;
    module_function *f = &m->functions[m->functions_len];

    TRY(driver_check(d, d->cuModuleGetFunction(&f->handle, m->handle, kernel->lowered),
                     "cuModuleGetFunction", error));
    if (d->emu != NULL) {
        const hone_emu_resources resources = {.registers = kernel->registers,
                                              .static_shared_bytes = kernel->static_shared_bytes,
                                              .local_bytes = kernel->stack_bytes,
                                              .spill_bytes = kernel->spill_bytes};
        TRY(d->emu->set_resources(f->handle, &resources, error));
    }
    f->shared_bytes = kernel->static_shared_bytes;
    f->entry = strdup(kernel->entry);
    if (f->entry == NULL) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "a kernel's name");
        goto done;
    }
    m->functions_len++;
    TRY(allow_shared(m, f, error));
done:
    return status;
}

/* Each launch has its kernel, and fits. */
static hone_status check_plan(const module *m, const plan *p, hone_error *error)
{
    const int32_t most = m->device->gpu.facts.smem_per_block;

    for (uint32_t i = 0; i < p->launches_len; i++) {
        const plan_launch *l = &p->launches[i];
        const module_function *f = find_function(m, l->entry);
        if (f == NULL) {
            return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "kernel %.200s was not compiled",
                              l->entry);
        }
        if ((int64_t)l->shared_bytes + f->shared_bytes > most) {
            return status_set(error, HONE_UNSUPPORTED, m->device->spec, 0,
                              "a block needs %lld bytes of shared memory; the device has %d",
                              (long long)l->shared_bytes + f->shared_bytes, most);
        }
    }
    return HONE_OK;
}

hone_status module_load(const device *d, const plan *p, const compiled *c, module **out,
                        hone_error *error)
{
    hone_status status = HONE_OK;
    CUcontext previous = d->context;
    module *m = calloc(1, sizeof *m);

    if (m == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a module");
    }
    m->device = d;
    TRY(device_borrow(d, &previous, error));
    TRY(load_code(m, c, error));
    for (size_t i = 0; i < c->kernels_len; i++) {
        TRY(load_function(m, &c->kernels[i], error));
    }
    TRY(check_plan(m, p, error));
    *out = m;
    m = NULL;
done:
    device_return(d, previous);
    module_unload(m);
    return status;
}

void module_unload(module *m)
{
    CUcontext previous = NULL;

    if (m == NULL) {
        return;
    }
    if (m->handle != NULL && device_borrow(m->device, &previous, NULL) == HONE_OK) {
        m->device->driver->cuModuleUnload(m->handle);
        device_return(m->device, previous);
    }
    for (size_t i = 0; i < m->functions_len; i++) {
        free(m->functions[i].entry);
    }
    free(m);
}

/* A launch's parameters: addresses, scalars and tensor maps by value, and the pointers to them that
 * the driver wants. */
typedef struct launch_parameters {
    CUtensorMap maps[MANIFEST_MAX_MAPS];
    uint64_t values[MANIFEST_MAX_ARGUMENTS];
    void *pointers[MANIFEST_MAX_ARGUMENTS];
} launch_parameters;

/* Where the operands and the workspace lie, and maps over them. */
typedef struct launch_memory {
    const uint64_t *operands;
    size_t operands_len;
    uint64_t workspace;
    kept_maps *maps; /* NULL: none are kept */
} launch_memory;

static CUtensorMapSwizzle swizzle_of(uint32_t bytes)
{
    return bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
           : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
           : bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                         : CU_TENSOR_MAP_SWIZZLE_NONE;
}

static hone_status encode_map(const driver *d, const plan_map *map, uint64_t address,
                              CUtensorMap *out, hone_error *error)
{
    static const cuuint32_t steps[] = {1, 1, 1, 1, 1};

    return driver_check(d,
                        d->cuTensorMapEncodeTiled(
                            out, (CUtensorMapDataType)map->type, map->rank,
                            (void *)(uintptr_t)address, map->dims, map->strides, map->box, steps,
                            CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(map->swizzle),
                            CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                        "cuTensorMapEncodeTiled", error);
}

/* The map number `which` of launch number `launch`: kept from before, or encoded into *own. */
static hone_status find_map(const driver *d, const plan_launch *l, uint32_t launch, uint32_t which,
                            const launch_memory *memory, CUtensorMap *own, const CUtensorMap **out,
                            hone_error *error)
{
    hone_status status = HONE_OK;
    const plan_map *map = &l->maps[which];

    if (map->operand >= (int64_t)memory->operands_len) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "the kernel takes a tensor map of operand %d of %zu given", map->operand,
                          memory->operands_len);
    }
    const uint64_t base = map->operand < 0 ? memory->workspace : memory->operands[map->operand];
    const uint64_t address = base + map->offset;
    const CUtensorMap *kept =
        memory->maps != NULL ? kept_maps_find(memory->maps, launch, which, address) : NULL;
    *out = kept != NULL ? kept : own;
    if (kept == NULL) {
        TRY(encode_map(d, map, address, own, error));
        if (memory->maps != NULL) {
            kept_maps_add(memory->maps, launch, which, address, own);
        }
    }
done:
    return status;
}

static hone_status bind_arguments(const driver *d, const plan_launch *l, uint32_t launch,
                                  const launch_memory *memory, launch_parameters *out,
                                  hone_error *error)
{
    hone_status status = HONE_OK;
    const CUtensorMap *maps[MANIFEST_MAX_MAPS] = {NULL};

    for (uint32_t i = 0; i < l->maps_len; i++) {
        TRY(find_map(d, l, launch, i, memory, &out->maps[i], &maps[i], error));
    }
    for (uint32_t i = 0; i < l->arguments_len; i++) {
        const plan_argument *a = &l->arguments[i];
        if (a->kind == PLAN_OPERAND && a->operand >= memory->operands_len) {
            return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                              "the kernel takes operand %u of %zu given", a->operand,
                              memory->operands_len);
        }
        /* A 4-byte scalar is read from the low half: the host is little endian. */
        out->values[i] = a->kind == PLAN_OPERAND     ? memory->operands[a->operand]
                         : a->kind == PLAN_WORKSPACE ? memory->workspace + (uint64_t)a->value
                                                     : (uint64_t)a->value;
        out->pointers[i] = a->kind == PLAN_MAP ? (void *)maps[a->value] : (void *)&out->values[i];
    }
done:
    return status;
}

static CUresult launch_one(const driver *d, CUfunction function, const plan_launch *l,
                           void **parameters, CUstream stream)
{
    CUlaunchAttribute attributes[2];
    unsigned len = 0;

    if (l->cluster[0] * l->cluster[1] * l->cluster[2] > 1) {
        CUlaunchAttribute *cluster = &attributes[len++];
        *cluster = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
        cluster->value.clusterDim.x = l->cluster[0];
        cluster->value.clusterDim.y = l->cluster[1];
        cluster->value.clusterDim.z = l->cluster[2];
    }
    if (l->dependent) {
        attributes[len] =
            (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
        attributes[len++].value.programmaticStreamSerializationAllowed = 1;
    }
    const CUlaunchConfig launch = {
        .gridDimX = l->grid[0],
        .gridDimY = l->grid[1],
        .gridDimZ = l->grid[2],
        .blockDimX = l->block[0],
        .blockDimY = l->block[1],
        .blockDimZ = l->block[2],
        .sharedMemBytes = l->shared_bytes,
        .hStream = stream,
        .attrs = attributes,
        .numAttrs = len,
    };
    return d->cuLaunchKernelEx(&launch, function, parameters, NULL);
}

static hone_status launch_all(const module *m, const plan *p, const launch_memory *memory,
                              CUstream stream, hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *d = m->device->driver;
    launch_parameters parameters;

    if (p->workspace_zeroed > 0) {
        TRY(driver_check(d, d->cuMemsetD8Async(memory->workspace, 0, p->workspace_zeroed, stream),
                         "cuMemsetD8Async", error));
    }
    for (uint32_t i = 0; i < p->launches_len; i++) {
        const plan_launch *l = &p->launches[i];
        const module_function *f = find_function(m, l->entry);
        if (f == NULL) {
            status = status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "kernel %.200s is not loaded",
                                l->entry);
            goto done;
        }
        if (l->grid[0] == 0 || l->grid[1] == 0 || l->grid[2] == 0) {
            continue; /* no rows, no work; the driver would refuse the grid (cases.md 60) */
        }
        TRY(bind_arguments(d, l, i, memory, &parameters, error));
        TRY(driver_check(d, launch_one(d, f->handle, l, parameters.pointers, stream),
                         "cuLaunchKernel", error));
    }
done:
    return status;
}

hone_status module_launch_kept(const module *m, const plan *p, kept_maps *maps,
                               const uint64_t *operands, size_t operands_len, uint64_t workspace,
                               CUstream stream, hone_error *error)
{
    hone_status status = HONE_OK;
    CUcontext previous = m->device->context;
    const launch_memory memory = {operands, operands_len, workspace, maps};

    TRY(device_borrow(m->device, &previous, error));
    status = launch_all(m, p, &memory, stream, error);
    device_return(m->device, previous);
done:
    return status;
}

hone_status module_launch(const module *m, const plan *p, const uint64_t *operands,
                          size_t operands_len, uint64_t workspace, CUstream stream,
                          hone_error *error)
{
    return module_launch_kept(m, p, NULL, operands, operands_len, workspace, stream, error);
}

hone_status module_occupancy(const module *m, const plan *p, uint32_t launch, int32_t *ctas,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    CUcontext previous = m->device->context;
    const driver *d = m->device->driver;
    const plan_launch *l = &p->launches[launch];
    const module_function *f = find_function(m, l->entry);
    int fit = 0;

    if (f == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "kernel %.200s is not loaded",
                          l->entry);
    }
    TRY(device_borrow(m->device, &previous, error));
    status = driver_check(
        d,
        d->cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &fit, f->handle, (int)(l->block[0] * l->block[1] * l->block[2]), l->shared_bytes),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", error);
    device_return(m->device, previous);
    if (status == HONE_OK) {
        *ctas = fit;
    }
done:
    return status;
}
