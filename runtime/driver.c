/* driver.c - fills the driver table from libcuda.so.1 or from the emulator, by versioned names. */
#include "runtime/driver.h"

#include "models/gpu.h"
#include "runtime/paths.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two steps, so that cuda.h's renaming (cuMemAlloc -> cuMemAlloc_v2) happens first: the plain name
 * is an older function with another ABI. */
#define SYMBOL(name)      SYMBOL_TEXT(name)
#define SYMBOL_TEXT(name) #name

static const struct {
    const char *symbol;
    size_t offset;
} slots[] = {
#define X(name) {SYMBOL(name), offsetof(driver, name)},
    DRIVER_CALLS(X)
#undef X
};

/* Renamed since CUDA 12.8 with the same signature; drivers before that have the plain name alone.
 */
static const struct {
    const char *symbol, *older;
} older_names[] = {
    {"cuEventElapsedTime_v2", "cuEventElapsedTime"},
    {"cuDeviceGetUuid_v2", "cuDeviceGetUuid"},
};

static const char *const emulator_folders[] = {
    ".", "../emulator", "../../emulator", "../lib", "../lib/x86_64-linux-gnu", "../lib64", NULL,
};

static void *find_symbol(void *library, const char *symbol)
{
    void *entry = dlsym(library, symbol);

    for (size_t i = 0; entry == NULL && i < ARRAY_LEN(older_names); i++) {
        if (strcmp(symbol, older_names[i].symbol) == 0) {
            entry = dlsym(library, older_names[i].older);
        }
    }
    return entry;
}

static hone_status fill_table(const char *path, void *library, driver *d, hone_error *error)
{
    for (size_t i = 0; i < ARRAY_LEN(slots); i++) {
        void *entry = find_symbol(library, slots[i].symbol);
        if (entry == NULL) {
            return status_set(error, HONE_NO_DEVICE, path, 0,
                              "the driver lacks %s; a driver for CUDA 12 or newer is needed",
                              slots[i].symbol);
        }
        memcpy((char *)d + slots[i].offset, &entry, sizeof entry);
    }
    return HONE_OK;
}

/* NODELETE: a captured graph or a driver's own thread may still be in it when the last table is
 * given back. */
static hone_status open_library(const char *path, hone_status missing, driver **out,
                                hone_error *error)
{
    hone_status status = HONE_OK;
    driver *d = calloc(1, sizeof *d);

    if (d == NULL) {
        return status_set(error, HONE_NO_MEMORY, path, 0, "a driver table");
    }
    d->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (d->library == NULL) {
        const char *why = dlerror();
        status = status_set(
            error, missing, path, 0, "cannot be opened%s",
            missing == HONE_NO_DEVICE
                ? ": no CUDA driver is installed; an emulated device such as emu:h20 needs none"
            : why != NULL ? why
                          : "");
        goto done;
    }
    snprintf(d->path, sizeof d->path, "%s", path);
    TRY(fill_table(path, d->library, d, error));
    *out = d;
    d = NULL;
done:
    driver_close(d);
    return status;
}

hone_status driver_open_cuda(driver **out, hone_error *error)
{
    hone_status status = HONE_OK;
    driver *d = NULL;
    int count = 0;

    TRY(open_library("libcuda.so.1", HONE_NO_DEVICE, &d, error));
    CUresult result = d->cuInit(0);
    if (result == CUDA_SUCCESS) {
        result = d->cuDeviceGetCount(&count);
    }
    if (result != CUDA_SUCCESS || count == 0) {
        status = status_set(error, HONE_NO_DEVICE, d->path, 0,
                            "the CUDA driver has no usable device (CUresult %d)", (int)result);
        goto done;
    }
    *out = d;
    d = NULL;
done:
    driver_close(d);
    return status;
}

/* Be every GPU that is described, twice: two of a kind run launches side by side. Refused when this
 * process has already started the emulator: then it is whatever the first caller chose, and devices
 * are found by name. */
static void choose_devices(const hone_emu_api *emu)
{
    const char *const *slugs = NULL;
    const size_t count = gpu_list(&slugs);
    const char **twice = calloc(2 * count, sizeof *twice);

    for (size_t i = 0; twice != NULL && i < 2 * count; i++) {
        twice[i] = slugs[i % count];
    }
    emu->set_devices(twice != NULL ? twice : slugs, twice != NULL ? 2 * count : count, NULL);
    free(twice);
}

hone_status driver_open_emulator(driver **out, hone_error *error)
{
    hone_status status = HONE_OK;
    driver *d = NULL;
    char path[PATHS_MAX];
    const hone_emu_api *(*entry)(void) = NULL;

    if (!paths_find("libhone_emu.so", "HONE_EMU_PATH", emulator_folders, path)) {
        return status_set(
            error, HONE_ENVIRONMENT, "libhone_emu.so", 0,
            "the emulator is not found; install it beside libhone.so or name it in HONE_EMU_PATH");
    }
    TRY(open_library(path, HONE_ENVIRONMENT, &d, error));
    *(void **)&entry = dlsym(d->library, HONE_EMU_SYMBOL);
    d->emu = entry != NULL ? entry() : NULL;
    if (d->emu == NULL || d->emu->version != HONE_EMU_VERSION) {
        status =
            status_set(error, HONE_ENVIRONMENT, path, 0, "not an emulator of this version of hone");
        goto done;
    }
    choose_devices(d->emu);
    TRY(driver_check(d, d->cuInit(0), "cuInit", error));
    *out = d;
    d = NULL;
done:
    driver_close(d);
    return status;
}

void driver_close(driver *d)
{
    if (d != NULL && d->library != NULL) {
        dlclose(d->library);
    }
    free(d);
}

hone_status driver_check(const driver *d, CUresult result, const char *call, hone_error *error)
{
    const char *name = NULL, *text = NULL;

    if (result == CUDA_SUCCESS) {
        return HONE_OK;
    }
    d->cuGetErrorName(result, &name);
    d->cuGetErrorString(result, &text);
    return status_set(error, result == CUDA_ERROR_OUT_OF_MEMORY ? HONE_NO_MEMORY : HONE_DRIVER,
                      NULL, 0, "%s: %s (%s)", call, name != NULL ? name : "unknown CUresult",
                      text != NULL ? text : "?");
}
