/* problems_index.c - the sparse-attention indexer's problems: scores of a step's tokens, and their
 * choice. */
#include "models/problems_parts.h"

#include "core/integer.h"
#include "core/problem.h"

#include <string.h>

/* V4.1's two levels of choice (kernels.md 3.4). */
enum { CANDIDATE_BLOCK = 8, CANDIDATE_BLOCKS = 2048 };

static hone_status add_best(problem_list *list, const shape *s, int64_t rows, int64_t width,
                            int32_t pick, int64_t layers, hone_error *error)
{
    hone_problem problem;
    hone_topk *p = &problem.as.topk;
    shape used = *s;

    problem_init(&problem, HONE_OP_TOPK);
    p->rows = rows;
    p->width = width;
    p->k = pick == HONE_PICK_BLOCKED ? CANDIDATE_BLOCKS : (int32_t)list->l->index_topk;
    p->pick = pick;
    p->block = pick == HONE_PICK_EVERY ? 1 : CANDIDATE_BLOCK;
    p->pin = p->drop = pick == HONE_PICK_BLOCKED;
    problem_derive(&problem);
    used.layers = (int32_t)layers;
    return layers > 0 ? problems_add(list, &problem, &used, error) : HONE_OK;
}

/* What the indexer's scores choose, of each token of a step, at the longest context. */
hone_status problems_add_topk(problem_list *list, const shape *s, int64_t m, hone_error *error)
{
    const llm *l = list->l;
    const int64_t whole = l->kv_sources - l->pooled_sources, blocks = CANDIDATE_BLOCKS;
    hone_status status = HONE_OK;

    if (strcmp(s->use, "indexer.k_cache") != 0) {
        return HONE_OK;
    }
    if (l->attention != LLM_SOURCED) {
        const int64_t ratio = l->attention == LLM_COMPRESSED ? 4 : 1;
        return add_best(list, s, m, SHAPES_CONTEXT / ratio, HONE_PICK_EVERY, l->index_layers,
                        error);
    }
    TRY(add_best(list, s, m, SHAPES_CONTEXT / 2, HONE_PICK_EVERY, l->pooled_sources, error));
    TRY(add_best(list, s, m, SHAPES_CONTEXT, HONE_PICK_EVERY, whole, error));
    TRY(add_best(list, s, m, SHAPES_CONTEXT, HONE_PICK_BLOCKED, whole, error));
    TRY(add_best(list, s, m, blocks * CANDIDATE_BLOCK, HONE_PICK_LISTED,
                 l->index_layers - l->kv_sources, error));
done:
    return status;
}

/* Tokens of a step up to which they decode, one of each request; beyond them they are one prompt's.
 */
enum { DECODE_TOKENS = 256 };

/* A layer's keys that a step's tokens score: `shift` context tokens to a key, of so many layers. */
typedef struct scored {
    int shift;
    int64_t layers;
} scored;

/* Layers that score chosen blocks alone are counted with those that score every key: no kernel
 * does less yet. */
static size_t scored_of(const llm *l, scored out[2])
{
    if (l->attention != LLM_SOURCED) {
        out[0] = (scored){l->attention == LLM_COMPRESSED ? 2 : 0, l->index_layers};
        return 1;
    }
    out[0] = (scored){1, l->pooled_sources};
    out[1] = (scored){0, l->index_layers - l->pooled_sources};
    return 2;
}

/* The element of an indexer's cache; HONE_DTYPE_NONE: it is another cache. */
static int32_t element_of(const shape *s)
{
    return strcmp(s->use, "indexer.k_cache") == 0       ? HONE_DTYPE_E4M3
           : strcmp(s->use, "indexer.k_cache_fp4") == 0 ? HONE_DTYPE_E2M1
                                                        : HONE_DTYPE_NONE;
}

hone_status problems_add_scores(problem_list *list, const shape *s, int64_t m, hone_error *error)
{
    hone_status status = HONE_OK;
    const int32_t element = element_of(s);
    scored layers[2];
    const size_t len = scored_of(list->l, layers);

    for (size_t i = 0; i < len && element != HONE_DTYPE_NONE && m > DECODE_TOKENS; i++) {
        hone_problem problem;
        shape used = *s;
        problem_init(&problem, HONE_OP_MQA_LOGITS);
        problem.as.mqa_logits.tokens = m;
        problem.as.mqa_logits.keys = integer_ceil_div(2 * m, INT64_C(1) << layers[i].shift);
        problem.as.mqa_logits.heads = (int32_t)list->l->index_heads;
        problem.as.mqa_logits.dims = (int32_t)list->l->index_dim;
        problem.as.mqa_logits.element = element;
        problem_derive(&problem);
        used.layers = (int32_t)layers[i].layers;
        TRY(problems_add(list, &problem, &used, error));
    }
done:
    return status;
}

hone_status problems_add_paged_scores(problem_list *list, const shape *s, int64_t m,
                                      hone_error *error)
{
    hone_status status = HONE_OK;
    scored layers[2];
    const size_t len = scored_of(list->l, layers);

    for (size_t i = 0; i < len && element_of(s) != HONE_DTYPE_NONE && m <= DECODE_TOKENS; i++) {
        hone_problem problem;
        shape used = *s;
        problem_init(&problem, HONE_OP_MQA_LOGITS_PAGED);
        hone_mqa_logits_paged *p = &problem.as.mqa_logits_paged;
        p->batch = m;
        p->width = SHAPES_CONTEXT >> layers[i].shift;
        p->pages = SHAPES_CONTEXT / SHAPES_PAGE_TOKENS + 1; /* one request's; a free field */
        p->page_size = SHAPES_PAGE_TOKENS;
        p->heads = (int32_t)list->l->index_heads;
        p->record = s->record;
        problem_derive(&problem);
        used.layers = (int32_t)layers[i].layers;
        TRY(problems_add(list, &problem, &used, error));
    }
done:
    return status;
}

/* Queries and keys made ready for their scores, one launch in each layer that scores: V3.2 and those
 * like it turn the first 64 dims, V4 the last ones; V4.1 has no transform (kernels.md 3.4). A token
 * that has no key in a layer has no slot. */
hone_status problems_add_prepare(problem_list *list, const shape *s, int64_t m, hone_error *error)
{
    const llm *l = list->l;
    hone_problem problem;
    hone_index_prepare *p = &problem.as.index_prepare;
    shape used = *s;

    if (element_of(s) == HONE_DTYPE_NONE) {
        return HONE_OK;
    }
    problem_init(&problem, HONE_OP_INDEX_PREPARE);
    p->tokens = m;
    p->pages = integer_ceil_div(m, SHAPES_PAGE_TOKENS); /* a free field */
    p->page_size = SHAPES_PAGE_TOKENS;
    p->heads = (int32_t)l->index_heads;
    p->rope = l->attention == LLM_SOURCED || l->attention == LLM_COMPRESSED ? HONE_ROPE_LAST
                                                                            : HONE_ROPE_FIRST;
    p->hadamard = l->attention != LLM_SOURCED;
    p->record = s->record;
    problem_derive(&problem);
    used.layers = (int32_t)l->index_layers;
    return problems_add(list, &problem, &used, error);
}
