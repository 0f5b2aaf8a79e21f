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
