/* problem_product.c - the rules of products: their recipe, scales, rows and output. */
#include "core/problem_check.h"

#include "core/numfmt.h"

#include <inttypes.h>

static hone_status check_recipe(const hone_recipe *recipe, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(problem_check_scale_dtype("a_scale", recipe->a.scale, error));
    TRY(problem_check_scale_dtype("b_scale", recipe->b.scale, error));
    if (recipe->a.element != HONE_DTYPE_E4M3) {
        return problem_refuse(error, "a_element", "products are of an A of e4m3");
    }
    if (recipe->b.element != HONE_DTYPE_E4M3 && recipe->b.element != HONE_DTYPE_E2M1) {
        return problem_refuse(error, "b_element", "products are by a B of e4m3 or e2m1");
    }
    if (!problem_granularity_known(recipe->a.gran_mn, recipe->a.gran_k, false)) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "a_gran_mn=%d, a_gran_k=%d: A has scales of 1x32 or 1x128",
                          recipe->a.gran_mn, recipe->a.gran_k);
    }
    if (!problem_granularity_known(recipe->b.gran_mn, recipe->b.gran_k, true)) {
        return status_set(
            error, HONE_BAD_PROBLEM, NULL, 0,
            "b_gran_mn=%d, b_gran_k=%d: B has scales of 1, 32 or 128 rows by 32 or 128 of K",
            recipe->b.gran_mn, recipe->b.gran_k);
    }
done:
    return status;
}

/* What products share: a recipe, its scales' layouts, rows of A and B. */
static hone_status check_factors(const hone_recipe *recipe, int64_t k, int32_t a_layout,
                                 int32_t b_layout, int32_t align, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(check_recipe(recipe, error));
    if (recipe->b.element == HONE_DTYPE_E2M1 && k % 32 != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "k=%" PRId64 " must be a multiple of 32 for a B of e2m1, whose rows are "
                          "whole 16-byte words; pad the rows",
                          k);
    }
    TRY(problem_check_layout("a_scale_layout", a_layout, recipe->a.scale, true, error));
    TRY(problem_check_layout("b_scale_layout", b_layout, recipe->b.scale, recipe->b.gran_mn == 1,
                             error));
    TRY(problem_check_align(align, k, "a row of A (k)", error));
    TRY(problem_check_align(align, k * numfmt_dtype_bits((hone_dtype)recipe->b.element) / 8,
                            "a row of B (k)", error));
done:
    return status;
}

hone_status problem_check_fp8_gemm(const hone_fp8_gemm *p, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(check_factors(&p->recipe, p->k, p->a_scale_layout, p->b_scale_layout, p->align, error));
    if (p->out != HONE_DTYPE_BF16 && p->out != HONE_DTYPE_F32) {
        return problem_refuse(error, "out", "the product is written as bf16 or f32");
    }
    TRY(problem_check_align(p->align, p->n * numfmt_dtype_bits((hone_dtype)p->out) / 8,
                            "a row of D (n)", error));
done:
    return status;
}

/* A D that is quantised on its way out, or none of that. */
static hone_status check_moe_out(const hone_moe_gemm *p, int64_t columns, hone_error *error)
{
    const bool power = p->out_rule == HONE_RULE_POW2_AMAX || p->out_rule == HONE_RULE_POW2_SCALE;
    hone_status status = HONE_OK;

    if (p->out == HONE_DTYPE_BF16 || p->out == HONE_DTYPE_F32) {
        return p->out_scale == 0 && p->out_group == 0 && p->out_scale_layout == 0 &&
                       p->out_rule == 0
                   ? HONE_OK
                   : problem_refuse(error, "out_scale",
                                    "only a D of e4m3 has scales: leave the out_ fields out");
    }
    if (p->out != HONE_DTYPE_E4M3 || p->activation == HONE_ACTIVATION_PLAIN) {
        return problem_refuse(error, "out", "D is bf16 or f32; e4m3 after an activation");
    }
    TRY(problem_check_scale_dtype("out_scale", p->out_scale, error));
    if (p->out_group != 32 && p->out_group != 128) {
        return problem_refuse(error, "out_group", "a scale covers 32 or 128 columns");
    }
    if (columns % p->out_group != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "n=%" PRId64 ": its %" PRId64 " columns of D must be a multiple of "
                          "out_group=%d",
                          p->n, columns, p->out_group);
    }
    if (p->out_scale_layout == 0 || p->out_rule == 0) {
        return problem_refuse(
            error, p->out_rule == 0 ? "out_rule" : "out_scale_layout",
            "a quantised D has one; problem_derive or the text form set a default");
    }
    if (p->out_scale == HONE_DTYPE_UE8M0 && !power) {
        return problem_refuse(error, "out_rule",
                              "ue8m0 keeps only an exponent: pow2_amax or pow2_scale");
    }
    TRY(problem_check_layout("out_scale_layout", p->out_scale_layout, p->out_scale, true, error));
done:
    return status;
}

/* A weight gradient sums over rows that only k has. */
static hone_status check_moe_k(const hone_moe_gemm *p, hone_error *error)
{
    const hone_quant *a = &p->recipe.a, *b = &p->recipe.b;

    if (p->group_layout != HONE_GROUPS_K) {
        return p->accumulate == 0 ? HONE_OK
                                  : problem_refuse(error, "accumulate", "only grouped_k adds to D");
    }
    if (p->out != HONE_DTYPE_F32 || p->activation != HONE_ACTIVATION_PLAIN || p->fill != 0) {
        return problem_refuse(error, "out",
                              "grouped_k writes plain f32, every row of it: say out=f32");
    }
    if (a->scale != HONE_DTYPE_F32 || b->scale != HONE_DTYPE_F32 || b->gran_mn != 1 ||
        a->gran_k != b->gran_k || b->element != HONE_DTYPE_E4M3) {
        return problem_refuse(error, "recipe", "grouped_k takes f32-1x128-1x128 or f32-1x32-1x32");
    }
    return p->k % a->gran_k == 0
               ? HONE_OK
               : status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                            "k=%" PRId64 " must be a multiple of %d in grouped_k", p->k, a->gran_k);
}

hone_status problem_check_moe_gemm(const hone_moe_gemm *p, hone_error *error)
{
    const bool gated = p->activation != HONE_ACTIVATION_PLAIN;
    const int64_t columns = gated ? p->n / 2 : p->n;
    hone_status status = HONE_OK;

    if (gated && p->n % 2 != 0) {
        return problem_refuse(error, "n",
                              "with an activation B's rows are n / 2 gates and n / 2 ups");
    }
    if (p->row_align != 1 && p->row_align % 8 != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "row_align=%d must be 1 or a multiple of 8", p->row_align);
    }
    if (p->m == 0 && p->tokens > 0) {
        return problem_refuse(error, "m",
                              "tokens have rows: leave m out, or say how many there is room for");
    }
    if (p->group_layout == HONE_GROUPS_CONTIGUOUS && p->m % p->row_align != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "m=%" PRId64 " must be a multiple of row_align=%d in contiguous groups",
                          p->m, p->row_align);
    }
    if (p->m > INT32_MAX) {
        return problem_refuse(error, "m", "groups count rows in 32 bits: at most 2^31 - 1");
    }
    TRY(check_factors(&p->recipe, p->k, p->a_scale_layout, p->b_scale_layout, p->align, error));
    TRY(check_moe_out(p, columns, error));
    TRY(check_moe_k(p, error));
    TRY(problem_check_align(p->align, columns * numfmt_dtype_bits((hone_dtype)p->out) / 8,
                            "a row of D (columns)", error));
done:
    return status;
}
