/* moe_layer.c - see moe_layer.h. */
#include "tests/runtime/moe_layer.h"

#include "bench/verify_quant_parts.h"
#include "core/numfmt.h"
#include "core/problem.h"
#include "core/random.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Routing ----------------------------------------------------------------------------------
 */

int64_t local_experts(const model *m)
{
    const char *asked = getenv("HONE_MOE_EP");

    return m->experts / (asked != NULL ? atoi(asked) : 128);
}

void route(const model *m, int routing, int64_t tokens, int32_t *ids, float *weight)
{
    const int64_t local = local_experts(m);
    uint64_t seed = 5;

    for (int64_t t = 0; t < tokens; t++) {
        for (int64_t j = 0; j < m->topk; j++) {
            int64_t id = (int64_t)random_below(&seed, (uint64_t)m->experts);
            for (int64_t i = 0; i < j; i++) { /* linear probing: distinct */
                id = ids[t * m->topk + i] == (int32_t)id ? (id + 1) % m->experts : id;
                i = ids[t * m->topk + i] == (int32_t)id ? -1 : i;
            }
            ids[t * m->topk + j] = (int32_t)id;
            weight[t * m->topk + j] = (float)(0.1 + 0.4 * random_unit(&seed));
        }
    }
    for (int64_t i = 0; i < tokens * m->topk; i++) {
        const bool first = i % m->topk == 0;
        ids[i] = routing == NOBODY          ? -1
                 : routing == ONE_HAS_ALL   ? (first ? 1 : -1)
                 : routing == ONLY_THE_LAST ? (first ? (int32_t)local - 1 : -1)
                 : ids[i] < local           ? ids[i]
                                            : -1;
    }
    if (routing == DRAWN) {
        ids[0] = 0;
        for (int64_t j = 1; j < m->topk; j++) {
            ids[j] = ids[j] == 0 ? -1 : ids[j];
        }
    }
}

/* ---- Weights ----------------------------------------------------------------------------------
 */

weights weights_make(const model *m, int64_t n, int64_t k, const bool *used, uint64_t seed)
{
    const int64_t experts = local_experts(m);
    weights w = {.n = n,
                 .k = k,
                 .matrix = (uint64_t)(m->nibbles ? n * k / 2 : n * k),
                 .scales = (uint64_t)(m->nibbles ? n * (k / 32) : n / 128 * (k / 128) * 4)};
    /* sums of k products of numbers around 1 are around 1 */
    const int centre = -(int)lrint(log2(sqrt((double)k))) - (m->nibbles ? 1 : -1);

    w.codes = malloc((size_t)experts * w.matrix);
    w.scale = malloc((size_t)experts * w.scales);
    ck_assert(w.codes != NULL && w.scale != NULL);
    memset(w.codes, 0xff, (size_t)experts * w.matrix);
    memset(w.scale, 0xff, (size_t)experts * w.scales);
    for (int64_t x = 0; x < experts; x++) {
        uint8_t *codes = w.codes + (uint64_t)x * w.matrix,
                *scale = w.scale + (uint64_t)x * w.scales;
        for (uint64_t i = 0; used[x] && i < w.matrix; i += 8) {
            uint64_t eight = random_next(&seed);
            eight &= m->nibbles ? ~UINT64_C(0) : UINT64_C(0xbfbfbfbfbfbfbfbf); /* below 2 */
            memcpy(codes + i, &eight, 8);
        }
        for (uint64_t i = 0; used[x] && i < w.scales; i += m->nibbles ? 1 : 4) {
            const int exponent = centre + (int)random_below(&seed, 3) - 1;
            const float value = ldexpf(m->nibbles ? 1.0f : 1.25f, exponent);
            if (m->nibbles) {
                scale[i] = (uint8_t)(127 + exponent);
            } else {
                memcpy(scale + i, &value, 4);
            }
        }
    }
    return w;
}

/* A row of an expert's matrix, dequantised. */
static void weights_row(const model *m, const weights *w, int64_t expert, int64_t row, float *out)
{
    const uint8_t *codes = w->codes + (uint64_t)expert * w->matrix;
    const uint8_t *scale = w->scale + (uint64_t)expert * w->scales;

    for (int64_t i = 0; i < w->k; i++) {
        const uint8_t pair = m->nibbles ? codes[(row * w->k + i) / 2] : 0;
        float s;
        if (m->nibbles) {
            s = numfmt_ue8m0_decode(scale[row * (w->k / 32) + i / 32]);
            out[i] = s * numfmt_e2m1_decode(i % 2 == 0 ? pair & 15 : pair >> 4);
        } else {
            memcpy(&s, scale + (row / 128 * (w->k / 128) + i / 128) * 4, 4);
            out[i] = s * numfmt_e4m3_decode(codes[row * w->k + i]);
        }
    }
}

