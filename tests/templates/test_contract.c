/* test_contract.c - what serves an fp8 product when planning, and which rule refuses the rest: arch
 * by recipe, dtypes, alignment and layouts. Rows are read as the contract; then the whole product
 * of the fields is held to it in words of its own. */
#include "templates/manifest.h"
#include "templates/space.h"

#include "core/problem.h"
#include "models/gpu.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { NONE = 0, SYNC = 1, WGMMA = 2, SCALED = 4, FP4 = 8 };
static const struct {
    const char *name;
    unsigned bit;
} names[] = {
    {"fp8_gemm/mma_sync", SYNC},
    {"fp8_gemm/sm90_wgmma", WGMMA},
    {"fp8_gemm/sm120_block_scale", SCALED},
    {"fp8_gemm/sm90_wgmma_fp4", FP4},
};

enum { SM_89, SM_90A, SM_100A, SM_120A, ARCHS };
static const char *const gpus[ARCHS] = {"rtx4090", "h20", "b200", "rtx5090"};

static templates *all;
static device_facts devices[ARCHS];

static void setup(void)
{
    hone_error error = {0};

    ck_assert_msg(templates_open(&all, &error) == HONE_OK, "%s", error.message);
    for (int i = 0; i < ARCHS; i++) {
        gpu g;
        ck_assert_msg(gpu_find(gpus[i], &g, &error) == HONE_OK, "%s", error.message);
        devices[i] = g.facts;
    }
}

static void teardown(void)
{
    templates_close(all);
}

static unsigned serving(const hone_problem *problem, int arch)
{
    unsigned bits = 0;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        bool serves = false;
        const manifest *m = templates_find(all, names[i].name);
        ck_assert_msg(m != NULL, "no template %s", names[i].name);
        ck_assert_int_eq(manifest_serves(m, problem, &devices[arch], &serves, NULL, NULL), HONE_OK);
        bits |= serves ? names[i].bit : 0;
    }
    return bits;
}

static hone_problem parse(const char *fields)
{
    hone_problem problem;
    hone_error error = {0};
    char text[256];

    snprintf(text, sizeof text, "fp8_gemm:%s", fields);
    ck_assert_msg(hone_problem_parse(text, &problem, &error) == HONE_OK, "%s: %s", text,
                  error.message);
    return problem;
}

/* ---- The contract, row by row ---------------------------------------------------------------- */

#define SHAPE "m=40,n=136,k=544,recipe="
static const struct {
    const char *fields;
    unsigned served[ARCHS]; /* sm_89, sm_90a, sm_100a, sm_120a */
} rows[] = {
    /* f32 scales: sm_100a and sm_120a have mma.sync for them */
    {SHAPE "f32-1x128-128x128", {SYNC, SYNC | WGMMA, SYNC, SYNC}},
    {SHAPE "f32-1x128-1x128,out=f32", {SYNC, SYNC | WGMMA, SYNC, SYNC}},
    {SHAPE "f32-1x32-32x32", {SYNC, SYNC | WGMMA, SYNC, SYNC}},
    {SHAPE "f32-1x32-128x128,accumulate=1", {SYNC, SYNC | WGMMA, SYNC, SYNC}},
    {SHAPE "f32-1x32-1x32,a_scale_layout=row", {SYNC, SYNC | WGMMA, SYNC, SYNC}},
    {SHAPE "f32-1x128-1x32,b_scale_layout=col", {SYNC, SYNC | WGMMA, SYNC, SYNC}},
    /* ue8m0 scales: sm_120a's own unit too */
    {SHAPE "ue8m0-1x32-32x32", {SYNC, SYNC | WGMMA, SYNC, SYNC | SCALED}},
    {SHAPE "ue8m0-1x32-1x32,out=f32", {SYNC, SYNC | WGMMA, SYNC, SYNC | SCALED}},
    {SHAPE "ue8m0-1x32-128x128", {SYNC, SYNC | WGMMA, SYNC, SYNC | SCALED}},
    {SHAPE "ue8m0-1x128-1x32,a_scale_layout=col", {SYNC, SYNC | WGMMA, SYNC, SYNC | SCALED}},
    {SHAPE "ue8m0-1x128-128x128,accumulate=1", {SYNC, SYNC | WGMMA, SYNC, SYNC | SCALED}},
    {SHAPE "ue8m0-1x32-e4m3/f32/32x32", {SYNC, SYNC | WGMMA, SYNC, SYNC}},
    {SHAPE "f32-1x32-e4m3/ue8m0/1x32", {SYNC, SYNC | WGMMA, SYNC, SYNC}},
    /* alignment: the copy engine of sm_90a takes 16 bytes, cp.async whatever there is */
    {SHAPE "ue8m0-1x32-32x32,align=8", {SYNC, SYNC, SYNC, SYNC | SCALED}},
    {"m=3,n=7,k=45,recipe=f32-1x128-128x128", {SYNC, SYNC, SYNC, SYNC}},
    {"m=3,n=7,k=45,recipe=ue8m0-1x32-1x32", {SYNC, SYNC, SYNC, SYNC | SCALED}},
    {"m=3,n=8,k=0,recipe=ue8m0-1x32-1x32", {SYNC, SYNC, SYNC, SYNC | SCALED}},
    /* layouts */
    {SHAPE "ue8m0-1x32-1x32,a_scale_layout=row,b_scale_layout=col",
     {SYNC, SYNC | WGMMA, SYNC, SYNC | SCALED}},
    {SHAPE "ue8m0-1x32-1x32,batch=3,batch_layout=inner", {SYNC, SYNC | WGMMA, SYNC, SYNC | SCALED}},
    {SHAPE "f32-1x32-32x32,batch=3", {SYNC, SYNC | WGMMA, SYNC, SYNC}},
    /* one order, hence one unit for every M */
    {SHAPE "f32-1x128-128x128,order=fixed", {SYNC, WGMMA, SYNC, SYNC}},
    {SHAPE "ue8m0-1x32-32x32,order=fixed", {SYNC, WGMMA, SYNC, SCALED}},
    {SHAPE "ue8m0-1x32-32x32,order=fixed,align=8", {SYNC, SYNC, SYNC, SCALED}},
    {SHAPE "f32-1x32-32x32,order=fixed", {SYNC, WGMMA, SYNC, SYNC}},
    /* B of four bits */
    {SHAPE "ue8m0-1x32-e2m1/1x32", {NONE, FP4, NONE, SCALED}},
    {SHAPE "ue8m0-1x128-e2m1/1x32,out=f32,accumulate=1", {NONE, FP4, NONE, SCALED}},
    {SHAPE "ue8m0-1x32-e2m1/1x32,order=fixed", {NONE, FP4, NONE, SCALED}},
    {SHAPE "ue8m0-1x32-e2m1/1x32,align=8", {NONE, NONE, NONE, SCALED}},
    {SHAPE "f32-1x128-e2m1/ue8m0/1x32", {NONE, FP4, NONE, NONE}},
    {SHAPE "f32-1x32-e2m1/f32/32x32,batch=3,batch_layout=inner", {NONE, FP4, NONE, NONE}},
};

