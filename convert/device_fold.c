/* device_fold.c - see device_fold.h. One kernel serves all tiles that are folded, and one for each
 * alignment those that are requantised: sizes are launch arguments. */
#include "convert/device_fold.h"

#include "core/integer.h"
#include "core/numfmt.h"
#include "core/problem.h"
#include "runtime/default.h"
#include "runtime/device.h"
#include "runtime/module.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The fold's operands, and weight_quant's. */
enum { CODES, SCALE, Q, Q_SCALE, OPERANDS };
enum { W, WEIGHT_Q, WEIGHT_SCALE, SPECIAL, WEIGHT_OPERANDS };
enum { ALIGNMENTS = 5 }; /* 1 to 16 bytes */

typedef struct kernel {
    default_choice choice; /* once `module` is there */
    module *module;
} kernel;

struct device_fold {
    pthread_mutex_t lock;
    templates *templates;
    device *device;
    uint64_t elements;
    CUdeviceptr buffer[OPERANDS];
    CUdeviceptr
        weight[WEIGHT_OPERANDS]; /* W and SPECIAL are its own, once something is requantised */
    kernel fold, requantise[ALIGNMENTS];
    uint8_t *scales; /* as they come back: up to four bytes a group */
    float *values;   /* of a tile that is requantised */
    plan plan;
};

static hone_status call(const device_fold *f, CUresult result, const char *name, hone_error *error)
{
    return driver_check(f->device->driver, result, name, error);
}

static hone_status make_room(const device_fold *f, CUdeviceptr *buffer, uint64_t bytes,
                             hone_error *error)
{
    return call(f, f->device->driver->cuMemAlloc(buffer, bytes), "cuMemAlloc", error);
}

static hone_status allocate(device_fold *f, hone_error *error)
{
    hone_status status = HONE_OK;
    const uint64_t
        groups = f->elements / 32,
        bytes[OPERANDS] = {
            [CODES] = f->elements / 2, [SCALE] = groups, [Q] = f->elements, [Q_SCALE] = 4 * groups};

    for (int i = 0; i < OPERANDS; i++) {
        TRY(make_room(f, &f->buffer[i], bytes[i], error));
    }
done:
    return status;
}

