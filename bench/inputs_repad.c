/* inputs_repad.c - other bytes where nothing may be read for a result. */
#include "bench/inputs_parts.h"
#include "bench/verify.h"

#include "core/integer.h"
#include "core/numfmt.h"

#include <stdlib.h>
#include <string.h>

static int32_t row_entry(const inputs *in, int64_t at)
{
    int32_t value = 0;

    memcpy(&value, in->image[3] + 4 * at, sizeof value);
    return value;
}

/* Rows of x that something is made of, marked. */
static void mark_rows(const hone_act_quant *p, const inputs *in, uint8_t *used)
{
    for (int64_t row = 0; row < p->experts * p->m; row++) {
        if (p->row_set == HONE_ROWS_MASKED) {
            used[row] = row % p->m < row_entry(in, row / p->m);
        } else if (p->row_set == HONE_ROWS_LISTED) {
            used[row] = row_entry(in, row) >= 0;
        } else if (row_entry(in, row) >= 0 && row_entry(in, row) < p->tokens * p->topk) {
            used[row_entry(in, row) / p->topk] = 1;
        }
    }
}

static hone_status repad_act_quant(const hone_act_quant *p, inputs *in, hone_error *error)
{
    const int64_t rows = p->row_set == HONE_ROWS_GATHERED ? p->tokens : p->experts * p->m;
    const uint64_t bytes = rows > 0 ? in->operand[0].bytes / (uint64_t)rows : 0;
    uint8_t *used = calloc((size_t)rows + 1, 1);

    if (used == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "inputs: which rows are used");
    }
    mark_rows(p, in, used);
    for (int64_t row = 0; row < rows; row++) {
        if (!used[row]) {
            memset(in->image[0] + (uint64_t)row * bytes, VERIFY_POISON, bytes);
        }
    }
    free(used);
    return HONE_OK;
}

static bool has_padding(const hone_problem *problem)
{
    return problem->op == HONE_OP_MOE_GEMM || problem->op == HONE_OP_KV_QUANT ||
           problem->op == HONE_OP_KV_GATHER || problem->op == HONE_OP_INDEX_PREPARE ||
           (problem->op == HONE_OP_ACT_QUANT && problem->as.act_quant.row_set != HONE_ROWS_EVERY);
}

/* Images that are the padded inputs' own: the first two, where they are read. */
static bool is_own(const inputs *in, size_t i)
{
    return i < 2 && in->operand[i].access == 1;
}

hone_status inputs_repad(const hone_problem *problem, const inputs *in, inputs *out,
                         hone_error *error)
{
    hone_status status = HONE_OK;
    inputs made = {0};

    if (!has_padding(problem)) {
        *out = made;
        return HONE_OK;
    }
    made = *in;
    made.image[0] = made.image[1] = NULL;
    for (size_t i = 0; i < 2; i++) {
        if (!is_own(in, i)) {
            made.image[i] = in->image[i];
            continue;
        }
        made.image[i] = malloc(in->operand[i].bytes + 8);
        if (made.image[i] == NULL) {
            status = status_set(error, HONE_NO_MEMORY, NULL, 0, "inputs: other padding");
            goto done;
        }
        memcpy(made.image[i], in->image[i], in->operand[i].bytes);
    }
    switch (problem->op) {
    case HONE_OP_MOE_GEMM:
        TRY(inputs_repad_moe_gemm(&problem->as.moe_gemm, &made, error));
        break;
    case HONE_OP_ACT_QUANT:
        TRY(repad_act_quant(&problem->as.act_quant, &made, error));
        break;
    case HONE_OP_INDEX_PREPARE:
        inputs_repad_prepare(&problem->as.index_prepare, &made);
        break;
    case HONE_OP_KV_QUANT:
        TRY(inputs_repad_kv_quant(&problem->as.kv_quant, &made, error));
        break;
    default:
        TRY(inputs_repad_kv_gather(&problem->as.kv_gather, &made, error));
        break;
    }
    *out = made;
    made = (inputs){0};
done:
    inputs_free_padded(&made);
    return status;
}

void inputs_free_padded(inputs *padded)
{
    if (padded == NULL) {
        return;
    }
    for (size_t i = 0; i < padded->len; i++) {
        if (is_own(padded, i)) {
            free(padded->image[i]);
        }
    }
    memset(padded, 0, sizeof *padded);
}
