/* operands.c - what an op reads and writes: sizes of operands, places of scales, work for
 * rooflines. */
#include "core/problem.h"

#include "core/checked.h"
#include "core/numfmt.h"
#include "core/problem_index.h"
#include "core/problem_moe.h"

#include <math.h>

enum { READ = 1, WRITTEN = 2, BOTH = 3 };

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* Bytes of `count` elements that lie side by side; a packed row begins at a whole byte. */
static uint64_t row_bytes(int32_t element, uint64_t count)
{
    return ceil_div(product_u64(count, (uint64_t)numfmt_dtype_bits((hone_dtype)element), 1), 8);
}

static uint64_t scale_bytes(uint64_t rows, uint64_t groups, int32_t scale, int32_t layout)
{
    uint64_t aligned = ceil_div(rows, 4) * 4;
    uint64_t element = (uint64_t)numfmt_dtype_bits((hone_dtype)scale) / 8;

    switch (layout) {
    case HONE_SCALES_TMA:
        return product_u64(groups, aligned, element);
    case HONE_SCALES_PACKED:
        return product_u64(ceil_div(groups, 4), aligned, 4);
    default:
        return product_u64(rows, groups, element);
    }
}

hone_status problem_scale_bytes(int64_t rows, int64_t groups, hone_dtype scale,
                                hone_scale_layout layout, uint64_t *bytes, hone_error *error)
{
    if (rows < 0 || groups < 0 || rows > INT64_MAX - 4 || numfmt_dtype_bits(scale) < 8) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "scales: negative size or no dtype");
    }
    uint64_t made = scale_bytes((uint64_t)rows, (uint64_t)groups, scale, layout);
    if (made == UINT64_MAX) {
        return status_set(error, HONE_OVERFLOW, NULL, 0, "scales: over 2^64 bytes");
    }
    *bytes = made;
    return HONE_OK;
}

uint64_t problem_scale_offset(int64_t rows, int64_t groups, hone_dtype scale,
                              hone_scale_layout layout, int64_t row, int64_t group)
{
    uint64_t r = (uint64_t)row, g = (uint64_t)group, aligned = ceil_div((uint64_t)rows, 4) * 4;
    uint64_t element = (uint64_t)numfmt_dtype_bits(scale) / 8;

    switch (layout) {
    case HONE_SCALES_ROW:
        return (r * (uint64_t)groups + g) * element;
    case HONE_SCALES_COL:
        return (g * (uint64_t)rows + r) * element;
    case HONE_SCALES_TMA:
        return (g * aligned + r) * element;
    case HONE_SCALES_PACKED:
        return g / 4 * aligned * 4 + r * 4 + g % 4;
    }
    return UINT64_MAX;
}

static size_t operands_fp8_gemm(const hone_fp8_gemm *p, hone_operand *out)
{
    uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k, batch = (uint64_t)p->batch;
    const hone_quant *a = &p->recipe.a, *b = &p->recipe.b;
    uint64_t a_rows = ceil_div(m, (uint64_t)a->gran_mn),
             a_groups = ceil_div(k, (uint64_t)a->gran_k);
    uint64_t b_rows = ceil_div(n, (uint64_t)b->gran_mn),
             b_groups = ceil_div(k, (uint64_t)b->gran_k);
    /* An inner batch lies beside the groups of a row, so that layouts pad the whole matrix once. */
    bool inner = p->batch_layout == HONE_BATCH_INNER;
    uint64_t a_scales =
        inner ? scale_bytes(a_rows, product_u64(batch, a_groups, 1), a->scale, p->a_scale_layout)
              : product_u64(batch, 1, scale_bytes(a_rows, a_groups, a->scale, p->a_scale_layout));
    uint64_t b_scales =
        product_u64(batch, 1, scale_bytes(b_rows, b_groups, b->scale, p->b_scale_layout));
    uint64_t d_bytes = (uint64_t)numfmt_dtype_bits((hone_dtype)p->out) / 8;

    out[0] = (hone_operand){"a", a->element, READ, product_u64(batch, m, k)};
    out[1] = (hone_operand){"a_scale", a->scale, READ, a_scales};
    out[2] = (hone_operand){"b", b->element, READ, product_u64(batch, n, row_bytes(b->element, k))};
    out[3] = (hone_operand){"b_scale", b->scale, READ, b_scales};
    out[4] = (hone_operand){"d", p->out, p->accumulate ? BOTH : WRITTEN,
                            product_u64(product_u64(batch, m, n), d_bytes, 1)};
    return 5;
}

