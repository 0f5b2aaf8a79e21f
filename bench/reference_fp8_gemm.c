/* reference_fp8_gemm.c - a rectangle of D in float64: where the factors of a batch lie, and what D
 * was. */
#include "bench/reference_product.h"

#include "core/integer.h"
#include "core/numfmt.h"

#include <math.h>

static hone_status factor_of(const hone_fp8_gemm *p, const inputs *in, bool is_a, int64_t batch,
                             reference_factor *out, hone_error *error)
{
    hone_status status = HONE_OK;
    bool inner = is_a && p->batch_layout == HONE_BATCH_INNER;
    int64_t rows = is_a ? p->m : p->n, groups = 0, row_bytes = 0;
    uint64_t matrix = 0;
    reference_factor f = {.quant = is_a ? p->recipe.a : p->recipe.b,
                          .layout =
                              (hone_scale_layout)(is_a ? p->a_scale_layout : p->b_scale_layout)};

    groups = integer_ceil_div(p->k, f.quant.gran_k);
    f.scale_rows = integer_ceil_div(rows, f.quant.gran_mn);
    f.scale_groups = inner ? p->batch * groups : groups;
    f.group_first = inner ? batch * groups : 0;
    row_bytes = p->k * numfmt_dtype_bits((hone_dtype)f.quant.element) / 8;
    f.row_stride = inner ? p->batch * row_bytes : row_bytes;
    TRY(problem_scale_bytes(f.scale_rows, f.scale_groups, (hone_dtype)f.quant.scale, f.layout,
                            &matrix, error));
    f.payload = in->image[is_a ? 0 : 2] + batch * (inner ? row_bytes : rows * row_bytes);
    f.scales = in->image[is_a ? 1 : 3] + (inner ? 0 : (uint64_t)batch * matrix);
    *out = f;
done:
    return status;
}

static void add_before(const hone_fp8_gemm *p, const inputs *in, const reference_rect *rect,
                       double *value, double *magnitude)
{
    for (int64_t i = 0; i < rect->rows * rect->columns; i++) {
        int64_t row = rect->row + i / rect->columns, column = rect->column + i % rect->columns;
        int64_t at = p->batch_layout == HONE_BATCH_INNER
                         ? (row * p->batch + rect->batch) * p->n + column
                         : (rect->batch * p->m + row) * p->n + column;
        double before = (double)numfmt_decode((hone_dtype)p->out, in->image[4], (uint64_t)at);
        value[i] += before;
        magnitude[i] += fabs(before);
    }
}

hone_status reference_fp8_gemm(const hone_fp8_gemm *p, const inputs *in, const reference_rect *rect,
                               int threads, double *value, double *magnitude, hone_error *error)
{
    hone_status status = HONE_OK;
    reference_factor a = {0}, b = {0};

    if (rect->row + rect->rows > p->m || rect->column + rect->columns > p->n ||
        rect->batch >= p->batch) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "reference: a rectangle past D");
    }
    TRY(factor_of(p, in, true, rect->batch, &a, error));
    TRY(factor_of(p, in, false, rect->batch, &b, error));
    TRY(reference_product(&a, &b, p->k, rect, threads, value, magnitude, error));
    if (p->accumulate) {
        add_before(p, in, rect, value, magnitude);
    }
done:
    return status;
}
