/* naive.c - kernels' plain doubles. Index formulas are kernels.md's, written out, not core's. */
#include "tests/bench/naive.h"

#include "core/numfmt.h"

#include <float.h>
#include <math.h>
#include <string.h>

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

double naive_scale(const uint8_t *scales, int32_t dtype, int32_t layout, const int64_t size[2],
                   int64_t row, int64_t group)
{
    int64_t aligned = up(size[0], 4) * 4, at = 0;
    float scale = 0.0f;

    if (layout == HONE_SCALES_PACKED) {
        return ldexp(1.0, scales[group / 4 * aligned * 4 + row * 4 + group % 4] - 127);
    }
    at = layout == HONE_SCALES_ROW   ? row * size[1] + group
         : layout == HONE_SCALES_COL ? group * size[0] + row
                                     : group * aligned + row;
    if (dtype == HONE_DTYPE_UE8M0) {
        return ldexp(1.0, scales[at] - 127);
    }
    memcpy(&scale, scales + 4 * at, 4);
    return (double)scale;
}

double naive_code(const uint8_t *codes, int32_t element, int64_t row, int64_t k, int64_t len)
{
    static const double e2m1[8] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
    int nibble = 0;

    if (element != HONE_DTYPE_E2M1) {
        return (double)numfmt_e4m3_decode(codes[row * len + k]);
    }
    nibble = k % 2 == 0 ? codes[(row * len + k) / 2] & 15 : codes[(row * len + k) / 2] / 16;
    return nibble < 8 ? e2m1[nibble] : -e2m1[nibble - 8];
}

static double gemm_element(const hone_fp8_gemm *p, const inputs *in, naive_fault fault, int64_t m,
                           int64_t n)
{
    const hone_quant *qa = &p->recipe.a, *qb = &p->recipe.b;
    int64_t size_a[2] = {up(p->m, qa->gran_mn), up(p->k, qa->gran_k)};
    int64_t size_b[2] = {up(p->n, qb->gran_mn), up(p->k, qb->gran_k)};
    double sum = 0.0;

    for (int64_t k = 0; k < p->k + (fault == NAIVE_K_TAIL ? 1 : 0); k++) {
        int64_t row = m / qa->gran_mn, group = (k < p->k ? k : p->k - 1) / qa->gran_k;
        if (fault == NAIVE_SWAPPED_SCALE) {
            int64_t other = group % size_a[0];
            group = row % size_a[1];
            row = other;
        }
        if (fault == NAIVE_ROW_SCALE_SHIFT) {
            row = (row + 1) % size_a[0];
        }
        sum += naive_code(in->image[0], qa->element, m, k % p->k, p->k) *
               naive_code(in->image[2], qb->element, n, k % p->k, p->k) *
               naive_scale(in->image[1], qa->scale, p->a_scale_layout, size_a, row, group) *
               naive_scale(in->image[3], qb->scale, p->b_scale_layout, size_b, n / qb->gran_mn,
                           (k < p->k ? k : p->k - 1) / qb->gran_k);
    }
    return sum;
}

static bool gemm_skips(const hone_fp8_gemm *p, naive_fault fault, int64_t m, int64_t n)
{
    return (fault == NAIVE_HALF && n >= p->n / 2) || (fault == NAIVE_TAIL_ROW && m == p->m - 1) ||
           (fault == NAIVE_TAIL_COLUMN && n == p->n - 1);
}

