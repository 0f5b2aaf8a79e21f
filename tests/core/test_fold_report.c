/* test_fold_report.c - folding as an opt-in: the report tells which data to leave alone, and which
 * problem is served instead. */
#include "core/status.h"
#include "tests/core/fold_data.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_error e;

/* ---- The table of docs/kernels/fp8_gemm_fold.md -----------------------------------------------
 */

enum { TABLE_M = 128, TABLE_N = 128, TABLE_K = 4096, TABLE_STEP = 4 };

typedef struct folded {
    hone_fold_report report;
    uint8_t *codes, *scales;
} folded;

static folded fold(const fold_matrix *m, int32_t gran_mn)
{
    folded made = {.report = {.size = sizeof made.report}};
    const hone_fold_request r = {
        .size = sizeof r,
        .from_layout = HONE_SCALES_ROW,
        .to_layout = HONE_SCALES_ROW,
        .from = {HONE_DTYPE_E4M3, HONE_DTYPE_UE8M0, m->gran_mn, m->gran_k},
        .to = {HONE_DTYPE_E4M3, HONE_DTYPE_UE8M0, gran_mn, 128},
        .rows = m->rows,
        .k = m->k,
        .codes = m->codes,
        .scales = m->scales,
        .out = made.codes = malloc((size_t)(m->rows * m->k)),
        .out_scales = made.scales = malloc((size_t)m->rows * TABLE_K / 128),
        .out_scales_bytes = (uint64_t)m->rows * TABLE_K / 128,
    };

    ck_assert(made.codes != NULL && made.scales != NULL);
    ck_assert_msg(hone_fold_scales(&r, &made.report, &e) == HONE_OK, "%s", e.message);
    return made;
}

static double *values(const uint8_t *codes, const uint8_t *scales, const fold_matrix *m,
                      int32_t gran_mn, int32_t gran_k)
{
    double *made = malloc((size_t)(m->rows * m->k) * sizeof *made);

    ck_assert_ptr_nonnull(made);
    for (int64_t i = 0; i < m->rows * m->k; i++) {
        made[i] = fold_value(codes, scales, m->k, gran_mn, gran_k, i / m->k, i % m->k);
    }
    return made;
}

/* Relative Frobenius error of the product of folded operands with exact sums. */
static double product_error(const fold_matrix *a, const fold_matrix *b, const folded *fa,
                            const folded *fb)
{
    double *x = values(a->codes, a->scales, a, 1, 32), *y = values(b->codes, b->scales, b, 32, 32);
    double *fx = values(fa->codes, fa->scales, a, 1, 128),
           *fy = values(fb->codes, fb->scales, b, 32, 128);
    double error = 0, norm = 0;

    for (int64_t i = 0; i < a->rows; i += TABLE_STEP) {
        for (int64_t j = 0; j < b->rows; j += TABLE_STEP) {
            double exact = 0, made = 0;
            for (int64_t k = 0; k < a->k; k++) {
                exact += x[i * a->k + k] * y[j * b->k + k];
                made += fx[i * a->k + k] * fy[j * b->k + k];
            }
            error += (made - exact) * (made - exact);
            norm += exact * exact;
        }
    }
    free(x);
    free(y);
    free(fx);
    free(fy);
    return sqrt(error / norm);
}

/* Of each kind: bounds of A's and B's inexact elements and of the product's error, and whether the
 * default limit takes it. Figures of several seeds lie well inside. */
static const struct {
    double a_least, a_most, b_least, b_most, product_least, product_most;
    hone_status accepted;
} table[FOLD_KINDS] = {
    [FOLD_NORMAL] = {1e-7, 3e-5, 1e-5, 1e-4, 1e-8, 5e-7, HONE_OK},
    [FOLD_CHANNELS] = {3e-5, 5e-4, 6e-5, 1e-3, 1e-7, 5e-6, HONE_OK},
    [FOLD_OUTLIERS] = {1e-3, 1e-2, 5e-4, 1e-2, 1e-6, 1e-4, HONE_OK},
    [FOLD_SWIGLU] = {5e-4, 5e-3, 6e-5, 1e-3, 3e-7, 1e-5, HONE_OK},
    [FOLD_ADVERSARIAL] = {3e-3, 3e-2, 1e-3, 2e-2, 3.2e-3, 5e-2, HONE_LIMIT},
};

