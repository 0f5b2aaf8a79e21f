/* problem_moe.c - the rules of the ops around a grouped product: what follows from other fields,
 * what goes together, operands. */
#include "core/problem_moe.h"

#include "core/checked.h"
#include "core/integer.h"
#include "core/numfmt.h"

#include <inttypes.h>

enum { READ = 1, WRITTEN = 2, BOTH = 3 };

#define MOST_ROWS (INT64_C(1) << 40)

int64_t problem_moe_rows(int64_t tokens, int64_t topk, int64_t experts, int64_t row_align,
                         int32_t group_layout)
{
    if (tokens <= 0 || row_align <= 0 || tokens > MOST_ROWS / 1024) {
        return tokens > 0 ? MOST_ROWS : 0;
    }
    if (group_layout == HONE_GROUPS_MASKED) {
        return integer_round_up(tokens, row_align);
    }
    /* Every expert that has a row may waste all but one of a unit. */
    const int64_t entries = tokens * topk, touched = experts < entries ? experts : entries;
    const int64_t rows = (entries + touched * (row_align - 1)) / row_align * row_align;
    return rows > row_align ? rows : row_align;
}

void problem_derive_moe_align(hone_moe_align *p)
{
    if (p->m == 0) {
        p->m = problem_moe_rows(p->tokens, p->topk, p->experts, p->row_align, p->group_layout);
    }
}

static int64_t row_bytes(int64_t n, int32_t dtype)
{
    return n * numfmt_dtype_bits((hone_dtype)dtype) / 8;
}

void problem_derive_moe_combine(hone_moe_combine *p)
{
    const int64_t rows = row_bytes(p->n, p->in) | row_bytes(p->n, p->out) | 16;

    if (p->m == 0 && p->topk > 0 && p->tokens > 0 && p->tokens <= MOST_ROWS / 1024) {
        p->m = p->tokens * p->topk;
    }
    if (p->align == 0) {
        p->align = (int32_t)(rows & -rows);
    }
}

static hone_status refuse(hone_error *error, const char *field, const char *rule)
{
    return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "%s: %s", field, rule);
}

hone_status problem_check_row_set(const hone_act_quant *p, hone_error *error)
{
    const bool gathered = p->row_set == HONE_ROWS_GATHERED;

    if (p->experts != 1 && p->row_set != HONE_ROWS_MASKED && !gathered) {
        return refuse(error, "experts", "1, but where row_set is masked or gathered");
    }
    if (!gathered && (p->tokens != 0 || p->topk != 0)) {
        return refuse(error, p->tokens != 0 ? "tokens" : "topk", "only row_set=gathered has any");
    }
    return gathered && (p->topk < 1 || p->tokens > INT32_MAX / p->topk)
               ? refuse(error, "topk", "at least 1, and tokens * topk below 2^31: int32 entries")
               : HONE_OK;
}

/* Rows and entries are numbered by int32. */
static hone_status check_count(const char *what, int64_t a, int64_t b, hone_error *error)
{
    uint64_t count = 0;

    if (!checked_mul_u64((uint64_t)a, (uint64_t)b, &count) || count > INT32_MAX) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "%s: %" PRId64 " times %" PRId64 " is not below 2^31", what, a, b);
    }
    return HONE_OK;
}

static hone_status check_align(int32_t align, int64_t unit, const char *what, hone_error *error)
{
    if ((align & (align - 1)) != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "align=%d must be a power of two up to 16", align);
    }
    if (unit % align != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "align=%d does not divide the %" PRId64 " bytes of %s; leave align out "
                          "or lower it",
                          align, unit, what);
    }
    return HONE_OK;
}

/* 0 stands for what is left out, so that it cannot be asked for. */
static hone_status check_rows(int64_t tokens, int64_t m, hone_error *error)
{
    return tokens > 0 && m == 0 ? refuse(error, "m", "tokens need rows; leave m out for enough")
                                : HONE_OK;
}

