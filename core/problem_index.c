/* problem_index.c - the rules of the sparse-attention indexer's ops: what follows from other
 * fields, what goes together, operands. */
#include "core/problem_index.h"

#include "core/checked.h"
#include "core/numfmt.h"

#include <inttypes.h>

enum { READ = 1, WRITTEN = 2 };

static int64_t score_bytes(const hone_topk *p)
{
    return numfmt_dtype_bits((hone_dtype)p->in) / 8;
}

void problem_derive_topk(hone_topk *p)
{
    if (p->stride == 0) {
        p->stride = p->width;
    }
    if (p->align == 0) {
        const int64_t row = p->stride * score_bytes(p) | 16;
        p->align = (int32_t)(row & -row);
    }
}

static hone_status refuse(hone_error *error, const char *field, const char *rule)
{
    return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "%s: %s", field, rule);
}

static hone_status check_blocks(const hone_topk *p, hone_error *error)
{
    if (p->pick == HONE_PICK_EVERY) {
        return p->block == 1 ? HONE_OK
                             : refuse(error, "block", "only pick=blocked and listed have blocks");
    }
    if (p->block < 2 || p->block > 128 || (p->block & (p->block - 1)) != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "block=%d must be a power of two from 2 to 128", p->block);
    }
    if (p->pick == HONE_PICK_LISTED && p->width % p->block != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "width=%" PRId64 " must be a multiple of block=%d: blocks are listed "
                          "whole",
                          p->width, p->block);
    }
    return HONE_OK;
}

static hone_status check_align(const hone_topk *p, hone_error *error)
{
    const int64_t row = p->stride * score_bytes(p);

    if ((p->align & (p->align - 1)) != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "align=%d must be a power of two up to 16", p->align);
    }
    if (p->align < 4 && p->align < score_bytes(p)) {
        return refuse(error, "align", "scores lie at multiples of their elements at least");
    }
    return row % p->align == 0
               ? HONE_OK
               : status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                            "align=%d does not divide the %" PRId64
                            " bytes of a row of scores (stride); leave align out or lower it",
                            p->align, row);
}

hone_status problem_check_topk(const hone_topk *p, hone_error *error)
{
    hone_status status = HONE_OK;

    if (p->in != HONE_DTYPE_F32 && p->in != HONE_DTYPE_BF16) {
        return refuse(error, "in", "scores are f32 or bf16");
    }
    if (p->width > INT32_MAX || p->rows > INT32_MAX) {
        return refuse(error, "width", "rows and columns are numbered in 32 bits");
    }
    if (p->stride < p->width) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "stride=%" PRId64 " is less than the %" PRId64 " columns of a row; leave "
                          "stride out for rows side by side",
                          p->stride, p->width);
    }
    if (p->pin && p->pick != HONE_PICK_BLOCKED) {
        return refuse(error, "pin", "only pick=blocked has a last block");
    }
    TRY(check_blocks(p, error));
    TRY(check_align(p, error));
done:
    return status;
}

size_t problem_operands_topk(const hone_topk *p, hone_operand *out)
{
    const uint64_t rows = (uint64_t)p->rows;
    const bool starts = p->span == HONE_SPAN_BOTH || p->span == HONE_SPAN_COMPRESSED;
    const bool ends = p->span != HONE_SPAN_WHOLE, listed = p->pick == HONE_PICK_LISTED;

    out[0] = (hone_operand){"scores", p->in, READ,
                            product_u64(rows, (uint64_t)p->stride, (uint64_t)score_bytes(p))};
    out[1] = (hone_operand){"start", HONE_DTYPE_NONE, READ, starts ? product_u64(rows, 4, 1) : 0};
    out[2] = (hone_operand){"end", HONE_DTYPE_NONE, READ, ends ? product_u64(rows, 4, 1) : 0};
    out[3] = (hone_operand){"list", HONE_DTYPE_NONE, READ,
                            listed ? product_u64(rows, (uint64_t)(p->width / p->block), 4) : 0};
    out[4] =
        (hone_operand){"index", HONE_DTYPE_NONE, WRITTEN, product_u64(rows, (uint64_t)p->k, 4)};
    return 5;
}

double problem_bytes_topk(const hone_topk *p)
{
    const double bounds = p->span == HONE_SPAN_WHOLE ? 0 : p->span == HONE_SPAN_ENDS ? 4 : 8;
    const double list = p->pick == HONE_PICK_LISTED ? 4.0 * (double)p->width / p->block : 0;

    return (double)p->rows *
           ((double)p->width * (double)score_bytes(p) + bounds + list + 4.0 * p->k);
}
