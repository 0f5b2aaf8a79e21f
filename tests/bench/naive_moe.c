/* naive_moe.c - a grouped product, row by row: whose row it is, then plain doubles. */
#include "tests/bench/naive.h"

#include "core/numfmt.h"

#include <math.h>
#include <string.h>

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t group_of(const inputs *in, int64_t i)
{
    int32_t group;

    memcpy(&group, in->image[4] + 4 * i, 4);
    return group;
}

/* The expert of row `row` of matrix `batch`, -1: none; *within counts from its first row. */
static int64_t expert_of(const hone_moe_gemm *p, const inputs *in, int64_t batch, int64_t row,
                         int64_t *within)
{
    int64_t end = 0;

    if (p->group_layout == HONE_GROUPS_CONTIGUOUS) {
        const int64_t label = group_of(in, row);
        for (*within = 0; *within < row && group_of(in, row - *within - 1) == label; ++*within) {
        }
        return label >= 0 && label < p->experts ? label : -1;
    }
    if (p->group_layout == HONE_GROUPS_MASKED) {
        *within = row;
        return row < group_of(in, batch) ? batch : -1;
    }
    for (int64_t e = 0; e < p->experts; e++) {
        const int64_t begin = up(end, p->row_align) * p->row_align, own = group_of(in, e);
        *within = row - begin;
        if (row >= begin && row < own && row < p->m) {
            return e;
        }
        end = own > end ? own : end; /* ends may fall */
    }
    return -1;
}

/* Of `expert`'s k: elements before them, and how many. */
static int64_t k_of(const hone_moe_gemm *p, const inputs *in, int64_t expert, int64_t *first)
{
    int64_t own = p->k;

    *first = 0;
    for (int64_t e = 0; p->group_layout == HONE_GROUPS_K && e <= expert; e++) {
        const int64_t units = group_of(in, e) / p->recipe.a.gran_k; /* towards 0 */
        const int64_t left = p->k - (*first += e > 0 ? own : 0);
        own = units <= 0                          ? 0
              : units * p->recipe.a.gran_k < left ? units * p->recipe.a.gran_k
                                                  : left;
    }
    return own;
}

/* Products of a row of A and one of B, each cut to 13 bits below the largest. */
static double cut_sum(const double *product, int len)
{
    double largest = 0.0, sum = 0.0;

    for (int i = 0; i < len; i++) {
        largest = fmax(largest, fabs(product[i]));
        sum += product[i];
    }
    if (!(largest > 0.0) || !isfinite(sum)) {
        return sum;
    }
    const double unit = ldexp(1.0, ilogb(largest) - 13);
    sum = 0.0;
    for (int i = 0; i < len; i++) {
        sum += trunc(product[i] / unit);
    }
    return (double)(float)(sum * unit);
}

static double element(const hone_moe_gemm *p, const inputs *in, int64_t batch, int64_t m,
                      int64_t expert, int64_t n, bool cut)
{
    enum { PART = 32 }; /* of K: scales are of as many or more */
    const bool by_k = p->group_layout == HONE_GROUPS_K;
    const hone_quant *qa = &p->recipe.a, *qb = &p->recipe.b;
    const int64_t size_a[2] = {p->m, up(p->k, qa->gran_k)};
    const int64_t size_b[2] = {up(p->n, qb->gran_mn), up(p->k, qb->gran_k)};
    const int64_t a_matrix =
        (int64_t)in->operand[1].bytes / (p->group_layout == HONE_GROUPS_MASKED ? p->experts : 1);
    const int64_t b_matrix = (int64_t)in->operand[3].bytes / (by_k ? 1 : p->experts);
    const uint8_t *as = in->image[1] + (by_k ? 0 : batch * a_matrix);
    const uint8_t *bs = in->image[3] + (by_k ? 0 : expert * b_matrix);
    int64_t first;
    const int64_t len = k_of(p, in, expert, &first);
    double sum = 0.0, product[PART];

    for (int64_t k = 0; k < len; k++) {
        const double a = by_k ? naive_code(in->image[0] + p->m * first, qa->element, m, k, len)
                              : naive_code(in->image[0], qa->element, batch * p->m + m, k, len);
        const double b = by_k ? naive_code(in->image[2] + p->n * first, qb->element, n, k, len)
                              : naive_code(in->image[2], qb->element, expert * p->n + n, k, len);
        const double scale =
            naive_scale(as, qa->scale, p->a_scale_layout, size_a, m, (first + k) / qa->gran_k) *
            naive_scale(bs, qb->scale, p->b_scale_layout, size_b, n / qb->gran_mn,
                        (first + k) / qb->gran_k);
        product[k % PART] = a * b;
        if (!cut) {
            sum += a * b * scale;
        } else if (k % PART == PART - 1 || k == len - 1) {
            sum = (double)(float)(sum + scale * cut_sum(product, (int)(k % PART) + 1));
        }
    }
    return sum;
}

