/* problem_check.c - whether a problem's fields are legal, each alone and together; a refusal names
 * the field, its value, the rule and what to say instead. Which problems a template serves is the
 * template's business. */
#include "core/problem.h"

#include "core/numfmt.h"
#include "core/problem_index.h"
#include "core/problem_moe.h"

#include <inttypes.h>

static hone_status check_field(const hone_problem *problem, const problem_field *field,
                               hone_error *error)
{
    int64_t value = problem_field_get(problem, field);

    if (field->kind == PROBLEM_ENUM) {
        if (value >= 0 && value < field->names_len && field->names[value] != NULL) {
            return HONE_OK;
        }
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "%s=%" PRId64 " is not a known value%s",
                          field->name, value,
                          value == 0 ? "; problem_derive or the text form set a default" : "");
    }
    if (value >= field->least && value <= field->most) {
        return HONE_OK;
    }
    return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                      "%s=%" PRId64 " must lie in %" PRId64 "..%" PRId64, field->name, value,
                      field->least, field->most);
}

static hone_status refuse(hone_error *error, const char *field, const char *rule)
{
    return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "%s: %s", field, rule);
}

/* The layout of a scale matrix must go with the dtype; `one_row` says whether each row has its own
 * scales. */
static hone_status check_layout(const char *field, int32_t layout, int32_t scale, bool one_row,
                                hone_error *error)
{
    if (layout == HONE_SCALES_TMA && scale != HONE_DTYPE_F32) {
        return refuse(error, field, "tma is for 4-byte scales; ue8m0 takes packed, row or col");
    }
    if (layout == HONE_SCALES_PACKED && scale != HONE_DTYPE_UE8M0) {
        return refuse(error, field, "packed is for ue8m0 scales; f32 takes tma, row or col");
    }
    if (!one_row && layout != HONE_SCALES_ROW && layout != HONE_SCALES_COL) {
        return refuse(error, field, "scales of blocks are row or col");
    }
    return HONE_OK;
}

static hone_status check_scale_dtype(const char *field, int32_t scale, hone_error *error)
{
    if (scale != HONE_DTYPE_F32 && scale != HONE_DTYPE_UE8M0) {
        return refuse(error, field, "scales are f32 or ue8m0");
    }
    return HONE_OK;
}

static hone_status check_align(int64_t align, int64_t row_bytes, const char *rows,
                               hone_error *error)
{
    if ((align & (align - 1)) != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "align=%" PRId64 " must be a power of two up to 16", align);
    }
    if (row_bytes % align != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "align=%" PRId64 " does not divide the %" PRId64
                          " bytes of %s; leave align out or lower it",
                          align, row_bytes, rows);
    }
    return HONE_OK;
}

/* Blocks that are not square come of folding (docs/kernels/fp8_gemm_fold.md). */
static bool granularity_known(int32_t mn, int32_t k, bool blocks)
{
    return (mn == 1 || (blocks && (mn == 32 || mn == 128))) && (k == 32 || k == 128);
}

static hone_status check_recipe(const hone_recipe *recipe, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(check_scale_dtype("a_scale", recipe->a.scale, error));
    TRY(check_scale_dtype("b_scale", recipe->b.scale, error));
    if (recipe->a.element != HONE_DTYPE_E4M3) {
        return refuse(error, "a_element", "products are of an A of e4m3");
    }
    if (recipe->b.element != HONE_DTYPE_E4M3 && recipe->b.element != HONE_DTYPE_E2M1) {
        return refuse(error, "b_element", "products are by a B of e4m3 or e2m1");
    }
    if (!granularity_known(recipe->a.gran_mn, recipe->a.gran_k, false)) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "a_gran_mn=%d, a_gran_k=%d: A has scales of 1x32 or 1x128",
                          recipe->a.gran_mn, recipe->a.gran_k);
    }
    if (!granularity_known(recipe->b.gran_mn, recipe->b.gran_k, true)) {
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
    TRY(check_layout("a_scale_layout", a_layout, recipe->a.scale, true, error));
    TRY(check_layout("b_scale_layout", b_layout, recipe->b.scale, recipe->b.gran_mn == 1, error));
    TRY(check_align(align, k, "a row of A (k)", error));
    TRY(check_align(align, k * numfmt_dtype_bits((hone_dtype)recipe->b.element) / 8,
                    "a row of B (k)", error));
done:
    return status;
}

static hone_status check_fp8_gemm(const hone_fp8_gemm *p, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(check_factors(&p->recipe, p->k, p->a_scale_layout, p->b_scale_layout, p->align, error));
    if (p->out != HONE_DTYPE_BF16 && p->out != HONE_DTYPE_F32) {
        return refuse(error, "out", "the product is written as bf16 or f32");
    }
    TRY(check_align(p->align, p->n * numfmt_dtype_bits((hone_dtype)p->out) / 8, "a row of D (n)",
                    error));
done:
    return status;
}