static void gemm(const hone_fp8_gemm *p, const inputs *in, naive_fault fault,
                 const naive_tile *tile, inputs *out)
{
    naive_tile all = {0, p->m, 0, p->n}, t = tile != NULL ? *tile : all;

    for (int64_t m = t.row0; m < t.row1 && m < p->m; m++) {
        for (int64_t n = t.column0; n < t.column1 && n < p->n; n++) {
            uint64_t at = (uint64_t)(m * p->n + n);
            double d = gemm_element(p, in, fault, m, n);
            if (gemm_skips(p, fault, m, n)) {
                continue;
            }
            if ((p->accumulate != 0) != (fault == NAIVE_STALE_SUM)) {
                d += (double)numfmt_decode((hone_dtype)p->out, in->image[4], at);
            }
            d = fault == NAIVE_ZEROS ? 0.0 : d;
            d = fault == NAIVE_NAN && m == p->m / 2 && n == p->n / 2 ? (double)NAN : d;
            numfmt_encode((hone_dtype)p->out, out->image[4], at, (float)d);
        }
    }
}

/* A group by the rule of kernels.md 5.1, or by a wrong one. */
float naive_quantise(const float *x, int32_t len, int32_t rule, naive_fault fault, uint8_t *codes)
{
    float amax = 0.0f, raw = 0.0f, scale = 0.0f;
    int exponent = 0;

    for (int32_t i = 0; i < len; i++) {
        amax = isfinite(x[i]) ? fmaxf(amax, fabsf(x[i])) : amax;
    }
    raw = rule == HONE_RULE_POW2_SCALE ? fmaxf(amax / 448.0f, 1e-4f)
          : rule == HONE_RULE_RAW_TINY || rule == HONE_RULE_POW2_TINY
              ? fmaxf(amax / 448.0f, FLT_MIN)
              : fmaxf(amax, 1e-4f) / 448.0f;
    scale = raw;
    if (rule != HONE_RULE_RAW_AMAX && rule != HONE_RULE_RAW_TINY) {
        float half = frexpf(raw, &exponent); /* raw = half * 2^exponent, half in [0.5, 1) */
        int power = half == 0.5f ? exponent - 1 : exponent;
        power = fault == NAIVE_FLOOR ? exponent - 1 : power;
        power = fault == NAIVE_NEAREST ? (half < 0.70710678f ? exponent - 1 : exponent) : power;
        scale = ldexpf(1.0f, power);
    }
    for (int32_t i = 0; i < len; i++) {
        codes[i] = isinf(x[i]) && fault != NAIVE_INFINITY_FITS
                       ? 0x7f
                       : numfmt_e4m3_encode(x[i] / (fault == NAIVE_OLD_PAYLOAD ? raw : scale));
    }
    return scale;
}

int64_t naive_scale_place(int32_t layout, int64_t rows, int64_t groups, int64_t row, int64_t group)
{
    int64_t aligned = up(rows, 4) * 4;

    return layout == HONE_SCALES_PACKED ? group / 4 * aligned * 4 + row * 4 + group % 4
           : layout == HONE_SCALES_ROW  ? row * groups + group
           : layout == HONE_SCALES_COL  ? group * rows + row
                                        : group * aligned + row;
}

void naive_scale_write(uint8_t *scales, int32_t dtype, int64_t place, float scale)
{
    if (dtype == HONE_DTYPE_UE8M0) {
        scales[place] = (uint8_t)(ilogbf(scale) + 127);
    } else {
        memcpy(scales + 4 * place, &scale, 4);
    }
}

/* 1.0 wherever a layout has padding, and everywhere else until it is written. */
static void scale_fill(const hone_operand *operand, int32_t layout, uint8_t *scales)
{
    bool bytes = operand->dtype == HONE_DTYPE_UE8M0;

    for (uint64_t i = 0; i < operand->bytes / (bytes ? 1 : 4) &&
                         (layout == HONE_SCALES_PACKED || layout == HONE_SCALES_TMA);
         i++) {
        naive_scale_write(scales, operand->dtype, (int64_t)i, 1.0f);
    }
}

static uint64_t count_special(const float *x, int32_t len)
{
    uint64_t count = 0;

    for (int32_t i = 0; i < len; i++) {
        count += !isfinite(x[i]);
    }
    return count;
}