hone_status problem_check_moe_align(const hone_moe_align *p, hone_error *error)
{
    hone_status status = HONE_OK;
    const bool masked = p->group_layout == HONE_GROUPS_MASKED;

    if (p->ids == HONE_INDEX_I64 ? p->align < 8 : p->align < 4) {
        return refuse(error, "align", "operands lie at multiples of their elements at least");
    }
    TRY(check_align(p->align, 16, "an operand", error));
    TRY(check_count("tokens * topk", p->tokens, p->topk, error));
    TRY(check_rows(p->tokens, p->m, error));
    TRY(check_count(masked ? "experts * m" : "m", p->m, masked ? p->experts : 1, error));
done:
    return status;
}

hone_status problem_check_moe_combine(const hone_moe_combine *p, hone_error *error)
{
    hone_status status = HONE_OK;

    if (p->in != HONE_DTYPE_BF16 && p->in != HONE_DTYPE_F32) {
        return refuse(error, "in", "experts' outputs are bf16 or f32");
    }
    if (p->out != HONE_DTYPE_BF16 && p->out != HONE_DTYPE_F32) {
        return refuse(error, "out", "sums are written as bf16 or f32");
    }
    TRY(check_count("tokens * topk", p->tokens, p->topk, error));
    TRY(check_rows(p->tokens, p->m, error));
    TRY(check_count("m", p->m, 1, error));
    TRY(check_align(p->align, row_bytes(p->n, p->in), "a row of d (n)", error));
    TRY(check_align(p->align, row_bytes(p->n, p->out), "a row of y (n)", error));
done:
    return status;
}

size_t problem_operands_moe_align(const hone_moe_align *p, hone_operand *out)
{
    const uint64_t entries = product_u64((uint64_t)p->tokens, (uint64_t)p->topk, 1);
    const uint64_t experts = (uint64_t)p->experts, m = (uint64_t)p->m;
    const uint64_t rows = p->group_layout == HONE_GROUPS_MASKED ? product_u64(experts, m, 1) : m;
    const uint64_t groups = p->group_layout == HONE_GROUPS_CONTIGUOUS ? m : experts;

    out[0] = (hone_operand){"topk_ids", HONE_DTYPE_NONE, READ,
                            product_u64(entries, p->ids == HONE_INDEX_I64 ? 8 : 4, 1)};
    out[1] = (hone_operand){"groups", HONE_DTYPE_NONE, WRITTEN, product_u64(groups, 4, 1)};
    out[2] = (hone_operand){"source", HONE_DTYPE_NONE, WRITTEN, product_u64(rows, 4, 1)};
    out[3] = (hone_operand){"place", HONE_DTYPE_NONE, WRITTEN, product_u64(entries, 4, 1)};
    out[4] = (hone_operand){"counts", HONE_DTYPE_NONE, WRITTEN, product_u64(experts, 4, 1)};
    out[5] = (hone_operand){"dropped", HONE_DTYPE_NONE, BOTH, sizeof(uint64_t)};
    return 6;
}

size_t problem_operands_moe_combine(const hone_moe_combine *p, hone_operand *out)
{
    const uint64_t tokens = (uint64_t)p->tokens, n = (uint64_t)p->n;
    const uint64_t entries = product_u64(tokens, (uint64_t)p->topk, 1);
    const uint64_t in = (uint64_t)row_bytes(1, p->in), y = (uint64_t)row_bytes(1, p->out);

    out[0] = (hone_operand){"d", p->in, READ, product_u64((uint64_t)p->m, n, in)};
    out[1] = (hone_operand){"place", HONE_DTYPE_NONE, READ, product_u64(entries, 4, 1)};
    out[2] = (hone_operand){"weight", HONE_DTYPE_F32, READ, product_u64(entries, 4, 1)};
    out[3] = (hone_operand){"dropped", HONE_DTYPE_NONE, BOTH, sizeof(uint64_t)};
    out[4] = (hone_operand){"y", p->out, p->accumulate ? BOTH : WRITTEN, product_u64(tokens, n, y)};
    return 5;
}

double problem_bytes_moe_combine(const hone_moe_combine *p)
{
    const double entries = (double)p->tokens * p->topk, n = (double)p->n;
    const double rows = entries < (double)p->m ? entries : (double)p->m;

    return rows * n * (double)row_bytes(1, p->in) + 8 * entries +
           (double)p->tokens * n * (double)row_bytes(1, p->out) * (p->accumulate ? 2 : 1);
}
