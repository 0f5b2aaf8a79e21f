/* hopper_bench.c - compiles, loads and launches a kernel of tests/emulator/hopper, and says what
 * came of it. */
#include "tests/emulator/hopper_bench.h"

#include "core/status.h"
#include "tests/emulator/ptx_bench.h"
#include "tests/support/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const hopper_kernel *hopper_find(const char *name)
{
    for (size_t i = 0; i < hopper_kernels_len; i++) {
        if (strcmp(hopper_kernels[i].name, name) == 0) {
            return &hopper_kernels[i];
        }
    }
    ck_abort_msg("no kernel %s", name);
    return NULL;
}

void hopper_open(hopper_bench *b)
{
    *b = (hopper_bench){.swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
    shim_driver_start(&b->driver, "h200");
}

static char *read_text(const char *name)
{
    char path[512];
    const char *root = getenv("HONE_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/tests/emulator/hopper/%s", root != NULL ? root : ".", name);
    return file_read(path, NULL);
}

char *hopper_source(const hopper_kernel *k)
{
    char *shared = read_text("hopper.cuh"), *own = read_text(k->file), *text = NULL;
    ck_assert_int_gt(asprintf(&text, "%s%s", shared, own), 0);
    free(shared);
    free(own);
    return text;
}

bool hopper_load(hopper_bench *b, const hopper_kernel *k, const char *source)
{
    const char *options[] = {"-arch=sm_90a", "-lineinfo", k->option, NULL};
    char log[4096] = "";
    CUjit_option jit[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    char *ptx = ptx_bench_compile(source, options);
    if (ptx == NULL) {
        return false;
    }
    CUresult result = b->driver.cuModuleLoadDataEx(&b->module, ptx, 2, jit, values);
    free(ptx);
    ck_assert_msg(result == CUDA_SUCCESS, "%s does not load (%d): %s", k->name, (int)result, log);
    return true;
}

void hopper_unload(hopper_bench *b)
{
    SHIM_OK(&b->driver, cuModuleUnload(b->module));
    b->module = NULL;
}

/* Keeps the first failure. */
static bool failed(hopper_bench *b, CUresult result)
{
    hopper_outcome *o = b->out;
    if (result != CUDA_SUCCESS && o->result == CUDA_SUCCESS) {
        o->result = result;
        b->driver.emu->last_fault(0, &o->fault, NULL);
        snprintf(o->text, sizeof o->text, "%s: %.180s (line %d)",
                 o->fault.kind[0] != '\0' ? o->fault.kind : "refused", o->fault.message,
                 o->fault.ptx_line);
    }
    return o->result != CUDA_SUCCESS;
}

hopper_outcome hopper_run(hopper_bench *b, const hopper_kernel *k, uint64_t seed,
                          hone_emu_timing timing)
{
    hopper_outcome out = {.digest = 0};
    const hone_emu_api *emu = b->driver.emu;
    ck_assert_int_eq(emu->set_schedule(0, seed, NULL), HONE_OK);
    ck_assert_int_eq(emu->set_timing(0, timing, NULL), HONE_OK);
    ck_assert_int_eq(emu->set_checks(0, HONE_EMU_CHECK_ALL, NULL), HONE_OK);
    ck_assert_int_eq(emu->reset(0, NULL), HONE_OK);
    b->out = &out;
    b->buffers_len = 0;
    k->run(b);
    ck_assert_int_eq(emu->reset(0, NULL), HONE_OK);
    for (size_t i = 0; i < b->buffers_len; i++) {
        SHIM_OK(&b->driver, cuMemFree(b->buffers[i]));
    }
    b->out = NULL;
    return out;
}

CUdeviceptr hopper_buffer(hopper_bench *b, const void *content, size_t bytes)
{
    CUdeviceptr at = 0;
    if (failed(b, b->driver.cuMemAlloc(&at, bytes))) {
        return 0;
    }
    ck_assert_uint_lt(b->buffers_len, ARRAY_LEN(b->buffers));
    b->buffers[b->buffers_len++] = at;
    failed(b, content != NULL ? b->driver.cuMemcpyHtoD(at, content, bytes)
                              : b->driver.cuMemsetD8(at, 0, bytes));
    return at;
}

CUtensorMap hopper_map(hopper_bench *b, const hopper_box *box)
{
    CUtensorMap map = {0};
    const cuuint64_t dims[] = {box->cols, box->rows}, pitch[] = {box->pitch};
    const cuuint32_t sizes[] = {box->box_cols, box->box_rows}, steps[] = {1, 1};
    failed(b, b->driver.cuTensorMapEncodeTiled(
                  &map, box->type, 2, (void *)(uintptr_t)box->at, dims, pitch, sizes, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE,
                  box->swizzled ? b->swizzle : CU_TENSOR_MAP_SWIZZLE_NONE,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return map;
}

void hopper_start(hopper_bench *b, const hopper_launch *launch)
{
    CUlaunchAttribute attributes[2];
    CUfunction f = NULL;
    unsigned len = 0;
    if (failed(b, b->driver.cuModuleGetFunction(&f, b->module, launch->entry)) ||
        failed(b, b->driver.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                               (int)launch->shared))) {
        return;
    }
    if (launch->cluster != 0) {
        attributes[len] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
        attributes[len].value.clusterDim.x = launch->cluster;
        attributes[len].value.clusterDim.y = attributes[len].value.clusterDim.z = 1;
        len++;
    }
    if (launch->dependent) {
        attributes[len] =
            (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
        attributes[len++].value.programmaticStreamSerializationAllowed = 1;
    }
    const CUlaunchConfig config = {
        .gridDimX = launch->grid[0],
        .gridDimY = launch->grid[1],
        .gridDimZ = launch->grid[2],
        .blockDimX = launch->threads,
        .blockDimY = 1,
        .blockDimZ = 1,
        .sharedMemBytes = launch->shared,
        .attrs = attributes,
        .numAttrs = len,
    };
    failed(b, b->driver.cuLaunchKernelEx(&config, f, launch->params, NULL));
}

void hopper_compare(hopper_bench *b, CUdeviceptr from, const void *expected, size_t bytes)
{
    hopper_outcome *o = b->out;
    const uint8_t *wanted = expected;
    uint8_t *got = malloc(bytes);
    size_t bad = 0, first = 0;
    o->digest = UINT64_C(0xcbf29ce484222325);
    if (failed(b, b->driver.cuCtxSynchronize()) ||
        failed(b, b->driver.cuMemcpyDtoH(got, from, bytes))) {
        free(got);
        return;
    }
    for (size_t i = bytes; i-- > 0;) {
        o->digest = (o->digest ^ got[i]) * UINT64_C(0x100000001b3);
        first = got[i] != wanted[i] ? i : first;
        bad += got[i] != wanted[i];
    }
    if (bad != 0) {
        o->wrong = true;
        snprintf(o->text, sizeof o->text, "%zu of %zu bytes are wrong, the first at %zu", bad,
                 bytes, first);
    }
    free(got);
}

int hopper_number(uint64_t index, int limit)
{
    uint64_t x = (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return (int)((x >> 33) % (uint64_t)(2 * limit + 1)) - limit;
}

uint8_t hopper_e4m3(int small)
{
    static const uint8_t codes[] = {0x00, 0x38, 0x40, 0x44, 0x48};
    return (uint8_t)(codes[abs(small)] | (small < 0 ? 0x80 : 0));
}

uint16_t hopper_f16(int small)
{
    static const uint16_t codes[] = {0x0000, 0x3c00, 0x4000, 0x4200, 0x4400};
    return (uint16_t)(codes[abs(small)] | (small < 0 ? 0x8000 : 0));
}

uint16_t hopper_bf16(float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
