/* default.c - ranks the legal configs of all templates by the performance model, without compiling
 * any. */
#include "runtime/default.h"

#include "runtime/plan_work.h"
#include "templates/space.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_BUDGET 4096
/* Nodes of the space that one template may cost: about a tenth of a second. */
#define DEFAULT_NODES 2000000u
#define DEFAULT_SEED  0x686f6e65u
/* A climb starts from the best of so many of a template, looks beside so many of them at most, and
 * leaves out those that differ in less than so many parameters from one before, unless they are the
 * best. */
enum { CLIMB_POOL = 256, CLIMB_STEPS = 96, CLIMB_APART = 3 };
/* One look in so many is a draw, which costs as much as ten neighbours; as many are beside the
 * best, and the rest around them. */
enum { SAMPLE_SHARE = 4 };

/* The best so far, sorted. Distinct: of choices with one time only the first is kept; they mostly
 * differ in what makes no difference. */
typedef struct best_list {
    default_choice *items;
    size_t capacity, len;
    bool distinct;
} best_list;

typedef struct ranking {
    const hone_problem *problem;
    const gpu *g;
    plan *scratch;
    best_list all, pool; /* of all templates, of the one that is looked at */
    uint64_t looked_at;
} ranking;

/* Modelled time, then template's name, then config: an order that no run or machine changes. */
static int compare_choices(const default_choice *a, const default_choice *b)
{
    if (a->ns != b->ns) {
        return a->ns < b->ns ? -1 : 1;
    }
    int names = strcmp(manifest_name(a->m), manifest_name(b->m));
    for (uint32_t i = 0; names == 0 && i < a->config.len; i++) {
        if (a->config.value[i] != b->config.value[i]) {
            names = a->config.value[i] < b->config.value[i] ? -1 : 1;
        }
    }
    return names;
}

static void insert(best_list *l, const default_choice *choice)
{
    size_t at = l->len;
    int order = -1;

    while (at > 0 && (order = compare_choices(choice, &l->items[at - 1])) < 0) {
        at--;
    }
    if (at == l->capacity || (at > 0 && order == 0)) {
        return; /* worse than all that are kept, or drawn twice */
    }
    if (l->distinct && at > 0 && l->items[at - 1].ns == choice->ns) {
        return;
    }
    if (l->distinct && at < l->len && l->items[at].ns == choice->ns) {
        l->items[at] = *choice;
        return;
    }
    size_t moved = (l->len < l->capacity ? l->len : l->capacity - 1) - at;
    memmove(&l->items[at + 1], &l->items[at], moved * sizeof *l->items);
    l->items[at] = *choice;
    l->len += l->len < l->capacity;
}

static hone_status open_list(best_list *l, size_t capacity, hone_error *error)
{
    l->items = calloc(capacity, sizeof *l->items);
    if (l->items == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a ranking of %zu choices", capacity);
    }
    l->capacity = capacity;
    return HONE_OK;
}

/* One launch after the other; what bounds the main one bounds all. */
static hone_status predict(const ranking *r, default_choice *choice, hone_error *error)
{
    hone_status status = HONE_OK;
    const plan *p = r->scratch;
    perf_work work;
    perf_answer answer;

    for (uint32_t i = 0; i < p->launches_len; i++) {
        const plan_launch *l = &p->launches[i];

        plan_work_estimate(p, l, r->problem, &work);
        TRY(perf_predict(r->g, &work, &answer, error));
        choice->ns += answer.ns;
        choice->bound = l == plan_work_main(p) ? answer.bound : choice->bound;
    }
done:
    return status;
}

static hone_status consider(ranking *r, const manifest *m, const config *c, hone_error *error)
{
    hone_status status = HONE_OK;
    default_choice choice = {.m = m, .config = *c};

    r->looked_at++;
    TRY(manifest_outline(m, r->problem, &r->g->facts, c, r->scratch, error));
    status = predict(r, &choice, error);
    if (status == HONE_UNSUPPORTED) {
        return HONE_OK; /* not one block fits: not a choice */
    }
    if (status == HONE_OK) {
        insert(&r->all, &choice);
        insert(&r->pool, &choice);
    }
done:
    return status;
}