/* What quantisers share: plain floats in, e4m3 out, scales that their rule can make. */
static hone_status check_quantiser(int32_t in, int32_t out, int32_t scale, int32_t rule,
                                   hone_error *error)
{
    const bool tiny = rule == HONE_RULE_POW2_TINY;
    const bool power = rule == HONE_RULE_POW2_AMAX || rule == HONE_RULE_POW2_SCALE || tiny;

    if (in != HONE_DTYPE_BF16 && in != HONE_DTYPE_F16 && in != HONE_DTYPE_F32) {
        return refuse(error, "in", "what is quantised is bf16, f16 or f32");
    }
    if (out != HONE_DTYPE_E4M3) {
        return refuse(error, "out", "activations and weights are quantised to e4m3");
    }
    if (rule > HONE_RULE_RAW_TINY && !tiny) {
        return refuse(error, "rule", "pow2_amax, raw_amax, pow2_scale, raw_tiny or pow2_tiny");
    }
    if (scale == HONE_DTYPE_UE8M0 && !power) {
        return refuse(error, "rule", "ue8m0 keeps only an exponent: pow2_amax, _scale or _tiny");
    }
    return check_scale_dtype("scale", scale, error);
}

static hone_status check_act_quant(const hone_act_quant *p, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(check_quantiser(p->in, p->out, p->scale, p->rule, error));
    TRY(problem_check_row_set(p, error));
    if (p->group != 32 && p->group != 64 && p->group != 128) {
        return refuse(error, "group", "a scale covers 32, 64 or 128 elements");
    }
    if (p->k % p->group != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "k=%" PRId64 " must be a multiple of group=%d; pad the rows", p->k,
                          p->group);
    }
    TRY(check_layout("scale_layout", p->scale_layout, p->scale, true, error));
    TRY(check_align(p->align, p->k, "a row of the output (k)", error));
done:
    return status;
}

static hone_status check_weight_quant(const hone_weight_quant *p, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(check_quantiser(p->in, p->out, p->scale, p->rule, error));
    if (!granularity_known(p->gran_n, p->gran_k, true)) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "gran_n=%d, gran_k=%d: weights have scales of 1, 32 or 128 rows by 32 or "
                          "128 of K",
                          p->gran_n, p->gran_k);
    }
    TRY(check_layout("scale_layout", p->scale_layout, p->scale, p->gran_n == 1, error));
    TRY(check_align(p->align, p->k, "a row of the output (k)", error));
done:
    return status;
}

hone_status problem_check_pages(const hone_record *record, int32_t page_size, int64_t page_stride,
                                int32_t align, hone_error *error)
{
    hone_status status = HONE_OK;
    record_layout layout;

    TRY(record_layout_of(record, page_size, &layout, error));
    if (page_stride < layout.page_bytes) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "page_stride=%" PRId64 " is less than the page's %" PRId64 " bytes",
                          page_stride, layout.page_bytes);
    }
    if (page_stride % layout.stride_unit != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "page_stride=%" PRId64 " must be a multiple of %d bytes for this record",
                          page_stride, layout.stride_unit);
    }
    TRY(check_align(align, page_stride, "a page (page_stride)", error));
done:
    return status;
}

static hone_status check_kv_quant(const hone_kv_quant *p, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(problem_check_pages(&p->record, p->page_size, p->page_stride, p->align, error));
    if (p->in != HONE_DTYPE_BF16) {
        return refuse(error, "in", "cache rows are made from bf16");
    }
done:
    return status;
}

static hone_status check_kv_gather(const hone_kv_gather *p, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(problem_check_pages(&p->record, p->page_size, p->page_stride, p->align, error));
    if (p->by == HONE_GATHER_SLOTS && (p->sequences != 1 || p->table_pages != 1)) {
        return refuse(error, "by",
                      "slots have no table: leave sequences and table_pages out, or say by=table");
    }
    if (p->sequences >= INT32_MAX || p->table_pages >= INT32_MAX) {
        return refuse(error, "by", "a table has fewer than 2^31 sequences and pages of each");
    }
done:
    return status;
}

