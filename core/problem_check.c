/* problem_check.c - whether a problem's fields are legal, each alone and together; a refusal names
 * the field, its value, the rule and what to say instead. Which problems a template serves is the
 * template's business. */
#include "core/problem_check.h"

#include "core/problem.h"
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

hone_status problem_refuse(hone_error *error, const char *field, const char *rule)
{
    return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "%s: %s", field, rule);
}

hone_status problem_check_layout(const char *field, int32_t layout, int32_t scale, bool one_row,
                                 hone_error *error)
{
    if (layout == HONE_SCALES_TMA && scale != HONE_DTYPE_F32) {
        return problem_refuse(error, field,
                              "tma is for 4-byte scales; ue8m0 takes packed, row or col");
    }
    if (layout == HONE_SCALES_PACKED && scale != HONE_DTYPE_UE8M0) {
        return problem_refuse(error, field,
                              "packed is for ue8m0 scales; f32 takes tma, row or col");
    }
    if (!one_row && layout != HONE_SCALES_ROW && layout != HONE_SCALES_COL) {
        return problem_refuse(error, field, "scales of blocks are row or col");
    }
    return HONE_OK;
}

hone_status problem_check_scale_dtype(const char *field, int32_t scale, hone_error *error)
{
    if (scale != HONE_DTYPE_F32 && scale != HONE_DTYPE_UE8M0) {
        return problem_refuse(error, field, "scales are f32 or ue8m0");
    }
    return HONE_OK;
}

hone_status problem_check_align(int64_t align, int64_t row_bytes, const char *rows,
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
bool problem_granularity_known(int32_t mn, int32_t k, bool blocks)
{
    return (mn == 1 || (blocks && (mn == 32 || mn == 128))) && (k == 32 || k == 128);
}

/* What quantisers share: plain floats in, e4m3 out, scales that their rule can make. */
static hone_status check_quantiser(int32_t in, int32_t out, int32_t scale, int32_t rule,
                                   hone_error *error)
{
    const bool tiny = rule == HONE_RULE_POW2_TINY;
    const bool power = rule == HONE_RULE_POW2_AMAX || rule == HONE_RULE_POW2_SCALE || tiny;

    if (in != HONE_DTYPE_BF16 && in != HONE_DTYPE_F16 && in != HONE_DTYPE_F32) {
        return problem_refuse(error, "in", "what is quantised is bf16, f16 or f32");
    }
    if (out != HONE_DTYPE_E4M3) {
        return problem_refuse(error, "out", "activations and weights are quantised to e4m3");
    }
    if (rule > HONE_RULE_RAW_TINY && !tiny) {
        return problem_refuse(error, "rule",
                              "pow2_amax, raw_amax, pow2_scale, raw_tiny or pow2_tiny");
    }
    if (scale == HONE_DTYPE_UE8M0 && !power) {
        return problem_refuse(error, "rule",
                              "ue8m0 keeps only an exponent: pow2_amax, _scale or _tiny");
    }
    return problem_check_scale_dtype("scale", scale, error);
}

static hone_status check_act_quant(const hone_act_quant *p, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(check_quantiser(p->in, p->out, p->scale, p->rule, error));
    TRY(problem_check_row_set(p, error));
    if (p->group != 32 && p->group != 64 && p->group != 128) {
        return problem_refuse(error, "group", "a scale covers 32, 64 or 128 elements");
    }
    if (p->k % p->group != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "k=%" PRId64 " must be a multiple of group=%d; pad the rows", p->k,
                          p->group);
    }
    TRY(problem_check_layout("scale_layout", p->scale_layout, p->scale, true, error));
    TRY(problem_check_align(p->align, p->k, "a row of the output (k)", error));
done:
    return status;
}

static hone_status check_weight_quant(const hone_weight_quant *p, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(check_quantiser(p->in, p->out, p->scale, p->rule, error));
    if (!problem_granularity_known(p->gran_n, p->gran_k, true)) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "gran_n=%d, gran_k=%d: weights have scales of 1, 32 or 128 rows by 32 or "
                          "128 of K",
                          p->gran_n, p->gran_k);
    }
    TRY(problem_check_layout("scale_layout", p->scale_layout, p->scale, p->gran_n == 1, error));
    TRY(problem_check_align(p->align, p->k, "a row of the output (k)", error));
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
    TRY(problem_check_align(align, page_stride, "a page (page_stride)", error));
