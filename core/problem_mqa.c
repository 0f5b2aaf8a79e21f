/* problem_mqa.c - the rules of the indexer's scores, of keys side by side and in pages: what
 * follows from other fields, what goes together, operands, work. */
#include "core/problem_index.h"

#include "core/checked.h"
#include "core/integer.h"
#include "core/numfmt.h"
#include "core/problem.h"

#include <inttypes.h>

enum { READ = 1, WRITTEN = 2, MOST_ALIGN = 16 };

hone_status problem_check_index(const hone_problem *problem, hone_error *error)
{
    switch (problem->op) {
    case HONE_OP_MQA_LOGITS:
        return problem_check_mqa(&problem->as.mqa_logits, error);
    case HONE_OP_MQA_LOGITS_PAGED:
        return problem_check_mqa_paged(&problem->as.mqa_logits_paged, error);
    case HONE_OP_INDEX_PREPARE:
        return problem_check_prepare(&problem->as.index_prepare, error);
    default:
        return problem_check_topk(&problem->as.topk, error);
    }
}

void problem_derive_mqa(hone_mqa_logits *p)
{
    p->width = p->width == 0 ? p->keys : p->width;
    p->stride = p->stride == 0 ? p->width : p->stride;
    p->align = p->align == 0 ? MOST_ALIGN : p->align; /* a row of q or k is 32 bytes at least */
}

void problem_derive_mqa_paged(hone_mqa_logits_paged *p)
{
    p->stride = p->stride == 0 ? p->width : p->stride;
    if (p->table_stride == 0 && p->page_size > 0) {
        p->table_stride = integer_ceil_div(p->width, p->page_size);
    }
    problem_derive_pages(&p->record, p->page_size, &p->page_stride, &p->align);
}

static hone_status refuse(hone_error *error, const char *field, const char *rule)
{
    return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "%s: %s", field, rule);
}

/* What both ops ask of heads and of a row of logits. */
static hone_status check_logits(int32_t heads, int32_t out, int64_t width, int64_t stride,
                                hone_error *error)
{
    if ((heads & (heads - 1)) != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "heads=%d must be 8, 16, 32 or 64",
                          heads);
    }
    if (out != HONE_DTYPE_F32 && out != HONE_DTYPE_BF16) {
        return refuse(error, "out", "logits are f32 or bf16");
    }
    if (width > INT32_MAX) {
        return refuse(error, "width", "columns are numbered in 32 bits");
    }
    return stride >= width ? HONE_OK
                           : status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                                        "stride=%" PRId64 " is less than the %" PRId64
                                        " columns of a row; leave stride out for rows side by side",
                                        stride, width);
}

hone_status problem_check_mqa(const hone_mqa_logits *p, hone_error *error)
{
    hone_status status = HONE_OK;

    if (p->element != HONE_DTYPE_E4M3 && p->element != HONE_DTYPE_E2M1) {
        return refuse(error, "element", "q and k are e4m3 or e2m1");
    }
    if ((p->dims & (p->dims - 1)) != 0 || (p->dims == 32 && p->element == HONE_DTYPE_E2M1)) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "dims=%d must be 32, 64 or 128, of e2m1 64 or 128", p->dims);
    }
    if (p->span != HONE_SPAN_BOTH && p->span != HONE_SPAN_COMPRESSED) {
        return refuse(error, "span", "a query token has a start and an end: both or compressed");
    }
    if (p->tokens > INT32_MAX || p->keys > INT32_MAX) {
        return refuse(error, "tokens", "query tokens and keys are numbered in 32 bits");
    }
    if (p->span == HONE_SPAN_BOTH && p->width != p->keys) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "width=%" PRId64 ": with span=both a key is its column, so width is "
                          "keys=%" PRId64 "; leave it out",
                          p->width, p->keys);
    }
    if ((p->align & (p->align - 1)) != 0 || p->align < 4) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "align=%d must be 4, 8 or 16",
                          p->align);
    }
    TRY(check_logits(p->heads, p->out, p->width, p->stride, error));
done:
    return status;
}

hone_status problem_check_mqa_paged(const hone_mqa_logits_paged *p, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(problem_check_pages(&p->record, p->page_size, p->page_stride, p->align, error));
    if (p->record.format != HONE_KV_INDEX_FP8_132 && p->record.format != HONE_KV_INDEX_FP4_68) {
        return refuse(error, "record_format", "an indexer's keys are index_132 or index_68");
    }
    if (p->align < 4) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "align=%d must be 4, 8 or 16",
                          p->align);
    }
    if (p->batch > INT32_MAX / p->next_n || p->pages > INT32_MAX) {
        return refuse(error, "batch", "query tokens and pages are numbered in 32 bits");
    }
    if (p->table_stride < integer_ceil_div(p->width, p->page_size)) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "table_stride=%" PRId64 " is less than the %" PRId64 " pages of a row of "
                          "%" PRId64 " columns; leave it out for tables side by side",
                          p->table_stride, integer_ceil_div(p->width, p->page_size), p->width);
    }
    TRY(check_logits(p->heads, p->out, p->width, p->stride, error));