/* Whether a template has at most `limit` legal configs here, by walking over them: a walk is a
 * tenth of a ranking. */
static hone_status is_small(space *s, uint64_t limit, bool *small, hone_error *error)
{
    hone_status status = HONE_OK;
    config c;
    bool found = true;

    for (uint64_t i = 0; i <= limit && found; i++) {
        status = space_next(s, DEFAULT_NODES, &c, &found, error);
        if (status == HONE_LIMIT) {
            found = true;
            status = HONE_OK;
            break;
        }
        TRY(status);
    }
    *small = !found;
    space_rewind(s);
done:
    return status;
}

static hone_status consider_all(ranking *r, const manifest *m, space *s, hone_error *error)
{
    hone_status status = HONE_OK;
    config c = {.len = 0}; /* zero past its values, so that equal configs are equal bytes */
    bool found = true;

    for (;;) {
        TRY(space_next(s, 0, &c, &found, error));
        if (!found) {
            break;
        }
        TRY(consider(r, m, &c, error));
    }
done:
    return status;
}

static hone_status consider_sample(ranking *r, const manifest *m, space *s, uint64_t budget,
                                   hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t seed = DEFAULT_SEED;
    config c = {.len = 0};
    bool found = true, uniform;

    for (uint64_t i = 0; i < budget && found; i++) {
        TRY(space_draw(s, &seed, DEFAULT_NODES, &c, &found, &uniform, error));
        if (found) {
            TRY(consider(r, m, &c, error));
        }
    }
done:
    return status;
}

/* Look at the legal configs that differ from one in a single parameter, from the given one on. */
static hone_status consider_beside(ranking *r, const manifest *m, const config *centre,
                                   uint32_t from, uint64_t *left, hone_error *error)
{
    hone_status status = HONE_OK;
    bool legal = false;

    for (uint32_t p = from; p < centre->len; p++) {
        const int64_t *values = NULL;
        uint32_t len = manifest_param_values(m, p, &values);
        for (uint32_t v = 0; v < len; v++) {
            config c = *centre;
            c.value[p] = values[v];
            if (*left == 0 || c.value[p] == centre->value[p]) {
                continue;
            }
            TRY(manifest_legal(m, r->problem, &r->g->facts, &c, &legal, NULL, error));
            if (legal) {
                --*left;
                TRY(consider(r, m, &c, error));
            }
        }
    }
done:
    return status;
}

/* And at those that differ in two, of which one alone may be worse or not legal: wider tiles want
 * more chunks. */
static hone_status consider_around(ranking *r, const manifest *m, const config *centre,
                                   uint64_t *left, hone_error *error)
{
    hone_status status = HONE_OK;

    for (uint32_t p = 0; p + 1 < centre->len; p++) {
        const int64_t *values = NULL;
        const uint32_t len = manifest_param_values(m, p, &values);
        for (uint32_t v = 0; v < len && *left > 0; v++) {
            config c = *centre;
            c.value[p] = values[v];
            if (c.value[p] != centre->value[p]) {
                TRY(consider_beside(r, m, &c, p + 1, left, error));
            }
        }
    }
done:
    return status;
}

/* In how many parameters two configs of a template differ. */
static uint32_t distance(const config *a, const config *b)
{
    uint32_t differ = 0;

    for (uint32_t i = 0; i < a->len; i++) {
        differ += a->value[i] != b->value[i];
    }
    return differ;
}

/* Where to look next: the best of the pool, if nobody looked beside it, else the first that is no
 * near twin of those; NULL when there is none. */
static const config *next_centre(const best_list *pool, const config *done, size_t done_len)
{
    for (size_t i = 0; i < pool->len; i++) {
        uint32_t nearest = UINT32_MAX;
        for (size_t k = 0; k < done_len; k++) {
            uint32_t differ = distance(&pool->items[i].config, &done[k]);
            nearest = differ < nearest ? differ : nearest;
        }
        if (nearest >= (i == 0 ? 1 : CLIMB_APART)) {
            return &pool->items[i].config;
        }
    }
    return NULL;
}

