/* strategy_model.c - the best by the performance model, and one in ten at random: what the model misjudges is
 * found only by trying it. The first is the analytical default, which every winner is compared with. */
#include "tuner/strategy_random.h"

#include "runtime/default.h"

#include <stdlib.h>

/* With no budget everything is ranked, which takes as long as there are configs. */
#define RANKED_MAX 65536u

typedef struct modelled {
    random_pool pool;
    default_choice *ranked;
    size_t ranked_len, at;
} modelled;

static hone_status start(void *state, const strategy_problem *p, hone_error *error)
{
    hone_status status = HONE_OK;
    modelled *s = state;
    uint64_t randoms = p->budget / 10 + (p->budget % 10 != 0);
    size_t wanted = p->budget == 0 ? RANKED_MAX : (size_t)(p->budget - randoms);
    /* One in ten, but a budget of one is the default alone. */
    size_t capacity = wanted > 0 ? wanted : 1;

    s->ranked = calloc(capacity, sizeof *s->ranked);
    if (s->ranked == NULL) {
        return status_set(error, HONE_NO_MEMORY, "model", 0, "a ranking of %zu", capacity);
    }
    TRY(random_pool_open(p, &s->pool, error));
    TRY(default_rank(p->templates, p->problem, p->gpu, p->budget == 0 ? RANKED_MAX : 0, s->ranked,
                     capacity, &s->ranked_len, NULL, error));
done:
    return status;
}

static hone_status next(void *state, candidate *out, bool *found, hone_error *error)
{
    hone_status status = HONE_OK;
    modelled *s = state;
    bool added = false;

    while (s->at < s->ranked_len && !added) {
        const default_choice *choice = &s->ranked[s->at++];
        *out = (candidate){choice->m, choice->config};
        TRY(candidate_set_add(&s->pool.seen, out, &added, error));
    }
    if (!added) {
        return random_pool_draw(&s->pool, out, found, error);
    }
    *found = true;
done:
    return status;
}

static void stop(void *state)
{
    modelled *s = state;

    random_pool_close(&s->pool);
    free(s->ranked);
    s->ranked = NULL;
}

const strategy strategy_model = {
    .name = "model",
    .summary = "the best by the performance model, one in ten at random",
    .state_size = sizeof(modelled),
    .start = start,
    .next = next,
    .stop = stop,
};
