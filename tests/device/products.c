/* products.c - see products.h. */
#include "tests/device/products.h"

#include "bench/inputs.h"
#include "bench/prove_parts.h"
#include "core/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WGMMA    "fp8_gemm/sm90_wgmma"
#define FP4      "fp8_gemm/sm90_wgmma_fp4"
#define MMA_SYNC "fp8_gemm/mma_sync"
#define SCALED   "fp8_gemm/sm120_block_scale"
#define SIZES    "fp8_gemm:m=129,n=264,k=1040,recipe="
#define ROWS     "fp8_gemm:m=129,n=264,k=1056,recipe=" /* of two codes a byte, too */
#define CONFIG(swap, m, n, rows, chunks, sets, queue, stages, pair, split, share, staged, idle,    \
               loader)                                                                             \
    "swap=" #swap " block_m=" #m " block_n=" #n " row_groups=" #rows                               \
    " column_groups=1 chunks=" #chunks " sets=" #sets " queue=" #queue " stages=" #stages          \
    " pair=" #pair " split_k=" #split " share=" #share " raster=8 staged=" #staged                 \
    " loader_registers=" #loader " residency=1 idle=" #idle
#define SYNC(m, n, warps_m, warps_n, split, promote)                                               \
    "swap=0 block_m=" #m " block_n=" #n " block_k=128 warps_m=" #warps_m " warps_n=" #warps_n      \
    " warps_k=1 split_k=" #split " stages=3 promote=" #promote " raster=8 residency=1"

const product products[] = {
    {"wgmma_128", WGMMA, SIZES "f32-1x128-128x128",
     CONFIG(0, 128, 128, 2, 1, 1, 1, 4, 1, 1, 1, 1, 1, 40)},
    {"wgmma_128_added", WGMMA, SIZES "f32-1x128-1x128,out=f32,accumulate=1",
     CONFIG(0, 64, 128, 1, 1, 1, 1, 4, 0, 1, 1, 1, 1, 40)},
    {"wgmma_32", WGMMA, SIZES "ue8m0-1x32-32x32",
     CONFIG(0, 128, 128, 2, 1, 2, 1, 4, 0, 1, 1, 1, 1, 56)},
    {"wgmma_32_queue", WGMMA, SIZES "f32-1x32-32x32,out=f32",
     CONFIG(0, 128, 192, 2, 2, 2, 2, 4, 0, 1, 1, 0, 1, 56)},
    {"wgmma_32_row", WGMMA, SIZES "f32-1x32-1x32",
     CONFIG(1, 64, 128, 2, 1, 1, 1, 4, 0, 1, 1, 1, 1, 56)},
    {"wgmma_split", WGMMA, "fp8_gemm:m=7,n=264,k=1040,recipe=f32-1x128-128x128",
     CONFIG(1, 8, 128, 2, 1, 1, 1, 4, 0, 2, 1, 0, 0, 56)},
    {"wgmma_shared", WGMMA, SIZES "f32-1x32-128x128",
     CONFIG(0, 64, 64, 1, 1, 2, 1, 4, 0, 1, 3, 1, 1, 40)},
    {"fp4_late", FP4, ROWS "f32-1x128-e2m1/ue8m0/1x32",
     "fold=0 block_m=32 block_n=128 row_groups=2 chunks=1 sets=1 joint=1 stages=4 pair=0 split_k=1 "
     "raster=8 staged=1 residency=1 idle=1"},
    {"fp4_fold", FP4, ROWS "ue8m0-1x128-e2m1/1x32",
     "fold=1 block_m=64 block_n=128 row_groups=2 chunks=1 sets=1 joint=1 stages=4 pair=0 split_k=1 "
     "raster=8 staged=1 residency=1 idle=1"},
    {"fp4_32", FP4, ROWS "ue8m0-1x32-e2m1/1x32,out=f32",
     "fold=0 block_m=16 block_n=128 row_groups=2 chunks=1 sets=2 joint=1 stages=4 pair=0 split_k=1 "
     "raster=8 staged=1 residency=1 idle=1"},
    {"sync_128", MMA_SYNC, SIZES "f32-1x128-128x128", SYNC(32, 64, 2, 2, 1, 128)},
    {"sync_32", MMA_SYNC, SIZES "ue8m0-1x32-32x32", SYNC(32, 64, 2, 2, 1, 32)},
    {"scaled_32", SCALED, ROWS "ue8m0-1x32-e2m1/1x32",
     "swap=0 block_m=64 block_n=64 block_k=128 warps_r=2 warps_c=2 stages=3 split_k=1 raster=8 "
     "residency=1"},
};
const size_t products_len = ARRAY_LEN(products);

