/* library.c - context-independent loading: a library keeps PTX text, loaded into a context
 * when first used. */
#include "emulator/driver/shim.h"

#include <stdlib.h>
#include <string.h>

typedef struct library {
    shim_object head;
    char *text;
    struct kernel *kernels;
} library;

typedef struct kernel {
    shim_object head;
    library *library;
    char *name;
    struct kernel *next;
} kernel;

/* Libraries belong to no context, so that no device's lock guards their lists. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The library's module in this context. */
static CUresult module_of(shim_context *c, library *l, const shim_log *log, shim_module **out)
{
    for (shim_object *o = c->objects; o != NULL; o = o->next) {
        shim_module *m = (shim_module *)(void *)o;
        if (o->kind == SHIM_MODULE && m->library == l) {
            *out = m;
            return CUDA_SUCCESS;
        }
    }
    CUresult result = shim_module_load(c, l->text, log, out);
    if (result == CUDA_SUCCESS) {
        (*out)->library = l;
    }
    return result;
}

CUresult shim_function_of(shim_context *c, const void *handle, shim_function **out)
{
    static const shim_log no_log;
    shim_module *m = NULL;
    shim_function *f = shim_object_get(c, SHIM_FUNCTION, handle);
    if (f != NULL) {
        *out = f;
        return CUDA_SUCCESS;
    }
    const kernel *k = shim_object_get(NULL, SHIM_KERNEL, handle);
    if (k == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult result = module_of(c, k->library, &no_log, &m);
    return result == CUDA_SUCCESS ? shim_module_function(m, k->name, out) : result;
}

static void destroy_library(library *l)
{
    while (l->kernels != NULL) {
        kernel *k = l->kernels;
        l->kernels = k->next;
        free(k->name);
        shim_object_destroy(&k->head);
    }
    free(l->text);
    shim_object_destroy(&l->head);
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library_out, const void *code,
                                   CUjit_option *jitOptions, void **jitOptionsValues,
                                   unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                                   void **libraryOptionValues, unsigned int numLibraryOptions)
{
    char note[256];
    shim_log log;
    if (shim_device_count() == 0) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    bool options = libraryOptions != NULL && libraryOptionValues != NULL;
    if (library_out == NULL || code == NULL || (numLibraryOptions != 0 && !options)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = shim_log_read(numJitOptions, jitOptions, jitOptionsValues, &log);
    if (result == CUDA_SUCCESS) {
        /* An image that no device of this process takes is refused before it is copied as text. */
        result = shim_image_check(code, shim_device_at(0)->gpu.facts.arch, note, sizeof note);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    library *l = shim_object_new(NULL, SHIM_LIBRARY, sizeof *l);
    if (l == NULL || (l->text = strdup(code)) == NULL) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    shim_context *c = NULL;
    if (result == CUDA_SUCCESS && shim_enter(&c, true) == CUDA_SUCCESS) {
        shim_module *m =
            NULL; /* load now where there is a context, so that its log tells at once */
        result = module_of(c, l, &log, &m);
        shim_leave(c);
    }
    if (result == CUDA_SUCCESS) {
        *library_out = l->head.handle;
    } else if (l != NULL) {
        destroy_library(l);
    }
    return result;
}

/* Unload the library's module from every context of a device. */
static void unload_modules(shim_device *d, const library *l)
{
    pthread_mutex_lock(&d->lock);
    for (shim_context *c = d->contexts; c != NULL; c = c->next) {
        shim_object *o = c->objects;
        while (o != NULL && (o->kind != SHIM_MODULE || ((shim_module *)(void *)o)->library != l)) {
            o = o->next;
        }
        if (o != NULL) {
            shim_object_destroy(o);
        }
    }
    shim_unlock(d);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library_handle)
{
    pthread_mutex_lock(&lock);
    library *l = shim_object_get(NULL, SHIM_LIBRARY, library_handle);
    for (size_t i = 0; l != NULL && i < shim_device_count(); i++) {
        unload_modules(shim_device_at((int)i), l);
    }
    if (l != NULL) {
        destroy_library(l);
    }
    pthread_mutex_unlock(&lock);
    return l != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The kernel object of that name, made on first use. The lock is held. */
static CUresult kernel_named(library *l, const char *name, kernel **out)
{
    kernel *k = l->kernels;
    while (k != NULL && strcmp(k->name, name) != 0) {
        k = k->next;
    }
    if (k == NULL) {
        char *copy = strdup(name);
        k = copy != NULL ? shim_object_new(NULL, SHIM_KERNEL, sizeof *k) : NULL;
        if (k == NULL) {
            free(copy);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        k->library = l;
        k->name = copy;
        k->next = l->kernels;
        l->kernels = k;
    }
    *out = k;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library_handle, const char *name)
{
    kernel *k = NULL;
    CUfunction function = NULL;
    if (pKernel == NULL || name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_lock(&lock);
    library *l = shim_object_get(NULL, SHIM_LIBRARY, library_handle);
    CUresult result = l != NULL ? kernel_named(l, name, &k) : CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_unlock(&lock);
    if (result == CUDA_SUCCESS && shim_context_current() != NULL) {
        result = cuKernelGetFunction(&function, k->head.handle);
    }
    if (result == CUDA_SUCCESS) {
        *pKernel = k->head.handle;
    }
    return result;
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule *pMod, CUlibrary library_handle)
{
    static const shim_log no_log;
    shim_context *c = NULL;
    shim_module *m = NULL;
    CUresult result = shim_enter(&c, pMod != NULL);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    library *l = shim_object_get(NULL, SHIM_LIBRARY, library_handle);
    result = l != NULL ? module_of(c, l, &no_log, &m) : CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) {
        *pMod = m->head.handle;
    }
    shim_leave(c);
    return result;
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library_handle,
                                    const char *name)
{
    CUmodule module = NULL;
    CUresult result = cuLibraryGetModule(&module, library_handle);
    return result == CUDA_SUCCESS ? cuModuleGetGlobal(dptr, bytes, module, name) : result;
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel_handle)
{
    shim_context *c = NULL;
    shim_function *f = NULL;
    CUresult result = shim_enter(&c, pFunc != NULL);
    if (result == CUDA_SUCCESS) {
        result = shim_function_of(c, kernel_handle, &f);
        if (result == CUDA_SUCCESS) {
            *pFunc = f->head.handle;
        }
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuKernelGetName(const char **name, CUkernel hfunc)
{
    const kernel *k = shim_object_get(NULL, SHIM_KERNEL, hfunc);
    if (k == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *name = k->name;
    return CUDA_SUCCESS;
}
