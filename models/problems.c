/* problems.c - from a rank's shapes to the problems that the tuner works on. */
#include "models/problems_parts.h"

#include "core/integer.h"
#include "core/problem.h"
#include "core/problem_moe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of one launch: more would not be one step of any engine. */
#define PROBLEMS_MAX_M (INT64_C(1) << 24)

hone_status problems_add(problem_list *list, const hone_problem *problem, const shape *s,
                         hone_error *error)
{
    hone_error why = {0};
    hone_status status = hone_problem_check(problem, &why);

    if (status != HONE_OK) {
        return status_set(error, status, NULL, 0, "%s: %s", s->use, why.message);
    }
    for (size_t i = 0; i < list->len; i++) {
        if (memcmp(&list->at[i].problem, problem, sizeof *problem) == 0) {
            list->at[i].launches += s->layers;
            return HONE_OK;
        }
    }
    if (list->len == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
        llm_problem *grown = reallocarray(list->at, capacity, sizeof *grown);

        if (grown == NULL) {
            return status_set(error, HONE_NO_MEMORY, NULL, 0, "%zu problems", capacity);
        }
        list->at = grown;
        list->capacity = capacity;
    }
    llm_problem *added = &list->at[list->len++];
    memset(added, 0, sizeof *added);
    added->problem = *problem;
    added->launches = s->layers;
    snprintf(added->use, sizeof added->use, "%s", s->use);
    return HONE_OK;
}

static bool is_cache(const shape *s)
{
    return s->record.format != 0;
}

static bool is_fp8_gemm(const shape *s)
{
    return s->dtype == HONE_DTYPE_E4M3 && s->experts == 0 && !is_cache(s);
}

/* Kernels that promote every 128 of K read f32 scales, so that stored bytes are expanded when the
 * weights are loaded; per-32 kernels read the bytes themselves. */
static int32_t scale_of(const shape *s)
{
    return s->block_k < 128 ? s->scale : HONE_DTYPE_F32;
}

static void make_gemm(const shape *s, int64_t m, hone_problem *out)
{
    hone_fp8_gemm *p = &out->as.fp8_gemm;

    problem_init(out, HONE_OP_FP8_GEMM);
    p->m = m;
    p->n = s->n;
    p->k = s->k;
    p->batch = s->batch;
    p->recipe.a = (hone_quant){HONE_DTYPE_E4M3, scale_of(s), 1, s->block_k};
    p->recipe.b = (hone_quant){HONE_DTYPE_E4M3, scale_of(s), s->block_n, s->block_k};
    if (s->batch > 1) {
        p->batch_layout = HONE_BATCH_INNER;
    }
    problem_derive(out);
}

static hone_status add_gemm(problem_list *list, const shape *s, int64_t m, hone_error *error)
{
    hone_problem problem;

    if (!is_fp8_gemm(s)) {
        return HONE_OK;
    }
    make_gemm(s, m, &problem);
    return problems_add(list, &problem, s, error);
}

/* A batch that lies inside the rows is quantised as one long row, so that the scales are [m, batch
 * * groups]. */
static hone_status add_act(problem_list *list, const shape *s, int64_t m, hone_error *error)
{
    hone_problem gemm, problem;

    if (!is_fp8_gemm(s)) {
        return HONE_OK;
    }
    make_gemm(s, m, &gemm);
    problem_init(&problem, HONE_OP_ACT_QUANT);
    problem.as.act_quant.m = m;
    problem.as.act_quant.k = s->k * s->batch;
    problem.as.act_quant.scale = gemm.as.fp8_gemm.recipe.a.scale;
    problem.as.act_quant.group = gemm.as.fp8_gemm.recipe.a.gran_k;
    problem.as.act_quant.scale_layout = gemm.as.fp8_gemm.a_scale_layout;
    problem.as.act_quant.rule = list->l->weights.pow2 ? HONE_RULE_POW2_AMAX : HONE_RULE_RAW_AMAX;
    problem_derive(&problem);
    return problems_add(list, &problem, s, error);
}

static hone_status add_kv(problem_list *list, const shape *s, int64_t m, hone_error *error)
{
    hone_problem problem;
    int64_t pages = (m + SHAPES_PAGE_TOKENS - 1) / SHAPES_PAGE_TOKENS;

    if (!is_cache(s)) {
        return HONE_OK;
    }
    problem_init(&problem, HONE_OP_KV_QUANT);
    problem.as.kv_quant.tokens = m;
    problem.as.kv_quant.pages = pages > SHAPES_PAGES ? pages : SHAPES_PAGES;
    problem.as.kv_quant.page_size = SHAPES_PAGE_TOKENS;
    problem.as.kv_quant.record = s->record;
    problem_derive(&problem);
    return problems_add(list, &problem, s, error);
}

