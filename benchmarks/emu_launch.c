/* emu_launch.c - an emulated GPU made current, PTX loaded on it, launches timed. */
#include "benchmarks/emu_launch.h"

#include "core/embedded.h"

#include <stdlib.h>
#include <string.h>

extern const embedded_file benchmark_ptx[];

hone_status emu_check(const bench *b, CUresult result, const char *call, hone_error *error)
{
    return driver_check(b->driver, result, call, error);
}

hone_status emu_use(bench *b, const char *product, hone_error *error)
{
    hone_status status = HONE_OK;
    driver *d = b->driver;
    int count = 0;
    CUcontext context = NULL;

    TRY(emu_check(b, d->cuDeviceGetCount(&count), "cuDeviceGetCount", error));
    for (int i = 0; i < count; i++) {
        char name[128] = "";
        TRY(emu_check(b, d->cuDeviceGetName(name, sizeof name, i), "cuDeviceGetName", error));
        const char *at = strstr(name, product);
        if (at != NULL && strcmp(at, product) == 0) {
            TRY(emu_check(b, d->cuDevicePrimaryCtxRetain(&context, i), "cuDevicePrimaryCtxRetain",
                          error));
            b->device = i;
            return emu_check(b, d->cuCtxSetCurrent(context), "cuCtxSetCurrent", error);
        }
    }
    status = status_set(error, HONE_NO_DEVICE, product, 0, "the emulator does not have this GPU");
done:
    return status;
}

hone_status emu_load(bench *b, const char *file, const char *name, CUfunction *out,
                     hone_error *error)
{
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module = NULL;
    const char *text = embedded_find(benchmark_ptx, file)->bytes;
    if (b->driver->cuModuleLoadDataEx(&module, text, 2, options, values) != CUDA_SUCCESS) {
        return status_set(error, HONE_COMPILE, file, 0, "%s", log);
    }
    return emu_check(b, b->driver->cuModuleGetFunction(out, module, name), "cuModuleGetFunction",
                     error);
}

double emu_now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

hone_status emu_launch(bench *b, CUfunction f, const geometry *g, void **params, double *seconds,
                       hone_emu_counters *counters, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_emu_fault fault = {0};
    double begin = emu_now(CLOCK_THREAD_CPUTIME_ID);

    CUresult result = b->driver->cuLaunchKernel(f, g->grid[0], g->grid[1], 1, g->block, 1, 1,
                                                g->shared, NULL, params, NULL);
    *seconds = emu_now(CLOCK_THREAD_CPUTIME_ID) - begin;
    if (result != CUDA_SUCCESS) {
        b->driver->emu->last_fault(b->device, &fault, NULL);
        return status_set(error, HONE_DRIVER, fault.kernel, fault.ptx_line, "%s: %s", fault.kind,
                          fault.message);
    }
    TRY(b->driver->emu->last_counters(b->device, counters, error));
done:
    return status;
}

static int compare_reals(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double emu_median(double values[EMU_ROUNDS])
{
    qsort(values, EMU_ROUNDS, sizeof values[0], compare_reals);
    return values[EMU_ROUNDS / 2];
}
