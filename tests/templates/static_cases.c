/* static_cases.c - see static_cases.h. */
#include "tests/templates/static_cases.h"

#include "core/problem.h"

#include <stdio.h>
#include <stdlib.h>

#define WARPS 8 /* of two warpgroups */

/* Both tiles of a recipe. Promotion each 32 of K takes 160 columns in two chunks, since two sets of
 * 160 would not fit; a scale for each column takes a loader with more registers. */
#define PER_128(recipe, more, loader)                                                              \
    {recipe, more, 128, 128, 1, 1, loader},                                                        \
    {                                                                                              \
        recipe, more, 128, 160, 1, 1, loader                                                       \
    }
#define PER_32(recipe, sets, loader, loader_160)                                                   \
    {recipe, "", 128, 128, 1, sets, loader},                                                       \
    {                                                                                              \
        recipe, "", 128, 160, 2, 2, loader_160                                                     \
    }

const static_case static_cases[] = {
    PER_128("f32-1x128-128x128", "", 40),
    PER_128("f32-1x128-128x128", ",out=f32", 40),
    PER_128("f32-1x128-128x128", ",out=f32,accumulate=1", 40),
    PER_128("f32-1x128-1x128", "", 56),
    PER_128("f32-1x128-1x128", ",out=f32", 56),
    PER_128("f32-1x128-1x128", ",out=f32,accumulate=1", 56),
    PER_32("f32-1x32-32x32", 2, 56, 56),
    PER_32("ue8m0-1x32-32x32", 2, 40, 40),
    PER_32("f32-1x32-128x128", 2, 56, 56),
    PER_32("ue8m0-1x32-128x128", 2, 40, 40),
    PER_32("f32-1x32-1x32", 1, 88, 88),
    PER_32("ue8m0-1x32-1x32", 1, 56, 56),
    PER_32("f32-1x128-1x32", 1, 88, 88),
    PER_32("ue8m0-1x128-1x32", 1, 56, 56),
};
const size_t static_cases_len = ARRAY_LEN(static_cases);

static hone_status make_plan(const static_case *c, const manifest *m, char config_text[400],
                             plan *out, hone_error *error)
{
    hone_status status = HONE_OK;
    char text[200], why[160] = "";
    hone_problem problem;
    config chosen;
    bool legal = false;
    gpu g;

    snprintf(text, sizeof text, "fp8_gemm:m=4096,n=7168,k=2048,recipe=%s%s", c->recipe, c->more);
    /* Tiles of f32 leave no room to be staged beside four stages. */
    snprintf(config_text, 400,
             "swap=0 block_m=%d block_n=%d row_groups=2 column_groups=1 chunks=%d sets=%d queue=1 "
             "stages=4 pair=0 split_k=1 share=1 raster=8 staged=%d loader_registers=%d residency=1 "
             "idle=1",
             c->rows, c->columns, c->chunks, c->sets, c->more[0] == '\0', c->loader_registers);
    TRY(gpu_find("h200", &g, error));
    TRY(hone_problem_parse(text, &problem, error));
    TRY(manifest_config_parse(m, config_text, &chosen, error));
    TRY(manifest_legal(m, &problem, &g.facts, &chosen, &legal, why, error));
    if (!legal) {
        status = status_set(error, HONE_UNSUPPORTED, text, 0, "%s: %s", config_text, why);
        goto done;
    }
    TRY(manifest_plan(m, &problem, &g.facts, &chosen, out, error));
done:
    return status;
}

hone_status static_compile(const static_case *c, const templates *t, jit *j, static_answer *out,
                           hone_error *error)
{
    hone_status status = HONE_OK;
    static_answer made = {.code = NULL};
    const manifest *m = templates_find(t, STATIC_TEMPLATE);
    plan *p = calloc(1, sizeof *p);
    jit_request request;

    if (p == NULL || m == NULL) {
        status = status_set(error, HONE_UNKNOWN, STATIC_TEMPLATE, 0, "no such template");
        goto done;
    }
    TRY(make_plan(c, m, made.config, p, error));
    TRY(jit_request_plan(t, m, p, 90, &request, error));
    TRY(jit_compile(j, &request, &made.code, error));
    TRY(sass_read(made.code->cubin, made.code->cubin_len, made.code->kernels[0].lowered, &made.sass,
                  error));
    *out = made;
    made = (static_answer){.code = NULL};
done:
    static_answer_free(&made);
    free(p);
    return status;
}

void static_answer_free(static_answer *a)
{
    compiled_free(a->code);
    sass_function_free(&a->sass);
    a->code = NULL;
}

double static_instructions(const static_case *c, const sass_count *loop)
{
    const double macs = 128.0 * c->rows * c->columns / WARPS;

    return loop->instructions * macs / sass_macs(loop);
}