static hone_status check_fold(const hone_fold *p, hone_error *error)
{
    hone_status status = HONE_OK;

    if (p->element != HONE_DTYPE_E4M3) {
        return refuse(error, "element", "codes of e4m3 are folded");
    }
    if (p->scale != HONE_DTYPE_UE8M0) {
        return refuse(error, "scale", "f32 scales need not be powers of two; only ue8m0 folds");
    }
    if (p->group != 32 || p->out_group != 128) {
        return refuse(error, "group", "groups of 32 become groups of 128");
    }
    if (p->k % p->group != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "k=%" PRId64 " must be a multiple of group=%d; pad the rows", p->k,
                          p->group);
    }
    TRY(check_layout("scale_layout", p->scale_layout, p->scale, true, error));
    TRY(check_layout("q_scale_layout", p->q_scale_layout, p->scale, true, error));
    TRY(check_align(p->align, p->k, "a row (k)", error));
done:
    return status;
}

static hone_status check_mxfp4_fold(const hone_mxfp4_fold *p, hone_error *error)
{
    hone_status status = HONE_OK;
    const bool square = p->block_rows == p->block_cols;

    if (!(square && (p->block_rows == 128 || p->block_rows == 32)) &&
        !(p->block_rows == 1 && p->block_cols == 128)) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "block_rows=%d, block_cols=%d: blocks are 128x128, 32x32 or 1x128",
                          p->block_rows, p->block_cols);
    }
    if (p->k % 32 != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "k=%" PRId64 " must be a multiple of 32: an exponent covers 32 codes",
                          p->k);
    }
    if (p->scale != HONE_DTYPE_UE8M0 && p->scale != HONE_DTYPE_F32) {
        return refuse(error, "scale", "new scales are ue8m0 or f32");
    }
    TRY(check_align(p->align, p->k / 2, "a row of codes (k/2)", error));
done:
    return status;
}

static hone_status check_k_grouped(const hone_scale_pack *p, hone_error *error)
{
    if (p->experts == 0) {
        return p->gran_k == 128 ? HONE_OK
                                : refuse(error, "gran_k", "only experts have sizes: leave it out");
    }
    if (p->batch != 1) {
        return refuse(error, "batch", "experts share one matrix: leave it out");
    }
    if (p->scale_layout != HONE_SCALES_PACKED) {
        return refuse(error, "scale_layout", "scales of experts are packed");
    }
    if (p->gran_k != 32 && p->gran_k != 128) {
        return refuse(error, "gran_k", "a scale covers 32 or 128 elements of k");
    }
    return p->rows % 4 == 0
               ? HONE_OK
               : status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                            "rows=%" PRId64 " must be a multiple of 4 for experts; pad the rows",
                            p->rows);
}

static hone_status check_scale_pack(const hone_scale_pack *p, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(check_scale_dtype("scale", p->scale, error));
    if (p->scale_layout == HONE_SCALES_ROW) {
        return refuse(error, "scale_layout", "they are row-major already; col, tma or packed");
    }
    if (p->scale == HONE_DTYPE_UE8M0 && p->scale_layout == HONE_SCALES_COL) {
        return refuse(error, "scale_layout", "ue8m0 scales are packed; f32 takes col or tma");
    }
    TRY(check_layout("scale_layout", p->scale_layout, p->scale, true, error));
    TRY(check_k_grouped(p, error));
    TRY(check_align(p->align, 4 * (p->experts > 0 ? p->rows : p->groups), "a row of scales",
                    error));
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
                   : refuse(error, "out_scale",
                            "only a D of e4m3 has scales: leave the out_ fields out");
    }
    if (p->out != HONE_DTYPE_E4M3 || p->activation == HONE_ACTIVATION_PLAIN) {
        return refuse(error, "out", "D is bf16 or f32; e4m3 after an activation");
    }
    TRY(check_scale_dtype("out_scale", p->out_scale, error));
    if (p->out_group != 32 && p->out_group != 128) {
        return refuse(error, "out_group", "a scale covers 32 or 128 columns");
    }
    if (columns % p->out_group != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "n=%" PRId64 ": its %" PRId64 " columns of D must be a multiple of "
                          "out_group=%d",
                          p->n, columns, p->out_group);
    }
    if (p->out_scale_layout == 0 || p->out_rule == 0) {
        return refuse(error, p->out_rule == 0 ? "out_rule" : "out_scale_layout",
                      "a quantised D has one; problem_derive or the text form set a default");
    }
    if (p->out_scale == HONE_DTYPE_UE8M0 && !power) {
        return refuse(error, "out_rule", "ue8m0 keeps only an exponent: pow2_amax or pow2_scale");
    }
    TRY(check_layout("out_scale_layout", p->out_scale_layout, p->out_scale, true, error));
done:
    return status;
}