static size_t operands_moe_gemm(const hone_moe_gemm *p, hone_operand *out)
{
    const bool each = p->group_layout == HONE_GROUPS_MASKED,
               by_k = p->group_layout == HONE_GROUPS_K;
    const bool plain = p->activation == HONE_ACTIVATION_PLAIN;
    const hone_quant *a = &p->recipe.a, *b = &p->recipe.b;
    const uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k;
    const uint64_t experts = (uint64_t)p->experts, as = each ? experts : 1, bs = by_k ? 1 : experts;
    const uint64_t columns = plain ? n : n / 2;
    const uint64_t a_groups = ceil_div(k, (uint64_t)a->gran_k);
    const uint64_t b_groups = ceil_div(k, (uint64_t)b->gran_k);
    const uint64_t b_rows = ceil_div(n, (uint64_t)b->gran_mn);
    const uint64_t d_rows = product_u64(each || by_k ? experts : 1, m, 1);
    const uint64_t labels = p->group_layout == HONE_GROUPS_CONTIGUOUS ? m : experts;

    out[0] = (hone_operand){"a", a->element, READ, product_u64(as, m, k)};
    out[1] =
        (hone_operand){"a_scale", a->scale, READ,
                       product_u64(as, scale_bytes(m, a_groups, a->scale, p->a_scale_layout), 1)};
    out[2] = (hone_operand){"b", b->element, READ, product_u64(bs, n, row_bytes(b->element, k))};
    out[3] = (hone_operand){
        "b_scale", b->scale, READ,
        product_u64(bs, scale_bytes(b_rows, b_groups, b->scale, p->b_scale_layout), 1)};
    out[4] = (hone_operand){"groups", HONE_DTYPE_NONE, READ, product_u64(labels, 4, 1)};
    out[5] = (hone_operand){"d", p->out, p->accumulate ? BOTH : WRITTEN,
                            product_u64(d_rows, row_bytes(p->out, columns), 1)};
    if (p->out != HONE_DTYPE_E4M3) {
        return 6;
    }
    out[6] = (hone_operand){"d_scale", p->out_scale, WRITTEN,
                            product_u64(as,
                                        scale_bytes(m, ceil_div(columns, (uint64_t)p->out_group),
                                                    p->out_scale, p->out_scale_layout),
                                        1)};
    return 7;
}

static size_t operands_act_quant(const hone_act_quant *p, hone_operand *out)
{
    uint64_t m = (uint64_t)p->m, k = (uint64_t)p->k, experts = (uint64_t)p->experts;
    uint64_t in_bytes = (uint64_t)numfmt_dtype_bits((hone_dtype)p->in) / 8;
    uint64_t groups = ceil_div(k, (uint64_t)p->group);
    uint64_t inputs = p->activation == HONE_ACTIVATION_PLAIN ? 1 : 2;
    const bool gathered = p->row_set == HONE_ROWS_GATHERED;
    const uint64_t x_rows = gathered ? (uint64_t)p->tokens : product_u64(experts, m, 1);
    size_t len = 3;

    out[0] =
        (hone_operand){"x", p->in, READ, product_u64(x_rows, product_u64(k, inputs, 1), in_bytes)};
    out[1] = (hone_operand){"q", p->out, WRITTEN, product_u64(experts, m, k)};
    out[2] =
        (hone_operand){"scale", p->scale, WRITTEN,
                       product_u64(experts, scale_bytes(m, groups, p->scale, p->scale_layout), 1)};
    if (p->row_set != HONE_ROWS_EVERY) {
        uint64_t rows = p->row_set == HONE_ROWS_MASKED ? experts : product_u64(experts, m, 1);
        out[len++] = (hone_operand){"rows", HONE_DTYPE_NONE, READ, product_u64(rows, 4, 1)};
    }
    if (gathered) {
        out[len++] = (hone_operand){"dropped", HONE_DTYPE_NONE, BOTH, sizeof(uint64_t)};
    }
    if (p->count) {
        out[len++] = (hone_operand){"special", HONE_DTYPE_NONE, BOTH, sizeof(uint64_t)};
    }
    return len;
}

