/* verify_topk.c - chosen indices: every one of every row, in its place. */
#include "bench/verify_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct chosen {
    const hone_topk *p;
    const verify_request *request;
    int32_t *expected; /* of a row */
} chosen;

static int32_t at(const uint8_t *image, int64_t entry)
{
    int32_t x = 0;

    memcpy(&x, image + 4 * entry, sizeof x);
    return x;
}

static bool written(const void *context, int64_t batch, int64_t row, int64_t column,
                    int64_t columns)
{
    const chosen *c = context;
    const int64_t first = row * c->p->k + column;

    (void)batch;
    for (int64_t i = first; i < first + columns; i++) {
        if (at(c->request->after[4], i) != at(c->request->before->image[4], i)) {
            return true;
        }
    }
    return false;
}

/* What is wrong with an entry that is not what it must be. */
static const char *fault_of(const chosen *c, int64_t row, int64_t j, int32_t got)
{
    const int64_t k = c->p->k;

    if (got == at(c->request->before->image[4], row * k + j)) {
        return "was left untouched";
    }
    if (got == -1 || c->expected[j] == -1) {
        return "a row's rest must be -1, and nothing before it";
    }
    for (int64_t i = 0; i < k; i++) {
        if (c->expected[i] == got) {
            return "is in the wrong place, or stands twice";
        }
    }
    return "is not among the row's best";
}

static hone_status compare_row(const chosen *c, int64_t row, verify_result *out, hone_error *error)
{
    const hone_status status = reference_topk(c->p, c->request->before, row, c->expected, error);

    for (int64_t j = 0; j < c->p->k && status == HONE_OK && out->passed; j++) {
        const int32_t got = at(c->request->after[4], row * c->p->k + j);
        out->compared++;
        if (got != c->expected[j]) {
            verify_fail(
                out, "index[%" PRId64 ",%" PRId64 "]: got %" PRId32 ", expected %" PRId32 ": it %s",
                row, j, got, c->expected[j], fault_of(c, row, j, got));
        }
    }
    return status;
}

/* Sampled CTAs make whole rows, as many as ran. What they did not write stays as it was. */
static hone_status compare_sample(const chosen *c, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const verify_request *r = c->request;
    const reference_rect whole = {0, 0, c->p->rows, 0, c->p->k};
    verify_cover cover = {0};

    TRY(verify_cover_find(&whole, 1, written, c, &cover, error));
    if (!(r->cover.rows > 0
              ? verify_cover_is_made(&cover, &whole, &r->cover, r->tiles_run)
              : verify_cover_is_tiles(&cover, &whole, 1, r->ctas_run, r->ctas_total))) {
        verify_fail(out,
                    "%" PRIu64 " of %" PRIu64 " CTAs ran, and what they wrote in index is not as "
                    "many rows: some of it was left untouched or written by the wrong CTA",
                    r->ctas_run, r->ctas_total);
    }
    for (size_t i = 0; i < cover.len && out->passed; i++) {
        const reference_rect *at_rows = &cover.rect[i];
        for (int64_t row = 0; row < at_rows->rows && out->passed; row++) {
            TRY(compare_row(c, at_rows->row + row, out, error));
        }
    }
done:
    verify_cover_free(&cover);
    return status;
}

hone_status verify_topk(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_topk *p = &r->problem->as.topk;
    chosen c = {.p = p, .request = r, .expected = malloc((size_t)p->k * sizeof(int32_t))};

    if (c.expected == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "verify: a row of indices");
    }
    if (r->ctas_run < r->ctas_total) {
        TRY(compare_sample(&c, out, error));
    }
    for (int64_t row = 0; row < p->rows && r->ctas_run == r->ctas_total && out->passed; row++) {
        TRY(compare_row(&c, row, out, error));
    }
done:
    free(c.expected);
    return status;
}