START_TEST(each_arch_serves_what_the_contract_says)
{
    const hone_problem problem = parse(rows[_i].fields);

    for (int arch = 0; arch < ARCHS; arch++) {
        ck_assert_msg(serving(&problem, arch) == rows[_i].served[arch], "%s on sm_%d: %u, not %u",
                      rows[_i].fields, devices[arch].arch, serving(&problem, arch),
                      rows[_i].served[arch]);
    }
}
END_TEST

/* What each template says of what it does not serve. */
static const struct {
    const char *fields;
    int arch;
    const char *says;
} refusals[] = {
    {SHAPE "ue8m0-1x32-32x32", SM_89, "sm120_block_scale: block-scaled mma.sync is sm_120a's"},
    {SHAPE "ue8m0-1x32-32x32", SM_100A, "sm120_block_scale: block-scaled mma.sync is sm_120a's"},
    {SHAPE "f32-1x32-32x32", SM_120A,
     "sm120_block_scale: the unit takes ue8m0 scales; hone_pack_scales makes them of f32 ones"},
    {SHAPE "f32-1x128-e2m1/ue8m0/1x32", SM_120A, "sm120_block_scale: the unit takes ue8m0 scales"},
    {SHAPE "ue8m0-1x32-e2m1/1x32", SM_89, "mma_sync: both operands are e4m3"},
    {SHAPE "ue8m0-1x32-e2m1/1x32", SM_100A, "mma_sync: both operands are e4m3"},
    {SHAPE "ue8m0-1x32-e2m1/1x32", SM_100A, "sm90_wgmma: wgmma is sm_90a's"},
    {SHAPE "ue8m0-1x32-e2m1/1x32", SM_100A, "sm90_wgmma_fp4: wgmma is sm_90a's"},
    {SHAPE "ue8m0-1x32-e2m1/1x32,align=8", SM_90A, "sm90_wgmma_fp4: the copy engine takes"},
    {SHAPE "ue8m0-1x32-32x32,align=8", SM_90A, "sm90_wgmma: the copy engine takes"},
    {SHAPE "ue8m0-1x32-32x32,order=fixed", SM_90A, "mma_sync: a fixed order has one unit"},
    {SHAPE "ue8m0-1x32-32x32,order=fixed", SM_120A, "mma_sync: a fixed order has one unit"},
    {"m=3,n=8,k=0,recipe=ue8m0-1x32-1x32", SM_90A, "sm90_wgmma: a tensor map has no empty"},
};

START_TEST(a_refusal_names_the_template_and_the_rule)
{
    const hone_problem problem = parse(refusals[_i].fields);
    char why[1000];

    templates_refusals(all, &problem, &devices[refusals[_i].arch], why, sizeof why);
    ck_assert_msg(strstr(why, refusals[_i].says) != NULL, "%s: '%s' lacks '%s'",
                  refusals[_i].fields, why, refusals[_i].says);
}
END_TEST

/* ---- The product of all fields --------------------------------------------------------------- */

