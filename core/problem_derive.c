/* problem_derive.c - defaults that follow from a problem's other fields: what serving uses
 * (kernels.md 1.3, 5.1). */
#include "core/problem.h"

#include "core/integer.h"
#include "core/numfmt.h"
#include "core/problem_index.h"
#include "core/problem_moe.h"

static void set_if_zero(int32_t *field, int32_t value)
{
    if (*field == 0) {
        *field = value;
    }
}

/* The largest power of two, up to 16, that divides `bytes`. */
static int32_t alignment_of(int64_t bytes)
{
    int64_t lowest = (bytes | 16) & -(bytes | 16);

    return (int32_t)lowest;
}

/* One scale for each row is read along rows by many threads, so that serving keeps it column-major;
 * blocks are few. */
static int32_t layout_of(const hone_quant *quant)
{
    if (quant->gran_mn != 1) {
        return HONE_SCALES_ROW;
    }
    return quant->scale == HONE_DTYPE_UE8M0 ? HONE_SCALES_PACKED : HONE_SCALES_TMA;
}

static void derive_fp8_gemm(hone_fp8_gemm *p)
{
    int64_t b_row = p->k * numfmt_dtype_bits((hone_dtype)p->recipe.b.element) / 8;
    int64_t d_row = p->n * numfmt_dtype_bits((hone_dtype)p->out) / 8;

    set_if_zero(&p->a_scale_layout, layout_of(&p->recipe.a));
    set_if_zero(&p->b_scale_layout, layout_of(&p->recipe.b));
    set_if_zero(&p->align, alignment_of(p->k | b_row | d_row));
}

static void derive_moe_gemm(hone_moe_gemm *p)
{
    const bool quantised = p->out == HONE_DTYPE_E4M3;
    const int64_t columns = p->activation == HONE_ACTIVATION_PLAIN ? p->n : p->n / 2;
    const int64_t b_row = p->k * numfmt_dtype_bits((hone_dtype)p->recipe.b.element) / 8;

    if (p->m == 0) {
        p->m = problem_moe_rows(p->tokens, p->topk, p->experts, p->row_align, p->group_layout);
    }
    if (quantised) {
        set_if_zero(&p->out_scale, p->recipe.a.scale);
        set_if_zero(&p->out_group, p->recipe.a.gran_k);
        const bool bytes = p->out_scale == HONE_DTYPE_UE8M0;
        set_if_zero(&p->out_scale_layout, bytes ? HONE_SCALES_PACKED : HONE_SCALES_TMA);
        set_if_zero(&p->out_rule, bytes ? HONE_RULE_POW2_AMAX : HONE_RULE_RAW_AMAX);
    }
    set_if_zero(&p->a_scale_layout, layout_of(&p->recipe.a));
    set_if_zero(&p->b_scale_layout, layout_of(&p->recipe.b));
    set_if_zero(&p->align,
                alignment_of(p->k | b_row | columns * numfmt_dtype_bits((hone_dtype)p->out) / 8));
}

static void derive_act_quant(hone_act_quant *p)
{
    bool bytes = p->scale == HONE_DTYPE_UE8M0;

    set_if_zero(&p->scale_layout, bytes ? HONE_SCALES_PACKED : HONE_SCALES_TMA);
    set_if_zero(&p->rule, bytes ? HONE_RULE_POW2_AMAX : HONE_RULE_RAW_AMAX);
    if (p->row_set == HONE_ROWS_GATHERED) {
        set_if_zero(&p->topk, 1);
    }
    set_if_zero(&p->align, alignment_of(p->k));
}

static void derive_weight_quant(hone_weight_quant *p)
{
    const hone_quant quant = {p->out, p->scale, p->gran_n, p->gran_k};

    set_if_zero(&p->scale_layout, layout_of(&quant));
    set_if_zero(&p->rule, p->scale == HONE_DTYPE_UE8M0 ? HONE_RULE_POW2_AMAX : HONE_RULE_RAW_AMAX);
    set_if_zero(&p->align, alignment_of(p->k));
}

void problem_derive_pages(const hone_record *record, int32_t page_size, int64_t *page_stride,
                          int32_t *align)
{
    record_layout layout;

    if (*page_stride == 0 && record_layout_of(record, page_size, &layout, NULL) == HONE_OK) {
        *page_stride = integer_round_up(layout.page_bytes, layout.stride_unit);
    }
    set_if_zero(align, alignment_of(*page_stride));
}

static void derive_kv_quant(hone_kv_quant *p)
{
    problem_derive_pages(&p->record, p->page_size, &p->page_stride, &p->align);
}

static void derive_kv_gather(hone_kv_gather *p)
{
    problem_derive_pages(&p->record, p->page_size, &p->page_stride, &p->align);
}

static void derive_fold(hone_fold *p)
{
    set_if_zero(&p->scale_layout, HONE_SCALES_PACKED);
    set_if_zero(&p->q_scale_layout, HONE_SCALES_PACKED);
    set_if_zero(&p->align, alignment_of(p->k));
}

/* Either of dtype and layout says the other. */
static void derive_scale_pack(hone_scale_pack *p)
{
    set_if_zero(&p->scale_layout,
                p->scale == HONE_DTYPE_F32 ? HONE_SCALES_TMA : HONE_SCALES_PACKED);
    set_if_zero(&p->scale,
                p->scale_layout == HONE_SCALES_PACKED ? HONE_DTYPE_UE8M0 : HONE_DTYPE_F32);
    set_if_zero(&p->align, alignment_of(4 * (p->experts > 0 ? p->rows : p->groups)));
}

void problem_derive(hone_problem *problem)
{
    switch (problem->op) {
    case HONE_OP_FP8_GEMM:
        derive_fp8_gemm(&problem->as.fp8_gemm);
        break;
    case HONE_OP_ACT_QUANT:
        derive_act_quant(&problem->as.act_quant);
        break;
    case HONE_OP_KV_QUANT:
        derive_kv_quant(&problem->as.kv_quant);
        break;
    case HONE_OP_MXFP4_FOLD:
        set_if_zero(&problem->as.mxfp4_fold.align, alignment_of(problem->as.mxfp4_fold.k / 2));
        break;
    case HONE_OP_SCALE_PACK:
        derive_scale_pack(&problem->as.scale_pack);
        break;
    case HONE_OP_FOLD:
        derive_fold(&problem->as.fold);
        break;
    case HONE_OP_WEIGHT_QUANT:
        derive_weight_quant(&problem->as.weight_quant);
        break;
    case HONE_OP_MOE_GEMM:
        derive_moe_gemm(&problem->as.moe_gemm);
        break;
    case HONE_OP_MOE_ALIGN:
        problem_derive_moe_align(&problem->as.moe_align);
        break;
    case HONE_OP_MOE_COMBINE:
        problem_derive_moe_combine(&problem->as.moe_combine);
        break;
    case HONE_OP_TOPK:
        problem_derive_topk(&problem->as.topk);
        break;
    case HONE_OP_MQA_LOGITS:
        problem_derive_mqa(&problem->as.mqa_logits);
        break;
    case HONE_OP_MQA_LOGITS_PAGED:
        problem_derive_mqa_paged(&problem->as.mqa_logits_paged);
        break;
    case HONE_OP_INDEX_PREPARE:
        problem_derive_prepare(&problem->as.index_prepare);
        break;
    case HONE_OP_KV_GATHER:
        derive_kv_gather(&problem->as.kv_gather);
        break;
    default:
        break;
    }
}