/* What asking takes, from first to last. */
typedef struct asking {
    templates *t;
    jit *j;
    compiled *code;
    module *module;
    plan *p;
    inputs in, after;
    prove_buffers buffers;
} asking;

static void stop(asking *a)
{
    prove_buffers_close(&a->buffers);
    inputs_free_outputs(&a->after);
    inputs_free(&a->in);
    module_unload(a->module);
    compiled_free(a->code);
    jit_close(a->j);
    free(a->p);
    templates_close(a->t);
}

static hone_status find(const product *p, templates **t, const manifest **m, hone_problem *problem,
                        hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(templates_open(t, error));
    TRY(hone_problem_parse(p->problem, problem, error));
    *m = templates_find(*t, p->template);
    if (*m == NULL) {
        status = status_set(error, HONE_BAD_ARGUMENT, p->template, 0, "no such template");
    }
done:
    return status;
}

hone_status product_is_for(const product *p, const device *d, bool *serves, hone_error *error)
{
    hone_status status = HONE_OK;
    templates *t = NULL;
    const manifest *m = NULL;
    hone_problem problem;

    TRY(find(p, &t, &m, &problem, error));
    TRY(manifest_serves(m, &problem, &d->gpu.facts, serves, NULL, error));
done:
    templates_close(t);
    return status;
}

static hone_status compile(asking *a, const product *p, const device *d, hone_problem *problem,
                           hone_error *error)
{
    hone_status status = HONE_OK;
    const jit_options options = {.workers = 1, .no_cache = true};
    const manifest *m = NULL;
    jit_request request;
    char why[160] = "";
    bool legal = false;
    config chosen;

    TRY(find(p, &a->t, &m, problem, error));
    TRY(manifest_config_parse(m, p->config, &chosen, error));
    TRY(manifest_legal(m, problem, &d->gpu.facts, &chosen, &legal, why, error));
    if (!legal) {
        status = status_set(error, HONE_UNSUPPORTED, p->name, 0, "%s", why);
        goto done;
    }
    a->p = calloc(1, sizeof *a->p);
    if (a->p == NULL) {
        status = status_set(error, HONE_NO_MEMORY, p->name, 0, "a plan");
        goto done;
    }
    TRY(manifest_plan(m, problem, &d->gpu.facts, &chosen, a->p, error));
    TRY(jit_open(&options, &a->j, error));
    TRY(jit_request_plan(a->t, m, a->p, d->gpu.facts.arch, &request, error));
    TRY(jit_compile(a->j, &request, &a->code, error));
    TRY(module_load(d, a->p, a->code, &a->module, error));
done:
    return status;
}

static hone_status launch(asking *a, const device *d, const hone_problem *problem, bool late,
                          hone_error *error)
{
    enum { SEED = 11 };
    hone_status status = HONE_OK;
    const prove_launch how = {.schedule = late ? 77 : 0,
                              .timing = late ? HONE_EMU_LATEST : HONE_EMU_AT_ISSUE};
    prove_result result = {.outcome = STORE_OK};
    int hit = -1;

    TRY(inputs_make(problem, INPUTS_HOLES, SEED, &a->in, error));
    TRY(inputs_copy_outputs(&a->in, &a->after, error));
    TRY(prove_buffers_open(d, &a->in, &a->buffers, error));
    TRY(prove_buffers_reset(&a->buffers, &a->in, NULL, error));
    TRY(prove_buffers_workspace(&a->buffers, a->p->workspace_bytes, error));
    TRY(prove_launch_once(&a->buffers, a->module, a->p, &how, &result, NULL, error));
    if (result.outcome != STORE_OK) {
        status = status_set(error, HONE_DRIVER, NULL, 0, "%s", result.reason);
        goto done;
    }
    TRY(prove_buffers_read(&a->buffers, &a->after, &hit, error));
    if (hit >= 0) {
        status = status_set(error, HONE_DRIVER, NULL, 0, "a red zone was written");
    }
done:
    return status;
}

hone_status product_ask(const product *p, const device *d, bool late, golden *out,
                        hone_error *error)
{
    enum { D = 4 };
    hone_status status = HONE_OK;
    asking a = {.t = NULL};
    hone_problem problem;

    TRY(compile(&a, p, d, &problem, error));
    TRY(launch(&a, d, &problem, late, error));
    const uint32_t rows = (uint32_t)problem.as.fp8_gemm.m;
    const uint64_t bytes = a.in.operand[D].bytes;
    TRY(golden_make(p->name, rows, 1, (uint32_t)(bytes / rows / 4), out, error));
    snprintf(out->device, sizeof out->device, "%s", d->gpu.slug);
    for (uint32_t i = 0; i < rows; i++) {
        out->in[i] = i;
    }
    memcpy(out->out, a.after.image[D], bytes);
done:
    stop(&a);
    return status;
}
