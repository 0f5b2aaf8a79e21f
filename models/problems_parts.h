/* problems_parts.h - what the files share that turn a rank's shapes into problems. Internal to
 * models/. */
#ifndef HONE_MODELS_PROBLEMS_PARTS_H
#define HONE_MODELS_PROBLEMS_PARTS_H

#include "models/llm.h"

typedef struct problem_list {
    const llm *l;
    int ep;
    llm_problem *at;
    size_t len, capacity;
} problem_list;

/* Appends a problem that the shape's layers launch, or counts their launches where the list has it.
 * HONE_BAD_PROBLEM, HONE_NO_MEMORY. */
hone_status problems_add(problem_list *list, const hone_problem *problem, const shape *s,
                         hone_error *error);

/* What an indexer's cache wants of a step of m tokens, as llm_problems says; of other shapes
 * nothing. */
hone_status problems_add_topk(problem_list *list, const shape *s, int64_t m, hone_error *error);
hone_status problems_add_scores(problem_list *list, const shape *s, int64_t m, hone_error *error);
hone_status problems_add_paged_scores(problem_list *list, const shape *s, int64_t m,
                                      hone_error *error);
hone_status problems_add_prepare(problem_list *list, const shape *s, int64_t m, hone_error *error);

#endif
