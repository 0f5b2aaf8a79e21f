/* function.c - what a function is like, and what a launch of it may ask for. */
#include "emulator/driver/shim.h"

static int max_threads(const shim_function *f)
{
    const gpu *g = &f->head.context->device->gpu;
    int threads = (int)f->facts.max_threads;
    while (threads > SHIM_WARP && shim_occupancy_registers(f, threads) > g->facts.regs_per_sm) {
        threads -= SHIM_WARP;
    }
    return threads;
}

CUresult shim_function_attribute(const shim_function *f, CUfunction_attribute attribute, int *out)
{
    int arch = f->head.context->device->gpu.facts.arch;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *out = max_threads(f);
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *out = (int)f->facts.static_shared_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *out = f->resources.registers != 0 ? f->resources.local_bytes : (int)f->facts.local_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *out = f->resources.registers;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *out = arch;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *out = f->dynamic_limit;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *out = f->carveout;
        break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        *out = f->facts.explicit_cluster;
        break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *out = f->required_cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
        break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *out = f->non_portable;
        break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *out = f->cluster_policy;
        break;
    default: /* constant bank and cache mode: none */
        if ((unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *out = 0;
    }
    return CUDA_SUCCESS;
}

/* The shape of clusters that every launch must have, and what they may be. */
static CUresult set_cluster(shim_function *f, CUfunction_attribute attribute, int value)
{
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        if (f->facts.required_cluster[0] != 0) {
            return CUDA_ERROR_NOT_PERMITTED;
        }
        if (value < 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        f->required_cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        if (value != 0 && value != 1) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        f->non_portable = value;
        return CUDA_SUCCESS;
    default:
        if (value < 0 || value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        f->cluster_policy = value;
        return CUDA_SUCCESS;
    }
}

CUresult shim_function_set(shim_function *f, CUfunction_attribute attribute, int value)
{
    const device_facts *facts = &f->head.context->device->gpu.facts;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        if (value < 0 || (int64_t)f->facts.static_shared_bytes + value > facts->smem_per_block) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        f->dynamic_limit = value;
        return CUDA_SUCCESS;
    }
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT && value >= -1 &&
        value <= 100) {
        f->carveout = value;
        return CUDA_SUCCESS;
    }
    bool cluster = attribute >= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH &&
                   attribute <= CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    return cluster ? set_cluster(f, attribute, value) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    shim_context *c = NULL;
    shim_function *f = NULL;
    CUresult result = shim_enter_aside(&c, pi != NULL);
    if (result == CUDA_SUCCESS) {
        result = shim_function_of(c, hfunc, &f);
        result = result == CUDA_SUCCESS ? shim_function_attribute(f, attrib, pi) : result;
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    shim_context *c = NULL;
    shim_function *f = NULL;
    CUresult result = shim_enter_aside(&c, true);
    if (result == CUDA_SUCCESS) {
        result = shim_function_of(c, hfunc, &f);
        result = result == CUDA_SUCCESS ? shim_function_set(f, attrib, value) : result;
        shim_leave(c);
    }
    return result;
}

/* A hint to a cache that is not modelled. */
CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    shim_context *c = NULL;
    shim_function *f = NULL;
    CUresult result = shim_enter_aside(&c, (unsigned)config <= CU_FUNC_CACHE_PREFER_EQUAL);
    if (result == CUDA_SUCCESS) {
        result = shim_function_of(c, hfunc, &f);
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
    shim_context *c = NULL;
    shim_function *f = NULL;
    CUresult result = shim_enter_aside(&c, hmod != NULL);
    if (result == CUDA_SUCCESS) {
        result = shim_function_of(c, hfunc, &f);
        if (result == CUDA_SUCCESS) {
            *hmod = f->module->head.handle;
        }
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuFuncGetName(const char **name, CUfunction hfunc)
{
    shim_context *c = NULL;
    shim_function *f = NULL;
    CUresult result = shim_enter_aside(&c, name != NULL);
    if (result == CUDA_SUCCESS) {
        result = shim_function_of(c, hfunc, &f);
        if (result == CUDA_SUCCESS) {
            *name = f->facts.name;
        }
        shim_leave(c);
    }
    return result;
}

static CUresult param_info(const shim_function *f, size_t index, size_t *offset, size_t *size)
{
    if (index >= f->facts.params_len) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *offset = f->facts.param_offset[index];
    if (size != NULL) {
        *size = f->facts.param_bytes[index];
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset,
                                    size_t *paramSize)
{
    shim_context *c = NULL;
    shim_function *f = NULL;
    CUresult result = shim_enter_aside(&c, paramOffset != NULL);
    if (result == CUDA_SUCCESS) {
        result = shim_function_of(c, func, &f);
        result =
            result == CUDA_SUCCESS ? param_info(f, paramIndex, paramOffset, paramSize) : result;
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    shim_context *c = NULL;
    shim_function *f = NULL;
    CUresult result = shim_enter_aside(&c, state != NULL);
    if (result == CUDA_SUCCESS) {
        result = shim_function_of(c, function, &f);
        if (result == CUDA_SUCCESS) {
            *state = CU_FUNCTION_LOADING_STATE_LOADED;
        }
        shim_leave(c);
    }
    return result;
}