static size_t operands_weight_quant(const hone_weight_quant *p, hone_operand *out)
{
    uint64_t n = (uint64_t)p->n, k = (uint64_t)p->k;
    uint64_t in_bytes = (uint64_t)numfmt_dtype_bits((hone_dtype)p->in) / 8;
    uint64_t rows = ceil_div(n, (uint64_t)p->gran_n), groups = ceil_div(k, (uint64_t)p->gran_k);

    out[0] = (hone_operand){"w", p->in, READ, product_u64(n, k, in_bytes)};
    out[1] = (hone_operand){"q", p->out, WRITTEN, product_u64(n, k, 1)};
    out[2] = (hone_operand){"scale", p->scale, WRITTEN,
                            scale_bytes(rows, groups, p->scale, p->scale_layout)};
    out[3] = (hone_operand){"special", HONE_DTYPE_NONE, BOTH, sizeof(uint64_t)};
    return 4;
}

/* Bytes from a cache's first page to the end of its last. */
static uint64_t cache_bytes(int64_t pages, int64_t page_stride, const record_layout *layout)
{
    uint64_t bytes, before_last = product_u64((uint64_t)pages - 1, (uint64_t)page_stride, 1);

    return checked_add_u64(before_last, (uint64_t)layout->page_bytes, &bytes) ? bytes : UINT64_MAX;
}

static size_t operands_kv_quant(const hone_kv_quant *p, hone_operand *out)
{
    record_layout layout = {0};
    uint64_t tokens = (uint64_t)p->tokens;

    record_layout_of(&p->record, p->page_size, &layout, NULL); /* checked before: cannot fail */
    out[0] = (hone_operand){"x", p->in, READ, product_u64(tokens, 2, (uint64_t)layout.input_dims)};
    out[1] = (hone_operand){"slots", HONE_DTYPE_NONE, READ, product_u64(tokens, 8, 1)};
    /* Both, though only slots are written: their neighbours must stay as they are. */
    out[2] = (hone_operand){"cache", HONE_DTYPE_NONE, BOTH,
                            cache_bytes(p->pages, p->page_stride, &layout)};
    out[3] = (hone_operand){"dropped", HONE_DTYPE_NONE, BOTH, sizeof(uint64_t)};
    out[4] = (hone_operand){"nonfinite", HONE_DTYPE_NONE, BOTH, sizeof(uint64_t)};
    out[5] = (hone_operand){"scale", HONE_DTYPE_F32, READ, sizeof(float)};
    return p->record.rule == HONE_RULE_TENSOR ? 6 : 5;
}

static size_t operands_kv_gather(const hone_kv_gather *p, hone_operand *out)
{
    const bool raw = p->to == HONE_GATHER_RAW, table = p->by == HONE_GATHER_TABLE;
    record_layout layout = {0};
    uint64_t tokens = (uint64_t)p->tokens;

    record_layout_of(&p->record, p->page_size, &layout, NULL); /* checked before: cannot fail */
    const uint64_t row =
        (uint64_t)(raw ? layout.data_bytes + layout.tail_bytes : 2 * layout.input_dims);
    const uint64_t starts = (uint64_t)p->sequences + 1; /* below 2^31 */
    out[0] = (hone_operand){"cache", HONE_DTYPE_NONE, READ,
                            cache_bytes(p->pages, p->page_stride, &layout)};
    out[1] = (hone_operand){"index", HONE_DTYPE_NONE, READ,
                            table ? product_u64((uint64_t)p->sequences, (uint64_t)p->table_pages, 4)
                                  : product_u64(tokens, 8, 1)};
    out[2] = (hone_operand){"starts", HONE_DTYPE_NONE, READ, table ? starts * 4 : 0};
    out[3] = (hone_operand){"out", raw ? HONE_DTYPE_NONE : HONE_DTYPE_BF16, WRITTEN,
                            product_u64(tokens, row, 1)};
    out[4] = (hone_operand){"scales", raw ? layout.scale : HONE_DTYPE_NONE, WRITTEN,
                            raw ? product_u64(tokens, (uint64_t)layout.scales_bytes, 1) : 0};
    out[5] = (hone_operand){"dropped", HONE_DTYPE_NONE, BOTH, sizeof(uint64_t)};
    out[6] = (hone_operand){"scale", HONE_DTYPE_F32, READ,
                            p->record.rule == HONE_RULE_TENSOR && !raw ? sizeof(float) : 0};
    return 7;
}

