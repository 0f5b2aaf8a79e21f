/* strategy_random.c - legal configs at random, each template as often as the others. */
#include "tuner/strategy_random.h"

#include <stdlib.h>

/* Draws in a row that give nothing new before the spaces count as used up. With n left of N the
 * chance to miss them all is (1 - n/N)^400: small spaces are used up, large ones never repeat that
 * often. */
#define REPEATS 400

static hone_status add_space(random_pool *pool, const manifest *m, const strategy_problem *p,
                             hone_error *error)
{
    const device_facts *facts = p->gpu != NULL ? &p->gpu->facts : NULL;
    hone_status status = space_open(m, p->problem, facts, &pool->spaces[pool->len], error);

    if (status == HONE_OK) {
        pool->manifests[pool->len++] = m;
    }
    return status;
}

hone_status random_pool_open(const strategy_problem *p, random_pool *out, hone_error *error)
{
    hone_status status = HONE_OK;
    size_t most = p->definition == NULL ? templates_len(p->templates) : 0;
    random_pool pool = {.seed = p->seed};

    pool.spaces = calloc(most + 1, sizeof *pool.spaces);
    pool.manifests = calloc(most + 1, sizeof *pool.manifests);
    if (pool.spaces == NULL || pool.manifests == NULL) {
        status = status_set(error, HONE_NO_MEMORY, "random", 0, "%zu spaces", most);
        goto done;
    }
    if (p->definition != NULL) {
        TRY(add_space(&pool, p->definition, p, error));
    }
    for (size_t i = 0; i < most; i++) {
        const manifest *m = templates_at(p->templates, i);
        bool serves = false;
        TRY(manifest_serves(m, p->problem, &p->gpu->facts, &serves, NULL, error));
        if (serves) {
            TRY(add_space(&pool, m, p, error));
        }
    }
    *out = pool;
    pool = (random_pool){0};
done:
    random_pool_close(&pool);
    return status;
}

void random_pool_close(random_pool *pool)
{
    for (size_t i = 0; i < pool->len; i++) {
        space_close(pool->spaces[i]);
    }
    free(pool->spaces);
    free(pool->manifests);
    candidate_set_free(&pool->seen);
    *pool = (random_pool){0};
}

hone_status random_pool_draw(random_pool *pool, candidate *out, bool *found, hone_error *error)
{
    hone_status status = HONE_OK;
    bool any = false, uniform = false, added = false;

    for (int i = 0; i < REPEATS && !added && pool->len > 0; i++) {
        size_t at = (size_t)i % pool->len;
        candidate drawn = {.m = pool->manifests[(pool->seen.len + at) % pool->len]};
        status = space_draw(pool->spaces[(pool->seen.len + at) % pool->len], &pool->seed,
                            STRATEGY_NODES, &drawn.config, &any, &uniform, error);
        if (status == HONE_LIMIT) {
            status = HONE_OK; /* a space whose legal configs cannot be found has none to offer */
            continue;
        }
        TRY(status);
        if (any) {
            TRY(candidate_set_add(&pool->seen, &drawn, &added, error));
            *out = drawn;
        }
    }
    *found = added;
done:
    return status;
}

static hone_status start(void *state, const strategy_problem *p, hone_error *error)
{
    return random_pool_open(p, state, error);
}

static hone_status next(void *state, candidate *out, bool *found, hone_error *error)
{
    return random_pool_draw(state, out, found, error);
}

static void stop(void *state)
{
    random_pool_close(state);
}

const strategy strategy_random = {
    .name = "random",
    .summary = "legal configs at random",
    .state_size = sizeof(random_pool),
    .start = start,
    .next = next,
    .stop = stop,
};