/* ---- Reference --------------------------------------------------------------------------------
 */

/* What an entry holds on its way: the token's activations, gates and ups, what lies between the
 * products, sums. */
typedef struct row {
    int64_t entry;
    double *x, *gate, *up, *h, *y;
} row;

static void limit(const model *m, double *g, double *u)
{
    if (m->clamped) {
        *g = fmin(*g, 10.0);
        *u = fmax(fmin(*u, 10.0), -10.0);
    }
}

static double gated(const model *m, double g, double u)
{
    limit(m, &g, &u);
    return g / (1.0 + exp(-g)) * u;
}

/* As the chain does in between, by core's quantiser. */
static void quantise(const model *m, double *x, int64_t len)
{
    const hone_scale_rule rule = m->nibbles ? HONE_RULE_POW2_AMAX : HONE_RULE_RAW_AMAX;
    float group[128];
    uint8_t codes[128];

    for (int64_t i = 0; i < len; i += m->group) {
        for (int32_t j = 0; j < m->group; j++) {
            group[j] = (float)x[i + j];
        }
        const double s =
            (double)numfmt_quantise(group, (size_t)m->group, rule, HONE_DTYPE_E4M3, codes, NULL);
        for (int32_t j = 0; j < m->group; j++) {
            x[i + j] = s * (double)numfmt_e4m3_decode(codes[j]);
        }
    }
}