/* Element k of a row, behind its gate when there is one. */
static float act_value(const hone_act_quant *p, const inputs *in, naive_fault fault, int64_t row,
                       int64_t k)
{
    hone_dtype dtype = (hone_dtype)p->in;
    bool v4 = p->activation == HONE_ACTIVATION_SILU_MUL_V4 && fault != NAIVE_NO_CLAMP;

    if (p->activation == HONE_ACTIVATION_PLAIN) {
        return numfmt_decode(dtype, in->image[0], (uint64_t)(row * p->k + k));
    }
    float gate = numfmt_decode(dtype, in->image[0], (uint64_t)(row * 2 * p->k + k));
    float up_value = numfmt_decode(dtype, in->image[0], (uint64_t)(row * 2 * p->k + p->k + k));
    if (fault == NAIVE_UP_GATES) {
        float other = gate;
        gate = up_value;
        up_value = other;
    }
    gate = v4 && gate > 10.0f ? 10.0f : gate;
    up_value = v4 && up_value > 10.0f ? 10.0f : v4 && up_value < -10.0f ? -10.0f : up_value;
    return gate / (1.0f + expf(-gate)) * up_value;
}

/* The row of x that row `row` of q is made of. */
static int64_t act_source(const hone_act_quant *p, const inputs *in, naive_fault fault, int64_t row)
{
    const int32_t *rows = (const int32_t *)(const void *)in->image[3];
    const int32_t entry = p->row_set == HONE_ROWS_GATHERED ? rows[row] : 0;

    if (p->row_set != HONE_ROWS_GATHERED) {
        return row;
    }
    if (entry < 0 || entry / p->topk >= p->tokens) { /* a fault's */
        return 0;
    }
    return fault == NAIVE_PAGE_OFF ? entry % p->tokens : entry / p->topk;
}

static bool act_row_is_there(const hone_act_quant *p, const inputs *in, int64_t expert, int64_t row)
{
    const int32_t *rows = (const int32_t *)(const void *)in->image[3];

    switch (p->row_set) {
    case HONE_ROWS_MASKED:
        return row < rows[expert];
    case HONE_ROWS_LISTED:
        return rows[row] >= 0;
    case HONE_ROWS_GATHERED:
        row += expert * p->m;
        return rows[row] >= 0 && rows[row] / p->topk < p->tokens;
    default:
        return true;
    }
}

/* Rows whose entries no token has. */
static void act_drop(const hone_act_quant *p, const inputs *in, inputs *out)
{
    const int32_t *rows = (const int32_t *)(const void *)in->image[3];
    uint64_t dropped = INPUTS_COUNTER;

    for (int64_t i = 0; i < p->experts * p->m; i++) {
        dropped += rows[i] >= p->tokens * p->topk;
    }
    memcpy(out->image[4], &dropped, sizeof dropped);
}

static void act_quant(const hone_act_quant *p, const inputs *in, naive_fault fault, inputs *out)
{
    int64_t groups = p->k / p->group;
    uint64_t special = INPUTS_COUNTER;
    int64_t one = (int64_t)(in->operand[2].bytes / (p->scale == HONE_DTYPE_UE8M0 ? 1 : 4)) /
                  p->experts; /* scales of an expert */
    float x[128];

    scale_fill(&in->operand[2], p->scale_layout, out->image[2]);
    for (int64_t at = 0; at < p->experts * p->m * groups; at++) {
        int64_t expert = at / groups / p->m, m = at / groups % p->m, g = at % groups;
        int64_t row = expert * p->m + m;
        int64_t place = expert * one + naive_scale_place(p->scale_layout, p->m, groups, m, g);
        if (!act_row_is_there(p, in, expert, m) && fault != NAIVE_EVERY_ROW) {
            memset(out->image[2] + place * (p->scale == HONE_DTYPE_UE8M0 ? 1 : 4), 0xff,
                   p->scale == HONE_DTYPE_UE8M0 ? 1 : 4);
            continue;
        }
        if ((fault == NAIVE_HALF && g >= groups / 2) ||
            (fault == NAIVE_TAIL_ROW && m == p->m - 1)) {
            continue;
        }
        for (int32_t i = 0; i < p->group; i++) {
            x[i] = act_value(p, in, fault, act_source(p, in, fault, row), g * p->group + i);
        }
        special += count_special(x, p->group);
        naive_scale_write(
            out->image[2], p->scale, place,
            naive_quantise(x, p->group, p->rule, fault, out->image[1] + row * p->k + g * p->group));
    }
    if (p->count && fault != NAIVE_NO_COUNT) {
        const int rows = p->row_set != HONE_ROWS_EVERY, drops = p->row_set == HONE_ROWS_GATHERED;
        memcpy(out->image[3 + rows + drops], &special, sizeof special);
    }
    if (p->row_set == HONE_ROWS_GATHERED && fault != NAIVE_NO_COUNT) {
        act_drop(p, in, out);
    }
}

