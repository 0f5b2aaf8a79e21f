/* verify_gemm.c - D against float64: every element by its bound, and the tensor as a whole. */
#include "bench/verify_parts.h"

#include "core/numfmt.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Gates of kernels.md 0.3 on what was compared. */
#define CALC_DIFF_BF16 5e-6
#define CALC_DIFF_F32  1e-6

/* Elements whose products nearly all have one sign, where cut bits add up, and those whose products
 * cancel. The former are much larger and would hide what the latter lost, so both must pass the
 * gate; fewer than PART_LEAST can be unlucky, and so can more of which few outweigh the rest: right
 * rounding to bf16 alone gives an element up to 2^-17, which is above the gate. */
typedef enum part { PART_CANCELS, PART_ONE_SIGN, PARTS } part;
enum { PART_LEAST = 64 };

typedef struct gemm {
    const hone_fp8_gemm *p;
    const verify_request *request;
    const uint8_t *after;
    uint64_t width;   /* bytes of an element */
    double unit;      /* of the element bound */
    uint64_t telling; /* compared elements that a kernel which writes 0, or nothing, gets wrong */
    double gate;
    verify_sums sums[PARTS];
    uint64_t len[PARTS];
    double squares[PARTS], fourths[PARTS]; /* sums of powers of what is expected */
} gemm;

static uint64_t element_index(const hone_fp8_gemm *p, int64_t batch, int64_t row, int64_t column)
{
    if (p->batch_layout == HONE_BATCH_INNER) {
        return (uint64_t)((row * p->batch + batch) * p->n + column);
    }
    return (uint64_t)((batch * p->m + row) * p->n + column);
}

/* Elements that differ from what they were. */
static bool element_changed(const void *context, int64_t batch, int64_t row, int64_t column,
                            int64_t columns)
{
    const gemm *g = context;
    uint64_t at = element_index(g->p, batch, row, column) * g->width;

    return memcmp(g->after + at, g->request->before->image[4] + at, (uint64_t)columns * g->width) !=
           0;
}

static bool element_written(const void *context, int64_t batch, int64_t row, int64_t column,
                            int64_t columns)
{
    const gemm *g = context;
    const uint8_t *bytes = g->request->written;
    uint64_t at = element_index(g->p, batch, row, column) * g->width;

    if (bytes == NULL) {
        return element_changed(context, batch, row, column, columns);
    }
    for (uint64_t i = 0; i < (uint64_t)columns * g->width; i++) {
        if (bytes[at + i] != VERIFY_POISON) {
            return true;
        }
    }
    return false;
}

/* What changed must be among what the run on a poisoned D wrote. */
static void compare_untouched(const gemm *g, int64_t batch, int64_t row, verify_result *out)
{
    if (!element_changed(g, batch, row, 0, g->p->n)) {
        return;
    }
    for (int64_t column = 0; column < g->p->n && out->passed; column++) {
        if (element_changed(g, batch, row, column, 1) &&
            !element_written(g, batch, row, column, 1)) {
            verify_fail(out,
                        "d[%" PRId64 ",%" PRId64 ",%" PRId64
                        "] changed, which these CTAs did not write on a D of NaN",
                        batch, row, column);
        }
    }
}

/* One unit in the last place of the output dtype at x. */
static double output_ulp(int32_t dtype, double x)
{
    int fraction = dtype == HONE_DTYPE_BF16 ? 7 : 23, exponent = 0;

    frexp(x, &exponent); /* |x| in [2^(exponent-1), 2^exponent) */
    exponent = x == 0.0 || exponent < -125 ? -125 : exponent;
    return ldexp(1.0, exponent - 1 - fraction);
}

static void compare_element(gemm *g, const reference_rect *at, double expected, double magnitude,
                            verify_result *out)
{
    uint64_t index = element_index(g->p, at->batch, at->row, at->column);
    const uint8_t *bytes = g->after + index * g->width;
    double got = (double)numfmt_decode((hone_dtype)g->p->out, g->after, index),
           error = fabs(got - expected);
    double bound = g->request->tolerance * g->unit * magnitude + output_ulp(g->p->out, expected);
    static const uint8_t poison[4] = {VERIFY_POISON, VERIFY_POISON, VERIFY_POISON, VERIFY_POISON};

    double before = g->p->accumulate ? (double)numfmt_decode((hone_dtype)g->p->out,
                                                             g->request->before->image[4], index)
                                     : 0.0;

    out->compared++;
    g->telling += expected != before;
    if (!isfinite(got)) {
        verify_fail(out, "d[%" PRId64 ",%" PRId64 ",%" PRId64 "] %s, expected %.9g", at->batch,
                    at->row, at->column,
                    memcmp(bytes, poison, g->width) == 0 ? "was left untouched" : "is not finite",
                    expected);
        return;
    }
    const part of = fabs(expected) * 2 >= magnitude ? PART_ONE_SIGN : PART_CANCELS;
    verify_sums_add(&g->sums[of], got, expected);
    g->len[of]++;
    g->squares[of] += expected * expected;
    g->fourths[of] += expected * expected * expected * expected;
    out->max_err = error > out->max_err ? error : out->max_err;
    out->max_err_ratio = error / bound > out->max_err_ratio ? error / bound : out->max_err_ratio;
    if (error > bound) {
        verify_fail(out,
                    "d[%" PRId64 ",%" PRId64 ",%" PRId64
                    "]: got %.9g, expected %.9g, off by %.3g with %.3g allowed",
                    at->batch, at->row, at->column, got, expected, error, bound);
    }
}

