/* probe.c - the table of probes, and how a device is asked. */
#include "tests/device/probe.h"

#include "core/embedded.h"
#include "runtime/jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const embedded_file probe_kernels[];

/* Words of a case: fragments of a warp; tiles of a warpgroup and its accumulators. */
enum { WARP_CASE = 320, GROUP_CASE = 64 * 8 + 8 * 8 + 512 };

#define PROBE(name, file, cases, in, out, block, each, approximate, fill)                          \
    {                                                                                              \
        name, "device/kernels/" file, name, cases, in, out, block, each, approximate, fill, NULL   \
    }

/* As many cases as keep an answer's file below half a megabyte: it is to lie among the sources. */
const probe probes[] = {
    PROBE("convert", "scalar.cu", 1 << 13, 1, 6, 128, true, false, probe_fill_numbers),
    PROBE("widen", "scalar.cu", 1 << 14, 1, 2, 128, true, false, probe_fill_codes),
    PROBE("approximate", "scalar.cu", 1 << 12, 1, 9, 128, true, true, probe_fill_numbers),
    PROBE("edges", "scalar.cu", 1 << 12, 1, 10, 128, true, false, probe_fill_numbers),
    PROBE("lanes", "warp.cu", 64, 32, 416, 32, false, false, probe_fill_random),
    PROBE("matrices", "warp.cu", 8, 128, 512, 32, false, false, probe_fill_random),
    PROBE("mbarriers", "warp.cu", 16, 1, 32, 32, false, false, probe_fill_codes),
    PROBE("mma_e4m3", "matrix.cu", 96, WARP_CASE, 128, 32, false, false, probe_fill_e4m3),
    PROBE("mma_e5m2", "matrix.cu", 96, WARP_CASE, 128, 32, false, false, probe_fill_e5m2),
    PROBE("mma_mixed", "matrix.cu", 96, WARP_CASE, 128, 32, false, false, probe_fill_random),
    PROBE("mma_bf16", "matrix.cu", 96, WARP_CASE, 128, 32, false, false, probe_fill_bf16),
    PROBE("mma_f16", "matrix.cu", 96, WARP_CASE, 128, 32, false, false, probe_fill_f16),
    PROBE("wgmma_e4m3", "matrix.cu", 32, GROUP_CASE, 512, 128, false, false, probe_fill_e4m3),
    PROBE("wgmma_e5m2", "matrix.cu", 32, GROUP_CASE, 512, 128, false, false, probe_fill_e5m2),
    PROBE("wgmma_bf16", "matrix.cu", 32, GROUP_CASE, 512, 128, false, false, probe_fill_bf16),
    PROBE("wgmma_f16", "matrix.cu", 32, GROUP_CASE, 512, 128, false, false, probe_fill_f16),
    {"boxes", "device/kernels/tensor_copy.cu", "tensor_box", 18, 10, 2048, 64, false, false,
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

static hone_status compile(const probe *p, const device *d, compiled **out, hone_error *error)
{
    hone_status status = HONE_OK;
    jit *j = NULL;
    const jit_options options = {.workers = 1, .no_cache = true};
    const jit_request request = {
        .source = {.source = embedded_find(probe_kernels, p->file)->bytes},
        .name = p->name,
        .entries = {p->kernel},
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
