/* test_static.c - how fast a product can be is decided when it is compiled: no spill, no
 * local memory, no remark of ptxas, products in the main loop, and no more instructions than the
 * pipes bear. Then draws that cover the space: what survives pruning is clean in its machine code
 * too. HONE_KERNEL_DRAWS asks for that many compiles of each problem. */
#include "tests/templates/kernels.h"
#include "tests/templates/static_cases.h"

#include "core/problem.h"
#include "templates/space.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kernels shared;

/* Whether B has a scale for each row: then each element's promotion takes a product of two scales.
 */
static bool has_column_scales(const static_case *c)
{
    return strncmp(strrchr(c->recipe, '-'), "-1x", 3) == 0;
}

static int promotions(const static_case *c)
{
    return strstr(c->recipe, "x32") != NULL ? 4 : 1; /* in 128 of K */
}

START_TEST(a_tile_of_each_recipe_is_clean)
{
    const static_case *c = &static_cases[_i];
    static_answer a = {.code = NULL};
    hone_error error = {.status = HONE_OK};
    char why[400];

    ck_assert_msg(static_compile(c, shared.templates, shared.compiler, &a, &error) == HONE_OK,
                  "%s%s %dx%d: %s", c->recipe, c->more, c->rows, c->columns, error.message);
    ck_assert_msg(!compiled_flaw(a.code, why, sizeof why), "%s%s %s: %s", c->recipe, c->more,
                  a.config, why);
    ck_assert_uint_eq(a.sass.all.kinds[SASS_LOCAL], 0);
    const sass_loop *l = sass_main_loop(&a.sass);
    ck_assert_msg(l != NULL && l->count.kinds[SASS_GMMA] > 0, "%s: no wgmma in a loop", c->recipe);
    /* A warp's share of the tile: 16 rows of an m64 tile, each element promoted by one FFMA. */
    const double passes = static_instructions(c, &l->count) / l->count.instructions;
    const double elements = c->rows * c->columns / 256.0;
    ck_assert_double_eq(l->count.kinds[SASS_FFMA] * passes, promotions(c) * elements);
    ck_assert_double_le(l->count.kinds[SASS_FMUL] * passes,
                        promotions(c) * elements * (has_column_scales(c) ? 1 : 0.25));
    ck_assert_double_eq(l->count.kinds[SASS_GMMA] * passes, 4 * c->chunks);
    /* Beside arithmetic and scales: barriers, descriptors, the ring. */
    const double rest = (l->count.instructions - l->count.kinds[SASS_FFMA] -
                         l->count.kinds[SASS_FMUL] - l->count.kinds[SASS_LDS]) *
                        passes;
    ck_assert_msg(rest <= 90, "%s%s: %.0f other instructions", c->recipe, c->more, rest);
    static_answer_free(&a);
}
END_TEST

/* ---- Draws ----------------------------------------------------------------------------------- */

#define FP4     STATIC_TEMPLATE "_fp4"
#define MOE     "moe_gemm/sm90_wgmma"
#define SYNC    "moe_gemm/mma_sync"
#define SCALED  "moe_gemm/sm120_block_scale"
#define EXPERTS "moe_gemm:n=4096,k=7168,experts=32,tokens=512,topk=8,"
#define PAGED   "mqa_logits_paged:batch=64,width=32768,pages=8193,"
#define GRADIENT                                                                                   \
    "moe_gemm:group_layout=grouped_k,out=f32,m=4096,n=7168,k=8192,experts=32,tokens=512,"