static void weight_quant(const hone_weight_quant *p, const inputs *in, naive_fault fault,
                         inputs *out)
{
    int64_t rows = up(p->n, p->gran_n), groups = up(p->k, p->gran_k);
    uint64_t special = INPUTS_COUNTER;
    float x[128 * 128];
    uint8_t codes[128 * 128];

    scale_fill(&in->operand[2], p->scale_layout, out->image[2]);
    for (int64_t at = 0; at < rows * groups; at++) {
        int64_t row = at / groups, g = at % groups, n0 = row * p->gran_n, k0 = g * p->gran_k;
        int64_t high = p->n - n0 < p->gran_n ? p->n - n0 : p->gran_n;
        int64_t wide = p->k - k0 < p->gran_k ? p->k - k0 : p->gran_k;
        int64_t seen = fault == NAIVE_TAIL_ROW ? (high + 1) / 2 : high; /* by the scale */
        for (int64_t i = 0; i < high * wide; i++) {
            x[i] = numfmt_decode((hone_dtype)p->in, in->image[0],
                                 (uint64_t)((n0 + i / wide) * p->k + k0 + i % wide));
        }
        special += count_special(x, (int32_t)(high * wide));
        float scale = naive_quantise(x, (int32_t)(seen * wide), p->rule, fault, codes);
        naive_scale_write(out->image[2], p->scale,
                          naive_scale_place(p->scale_layout, rows, groups, row, g), scale);
        for (int64_t i = 0; i < high * wide && !(fault == NAIVE_HALF && g >= groups / 2); i++) {
            out->image[1][(n0 + i / wide) * p->k + k0 + i % wide] =
                i < seen * wide ? codes[i] : numfmt_e4m3_encode(x[i] / scale);
        }
    }
    if (fault != NAIVE_NO_COUNT) {
        memcpy(out->image[3], &special, sizeof special);
    }
}

/* A code times 2^-shift, by the step between neighbours where it falls; ties to even. */
static uint8_t shift_down(uint8_t code, int shift, naive_fault fault)
{
    const double x = fabs((double)numfmt_e4m3_decode(code)) * ldexp(1.0, -shift);
    double quantum = x < 0x1p-6 ? 0x1p-9 : 0.0; /* above it every code has the same bits */

    if (isnan(x)) {
        return code;
    }
    for (double low = 0x1p-6; quantum == 0.0; low *= 2.0) {
        quantum = x < 2.0 * low ? low / 8.0 : 0.0;
    }
    const double whole = fault == NAIVE_FLOOR ? floor(x / quantum) : nearbyint(x / quantum);
    return (uint8_t)((code & 0x80) | numfmt_e4m3_encode((float)(whole * quantum)));
}

