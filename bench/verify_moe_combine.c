/* verify_moe_combine.c - sums of experts' rows: within what fp32 may be off from float64, and since
 * their order is fixed, the very bits of it. */
#include "bench/verify_parts.h"

#include "core/numfmt.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct combined {
    const hone_moe_combine *p;
    const verify_request *request;
    const uint8_t *after; /* y */
    uint64_t width;
    verify_sums sums;
} combined;

static bool written(const void *context, int64_t batch, int64_t row, int64_t column,
                    int64_t columns)
{
    const combined *c = context;
    const uint64_t at = (uint64_t)(row * c->p->n + column) * c->width;
    const uint8_t *now = c->request->written != NULL ? c->request->written : c->after;

    (void)batch;
    for (uint64_t i = at; i < at + (uint64_t)columns * c->width; i++) {
        const uint8_t then =
            c->request->written != NULL ? VERIFY_POISON : c->request->before->image[4][i];
        if (now[i] != then) {
            return true;
        }
    }
    return false;
}

/* Their bits as the dtype has them; every NaN is one. */
static uint32_t bits_of(int32_t dtype, float x)
{
    return x != x                     ? 0x7fffffffu
           : dtype == HONE_DTYPE_BF16 ? (uint32_t)numfmt_bf16_encode(x)
                                      : numfmt_bits(x);
}

static double ulp_at(int32_t dtype, double x)
{
    int exponent = 0;

    frexp(x, &exponent);
    exponent = x == 0.0 || exponent < -125 ? -125 : exponent;
    return ldexp(1.0, exponent - 1 - (dtype == HONE_DTYPE_BF16 ? 7 : 23));
}

static bool is_poison(const combined *c, uint64_t index)
{
    static const uint8_t poison[4] = {VERIFY_POISON, VERIFY_POISON, VERIFY_POISON, VERIFY_POISON};

    return memcmp(c->after + index * c->width, poison, c->width) == 0;
}

static void compare(combined *c, int64_t token, int64_t column, verify_result *out)
{
    const uint64_t index = (uint64_t)(token * c->p->n + column);
    const float got = numfmt_decode((hone_dtype)c->p->out, c->after, index);
    double value = 0, magnitude = 0;
    float steps = 0;

    reference_moe_combine(c->p, c->request->before, token, column, &value, &magnitude, &steps);
    out->compared++;
    const double error = fabs((double)got - value);
    const double bound =
        c->p->topk * 0x1p-23 * magnitude + ulp_at(c->p->out, value); /* a rounding a step */
    if (isfinite(value) && isfinite(got)) {
        verify_sums_add(&c->sums, (double)got, value);
        out->max_err = error > out->max_err ? error : out->max_err;
        out->max_err_ratio = fmax(out->max_err_ratio, error / bound);
    }
    if (is_poison(c, index) || bits_of(c->p->out, got) != bits_of(c->p->out, steps)) {
        verify_fail(out,
                    "y[%" PRId64 ",%" PRId64 "]%s: got %.9g, expected %.9g, in float64 %.9g, off "
                    "by %.3g with %.3g allowed, but none from the fixed order",
                    token, column, is_poison(c, index) ? " was left untouched" : "", (double)got,
                    (double)steps, value, error, bound);
    } else if (isfinite(value) && isfinite(steps) && error > bound) {
        verify_fail(out,
                    "y[%" PRId64 ",%" PRId64
                    "]: got %.9g, expected %.9g, off by %.3g with %.3g allowed",
                    token, column, (double)got, value, error, bound);
    }
}

/* What sampled CTAs own is what they wrote: whole tiles, as many as CTAs ran. What they did not
 * write stays as it was. */
static hone_status compare_sample(combined *c, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const verify_request *r = c->request;
    const reference_rect whole = {0, 0, c->p->tokens, 0, c->p->n};
    verify_cover cover = {0};

    TRY(verify_cover_find(&whole, 1, written, c, &cover, error));
    if (!verify_cover_is_tiles(&cover, &whole, 1, r->ctas_run, r->ctas_total)) {
        verify_fail(out,
                    "%" PRIu64 " of %" PRIu64
                    " CTAs ran, and what they wrote in y is not as many tiles: some of it was left "
                    "untouched or written by the wrong CTA",
                    r->ctas_run, r->ctas_total);
    }
    for (size_t i = 0; i < cover.len && out->passed; i++) {
        const reference_rect *at = &cover.rect[i];
        for (int64_t e = 0; e < at->rows * at->columns && out->passed; e++) {
            compare(c, at->row + e / at->columns, at->column + e % at->columns, out);
        }
    }
done:
    verify_cover_free(&cover);
    return status;
}

static void check_dropped(const combined *c, bool sampled, verify_result *out)
{
    const uint64_t all = reference_moe_combine_dropped(c->p, c->request->before);
    uint64_t before = 0, got = 0;

    memcpy(&before, c->request->before->image[3], sizeof before);
    memcpy(&got, c->request->after[3], sizeof got);
    if (sampled ? got < before || got > before + all : got != before + all) {
        verify_fail(out, "dropped: got %" PRIu64 ", expected %s%" PRIu64, got,
                    sampled ? "at most " : "", before + all);
    }
}

hone_status verify_moe_combine(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_moe_combine *p = &r->problem->as.moe_combine;
    const bool sampled = r->ctas_run < r->ctas_total;
    combined c = {.p = p,
                  .request = r,
                  .after = r->after[4],
                  .width = (uint64_t)numfmt_dtype_bits((hone_dtype)p->out) / 8};

    if (sampled) {
        TRY(compare_sample(&c, out, error));
    }
    for (int64_t i = 0; !sampled && i < p->tokens * p->n && out->passed; i++) {
        compare(&c, i / p->n, i % p->n, out);
    }
    verify_sums_finish(&c.sums, out);
    check_dropped(&c, sampled, out);
done:
    return status;
}