static const struct {
    const char *template_name, *problem;
    const char *gpu; /* NULL: an H200 */
} drawn[] = {
    {STATIC_TEMPLATE, "fp8_gemm:m=4096,n=7168,k=2048,recipe=f32-1x128-128x128", NULL},
    {STATIC_TEMPLATE, "fp8_gemm:m=16,n=7168,k=2048,recipe=f32-1x128-1x128,out=f32,accumulate=1",
     NULL},
    {STATIC_TEMPLATE, "fp8_gemm:m=4096,n=7168,k=2048,recipe=ue8m0-1x32-32x32", NULL},
    {STATIC_TEMPLATE, "fp8_gemm:m=64,n=4096,k=7168,recipe=f32-1x32-128x128", NULL},
    {STATIC_TEMPLATE, "fp8_gemm:m=512,n=4096,k=7168,recipe=ue8m0-1x32-1x32", NULL},
    {FP4, "fp8_gemm:m=16,n=4096,k=7168,recipe=f32-1x128-e2m1/ue8m0/1x32", NULL},
    {FP4, "fp8_gemm:m=512,n=7168,k=2048,recipe=ue8m0-1x128-e2m1/1x32,out=f32,accumulate=1", NULL},
    {FP4, "fp8_gemm:m=64,n=7168,k=2048,recipe=ue8m0-1x32-e2m1/1x32", NULL},
    {FP4, "fp8_gemm:m=512,n=4096,k=7168,recipe=f32-1x32-e2m1/32x32", NULL},
    {MOE, EXPERTS "recipe=f32-1x128-128x128,group_layout=contiguous", NULL},
    {MOE, EXPERTS "recipe=ue8m0-1x32-32x32,group_layout=masked", NULL},
    {MOE, EXPERTS "recipe=f32-1x32-1x32,group_layout=psum,out=f32", NULL},
    {MOE "_gated",
     EXPERTS "recipe=f32-1x128-128x128,group_layout=contiguous,activation=silu_mul,"
             "out=e4m3,out_group=128,out_scale=f32",
     NULL},
    {MOE "_gated",
     EXPERTS "recipe=ue8m0-1x32-32x32,group_layout=masked,activation=silu_mul_v4,"
             "out=e4m3,out_group=32",
     NULL},
    {MOE "_gated", EXPERTS "recipe=ue8m0-1x32-1x32,group_layout=psum,activation=silu_mul", NULL},
    {MOE "_fp4", EXPERTS "recipe=ue8m0-1x32-e2m1/1x32,group_layout=masked", NULL},
    {MOE "_fp4_gated",
     EXPERTS "recipe=f32-1x128-e2m1/ue8m0/1x32,group_layout=contiguous,"
             "activation=silu_mul_v4,out=e4m3,out_group=128",
     NULL},
    {MOE "_fp4_gated",
     EXPERTS "recipe=ue8m0-1x32-e2m1/1x32,group_layout=psum,"
             "activation=silu_mul_v4,out=e4m3,out_group=32",
     NULL},
    {MOE "_k", GRADIENT "recipe=f32-1x128-1x128", NULL},
    {MOE "_k", GRADIENT "recipe=f32-1x32-1x32,accumulate=1", NULL},
    {SYNC, EXPERTS "recipe=f32-1x128-128x128,group_layout=contiguous", "rtx4090"},
    {SYNC,
     EXPERTS "recipe=ue8m0-1x32-e2m1/1x32,group_layout=masked,activation=silu_mul_v4,"
             "out=e4m3,out_group=32",
     "rtx4090"},
    {SYNC "_k", GRADIENT "recipe=f32-1x128-1x128", "rtx4090"},
    {SCALED, EXPERTS "recipe=ue8m0-1x32-e2m1/1x32,group_layout=psum", "rtx5090"},
    {SCALED,
     EXPERTS "recipe=ue8m0-1x32-32x32,group_layout=masked,activation=silu_mul_v4,"
             "out=e4m3,out_group=32",
     "rtx5090"},
    {"mqa_logits/sm90_wgmma", "mqa_logits:tokens=2048,keys=8192,heads=64", NULL},
    {"mqa_logits/sm90_wgmma",
     "mqa_logits:tokens=2048,keys=8192,heads=32,dims=64,element=e2m1,clean=1,out=bf16", NULL},
    {"mqa_logits_paged/sm90_wgmma", PAGED "next_n=6,heads=32,record=index_132-split-pow2_amax",
     NULL},
    {"mqa_logits_paged/sm90_wgmma", PAGED "heads=32,record=index_68-split-pow2_amax", NULL},
    {"mqa_logits_paged/sm90_wgmma", PAGED "next_n=4,heads=64,record=index_68-split-pow2_amax",
     NULL},
    {"mqa_logits/mma_sync", "mqa_logits:tokens=2048,keys=8192,heads=64,span=compressed", "rtx4090"},
    {"mqa_logits/mma_sync", "mqa_logits:tokens=2048,keys=8192,heads=32,element=e2m1", "rtx4090"},
    {"mqa_logits_paged/mma_sync", PAGED "next_n=2,heads=64,record=index_132-split-pow2_amax",
     "rtx4090"},
    {"mqa_logits_paged/mma_sync", PAGED "heads=32,record=index_68-split-pow2_amax", "rtx4090"},
    {"mqa_logits/sm120_block_scale", "mqa_logits:tokens=2048,keys=8192,heads=64,element=e2m1",
     "rtx5090"},
    {"mqa_logits_paged/sm120_block_scale",
     PAGED "next_n=6,heads=32,record=index_68-split-pow2_amax", "rtx5090"},
};

