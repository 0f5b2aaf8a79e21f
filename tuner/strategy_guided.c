/* strategy_guided.c - local search steered by a model of what was timed so far.
 *
 * A few configs far from one another, then each time the one that a forest (forest.h) expects to be
 * fastest, or is least sure of, among random draws, all neighbours of the best ones and crosses of
 * them. What other GPUs or problems won with is tried first, while it is better than the rest. How
 * it was chosen, and against what: docs/search.md. */
#include "tuner/guided.h"

#include "core/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DESIGN = 12,      /* configs before the model is asked, and at most this share of the budget: */
    DESIGN_SHARE = 4, /* in tenths */
    DESIGN_DRAWS = 8, /* of which the one furthest from all others is taken */
    DRAWS = 256,
    CENTRES = 4, /* best configs whose neighbours are looked at */
    CROSSES = 64,
    CROSSED = 8, /* best configs that are crossed */
    TRUSTED = 2, /* seeds that are tried whatever they give, then as many others */
    SEEDS = 5,
    UNBUDGETED = 200, /* what a search without a budget plans for */
};
/* Standard deviations of the trees below their mean that count as a promise: of the first choice,
 * and the share of it that is left when the budget ends. */
static const double daring = 2.0, daring_left = 0.3;

static hone_status start(void *state, const strategy_problem *p, hone_error *error)
{
    hone_status status = HONE_OK;
    guided *g = state;

    g->p = p;
    g->best_seed = g->best_other = HUGE_VAL;
    TRY(random_pool_open(p, &g->pool, error));
    g->arms = calloc(g->pool.len + 1, sizeof *g->arms);
    g->near = malloc(GUIDED_NEAR * sizeof *g->near);
    if (g->arms == NULL || g->near == NULL) {
        status = status_set(error, HONE_NO_MEMORY, "guided", 0, "a search");
        goto done;
    }
    for (size_t i = 0; i < g->pool.len; i++) {
        features_init(&g->arms[i].features, g->pool.manifests[i]);
    }
done:
    return status;
}

static size_t arm_of(const guided *g, const manifest *m)
{
    size_t i = 0;

    while (g->pool.manifests[i] != m) {
        i++;
    }
    return i;
}

/* ---- What was timed. ------------------------------------------------------------------------ */

static void keep_elite(guided *g, const candidate *c, double ns)
{
    size_t at = g->elites_len;

    if (at == GUIDED_ELITES) {
        at--;
        if (ns >= g->elite_ns[at]) {
            return;
        }
    } else {
        g->elites_len++;
    }
    for (; at > 0 && g->elite_ns[at - 1] > ns; at--) {
        g->elites[at] = g->elites[at - 1];
        g->elite_ns[at] = g->elite_ns[at - 1];
    }
    g->elites[at] = *c;
    g->elite_ns[at] = ns;
}

static hone_status learn(void *state, const candidate *tried, double ns, hone_error *error)
{
    guided *g = state;
    double *best = g->seeding ? &g->best_seed : &g->best_other;

    g->seeded += g->seeding;

    if (!guided_observe(&g->arms[arm_of(g, tried->m)], &tried->config, ns)) {
        return status_set(error, HONE_NO_MEMORY, "guided", 0, "an observation");
    }
    g->learned++;
    g->fresh++;
    *best = fmin(*best, ns);
    if (isfinite(ns) && ns > 0) {
        keep_elite(g, tried, ns);
    }
    return HONE_OK;
}

/* The model is grown anew for each of the first sixty, then more and more rarely. */
static hone_status refresh(guided *g, hone_error *error)
{
    if (g->grown && g->fresh < 1 + g->learned / 60) {
        return HONE_OK;
    }
    for (size_t i = 0; i < g->pool.len; i++) {
        if (!guided_fit(&g->arms[i], random_next(&g->pool.seed))) {
            return status_set(error, HONE_NO_MEMORY, "guided", 0, "a forest");
        }
    }
    g->grown = true;
    g->fresh = 0;
    return HONE_OK;
}

/* ---- What is tried next. -------------------------------------------------------------------- */

/* A legal config that was not proposed, without proposing it. */
static bool draw(guided *g, candidate *out)
{
    bool found = false, uniform = false, fresh = false;

    for (int i = 0; i < 8 && !fresh && g->pool.len > 0; i++) {
        const size_t at = random_below(&g->pool.seed, g->pool.len);
        out->m = g->pool.manifests[at];
        const hone_status status = space_draw(g->pool.spaces[at], &g->pool.seed, STRATEGY_NODES,
                                              &out->config, &found, &uniform, NULL);
        fresh = status == HONE_OK && found && !candidate_set_has(&g->pool.seen, out);
    }
    return fresh;
}

/* The next seed that is legal here, while seeds are worth it. */
static hone_status next_seed(guided *g, candidate *out, bool *found, hone_error *error)
{
    hone_status status = HONE_OK;
    const strategy_problem *p = g->p;

    while (!*found && p->definition != NULL && g->seeds_at < p->seeds_len && g->seeds_at < SEEDS &&
           (g->seeded < TRUSTED || (g->learned >= 2 * TRUSTED && g->best_seed < g->best_other))) {
        bool has = false;
        *out = (candidate){p->definition, p->seeds[g->seeds_at++]};
        TRY(space_has(g->pool.spaces[0], &out->config, &has, error));
        *found = has && !candidate_set_has(&g->pool.seen, out);
    }
done:
    return status;
}