/* What only tiles that are requantised need. */
static hone_status allocate_values(device_fold *f, hone_error *error)
{
    hone_status status = HONE_OK;

    f->weight[WEIGHT_Q] = f->buffer[Q];
    f->weight[WEIGHT_SCALE] = f->buffer[Q_SCALE];
    if (f->values == NULL) {
        f->values = malloc(f->elements * sizeof *f->values);
    }
    if (f->values == NULL) {
        return status_set(error, HONE_NO_MEMORY, f->device->spec, 0, "a tile of floats");
    }
    if (f->weight[W] == 0) {
        TRY(make_room(f, &f->weight[W], f->elements * sizeof *f->values, error));
    }
    if (f->weight[SPECIAL] == 0) { /* a counter is added to, so that it needs a value */
        TRY(make_room(f, &f->weight[SPECIAL], sizeof(uint64_t), error));
        TRY(call(f, f->device->driver->cuMemsetD8(f->weight[SPECIAL], 0, sizeof(uint64_t)),
                 "cuMemsetD8", error));
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
    f->scales = malloc(elements / 32 * 4);
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

static void release(const device_fold *f, CUdeviceptr buffer)
{
    if (buffer != 0 && device_enter(f->device, NULL) == HONE_OK) {
        f->device->driver->cuMemFree(buffer);
    }
}

void device_fold_close(device_fold *f)
{
    if (f == NULL) {
        return;
    }
    module_unload(f->fold.module);
    for (int i = 0; i < ALIGNMENTS; i++) {
        module_unload(f->requantise[i].module);
    }
    for (int i = 0; i < OPERANDS; i++) {
        release(f, f->buffer[i]);
    }
    release(f, f->weight[W]);
    release(f, f->weight[SPECIAL]);
    device_close(f->device);
    templates_close(f->templates);
    pthread_mutex_destroy(&f->lock);
    free(f->scales);
    free(f->values);
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
static hone_status load(device_fold *f, const hone_problem *problem, kernel *to, hone_error *error)
{
    hone_status status = HONE_OK;
    const jit_options options = {.workers = 1};
    jit *compiler = NULL;
    compiled *code = NULL;
    jit_request request;
    size_t count = 0;

    TRY(default_rank(f->templates, problem, &f->device->gpu, 0, &to->choice, 1, &count, NULL,
                     error));
    if (count == 0) {
        char why[400];
        templates_refusals(f->templates, problem, &f->device->gpu.facts, why, sizeof why);
        status = status_set(error, HONE_UNSUPPORTED, f->device->spec, 0, "%s", why);
        goto done;
    }
    TRY(manifest_plan(to->choice.m, problem, &f->device->gpu.facts, &to->choice.config, &f->plan,
                      error));
    TRY(jit_open(&options, &compiler, error));
    TRY(jit_request_plan(f->templates, to->choice.m, &f->plan, f->device->gpu.facts.arch, &request,
                         error));
    TRY(jit_compile(compiler, &request, &code, error));
    TRY(module_load(f->device, &f->plan, code, &to->module, error));
done:
    compiled_free(code);
    jit_close(compiler);
    return status;
}

/* Launch a tile's kernel, which is made for the first of them, and wait. */
static hone_status launch(device_fold *f, const hone_problem *problem, kernel *k,
                          const CUdeviceptr *buffers, size_t len, hone_error *error)
{
    hone_status status = HONE_OK;

    if (k->module == NULL) {
        TRY(load(f, problem, k, error));
    }
    TRY(manifest_plan(k->choice.m, problem, &f->device->gpu.facts, &k->choice.config, &f->plan,
                      error));
    TRY(module_launch(k->module, &f->plan, (const uint64_t *)buffers, len, 0, NULL, error));
    TRY(call(f, f->device->driver->cuCtxSynchronize(), "cuCtxSynchronize", error));
done:
    return status;
}

/* The tile's codes, and its scales, which must be the host's. */
static hone_status download(const device_fold *f, uint8_t *out, uint64_t bytes, const void *scales,
                            uint64_t scale_bytes, hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *d = f->device->driver;

    TRY(call(f, d->cuMemcpyDtoH(out, f->buffer[Q], bytes), "cuMemcpyDtoH", error));
    TRY(call(f, d->cuMemcpyDtoH(f->scales, f->buffer[Q_SCALE], scale_bytes), "cuMemcpyDtoH",
             error));
    if (memcmp(f->scales, scales, scale_bytes) != 0) {
        status = status_set(error, HONE_WRONG, f->device->spec, 0,
                            "the device's scales are not the host's; convert without --device, and "
                            "run `hone verify` on it");
    }
done:
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

static uint64_t blocks_of(uint64_t rows, uint64_t cols, uint64_t block_rows, uint64_t block_cols)
{
    return integer_ceil_div_u64(rows, block_rows) * integer_ceil_div_u64(cols, block_cols);
}

static hone_status fold_on(device_fold *f, const fold_tile *t, hone_error *error)
{
    hone_status status = HONE_OK;
    const uint64_t blocks = blocks_of(t->rows, t->cols, t->block_rows, t->block_cols);
    hone_problem problem;

    describe(t, &problem);
    TRY(device_enter(f->device, error));
    TRY(upload(f, CODES, t->codes, t->rows, t->cols / 2, t->codes_stride, error));
    TRY(upload(f, SCALE, t->scales, t->rows, t->cols / 32, t->scales_stride, error));
    TRY(launch(f, &problem, &f->fold, f->buffer, OPERANDS, error));
    TRY(download(f, t->out, t->rows * t->cols, t->out_scales, blocks, error));
done:
    return status;
}

static hone_status check_room(const device_fold *f, uint64_t elements, uint64_t blocks,
                              hone_error *error)
{
    return elements <= f->elements && blocks <= f->elements / 32
               ? HONE_OK
               : status_set(error, HONE_LIMIT, f->device->spec, 0,
                            "a tile of %" PRIu64 " elements and %" PRIu64
                            " scales; there is room for %" PRIu64 " and %" PRIu64,
                            elements, blocks, f->elements, f->elements / 32);
}

hone_status device_fold_run(device_fold *f, const fold_tile *t, hone_error *error)
{
    if (t->out_stride != t->cols) {
        return status_set(error, HONE_BAD_ARGUMENT, f->device->spec, 0, "rows with gaps");
    }
    hone_status status = check_room(
        f, t->rows * t->cols, blocks_of(t->rows, t->cols, t->block_rows, t->block_cols), error);
    if (status == HONE_OK) {
        pthread_mutex_lock(&f->lock);
        status = fold_on(f, t, error);
        pthread_mutex_unlock(&f->lock);
    }
    return status;
}

/* ---- Other blocks. -------------------------------------------------------------------------- */

static hone_status describe_weight(const device_fold *f, const requantise_tile *t,
                                   hone_problem *out, hone_error *error)
{
    hone_weight_quant *w = &out->as.weight_quant;

    problem_init(out, HONE_OP_WEIGHT_QUANT);
    w->n = (int64_t)t->rows;
    w->k = (int64_t)t->cols;
    w->in = HONE_DTYPE_F32;
    w->gran_n = (int32_t)t->block_rows;
    w->gran_k = (int32_t)t->block_cols;
    w->scale_layout = HONE_SCALES_ROW;
    w->rule = t->rule == PLAN_AMAX ? HONE_RULE_RAW_TINY : HONE_RULE_POW2_TINY;
    problem_derive(out);
    return t->rule != PLAN_NEAREST
               ? hone_problem_check(out, error)
               : status_set(error, HONE_UNSUPPORTED, f->device->spec, 0,
                            "no template rounds scales to the nearest power of two, which "
                            "saturates; leave out --device or --rule nearest");
}

/* fl32(code * old scale) of every element. */
static void dequantise(const requantise_tile *t, float *values)
{
    for (uint64_t r = 0; r < t->rows; r++) {
        const uint64_t old_row = (t->row + r) / t->from_rows - t->row / t->from_rows;
        for (uint64_t c = 0; c < t->cols; c++) {
            const uint64_t old_col = (t->col + c) / t->from_cols - t->col / t->from_cols;
            values[r * t->cols + c] = numfmt_e4m3_decode(t->codes[r * t->codes_stride + c]) *
                                      t->scales[old_row * t->scales_stride + old_col];
        }
    }
}

/* A NaN keeps its sign, which a quantiser gives none. */
static void keep_nans(const requantise_tile *t)
{
    for (uint64_t r = 0; r < t->rows; r++) {
        for (uint64_t c = 0; c < t->cols; c++) {
            const uint8_t code = t->codes[r * t->codes_stride + c];
            if ((code & 0x7f) == 0x7f) {
                t->out[r * t->cols + c] = code;
            }
        }
    }
}

static hone_status requantise_on(device_fold *f, const requantise_tile *t, hone_error *error)
{
    hone_status status = HONE_OK;
    const uint64_t blocks = blocks_of(t->rows, t->cols, t->block_rows, t->block_cols);
    const uint64_t elements = t->rows * t->cols;
    hone_problem problem;

    TRY(describe_weight(f, t, &problem, error));
    TRY(device_enter(f->device, error));
    TRY(allocate_values(f, error));
    dequantise(t, f->values);
    TRY(call(f, f->device->driver->cuMemcpyHtoD(f->weight[W], f->values, elements * sizeof(float)),
             "cuMemcpyHtoD", error));
    kernel *k = &f->requantise[__builtin_ctz((unsigned)problem.as.weight_quant.align)];
    TRY(launch(f, &problem, k, f->weight, WEIGHT_OPERANDS, error));
    TRY(download(f, t->out, elements, t->out_scales, blocks * sizeof(float), error));
    keep_nans(t);
done:
    return status;
}

hone_status device_fold_requantise(device_fold *f, const requantise_tile *t, hone_error *error)
{
    hone_status status = check_room(
        f, t->rows * t->cols, blocks_of(t->rows, t->cols, t->block_rows, t->block_cols), error);

    if (status == HONE_OK) {
        pthread_mutex_lock(&f->lock);
        status = requantise_on(f, t, error);
        pthread_mutex_unlock(&f->lock);
    }
    return status;
}
