/* inputs.c - the operands of each op. */
#include "bench/inputs_parts.h"
#include "bench/verify.h"

#include "core/integer.h"
#include "core/numfmt.h"
#include "core/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What INPUTS_HOLES leaves out: a row of A, and of B a block of 128x128, both in the first tile,
 * which every sample has. What is left must say something: an only row stays, and of a B of one
 * block a scale's part goes. */
void inputs_place_hole(inputs_matrix *m, bool is_a)
{
    const int64_t block = 128;

    if (is_a && m->rows > 1) {
        m->hole_row = 1;
        m->hole_rows = 1;
        m->hole_columns = m->k;
    } else if (!is_a && (m->k > block || m->rows > block)) {
        m->hole_rows = block;
        m->hole_column = m->k > block ? m->k / block / 2 * block : 0;
        m->hole_columns = block;
    } else if (!is_a && m->scale_rows > 1) {
        m->hole_row = m->scale_rows / 2 * m->quant.gran_mn;
        m->hole_rows = m->quant.gran_mn;
        m->hole_columns = m->quant.gran_k;
    }
}

static hone_status fill_matrix(const hone_fp8_gemm *p, bool is_a, inputs_kind kind, uint64_t seed,
                               const inputs *in, hone_error *error)
{
    hone_status status = HONE_OK;
    bool inner = is_a && p->batch_layout == HONE_BATCH_INNER;
    int64_t rows = is_a ? p->m : p->n;
    uint64_t scale_bytes = 0;
    inputs_matrix m = {
        .rows = rows,
        .k = p->k,
        .batch = p->batch,
        .row_stride = inner ? p->batch * p->k : p->k,
        .batch_stride = inner ? p->k : rows * p->k,
        .quant = is_a ? p->recipe.a : p->recipe.b,
        .scale_layout = (hone_scale_layout)(is_a ? p->a_scale_layout : p->b_scale_layout),
        .payload = in->image[is_a ? 0 : 2],
        .scales = in->image[is_a ? 1 : 3],
    };

    m.scale_rows = integer_ceil_div(rows, m.quant.gran_mn);
    m.groups = integer_ceil_div(p->k, m.quant.gran_k);
    m.scale_groups = inner ? p->batch * m.groups : m.groups;
    m.one_signed = is_a ? 2 : 3; /* a sixth of D's elements are sums of products of one sign */
    inputs_place_hole(&m, is_a);
    TRY(problem_scale_bytes(m.scale_rows, m.scale_groups, (hone_dtype)m.quant.scale, m.scale_layout,
                            &scale_bytes, error));
    m.scale_batch = inner ? 0 : (int64_t)scale_bytes;
    TRY(inputs_fill_quantised(&m, kind, seed, error));
done:
    return status;
}

static hone_status fill_gemm(const hone_fp8_gemm *p, inputs_kind kind, uint64_t seed, inputs *in,
                             hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(fill_matrix(p, true, kind, seed, in, error));
    TRY(fill_matrix(p, false, kind, seed + 1, in, error));
    if (p->accumulate) {
        uint64_t width = (uint64_t)numfmt_dtype_bits((hone_dtype)p->out) / 8;
        TRY(inputs_fill_plain((hone_dtype)p->out, in->operand[4].bytes / width, 32, INPUTS_NORMAL,
                              seed + 2, in->image[4], error));
    }
done:
    return status;
}

/* Counters start here, so that one that is set instead of raised is found out. */
static void fill_counter(uint8_t *image)
{
    const uint64_t before = INPUTS_COUNTER;

    memcpy(image, &before, sizeof before);
}

