/* strategy_model.c - the best by the performance model, and one in ten at random: what the model
 * misjudges is found only by trying it. The first is the analytical default, which every winner is
 * compared with. */
#include "tuner/strategy_random.h"

#include "runtime/default.h"

#include <stdlib.h>
#include <string.h>

/* With no budget everything is ranked, which takes as long as there are configs. */
#define RANKED_MAX 65536u
/* With one, the choice is among this many of the best. */
#define POOL_MAX 256u
/* Times that the model cannot tell apart: its own error is larger. */
static const double alike = 1.10;
/* Slower than this many times the best, another problem's candidate is not looked at again. */
#define WORTH_JOINING 1.5
/* Parameters in which two candidates must differ to count as different ideas. */
enum { DIFFERENT = 3 };

typedef struct modelled {
    random_pool pool;
    const strategy_problem *p;
    default_choice *ranked;
    uint32_t
        *distance; /* of each ranked one to the nearest that was proposed; 0: proposed itself */
    size_t ranked_len, proposed, wanted;
} modelled;

/* What other problems have compiled competes here too, in its place by modelled time: a large space
 * is drawn, and two problems draw little alike. The first stays the analytical default. */
static hone_status add_known(modelled *s, const strategy_problem *p, hone_error *error)
{
    hone_status status = HONE_OK;
    const double limit = s->ranked[0].ns * WORTH_JOINING;

    for (size_t i = 0; i < p->known->len; i++) {
        const candidate *c = &p->known->items[i];
        default_choice judged = {.m = NULL};
        bool fits = false, ranked_too = false;
        TRY(default_judge(c->m, &c->config, p->problem, p->gpu, &judged, &fits, error));
        fits = fits && judged.ns <= limit;
        for (size_t k = 0; k < s->ranked_len && fits && !ranked_too; k++) {
            ranked_too = s->ranked[k].m == c->m && config_same(&s->ranked[k].config, &c->config);
        }
        if (!fits || ranked_too) {
            continue;
        }
        size_t at = s->ranked_len++;
        for (; at > 1 && s->ranked[at - 1].ns > judged.ns; at--) {
            s->ranked[at] = s->ranked[at - 1];
        }
        s->ranked[at] = judged;
    }
done:
    return status;
}

static hone_status start(void *state, const strategy_problem *p, hone_error *error)
{
    hone_status status = HONE_OK;
    modelled *s = state;
    uint64_t randoms = p->budget / 10 + (p->budget % 10 != 0);
    size_t capacity = p->budget == 0 ? RANKED_MAX : POOL_MAX;
    const size_t known = p->known != NULL && p->budget > 1 ? p->known->len : 0;

    s->p = p;
    /* One in ten is random, but a budget of one is the default alone. */
    s->wanted = p->budget > 1 ? (size_t)(p->budget - randoms) : 1;
    capacity = s->wanted > capacity ? s->wanted : capacity;
    s->ranked = calloc(capacity + known, sizeof *s->ranked);
    s->distance = calloc(capacity + known, sizeof *s->distance);
    if (s->ranked == NULL || s->distance == NULL) {
        return status_set(error, HONE_NO_MEMORY, "model", 0, "a ranking of %zu", capacity);
    }
    TRY(random_pool_open(p, &s->pool, error));
    TRY(default_rank(p->templates, p->problem, p->gpu, p->budget == 0 ? RANKED_MAX : 0, s->ranked,
                     capacity, &s->ranked_len, NULL, error));
    if (known > 0 && s->ranked_len > 0) {
        TRY(add_known(s, p, error));
    }
    s->wanted = p->budget == 0 ? s->ranked_len : s->wanted;
    for (size_t i = 0; i < s->ranked_len; i++) {
        s->distance[i] = UINT32_MAX;
    }
done:
    return status;
}

/* In how many parameters two candidates differ; all when they are of different templates. */
static uint32_t distance(const default_choice *a, const default_choice *b)
{
    uint32_t differ = 0;

    for (uint32_t i = 0; a->m == b->m && i < a->config.len; i++) {
        differ += a->config.value[i] != b->config.value[i];
    }
    return a->m == b->m ? differ : DIFFERENT;
}

/* Of those that the model takes for as good as the best left, one unlike what was proposed; among
 * equals one that another problem has compiled, then the better ranked. The model's first list is
 * full of near twins. */
static size_t pick(const modelled *s)
{
    size_t best = s->ranked_len;
    uint32_t best_score = 0;
    double limit = 0;

    if (s->p->budget == 0) {
        return s->proposed; /* all are tried: the order is the model's */
    }
    for (size_t i = 0; i < s->ranked_len; i++) {
        const default_choice *choice = &s->ranked[i];
        const candidate c = {choice->m, choice->config};
        if (s->distance[i] == 0) {
            continue;
        }
        limit = limit > 0 ? limit : choice->ns * alike;
        if (choice->ns > limit) {
            break;
        }
        uint32_t far = s->distance[i] < DIFFERENT ? s->distance[i] : DIFFERENT;
        uint32_t score = 2 * far + (s->p->known != NULL && candidate_set_has(s->p->known, &c));
        if (score > best_score) {
            best = i;
            best_score = score;
        }
        if (s->proposed == 0) {
            break; /* the first is the analytical default */
        }
    }
    return best;
}

static hone_status next(void *state, candidate *out, bool *found, hone_error *error)
{
    hone_status status = HONE_OK;
    modelled *s = state;
    bool added = false;
    size_t at = s->proposed < s->wanted ? pick(s) : s->ranked_len;

    if (at == s->ranked_len) {
        return random_pool_draw(&s->pool, out, found, error);
    }
    *out = (candidate){s->ranked[at].m, s->ranked[at].config};
    TRY(candidate_set_add(&s->pool.seen, out, &added, error));
    for (size_t i = 0; i < s->ranked_len && s->p->budget > 0; i++) {
        uint32_t differ = distance(&s->ranked[i], &s->ranked[at]);
        s->distance[i] = differ < s->distance[i] ? differ : s->distance[i];
    }
    s->proposed++;
    *found = true;
done:
    return status;
}

static void stop(void *state)
{
    modelled *s = state;

    random_pool_close(&s->pool);
    free(s->ranked);
    free(s->distance);
    s->ranked = NULL;
    s->distance = NULL;
}

const strategy strategy_model = {
    .name = "model",
    .summary = "the best by the performance model, one in ten at random",
    .state_size = sizeof(modelled),
    .start = start,
    .next = next,
    .stop = stop,
};