/* Scores have a second loop of products, for keys whose scales do not fold. */
static bool some_loop_has(const sass_function *f, sass_kind products)
{
    bool has = false;

    for (size_t i = 0; i < f->loops_len; i++) {
        has = has || f->loops[i].count.kinds[products] > 0;
    }
    return has;
}

/* Compile one drawn config; whether ptxas has nothing against it. Clean code must be clean in its
 * words, and multiply in a loop. */
static bool check_draw(const manifest *m, const hone_problem *problem, const gpu *g,
                       const config *c)
{
    hone_error error = {.status = HONE_OK};
    sass_function f = {.loops = NULL};
    plan *p = calloc(1, sizeof *p);
    jit_request request;
    compiled *code = NULL;

    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(manifest_plan(m, problem, &g->facts, c, p, &error), HONE_OK);
    ck_assert_int_eq(jit_request_plan(shared.templates, m, p, g->facts.arch, &request, &error),
                     HONE_OK);
    ck_assert_msg(jit_compile(shared.compiler, &request, &code, &error) == HONE_OK, "%s: %s",
                  p->launches[0].entry, error.message);
    const bool clean = !compiled_flaw(code, NULL, 0);
    const sass_kind products = g->facts.arch == 90 ? SASS_GMMA : SASS_MMA;
    ck_assert_msg(sass_read(code->cubin, code->cubin_len, code->kernels[0].lowered, &f, &error) ==
                      HONE_OK,
                  "%s", error.message);
    ck_assert_msg(!clean || (f.all.kinds[SASS_LOCAL] == 0 && some_loop_has(&f, products)), "%s",
                  p->launches[0].entry);
    sass_function_free(&f);
    compiled_free(code);
    free(p);
    return clean;
}

/* The same of a kernel that multiplies nothing: each launch's kernel. */
static void check_plain(const manifest *m, const hone_problem *problem, const gpu *g,
                        const config *c)
{
    hone_error error = {.status = HONE_OK};
    plan *p = calloc(1, sizeof *p);
    jit_request request;
    compiled *code = NULL;
    char why[400] = "";

    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(manifest_plan(m, problem, &g->facts, c, p, &error), HONE_OK);
    ck_assert_int_eq(jit_request_plan(shared.templates, m, p, g->facts.arch, &request, &error),
                     HONE_OK);
    ck_assert_msg(jit_compile(shared.compiler, &request, &code, &error) == HONE_OK, "%s: %s",
                  p->launches[0].entry, error.message);
    ck_assert_msg(!compiled_flaw(code, why, sizeof why), "%s: %s", p->launches[0].entry, why);
    for (uint32_t i = 0; i < p->launches_len; i++) {
        sass_function f = {.loops = NULL};
        ck_assert_msg(sass_read(code->cubin, code->cubin_len, code->kernels[i].lowered, &f,
                                &error) == HONE_OK,
                      "%s", error.message);
        ck_assert_msg(f.all.kinds[SASS_LOCAL] == 0 && code->kernels[i].stack_bytes == 0, "%s",
                      p->launches[i].entry);
        sass_function_free(&f);
    }
    compiled_free(code);
    free(p);
}

/* Which values of which parameters were seen, a bit each. */
typedef struct coverage {
    uint32_t seen[MANIFEST_MAX_PARAMS];
} coverage;

/* Note a config's values; whether one of them is new. */
static bool cover(coverage *all, const manifest *m, const config *c)
{
    bool any = false;

    for (uint32_t i = 0; i < c->len; i++) {
        const int64_t *values;
        const uint32_t len = manifest_param_values(m, i, &values);
        for (uint32_t v = 0; v < len && v < 32; v++) {
            const uint32_t bit = values[v] == c->value[i] ? UINT32_C(1) << v : 0;
            any = any || (bit & ~all->seen[i]) != 0;
            all->seen[i] |= bit;
        }
    }
    return any;
}