/* A weight gradient sums over rows that only k has. */
static hone_status check_moe_k(const hone_moe_gemm *p, hone_error *error)
{
    const hone_quant *a = &p->recipe.a, *b = &p->recipe.b;

    if (p->group_layout != HONE_GROUPS_K) {
        return p->accumulate == 0 ? HONE_OK
                                  : refuse(error, "accumulate", "only grouped_k adds to D");
    }
    if (p->out != HONE_DTYPE_F32 || p->activation != HONE_ACTIVATION_PLAIN || p->fill != 0) {
        return refuse(error, "out", "grouped_k writes plain f32, every row of it: say out=f32");
    }
    if (a->scale != HONE_DTYPE_F32 || b->scale != HONE_DTYPE_F32 || b->gran_mn != 1 ||
        a->gran_k != b->gran_k || b->element != HONE_DTYPE_E4M3) {
        return refuse(error, "recipe", "grouped_k takes f32-1x128-1x128 or f32-1x32-1x32");
    }
    return p->k % a->gran_k == 0
               ? HONE_OK
               : status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                            "k=%" PRId64 " must be a multiple of %d in grouped_k", p->k, a->gran_k);
}

static hone_status check_moe_gemm(const hone_moe_gemm *p, hone_error *error)
{
    const bool gated = p->activation != HONE_ACTIVATION_PLAIN;
    const int64_t columns = gated ? p->n / 2 : p->n;
    hone_status status = HONE_OK;

    if (gated && p->n % 2 != 0) {
        return refuse(error, "n", "with an activation B's rows are n / 2 gates and n / 2 ups");
    }
    if (p->row_align != 1 && p->row_align % 8 != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "row_align=%d must be 1 or a multiple of 8", p->row_align);
    }
    if (p->m == 0 && p->tokens > 0) {
        return refuse(error, "m",
                      "tokens have rows: leave m out, or say how many there is room for");
    }
    if (p->group_layout == HONE_GROUPS_CONTIGUOUS && p->m % p->row_align != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "m=%" PRId64 " must be a multiple of row_align=%d in contiguous groups",
                          p->m, p->row_align);
    }
    if (p->m > INT32_MAX) {
        return refuse(error, "m", "groups count rows in 32 bits: at most 2^31 - 1");
    }
    TRY(check_factors(&p->recipe, p->k, p->a_scale_layout, p->b_scale_layout, p->align, error));
    TRY(check_moe_out(p, columns, error));
    TRY(check_moe_k(p, error));
    TRY(check_align(p->align, columns * numfmt_dtype_bits((hone_dtype)p->out) / 8,
                    "a row of D (columns)", error));
done:
    return status;
}

static hone_status check_op(const hone_problem *problem, hone_error *error)
{
    switch (problem->op) {
    case HONE_OP_FP8_GEMM:
        return check_fp8_gemm(&problem->as.fp8_gemm, error);
    case HONE_OP_ACT_QUANT:
        return check_act_quant(&problem->as.act_quant, error);
    case HONE_OP_MXFP4_FOLD:
        return check_mxfp4_fold(&problem->as.mxfp4_fold, error);
    case HONE_OP_SCALE_PACK:
        return check_scale_pack(&problem->as.scale_pack, error);
    case HONE_OP_FOLD:
        return check_fold(&problem->as.fold, error);
    case HONE_OP_WEIGHT_QUANT:
        return check_weight_quant(&problem->as.weight_quant, error);
    case HONE_OP_MOE_GEMM:
        return check_moe_gemm(&problem->as.moe_gemm, error);
    case HONE_OP_MOE_ALIGN:
        return problem_check_moe_align(&problem->as.moe_align, error);
    case HONE_OP_MOE_COMBINE:
        return problem_check_moe_combine(&problem->as.moe_combine, error);
    case HONE_OP_TOPK:
    case HONE_OP_MQA_LOGITS:
    case HONE_OP_MQA_LOGITS_PAGED:
        return problem_check_index(problem, error);
    case HONE_OP_KV_QUANT:
        return check_kv_quant(&problem->as.kv_quant, error);
    default:
        return check_kv_gather(&problem->as.kv_gather, error);
    }
}

hone_status hone_problem_check(const hone_problem *problem, hone_error *error)
{
    hone_status status = HONE_OK;
    size_t count;
    hone_operand operands[HONE_MAX_OPERANDS];

    if (problem == NULL || problem->size != sizeof *problem) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "a hone_problem begins with size = sizeof(hone_problem), %zu",
                          sizeof *problem);
    }
    const problem_field *fields = problem_fields(problem->op, &count);
    if (fields == NULL) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "op=%d is not an op", problem->op);
    }
    for (size_t i = 0; i < count; i++) {
        TRY(check_field(problem, &fields[i], error));
    }
    TRY(check_op(problem, error));
    TRY(problem_operands(problem, operands, &count, error)); /* its sizes must fit 64 bits */
done:
    return status;
}
