/* test_whole.c - whole spaces of the fp8 products, dense and by experts, compiled: every legal
 * config of a problem is taken by NVRTC and fits its device, and one that ptxas has nothing against
 * is clean in its machine code. A space is some ten thousand kernels, hours of NVRTC, so it is cut
 * into shards: HONE_SHARD=i/n compiles the i-th of n (by a hash, so that a shard is a sample of the
 * whole), and HONE_SHARD_ROW=r keeps to one problem. HONE_PAIRS=1 compiles instead some hundred
 * configs a problem in which each pair of values stands that any legal config has. Configs that
 * differ in launch or raster alone are the same code but for a constant, and count as one. What
 * ptxas said of each is printed. */
#include "tests/templates/kernels.h"

#include "bench/sass.h"
#include "core/problem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WGMMA    "fp8_gemm/sm90_wgmma"
#define MMA_SYNC "fp8_gemm/mma_sync"
#define SCALED   "fp8_gemm/sm120_block_scale"
#define FP4      "fp8_gemm/sm90_wgmma_fp4"
#define EXPERTS  "moe_gemm/sm90_wgmma"
#define ROWS     "moe_gemm:n=4096,k=7168,experts=32,tokens=128,topk=8,group_layout="
#define CODES    ",activation=silu_mul_v4,out=e4m3,out_group="
#define SHAPE    "fp8_gemm:m=4096,n=7168,k=7168,recipe="
static const struct {
    const char *template, *gpu, *problem;
} walked[] = {
    {WGMMA, "h20", SHAPE "f32-1x128-128x128"},
    {WGMMA, "h20", SHAPE "f32-1x128-1x128,out=f32,accumulate=1"},
    {WGMMA, "h20", SHAPE "ue8m0-1x32-32x32"},
    {WGMMA, "h20", SHAPE "f32-1x32-32x32,out=f32"},
    {WGMMA, "h20", SHAPE "f32-1x32-128x128"},
    {WGMMA, "h20", SHAPE "ue8m0-1x32-1x32"},
    {WGMMA, "h20", SHAPE "f32-1x32-1x32,accumulate=1"},
    {WGMMA, "h20", SHAPE "ue8m0-1x128-1x32"},
    {WGMMA, "h20", "fp8_gemm:m=64,n=576,k=7168,recipe=f32-1x128-128x128,accumulate=1"},
    {MMA_SYNC, "rtx4090", SHAPE "f32-1x128-128x128"},
    {MMA_SYNC, "rtx4090", SHAPE "ue8m0-1x32-32x32,out=f32"},
    {MMA_SYNC, "rtx5090", SHAPE "ue8m0-1x32-1x32"},
    {MMA_SYNC, "h20", "fp8_gemm:m=129,n=2112,k=7176,recipe=f32-1x128-1x128,accumulate=1"},
    {SCALED, "rtx5090", SHAPE "ue8m0-1x32-32x32"},
    {SCALED, "rtx5090", SHAPE "ue8m0-1x32-e2m1/1x32,out=f32,accumulate=1"},
    {FP4, "h20", SHAPE "f32-1x128-e2m1/ue8m0/1x32"},
    {FP4, "h20", SHAPE "ue8m0-1x32-e2m1/1x32,out=f32"},
    {EXPERTS "_fp4", "h20", ROWS "masked,recipe=f32-1x128-e2m1/ue8m0/1x32"},
    {EXPERTS "_fp4", "h20", ROWS "psum,recipe=ue8m0-1x32-e2m1/1x32"},
    {EXPERTS "_fp4_gated", "h20", ROWS "masked,recipe=f32-1x128-e2m1/ue8m0/1x32" CODES "128"},
    {EXPERTS "_fp4_gated", "h20", ROWS "contiguous,recipe=ue8m0-1x32-e2m1/1x32" CODES "32"},
    {EXPERTS, "h20", ROWS "masked,recipe=f32-1x128-128x128"},
    {EXPERTS, "h20", ROWS "contiguous,recipe=ue8m0-1x32-32x32,out=f32"},
    {EXPERTS "_gated", "h20", ROWS "masked,recipe=f32-1x128-128x128" CODES "128"},
    {EXPERTS "_gated", "h20", ROWS "psum,recipe=ue8m0-1x32-32x32" CODES "32"},
    {EXPERTS "_k", "h20",
     "moe_gemm:m=4096,n=2048,k=40960,experts=32,tokens=4096,topk=8,group_layout=grouped_k,out=f32,"
     "recipe=f32-1x128-1x128"},
};