/* For the special kind every code, NaN among them. */
static hone_status fill_fold(const hone_fold *p, inputs_kind kind, uint64_t seed, inputs *in,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    const inputs_matrix m = {
        .rows = p->m,
        .k = p->k,
        .batch = 1,
        .row_stride = p->k,
        .batch_stride = p->m * p->k,
        .quant = {p->element, p->scale, 1, p->group},
        .scale_layout = (hone_scale_layout)p->scale_layout,
        .scale_rows = p->m,
        .scale_groups = p->k / p->group,
        .scale_batch = 0,
        .groups = p->k / p->group,
        .payload = in->image[0],
        .scales = in->image[1],
        .hole_row = 1,
        .hole_rows = 1,
        .hole_columns = p->k,
        .one_signed = 2,
    };

    TRY(inputs_fill_quantised(&m, kind, seed, error));
    for (uint64_t i = 0; kind == INPUTS_SPECIALS && i < in->operand[0].bytes; i++) {
        in->image[0][i] = (uint8_t)random_next(&seed);
    }
    fill_counter(in->image[4]);
done:
    return status;
}

/* Of rows that are gathered: the first and the last entry, some twice, one row in four without, and
 * entries that no token has, at all of which x must not be read. */
static void fill_entries(const hone_act_quant *p, uint64_t seed, int32_t *rows)
{
    const int64_t entries = p->tokens * p->topk, len = p->experts * p->m;

    for (int64_t i = 0; i < len; i++) {
        const uint64_t drawn = random_next(&seed);
        const int64_t beyond = drawn / 8 % 3 == 0 ? INT32_MAX : entries + (int64_t)(drawn / 8 % 5);
        int64_t entry = entries > 0 ? (int64_t)(drawn / 8 % (uint64_t)entries) : -1;
        if (drawn % 4 == 0) {
            entry = drawn % 8 == 0 ? -1 : INT32_MIN;
        } else if (drawn % 16 == 5) {
            entry = beyond < INT32_MAX ? beyond : INT32_MAX;
        } else if (i < 2 && entries > 0) {
            entry = i == 0 ? entries - 1 : 0;
        }
        rows[i] = (int32_t)entry;
    }
}

/* Masked: how many rows each expert has, all and none among them. Listed: one row in four has no
 * expert. */
static void fill_rows(const hone_act_quant *p, uint64_t seed, int32_t *rows)
{
    bool masked = p->row_set == HONE_ROWS_MASKED;
    int64_t len = masked ? p->experts : p->m;

    for (int64_t i = 0; i < len; i++) {
        uint64_t drawn = random_next(&seed);
        if (!masked) {
            rows[i] = drawn % 4 == 0 ? -1 : (int32_t)(drawn / 4 % 8);
        } else if (i % 4 == 1) {
            rows[i] = drawn % 2 == 0 ? 0 : -1;
        } else if (i % 4 == 2) {
            rows[i] = (int32_t)p->m + (int32_t)(drawn % 3); /* past the end: all */
        } else {
            rows[i] = (int32_t)(drawn % (uint64_t)(p->m + 1));
        }
    }
}

static hone_status fill_act(const hone_act_quant *p, inputs_kind kind, uint64_t seed, inputs *in,
                            hone_error *error)
{
    uint64_t width = (uint64_t)numfmt_dtype_bits((hone_dtype)p->in) / 8;
    size_t next = 3;

    if (p->row_set == HONE_ROWS_GATHERED) {
        fill_entries(p, seed + 1, (int32_t *)(void *)in->image[next++]);
        fill_counter(in->image[next++]);
    } else if (p->row_set != HONE_ROWS_EVERY) {
        fill_rows(p, seed + 1, (int32_t *)(void *)in->image[next++]);
    }
    if (p->count) {
        fill_counter(in->image[next]);
    }
    return inputs_fill_plain((hone_dtype)p->in, in->operand[0].bytes / width, (uint32_t)p->group,
                             kind, seed, in->image[0], error);
}

static hone_status fill_weight(const hone_weight_quant *p, inputs_kind kind, uint64_t seed,
                               inputs *in, hone_error *error)
{
    fill_counter(in->image[3]);
    return inputs_fill_plain((hone_dtype)p->in, (uint64_t)p->n * (uint64_t)p->k,
                             (uint32_t)p->gran_k, kind, seed, in->image[0], error);
}

/* Codes of the special kind are any, some groups all zero, exponents from one end to the other and
 * NaN. */
