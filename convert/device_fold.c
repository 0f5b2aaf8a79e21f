/* device_fold.c - see device_fold.h. One kernel serves all tiles: sizes are launch arguments. */
#include "convert/device_fold.h"

#include "core/problem.h"
#include "runtime/default.h"
#include "runtime/device.h"
#include "runtime/module.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CODES, SCALE, Q, Q_SCALE, OPERANDS };

struct device_fold {
    pthread_mutex_t lock;
    templates *templates;
    device *device;
    uint64_t elements;
    CUdeviceptr buffer[OPERANDS];
    uint64_t bytes[OPERANDS];
    default_choice choice; /* once `module` is there */
    module *module;
    uint8_t *scales; /* as they come back */
    plan plan;
};

static hone_status call(const device_fold *f, CUresult result, const char *name, hone_error *error)
{
    return driver_check(f->device->driver, result, name, error);
}

static hone_status allocate(device_fold *f, hone_error *error)
{
    hone_status status = HONE_OK;
    const uint64_t
        groups = f->elements / 32,
        bytes[OPERANDS] = {
            [CODES] = f->elements / 2, [SCALE] = groups, [Q] = f->elements, [Q_SCALE] = groups};

    for (int i = 0; i < OPERANDS; i++) {
        TRY(call(f, f->device->driver->cuMemAlloc(&f->buffer[i], bytes[i]), "cuMemAlloc", error));
        f->bytes[i] = bytes[i];
    }
done:
    return status;
}

hone_status device_fold_open(const char *spec, uint64_t elements, device_fold **out,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    device_fold *f = calloc(1, sizeof *f);

    if (f == NULL) {
        return status_set(error, HONE_NO_MEMORY, spec, 0, "a device's tables");
    }
    pthread_mutex_init(&f->lock, NULL);
    f->elements = elements;
    f->scales = malloc(elements / 32);
    if (f->scales == NULL) {
        status = status_set(error, HONE_NO_MEMORY, spec, 0, "a device's tables");
        goto done;
    }
    TRY(templates_open(&f->templates, error));
    TRY(device_open(spec, &f->device, error));
    TRY(allocate(f, error));
    *out = f;
    f = NULL;
done:
    device_fold_close(f);
    return status;
}

void device_fold_close(device_fold *f)
{
    if (f == NULL) {
        return;
    }
    module_unload(f->module);
    for (int i = 0; i < OPERANDS && f->device != NULL; i++) {
        if (f->bytes[i] > 0 && device_enter(f->device, NULL) == HONE_OK) {
            f->device->driver->cuMemFree(f->buffer[i]);
        }
    }
    device_close(f->device);
    templates_close(f->templates);
    pthread_mutex_destroy(&f->lock);
    free(f->scales);
    free(f);
}

const char *device_fold_note(const device_fold *f)
{
    return f->device->note;
}

static void describe(const fold_tile *t, hone_problem *out)
{
    problem_init(out, HONE_OP_MXFP4_FOLD);
    out->as.mxfp4_fold.n = (int64_t)t->rows;
    out->as.mxfp4_fold.k = (int64_t)t->cols;
    out->as.mxfp4_fold.block_rows = (int32_t)t->block_rows;
    out->as.mxfp4_fold.block_cols = (int32_t)t->block_cols;
    problem_derive(out);
}

/* The analytical choice for the first tile, compiled and loaded. */
static hone_status load(device_fold *f, const hone_problem *problem, hone_error *error)
{
    hone_status status = HONE_OK;
    const jit_options options = {.workers = 1};
    jit *compiler = NULL;
    compiled *code = NULL;
    jit_request request;
    size_t count = 0;

    TRY(default_rank(f->templates, problem, &f->device->gpu, 0, &f->choice, 1, &count, NULL,
                     error));
    if (count == 0) {
        char why[400];
        templates_refusals(f->templates, problem, &f->device->gpu.facts, why, sizeof why);
        status = status_set(error, HONE_UNSUPPORTED, f->device->spec, 0, "%s", why);
        goto done;
    }
    TRY(manifest_plan(f->choice.m, problem, &f->device->gpu.facts, &f->choice.config, &f->plan,
                      error));
    TRY(jit_open(&options, &compiler, error));
    TRY(jit_request_plan(f->templates, f->choice.m, &f->plan, f->device->gpu.facts.arch, &request,
                         error));
    TRY(jit_compile(compiler, &request, &code, error));
    TRY(module_load(f->device, &f->plan, code, &f->module, error));
done:
    compiled_free(code);
    jit_close(compiler);
    return status;
}

/* Rows of `bytes` bytes that lie `stride` apart, dense on the device. */
static hone_status upload(const device_fold *f, int operand, const uint8_t *from, uint64_t rows,
                          uint64_t bytes, uint64_t stride, hone_error *error)
{
    hone_status status = HONE_OK;
    const bool dense = bytes == stride;

    for (uint64_t i = 0; i < (dense ? 1 : rows); i++) {
        TRY(call(f,
                 f->device->driver->cuMemcpyHtoD(f->buffer[operand] + i * bytes, from + i * stride,
                                                 dense ? rows * bytes : bytes),
                 "cuMemcpyHtoD", error));
    }
done:
    return status;
}

static hone_status fold_on(device_fold *f, const fold_tile *t, hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *d = f->device->driver;
    const uint64_t across = (t->cols + t->block_cols - 1) / t->block_cols;
    const uint64_t blocks = (t->rows + t->block_rows - 1) / t->block_rows * across;
    hone_problem problem;

    describe(t, &problem);
    TRY(device_enter(f->device, error));
    if (f->module == NULL) {
        TRY(load(f, &problem, error));
    }
    TRY(manifest_plan(f->choice.m, &problem, &f->device->gpu.facts, &f->choice.config, &f->plan,
                      error));
    TRY(upload(f, CODES, t->codes, t->rows, t->cols / 2, t->codes_stride, error));
    TRY(upload(f, SCALE, t->scales, t->rows, t->cols / 32, t->scales_stride, error));
    TRY(module_launch(f->module, &f->plan, (const uint64_t *)f->buffer, OPERANDS, 0, NULL, error));
    TRY(call(f, d->cuCtxSynchronize(), "cuCtxSynchronize", error));
    TRY(call(f, d->cuMemcpyDtoH(t->out, f->buffer[Q], t->rows * t->cols), "cuMemcpyDtoH", error));
    TRY(call(f, d->cuMemcpyDtoH(f->scales, f->buffer[Q_SCALE], blocks), "cuMemcpyDtoH", error));
    if (memcmp(f->scales, t->out_scales, blocks) != 0) {
        status = status_set(error, HONE_WRONG, f->device->spec, 0,
                            "the device's scales are not the host's; convert without --device, and "
                            "run `hone verify` on it");
    }
done:
    return status;
}

hone_status device_fold_run(device_fold *f, const fold_tile *t, hone_error *error)
{
    if (t->rows * t->cols > f->elements || t->out_stride != t->cols) {
        return status_set(error, HONE_LIMIT, f->device->spec, 0,
                          "a tile of %" PRIu64 " elements; there is room for %" PRIu64,
                          t->rows * t->cols, f->elements);
    }
    pthread_mutex_lock(&f->lock);
    hone_status status = fold_on(f, t, error);
    pthread_mutex_unlock(&f->lock);
    return status;
}
