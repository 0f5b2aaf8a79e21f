/* verify_moe.c - D of a grouped product: rows that have an expert against float64, the others
 * untouched, sampled CTAs by the tiles of every expert. */
#include "bench/verify_moe_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 4, D = 5 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

uint64_t verify_moe_index(const verify_moe *g, int64_t batch, int64_t row, int64_t column)
{
    return (uint64_t)((batch * g->p->m + row) * g->columns + column);
}

/* Rows count from the run's first. */
typedef struct run_view {
    const verify_moe *g;
    const segments_run *run;
} run_view;

static bool element_written(const void *context, int64_t batch, int64_t row, int64_t column,
                            int64_t columns)
{
    const run_view *v = context;

    (void)batch;
    return verify_product_changed(
        &v->g->d, verify_moe_index(v->g, v->run->batch, v->run->row + row, column), columns);
}

static hone_status compare_tile(verify_moe *g, const segments_run *run, const reference_rect *tile,
                                verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;

    if (g->p->activation != HONE_ACTIVATION_PLAIN) {
        return verify_moe_gated(g, run, tile, out, error);
    }
    TRY(reference_moe_gemm(g->p, g->request->before, run, tile, g->request->threads, g->tile[0],
                           g->tile[1], error));
    for (int64_t i = 0; i < tile->rows * tile->columns; i++) {
        const int64_t at[3] = {tile->batch, tile->row + i / tile->columns,
                               tile->column + i % tile->columns};
        verify_product_element(&g->d, at, verify_moe_index(g, at[0], at[1], at[2]), g->tile[0][i],
                               g->tile[1][i], g->d.unit * g->tile[1][i], out);
    }
done:
    return status;
}

/* `rect` counts rows from the run's first. */
static hone_status compare_rect(verify_moe *g, const segments_run *run, const reference_rect *rect,
                                verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;

    for (int64_t row = 0; row < rect->rows && out->passed; row += REFERENCE_TILE) {
        for (int64_t column = 0; column < rect->columns; column += REFERENCE_TILE) {
            const reference_rect tile = {
                run->batch, run->row + rect->row + row, least(rect->rows - row, REFERENCE_TILE),
                rect->column + column, least(rect->columns - column, REFERENCE_TILE)};
            TRY(compare_tile(g, run, &tile, out, error));
        }
    }
done:
    return status;
}

/* What the sampled CTAs wrote of a run: whole tiles, whose number `*tiles` grows by. */
static hone_status compare_sampled(verify_moe *g, const segments_run *run, uint64_t *tiles,
                                   verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const reference_rect whole = {0, 0, run->rows, 0, g->columns};
    const run_view view = {g, run};
    verify_cover cover = {0};
    uint64_t made = 0;

    TRY(verify_cover_find(&whole, 1, element_written, &view, &cover, error));
    if (!verify_cover_tiles(&cover, &whole, &g->request->cover, &made)) {
        verify_fail(out,
                    "what sampled CTAs wrote of expert %" PRId64 "'s rows from %" PRId64
                    " on is no whole tiles: some of it was left untouched or written by the "
                    "wrong CTA",
                    run->expert, run->row);
    }
    *tiles += made;
    for (size_t i = 0; i < cover.len && out->passed; i++) {
        TRY(compare_rect(g, run, &cover.rect[i], out, error));
    }
done:
    verify_cover_free(&cover);
    return status;
}

static hone_status compare_runs(verify_moe *g, verify_result *out, hone_error *error)
{
    const verify_request *r = g->request;
    const bool sampled = r->ctas_run < r->ctas_total;
    hone_status status = HONE_OK;
    uint64_t tiles = 0;

    for (size_t i = 0; i < g->runs.len && out->passed; i++) {
        const segments_run *run = &g->runs.run[i];
        const reference_rect whole = {0, 0, run->rows, 0, g->columns};
        if (sampled) {
            TRY(compare_sampled(g, run, &tiles, out, error));
        } else {
            TRY(compare_rect(g, run, &whole, out, error));
        }
    }
    if (sampled && out->passed && tiles != r->tiles_run) {
        verify_fail(out,
                    "%" PRIu64 " of %" PRIu64 " CTAs ran, which make %" PRIu64
                    " tiles, but they wrote %" PRIu64,
                    r->ctas_run, r->ctas_total, r->tiles_run, tiles);
    }
done:
    return status;
}

/* Whether there are products at all. */
static bool has_products(const verify_moe *g)
{
    for (size_t i = 0; i < g->runs.len; i++) {
        if (g->runs.run[i].k > 0) {
            return true;
        }
    }
    return false;
}

static bool is_zero(const uint8_t *bytes, uint64_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

/* A row that no expert has. */
static void compare_nobody(const verify_moe *g, int64_t batch, int64_t row, verify_result *out)
{
    const uint64_t index = verify_moe_index(g, batch, row, 0);
    const bool whole = g->request->ctas_run == g->request->ctas_total;
    const bool changed = verify_product_changed(&g->d, index, g->columns);
    const bool zero = is_zero(g->d.after + index * g->d.width, (uint64_t)g->columns * g->d.width);

    if (g->p->fill ? !zero && (whole || changed) : changed) {
        verify_fail(out, "d[%" PRId64 ",%" PRId64 "] is no expert's row and %s", batch, row,
                    g->p->fill ? "was not filled with zeros" : "was written");
    }
    if (g->p->out == HONE_DTYPE_E4M3) {
        verify_moe_scales_kept(g, batch, row, out);
    }
}

static void compare_rest(const verify_moe *g, verify_result *out)
{
    const int64_t rows = g->p->m * segments_matrices(g->p);
    size_t next = 0;

    for (int64_t row = 0; row < rows && out->passed; row++) {
        const segments_run *run = NULL;
        for (; next < g->runs.len; next++) {
            run = &g->runs.run[next];
            if (row < run->batch * g->p->m + run->row + run->rows) {
                break;
            }
        }
        if (next == g->runs.len || row < run->batch * g->p->m + run->row) {
            compare_nobody(g, row / g->p->m, row % g->p->m, out);
        }
    }
}

hone_status verify_moe_gemm(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_moe_gemm *p = &r->problem->as.moe_gemm;
    verify_moe *g = calloc(1, sizeof *g);

    if (g == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "verify: tiles of references");
    }
    g->p = p;
    g->request = r;
    g->columns = segments_columns(p);
    g->d = verify_product_of(r, D, p->out, p->accumulate != 0);
    if (r->ctas_run < r->ctas_total && r->cover.rows == 0) {
        status = status_set(error, HONE_UNSUPPORTED, NULL, 0,
                            "verify: sampled CTAs of moe_gemm need a manifest's cover");
        goto done;
    }
    TRY(segments_find(p, r->before->image[GROUPS], &g->runs, error));
    compare_rest(g, out);
    TRY(compare_runs(g, out, error));
    if (r->must_tell && g->d.telling == 0 && has_products(g)) {
        verify_fail(out, "the inputs leave nothing to compare: every product is 0");
    }
    verify_product_finish(&g->d, out);
done:
    segments_free(&g->runs);
    free(g);
    return status;
}