static size_t operands_fold(const hone_fold *p, hone_operand *out)
{
    uint64_t m = (uint64_t)p->m, k = (uint64_t)p->k;
    uint64_t groups = ceil_div(k, (uint64_t)p->group), blocks = ceil_div(k, (uint64_t)p->out_group);

    out[0] = (hone_operand){"a", p->element, READ, product_u64(m, k, 1)};
    out[1] = (hone_operand){"a_scale", p->scale, READ,
                            scale_bytes(m, groups, p->scale, p->scale_layout)};
    out[2] = (hone_operand){"q", p->element, WRITTEN, product_u64(m, k, 1)};
    out[3] = (hone_operand){"q_scale", p->scale, WRITTEN,
                            scale_bytes(m, blocks, p->scale, p->q_scale_layout)};
    out[4] = (hone_operand){"inexact", HONE_DTYPE_NONE, BOTH, sizeof(uint64_t)};
    return 5;
}

static size_t operands_mxfp4_fold(const hone_mxfp4_fold *p, hone_operand *out)
{
    uint64_t rows = product_u64((uint64_t)p->batch, (uint64_t)p->n, 1), k = (uint64_t)p->k;
    uint64_t blocks =
        product_u64((uint64_t)p->batch, ceil_div((uint64_t)p->n, (uint64_t)p->block_rows),
                    ceil_div(k, (uint64_t)p->block_cols));

    out[0] = (hone_operand){"codes", HONE_DTYPE_E2M1, READ, product_u64(rows, k / 2, 1)};
    out[1] = (hone_operand){"scale", HONE_DTYPE_UE8M0, READ, product_u64(rows, k / 32, 1)};
    out[2] = (hone_operand){"q", HONE_DTYPE_E4M3, WRITTEN, product_u64(rows, k, 1)};
    out[3] = (hone_operand){
        "q_scale", p->scale, WRITTEN,
        product_u64(blocks, (uint64_t)numfmt_dtype_bits((hone_dtype)p->scale) / 8, 1)};
    return 4;
}

static size_t operands_scale_pack(const hone_scale_pack *p, hone_operand *out)
{
    const uint64_t rows = (uint64_t)p->rows, groups = (uint64_t)p->groups;
    const uint64_t experts = (uint64_t)p->experts, words = (groups + 3 * experts) / 4;
    const uint64_t one = scale_bytes(rows, groups, p->scale, p->scale_layout);

    out[0] = (hone_operand){"scale", HONE_DTYPE_F32, READ,
                            product_u64(product_u64(rows, groups, (uint64_t)p->batch), 4, 1)};
    out[1] = (hone_operand){"out", p->scale, WRITTEN,
                            experts > 0 ? product_u64(words, rows, 4)
                                        : product_u64(one, (uint64_t)p->batch, 1)};
    out[2] = (hone_operand){"ks", HONE_DTYPE_NONE, READ, experts * 4};
    out[3] = (hone_operand){"wrong", HONE_DTYPE_NONE, BOTH, sizeof(uint64_t)};
    return 4;
}

