/* inputs_moe.c - rows of experts: who has how many, where they lie, and poison where nobody's are.
 */
#include "bench/inputs_parts.h"
#include "bench/segments.h"
#include "bench/verify.h"

#include "core/integer.h"
#include "core/numfmt.h"
#include "core/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const routing_names[INPUTS_ROUTES] = {
    [INPUTS_ROUTE_BALANCED] = "balanced", [INPUTS_ROUTE_UNIFORM] = "uniform",
    [INPUTS_ROUTE_ZIPF] = "zipf",         [INPUTS_ROUTE_ONE] = "one",
    [INPUTS_ROUTE_HOLES] = "holes",
};

const char *inputs_routing_name(inputs_routing routes)
{
    return routes >= 0 && routes < INPUTS_ROUTES ? routing_names[routes] : NULL;
}

static inputs_routing routing_of(inputs_kind kind)
{
    switch (kind) {
    case INPUTS_HOLES:
        return INPUTS_ROUTE_HOLES;
    case INPUTS_WIDE:
        return INPUTS_ROUTE_ZIPF;
    case INPUTS_EXTREMES:
        return INPUTS_ROUTE_UNIFORM;
    case INPUTS_TINY:
        return INPUTS_ROUTE_ONE;
    default:
        return INPUTS_ROUTE_BALANCED;
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The corners of kernels.md, Appendix C. */
static void draw_holes(const hone_moe_gemm *p, int64_t total, uint64_t *state, int64_t *rows)
{
    const int64_t experts = p->experts;
    const uint64_t share = (uint64_t)(2 * total / experts + 1);
    int64_t full = 0;

    memset(rows, 0, (size_t)experts * sizeof *rows);
    for (int64_t e = 0; e < experts; e++) {
        const int64_t corner[] = {1 + (int64_t)random_below(state, share), p->row_align + 1, 1,
                                  p->row_align};
        const bool hole = (e == 0 && experts > 1) || (e == experts - 1 && experts > 2) ||
                          (e == experts / 2 && experts > 3);
        rows[e] = hole ? 0 : least(corner[full % 4], total);
        full += !hole;
    }
}

static void set_group(uint8_t *groups, int64_t i, int64_t value)
{
    const int32_t narrow = (int32_t)value;

    memcpy(groups + 4 * i, &narrow, sizeof narrow);
}

/* What no expert is: for the special kind more than -1. */
static int32_t nobody(const hone_moe_gemm *p, bool special, int64_t row)
{
    const int32_t labels[] = {-1, (int32_t)p->experts, INT32_MIN, INT32_MAX};

    return labels[special ? row % 4 : 0];
}

static void place_labels(const hone_moe_gemm *p, const int64_t *rows, bool special, uint8_t *groups)
{
    int64_t at = 0;

    for (int64_t e = 0; e < p->experts; e++) {
        const int64_t own = least(rows[e], p->m - at);
        const int64_t stop = at + integer_round_up(own, p->row_align);
        for (int64_t i = 0; at < stop; i++, at++) {
            set_group(groups, at, i < own ? e : nobody(p, special, at));
        }
    }
    for (; at < p->m; at++) {
        set_group(groups, at, nobody(p, special, at));
    }
}

/* What stands for no rows: a number below 0; an end that falls, by one row or past all that the
 * experts before have. */
static int64_t no_rows(const hone_moe_gemm *p, int64_t e, int64_t begin)
{
    if (p->group_layout == HONE_GROUPS_MASKED || e + 1 == p->experts || e % 2 == 1) {
        return -1 - e;
    }
    return begin > 0 && begin < p->m && p->row_align > 1 ? begin - 1 : begin;
}

static void place_numbers(const hone_moe_gemm *p, const int64_t *rows, bool special,
                          uint8_t *groups)
{
    const bool ends = p->group_layout == HONE_GROUPS_PSUM;
    int64_t end = 0;

    for (int64_t e = 0; e < p->experts; e++) {
        const int64_t begin = ends ? least(integer_round_up(end, p->row_align), p->m) : 0;
        const int64_t own = least(rows[e], p->m - begin);
        end = begin + own;
        set_group(groups, e,
                  special && own == 0      ? no_rows(p, e, begin)
                  : special && end == p->m ? INT32_MAX
                                           : end);
    }
}

/* What stands for `own` units of gran_k of the `left` ones: a number below 0 or of less than a unit
 * for none, more than there is for the rest and behind it, what is no whole number of units. */
static int64_t odd_k(int64_t e, int64_t own, int64_t left, int64_t unit)
{
    if (left == 0) {
        return e % 3 == 0 ? INT32_MAX : e % 3 == 1 ? INT32_MIN : -1 - e;
    }
    return own == left ? INT32_MAX : own == 0 && e % 2 == 0 ? INT32_MIN : own * unit + e % unit;
}

/* Units of gran_k, as many as there are. */
static void place_k(const hone_moe_gemm *p, const int64_t *units, bool special, uint8_t *groups)
{
    const int64_t unit = p->recipe.a.gran_k;
    int64_t left = p->k / unit;

    for (int64_t e = 0; e < p->experts; e++) {
        const int64_t own = least(units[e], left);
        set_group(groups, e, special ? odd_k(e, own, left, unit) : own * unit);
        left -= own;
    }
}

static hone_status fill_groups(const hone_moe_gemm *p, inputs_kind kind, const routing *how,
                               uint64_t seed, uint8_t *groups, hone_error *error)
{
    hone_status status = HONE_OK;
    const bool by_k = p->group_layout == HONE_GROUPS_K, special = kind == INPUTS_SPECIALS;
    const int64_t room = p->m * (p->group_layout == HONE_GROUPS_MASKED ? p->experts : 1);
    const int64_t total = by_k ? p->k / p->recipe.a.gran_k : least(p->tokens * p->topk, room);
    uint64_t state = seed;
    int64_t *rows = malloc((size_t)p->experts * sizeof *rows);

    if (rows == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "inputs: rows of experts");
    }
    if (kind == INPUTS_ZEROS) {
        memset(rows, 0, (size_t)p->experts * sizeof *rows); /* no expert has any */
    } else if (how->kind == INPUTS_ROUTE_HOLES) {
        draw_holes(p, total, &state, rows);
    } else {
        TRY(routing_rows(how, p->experts, total, &state, rows, error));
    }
    for (int64_t e = 2; special && p->group_layout == HONE_GROUPS_PSUM && e < p->experts; e += 3) {
        rows[e - 1] += rows[e]; /* so that ends fall */
        rows[e] = 0;
    }
    if (by_k) {
        place_k(p, rows, special, groups);
    } else if (p->group_layout == HONE_GROUPS_CONTIGUOUS) {
        place_labels(p, rows, special, groups);
    } else {
        place_numbers(p, rows, special, groups);
    }
done:
    free(rows);
    return status;
}

static hone_status fill_matrix(const hone_moe_gemm *p, bool is_a, inputs_kind kind, uint64_t seed,
                               const inputs *in, hone_error *error)
{
    hone_status status = HONE_OK;
    const bool by_k = p->group_layout == HONE_GROUPS_K;
    const int64_t rows = is_a ? p->m : p->n;
    uint64_t scale_bytes = 0;
    inputs_matrix m = {
        .rows = rows,
        .k = p->k,
        .batch = by_k   ? 1
                 : is_a ? segments_matrices(p)
                        : p->experts,
        .row_stride = p->k,
        .batch_stride = rows * p->k,
        .quant = is_a ? p->recipe.a : p->recipe.b,
        .scale_layout = (hone_scale_layout)(is_a ? p->a_scale_layout : p->b_scale_layout),
        .payload = in->image[is_a ? 0 : 2],
        .scales = in->image[is_a ? 1 : 3],
        .one_signed = is_a ? 2 : 3,
    };

    /* Gates of a few units: far more of them are clamped, or silu's slope is 0 or 1. */
    if (!is_a && p->activation != HONE_ACTIVATION_PLAIN) {
        m.exponent = -ilogb(sqrt((double)p->k + 1.0));
    }
    m.scale_rows = integer_ceil_div(rows, m.quant.gran_mn);
    m.groups = m.scale_groups = integer_ceil_div(p->k, m.quant.gran_k);
    if (!by_k) { /* whose rows are cut otherwise */
        inputs_place_hole(&m, is_a);
    }
    if (!is_a && p->activation != HONE_ACTIVATION_PLAIN && 2 * m.hole_rows >= p->n &&
        m.hole_columns >= p->k) {
        m.hole_rows = 0; /* all ups, or all gates: nothing would be left to compare */
    }
    TRY(problem_scale_bytes(m.scale_rows, m.scale_groups, (hone_dtype)m.quant.scale, m.scale_layout,
                            &scale_bytes, error));
    m.scale_batch = (int64_t)scale_bytes;
    TRY(inputs_fill_quantised(&m, kind, seed, error));
done:
    return status;
}

/* What rows without an expert hold. */
typedef struct pad {
    uint8_t code, ue8m0;
    uint32_t f32;
} pad;
static const pad pad_nan = {0xff, 0xff, 0xffffffff};
static const pad pad_huge = {0x7e, 0xfe, 0x7f000000};

static void pad_row(const hone_moe_gemm *p, int64_t batch, int64_t row, const pad *with, inputs *in)
{
    const hone_quant *a = &p->recipe.a;
    const int64_t groups = integer_ceil_div(p->k, a->gran_k);
    uint64_t matrix = 0;

    problem_scale_bytes(p->m, groups, (hone_dtype)a->scale, (hone_scale_layout)p->a_scale_layout,
                        &matrix, NULL);
    memset(in->image[0] + (batch * p->m + row) * p->k, with->code, (size_t)p->k);
    for (int64_t g = 0; g < groups; g++) {
        uint8_t *at = in->image[1] + (uint64_t)batch * matrix +
                      problem_scale_offset(p->m, groups, (hone_dtype)a->scale,
                                           (hone_scale_layout)p->a_scale_layout, row, g);
        if (a->scale == HONE_DTYPE_UE8M0) {
            *at = with->ue8m0;
        } else {
            memcpy(at, &with->f32, sizeof with->f32);
        }
    }
}

static hone_status pad_rows(const hone_moe_gemm *p, const pad *with, inputs *in, hone_error *error)
{
    hone_status status = HONE_OK;
    const int64_t rows = p->m * segments_matrices(p);
    segments s = {0};
    size_t next = 0;

    if (p->group_layout == HONE_GROUPS_K) {
        return HONE_OK;
    }
    TRY(segments_find(p, in->image[4], &s, error));
    for (int64_t row = 0; row < rows; row++) {
        while (next < s.len &&
               row >= s.run[next].batch * p->m + s.run[next].row + s.run[next].rows) {
            next++;
        }
        if (next == s.len || row < s.run[next].batch * p->m + s.run[next].row) {
            pad_row(p, row / p->m, row % p->m, with, in);
        }
    }
done:
    segments_free(&s);
    return status;
}

hone_status inputs_fill_moe_gemm(const hone_moe_gemm *p, inputs_kind kind, inputs_routing routes,
                                 uint64_t seed, inputs *in, hone_error *error)
{
    hone_status status = HONE_OK;
    const uint64_t width = (uint64_t)numfmt_dtype_bits((hone_dtype)p->out) / 8;
    const routing how = {
        .kind = routes == INPUTS_ROUTE_OF_KIND ? routing_of(kind) : routes,
        .exponent = 1.0,
    };

    TRY(fill_groups(p, kind, &how, seed + 3, in->image[4], error));
    TRY(fill_matrix(p, true, kind, seed, in, error));
    TRY(fill_matrix(p, false, kind, seed + 1, in, error));
    TRY(pad_rows(p, &pad_nan, in, error));
    if (p->accumulate) {
        TRY(inputs_fill_plain((hone_dtype)p->out, in->operand[5].bytes / width, 32, INPUTS_NORMAL,
                              seed + 2, in->image[5], error));
    }
done:
    return status;
}

hone_status inputs_repad_moe_gemm(const hone_moe_gemm *p, inputs *in, hone_error *error)
{
    return pad_rows(p, &pad_huge, in, error);
}

hone_status inputs_reroute(const hone_moe_gemm *p, const inputs *in, const routing *how,
                           uint64_t seed, inputs *out, hone_error *error)
{
    static const size_t own[] = {0, 1, 4};
    hone_status status = HONE_OK;
    inputs made = *in;

    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        const size_t at = own[i];
        made.image[at] = malloc(in->operand[at].bytes + 8);
        if (made.image[at] == NULL) {
            status = status_set(error, HONE_NO_MEMORY, NULL, 0, "inputs: other rows of experts");
            for (size_t rest = i + 1; rest < ARRAY_LEN(own); rest++) {
                made.image[own[rest]] = NULL;
            }
            goto done;
        }
        memset(made.image[at], VERIFY_POISON, in->operand[at].bytes);
    }
    TRY(fill_groups(p, INPUTS_NORMAL, how != NULL ? how : routing_balanced(), seed + 3,
                    made.image[4], error));
    TRY(fill_matrix(p, true, INPUTS_NORMAL, seed, &made, error));
    TRY(pad_rows(p, &pad_nan, &made, error));
    *out = made;
    made = (inputs){0};
done:
    inputs_free_rerouted(&made);
    return status;
}

void inputs_free_rerouted(inputs *rerouted)
{
    if (rerouted != NULL && rerouted->len > 0) {
        free(rerouted->image[0]);
        free(rerouted->image[1]);
        free(rerouted->image[4]);
        memset(rerouted, 0, sizeof *rerouted);
    }
}