/* Before a prefill: keys of the indexer as they are, for its product; latents as values. */
static hone_status add_gather(problem_list *list, const shape *s, int64_t m, hone_error *error)
{
    hone_problem problem;
    record_layout layout;
    int64_t pages = (m + SHAPES_PAGE_TOKENS - 1) / SHAPES_PAGE_TOKENS;
    hone_kv_gather *p = &problem.as.kv_gather;

    if (!is_cache(s) ||
        record_layout_of(&s->record, SHAPES_PAGE_TOKENS, &layout, error) != HONE_OK) {
        return HONE_OK;
    }
    problem_init(&problem, HONE_OP_KV_GATHER);
    p->tokens = m;
    p->pages = p->table_pages = pages > SHAPES_PAGES ? pages : SHAPES_PAGES;
    p->page_size = SHAPES_PAGE_TOKENS;
    p->by = HONE_GATHER_TABLE;
    p->to = layout.input_dims == 128 ? HONE_GATHER_RAW : HONE_GATHER_BF16;
    p->record = s->record;
    problem_derive(&problem);
    return problems_add(list, &problem, s, error);
}

/* Tokens of a step up to which experts' rows have room of their own, so that a graph of the step
 * stays; beyond them they lie one expert's behind the other's. */
enum { MASKED_TOKENS = 128, ROW_ALIGN = 128 };

/* One of its two matrices stands for a layer's routed experts. */
static bool is_experts(const shape *s, const char *use)
{
    return s->experts > 0 && strcmp(s->use, use) == 0;
}

/* W13 with its activation behind it, quantised as W2 reads it; V4's activation clamps. */
static hone_status add_gated(problem_list *list, const shape *s, const hone_problem *w13,
                             hone_error *error)
{
    const bool v4 = list->l->attention == LLM_COMPRESSED || list->l->attention == LLM_SOURCED;
    hone_problem problem = *w13;
    hone_moe_gemm *p = &problem.as.moe_gemm;

    if (!is_experts(s, "experts.w13") || p->n / 2 % p->recipe.a.gran_k != 0) {
        return HONE_OK;
    }
    p->activation = v4 ? HONE_ACTIVATION_SILU_MUL_V4 : HONE_ACTIVATION_SILU_MUL;
    p->out = HONE_DTYPE_E4M3;
    p->out_scale = p->recipe.a.scale;
    p->out_group = p->recipe.a.gran_k;
    p->out_rule = list->l->weights.pow2 ? HONE_RULE_POW2_AMAX : HONE_RULE_RAW_AMAX;
    p->align = 0;
    problem_derive(&problem);
    return problems_add(list, &problem, s, error);
}

/* Routed experts of a rank that is given `m` tokens, as all of its group are: with experts spread
 * evenly each rank has m * topk rows, and any of the group's tokens may be one expert's. False for
 * what is no product of quantised experts. */
static bool make_moe(const problem_list *list, const shape *s, int64_t m, hone_problem *out)
{
    const llm_quant *dense = &list->l->weights;
    const bool quantised = s->dtype == HONE_DTYPE_E4M3 || s->dtype == HONE_DTYPE_E2M1;
    const bool fp4 = s->dtype == HONE_DTYPE_E2M1;
    hone_moe_gemm *p = &out->as.moe_gemm;

    if (s->experts == 0 || is_cache(s) || !quantised || s->block_k == 0) {
        return false;
    }
    problem_init(out, HONE_OP_MOE_GEMM);
    p->n = s->n;
    p->k = s->k;
    p->tokens = m;
    p->topk = (int32_t)list->l->topk;
    p->experts = s->experts;
    p->group_layout = m <= MASKED_TOKENS ? HONE_GROUPS_MASKED : HONE_GROUPS_CONTIGUOUS;
    p->row_align = ROW_ALIGN;
    if (m <= MASKED_TOKENS) {
        p->m = integer_round_up(m * list->ep, ROW_ALIGN);
    }
    const int32_t block = fp4 ? dense->block_k : s->block_k;
    const int32_t a_scale = block == 32 ? HONE_DTYPE_UE8M0 : HONE_DTYPE_F32;
    p->recipe.a = (hone_quant){HONE_DTYPE_E4M3, fp4 ? a_scale : scale_of(s), 1, block};
    p->recipe.b = (hone_quant){s->dtype, fp4 ? s->scale : scale_of(s), s->block_n, s->block_k};
    problem_derive(out);
    return true;
}