static void fill_special_codes(uint64_t groups, uint64_t seed, inputs *in)
{
    for (uint64_t g = 0; g < groups; g++) {
        uint64_t words[2] = {random_next(&seed), random_next(&seed)};
        if (g % 5 == 3) {
            words[0] = words[1] = g % 2 == 0 ? 0 : UINT64_C(0x8888888888888888);
        }
        memcpy(in->image[0] + 16 * g, words, sizeof words);
        in->image[1][g] = (uint8_t)(g % 11 == 7 ? 0xff : random_next(&seed) % 256);
    }
}

static hone_status fill_mxfp4(const hone_mxfp4_fold *p, inputs_kind kind, uint64_t seed, inputs *in,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    const inputs_matrix m = {
        .rows = p->n,
        .k = p->k,
        .batch = p->batch,
        .row_stride = p->k,
        .batch_stride = p->n * p->k,
        .quant = {HONE_DTYPE_E2M1, HONE_DTYPE_UE8M0, 1, 32},
        .scale_layout = HONE_SCALES_ROW,
        .scale_rows = p->n,
        .scale_groups = p->k / 32,
        .scale_batch = p->n * (p->k / 32),
        .groups = p->k / 32,
        .payload = in->image[0],
        .scales = in->image[1],
        .hole_row = p->n / 2,
        .hole_rows = p->n > 1,
        .hole_columns = p->k,
        .one_signed = 3,
    };

    TRY(inputs_fill_quantised(&m, kind, seed, error));
    if (kind == INPUTS_SPECIALS) {
        fill_special_codes(in->operand[1].bytes, seed, in);
    }
done:
    return status;
}

static hone_status fill(const hone_problem *problem, inputs_kind kind, inputs_routing routes,
                        uint64_t seed, inputs *in, hone_error *error)
{
    switch (problem->op) {
    case HONE_OP_FP8_GEMM:
        return fill_gemm(&problem->as.fp8_gemm, kind, seed, in, error);
    case HONE_OP_MOE_GEMM:
        return inputs_fill_moe_gemm(&problem->as.moe_gemm, kind, routes, seed, in, error);
    case HONE_OP_ACT_QUANT:
        return fill_act(&problem->as.act_quant, kind, seed, in, error);
    case HONE_OP_FOLD:
        return fill_fold(&problem->as.fold, kind, seed, in, error);
    case HONE_OP_MXFP4_FOLD:
        return fill_mxfp4(&problem->as.mxfp4_fold, kind, seed, in, error);
    case HONE_OP_SCALE_PACK:
        fill_counter(in->image[3]);
        inputs_fill_scale_pack(&problem->as.scale_pack, kind, seed, in);
        return HONE_OK;
    case HONE_OP_MOE_ALIGN:
        fill_counter(in->image[5]);
        inputs_fill_moe_align(&problem->as.moe_align, kind, seed, in);
        return HONE_OK;
    case HONE_OP_MOE_COMBINE:
        fill_counter(in->image[3]);
        return inputs_fill_moe_combine(&problem->as.moe_combine, kind, seed, in, error);
    case HONE_OP_TOPK:
        inputs_fill_topk(&problem->as.topk, kind, seed, in);
        return HONE_OK;
    case HONE_OP_MQA_LOGITS:
        return inputs_fill_mqa(&problem->as.mqa_logits, kind, seed, in, error);
    case HONE_OP_MQA_LOGITS_PAGED:
        return inputs_fill_mqa_paged(&problem->as.mqa_logits_paged, kind, seed, in, error);
    case HONE_OP_INDEX_PREPARE:
        return inputs_fill_prepare(&problem->as.index_prepare, kind, seed, in, error);
    case HONE_OP_KV_QUANT:
        return inputs_fill_kv_quant(&problem->as.kv_quant, kind, seed, in, error);
    case HONE_OP_KV_GATHER:
        return inputs_fill_kv_gather(&problem->as.kv_gather, kind, seed, in, error);
    case HONE_OP_WEIGHT_QUANT:
        return fill_weight(&problem->as.weight_quant, kind, seed, in, error);
    default:
        return status_set(error, HONE_UNSUPPORTED, NULL, 0, "inputs: op %d has no inputs",
                          problem->op);
    }
}