static void fold(const hone_fold *p, const inputs *in, naive_fault fault, inputs *out)
{
    const int64_t groups = p->k / 32, blocks = up(p->k, 128), aligned = up(p->m, 4) * 4;
    uint64_t inexact = 0;

    memcpy(&inexact, in->image[4], sizeof inexact);
    if (p->q_scale_layout == HONE_SCALES_PACKED) {
        memset(out->image[3], 0x7f, in->operand[3].bytes);
    }
    for (int64_t at = 0; at < p->m * blocks; at++) {
        const int64_t m = at / blocks, b = at % blocks;
        const int64_t place = p->q_scale_layout == HONE_SCALES_PACKED
                                  ? b / 4 * aligned * 4 + m * 4 + b % 4
                              : p->q_scale_layout == HONE_SCALES_ROW ? m * blocks + b
                                                                     : b * p->m + m;
        int own[4] = {0}, largest = -1;
        if ((fault == NAIVE_HALF && b >= blocks / 2) ||
            (fault == NAIVE_TAIL_ROW && m == p->m - 1)) {
            continue;
        }
        for (int g = 0; g < 4 && 4 * b + g < groups; g++) {
            const int64_t group = 4 * b + g;
            own[g] = in->image[1][p->scale_layout == HONE_SCALES_PACKED
                                      ? group / 4 * aligned * 4 + m * 4 + group % 4
                                  : p->scale_layout == HONE_SCALES_ROW ? m * groups + group
                                                                       : group * p->m + m];
            largest = own[g] > largest ? own[g] : largest;
        }
        out->image[3][place] = (uint8_t)(largest + (fault == NAIVE_ROW_SCALE_SHIFT));
        for (int64_t k = 128 * b; k < p->k && k < 128 * (b + 1); k++) {
            const uint8_t code = in->image[0][m * p->k + k];
            const int shift = largest - own[k / 32 % 4];
            const uint8_t made = shift_down(code, shift, fault);
            out->image[2][m * p->k + k] = made;
            inexact +=
                (code & 0x7f) != 0x7f && fault != NAIVE_NO_COUNT &&
                (double)numfmt_e4m3_decode(made) != ldexp((double)numfmt_e4m3_decode(code), -shift);
        }
    }
    memcpy(out->image[4], &inexact, sizeof inexact);
}

void naive_run(const hone_problem *problem, const inputs *in, naive_fault fault,
               const naive_tile *tile, inputs *out)
{
    switch (problem->op) {
    case HONE_OP_FP8_GEMM:
        gemm(&problem->as.fp8_gemm, in, fault, tile, out);
        break;
    case HONE_OP_MOE_GEMM:
        naive_moe_gemm(&problem->as.moe_gemm, in, fault, tile, out);
        break;
    case HONE_OP_ACT_QUANT:
        act_quant(&problem->as.act_quant, in, fault, out);
        break;
    case HONE_OP_MXFP4_FOLD:
        naive_mxfp4_fold(&problem->as.mxfp4_fold, in, fault, out);
        break;
    case HONE_OP_SCALE_PACK:
        naive_scale_pack(&problem->as.scale_pack, in, fault, out);
        break;
    case HONE_OP_FOLD:
        fold(&problem->as.fold, in, fault, out);
        break;
    case HONE_OP_WEIGHT_QUANT:
        weight_quant(&problem->as.weight_quant, in, fault, out);
        break;
    case HONE_OP_MOE_ALIGN:
        naive_moe_align(&problem->as.moe_align, in, fault, out);
        break;
    case HONE_OP_MOE_COMBINE:
        naive_moe_combine(&problem->as.moe_combine, in, fault, out);
        break;
    case HONE_OP_TOPK:
        naive_topk(&problem->as.topk, in, fault, out);
        break;
    case HONE_OP_MQA_LOGITS:
    case HONE_OP_MQA_LOGITS_PAGED:
        naive_mqa(problem, in, fault, tile, out);
        break;
    case HONE_OP_KV_QUANT:
        naive_kv_quant(&problem->as.kv_quant, in, fault, out);
        break;
    default:
        naive_kv_gather(&problem->as.kv_gather, in, fault, out);
        break;
    }
}