static hone_status add_moe(problem_list *list, const shape *s, int64_t m, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_problem problem;

    if (!make_moe(list, s, m, &problem)) {
        return HONE_OK;
    }
    TRY(problems_add(list, &problem, s, error));
    TRY(add_gated(list, s, &problem, error));
done:
    return status;
}

/* W13's A: tokens of the whole group, gathered and quantised into experts' rows. */
static hone_status add_gathered(problem_list *list, const shape *s, int64_t m, hone_error *error)
{
    hone_problem w13, problem;
    hone_act_quant *p = &problem.as.act_quant;

    if (!is_experts(s, "experts.w13") || !make_moe(list, s, m, &w13)) {
        return HONE_OK;
    }
    const hone_moe_gemm *to = &w13.as.moe_gemm;
    problem_init(&problem, HONE_OP_ACT_QUANT);
    p->m = to->m;
    p->k = to->k;
    p->experts = to->group_layout == HONE_GROUPS_MASKED ? to->experts : 1;
    p->tokens = m * list->ep;
    p->topk = to->topk;
    p->row_set = HONE_ROWS_GATHERED;
    p->scale = to->recipe.a.scale;
    p->group = to->recipe.a.gran_k;
    p->scale_layout = to->a_scale_layout;
    p->rule = list->l->weights.pow2 ? HONE_RULE_POW2_AMAX : HONE_RULE_RAW_AMAX;
    problem_derive(&problem);
    return problems_add(list, &problem, s, error);
}

/* The rows of those products, from what the group's tokens chose: other ranks' experts are -1. */
static hone_status add_align(problem_list *list, const shape *s, int64_t m, hone_error *error)
{
    hone_problem problem;
    hone_moe_align *p = &problem.as.moe_align;

    if (!is_experts(s, "experts.w13")) {
        return HONE_OK;
    }
    problem_init(&problem, HONE_OP_MOE_ALIGN);
    p->tokens = m * list->ep;
    p->experts = (int32_t)s->experts;
    p->topk = (int32_t)list->l->topk;
    p->group_layout = m <= MASKED_TOKENS ? HONE_GROUPS_MASKED : HONE_GROUPS_CONTIGUOUS;
    p->row_align = ROW_ALIGN;
    if (m > MASKED_TOKENS) {
        p->m = problem_moe_rows(m, p->topk, p->experts, ROW_ALIGN, p->group_layout);
    }
    problem_derive(&problem);
    return problems_add(list, &problem, s, error);
}

/* Their sums for the group's tokens, on what the shared expert made, where there is one. */
static hone_status add_combine(problem_list *list, const shape *s, int64_t m, hone_error *error)
{
    hone_problem problem;
    hone_moe_combine *p = &problem.as.moe_combine;
    const bool masked = m <= MASKED_TOKENS;

    if (!is_experts(s, "experts.w2")) {
        return HONE_OK;
    }
    problem_init(&problem, HONE_OP_MOE_COMBINE);
    p->tokens = m * list->ep;
    p->n = s->n;
    p->topk = (int32_t)list->l->topk;
    p->accumulate = list->l->shared_inter > 0;
    p->m = masked ? s->experts * integer_round_up(p->tokens, ROW_ALIGN)
                  : problem_moe_rows(m, p->topk, s->experts, ROW_ALIGN, HONE_GROUPS_CONTIGUOUS);
    problem_derive(&problem);
    return problems_add(list, &problem, s, error);
}

typedef hone_status (*problem_adder)(problem_list *list, const shape *s, int64_t m,
                                     hone_error *error);

#define BIT(op) (UINT32_C(1) << (op))

/* Ops that a row needs, all of them: what quantises for experts goes with their products. */
static const struct {
    int32_t op;
    uint32_t needs;
    problem_adder add;
} adders[] = {
    {HONE_OP_FP8_GEMM, BIT(HONE_OP_FP8_GEMM), add_gemm},
    {HONE_OP_ACT_QUANT, BIT(HONE_OP_ACT_QUANT), add_act},
    {HONE_OP_ACT_QUANT, BIT(HONE_OP_ACT_QUANT) | BIT(HONE_OP_MOE_GEMM), add_gathered},
    {HONE_OP_KV_QUANT, BIT(HONE_OP_KV_QUANT), add_kv},
    {HONE_OP_KV_GATHER, BIT(HONE_OP_KV_GATHER), add_gather},
    {HONE_OP_MOE_GEMM, BIT(HONE_OP_MOE_GEMM), add_moe},
    {HONE_OP_MOE_ALIGN, BIT(HONE_OP_MOE_ALIGN), add_align},
    {HONE_OP_MOE_COMBINE, BIT(HONE_OP_MOE_COMBINE), add_combine},
    {HONE_OP_MQA_LOGITS, BIT(HONE_OP_MQA_LOGITS), problems_add_scores},
    {HONE_OP_MQA_LOGITS_PAGED, BIT(HONE_OP_MQA_LOGITS_PAGED), problems_add_paged_scores},
    {HONE_OP_TOPK, BIT(HONE_OP_TOPK), problems_add_topk},
    {HONE_OP_INDEX_PREPARE, BIT(HONE_OP_INDEX_PREPARE), problems_add_prepare},
};