static kernels shared;

/* Kernels that were seen, by the hash of their name: open addressing, grown at half. */
typedef struct seen {
    uint64_t *slot;
    size_t capacity, len;
} seen;

static bool seen_put(seen *s, uint64_t hash)
{
    size_t at = hash & (s->capacity - 1);

    while (s->slot[at] != 0 && s->slot[at] != hash) {
        at = (at + 1) & (s->capacity - 1);
    }
    const bool new = s->slot[at] == 0;
    s->slot[at] = hash;
    s->len += new;
    return new;
}

/* Whether the hash, which is not 0, is new. */
static bool seen_add(seen *s, uint64_t hash)
{
    if (2 * s->len >= s->capacity) {
        const seen before = *s;
        s->capacity = before.capacity == 0 ? 4096 : 2 * before.capacity;
        s->len = 0;
        s->slot = calloc(s->capacity, sizeof *s->slot);
        ck_assert_ptr_nonnull(s->slot);
        for (size_t i = 0; i < before.capacity; i++) {
            if (before.slot[i] != 0) {
                seen_put(s, before.slot[i]);
            }
        }
        free(before.slot);
    }
    return seen_put(s, hash);
}

/* Of a kernel's name without the raster, which only steers the order of tiles. */
static uint64_t hash_of(const char *entry)
{
    static const char raster[] = ".raster = ";
    char text[1024];
    const char *at = strstr(entry, raster);
    const char *rest = at != NULL ? strchr(at, ',') : NULL;

    if (rest != NULL) {
        snprintf(text, sizeof text, "%.*s%s", (int)(at - entry), entry, rest);
    } else {
        snprintf(text, sizeof text, "%s", entry);
    }
    const uint64_t hash = problem_key_hash((const uint8_t *)text, strlen(text)).low;
    return hash != 0 ? hash : 1;
}

typedef struct shard {
    uint64_t index, of;
} shard;

/* A hundredth of a percent where nothing is asked for. */
static shard shard_asked(void)
{
    const char *asked = getenv("HONE_SHARD");
    shard s = {0, 10000};
    unsigned long long index, of;

    if (asked != NULL) {
        ck_assert_msg(sscanf(asked, "%llu/%llu", &index, &of) == 2 && index < of,
                      "HONE_SHARD=%s: i/n with i < n is wanted", asked);
        s = (shard){index, of};
    }
    return s;
}

typedef struct walk {
    const manifest *m;
    const char *problem_text;
    hone_problem problem;
    gpu g;
    uint64_t legal, kernels, compiled, flawed;
} walk;

/* What the words of a cubin say of code that ptxas was content with. */
static void check_words(const walk *w, const compiled *code, const char *entry)
{
    hone_error error = {.status = HONE_OK};
    sass_function f = {.loops = NULL};

    ck_assert_msg(sass_read(code->cubin, code->cubin_len, code->kernels[0].lowered, &f, &error) ==
                      HONE_OK,
                  "%s: %s", entry, error.message);
    const sass_loop *l = sass_main_loop(&f);
    ck_assert_msg(f.all.kinds[SASS_LOCAL] == 0, "%s: local memory", entry);
    ck_assert_msg(l != NULL, "%s: no products in a loop", entry);
    ck_assert_msg(strncmp(manifest_name(w->m), WGMMA, strlen(WGMMA)) != 0 ||
                      l->count.kinds[SASS_GMMA] > 0,
                  "%s: no wgmma in the main loop", entry);
    sass_function_free(&f);
}