static hone_status compare_tile(gemm *g, const reference_rect *tile, double *value,
                                double *magnitude, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(reference_fp8_gemm(g->p, g->request->before, tile, g->request->threads, value, magnitude,
                           error));
    for (int64_t i = 0; i < tile->rows * tile->columns; i++) {
        reference_rect at = {tile->batch, tile->row + i / tile->columns, 1,
                             tile->column + i % tile->columns, 1};
        compare_element(g, &at, value[i], magnitude[i], out);
    }
done:
    return status;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static hone_status compare_rect(gemm *g, const reference_rect *rect, verify_result *out,
                                hone_error *error)
{
    hone_status status = HONE_OK;
    double *value = malloc(2 * sizeof *value * REFERENCE_TILE * REFERENCE_TILE);

    if (value == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "verify: a tile of references");
    }
    for (int64_t row = 0; row < rect->rows; row += REFERENCE_TILE) {
        for (int64_t column = 0; column < rect->columns; column += REFERENCE_TILE) {
            reference_rect tile = {rect->batch, rect->row + row,
                                   least(rect->rows - row, REFERENCE_TILE), rect->column + column,
                                   least(rect->columns - column, REFERENCE_TILE)};
            TRY(compare_tile(g, &tile, value, value + REFERENCE_TILE * REFERENCE_TILE, out, error));
        }
    }
done:
    free(value);
    return status;
}

/* What is compared: all of it, or what the sampled CTAs wrote. */
static bool is_whole_tiles(const verify_request *r, const verify_cover *cover,
                           const reference_rect *whole)
{
    if (r->cover.rows > 0) {
        return verify_cover_is_made(cover, whole, &r->cover, r->tiles_run);
    }
    return verify_cover_is_tiles(cover, whole, r->problem->as.fp8_gemm.batch, r->ctas_run,
                                 r->ctas_total);
}

static hone_status rectangles(const gemm *g, verify_cover *cover, verify_result *out,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    reference_rect whole = {0, 0, g->p->m, 0, g->p->n};

    if (g->request->ctas_run < g->request->ctas_total) {
        TRY(verify_cover_find(&whole, g->p->batch, element_written, g, cover, error));
        if (!is_whole_tiles(g->request, cover, &whole)) {
            verify_fail(out,
                        "%" PRIu64 " of %" PRIu64
                        " CTAs ran, and what they wrote in d is not as many tiles: "
                        "some of it was left untouched or written by the wrong CTA",
                        g->request->ctas_run, g->request->ctas_total);
        }
        for (int64_t i = 0; i < g->p->batch * g->p->m && g->request->written != NULL; i++) {
            compare_untouched(g, i / g->p->m, i % g->p->m, out);
        }
        return HONE_OK;
    }
    cover->rect = calloc((size_t)g->p->batch, sizeof *cover->rect);
    if (cover->rect == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "verify: rectangles");
    }
    cover->len = (size_t)g->p->batch;
    for (size_t i = 0; i < cover->len; i++) {
        cover->rect[i] = whole;
        cover->rect[i].batch = (int64_t)i;
    }
done:
    return status;
}

/* How many elements of one size would be as likely to be unlucky together. */
static double telling_len(const gemm *g, part of)
{
    return g->fourths[of] > 0 ? g->squares[of] * g->squares[of] / g->fourths[of]
                              : (double)g->len[of];
}

static void check_gate(const gemm *g, verify_result *out)
{
    static const char *const name[PARTS] = {"whose products cancel",
                                            "whose products have one sign"};
    const verify_sums all = verify_sums_join(&g->sums[PART_CANCELS], &g->sums[PART_ONE_SIGN]);

    verify_sums_finish(&all, out);
    for (int i = 0; i < PARTS; i++) {
        verify_result one = {.passed = true};
        verify_sums_finish(&g->sums[i], &one);
        if (telling_len(g, (part)i) >= PART_LEAST && one.calc_diff > g->gate) {
            verify_fail(out,
                        "1 - 2xy/(x^2+y^2) is %.3g over the %" PRIu64
                        " elements of d %s; at most %.0e is allowed",
                        one.calc_diff, g->len[i], name[i], g->gate);
        }
    }
    if (out->calc_diff > g->gate) {
        verify_fail(out,
                    "1 - 2xy/(x^2+y^2) is %.3g over %" PRIu64
                    " elements of d; at most %.0e is allowed",
                    out->calc_diff, out->compared, g->gate);
    }
}

hone_status verify_gemm(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_fp8_gemm *p = &r->problem->as.fp8_gemm;
    verify_cover cover = {0};
    gemm g = {.p = p,
              .request = r,
              .after = r->after[4],
              .width = (uint64_t)numfmt_dtype_bits((hone_dtype)p->out) / 8,
              .unit = r->wide ? 0x1p-23 : 0x1p-13,
              .gate = p->out == HONE_DTYPE_F32 ? CALC_DIFF_F32 : CALC_DIFF_BF16};

    TRY(rectangles(&g, &cover, out, error));
    for (size_t i = 0; i < cover.len && out->passed; i++) {
        TRY(compare_rect(&g, &cover.rect[i], out, error));
    }
    if (r->must_tell && g.telling == 0 && p->k > 0 && p->m > 0 && p->n > 0) {
        verify_fail(out, "the inputs leave nothing to compare: every product is 0");
    }
    check_gate(&g, out);
done:
    verify_cover_free(&cover);
    return status;
}
