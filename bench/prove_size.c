/* prove_size.c - how much work a problem is, and what that means for its proof. */
#include "bench/prove_parts.h"

/* Emulated launches up to this much work run whole, on several kinds of inputs; larger ones on
 * sampled CTAs. Four whole runs of such a product take an emulated device half a second. A
 * quantiser larger than PLENTY runs whole on one kind, which has a bit of everything: a second. */
#define WHOLE_MACS      (3 << 24)
#define WHOLE_ELEMENTS  (1 << 23)
#define PLENTY_ELEMENTS (1 << 20)

/* Inputs that proofs go through. Few tokens need as many kinds as a cache has slots worth asking
 * for (inputs.h). */
static const inputs_kind kinds_gemm[] = {INPUTS_HOLES, INPUTS_WIDE, INPUTS_EXTREMES};
static const inputs_kind kinds_moe[] = {INPUTS_HOLES, INPUTS_WIDE, INPUTS_EXTREMES, INPUTS_SPECIALS,
                                        INPUTS_TINY, INPUTS_ZEROS};
static const inputs_kind kinds_quant[] = {INPUTS_HOLES,    INPUTS_WIDE, INPUTS_EXTREMES,
                                          INPUTS_SPECIALS, INPUTS_TINY, INPUTS_NORMAL,
                                          INPUTS_ONES,     INPUTS_ZEROS};
static const inputs_kind kinds_mqa[] = {INPUTS_HOLES, INPUTS_WIDE, INPUTS_EXTREMES, INPUTS_SPECIALS,
                                        INPUTS_TINY};
static const inputs_kind kinds_whole_rows[] = {INPUTS_NORMAL}; /* whose tiles can be told */
static const inputs_kind kinds_plenty[] = {INPUTS_SPECIALS};
enum { KINDS_MANY_TOKENS = 5 };

static bool is_mqa(const hone_problem *problem)
{
    return problem->op == HONE_OP_MQA_LOGITS || problem->op == HONE_OP_MQA_LOGITS_PAGED;
}

bool prove_is_product(const hone_problem *problem)
{
    return problem->op == HONE_OP_FP8_GEMM || problem->op == HONE_OP_MOE_GEMM;
}

/* Multiply-adds of a product as tiles do it: matrix instructions have 16 rows, also for one token.
 * Those of a weight gradient, whose sampled sums could not be told, are none. */
static double padded_macs(const hone_problem *problem)
{
    const hone_fp8_gemm *p = &problem->as.fp8_gemm;
    const hone_moe_gemm *moe = &problem->as.moe_gemm;

    if (problem->op == HONE_OP_FP8_GEMM) {
        return (double)((p->m + 15) / 16 * 16) * (double)p->n * (double)p->k * (double)p->batch;
    }
    if (is_mqa(problem)) {
        double flop = 0, bytes = 0;
        problem_work(problem, &flop, &bytes);
        return flop / 2;
    }
    if (problem->op != HONE_OP_MOE_GEMM || moe->group_layout == HONE_GROUPS_K) {
        return 0;
    }
    const double rows = (double)moe->tokens * moe->topk, experts = (double)moe->experts;
    return (rows + 15 * (rows < experts ? rows : experts)) * (double)moe->n * (double)moe->k;
}

static double elements_of(const hone_problem *problem)
{
    const hone_act_quant *act = &problem->as.act_quant;
    const hone_fold *fold = &problem->as.fold;
    const hone_weight_quant *weight = &problem->as.weight_quant;
    const hone_mxfp4_fold *mxfp4 = &problem->as.mxfp4_fold;
    const hone_scale_pack *scales = &problem->as.scale_pack;

    switch (problem->op) {
    case HONE_OP_ACT_QUANT:
        return (double)act->experts * (double)act->m * (double)act->k;
    case HONE_OP_WEIGHT_QUANT:
        return (double)weight->n * (double)weight->k;
    case HONE_OP_FOLD:
        return (double)fold->m * (double)fold->k;
    case HONE_OP_SCALE_PACK:
        return (double)scales->rows * (double)scales->groups * (double)scales->batch;
    case HONE_OP_MXFP4_FOLD:
        return (double)mxfp4->n * (double)mxfp4->k * (double)mxfp4->batch;
    case HONE_OP_MOE_ALIGN: /* an entry is as much work as that many elements */
        return 16.0 * (double)problem->as.moe_align.tokens * problem->as.moe_align.topk;
    case HONE_OP_MOE_COMBINE:
        return (double)problem->as.moe_combine.tokens * (double)problem->as.moe_combine.n *
               problem->as.moe_combine.topk;
    case HONE_OP_TOPK:
        return (double)problem->as.topk.rows * (double)problem->as.topk.width;
    default:
        return 0.0;
    }
}

bool prove_is_plenty(const hone_problem *problem)
{
    return elements_of(problem) > PLENTY_ELEMENTS;
}

/* Rows that are left out are not written, so that the tiles of sampled CTAs could not be told; what
 * a CTA of moe_align writes hangs on all entries. */
static bool has_gaps(const hone_problem *problem)
{
    if (problem->op == HONE_OP_MOE_ALIGN) {
        return true;
    }
    return problem->op == HONE_OP_ACT_QUANT && problem->as.act_quant.row_set != HONE_ROWS_EVERY;
}

bool prove_is_large(const device *d, const hone_problem *problem)
{
    if (d->driver->emu == NULL) {
        return false;
    }
    return padded_macs(problem) > WHOLE_MACS ||
           (elements_of(problem) > WHOLE_ELEMENTS && !has_gaps(problem));
}

/* Tokens of an op whose slots or experts are drawn; of another op there are always enough. */
static int64_t drawn_tokens(const hone_problem *problem)
{
    return problem->op == HONE_OP_MOE_ALIGN       ? problem->as.moe_align.tokens
           : problem->op == HONE_OP_MOE_COMBINE   ? problem->as.moe_combine.tokens
           : problem->op == HONE_OP_TOPK          ? problem->as.topk.rows
           : problem->op == HONE_OP_KV_GATHER     ? problem->as.kv_gather.tokens
           : problem->op == HONE_OP_INDEX_PREPARE ? problem->as.index_prepare.tokens
           : problem->op == HONE_OP_KV_QUANT      ? problem->as.kv_quant.tokens
                                                  : INPUTS_MANY_TOKENS;
}

prove_kinds prove_kinds_of(const device *d, const hone_problem *problem)
{
    prove_kinds quant = {kinds_quant, ARRAY_LEN(kinds_quant)};

    if (problem->op == HONE_OP_FP8_GEMM) {
        return (prove_kinds){kinds_gemm, ARRAY_LEN(kinds_gemm)};
    }
    if (problem->op == HONE_OP_MOE_GEMM) {
        return (prove_kinds){kinds_moe, ARRAY_LEN(kinds_moe)};
    }
    if (is_mqa(problem)) {
        return prove_is_large(d, problem)
                   ? (prove_kinds){kinds_whole_rows, ARRAY_LEN(kinds_whole_rows)}
                   : (prove_kinds){kinds_mqa, ARRAY_LEN(kinds_mqa)};
    }
    if (d->driver->emu != NULL && prove_is_plenty(problem)) {
        return (prove_kinds){kinds_plenty, ARRAY_LEN(kinds_plenty)};
    }
    if (drawn_tokens(problem) >= INPUTS_MANY_TOKENS) {
        quant.len = KINDS_MANY_TOKENS;
    }
    return quant;
}
