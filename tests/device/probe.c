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

#define PROBE_OF(arch, name, file, cases, in, out, block, each, approximate, fill)                 \
    {                                                                                              \
        name, "device/kernels/" file, name, cases, in, out, block, each, approximate, arch, fill,  \
            NULL                                                                                   \
    }
#define PROBE(...)        PROBE_OF(0, __VA_ARGS__)
#define PROBE_GROUP(...)  PROBE_OF(90, __VA_ARGS__)
#define PROBE_SCALED(...) PROBE_OF(120, __VA_ARGS__)

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
    PROBE_GROUP("wgmma_e4m3", "matrix.cu", 32, GROUP_CASE, 512, 128, false, false, probe_fill_e4m3),
    PROBE_GROUP("wgmma_e5m2", "matrix.cu", 32, GROUP_CASE, 512, 128, false, false, probe_fill_e5m2),
    PROBE_GROUP("wgmma_bf16", "matrix.cu", 32, GROUP_CASE, 512, 128, false, false, probe_fill_bf16),
    PROBE_GROUP("wgmma_f16", "matrix.cu", 32, GROUP_CASE, 512, 128, false, false, probe_fill_f16),
    {"boxes", "device/kernels/tensor_copy.cu", "tensor_box", 18, 10, 2048, 64, false, false, 0,
     probe_fill_boxes, probe_run_boxes},
    {"narrow_boxes", "device/kernels/tensor_copy.cu", "tensor_box", 10, 10, 2048, 64, false, false,
     0, probe_fill_narrow, probe_run_boxes},
    {"ranked_boxes", "device/kernels/tensor_ranks.cu", "tensor_ranks", 60, PROBE_RANKS_WORDS, 512,
     64, false, false, 0, probe_fill_ranks, probe_run_ranks},
    {"atom_boxes", "device/kernels/tensor_ranks.cu", "tensor_ranks", 45, PROBE_RANKS_WORDS, 512, 64,
     false, false, 120, probe_fill_atoms, probe_run_ranks},
    {"wavefronts", "device/kernels/conflicts.cu", "wavefronts", 17, 2, 1, 1024, false, true, 0,
     probe_fill_conflicts, probe_run_conflicts},
    PROBE("warps_leave", "waits.cu", 15, 1, 12, 128, false, false, probe_fill_codes),
    PROBE_GROUP("registers", "waits.cu", 4, 16, 384, 384, false, false, probe_fill_random),
    PROBE_GROUP("stores_left", "waits.cu", 32, 64, 64, 32, false, false, probe_fill_random),
    PROBE_GROUP("lanes_copy", "waits.cu", 8, 64, 66, 32, false, false, probe_fill_random),
    PROBE_GROUP("wait_alone", "waits.cu", 4, 1, 2, 128, false, false, probe_fill_codes),
    PROBE_GROUP("try_wait", "waits.cu", 4, 1, 5, 32, false, true, probe_fill_codes),
    PROBE_SCALED("scales", "scales.cu", 16, 64, 128, 32, false, false, probe_fill_scales),
    PROBE_SCALED("mma_scaled", "scales.cu", 96, WARP_CASE, 128, 32, false, false, probe_fill_e4m3),
    PROBE_SCALED("mma_nvf4", "scales.cu", 96, WARP_CASE + 64, 128, 32, false, false,
                 probe_fill_e2m1),
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

bool probe_is_for(const probe *p, const device *d)
{
    return p->arch == 0 || p->arch == (int32_t)d->gpu.facts.arch;
}

hone_status probe_ask(const probe *p, const device *d, golden *out, hone_error *error)
{
    hone_status status = HONE_OK;
    compiled *code = NULL;
    CUmodule module = NULL;
    CUfunction f = NULL;
    golden g = {0};
    const driver *v = d->driver;

    if (!probe_is_for(p, d)) {
        return status_set(error, HONE_UNSUPPORTED, p->name, 0, "asks about sm_%d alone",
                          (int)p->arch);
    }
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