#define EACH(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
static const struct {
    const char *name, *values[8];
} axes[] = {
    {"a_scale", EACH("f32", "ue8m0")},
    {"b_scale", EACH("f32", "ue8m0")},
    {"b_element", EACH("e4m3", "e2m1")},
    {"a_gran", EACH("1x32", "1x128")},
    {"b_gran", EACH("1x32", "1x128", "32x32", "128x128")},
    {"out", EACH("bf16", "f32")},
    {"align", EACH("16", "8", "4", "2", "1")},
    {"order", EACH("any", "fixed")},
    {"a_scale_layout", EACH("row", "col", "tma", "packed")},
    {"b_scale_layout", EACH("row", "col", "tma", "packed")},
    {"batch_layout", EACH("outer", "inner")},
    {"accumulate", EACH("0", "1")},
};
enum { AXES = ARRAY_LEN(axes) };

/* The contract in words: no manifest is asked. */
static unsigned expected(const hone_fp8_gemm *p, int arch)
{
    const bool codes =
        p->recipe.a.scale == HONE_DTYPE_UE8M0 && p->recipe.b.scale == HONE_DTYPE_UE8M0;
    const bool wgmma = arch == SM_90A && p->align == 16, scaled = arch == SM_120A && codes;
    const unsigned best = (wgmma ? WGMMA : 0) | (scaled ? SCALED : 0);

    if (p->recipe.b.element == HONE_DTYPE_E2M1) {
        return wgmma ? FP4 : scaled ? SCALED : NONE;
    }
    return p->order == HONE_ORDER_FIXED && best != 0 ? best : best | SYNC;
}

/* The problem of an index; false where the fields do not go together. */
static bool problem_of(size_t index, hone_problem *out)
{
    const char *value[AXES];
    char text[400];

    for (size_t a = 0; a < AXES; a++) {
        size_t len = 0;
        while (axes[a].values[len] != NULL) {
            len++;
        }
        value[a] = axes[a].values[index % len];
        index /= len;
    }
    int used =
        snprintf(text, sizeof text, "fp8_gemm:m=40,n=136,k=544,batch=2,recipe=e4m3/%s/%s+%s/%s/%s",
                 value[0], value[3], value[2], value[1], value[4]);
    for (size_t a = 5; a < AXES; a++) {
        used += snprintf(text + used, sizeof text - (size_t)used, ",%s=%s", axes[a].name, value[a]);
    }
    return hone_problem_parse(text, out, NULL) == HONE_OK &&
           hone_problem_check(out, NULL) == HONE_OK;
}

/* Whoever says that it serves a problem has a config for it; checked for one in STEP. */
static void check_config(const manifest *m, const hone_problem *problem, const device_facts *device)
{
    hone_error error = {0};
    space *s = NULL;
    config c;
    bool found = false;

    ck_assert_msg(space_open(m, problem, device, &s, &error) == HONE_OK, "%s", error.message);
    ck_assert_int_eq(space_next(s, 0, &c, &found, &error), HONE_OK);
    ck_assert_msg(found, "%s on sm_%d: served, and no config is legal", manifest_name(m),
                  device->arch);
    space_close(s);
}

START_TEST(the_product_of_all_fields_is_served_or_refused_as_the_contract_says)
{
    enum { STEP = 37 };
    size_t total = 1, legal = 0, served = 0;

    for (size_t a = 0; a < AXES; a++) {
        size_t len = 0;
        while (axes[a].values[len] != NULL) {
            len++;
        }
        total *= len;
    }
    for (size_t index = 0; index < total; index++) {
        hone_problem problem;
        if (!problem_of(index, &problem)) {
            continue;
        }
        legal++;
        for (int arch = 0; arch < ARCHS; arch++) {
            const unsigned bits = serving(&problem, arch);
            char text[300] = "", why[1000] = "";
            hone_problem_format(&problem, text, sizeof text, NULL);
            ck_assert_msg(bits == expected(&problem.as.fp8_gemm, arch), "%s on sm_%d: %u, not %u",
                          text, devices[arch].arch, bits, expected(&problem.as.fp8_gemm, arch));
            served += bits != 0;
            templates_refusals(all, &problem, &devices[arch], why, sizeof why);
            for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                char named[64];
                snprintf(named, sizeof named, "%s: serves it, ", names[i].name);
                ck_assert_msg((strstr(why, named) != NULL) == ((bits & names[i].bit) != 0),
                              "%s on sm_%d: %s", text, devices[arch].arch, why);
                if ((bits & names[i].bit) != 0 && legal % STEP == 0) {
                    check_config(templates_find(all, names[i].name), &problem, &devices[arch]);
                }
            }
        }
    }
    ck_assert_uint_gt(legal, 4000);
    ck_assert_uint_gt(served, legal);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("contract");

    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, each_arch_serves_what_the_contract_says, 0, (int)ARRAY_LEN(rows));
    tcase_add_loop_test(tests, a_refusal_names_the_template_and_the_rule, 0,
                        (int)ARRAY_LEN(refusals));
    tcase_add_test(tests, the_product_of_all_fields_is_served_or_refused_as_the_contract_says);
    return suite_run("templates/contract", tests);
}
