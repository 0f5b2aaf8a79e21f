/* shim_driver.c - loads libhone_emu.so for a test. */
#include "shim_driver.h"

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *symbol;
    size_t offset;
} slots[] = {
#define X(name) {SHIM_DRIVER_SYMBOL(name), offsetof(shim_driver, name)},
    SHIM_DRIVER_CALLS(X)
#undef X
};

void shim_driver_load(shim_driver *out)
{
    memset(out, 0, sizeof *out);
    out->library = dlopen(HONE_EMU_FILE, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(out->library != NULL, "%s", dlerror());
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        void *address = dlsym(out->library, slots[i].symbol);
        ck_assert_msg(address != NULL, "%s is not exported", slots[i].symbol);
        memcpy((char *)out + slots[i].offset, &address, sizeof address);
    }
    const hone_emu_api *(*api)(void) = NULL;
    void *address = dlsym(out->library, HONE_EMU_SYMBOL);
    ck_assert_msg(address != NULL, "%s is not exported", HONE_EMU_SYMBOL);
    memcpy(&api, &address, sizeof address);
    out->emu = api();
    ck_assert_uint_eq(out->emu->version, HONE_EMU_VERSION);
}

void shim_driver_start(shim_driver *out, const char *slugs)
{
    char text[256];
    const char *names[16];
    size_t count = 0;
    hone_error error;
    CUcontext context = NULL;

    shim_driver_load(out);
    snprintf(text, sizeof text, "%s", slugs);
    for (char *name = strtok(text, ","); name != NULL && count < 16; name = strtok(NULL, ",")) {
        names[count++] = name;
    }
    ck_assert_msg(out->emu->set_devices(names, count, &error) == HONE_OK, "%s", error.message);
    SHIM_OK(out, cuInit(0));
    SHIM_OK(out, cuDevicePrimaryCtxRetain(&context, 0));
    SHIM_OK(out, cuCtxSetCurrent(context));
}

void shim_driver_claim(const shim_driver *d, CUresult expected, CUresult result, const char *call,
                       int line)
{
    const char *name = "?", *wanted = "?";
    hone_emu_fault fault = {0};
    if (result == expected) {
        return;
    }
    d->cuGetErrorName(result, &name);
    d->cuGetErrorName(expected, &wanted);
    d->emu->last_fault(0, &fault, NULL);
    ck_abort_msg("line %d: %s gave %s, not %s (last fault: %s)", line, call, name, wanted,
                 fault.message);
}

CUfunction shim_driver_function(const shim_driver *d, const char *ptx, const char *name)
{
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUresult result = d->cuModuleLoadDataEx(&module, ptx, 2, options, values);
    ck_assert_msg(result == CUDA_SUCCESS, "the PTX of %s does not load (%d): %s", name, (int)result,
                  log);
    SHIM_OK(d, cuModuleGetFunction(&function, module, name));
    return function;
}