/* Bit `op` of *wanted for each op of the list. */
static hone_status parse_ops(const char *ops, uint32_t *wanted, hone_error *error)
{
    const uint32_t apart = BIT(HONE_OP_KV_GATHER) | BIT(HONE_OP_MOE_GEMM) | BIT(HONE_OP_MOE_ALIGN) |
                           BIT(HONE_OP_MOE_COMBINE) | BIT(HONE_OP_MQA_LOGITS) |
                           BIT(HONE_OP_MQA_LOGITS_PAGED) | BIT(HONE_OP_TOPK) |
                           BIT(HONE_OP_INDEX_PREPARE);

    *wanted = ops == NULL ? ~apart : 0;
    for (const char *at = ops; at != NULL;) {
        size_t len = strcspn(at, ",");
        int32_t op = problem_op_parse(at, len);
        bool known = false;

        for (size_t i = 0; i < ARRAY_LEN(adders); i++) { /* other ops no model launches */
            known = known || adders[i].op == op;
        }
        if (!known) {
            return status_set(
                error, HONE_UNKNOWN, NULL, 0,
                "no op '%.*s' of models; there are: fp8_gemm act_quant kv_quant kv_gather moe_gemm "
                "moe_align moe_combine mqa_logits mqa_logits_paged topk index_prepare",
                (int)(len < 40 ? len : 40), at);
        }
        *wanted |= BIT(op);
        at = at[len] == ',' ? at + len + 1 : NULL;
    }
    return HONE_OK;
}

static hone_status check_rows(const int64_t *m_list, size_t m_len, hone_error *error)
{
    for (size_t i = 0; i < m_len; i++) {
        if (m_list[i] < 1 || m_list[i] > PROBLEMS_MAX_M) {
            return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                              "m %lld: it must be from 1 to %lld", (long long)m_list[i],
                              (long long)PROBLEMS_MAX_M);
        }
    }
    return HONE_OK;
}

static hone_status check_refused(const llm *l, int tp, int ep, const shape *shapes, size_t len,
                                 hone_error *error)
{
    for (size_t i = 0; i < len; i++) {
        if (shapes[i].refused[0] != '\0') {
            return status_set(error, HONE_BAD_MODEL, NULL, 0, "%s at tp %d, ep %d: %s: %s",
                              llm_name(l), tp, ep, shapes[i].use, shapes[i].refused);
        }
    }
    return HONE_OK;
}

hone_status llm_problems(const llm *l, int tp, int ep, const int64_t *m_list, size_t m_len,
                         const char *ops, llm_problem **out, size_t *count, hone_error *error)
{
    hone_status status = HONE_OK;
    problem_list list = {.l = l, .ep = ep};
    shape *shapes = NULL;
    size_t shapes_len = 0;
    uint32_t wanted = 0;

    TRY(parse_ops(ops, &wanted, error));
    TRY(check_rows(m_list, m_len, error));
    TRY(llm_shapes(l, tp, ep, &shapes, &shapes_len, error));
    TRY(check_refused(l, tp, ep, shapes, shapes_len, error));
    for (size_t a = 0; a < ARRAY_LEN(adders); a++) {
        bool skip = (wanted & adders[a].needs) != adders[a].needs;

        for (size_t i = 0; !skip && i < shapes_len * m_len; i++) {
            TRY(adders[a].add(&list, &shapes[i / m_len], m_list[i % m_len], error));
        }
    }
    *out = list.at;
    *count = list.len;
    list.at = NULL;
done:
    free(list.at);
    free(shapes);
    return status;
}

size_t shapes_m_default(const int64_t **m)
{
    static const int64_t list[] = {1, 16, 64, 256, 4096};

    *m = list;
    return ARRAY_LEN(list);
}

size_t shapes_m_all(const int64_t **m)
{
    static const int64_t list[] = {
        1,   2,   4,   8,   12,  16,  17,  24,  32,  33,  40,  48,  56,   64,   65,   80,   96,
        112, 128, 129, 160, 192, 224, 256, 257, 320, 384, 448, 512, 1024, 2048, 4096, 8192, 16384,
    };

    *m = list;
    return ARRAY_LEN(list);
}
