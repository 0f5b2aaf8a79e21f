/* option_problems.c - which problems a command line names: one by one, by a file, by models. */
#include "cli/options.h"
#include "cli/problem_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_among(const llm_problem *list, size_t len, const hone_problem *problem)
{
    for (size_t i = 0; i < len; i++) {
        if (memcmp(&list[i].problem, problem, sizeof *problem) == 0) {
            return true;
        }
    }
    return false;
}

/* Fold what can be; `all`: refuse what cannot. One that another already is goes. */
static hone_status fold_problems(const options *o, bool all, llm_problem *list, size_t *count,
                                 hone_error *error)
{
    hone_error why = {.message = "no product is asked for"};
    size_t kept = 0, folded = 0;

    for (size_t i = 0; i < *count; i++) {
        llm_problem *made = &list[kept];
        hone_status status = HONE_UNSUPPORTED;
        *made = list[i];
        if (all || made->problem.op == HONE_OP_FP8_GEMM) {
            const hone_problem problem = made->problem;
            status = hone_fold_problem(&problem, o->fold, &made->problem, &why);
        }
        if (status != HONE_OK && all) {
            return status_set(error, status, "--fold", 0, "%s", why.message);
        }
        folded += status == HONE_OK;
        kept += !is_among(list, kept, &made->problem);
    }
    if (folded == 0 && *count > 0) {
        return status_set(error, HONE_BAD_PROBLEM, "--fold", 0, "no problem can be folded: %s",
                          why.message);
    }
    *count = kept;
    return HONE_OK;
}

static hone_status given_problems(const options *o, llm_problem **out, size_t *count,
                                  hone_error *error)
{
    hone_status status = HONE_OK;
    size_t filled = 0;
    llm_problem *list = calloc(o->problems_len, sizeof *list);

    if (list == NULL) {
        return status_set(error, HONE_NO_MEMORY, "--problem", 0, "a list of problems");
    }
    for (size_t i = 0; i < o->problems_len; i++) {
        llm_problem *made = &list[filled];
        TRY(hone_problem_parse(o->problems[i], &made->problem, error));
        snprintf(made->use, sizeof made->use, "--problem");
        made->launches = 1;
        filled += !is_among(list, filled, &made->problem);
    }
    *out = list;
    *count = filled;
    list = NULL;
done:
    free(list);
    return status;
}

/* Add a model's problems to a list. */
static hone_status add_model(const options *o, const char *name, llm_problem **list, size_t *count,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    llm *model = NULL;
    llm_problem *own = NULL;
    size_t len = 0;

    TRY(llm_open(name, &model, error));
    TRY(llm_problems(model, o->tp, o->ep, o->m, o->m_len, o->ops, &own, &len, error));
    llm_problem *grown = realloc(*list, (*count + len + 1) * sizeof *grown);
    if (grown == NULL) {
        status = status_set(error, HONE_NO_MEMORY, name, 0, "%zu problems", len);
        goto done;
    }
    *list = grown;
    for (size_t i = 0; i < len; i++) {
        if (!is_among(grown, *count, &own[i].problem)) {
            grown[(*count)++] = own[i];
        }
    }
done:
    free(own);
    llm_close(model);
    return status;
}

/* A model that has no share at this degree is passed over, unless none has. */
static hone_status every_model(const options *o, llm_problem **list, size_t *count,
                               hone_error *error)
{
    const char *const *names = NULL;
    const size_t len = llm_list(&names);
    hone_status last = HONE_OK;

    for (size_t i = 0; i < len; i++) {
        hone_status status = add_model(o, names[i], list, count, error);
        if (status != HONE_OK && status != HONE_BAD_MODEL) {
            return status;
        }
        last = status != HONE_OK ? status : last;
    }
    return *count > 0 ? HONE_OK : last;
}

/* One way to name problems, and no second one. */
static hone_status check_ways(const options *o, const char *standard, hone_error *error)
{
    const struct {
        bool given;
        const char *name;
    } ways[] = {{o->problems_len > 0, "--problem"},
                {o->from != NULL, "--from"},
                {o->model != NULL, "--model"},
                {o->all_models, "--all-models"}};
    const char *first = NULL;

    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        if (ways[i].given && first != NULL) {
            return status_set(error, HONE_BAD_ARGUMENT, first, 0, "give %s or %s, not both", first,
                              ways[i].name);
        }
        first = ways[i].given ? ways[i].name : first;
    }
    if (first == NULL && standard == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "no problem is named; give --problem TEXT or --model NAME");
    }
    return HONE_OK;
}

hone_status options_problems(const options *o, const char *standard, llm_problem **out,
                             size_t *count, hone_error *error)
{
    hone_status status = HONE_OK;
    const bool named = o->problems_len > 0 || o->from != NULL;
    llm_problem *list = NULL;
    size_t len = 0;

    TRY(check_ways(o, standard, error));
    if (o->problems_len > 0) {
        TRY(given_problems(o, &list, &len, error));
    } else if (o->from != NULL) {
        TRY(problem_file_read(o->from, &list, &len, error));
    } else if (o->all_models) {
        TRY(every_model(o, &list, &len, error));
    } else {
        TRY(add_model(o, o->model != NULL ? o->model : standard, &list, &len, error));
    }
    if (o->fold != 0) {
        TRY(fold_problems(o, named, list, &len, error));
    }
    for (size_t i = 0; i < len; i++) {
        TRY(routing_check(&o->routing, &list[i].problem, error));
    }
    *out = list;
    *count = len;
    list = NULL;
done:
    free(list);
    return status;
}