/* Of a few draws the one that is most unlike all that was proposed. */
static void next_design(guided *g, candidate *out, bool *found)
{
    double furthest = -1;
    candidate c;

    for (int i = 0; i < DESIGN_DRAWS && draw(g, &c); i++) {
        double nearest = HUGE_VAL;
        for (size_t k = 0; k < g->pool.seen.len; k++) {
            const candidate *other = &g->pool.seen.items[k];
            if (other->m == c.m) {
                nearest = fmin(nearest, features_distance(&g->arms[arm_of(g, c.m)].features,
                                                          &other->config, &c.config));
            }
        }
        if (nearest > furthest) {
            furthest = nearest;
            *out = c;
            *found = true;
        }
    }
}

typedef struct choice {
    candidate best;
    double least;
    double daring;
} choice;

static void consider(guided *g, const candidate *c, choice *best)
{
    if (candidate_set_has(&g->pool.seen, c)) {
        return;
    }
    const double promise = guided_ask(&g->arms[arm_of(g, c->m)], &c->config, best->daring);
    if (promise < best->least) {
        best->least = promise;
        best->best = *c;
    }
}

static hone_status consider_near(guided *g, const candidate *centre, choice *best,
                                 hone_error *error)
{
    hone_status status = HONE_OK;
    size_t len = 0;

    TRY(space_neighbours(g->pool.spaces[arm_of(g, centre->m)], &centre->config, SPACE_ANY_VALUE,
                         g->near, GUIDED_NEAR, &len, error));
    for (size_t i = 0; i < len && i < GUIDED_NEAR; i++) {
        const candidate c = {centre->m, g->near[i]};
        consider(g, &c, best);
    }
done:
    return status;
}

/* Each parameter from one of two of the best. */
static hone_status consider_cross(guided *g, choice *best, hone_error *error)
{
    hone_status status = HONE_OK;
    const size_t len = g->elites_len < CROSSED ? g->elites_len : CROSSED;
    const candidate *a = &g->elites[random_below(&g->pool.seed, len)];
    const candidate *b = &g->elites[random_below(&g->pool.seed, len)];
    candidate c = *a;
    bool has = false;

    if (a->m != b->m) {
        return HONE_OK;
    }
    for (uint32_t p = 0; p < c.config.len; p++) {
        if (random_below(&g->pool.seed, 2) == 1) {
            c.config.value[p] = b->config.value[p];
        }
    }
    TRY(space_has(g->pool.spaces[arm_of(g, c.m)], &c.config, &has, error));
    if (has) {
        consider(g, &c, best);
    }
done:
    return status;
}

static hone_status next_choice(guided *g, candidate *out, bool *found, hone_error *error)
{
    hone_status status = HONE_OK;
    const double budget = g->p->budget > 0 ? (double)g->p->budget : UNBUDGETED;
    const double left = fmax(0, 1 - (double)g->pool.seen.len / budget);
    choice best = {.least = HUGE_VAL, .daring = daring * (daring_left + (1 - daring_left) * left)};
    candidate c;

    TRY(refresh(g, error));
    for (int i = 0; i < DRAWS && draw(g, &c); i++) {
        consider(g, &c, &best);
    }
    for (size_t i = 0; i < CENTRES && i < g->elites_len; i++) {
        TRY(consider_near(g, &g->elites[i], &best, error));
    }
    for (int i = 0; i < CROSSES && g->elites_len > 1; i++) {
        TRY(consider_cross(g, &best, error));
    }
    *found = best.least < HUGE_VAL;
    *out = best.best;
done:
    return status;
}

static hone_status next(void *state, candidate *out, bool *found, hone_error *error)
{
    hone_status status = HONE_OK;
    guided *g = state;
    const uint64_t budget = g->p->budget > 0 ? g->p->budget : UNBUDGETED;
    const uint64_t share = budget < 1000 ? budget * DESIGN_SHARE / 10 : DESIGN;
    const uint64_t design = share < DESIGN ? share : DESIGN;
    bool added = false;

    *found = false;
    TRY(next_seed(g, out, found, error));
    g->seeding = *found;
    if (!*found && g->learned < design) {
        next_design(g, out, found);
    } else if (!*found) {
        TRY(next_choice(g, out, found, error));
    }
    if (!*found) {
        return random_pool_draw(&g->pool, out, found, error);
    }
    TRY(candidate_set_add(&g->pool.seen, out, &added, error));
done:
    return status;
}

static void stop(void *state)
{
    guided *g = state;

    for (size_t i = 0; g->arms != NULL && i < g->pool.len; i++) {
        guided_forget(&g->arms[i]);
    }
    free(g->arms);
    free(g->near);
    g->arms = NULL;
    g->near = NULL;
    random_pool_close(&g->pool);
}

const strategy strategy_guided = {
    .name = "guided",
    .summary = "local search by a forest that learns from what was timed",
    .state_size = sizeof(guided),
    .start = start,
    .next = next,
    .learn = learn,
    .stop = stop,
};