hone_status problem_operands(const hone_problem *problem, hone_operand out[HONE_MAX_OPERANDS],
                             size_t *count, hone_error *error)
{
    hone_operand made[HONE_MAX_OPERANDS];
    size_t len = 0;

    switch (problem->op) {
    case HONE_OP_FP8_GEMM:
        len = operands_fp8_gemm(&problem->as.fp8_gemm, made);
        break;
    case HONE_OP_ACT_QUANT:
        len = operands_act_quant(&problem->as.act_quant, made);
        break;
    case HONE_OP_MXFP4_FOLD:
        len = operands_mxfp4_fold(&problem->as.mxfp4_fold, made);
        break;
    case HONE_OP_SCALE_PACK:
        len = operands_scale_pack(&problem->as.scale_pack, made);
        break;
    case HONE_OP_FOLD:
        len = operands_fold(&problem->as.fold, made);
        break;
    case HONE_OP_WEIGHT_QUANT:
        len = operands_weight_quant(&problem->as.weight_quant, made);
        break;
    case HONE_OP_MOE_GEMM:
        len = operands_moe_gemm(&problem->as.moe_gemm, made);
        break;
    case HONE_OP_MOE_ALIGN:
        len = problem_operands_moe_align(&problem->as.moe_align, made);
        break;
    case HONE_OP_MOE_COMBINE:
        len = problem_operands_moe_combine(&problem->as.moe_combine, made);
        break;
    case HONE_OP_TOPK:
    case HONE_OP_MQA_LOGITS:
    case HONE_OP_MQA_LOGITS_PAGED:
    case HONE_OP_INDEX_PREPARE:
        len = problem_operands_index(problem, made);
        break;
    case HONE_OP_KV_QUANT:
        len = operands_kv_quant(&problem->as.kv_quant, made);
        break;
    default:
        len = operands_kv_gather(&problem->as.kv_gather, made);
        break;
    }
    for (size_t i = 0; i < len; i++) {
        if (made[i].bytes > INT64_MAX) { /* offsets are signed in kernels */
            return status_set(error, HONE_OVERFLOW, NULL, 0, "operand %s is over 2^63 bytes",
                              made[i].name);
        }
    }
    for (size_t i = 0; i < len; i++) {
        out[i] = made[i];
    }
    *count = len;
    return HONE_OK;
}

hone_status hone_operands(const hone_problem *problem, hone_operand out[HONE_MAX_OPERANDS],
                          size_t *count, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(hone_problem_check(problem, error));
    TRY(problem_operands(problem, out, count, error));
done:
    return status;
}

/* Rows that a grouped product has room for. */
static double room_of(const hone_moe_gemm *p)
{
    return (double)p->m * (p->group_layout == HONE_GROUPS_MASKED ? (double)p->experts : 1.0);
}

/* Only experts that are touched are read, and only rows that have an expert written. */
static void work_moe_gemm(const hone_moe_gemm *p, double rows, double touched,
                          const hone_operand *operands, size_t count, double *flop, double *bytes)
{
    const double experts = (double)p->experts, room = room_of(p);

    if (p->group_layout != HONE_GROUPS_K) {
        for (size_t i = 0; i < count; i++) {
            const bool weights = i == 2 || i == 3, whole = i == 4;
            const double part = weights ? touched / experts : whole ? 1 : rows / room;
            *bytes += (double)operands[i].bytes * part;
        }
        *flop = 2.0 * rows * (double)p->n * (double)p->k;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        *bytes += (double)operands[i].bytes * (operands[i].access == BOTH ? 2 : 1);
    }
    *flop = 2.0 * (double)p->m * (double)p->n * (double)p->k;
}

void problem_work_routed(const hone_problem *problem, int64_t rows, int64_t touched, double *flop,
                         double *bytes)
{
    hone_operand operands[HONE_MAX_OPERANDS];
    size_t count = 0;

    *flop = *bytes = 0;
    if (!problem_is_empty(problem) && hone_operands(problem, operands, &count, NULL) == HONE_OK) {
        work_moe_gemm(&problem->as.moe_gemm, (double)rows, (double)touched, operands, count, flop,
                      bytes);
    }
}