static float gated(const hone_moe_gemm *p, naive_fault fault, double gate, double up)
{
    if (fault == NAIVE_SHORT) {
        gate *= 1.0 - 0x1p-7;
        up *= 1.0 - 0x1p-7;
    }
    if (fault == NAIVE_UP_GATES) {
        const double other = gate;
        gate = up;
        up = other;
    }
    if (p->activation == HONE_ACTIVATION_SILU_MUL_V4 && fault != NAIVE_NO_CLAMP) {
        gate = fmin(gate, 10.0);
        up = fmax(fmin(up, 10.0), -10.0);
    }
    return (float)(gate / (1.0 + exp(-gate)) * up);
}

/* What is left of a packed row's last word is 1.0. */
static void fill_word(const hone_moe_gemm *p, int64_t row, int64_t groups, uint8_t *scales)
{
    for (int64_t pad = groups; p->out_scale_layout == HONE_SCALES_PACKED && pad % 4 != 0; pad++) {
        naive_scale_write(scales, p->out_scale,
                          naive_scale_place(HONE_SCALES_PACKED, p->m, groups, row, pad), 1.0f);
    }
}

/* A row of D for `expert`, columns from `first` to `stop`, into images at `row`. */
static void write_row(const hone_moe_gemm *p, const inputs *in, naive_fault fault, int64_t batch,
                      int64_t row, int64_t expert, const naive_tile *t, inputs *out)
{
    const bool plain = p->activation == HONE_ACTIVATION_PLAIN;
    const int64_t columns = plain ? p->n : p->n / 2, first = (batch * p->m + row) * columns;
    const int64_t groups = p->out_group > 0 ? columns / p->out_group : 0;
    float x[128];
    uint8_t codes[128];

    for (int64_t n = t->column0; n < t->column1 && n < columns; n++) {
        const bool cut = fault == NAIVE_UNIT;
        double d = element(p, in, batch, row, expert, n, cut);
        if (p->accumulate) {
            d += (double)numfmt_decode((hone_dtype)p->out, in->image[5], (uint64_t)(first + n));
        }
        const float made =
            plain ? (float)d
                  : gated(p, fault, d, element(p, in, batch, row, expert, n + columns, cut));
        if (p->out != HONE_DTYPE_E4M3) {
            numfmt_encode((hone_dtype)p->out, out->image[5], (uint64_t)(first + n),
                          fault == NAIVE_ZEROS ? 0.0f : made);
            continue;
        }
        x[n % p->out_group] = made;
        if ((n + 1) % p->out_group == 0) {
            const int64_t group = n / p->out_group;
            const int64_t matrix = (int64_t)out->operand[6].bytes /
                                   (p->group_layout == HONE_GROUPS_MASKED ? p->experts : 1);
            const float scale = naive_quantise(x, p->out_group, p->out_rule, fault, codes);
            memcpy(out->image[5] + first + group * p->out_group, codes, (size_t)p->out_group);
            naive_scale_write(out->image[6] + batch * matrix, p->out_scale,
                              naive_scale_place(p->out_scale_layout, p->m, groups, row, group),
                              scale);
            if (group == groups - 1 && fault != NAIVE_NO_FILL) {
                fill_word(p, row, groups, out->image[6] + batch * matrix);
            }
        }
    }
}

/* Whose weights a row is multiplied with; -1: it is not written. */
static int64_t weights_of(const hone_moe_gemm *p, const inputs *in, naive_fault fault,
                          int64_t batch, int64_t row)
{
    int64_t within = 0, before = 0, next = 0;
    const int64_t expert = expert_of(p, in, batch, row, &within);

    if (fault == NAIVE_SPILL && row > 0) {
        const int64_t left = expert_of(p, in, batch, row - 1, &before);
        if (left >= 0 && left != expert && before % 4 != 3) {
            return left;
        }
    }
    if (expert < 0) {
        return fault == NAIVE_EVERY_ROW ? 0 : -1;
    }
    if ((fault == NAIVE_FIRST_ROW && within == 0) ||
        (fault == NAIVE_TAIL_ROW &&
         (row + 1 == p->m || expert_of(p, in, batch, row + 1, &next) != expert))) {
        return -1;
    }
    return fault == NAIVE_NEXT_WEIGHTS ? (expert + 1) % p->experts : expert;
}

void naive_moe_gemm(const hone_moe_gemm *p, const inputs *in, naive_fault fault,
                    const naive_tile *tile, inputs *out)
{
    const bool by_k = p->group_layout == HONE_GROUPS_K;
    const naive_tile all = {0, p->m, 0, p->n}, t = tile != NULL ? *tile : all;
    const int64_t matrices = by_k || p->group_layout == HONE_GROUPS_MASKED ? p->experts : 1;

    for (int64_t batch = 0; batch < matrices; batch++) {
        for (int64_t row = 0; row < p->m; row++) {
            int64_t within = row;
            const int64_t expert = by_k ? batch : weights_of(p, in, fault, batch, row);
            if (!by_k) {
                expert_of(p, in, batch, row, &within);
            }
            const bool inside = tile == NULL || (within >= t.row0 && within < t.row1);
            if (expert >= 0 && inside) {
                write_row(p, in, fault, batch, row, expert, &t, out);
            } else if (expert < 0 && p->fill) {
                memset(out->image[5] + (batch * p->m + row) * (int64_t)out->operand[5].bytes /
                                           (p->m * matrices),
                       0, out->operand[5].bytes / (uint64_t)(p->m * matrices));
            }
        }
    }
}