done:
    return status;
}

static int64_t bytes_of(int32_t dtype, int64_t elements)
{
    return elements * numfmt_dtype_bits((hone_dtype)dtype) / 8;
}

size_t problem_operands_mqa(const hone_mqa_logits *p, hone_operand *out)
{
    const bool words = p->element == HONE_DTYPE_E2M1;
    const int64_t row = bytes_of(p->element, p->dims);

    out[0] = (hone_operand){"q", p->element, READ, product_i64(p->tokens, p->heads, row)};
    out[1] = (hone_operand){"q_scale", HONE_DTYPE_UE8M0, READ,
                            words ? product_i64(p->tokens, p->heads, 4) : 0};
    out[2] = (hone_operand){"k", p->element, READ, product_i64(p->keys, row, 1)};
    out[3] = (hone_operand){"k_scale", words ? HONE_DTYPE_UE8M0 : HONE_DTYPE_F32, READ,
                            product_i64(p->keys, 4, 1)};
    out[4] = (hone_operand){"weights", HONE_DTYPE_F32, READ, product_i64(p->tokens, p->heads, 4)};
    out[5] = (hone_operand){"start", HONE_DTYPE_NONE, READ, product_i64(p->tokens, 4, 1)};
    out[6] = (hone_operand){"end", HONE_DTYPE_NONE, READ, product_i64(p->tokens, 4, 1)};
    out[7] = (hone_operand){"logits", p->out, WRITTEN,
                            product_i64(p->tokens, p->stride, bytes_of(p->out, 1))};
    return 8;
}

size_t problem_operands_mqa_paged(const hone_mqa_logits_paged *p, hone_operand *out)
{
    record_layout layout = {0};
    const int64_t rows = p->batch * p->next_n; /* below 2^31 */
    uint64_t cache = product_i64(p->pages - 1, p->page_stride, 1);

    record_layout_of(&p->record, p->page_size, &layout, NULL); /* checked before: cannot fail */
    cache = checked_add_u64(cache, (uint64_t)layout.page_bytes, &cache) ? cache : UINT64_MAX;
    const bool words = layout.element == HONE_DTYPE_E2M1;
    out[0] =
        (hone_operand){"q", layout.element, READ, product_i64(rows, p->heads, layout.data_bytes)};
    out[1] = (hone_operand){"q_scale", HONE_DTYPE_UE8M0, READ,
                            words ? product_i64(rows, p->heads, 4) : 0};
    out[2] = (hone_operand){"cache", HONE_DTYPE_NONE, READ, cache};
    out[3] = (hone_operand){"weights", HONE_DTYPE_F32, READ, product_i64(rows, p->heads, 4)};
    out[4] = (hone_operand){"lengths", HONE_DTYPE_NONE, READ, product_i64(rows, 4, 1)};
    out[5] =
        (hone_operand){"table", HONE_DTYPE_NONE, READ, product_i64(p->batch, p->table_stride, 4)};
    out[6] = (hone_operand){"logits", p->out, WRITTEN,
                            product_i64(rows, p->stride, bytes_of(p->out, 1))};
    return 7;
}

/* Of a head of q: its codes, its weight, its word of scales. */
static double head_bytes(int32_t element, int32_t dims)
{
    return (double)bytes_of(element, dims) + (element == HONE_DTYPE_E2M1 ? 8 : 4);
}

/* Of a whole problem: every row has all keys, and every key is read once for a request (kernels.md
 * 3.4, bench.md). */
void problem_work_mqa(const hone_problem *problem, double *flop, double *bytes)
{
    const hone_mqa_logits *p = &problem->as.mqa_logits;
    const hone_mqa_logits_paged *d = &problem->as.mqa_logits_paged;
    record_layout layout;

    if (problem->op == HONE_OP_MQA_LOGITS) {
        const double tokens = (double)p->tokens, keys = (double)p->keys;
        *flop = 2 * tokens * keys * p->heads * p->dims;
        *bytes = keys * (double)(bytes_of(p->element, p->dims) + 4) +
                 tokens * (p->heads * head_bytes(p->element, p->dims) + 8 +
                           (double)p->width * (double)bytes_of(p->out, 1));
        return;
    }
    record_layout_of(&d->record, d->page_size, &layout, NULL);
    const double batch = (double)d->batch, rows = batch * d->next_n, keys = (double)d->width;
    *flop = 2 * rows * keys * d->heads * layout.quant_dims;
    *bytes = batch * keys * (layout.token_bytes + 4.0 / d->page_size) +
             rows * (d->heads * head_bytes(layout.element, layout.quant_dims) + 4 +
                     keys * (double)bytes_of(d->out, 1));
}
