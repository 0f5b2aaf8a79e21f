/* reference_moe_gemm.c - a rectangle of one expert's product in float64. */
#include "bench/reference_product.h"

#include "core/integer.h"
#include "core/numfmt.h"

#include <math.h>

/* Matrix `index` of an operand whose matrices follow one another. */
static hone_status factor_of(const hone_moe_gemm *p, const inputs *in, bool is_a, int64_t index,
                             reference_factor *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const int64_t rows = is_a ? p->m : p->n;
    uint64_t matrix = 0;
    reference_factor f = {.quant = is_a ? p->recipe.a : p->recipe.b,
                          .layout =
                              (hone_scale_layout)(is_a ? p->a_scale_layout : p->b_scale_layout)};

    f.scale_rows = integer_ceil_div(rows, f.quant.gran_mn);
    f.scale_groups = integer_ceil_div(p->k, f.quant.gran_k);
    f.row_stride = p->k * numfmt_dtype_bits((hone_dtype)f.quant.element) / 8;
    TRY(problem_scale_bytes(f.scale_rows, f.scale_groups, (hone_dtype)f.quant.scale, f.layout,
                            &matrix, error));
    f.payload = in->image[is_a ? 0 : 2] + index * rows * f.row_stride;
    f.scales = in->image[is_a ? 1 : 3] + (uint64_t)index * matrix;
    *out = f;
done:
    return status;
}

/* In grouped_k an expert's rows are as long as its k, behind those of the experts before. */
static void narrow(const segments_run *s, int64_t rows, reference_factor *f)
{
    f->payload += rows * s->k_first;
    f->row_stride = s->k;
    f->group_first = s->k_first / f->quant.gran_k;
}

static void add_before(const hone_moe_gemm *p, const inputs *in, const reference_rect *rect,
                       double *value, double *magnitude)
{
    for (int64_t i = 0; i < rect->rows * rect->columns; i++) {
        const int64_t row = rect->row + i / rect->columns,
                      column = rect->column + i % rect->columns;
        const int64_t at = (rect->batch * p->m + row) * p->n + column;
        const double before = (double)numfmt_decode((hone_dtype)p->out, in->image[5], (uint64_t)at);
        value[i] += before;
        magnitude[i] += fabs(before);
    }
}

hone_status reference_moe_gemm(const hone_moe_gemm *p, const inputs *in, const segments_run *s,
                               const reference_rect *rect, int threads, double *value,
                               double *magnitude, hone_error *error)
{
    hone_status status = HONE_OK;
    const bool by_k = p->group_layout == HONE_GROUPS_K;
    reference_factor a = {0}, b = {0};

    if (rect->row < s->row || rect->row + rect->rows > s->row + s->rows ||
        rect->batch != s->batch || rect->column + rect->columns > p->n) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "reference: a rectangle past the rows of expert %lld",
                          (long long)s->expert);
    }
    TRY(factor_of(p, in, true, by_k ? 0 : s->batch, &a, error));
    TRY(factor_of(p, in, false, by_k ? 0 : s->expert, &b, error));
    if (by_k) {
        narrow(s, p->m, &a);
        narrow(s, p->n, &b);
    }
    TRY(reference_product(&a, &b, s->k, rect, threads, value, magnitude, error));
    if (p->accumulate) {
        add_before(p, in, rect, value, magnitude);
    }
done:
    return status;
}