/* From a sample's best go on to better ones beside them, or around them, until there are none: a
 * sample of a large space has few configs without a fault in some parameter. */
static hone_status climb(ranking *r, const manifest *m, uint64_t budget, bool around,
                         hone_error *error)
{
    hone_status status = HONE_OK;
    config done[CLIMB_STEPS];
    const config *centre = NULL;

    for (size_t steps = 0; steps < CLIMB_STEPS && budget > 0; steps++) {
        centre = next_centre(&r->pool, done, steps);
        if (centre == NULL) {
            break;
        }
        done[steps] = *centre;
        TRY(consider_beside(r, m, &done[steps], 0, &budget, error));
        if (around) {
            TRY(consider_around(r, m, &done[steps], &budget, error));
        }
    }
done:
    return status;
}

static hone_status rank_template(ranking *r, const manifest *m, uint64_t budget, hone_error *error)
{
    hone_status status = HONE_OK;
    space *s = NULL;
    bool serves = false, small = false;

    if (manifest_op(m) != r->problem->op) {
        return HONE_OK;
    }
    TRY(manifest_serves(m, r->problem, &r->g->facts, &serves, NULL, error));
    if (!serves) {
        goto done;
    }
    r->pool.len = 0;
    TRY(space_open(m, r->problem, &r->g->facts, &s, error));
    TRY(is_small(s, budget, &small, error));
    if (small) {
        TRY(consider_all(r, m, s, error));
    } else {
        TRY(consider_sample(r, m, s, budget / SAMPLE_SHARE, error));
        TRY(climb(r, m, budget / SAMPLE_SHARE, false, error));
        TRY(climb(r, m, budget - 2 * (budget / SAMPLE_SHARE), true, error));
    }
done:
    space_close(s);
    return status;
}

hone_status default_rank(const templates *t, const hone_problem *problem, const gpu *g,
                         uint64_t budget, default_choice *out, size_t capacity, size_t *count,
                         uint64_t *legal, hone_error *error)
{
    hone_status status = HONE_OK;
    ranking r = {.problem = problem, .g = g};

    if (capacity == 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "a ranking needs room for one choice");
    }
    TRY(open_list(&r.all, capacity, error));
    TRY(open_list(&r.pool, CLIMB_POOL, error));
    r.pool.distinct = true;
    r.scratch = malloc(sizeof *r.scratch);
    if (r.scratch == NULL) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "a plan");
        goto done;
    }
    for (size_t i = 0; i < templates_len(t); i++) {
        TRY(rank_template(&r, templates_at(t, i), budget > 0 ? budget : DEFAULT_BUDGET, error));
    }
    memcpy(out, r.all.items, r.all.len * sizeof *out);
    *count = r.all.len;
    if (legal != NULL) {
        *legal = r.looked_at;
    }
done:
    free(r.scratch);
    free(r.pool.items);
    free(r.all.items);
    return status;
}

hone_status default_judge(const manifest *m, const config *c, const hone_problem *problem,
                          const gpu *g, default_choice *out, bool *fits, hone_error *error)
{
    hone_status status = HONE_OK;
    best_list one = {.items = out, .capacity = 1};
    default_choice none;
    ranking r = {.problem = problem, .g = g, .all = one, .pool = {&none, 1, 0}};
    bool legal = manifest_op(m) == problem->op;

    if (legal) {
        TRY(manifest_serves(m, problem, &g->facts, &legal, NULL, error));
    }
    if (legal) {
        TRY(manifest_legal(m, problem, &g->facts, c, &legal, NULL, error));
    }
    if (legal) {
        r.scratch = malloc(sizeof *r.scratch);
        if (r.scratch == NULL) {
            return status_set(error, HONE_NO_MEMORY, NULL, 0, "a plan");
        }
        TRY(consider(&r, m, c, error));
    }
    *fits = r.all.len == 1;
done:
    free(r.scratch);
    return status;
}
