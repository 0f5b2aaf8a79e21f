/* verify_gemm.c - D against float64: every element by its bound, and the tensor as a whole. */
#include "bench/verify_product.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct gemm {
    const hone_fp8_gemm *p;
    const verify_request *request;
    verify_product d;
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

    return verify_product_changed(&g->d, element_index(g->p, batch, row, column), columns);
}

static bool element_written(const void *context, int64_t batch, int64_t row, int64_t column,
                            int64_t columns)
{
    const gemm *g = context;
    const uint8_t *bytes = g->request->written;
    uint64_t at = element_index(g->p, batch, row, column) * g->d.width;

    if (bytes == NULL) {
        return element_changed(context, batch, row, column, columns);
    }
    for (uint64_t i = 0; i < (uint64_t)columns * g->d.width; i++) {
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

static hone_status compare_tile(gemm *g, const reference_rect *tile, double *value,
                                double *magnitude, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(reference_fp8_gemm(g->p, g->request->before, tile, g->request->threads, value, magnitude,
                           error));
    for (int64_t i = 0; i < tile->rows * tile->columns; i++) {
        const int64_t at[3] = {tile->batch, tile->row + i / tile->columns,
                               tile->column + i % tile->columns};
        verify_product_element(&g->d, at, element_index(g->p, at[0], at[1], at[2]), value[i],
                               magnitude[i], g->d.unit * magnitude[i], out);
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

hone_status verify_gemm(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_fp8_gemm *p = &r->problem->as.fp8_gemm;
    verify_cover cover = {0};
    gemm g = {.p = p, .request = r, .d = verify_product_of(r, 4, p->out, p->accumulate != 0)};

    TRY(rectangles(&g, &cover, out, error));
    for (size_t i = 0; i < cover.len && out->passed; i++) {
        TRY(compare_rect(&g, &cover.rect[i], out, error));
    }
    if (r->must_tell && g.d.telling == 0 && p->k > 0 && p->m > 0 && p->n > 0) {
        verify_fail(out, "the inputs leave nothing to compare: every product is 0");
    }
    verify_product_finish(&g.d, out);
done:
    verify_cover_free(&cover);
    return status;
}
