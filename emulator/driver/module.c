/* module.c - modules: PTX text loaded into a context, with the JIT's logs. */
#include "emulator/driver/shim.h"

#include "core/moment.h"

#include <stdio.h>
#include <string.h>

enum { NOTE_CAPACITY = 4096 };

/* `log` stays usable for the caller's buffers as long as `values` does: sizes are written back
 * there. */
CUresult shim_log_read(unsigned count, const CUjit_option *options, void **values, shim_log *out)
{
    shim_log log = {0};
    if (count != 0 && (options == NULL || values == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < count; i++) {
        switch (options[i]) {
        case CU_JIT_INFO_LOG_BUFFER:
            log.info = values[i];
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            log.info_capacity = (unsigned)(uintptr_t)values[i];
            log.info_size = &values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER:
            log.error = values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            log.error_capacity = (unsigned)(uintptr_t)values[i];
            log.error_size = &values[i];
            break;
        case CU_JIT_WALL_TIME:
            log.wall_ms = (float *)(void *)&values[i];
            break;
        default: /* the others steer a compiler's optimiser: nothing to steer */
            if ((unsigned)options[i] >= CU_JIT_NUM_OPTIONS) {
                return CUDA_ERROR_INVALID_VALUE;
            }
        }
    }
    *out = log;
    return CUDA_SUCCESS;
}

/* Copy a text into a caller's buffer and tell its length. */
static void write_log(const char *text, char *buffer, size_t capacity, void **size)
{
    size_t len = 0;
    if (buffer != NULL && capacity > 0) {
        snprintf(buffer, capacity, "%s", text);
        len = strlen(buffer);
    }
    if (size != NULL) {
        *size = (void *)(uintptr_t)len;
    }
}

static void release_module(shim_object *self)
{
    shim_module *m = (shim_module *)(void *)self;
    shim_object *next = NULL;
    for (shim_object *o = self->context->objects; o != NULL; o = next) {
        next = o->next;
        if (o->kind == SHIM_FUNCTION && ((shim_function *)(void *)o)->module == m) {
            shim_object_destroy(o);
        }
    }
    ptx_module_unload(m->ptx, self->context->memory);
}

/* Parse into *out; why not, in `note`: every form that is not supported stands there. */
static CUresult parse(shim_context *c, const char *text, ptx_module **out, char *note,
                      size_t note_capacity)
{
    hone_error error = {0};
    CUresult result = shim_image_check(text, c->device->gpu.facts.arch, note, note_capacity);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    hone_status status =
        ptx_module_load(text, strlen(text), c->memory, out, note, note_capacity, &error);
    if (status != HONE_OK && note[0] == '\0') {
        snprintf(note, note_capacity, "line %d: %s\n", error.line, error.message);
    }
    return shim_result(status);
}

CUresult shim_module_load(shim_context *c, const char *text, const shim_log *log, shim_module **out)
{
    char local[NOTE_CAPACITY] = "";
    bool given = log->error != NULL && log->error_capacity > sizeof local;
    char *note = given ? log->error : local;
    int64_t begun = moment_ns(CLOCK_MONOTONIC);
    ptx_module *ptx = NULL;

    note[0] = '\0';
    CUresult result = parse(c, text, &ptx, note, given ? log->error_capacity : sizeof local);
    if (log->wall_ms != NULL) {
        *log->wall_ms = (float)(moment_ns(CLOCK_MONOTONIC) - begun) * 1e-6f;
    }
    write_log("", log->info, log->info_capacity, log->info_size);
    if (!given) {
        write_log(note, log->error, log->error_capacity, log->error_size);
    } else if (log->error_size != NULL) {
        *log->error_size = (void *)(uintptr_t)strlen(note);
    }
    if (result != CUDA_SUCCESS) {
        return shim_note(c->device, result, "unsupported", note);
    }
    shim_module *m = shim_object_new(c, SHIM_MODULE, sizeof *m);
    if (m == NULL) {
        ptx_module_unload(ptx, c->memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    m->head.release = release_module;
    m->ptx = ptx;
    *out = m;
    return CUDA_SUCCESS;
}

CUresult shim_module_function(shim_module *m, const char *name, shim_function **out)
{
    const ptx_kernel *kernel = ptx_module_kernel(m->ptx, name);
    if (kernel == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    for (shim_object *o = m->head.context->objects; o != NULL; o = o->next) {
        shim_function *f = (shim_function *)(void *)o;
        if (o->kind == SHIM_FUNCTION && f->kernel == kernel) {
            *out = f;
            return CUDA_SUCCESS;
        }
    }
    shim_function *f = shim_object_new(m->head.context, SHIM_FUNCTION, sizeof *f);
    if (f == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    f->module = m;
    f->kernel = kernel;
    ptx_kernel_describe(kernel, &f->facts);
    f->carveout = -1;
    for (int d = 0; d < 3; d++) {
        f->required_cluster[d] = (int)f->facts.required_cluster[d];
    }
    int dynamic = SHIM_STATIC_SHARED - (int)f->facts.static_shared_bytes;
    f->dynamic_limit = dynamic > 0 ? dynamic : 0;
    *out = f;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                                    CUjit_option *options, void **optionValues)
{
    shim_log log;
    shim_context *c = NULL;
    shim_module *m = NULL;
    CUresult result = shim_enter(&c, module != NULL && image != NULL);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = shim_log_read(numOptions, options, optionValues, &log);
    if (result == CUDA_SUCCESS) {
        result = shim_module_load(c, image, &log, &m);
    }
    if (result == CUDA_SUCCESS) {
        *module = m->head.handle;
    }
    shim_leave(c);
    return result;
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult CUDAAPI cuModuleUnload(CUmodule hmod)
{
    shim_context *c = NULL;
    CUresult result = shim_enter(&c, true);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    shim_module *m = shim_object_get(c, SHIM_MODULE, hmod);
    if (m != NULL) {
        shim_object_destroy(&m->head);
    }
    shim_leave(c);
    return m != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    if (mode == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    shim_context *c = NULL;
    shim_function *f = NULL;
    CUresult result = shim_enter_aside(&c, hfunc != NULL && name != NULL);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    shim_module *m = shim_object_get(c, SHIM_MODULE, hmod);
    result = m == NULL ? CUDA_ERROR_INVALID_HANDLE : shim_module_function(m, name, &f);
    if (result == CUDA_SUCCESS) {
        *hfunc = f->head.handle;
    }
    shim_leave(c);
    return result;
}

CUresult CUDAAPI cuModuleGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod,
                                   const char *name)
{
    shim_context *c = NULL;
    uint64_t address = 0, size = 0;
    CUresult result = shim_enter(&c, name != NULL);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    const shim_module *m = shim_object_get(c, SHIM_MODULE, hmod);
    if (m == NULL) {
        result = CUDA_ERROR_INVALID_HANDLE;
    } else if (!ptx_module_global(m->ptx, name, &address, &size)) {
        result = CUDA_ERROR_NOT_FOUND;
    }
    shim_leave(c);
    if (result == CUDA_SUCCESS && dptr != NULL) {
        *dptr = address;
    }
    if (result == CUDA_SUCCESS && bytes != NULL) {
        *bytes = size;
    }
    return result;
}
