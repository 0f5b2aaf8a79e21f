/* strategy.c - the table of strategies. A new one is one file and one line here. */
#include "tuner/strategy.h"

#include <stdlib.h>
#include <string.h>

static const strategy *const all[] = {
    &strategy_model, /* first: the default */
    &strategy_random,
    &strategy_exhaustive,
    &strategy_guided,
};

size_t strategy_len(void)
{
    return ARRAY_LEN(all);
}

const strategy *strategy_at(size_t index)
{
    return all[index];
}

const strategy *strategy_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (strcmp(all[i]->name, name) == 0) {
            return all[i];
        }
    }
    return NULL;
}

static hone_status collect(const strategy *s, void *state, const strategy_problem *p,
                           candidate **list, size_t *len, hone_error *error)
{
    hone_status status = HONE_OK;
    size_t capacity = 0;
    bool found = true;

    TRY(s->start(state, p, error));
    while (p->budget == 0 || *len < p->budget) {
        if (*len == capacity) {
            capacity = capacity == 0 ? 32 : capacity * 2;
            candidate *grown = realloc(*list, capacity * sizeof *grown);
            if (grown == NULL) {
                return status_set(error, HONE_NO_MEMORY, s->name, 0, "a list of candidates");
            }
            *list = grown;
        }
        TRY(s->next(state, &(*list)[*len], &found, error));
        if (!found) {
            break;
        }
        (*len)++;
    }
done:
    return status;
}

hone_status strategy_collect(const strategy *s, const strategy_problem *p, candidate **out,
                             size_t *len, hone_error *error)
{
    hone_status status = HONE_OK;
    candidate *list = NULL;
    size_t filled = 0;
    void *state = calloc(1, s->state_size);

    if (state == NULL) {
        return status_set(error, HONE_NO_MEMORY, s->name, 0, "a strategy's state");
    }
    TRY(collect(s, state, p, &list, &filled, error));
    *out = list;
    *len = filled;
    list = NULL;
done:
    s->stop(state);
    free(state);
    free(list);
    return status;
}

/* Propose a round; *whole when all of it is known already, and then it is learnt from. */
static hone_status make_round(const strategy *s, void *state, uint64_t most,
                              strategy_known_fn known, void *context, candidate *list, size_t *len,
                              bool *whole, hone_error *error)
{
    hone_status status = HONE_OK;
    double ns[STRATEGY_ROUND];
    bool found = true;

    *whole = true;
    for (*len = 0; *len < most && *len < STRATEGY_ROUND;) {
        TRY(s->next(state, &list[*len], &found, error));
        if (!found) {
            break;
        }
        *whole = known(context, &list[*len], &ns[*len]) && *whole;
        ++*len;
    }
    for (size_t i = 0; i < *len && *whole; i++) {
        TRY(s->learn(state, &list[i], ns[i], error));
    }
done:
    return status;
}

hone_status strategy_round(const strategy *s, const strategy_problem *p, strategy_known_fn known,
                           void *context, candidate **out, size_t *len, hone_error *error)
{
    hone_status status = HONE_OK;
    candidate *list = malloc(STRATEGY_ROUND * sizeof *list);
    void *state = calloc(1, s->state_size);
    uint64_t left = p->budget == 0 ? UINT64_MAX : p->budget;
    size_t made = 0;
    bool whole = true;

    if (list == NULL || state == NULL) {
        free(list);
        free(state);
        return status_set(error, HONE_NO_MEMORY, s->name, 0, "a round of candidates");
    }
    TRY(s->start(state, p, error));
    do {
        TRY(make_round(s, state, left, known, context, list, &made, &whole, error));
        left -= made;
    } while (whole && made > 0);
    *out = list;
    *len = made;
    list = NULL;
done:
    s->stop(state);
    free(state);
    free(list);
    return status;
}