void problem_work(const hone_problem *problem, double *flop, double *bytes)
{
    hone_operand operands[HONE_MAX_OPERANDS];
    record_layout layout;
    size_t count = 0;

    *flop = *bytes = 0;
    if (hone_operands(problem, operands, &count, NULL) != HONE_OK) {
        return;
    }
    if (problem->op == HONE_OP_MOE_GEMM && !problem_is_empty(problem)) { /* spread evenly */
        const hone_moe_gemm *p = &problem->as.moe_gemm;
        const double rows = fmin((double)p->tokens * p->topk, room_of(p));
        work_moe_gemm(p, rows, fmin(rows, (double)p->experts), operands, count, flop, bytes);
        return;
    }
    if (problem->op == HONE_OP_KV_QUANT) { /* touches its tokens' bytes, not the whole cache */
        const hone_kv_quant *p = &problem->as.kv_quant;
        record_layout_of(&p->record, p->page_size, &layout, NULL);
        *bytes = (double)p->tokens * (2.0 * layout.input_dims + 8 + layout.token_bytes);
        return;
    }
    if (problem->op == HONE_OP_MOE_COMBINE) { /* rows of d that no place names are not read */
        *bytes = problem_bytes_moe_combine(&problem->as.moe_combine);
        return;
    }
    if (problem->op == HONE_OP_INDEX_PREPARE) {
        *bytes = problem_bytes_prepare(&problem->as.index_prepare);
        return;
    }
    if (problem->op == HONE_OP_TOPK) {
        *bytes = problem_bytes_topk(&problem->as.topk);
        return;
    }
    if (problem->op == HONE_OP_MQA_LOGITS || problem->op == HONE_OP_MQA_LOGITS_PAGED) {
        problem_work_mqa(problem, flop, bytes);
        return;
    }
    if (problem->op == HONE_OP_KV_GATHER) { /* as many of its cache's as it has rows */
        const hone_kv_gather *p = &problem->as.kv_gather;
        record_layout_of(&p->record, p->page_size, &layout, NULL);
        *bytes = (double)p->tokens * layout.token_bytes;
        operands[0].bytes = operands[5].bytes = 0;
    }
    for (size_t i = 0; i < count; i++) {
        *bytes += (double)operands[i].bytes * (operands[i].access == BOTH ? 2 : 1);
    }
    if (problem->op == HONE_OP_FP8_GEMM) {
        const hone_fp8_gemm *p = &problem->as.fp8_gemm;
        *flop = 2.0 * (double)p->batch * (double)p->m * (double)p->n * (double)p->k;
    }
}

bool problem_is_empty(const hone_problem *problem)
{
    switch (problem->op) {
    case HONE_OP_FP8_GEMM:
        return problem->as.fp8_gemm.m == 0 || problem->as.fp8_gemm.n == 0 ||
               problem->as.fp8_gemm.batch == 0;
    case HONE_OP_ACT_QUANT:
        return problem->as.act_quant.m == 0 || problem->as.act_quant.k == 0 ||
               problem->as.act_quant.experts == 0;
    case HONE_OP_MXFP4_FOLD:
        return problem->as.mxfp4_fold.n == 0 || problem->as.mxfp4_fold.k == 0 ||
               problem->as.mxfp4_fold.batch == 0;
    case HONE_OP_SCALE_PACK:
        return problem->as.scale_pack.rows == 0 || problem->as.scale_pack.groups == 0 ||
               problem->as.scale_pack.batch == 0;
    case HONE_OP_FOLD:
        return problem->as.fold.m == 0 || problem->as.fold.k == 0;
    case HONE_OP_WEIGHT_QUANT:
        return problem->as.weight_quant.n == 0 || problem->as.weight_quant.k == 0;
    case HONE_OP_MOE_GEMM: /* of k = 0 D is zeros, as a GEMM's */
        return problem->as.moe_gemm.m == 0 || problem->as.moe_gemm.n == 0;
    case HONE_OP_MOE_ALIGN:
        return false; /* its counts are always written */
    case HONE_OP_MOE_COMBINE:
        return problem->as.moe_combine.tokens == 0 || problem->as.moe_combine.n == 0;
    case HONE_OP_TOPK:
        return problem->as.topk.rows == 0; /* without columns its rows are -1 */
    case HONE_OP_MQA_LOGITS:
        return problem->as.mqa_logits.tokens == 0 || problem->as.mqa_logits.width == 0;
    case HONE_OP_MQA_LOGITS_PAGED:
        return problem->as.mqa_logits_paged.batch == 0 || problem->as.mqa_logits_paged.width == 0;
    case HONE_OP_INDEX_PREPARE:
        return problem->as.index_prepare.tokens == 0;
    case HONE_OP_KV_QUANT:
        return problem->as.kv_quant.tokens == 0;
    default:
        return problem->as.kv_gather.tokens == 0;
    }
}
