/* strategy_random.h - random draws without repetition, which other strategies mix into their own.
 */
#ifndef HONE_TUNER_STRATEGY_RANDOM_H
#define HONE_TUNER_STRATEGY_RANDOM_H

#include "templates/space.h"
#include "tuner/candidate_set.h"

typedef struct random_pool {
    size_t len; /* spaces of the templates that serve the problem */
    space **spaces;
    const manifest **manifests;
    candidate_set seen;
    uint64_t seed;
} random_pool;

hone_status random_pool_open(const strategy_problem *p, random_pool *out, hone_error *error);
void random_pool_close(random_pool *pool);
/* A legal config that has not been seen. *found = false when draws only repeat themselves. */
hone_status random_pool_draw(random_pool *pool, candidate *out, bool *found, hone_error *error);

#endif
