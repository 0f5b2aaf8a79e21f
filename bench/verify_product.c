/* verify_product.c - elements of a product by their bounds, and the tensor as a whole. */
#include "bench/verify_product.h"

#include "core/numfmt.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Gates of kernels.md 0.3 on what was compared. */
#define CALC_DIFF_BF16 5e-6
#define CALC_DIFF_F32  1e-6
/* What right rounding alone gives a few unlucky ones: half of 2^-8 squared. */
#define ROUNDING_BF16 0x1p-17

enum { PART_LEAST = 64 };

verify_product verify_product_of(const verify_request *r, size_t operand, int32_t out,
                                 bool accumulate)
{
    return (verify_product){.name = r->before->operand[operand].name,
                            .out = (hone_dtype)out,
                            .width = (uint64_t)numfmt_dtype_bits((hone_dtype)out) / 8,
                            .before = r->before->image[operand],
                            .after = r->after[operand],
                            .accumulate = accumulate,
                            .unit = r->tolerance * (r->wide ? 0x1p-23 : 0x1p-13),
                            .gate = out == HONE_DTYPE_F32 ? CALC_DIFF_F32 : CALC_DIFF_BF16};
}

bool verify_product_changed(const verify_product *g, uint64_t index, int64_t columns)
{
    return memcmp(g->after + index * g->width, g->before + index * g->width,
                  (uint64_t)columns * g->width) != 0;
}

/* One unit in the last place of the output dtype at x. */
static double output_ulp(int32_t dtype, double x)
{
    int fraction = dtype == HONE_DTYPE_BF16 ? 7 : 23, exponent = 0;

    frexp(x, &exponent); /* |x| in [2^(exponent-1), 2^exponent) */
    exponent = x == 0.0 || exponent < -125 ? -125 : exponent;
    return ldexp(1.0, exponent - 1 - fraction);
}

static bool is_poison(const uint8_t *bytes, uint64_t width)
{
    static const uint8_t poison[4] = {VERIFY_POISON, VERIFY_POISON, VERIFY_POISON, VERIFY_POISON};

    return memcmp(bytes, poison, width) == 0;
}

void verify_product_add(verify_product *g, verify_part of, double got, double expected)
{
    const double error = (got - expected) * (got - expected);

    g->worst[of] = error > g->worst[of] ? error : g->worst[of];
    verify_sums_add(&g->sums[of], got, expected);
    g->len[of]++;
    g->squares[of] += expected * expected;
    g->fourths[of] += expected * expected * expected * expected;
}

void verify_product_element(verify_product *g, const int64_t at[3], uint64_t index, double expected,
                            double magnitude, double slack, verify_result *out)
{
    const double got = (double)numfmt_decode(g->out, g->after, index), error = fabs(got - expected);
    const double bound = slack + output_ulp((int32_t)g->out, expected);
    const double before = g->accumulate ? (double)numfmt_decode(g->out, g->before, index) : 0.0;

    out->compared++;
    g->telling += expected != before;
    if (!isfinite(got)) {
        verify_fail(out, "%s[%" PRId64 ",%" PRId64 ",%" PRId64 "] %s, expected %.9g", g->name,
                    at[0], at[1], at[2],
                    is_poison(g->after + index * g->width, g->width) ? "was left untouched"
                                                                     : "is not finite",
                    expected);
        return;
    }
    const verify_part of = fabs(expected) * 2 >= magnitude ? VERIFY_ONE_SIGN : VERIFY_CANCELS;
    verify_product_add(g, of, got, expected);
    out->max_err = error > out->max_err ? error : out->max_err;
    out->max_err_ratio = error / bound > out->max_err_ratio ? error / bound : out->max_err_ratio;
    if (error > bound) {
        verify_fail(out,
                    "%s[%" PRId64 ",%" PRId64 ",%" PRId64
                    "]: got %.9g, expected %.9g, off by %.3g with %.3g allowed",
                    g->name, at[0], at[1], at[2], got, expected, error, bound);
    }
}

/* How many elements of one size would be as likely to be unlucky together. */
static double telling_len(double squares, double fourths, uint64_t len)
{
    return fourths > 0 ? squares * squares / fourths : (double)len;
}

/* Of all elements; the format's own error may be added where they are few. */
static double gate_of_all(const verify_product *g)
{
    const double squares = g->squares[VERIFY_CANCELS] + g->squares[VERIFY_ONE_SIGN];
    const double fourths = g->fourths[VERIFY_CANCELS] + g->fourths[VERIFY_ONE_SIGN];
    const uint64_t len = g->len[VERIFY_CANCELS] + g->len[VERIFY_ONE_SIGN];
    const bool few = telling_len(squares, fourths, len) < PART_LEAST;

    return g->gate + (few && g->out == HONE_DTYPE_BF16 ? ROUNDING_BF16 : 0.0);
}

/* Codes go whole steps, so that one which tips may be much of a whole: that one is left to its own
 * bound, the others together are held to what their bounds make likely. */
static void finish_codes(const verify_product *g, verify_part of, verify_result *out)
{
    const double others = g->sums[of].error - g->worst[of];

    if (others > g->allowed[of]) {
        verify_fail(out,
                    "codes of %" PRIu64 " elements of %s are off by %.3g of their norm together, "
                    "without the one that is furthest off; at most %.3g is likely",
                    g->len[of], g->name, sqrt(others / g->squares[of]),
                    sqrt(g->allowed[of] / g->squares[of]));
    }
}

void verify_product_finish(const verify_product *g, verify_result *out)
{
    static const char *const name[VERIFY_PARTS] = {"whose products cancel",
                                                   "whose products have one sign"};
    const verify_sums all = verify_sums_join(&g->sums[VERIFY_CANCELS], &g->sums[VERIFY_ONE_SIGN]);

    verify_sums_finish(&all, out);
    for (int i = 0; g->out == HONE_DTYPE_E4M3 && i < VERIFY_PARTS; i++) {
        finish_codes(g, (verify_part)i, out);
    }
    for (int i = 0; g->out != HONE_DTYPE_E4M3 && i < VERIFY_PARTS; i++) {
        verify_result one = {.passed = true};
        verify_sums_finish(&g->sums[i], &one);
        if (telling_len(g->squares[i], g->fourths[i], g->len[i]) >= PART_LEAST &&
            one.calc_diff > g->gate) {
            verify_fail(out,
                        "1 - 2xy/(x^2+y^2) is %.3g over the %" PRIu64
                        " elements of %s %s; at most %.0e is allowed",
                        one.calc_diff, g->len[i], g->name, name[i], g->gate);
        }
    }
    const double gate = gate_of_all(g);
    if (g->out != HONE_DTYPE_E4M3 && out->calc_diff > gate) { /* few codes can be unlucky */
        verify_fail(out,
                    "1 - 2xy/(x^2+y^2) is %.3g over %" PRIu64
                    " elements of %s; at most %.2g is allowed",
                    out->calc_diff, out->compared, g->name, gate);
    }
}