static void compile_one(walk *w, const config *c, const plan *p)
{
    const plan_launch *launch = &p->launches[0];
    const int64_t threads = (int64_t)launch->block[0] * launch->block[1] * launch->block[2];
    hone_error error = {.status = HONE_OK};
    jit_request request;
    compiled *code = NULL;
    char why[400], text[512] = "";

    manifest_config_format(w->m, c, text, sizeof text, NULL);
    ck_assert_int_eq(jit_request_plan(shared.templates, w->m, p, w->g.facts.arch, &request, &error),
                     HONE_OK);
    ck_assert_msg(jit_compile(shared.compiler, &request, &code, &error) == HONE_OK,
                  "%s on %s, %s: %s", w->problem_text, w->g.slug, text, error.message);
    w->compiled++;
    ck_assert_msg(code->kernels[0].registers * threads <= w->g.facts.regs_per_sm &&
                      (int64_t)launch->shared_bytes + code->kernels[0].static_shared_bytes <=
                          w->g.facts.smem_per_block,
                  "%s, %s: %d registers, %d bytes of static shared memory", w->problem_text, text,
                  code->kernels[0].registers, code->kernels[0].static_shared_bytes);
    const bool flawed = compiled_flaw(code, why, sizeof why);
    printf("%s | %s | %s | %d registers | %s\n", flawed ? "FLAW" : "clean", w->problem_text, text,
           code->kernels[0].registers, why);
    w->flawed += flawed;
    if (!flawed) {
        check_words(w, code, launch->entry);
    }
    compiled_free(code);
}

static void walk_space(walk *w, shard part, plan *p)
{
    hone_error error = {.status = HONE_OK};
    space *s = NULL;
    seen names = {.slot = NULL};
    config c;
    bool found = true;

    ck_assert_msg(space_open(w->m, &w->problem, &w->g.facts, &s, &error) == HONE_OK, "%s",
                  error.message);
    for (;;) {
        ck_assert_int_eq(space_next(s, 0, &c, &found, &error), HONE_OK);
        if (!found) {
            break;
        }
        w->legal++;
        ck_assert_msg(manifest_plan(w->m, &w->problem, &w->g.facts, &c, p, &error) == HONE_OK,
                      "%s: %s", w->problem_text, error.message);
        const uint64_t hash = hash_of(p->launches[0].entry);
        if (!seen_add(&names, hash)) {
            continue;
        }
        w->kernels++;
        if (hash % part.of == part.index) {
            compile_one(w, &c, p);
        }
    }
    free(names.slot);
    space_close(s);
}

/* ---- Pairs ----------------------------------------------------------------------------------- */

enum { VALUES = 32 };

/* Which values of two parameters stand together: a bit for the second's. */
typedef struct pairs {
    uint32_t seen[MANIFEST_MAX_PARAMS][VALUES][MANIFEST_MAX_PARAMS];
} pairs;

/* Where each value of a config stands in its parameter's list. */
static void places_of(const manifest *m, const config *c, uint32_t at[MANIFEST_MAX_PARAMS])
{
    for (uint32_t i = 0; i < c->len; i++) {
        const int64_t *values;
        const uint32_t len = manifest_param_values(m, i, &values);
        for (at[i] = 0; at[i] + 1 < len && values[at[i]] != c->value[i]; at[i]++) {
        }
        ck_assert_uint_lt(at[i], VALUES);
    }
}

/* How many pairs of a config are not in `all`. */
static int pairs_new(const pairs *all, const manifest *m, const config *c)
{
    uint32_t at[MANIFEST_MAX_PARAMS];
    int count = 0;

    places_of(m, c, at);
    for (uint32_t i = 0; i < c->len; i++) {
        for (uint32_t k = i + 1; k < c->len; k++) {
            count += (all->seen[i][at[i]][k] >> at[k] & 1) == 0;
        }
    }
    return count;
}

static void pairs_add(pairs *all, const manifest *m, const config *c)
{
    uint32_t at[MANIFEST_MAX_PARAMS];

    places_of(m, c, at);
    for (uint32_t i = 0; i < c->len; i++) {
        for (uint32_t k = i + 1; k < c->len; k++) {
            all->seen[i][at[i]][k] |= UINT32_C(1) << at[k];
        }
    }
}

