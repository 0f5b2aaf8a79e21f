/* verify_mxfp4.c - MXFP4 weights folded to e4m3: codes and scales byte for byte.
 *
 * Of a launch of which only some CTAs ran, a block is written in q and in q_scale, or in neither,
 * and what is written are whole tiles of blocks, as many as CTAs ran. */
#include "bench/verify_parts.h"

#include "core/integer.h"
#include "core/numfmt.h"

#include <inttypes.h>
#include <string.h>

enum { BLOCK_MOST = 128 * 128 };

typedef struct fold {
    const hone_mxfp4_fold *p;
    const verify_request *request;
    const uint8_t *q, *scales; /* after */
    int64_t rows, columns;     /* of blocks */
    uint64_t scale_bytes;      /* of one */
} fold;

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool scale_written(const void *context, int64_t batch, int64_t row, int64_t column,
                          int64_t columns)
{
    const fold *f = context;
    const uint64_t at = (uint64_t)((batch * f->rows + row) * f->columns + column) * f->scale_bytes;

    for (uint64_t i = at; i < at + (uint64_t)columns * f->scale_bytes; i += f->scale_bytes) {
        if (memcmp(f->scales + i, f->request->before->image[3] + i, f->scale_bytes) != 0) {
            return true;
        }
    }
    return false;
}

/* One row of a block in q. */
static uint64_t row_at(const fold *f, int64_t batch, int64_t row, int64_t column, int64_t r)
{
    return (uint64_t)((batch * f->p->n + row * f->p->block_rows + r) * f->p->k +
                      column * f->p->block_cols);
}

static void compare_scale(const fold *f, int64_t batch, int64_t row, int64_t column, uint8_t code,
                          verify_result *out)
{
    const uint8_t *got =
        f->scales + (uint64_t)((batch * f->rows + row) * f->columns + column) * f->scale_bytes;
    const float expected = numfmt_ue8m0_decode(code);
    const bool equal =
        f->scale_bytes == 1 ? *got == code : memcmp(got, &expected, sizeof expected) == 0;

    if (!equal) {
        verify_fail(out, "q_scale[%" PRId64 ",%" PRId64 ",%" PRId64 "]: got %.9g, expected %.9g",
                    batch, row, column, (double)numfmt_decode((hone_dtype)f->p->scale, got, 0),
                    (double)expected);
    }
}

static void compare_block(const fold *f, int64_t batch, int64_t row, int64_t column,
                          verify_result *out)
{
    const hone_mxfp4_fold *p = f->p;
    const int64_t rows = lesser(p->block_rows, p->n - row * p->block_rows);
    const int64_t cols = lesser(p->block_cols, p->k - column * p->block_cols);
    uint8_t expected[BLOCK_MOST];

    compare_scale(f, batch, row, column,
                  reference_mxfp4_fold(p, f->request->before, batch, row, column, expected), out);
    for (int64_t r = 0; r < rows && out->passed; r++) {
        const uint8_t *got = f->q + row_at(f, batch, row, column, r), *want = expected + r * cols;
        out->compared += (uint64_t)cols;
        for (int64_t c = 0; c < cols && out->passed; c++) {
            if (got[c] != want[c]) {
                verify_fail(
                    out, "q[%" PRId64 ",%" PRId64 ",%" PRId64 "]: got 0x%02x, expected 0x%02x",
                    batch, row * p->block_rows + r, column * p->block_cols + c, got[c], want[c]);
            }
        }
    }
}

static void compare_untouched(const fold *f, int64_t batch, int64_t row, int64_t column,
                              verify_result *out)
{
    const hone_mxfp4_fold *p = f->p;
    const int64_t rows = lesser(p->block_rows, p->n - row * p->block_rows);
    const int64_t cols = lesser(p->block_cols, p->k - column * p->block_cols);

    for (int64_t r = 0; r < rows && out->passed; r++) {
        const uint64_t at = row_at(f, batch, row, column, r);
        if (memcmp(f->q + at, f->request->before->image[2] + at, (size_t)cols) != 0) {
            verify_fail(out,
                        "block [%" PRId64 ",%" PRId64 ",%" PRId64
                        "]: q was written and its scale left untouched",
                        batch, row, column);
        }
    }
}

static hone_status check_tiles(const fold *f, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const verify_request *r = f->request;
    const reference_rect whole = {0, 0, f->rows, 0, f->columns};
    verify_cover cover = {0};

    TRY(verify_cover_find(&whole, f->p->batch, scale_written, f, &cover, error));
    if (!verify_cover_is_tiles(&cover, &whole, f->p->batch, r->ctas_run, r->ctas_total)) {
        verify_fail(out,
                    "%" PRIu64 " of %" PRIu64
                    " CTAs ran, and what they wrote of the scales is not as many tiles: some were "
                    "left untouched or written by the wrong CTA",
                    r->ctas_run, r->ctas_total);
    }
done:
    verify_cover_free(&cover);
    return status;
}

hone_status verify_mxfp4_fold(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_mxfp4_fold *p = &r->problem->as.mxfp4_fold;
    const fold f = {.p = p,
                    .request = r,
                    .q = r->after[2],
                    .scales = r->after[3],
                    .rows = integer_ceil_div(p->n, p->block_rows),
                    .columns = integer_ceil_div(p->k, p->block_cols),
                    .scale_bytes = (uint64_t)numfmt_dtype_bits((hone_dtype)p->scale) / 8};
    const bool sampled = r->ctas_run < r->ctas_total;

    if (sampled) {
        TRY(check_tiles(&f, out, error));
    }
    for (int64_t i = 0; i < p->batch * f.rows * f.columns && out->passed; i++) {
        const int64_t batch = i / (f.rows * f.columns), row = i / f.columns % f.rows;
        const int64_t column = i % f.columns;
        if (sampled && !scale_written(&f, batch, row, column, 1)) {
            compare_untouched(&f, batch, row, column, out);
        } else {
            compare_block(&f, batch, row, column, out);
        }
    }
done:
    return status;
}
