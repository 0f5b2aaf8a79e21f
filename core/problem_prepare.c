/* problem_prepare.c - the rules of index_prepare: what follows from other fields, what goes
 * together, operands, bytes. */
#include "core/problem_check.h"
#include "core/problem_index.h"

#include "core/checked.h"
#include "core/numfmt.h"
#include "core/problem.h"

/* Rows of an indexer are 128 elements, of which 64 may turn. */
enum { READ = 1, WRITTEN = 2, BOTH = 3, DIMS = 128, ROTATED = 64 };

void problem_derive_prepare(hone_index_prepare *p)
{
    problem_derive_pages(&p->record, p->page_size, &p->page_stride, &p->align);
}

hone_status problem_check_prepare(const hone_index_prepare *p, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(problem_check_pages(&p->record, p->page_size, p->page_stride, p->align, error));
    if (p->record.format != HONE_KV_INDEX_FP8_132 && p->record.format != HONE_KV_INDEX_FP4_68) {
        return problem_refuse(error, "record_format",
                              "an indexer's keys are index_132 or index_68");
    }
    if ((p->heads & (p->heads - 1)) != 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "heads=%d must be 8, 16, 32 or 64",
                          p->heads);
    }
    if (p->rope == HONE_ROPE_NONE && p->pairs != HONE_PAIRS_NEIGHBOURS) {
        return problem_refuse(error, "pairs", "only what is rotated has pairs: leave it out");
    }
    if (p->tokens > INT32_MAX / (p->heads + 1)) {
        return problem_refuse(error, "tokens", "rows of q and k are numbered in 32 bits");
    }
    if (p->align < 4) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "align=%d must be 4, 8 or 16",
                          p->align);
    }
done:
    return status;
}

size_t problem_operands_prepare(const hone_index_prepare *p, hone_operand *out)
{
    record_layout layout = {0};
    uint64_t cache = product_i64(p->pages - 1, p->page_stride, 1);

    record_layout_of(&p->record, p->page_size, &layout, NULL); /* checked before: cannot fail */
    cache = checked_add_u64(cache, (uint64_t)layout.page_bytes, &cache) ? cache : UINT64_MAX;
    const bool words = layout.element == HONE_DTYPE_E2M1, turns = p->rope != HONE_ROPE_NONE;
    out[0] = (hone_operand){"q", HONE_DTYPE_BF16, READ, product_i64(p->tokens, p->heads, 2 * DIMS)};
    out[1] = (hone_operand){"k", HONE_DTYPE_BF16, READ, product_i64(p->tokens, 2 * DIMS, 1)};
    out[2] = (hone_operand){"rotations", HONE_DTYPE_F32, READ,
                            turns ? product_i64(p->tokens, 4 * ROTATED, 1) : 0};
    out[3] = (hone_operand){"slots", HONE_DTYPE_NONE, READ, product_i64(p->tokens, 8, 1)};
    out[4] = (hone_operand){"weights", HONE_DTYPE_F32, BOTH, product_i64(p->tokens, p->heads, 4)};
    out[5] = (hone_operand){"codes", layout.element, WRITTEN,
                            product_i64(p->tokens, p->heads, layout.data_bytes)};
    out[6] = (hone_operand){"q_scale", HONE_DTYPE_UE8M0, WRITTEN,
                            words ? product_i64(p->tokens, p->heads, 4) : 0};
    out[7] = (hone_operand){"cache", HONE_DTYPE_NONE, BOTH, cache};
    out[8] = (hone_operand){"dropped", HONE_DTYPE_NONE, BOTH, sizeof(uint64_t)};
    out[9] = (hone_operand){"nonfinite", HONE_DTYPE_NONE, BOTH, sizeof(uint64_t)};
    return 10;
}

size_t problem_operands_index(const hone_problem *problem, hone_operand *out)
{
    switch (problem->op) {
    case HONE_OP_TOPK:
        return problem_operands_topk(&problem->as.topk, out);
    case HONE_OP_MQA_LOGITS:
        return problem_operands_mqa(&problem->as.mqa_logits, out);
    case HONE_OP_MQA_LOGITS_PAGED:
        return problem_operands_mqa_paged(&problem->as.mqa_logits_paged, out);
    default:
        return problem_operands_prepare(&problem->as.index_prepare, out);
    }
}

double problem_bytes_prepare(const hone_index_prepare *p)
{
    record_layout layout = {0};

    record_layout_of(&p->record, p->page_size, &layout, NULL);
    const double head =
        2 * DIMS + 8 + layout.data_bytes + (layout.element == HONE_DTYPE_E2M1 ? 4 : 0);
    const double key = 2 * DIMS + 8 + layout.token_bytes + (p->rope != HONE_ROPE_NONE ? 256 : 0);
    return (double)p->tokens * (p->heads * head + key);
}
