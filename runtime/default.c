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
/* A climb looks beside so many configs at most, and stops when the best so many have been looked
 * beside.
 */
enum { CLIMB_STEPS = 64, CLIMB_WIDTH = 4 };

/* A sorted list of the best so far. */
typedef struct ranking {
    const hone_problem *problem;
    const gpu *g;
    plan *scratch;
    default_choice *out;
    size_t capacity, len;
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

static void insert(ranking *r, const default_choice *choice)
{
    size_t at = r->len;
    int order = -1;

    while (at > 0 && (order = compare_choices(choice, &r->out[at - 1])) < 0) {
        at--;
    }
    if (at == r->capacity || (at > 0 && order == 0)) {
        return; /* worse than all that are kept, or drawn twice */
    }
    size_t moved = (r->len < r->capacity ? r->len : r->capacity - 1) - at;
    memmove(&r->out[at + 1], &r->out[at], moved * sizeof *r->out);
    r->out[at] = *choice;
    r->len += r->len < r->capacity;
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
        insert(r, &choice);
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

/* Look at the legal configs that differ from one in a single parameter. */
static hone_status consider_beside(ranking *r, const manifest *m, const config *centre,
                                   uint64_t *left, hone_error *error)
{
    hone_status status = HONE_OK;
    bool legal = false;

    for (uint32_t p = 0; p < centre->len; p++) {
        const int64_t *values = NULL;
        uint32_t len = manifest_param_values(m, p, &values);
        for (uint32_t v = 0; v<len && * left> 0; v++) {
            config c = *centre;
            c.value[p] = values[v];
            if (c.value[p] == centre->value[p]) {
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

/* The index of a template's `rank`-th best; r->len when it has fewer. */
static size_t find_rank(const ranking *r, const manifest *m, size_t rank)
{
    size_t at = 0;

    for (; at < r->len; at++) {
        if (r->out[at].m == m && rank-- == 0) {
            break;
        }
    }
    return at;
}

/* From a sample's best go on to better ones beside them until there are none: a sample of a large
 * space has few configs without a fault in some parameter. */
static hone_status climb(ranking *r, const manifest *m, uint64_t budget, hone_error *error)
{
    hone_status status = HONE_OK;
    config done[CLIMB_STEPS];
    uint64_t left = budget;
    size_t steps = 0, rank = 0;

    while (steps < CLIMB_STEPS && rank < CLIMB_WIDTH && left > 0) {
        size_t at = find_rank(r, m, rank);
        if (at == r->len) {
            break;
        }
        const config centre = r->out[at].config;
        bool known = false;
        for (size_t i = 0; i < steps; i++) {
            known = known || memcmp(&done[i], &centre, sizeof centre) == 0;
        }
        if (known) {
            rank++;
            continue;
        }
        done[steps++] = centre;
        TRY(consider_beside(r, m, &centre, &left, error));
        rank = 0; /* what is best now may be another */
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
    TRY(space_open(m, r->problem, &r->g->facts, &s, error));
    TRY(is_small(s, budget, &small, error));
    if (small) {
        TRY(consider_all(r, m, s, error));
    } else {
        TRY(consider_sample(r, m, s, budget / 2, error));
        TRY(climb(r, m, budget / 2, error));
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
    ranking r = {.problem = problem, .g = g, .capacity = capacity};

    if (capacity == 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "a ranking needs room for one choice");
    }
    r.out = calloc(capacity, sizeof *r.out);
    r.scratch = malloc(sizeof *r.scratch);
    if (r.out == NULL || r.scratch == NULL) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "a ranking of %zu choices", capacity);
        goto done;
    }
    for (size_t i = 0; i < templates_len(t); i++) {
        TRY(rank_template(&r, templates_at(t, i), budget > 0 ? budget : DEFAULT_BUDGET, error));
    }
    memcpy(out, r.out, r.len * sizeof *out);
    *count = r.len;
    if (legal != NULL) {
        *legal = r.looked_at;
    }
done:
    free(r.scratch);
    free(r.out);
    return status;
}