done:
    return status;
}

static hone_status check_kv_quant(const hone_kv_quant *p, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(problem_check_pages(&p->record, p->page_size, p->page_stride, p->align, error));
    if (p->in != HONE_DTYPE_BF16) {
        return problem_refuse(error, "in", "cache rows are made from bf16");
    }
done:
    return status;
}

static hone_status check_kv_gather(const hone_kv_gather *p, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(problem_check_pages(&p->record, p->page_size, p->page_stride, p->align, error));
    if (p->by == HONE_GATHER_SLOTS && (p->sequences != 1 || p->table_pages != 1)) {
        return problem_refuse(
            error, "by",
            "slots have no table: leave sequences and table_pages out, or say by=table");
    }
    if (p->sequences >= INT32_MAX || p->table_pages >= INT32_MAX) {
        return problem_refuse(error, "by",
                              "a table has fewer than 2^31 sequences and pages of each");
    }
done:
    return status;
}

static hone_status check_fold(const hone_fold *p, hone_error *error)
{
    hone_status status = HONE_OK;

    if (p->element != HONE_DTYPE_E4M3) {
        return problem_refuse(error, "element", "codes of e4m3 are folded");
    }
    if (p->scale != HONE_DTYPE_UE8M0) {
        return problem_refuse(error, "scale",
                              "f32 scales need not be powers of two; only ue8m0 folds");
    }
    if (p->group != 32 || p->out_group != 128) {
        return problem_refuse(error, "group", "groups of 32 become groups of 128");
    }
    if (p->k % p->group != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "k=%" PRId64 " must be a multiple of group=%d; pad the rows", p->k,
                          p->group);
    }
    TRY(problem_check_layout("scale_layout", p->scale_layout, p->scale, true, error));
    TRY(problem_check_layout("q_scale_layout", p->q_scale_layout, p->scale, true, error));
    TRY(problem_check_align(p->align, p->k, "a row (k)", error));
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
        return problem_refuse(error, "scale", "new scales are ue8m0 or f32");
    }
    TRY(problem_check_align(p->align, p->k / 2, "a row of codes (k/2)", error));
done:
    return status;
}

static hone_status check_k_grouped(const hone_scale_pack *p, hone_error *error)
{
    if (p->experts == 0) {
        return p->gran_k == 128
                   ? HONE_OK
                   : problem_refuse(error, "gran_k", "only experts have sizes: leave it out");
    }
    if (p->batch != 1) {
        return problem_refuse(error, "batch", "experts share one matrix: leave it out");
    }
    if (p->scale_layout != HONE_SCALES_PACKED) {
        return problem_refuse(error, "scale_layout", "scales of experts are packed");
    }
    if (p->gran_k != 32 && p->gran_k != 128) {
        return problem_refuse(error, "gran_k", "a scale covers 32 or 128 elements of k");
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

    TRY(problem_check_scale_dtype("scale", p->scale, error));
    if (p->scale_layout == HONE_SCALES_ROW) {
        return problem_refuse(error, "scale_layout",
                              "they are row-major already; col, tma or packed");
    }
    if (p->scale == HONE_DTYPE_UE8M0 && p->scale_layout == HONE_SCALES_COL) {
        return problem_refuse(error, "scale_layout",
                              "ue8m0 scales are packed; f32 takes col or tma");
    }
    TRY(problem_check_layout("scale_layout", p->scale_layout, p->scale, true, error));
    TRY(check_k_grouped(p, error));
    TRY(problem_check_align(p->align, 4 * (p->experts > 0 ? p->rows : p->groups), "a row of scales",
                            error));
done:
    return status;
}

static hone_status check_op(const hone_problem *problem, hone_error *error)
{
    switch (problem->op) {
    case HONE_OP_FP8_GEMM:
        return problem_check_fp8_gemm(&problem->as.fp8_gemm, error);
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
        return problem_check_moe_gemm(&problem->as.moe_gemm, error);
    case HONE_OP_MOE_ALIGN:
        return problem_check_moe_align(&problem->as.moe_align, error);
    case HONE_OP_MOE_COMBINE:
        return problem_check_moe_combine(&problem->as.moe_combine, error);
    case HONE_OP_TOPK:
    case HONE_OP_MQA_LOGITS:
    case HONE_OP_MQA_LOGITS_PAGED:
    case HONE_OP_INDEX_PREPARE:
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
