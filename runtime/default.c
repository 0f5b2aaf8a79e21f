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
    TRY(manifest_plan(m, r->problem, &r->g->facts, c, r->scratch, error));
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

/* Look at every config. *whole = false when there are more than `budget`, or they cost too many
 * nodes. */
static hone_status consider_all(ranking *r, const manifest *m, space *s, uint64_t budget,
                                bool *whole, hone_error *error)
{
    hone_status status = HONE_OK;
    config c = {.len = 0}; /* zero past its values, so that equal configs are equal bytes */
    bool found = true;

    *whole = false;
    for (uint64_t i = 0; i < budget && found; i++) {
        status = space_next(s, DEFAULT_NODES, &c, &found, error);
        if (status == HONE_LIMIT) {
            return HONE_OK;
        }
        TRY(status);
        if (found) {
            TRY(consider(r, m, &c, error));
        }
    }
    if (found) { /* is there one more? */
        status = space_next(s, DEFAULT_NODES, &c, &found, error);
    }
    *whole = status == HONE_OK && !found;
    status = status == HONE_LIMIT ? HONE_OK : status;
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

static hone_status rank_template(ranking *r, const manifest *m, uint64_t budget, hone_error *error)
{
    hone_status status = HONE_OK;
    space *s = NULL;
    bool serves = false, whole = false;

    if (manifest_op(m) != r->problem->op) {
        return HONE_OK;
    }
    TRY(manifest_serves(m, r->problem, &r->g->facts, &serves, NULL, error));
    if (!serves) {
        goto done;
    }
    TRY(space_open(m, r->problem, &r->g->facts, &s, error));
    TRY(consider_all(r, m, s, budget, &whole, error));
    if (!whole) {
        space_rewind(s);
        TRY(consider_sample(r, m, s, budget, error));
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
