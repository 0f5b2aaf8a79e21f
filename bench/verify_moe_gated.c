/* verify_moe_gated.c - D behind silu(gate) * up: what a product's error becomes there, and codes
 * and scales of values within it. */
#include "bench/verify_moe_parts.h"
#include "bench/verify_quant_parts.h"

#include "core/integer.h"
#include "core/numfmt.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { D_SCALE = 6 };
#define SILU_SLOPE 1.1 /* its greatest is 1.0998 */

/* An element's bound is what the unit may lose at worst; together elements are off by this share of
 * theirs at most, in the root of their mean square. */
#define CODES_SHARE 0x1p-7
/* So near a tie, in parts of the value, either code is right: values that are all one take one code
 * together. What V4 clamps has fp32's error; products may be off by what the other gates allow. */
#define TIE_MARGIN       0x1p-9
#define TIE_MARGIN_HELD  0x1p-12
#define ACTIVATION_LIMIT 10.0
#define ACTIVATION_MOST  100.0 /* of V4's: silu(10) * 10 and less */

/* What V4's limits leave of a sum that may be off by *off. */
static double within_limits(double sum, double *off, bool both_sides)
{
    const double size = both_sides ? fabs(sum) : sum, over = size - *off - ACTIVATION_LIMIT;

    if (over >= 0) {
        *off = 0;
    }
    return size <= ACTIVATION_LIMIT ? sum : copysign(ACTIVATION_LIMIT, sum);
}

/* Value and how far off it may be, of element i of the tile. */
static double value_of(const verify_moe *g, int64_t i, double *slack)
{
    const bool limited = g->p->activation == HONE_ACTIVATION_SILU_MUL_V4;
    double gate = g->tile[0][i], up = g->tile[2][i];
    double gate_off = g->d.unit * g->tile[1][i], up_off = g->d.unit * g->tile[3][i];
    double near = 0, far = 0;
    const double value = reference_gate(g->p->activation, gate, up, &near);

    if (limited) {
        gate = within_limits(gate, &gate_off, false);
        up = within_limits(up, &up_off, true);
    }
    const double silu = fabs(gate / (1.0 + exp(-gate)));
    /* what fp32 loses on the way is most at the far end of both intervals */
    reference_gate(g->p->activation, fabs(gate) + gate_off, fabs(up) + up_off, &far);
    *slack = SILU_SLOPE * gate_off * (fabs(up) + up_off) + silu * up_off + near + far;
    if (limited && isfinite(value)) {
        *slack = fmin(*slack, fabs(value) + ACTIVATION_MOST);
    }
    return value;
}

static uint64_t scale_place(const verify_moe *g, int64_t batch, int64_t row, int64_t group)
{
    const hone_moe_gemm *p = g->p;
    const int64_t groups = g->columns / p->out_group;
    uint64_t matrix = 0;

    problem_scale_bytes(p->m, groups, (hone_dtype)p->out_scale,
                        (hone_scale_layout)p->out_scale_layout, &matrix, NULL);
    return (uint64_t)batch * matrix + problem_scale_offset(p->m, groups, (hone_dtype)p->out_scale,
                                                           (hone_scale_layout)p->out_scale_layout,
                                                           row, group);
}

void verify_moe_scales_kept(const verify_moe *g, int64_t batch, int64_t row, verify_result *out)
{
    const uint64_t width = (uint64_t)numfmt_dtype_bits((hone_dtype)g->p->out_scale) / 8;

    for (int64_t group = 0; group < g->columns / g->p->out_group; group++) {
        const uint64_t at = scale_place(g, batch, row, group);
        if (memcmp(g->request->after[D_SCALE] + at, g->request->before->image[D_SCALE] + at,
                   width) != 0) {
            verify_fail(out,
                        "d_scale[%" PRId64 ",%" PRId64 ",%" PRId64
                        "] is of no expert's row and was written",
                        batch, row, group);
        }
    }
}

static float scale_got(const verify_moe *g, int64_t batch, int64_t row, int64_t group)
{
    const uint8_t *at = g->request->after[D_SCALE] + scale_place(g, batch, row, group);
    float scale = 0;

    if (g->p->out_scale == HONE_DTYPE_UE8M0) {
        return numfmt_ue8m0_decode(*at);
    }
    memcpy(&scale, at, sizeof scale);
    return scale;
}

/* What fills a packed row's last word is 1.0, as act_quant writes it. */
static void compare_padding(const verify_moe *g, const int64_t at[3], verify_result *out)
{
    const int64_t groups = g->columns / g->p->out_group;

    for (int64_t pad = groups; pad % 4 != 0; pad++) {
        const uint8_t *code = g->request->after[D_SCALE] + scale_place(g, at[0], at[1], pad);
        if (*code != 127) {
            verify_fail(out,
                        "d_scale[%" PRId64 ",%" PRId64 ",%" PRId64
                        "] fills the row's last word: got 0x%02x, not 1.0",
                        at[0], at[1], pad, *code);
        }
    }
}