START_TEST(the_report_tells_which_data_can_be_folded)
{
    const fold_kind kind = (fold_kind)(_i % FOLD_KINDS);
    const uint64_t seed = 1 + (uint64_t)(_i / FOLD_KINDS);
    fold_matrix a = fold_matrix_make(kind, true, TABLE_M, TABLE_K, 1, seed);
    fold_matrix b = fold_matrix_make(kind, false, TABLE_N, TABLE_K, 32, seed);
    folded fa = fold(&a, 1), fb = fold(&b, 32);
    const double product = product_error(&a, &b, &fa, &fb);
    const double a_share = (double)fa.report.inexact / (double)fa.report.elements,
                 b_share = (double)fb.report.inexact / (double)fb.report.elements;

    printf("%-26s shifted by more than 3: %.4f; inexact %.1e / %.1e; rows of 128 with any %.3f; "
           "columns %.1e / %.1e; whole %.1e / %.1e; product %.1e\n",
           fold_kind_names[kind], (double)fa.report.wide_groups / (double)fa.report.groups, a_share,
           b_share, (double)fa.report.inexact_blocks / (double)fa.report.blocks, fa.report.channel,
           fb.report.channel, fa.report.frobenius, fb.report.frobenius, product);
    ck_assert(a_share >= table[kind].a_least && a_share <= table[kind].a_most);
    ck_assert(b_share >= table[kind].b_least && b_share <= table[kind].b_most);
    ck_assert(product >= table[kind].product_least && product <= table[kind].product_most);
    ck_assert_int_eq(hone_fold_accept(&fa.report, 0, &e), table[kind].accepted);
    ck_assert_int_eq(hone_fold_accept(&fb.report, 0, &e), table[kind].accepted);
    /* What the columns say bounds the product, whatever scales B's columns have. */
    ck_assert_double_le(product, 1.5 * hypot(fa.report.channel, fb.report.channel));
    /* The matrices' own errors would have let the last kind pass. */
    ck_assert_double_le(hypot(fa.report.frobenius, fb.report.frobenius), 1e-4);
    free(fa.codes);
    free(fa.scales);
    free(fb.codes);
    free(fb.scales);
    fold_matrix_free(&a);
    fold_matrix_free(&b);
}
END_TEST

START_TEST(a_limit_is_the_callers_and_its_refusal_has_the_figures)
{
    hone_fold_report report = {.size = sizeof report,
                               .spread = 11,
                               .elements = 1000,
                               .inexact = 13,
                               .channel = 0.004,
                               .worst_channel = 0.16,
                               .frobenius = 1e-5};

    ck_assert_int_eq(hone_fold_accept(&report, 0.005, &e), HONE_OK);
    ck_assert_int_eq(hone_fold_accept(&report, 0.004, &e), HONE_OK);
    ck_assert_int_eq(hone_fold_accept(&report, 0.0039, &e), HONE_LIMIT);
    ck_assert_int_eq(hone_fold_accept(&report, 0, &e), HONE_LIMIT);
    ck_assert_str_eq(
        e.message, "fold: 13 of 1000 elements are inexact (columns are off by 4.00e-03, the worst "
                   "by 1.60e-01, the whole by 1.00e-05; groups lie up to 11 binades apart), over "
                   "the limit of 1.95e-03 for a column; take the exact recipe");
    ck_assert_int_eq(hone_fold_accept(&report, -1.0, &e), HONE_BAD_ARGUMENT);
    ck_assert_int_eq(hone_fold_accept(&report, (double)NAN, &e), HONE_BAD_ARGUMENT);
    ck_assert_int_eq(hone_fold_accept(NULL, 0, &e), HONE_BAD_ARGUMENT);
    report.channel = (double)NAN;
    ck_assert_int_eq(hone_fold_accept(&report, 0, &e), HONE_LIMIT);
}
END_TEST

/* ---- Problems ----------------------------------------------------------------------------------
 */

#define GEMM(recipe) "fp8_gemm:m=5,n=256,k=512,recipe=" recipe