static double dot(const float *w, const double *x, int64_t len)
{
    double sum[8] = {0};

    for (int64_t i = 0; i < len; i += 8) { /* lengths are multiples of 8 */
        for (int j = 0; j < 8; j++) {
            sum[j] += (double)w[i + j] * x[i + j];
        }
    }
    return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

/* ---- The device's codes -------------------------------------------------------------------------
 */

/* Sums are off by what a product may be, over its row, and single ones by so many times that. */
#define FURTHEST 6.0
#define SLOPE    1.1 /* silu's greatest is 1.0998 */

static double root_mean_square(const double *x, int64_t len)
{
    double sum = 0;

    for (int64_t i = 0; i < len; i++) {
        sum += x[i] * x[i];
    }
    return sqrt(sum / (double)len);
}

static float scale_of(const middle *own, int64_t inter, int64_t place, int64_t group)
{
    const hone_moe_gemm *p = &own->first;
    const hone_dtype type = (hone_dtype)p->out_scale;
    const hone_scale_layout layout = (hone_scale_layout)p->out_scale_layout;
    const int64_t groups = inter / p->out_group;
    uint64_t matrix = 0;

    ck_assert_int_eq(problem_scale_bytes(p->m, groups, type, layout, &matrix, NULL), HONE_OK);
    const uint8_t *at = own->scales + (uint64_t)(place / p->m) * matrix +
                        problem_scale_offset(p->m, groups, type, layout, place % p->m, group);
    return numfmt_decode(type, at, 0);
}

/* What the codes of one row and of its exact values differ by, over all rows so far. */
typedef struct apart {
    double off, norm;
} apart;

/* A group of a row: the device's scale and codes are those of values near enough, and take the
 * place of h. `near`: how far off gates and ups may be. */
static void take_group(const model *m, const middle *own, row *r, int64_t first,
                       const double near[2], apart *together)
{
    const int64_t place = own->place[r->entry];
    const float scale = scale_of(own, m->inter, place, first / m->group);
    const uint8_t *codes = own->codes + place * m->inter + first;
    double exact[128];
    verify_interval values;

    for (int32_t i = 0; i < m->group; i++) {
        double g = r->gate[first + i], u = r->up[first + i];
        limit(m, &g, &u);
        values.value[i] = exact[i] = r->h[first + i];
        values.bound[i] = SLOPE * near[0] * (fabs(u) + near[1]) + fabs(g / (1 + exp(-g))) * near[1];
    }
    verify_interval_close(&values, m->group);
    ck_assert_msg(verify_interval_scale(&values, own->first.out_rule, scale),
                  "a scale of %g, of values up to %g to %g", (double)scale, values.amax_low,
                  values.amax_high);
    quantise(m, exact, m->group);
    for (int32_t i = 0; i < m->group; i++) {
        ck_assert_msg(verify_interval_code(codes[i], values.value[i], values.bound[i], scale),
                      "code 0x%02x of %g +- %g over %g", codes[i], values.value[i], values.bound[i],
                      (double)scale);
        r->h[first + i] = (double)scale * (double)numfmt_e4m3_decode(codes[i]);
        together->off += (r->h[first + i] - exact[i]) * (r->h[first + i] - exact[i]);
        together->norm += exact[i] * exact[i];
    }
}

/* A value off by e goes a step of an eighth at most in 8 e of all cases, or e and a step. */
#define CODES_OFF (PRODUCT_OFF * (PRODUCT_OFF + 0.125))

static void take_codes(const model *m, const middle *own, row *rows, size_t len)
{
    apart together = {0};

    for (size_t i = 0; i < len; i++) {
        const double near[2] = {FURTHEST * PRODUCT_OFF * root_mean_square(rows[i].gate, m->inter),
                                FURTHEST * PRODUCT_OFF * root_mean_square(rows[i].up, m->inter)};
        for (int64_t c = 0; c < m->inter; c += m->group) {
            take_group(m, own, &rows[i], c, near, &together);
        }
    }
    ck_assert_msg(together.off <= CODES_OFF * together.norm, "codes off by %g of their norm",
                  sqrt(together.off / together.norm));
}

/* ---- The layer --------------------------------------------------------------------------------
 */

/* The rows of one expert through both products. Each row of weights is dequantised once. */
static void expert_rows(const model *m, const weights *w13, const weights *w2, int64_t expert,
                        row *rows, size_t len, const middle *own)
{
    float *line[2];

    for (int i = 0; i < 2; i++) {
        line[i] = malloc((size_t)(m->hidden > m->inter ? m->hidden : m->inter) * sizeof(float));
        ck_assert_ptr_nonnull(line[i]);
    }
    for (size_t r = 0; own != NULL && r < len; r++) {
        quantise(m, rows[r].x, m->hidden);
    }
    for (int64_t c = 0; c < m->inter; c++) {
        weights_row(m, w13, expert, c, line[0]);
        weights_row(m, w13, expert, m->inter + c, line[1]);
        for (size_t r = 0; r < len; r++) {
            rows[r].gate[c] = dot(line[0], rows[r].x, m->hidden);
            rows[r].up[c] = dot(line[1], rows[r].x, m->hidden);
            rows[r].h[c] = gated(m, rows[r].gate[c], rows[r].up[c]);
        }
    }
    if (own != NULL) {
        take_codes(m, own, rows, len);
    }
    for (int64_t c = 0; c < m->hidden; c++) {
        weights_row(m, w2, expert, c, line[0]);
        for (size_t r = 0; r < len; r++) {
            rows[r].y[c] = dot(line[0], rows[r].h, m->inter);
        }
    }
    free(line[0]);
    free(line[1]);
}

/* Freeing x frees the row. */
static row row_make(const model *m, int64_t entry)
{
    double *x = malloc((size_t)(2 * m->hidden + 3 * m->inter) * sizeof *x);

    ck_assert_ptr_nonnull(x);
    return (row){.entry = entry,
                 .x = x,
                 .y = x + m->hidden,
                 .gate = x + 2 * m->hidden,
                 .up = x + 2 * m->hidden + m->inter,
                 .h = x + 2 * m->hidden + 2 * m->inter};
}

double *layer_reference(const model *m, const weights *w13, const weights *w2, const int32_t *ids,
                        const float *weight, const uint16_t *x, int64_t tokens, const middle *own)
{
    double *y = calloc((size_t)(tokens * m->hidden), sizeof *y);
    row *rows = calloc((size_t)(tokens * m->topk), sizeof *rows);

    ck_assert(y != NULL && rows != NULL);
    for (int64_t expert = 0; expert < local_experts(m); expert++) {
        size_t len = 0;
        for (int64_t i = 0; i < tokens * m->topk; i++) {
            if (ids[i] != expert) {
                continue;
            }
            row *r = &rows[len++];
            *r = row_make(m, i);
            for (int64_t c = 0; c < m->hidden; c++) {
                r->x[c] = (double)numfmt_bf16_decode(x[i / m->topk * m->hidden + c]);
            }
        }
        if (len > 0) {
            expert_rows(m, w13, w2, expert, rows, len, own);
        }
        for (size_t r = 0; r < len; r++) {
            for (int64_t c = 0; c < m->hidden; c++) {
                y[rows[r].entry / m->topk * m->hidden + c] +=
                    (double)weight[rows[r].entry] * rows[r].y[c];
            }
            free(rows[r].x); /* with all of the row */
        }
    }
    free(rows);
    return y;
}

double relative_error(const float *got, const double *exact, int64_t len)
{
    double off = 0, norm = 0;

    for (int64_t i = 0; i < len; i++) {
        off += ((double)got[i] - exact[i]) * ((double)got[i] - exact[i]);
        norm += exact[i] * exact[i];
    }
    ck_assert_double_gt(norm, 0);
    return sqrt(off / norm);
}