static void compile_pairs(walk *w, const config *c, pairs *covered, plan *p)
{
    hone_error error = {.status = HONE_OK};

    ck_assert_msg(manifest_plan(w->m, &w->problem, &w->g.facts, c, p, &error) == HONE_OK, "%s",
                  error.message);
    pairs_add(covered, w->m, c);
    compile_one(w, c, p);
}

/* Draws that have many new pairs, then fewer; what is left is found by walking. */
static void cover_pairs(walk *w, plan *p)
{
    static const int wanted[] = {40, 20, 8, 3};
    enum { DRAWS = 1500 };
    hone_error error = {.status = HONE_OK};
    pairs *covered = calloc(1, sizeof *covered);
    uint64_t seed = 41;
    space *s = NULL;
    bool found = true, uniform = false;
    config c;

    ck_assert_ptr_nonnull(covered);
    ck_assert_int_eq(space_open(w->m, &w->problem, &w->g.facts, &s, &error), HONE_OK);
    for (size_t i = 0; i < ARRAY_LEN(wanted) * DRAWS; i++) {
        ck_assert_int_eq(space_draw(s, &seed, 0, &c, &found, &uniform, &error), HONE_OK);
        ck_assert(found);
        if (pairs_new(covered, w->m, &c) >= wanted[i / DRAWS]) {
            compile_pairs(w, &c, covered, p);
        }
    }
    space_rewind(s);
    for (;;) {
        ck_assert_int_eq(space_next(s, 0, &c, &found, &error), HONE_OK);
        if (!found) {
            break;
        }
        w->legal++;
        if (pairs_new(covered, w->m, &c) > 0) {
            compile_pairs(w, &c, covered, p);
        }
    }
    w->kernels = w->compiled;
    space_close(s);
    free(covered);
}

START_TEST(every_legal_config_compiles_and_fits)
{
    const char *row = getenv("HONE_SHARD_ROW");
    const shard part = shard_asked();
    hone_error error = {.status = HONE_OK};
    walk w = {.problem_text = walked[_i].problem};
    plan *p = calloc(1, sizeof *p);

    ck_assert_ptr_nonnull(p);
    if (shared.compiler != NULL && (row == NULL || atoi(row) == _i)) {
        w.m = templates_find(shared.templates, walked[_i].template);
        ck_assert_ptr_nonnull(w.m);
        ck_assert_msg(hone_problem_parse(w.problem_text, &w.problem, &error) == HONE_OK, "%s",
                      error.message);
        ck_assert_int_eq(gpu_find(walked[_i].gpu, &w.g, &error), HONE_OK);
        if (getenv("HONE_PAIRS") != NULL) {
            cover_pairs(&w, p);
        } else {
            walk_space(&w, part, p);
        }
        printf("%s on %s, %s: %llu legal, %llu kernels, %llu compiled, ptxas speaks against %llu\n",
               walked[_i].template, w.g.slug, w.problem_text, (unsigned long long)w.legal,
               (unsigned long long)w.kernels, (unsigned long long)w.compiled,
               (unsigned long long)w.flawed);
        ck_assert_uint_gt(w.legal, 0);
        /* One in ten of wgmma's, whose manifest knows what spills; more are slow to search. */
        const uint64_t share = strcmp(walked[_i].template, WGMMA) == 0 ? 10 : 3;
        ck_assert_msg(share * w.flawed <= w.compiled + 2 * share, "%s: %llu of %llu are flawed",
                      w.problem_text, (unsigned long long)w.flawed, (unsigned long long)w.compiled);
    }
    free(p);
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
    TCase *tests = tcase_create("whole");

    setvbuf(stdout, NULL, _IOLBF, 0); /* hours: what was found is told at once */
    tcase_add_loop_test(tests, every_legal_config_compiles_and_fits, 0, (int)ARRAY_LEN(walked));
    return kernels_run("templates/whole", tests, setup, teardown);
}
