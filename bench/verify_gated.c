/* verify_gated.c - quantised silu(gate) * up. exp is not rounded correctly on any chip, so that the
 * exact value and its bound give an interval, and codes and scale must be those of values in it. */
#include "bench/verify_quant_parts.h"

#include "core/numfmt.h"

#include <inttypes.h>
#include <math.h>

static verify_interval group_of(const quant_view *v, const quant_block *b)
{
    const hone_act_quant *p = &v->request->problem->as.act_quant;
    verify_interval g;

    reference_act_values(p, v->request->before, b->matrix * v->rows + b->row, b->group, g.value,
                         g.bound);
    verify_interval_close(&g, p->group);
    return g;
}

void verify_interval_close(verify_interval *g, int32_t len)
{
    g->amax_low = g->amax_high = 0;
    for (int32_t i = 0; i < len; i++) {
        double magnitude = fabs(g->value[i]);
        if (isfinite(magnitude)) {
            g->amax_low = fmax(g->amax_low, magnitude - g->bound[i]);
            g->amax_high = fmax(g->amax_high, magnitude + g->bound[i]);
        }
    }
}

/* The rule is monotonous: a scale between those of the two ends is one of some amax between them.
 * A power of two between two neighbours is one of them. */
bool verify_interval_scale(const verify_interval *g, int32_t rule, float got)
{
    float low = numfmt_scale((float)g->amax_low, (hone_scale_rule)rule, HONE_DTYPE_E4M3);
    float high = numfmt_scale((float)g->amax_high, (hone_scale_rule)rule, HONE_DTYPE_E4M3);
    uint8_t code = 0;

    if (!verify_rule_is_raw(rule) && !numfmt_ue8m0_exact(got, &code)) {
        return false;
    }
    return got >= nextafterf(low, 0.0f) && got <= nextafterf(high, INFINITY);
}

/* Codes order as their magnitudes do. Where the interval holds 0 the sign may be either. */
bool verify_interval_code(uint8_t got, double value, double bound, float scale)
{
    double low = fabs(value) - bound, high = fabs(value) + bound;

    if (!isfinite(value)) {
        return got == 0x7f;
    }
    if (low > 0 && (got >> 7 != 0) != (value < 0)) {
        return false;
    }
    return (got & 0x7f) >= numfmt_e4m3_encode((float)(fmax(low, 0.0) / (double)scale)) &&
           (got & 0x7f) <= numfmt_e4m3_encode((float)(high / (double)scale));
}

void verify_gated(const quant_view *v, const quant_block *b, verify_result *out)
{
    const verify_interval g = group_of(v, b);
    const uint8_t *codes = quant_codes_got(v, b, 0);
    float scale = quant_scale_got(v, b);

    out->compared += (uint64_t)v->block_k;
    if (!verify_interval_scale(&g, v->rule, scale)) {
        verify_fail(out, "scale[%" PRId64 ",%" PRId64 "]: got %.9g, of an amax from %.9g to %.9g",
                    b->row, b->group, (double)scale, g.amax_low, g.amax_high);
    }
    for (int64_t i = 0; i < v->block_k && out->passed; i++) {
        if (!verify_interval_code(codes[i], g.value[i], g.bound[i], scale)) {
            verify_fail(out, "q[%" PRId64 ",%" PRId64 "]%s: got 0x%02x, of %.9g +- %.3g over %.9g",
                        b->matrix * v->rows + b->row, b->group * v->block_k + i,
                        codes[i] == VERIFY_POISON ? " was left untouched" : "", codes[i],
                        g.value[i], g.bound[i], (double)scale);
        }
    }
}
