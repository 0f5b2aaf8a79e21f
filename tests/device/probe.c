/* probe.c - the table of probes, and how a device is asked. */
#include "tests/device/probe.h"

#include "core/embedded.h"
#include "runtime/jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const embedded_file probe_kernels[];

enum { WARP_CASE = 320, GROUP_E = 64 * 8 + 8 * 8 + 512 };

const probe probes[] = {
    {"convert", "device/kernels/scalar.cu", NULL, 1 << 16, 1, 6, 128, true, false,
     probe_fill_numbers, NULL},
    {"widen", "device/kernels/scalar.cu", NULL, 1 << 16, 1, 2, 128, true, false, probe_fill_codes,
     NULL},
    {"approximate", "device/kernels/scalar.cu", NULL, 1 << 15, 1, 9, 128, true, true,
     probe_fill_numbers, NULL},
    {"edges", "device/kernels/scalar.cu", NULL, 1 << 13, 1, 10, 128, true, false,
     probe_fill_numbers, NULL},
    {"lanes", "device/kernels/warp.cu", NULL, 64, 32, 416, 32, false, false, probe_fill_random,
     NULL},
    {"matrices", "device/kernels/warp.cu", NULL, 8, 128, 512, 32, false, false, probe_fill_random,
     NULL},
    {"mbarriers", "device/kernels/warp.cu", NULL, 16, 1, 32, 32, false, false, probe_fill_codes,
     NULL},
    {"mma_e4m3", "device/kernels/matrix.cu", NULL, 256, WARP_CASE, 128, 32, false, false,
     probe_fill_e4m3, NULL},
    {"mma_e5m2", "device/kernels/matrix.cu", NULL, 256, WARP_CASE, 128, 32, false, false,
     probe_fill_e5m2, NULL},
    {"mma_mixed", "device/kernels/matrix.cu", NULL, 128, WARP_CASE, 128, 32, false, false,
     probe_fill_random, NULL},
    {"mma_bf16", "device/kernels/matrix.cu", NULL, 256, WARP_CASE, 128, 32, false, false,
     probe_fill_bf16, NULL},
    {"mma_f16", "device/kernels/matrix.cu", NULL, 256, WARP_CASE, 128, 32, false, false,
     probe_fill_f16, NULL},
    {"wgmma_e4m3", "device/kernels/matrix.cu", NULL, 128, GROUP_E, 512, 128, false, false,
     probe_fill_e4m3, NULL},
    {"wgmma_e5m2", "device/kernels/matrix.cu", NULL, 128, GROUP_E, 512, 128, false, false,
     probe_fill_e5m2, NULL},
    {"wgmma_bf16", "device/kernels/matrix.cu", NULL, 128, GROUP_E, 512, 128, false, false,
     probe_fill_bf16, NULL},
    {"wgmma_f16", "device/kernels/matrix.cu", NULL, 128, GROUP_E, 512, 128, false, false,
     probe_fill_f16, NULL},
    {"boxes", "device/kernels/tensor_copy.cu", "tensor_box", 18, 10, 4096, 64, false, false,
     probe_fill_boxes, probe_run_boxes},
};
const size_t probes_len = ARRAY_LEN(probes);

const probe *probe_find(const char *name)
{
    for (size_t n = 0; n < probes_len; n++) {
        if (strcmp(probes[n].name, name) == 0) {
            return &probes[n];
        }
    }
    return NULL;
}

static const char *kernel_of(const probe *p)
{
    return p->kernel != NULL ? p->kernel : p->name;
}

static hone_status compile(const probe *p, const device *d, compiled **out, hone_error *error)
{
    hone_status status = HONE_OK;
    jit *j = NULL;
    const jit_options options = {.workers = 1, .no_cache = true};
    const jit_request request = {
        .source = {.source = embedded_find(probe_kernels, p->file)->bytes},
        .name = p->name,
        .entries = {kernel_of(p)},
        .entries_len = 1,
        .arch = d->gpu.facts.arch,
    };

    TRY(jit_open(&options, &j, error));
    TRY(jit_compile(j, &request, out, error));
done:
    jit_close(j);
    return status;
}

static hone_status run_words(const probe *p, const device *d, CUfunction f, golden *g,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *v = d->driver;
    size_t in_bytes = (size_t)p->cases * p->in_each * 4,
           out_bytes = (size_t)p->cases * p->out_each * 4;
    uint32_t grid = p->thread_each ? (p->cases + p->block - 1) / p->block : p->cases;
    CUdeviceptr in = 0, out = 0;
    int cases = (int)p->cases;
    void *params[] = {&in, &out, &cases};

    TRY(driver_check(v, v->cuMemAlloc(&in, in_bytes), "cuMemAlloc", error));
    TRY(driver_check(v, v->cuMemAlloc(&out, out_bytes), "cuMemAlloc", error));
    TRY(driver_check(v, v->cuMemcpyHtoD(in, g->in, in_bytes), "cuMemcpyHtoD", error));
    TRY(driver_check(v, v->cuLaunchKernel(f, grid, 1, 1, p->block, 1, 1, 0, NULL, params, NULL),
                     "cuLaunchKernel", error));
    TRY(driver_check(v, v->cuCtxSynchronize(), "cuCtxSynchronize", error));
    TRY(driver_check(v, v->cuMemcpyDtoH(g->out, out, out_bytes), "cuMemcpyDtoH", error));
done:
    v->cuMemFree(in);
    v->cuMemFree(out);
    return status;
}

/* What the emulator has to say of a launch that failed. */
static hone_status explain(const device *d, hone_status status, hone_error *error)
{
    hone_emu_fault fault = {0};

    if (d->driver->emu != NULL &&
        d->driver->emu->last_fault((int)d->ordinal, &fault, NULL) == HONE_OK && fault.result != 0) {
        return status_set(error, status, fault.kernel, fault.ptx_line, "%s: %s", fault.kind,
                          fault.message);
    }
    return status;
}

hone_status probe_ask(const probe *p, const device *d, golden *out, hone_error *error)
{
    hone_status status = HONE_OK;
    compiled *code = NULL;
    CUmodule module = NULL;
    CUfunction f = NULL;
    golden g = {0};
    const driver *v = d->driver;

    TRY(golden_make(p->name, p->cases, p->in_each, p->out_each, &g, error));
    snprintf(g.device, sizeof g.device, "%.63s", d->gpu.facts.name);
    p->fill(p, g.in);
    TRY(compile(p, d, &code, error));
    TRY(driver_check(
        v, v->cuModuleLoadDataEx(&module, v->emu != NULL ? code->ptx : code->cubin, 0, NULL, NULL),
        "cuModuleLoadDataEx", error));
    TRY(driver_check(v, v->cuModuleGetFunction(&f, module, code->kernels[0].lowered),
                     "cuModuleGetFunction", error));
    status = p->run != NULL ? p->run(p, d, f, &g, error) : run_words(p, d, f, &g, error);
    if (status != HONE_OK) {
        status = explain(d, status, error);
        goto done;
    }
    *out = g;
    g = (golden){0};
done:
    if (module != NULL) {
        v->cuModuleUnload(module);
    }
    compiled_free(code);
    golden_free(&g);
    return status;
}