static const struct {
    const char *problem;
    hone_fold_mode mode;
    const char *becomes; /* or a part of the refusal */
    hone_status status;
} problems[] = {
    {GEMM("ue8m0-1x32-32x32"), HONE_FOLD_K, GEMM("ue8m0-1x128-32x128"), HONE_OK},
    {GEMM("ue8m0-1x32-32x32"), HONE_FOLD_BLOCK, GEMM("ue8m0-1x128-128x128"), HONE_OK},
    {GEMM("ue8m0-1x32-32x32"), HONE_FOLD_N, GEMM("ue8m0-1x32-128x32"), HONE_OK},
    {GEMM("ue8m0-1x32-1x32"), HONE_FOLD_K, GEMM("ue8m0-1x128-1x128"), HONE_OK},
    {GEMM("ue8m0-1x32-1x32,b_scale_layout=row"), HONE_FOLD_K,
     GEMM("ue8m0-1x128-1x128,b_scale_layout=row"), HONE_OK},
    {GEMM("ue8m0-1x32-1x32"), HONE_FOLD_BLOCK, GEMM("ue8m0-1x128-128x128"), HONE_OK},
    {GEMM("ue8m0-1x32-128x128"), HONE_FOLD_K, GEMM("ue8m0-1x128-128x128"), HONE_OK},
    {GEMM("ue8m0-1x32-32x32,batch=3,batch_layout=inner,order=fixed,out=f32,a_scale_layout=col"),
     HONE_FOLD_BLOCK,
     GEMM("ue8m0-1x128-128x128,batch=3,batch_layout=inner,order=fixed,out=f32,a_scale_layout=col"),
     HONE_OK},
    {GEMM("f32-1x32-32x32"), HONE_FOLD_K, "a_scale=f32, b_scale=f32: f32 scales need not be",
     HONE_BAD_PROBLEM},
    {GEMM("e4m3/ue8m0/1x32+e4m3/f32/32x32"), HONE_FOLD_K, "a_scale=ue8m0, b_scale=f32",
     HONE_BAD_PROBLEM},
    {GEMM("ue8m0-1x32-e2m1/1x32"), HONE_FOLD_K, "b_element=e2m1", HONE_BAD_PROBLEM},
    {GEMM("ue8m0-1x128-128x128"), HONE_FOLD_K, "no operand has scales of 32", HONE_BAD_PROBLEM},
    {GEMM("ue8m0-1x32-1x32"), HONE_FOLD_N, "no scales of 32 rows", HONE_BAD_PROBLEM},
    {"act_quant:m=1,k=128,scale=ue8m0", HONE_FOLD_K, "act_quant has no scales of two operands",
     HONE_BAD_PROBLEM},
    {GEMM("ue8m0-1x32-32x32"), (hone_fold_mode)0, "mode 0", HONE_BAD_ARGUMENT},
    {GEMM("ue8m0-1x32-32x32"), (hone_fold_mode)4, "mode 4", HONE_BAD_ARGUMENT},
};

START_TEST(a_folded_problem_is_the_coarser_recipe)
{
    hone_problem p, made, expected;

    ck_assert_msg(hone_problem_parse(problems[_i].problem, &p, &e) == HONE_OK, "%s", e.message);
    memset(&made, 0xa5, sizeof made);
    ck_assert_int_eq(hone_fold_problem(&p, problems[_i].mode, &made, &e), problems[_i].status);
    if (problems[_i].status != HONE_OK) {
        ck_assert_msg(strstr(e.message, problems[_i].becomes) != NULL, "%s", e.message);
        ck_assert_uint_eq(made.size, 0xa5a5a5a5);
        return;
    }
    ck_assert_int_eq(hone_problem_parse(problems[_i].becomes, &expected, &e), HONE_OK);
    ck_assert_mem_eq(&made, &expected, sizeof made);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("fold_report");

    tcase_add_loop_test(tests, the_report_tells_which_data_can_be_folded, 0, 2 * FOLD_KINDS);
    tcase_add_test(tests, a_limit_is_the_callers_and_its_refusal_has_the_figures);
    tcase_add_loop_test(tests, a_folded_problem_is_the_coarser_recipe, 0, (int)ARRAY_LEN(problems));
    return suite_run("core/fold_report", tests);
}