/* Of a long row of draws those are compiled that have a value which no clean one before had. */
START_TEST(what_survives_pruning_is_clean)
{
    enum { DRAWS = 1000 };
    const char *asked = getenv("HONE_KERNEL_DRAWS");
    /* Fewer of those that share a pipeline with what was drawn before. */
    const int usual =
        strstr(drawn[_i].problem, "grouped_k") != NULL || drawn[_i].gpu != NULL ? 4 : 8;
    const int most = asked != NULL ? atoi(asked) : usual;
    hone_error error = {.status = HONE_OK};
    hone_problem problem;
    coverage covered = {{0}};
    space *s = NULL;
    uint64_t seed = 5 + (uint64_t)_i;
    int clean = 0, tried = 0;
    gpu g;

    ck_assert_int_eq(hone_problem_parse(drawn[_i].problem, &problem, &error), HONE_OK);
    ck_assert_int_eq(gpu_find(drawn[_i].gpu != NULL ? drawn[_i].gpu : "h200", &g, &error), HONE_OK);
    const manifest *m = templates_find(shared.templates, drawn[_i].template_name);
    ck_assert_int_eq(space_open(m, &problem, &g.facts, &s, &error), HONE_OK);
    for (int i = 0; i < DRAWS && tried < most; i++) {
        config c;
        bool found = false, uniform = false;
        coverage with = covered;
        ck_assert_int_eq(space_draw(s, &seed, 0, &c, &found, &uniform, &error), HONE_OK);
        ck_assert(found);
        if (!cover(&with, m, &c)) {
            continue;
        }
        tried++;
        if (check_draw(m, &problem, &g, &c)) {
            covered = with;
            clean++;
        }
    }
    ck_assert_msg(2 * clean + 1 >= tried, "%s: %d of %d survive", drawn[_i].problem, clean, tried);
    space_close(s);
}
END_TEST

/* ---- Kernels without products ----------------------------------------------------------------
 */

/* An indexer's choice and what makes its queries and keys ready: every config is clean. */
static const struct {
    const char *template_name, *problem, *gpu;
} plain[] = {
    {"topk/rows", "topk:rows=64,width=131072,k=512", "h200"},
    {"topk/rows", "topk:rows=64,width=131072,k=2048,span=both,in=bf16,sort=by_score", "h200"},
    {"topk/rows", "topk:rows=64,width=131072,k=2048,pick=blocked,block=8,pin=1,drop=1", "h200"},
    {"topk/rows", "topk:rows=64,width=16384,k=512,span=compressed,pick=listed,block=8", "h200"},
    {"topk/rows", "topk:rows=1,width=1048576,k=705,span=both", "rtx4090"},
    {"topk/rows", "topk:rows=4096,width=1048576,k=4096,in=bf16", "rtx4090"},
    {"topk/rows", "topk:rows=64,width=65536,k=512,pick=listed,block=8,sort=by_score", "rtx5090"},
    {"index_prepare/rows",
     "index_prepare:tokens=64,pages=64,heads=64,hadamard=1,record=index_132-split-pow2_amax",
     "h200"},
    {"index_prepare/rows",
     "index_prepare:tokens=64,pages=64,heads=32,rope=last,pairs=halves,record=index_68-split-pow2_"
     "amax",
     "rtx4090"},
};

/* Nothing spilled, no local memory, no remark. */
START_TEST(a_kernel_without_products_is_clean)
{
    enum { DRAWS = 1000 };
    const char *asked = getenv("HONE_KERNEL_DRAWS");
    const int most = asked != NULL ? atoi(asked) : 6;
    hone_error error = {.status = HONE_OK};
    hone_problem problem;
    coverage covered = {{0}};
    space *s = NULL;
    uint64_t seed = 9 + (uint64_t)_i;
    int tried = 0;
    gpu g;

    ck_assert_int_eq(hone_problem_parse(plain[_i].problem, &problem, &error), HONE_OK);
    ck_assert_int_eq(gpu_find(plain[_i].gpu, &g, &error), HONE_OK);
    const manifest *m = templates_find(shared.templates, plain[_i].template_name);
    ck_assert_int_eq(space_open(m, &problem, &g.facts, &s, &error), HONE_OK);
    for (int i = 0; i < DRAWS && tried < most; i++) {
        config c;
        bool found = false, uniform = false;
        ck_assert_int_eq(space_draw(s, &seed, 0, &c, &found, &uniform, &error), HONE_OK);
        ck_assert(found);
        if (cover(&covered, m, &c)) {
            tried++;
            check_plain(m, &problem, &g, &c);
        }
    }
    space_close(s);
}
END_TEST

static void setup(void)
{
    shared = kernels_open();
}

static void teardown(void)
{
    kernels_close(&shared);
}

int main(void)
{
    TCase *tests = tcase_create("static");

    tcase_add_loop_test(tests, a_tile_of_each_recipe_is_clean, 0, (int)static_cases_len);
    tcase_add_loop_test(tests, what_survives_pruning_is_clean, 0, (int)ARRAY_LEN(drawn));
    tcase_add_loop_test(tests, a_kernel_without_products_is_clean, 0, (int)ARRAY_LEN(plain));
    return kernels_run("templates/static", tests, setup, teardown);
}