/* Whether element i of the tile is V4's limits alone: no product tells. */
static bool is_held(const verify_moe *g, int64_t i)
{
    return g->p->activation == HONE_ACTIVATION_SILU_MUL_V4 && g->tile[0][i] >= ACTIVATION_LIMIT &&
           fabs(g->tile[2][i]) >= ACTIVATION_LIMIT;
}

/* The tensor as a whole is held to codes of the exact values, so that the format's own error, which
 * elements of one value share, is no part of it. Codes below the normal ones are left out: a step
 * there is as large as a value. Where a value is off by e it goes a step s of codes in e of s
 * cases, or e and a step at most: (e + s) e on average. */
static void add_code(verify_moe *g, bool held, uint8_t got, double value, double slack,
                     double scale)
{
    const double size = fabs(value) / scale, margin = held ? TIE_MARGIN_HELD : TIE_MARGIN;
    const uint8_t code = numfmt_e4m3_encode((float)(size * (1.0 - margin)));
    const verify_part of = held ? VERIFY_ONE_SIGN : VERIFY_CANCELS;

    if (isfinite(value) && size >= 0x1p-6 &&
        code == numfmt_e4m3_encode((float)(size * (1.0 + margin)))) {
        const double off = CODES_SHARE * slack, step = ldexp(scale, ilogb(size) - 3);
        verify_product_add(&g->d, of, (double)numfmt_e4m3_decode(got) * scale,
                           copysign((double)numfmt_e4m3_decode(code) * scale, value));
        g->d.allowed[of] += off * (off + step);
    }
}

/* One group of a row of the tile: `i` is its first element there, `at` in D. */
static void compare_group(verify_moe *g, int64_t i, const int64_t at[3], verify_result *out)
{
    const int64_t group = at[2] / g->p->out_group;
    const float scale = scale_got(g, at[0], at[1], group);
    const uint8_t *codes = g->d.after + verify_moe_index(g, at[0], at[1], at[2]);
    verify_interval values;

    for (int32_t c = 0; c < g->p->out_group; c++) {
        values.value[c] = value_of(g, i + c, &values.bound[c]);
    }
    verify_interval_close(&values, g->p->out_group);
    out->compared += (uint64_t)g->p->out_group;
    if (!verify_interval_scale(&values, g->p->out_rule, scale)) {
        verify_fail(out,
                    "d_scale[%" PRId64 ",%" PRId64 ",%" PRId64
                    "]: got %.9g, of an amax from %.9g to %.9g",
                    at[0], at[1], group, (double)scale, values.amax_low, values.amax_high);
    }
    if (g->p->out_scale_layout == HONE_SCALES_PACKED && group + 1 == g->columns / g->p->out_group) {
        compare_padding(g, at, out);
    }
    for (int32_t c = 0; c < g->p->out_group && out->passed; c++) {
        g->d.telling += values.value[c] != 0.0;
        add_code(g, is_held(g, i + c), codes[c], values.value[c], values.bound[c], (double)scale);
        if (!verify_interval_code(codes[c], values.value[c], values.bound[c], scale)) {
            verify_fail(
                out,
                "d[%" PRId64 ",%" PRId64 ",%" PRId64 "]%s: got 0x%02x, of %.9g +- %.3g over %.9g",
                at[0], at[1], at[2] + c, codes[c] == VERIFY_POISON ? " was left untouched" : "",
                codes[c], values.value[c], values.bound[c], (double)scale);
        }
    }
}

hone_status verify_moe_gated(verify_moe *g, const segments_run *run, const reference_rect *tile,
                             verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const bool quantised = g->p->out == HONE_DTYPE_E4M3;
    const int64_t step = quantised ? g->p->out_group : 1;
    reference_rect ups = *tile;

    ups.column += g->columns;
    TRY(reference_moe_gemm(g->p, g->request->before, run, tile, g->request->threads, g->tile[0],
                           g->tile[1], error));
    TRY(reference_moe_gemm(g->p, g->request->before, run, &ups, g->request->threads, g->tile[2],
                           g->tile[3], error));
    for (int64_t i = 0; i < tile->rows * tile->columns && out->passed; i += step) {
        const int64_t at[3] = {tile->batch, tile->row + i / tile->columns,
                               tile->column + i % tile->columns};
        double slack = 0;
        if (quantised) {
            compare_group(g, i, at, out);
        } else {
            const double value = value_of(g, i, &slack);
            verify_product_element(&g->d, at, verify_moe_index(g, at[0], at[1], at[2]), value,
                                   fabs(value), slack, out);
        }
    }
done:
    return status;
}