hone_status inputs_make(const hone_problem *problem, inputs_kind kind, uint64_t seed, inputs *out,
                        hone_error *error)
{
    return inputs_make_routed(problem, kind, INPUTS_ROUTE_OF_KIND, seed, out, error);
}

hone_status inputs_make_routed(const hone_problem *problem, inputs_kind kind, inputs_routing routes,
                               uint64_t seed, inputs *out, hone_error *error)
{
    hone_status status = HONE_OK;
    inputs in = {0};

    TRY(hone_operands(problem, in.operand, &in.len, error));
    for (size_t i = 0; i < in.len; i++) {
        in.image[i] = malloc(in.operand[i].bytes + 8); /* 8: never a zero-size allocation */
        if (in.image[i] == NULL) {
            status = status_set(error, HONE_NO_MEMORY, NULL, 0, "inputs: %llu bytes for operand %s",
                                (unsigned long long)in.operand[i].bytes, in.operand[i].name);
            goto done;
        }
        memset(in.image[i], VERIFY_POISON, in.operand[i].bytes);
    }
    TRY(fill(problem, kind, routes, seed, &in, error));
    *out = in;
    memset(&in, 0, sizeof in);
done:
    inputs_free(&in);
    return status;
}

void inputs_free(inputs *in)
{
    if (in == NULL) {
        return;
    }
    for (size_t i = 0; i < in->len; i++) {
        free(in->image[i]);
    }
    memset(in, 0, sizeof *in);
}

/* One scale times a power of two; padding, which is NaN, stays. */
static void rescale(hone_dtype dtype, uint8_t *scales, uint64_t index, int exponent)
{
    float scale = numfmt_decode(dtype, scales, index);

    if (scale == scale) {
        scale = ldexpf(scale, exponent);
        numfmt_encode(dtype, scales, index, scale);
    }
}

hone_status inputs_rescale(const hone_recipe *recipe, const inputs *in, uint64_t seed, inputs *out,
                           hone_error *error)
{
    inputs made = *in;

    for (size_t i = 1; i <= 3; i += 2) {
        hone_dtype dtype = (hone_dtype)(i == 1 ? recipe->a.scale : recipe->b.scale);
        uint64_t width = (uint64_t)numfmt_dtype_bits(dtype) / 8;
        made.image[i] = malloc(in->operand[i].bytes + 8);
        if (made.image[i] == NULL) {
            free(i == 3 ? made.image[1] : NULL);
            return status_set(error, HONE_NO_MEMORY, NULL, 0, "inputs: other scales for operand %s",
                              in->operand[i].name);
        }
        memcpy(made.image[i], in->image[i], in->operand[i].bytes);
        for (uint64_t at = 0; at < in->operand[i].bytes / width; at++) {
            rescale(dtype, made.image[i], at, (int)(random_next(&seed) % 41) - 20);
        }
    }
    *out = made;
    return HONE_OK;
}

void inputs_free_rescaled(inputs *rescaled)
{
    if (rescaled != NULL && rescaled->len > 0) {
        free(rescaled->image[1]);
        free(rescaled->image[3]);
        memset(rescaled, 0, sizeof *rescaled);
    }
}

hone_status inputs_copy_outputs(const inputs *in, inputs *out, hone_error *error)
{
    inputs copy = *in;

    for (size_t i = 0; i < in->len; i++) {
        if (in->operand[i].access == 1) {
            continue;
        }
        copy.image[i] = malloc(in->operand[i].bytes + 8);
        if (copy.image[i] == NULL) {
            copy.len = i;
            inputs_free_outputs(&copy);
            return status_set(error, HONE_NO_MEMORY, NULL, 0, "inputs: a copy of operand %s",
                              in->operand[i].name);
        }
        memcpy(copy.image[i], in->image[i], in->operand[i].bytes);
    }
    *out = copy;
    return HONE_OK;
}

void inputs_free_outputs(inputs *copy)
{
    if (copy == NULL) {
        return;
    }
    for (size_t i = 0; i < copy->len; i++) {
        if (copy->operand[i].access != 1) {
            free(copy->image[i]);
        }
    }
    memset(copy, 0, sizeof *copy);
}
