/* sweep_round.c - a strategy that learns in a sweep: the next round is proposed when all candidates
 * of the one before have a row. */
#include "tuner/sweep_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the store and the sweep know of a problem's candidates. */
typedef struct results {
    const sweep *s;
    const sweep_group *group;
    char **texts; /* template and config of each */
    double *ns;
    size_t len, capacity;
    bool failed;  /* memory */
    bool settled; /* what is not known will not be: it counts as failed */
} results;

static bool make_room(results *r)
{
    if (r->len < r->capacity) {
        return true;
    }
    const size_t capacity = r->capacity == 0 ? 64 : r->capacity * 2;
    char **texts = realloc(r->texts, 2 * capacity * sizeof *texts);
    r->texts = texts != NULL ? texts : r->texts;
    double *ns = realloc(r->ns, capacity * sizeof *ns);
    r->ns = ns != NULL ? ns : r->ns;
    r->capacity = texts != NULL && ns != NULL ? capacity : r->capacity;
    return texts != NULL && ns != NULL;
}

static void add_result(results *r, const char *template_name, const char *text, double ns)
{
    r->failed = r->failed || !make_room(r);
    if (r->failed) {
        return;
    }
    r->texts[2 * r->len] = strdup(template_name);
    r->texts[2 * r->len + 1] = strdup(text);
    r->failed = r->texts[2 * r->len] == NULL || r->texts[2 * r->len + 1] == NULL;
    r->ns[r->len++] = ns;
}

static int add_row(void *context, const store_row *row)
{
    results *r = context;
    const bool right = row->result.outcome == STORE_OK;

    if (row->result.outcome != STORE_INFLIGHT && row->result.outcome != STORE_IMPORTED &&
        sweep_is_current(r->s, row)) {
        add_result(r, row->template_name, row->config, right ? row->result.time_ns : HUGE_VAL);
    }
    return r->failed;
}

static bool find_result(void *context, const candidate *c, double *ns)
{
    const results *r = context;
    char text[SWEEP_CONFIG_BYTES];

    *ns = HUGE_VAL;
    if (manifest_config_format(c->m, &c->config, text, sizeof text, NULL) != HONE_OK) {
        return true;
    }
    for (size_t i = 0; i < r->len; i++) {
        if (strcmp(r->texts[2 * i], manifest_name(c->m)) == 0 &&
            strcmp(r->texts[2 * i + 1], text) == 0) {
            *ns = r->ns[i];
            return true;
        }
    }
    return r->settled;
}

static hone_status find_results(sweep *s, const sweep_group *group, results *r, hone_error *error)
{
    hone_status status = HONE_OK;
    const store_filter own = {.problem = group->id, .device = s->device};

    TRY(store_flush(s->o->store, error));
    TRY(store_candidates(s->o->store, &own, add_row, r, error));
    /* Kept back for a flaw: seldom proved, so as good as failed. */
    for (const sweep_task *task = group->flawed.first; task != NULL; task = task->next) {
        add_result(r, manifest_name(task->candidate.m), task->config, HUGE_VAL);
    }
    if (r->failed) {
        status = status_set(error, HONE_NO_MEMORY, "sweep", 0, "the results of a problem");
    }
done:
    return status;
}

hone_status sweep_round(sweep *s, size_t index, const strategy_problem *p, bool settled,
                        candidate **list, size_t *len, hone_error *error)
{
    hone_status status = HONE_OK;
    results r = {.s = s, .group = &s->groups[index], .settled = settled};

    TRY(find_results(s, r.group, &r, error));
    TRY(strategy_round(s->o->strategy, p, find_result, &r, list, len, error));
done:
    for (size_t i = 0; i < r.len; i++) {
        free(r.texts[2 * i]);
        free(r.texts[2 * i + 1]);
    }
    free(r.texts);
    free(r.ns);
    return status;
}

hone_status sweep_next_round(sweep *s, size_t index, bool *made, hone_error *error)
{
    hone_status status = HONE_OK;
    const strategy_problem p = sweep_problem(s, index);
    candidate *list = NULL;
    size_t len = 1;

    *made = false;
    if (!s->groups[index].rounds || s->groups[index].at_roof || sweep_is_spent(s)) {
        return HONE_OK; /* nothing is searched for, can be won, or can be afforded */
    }
    /* A candidate that another sweep has in flight gets no task, and no row in time: when a round
     * makes none, what it lacks counts as failed, and the next one is asked for. */
    for (bool settled = false; !*made && len > 0; settled = true) {
        free(list);
        list = NULL;
        TRY(sweep_round(s, index, &p, settled, &list, &len, error));
        for (size_t i = 0; i < len; i++) {
            bool added = false;
            TRY(sweep_add_task(s, index, &list[i], false, &added, error));
            s->total += added;
            *made = *made || added;
        }
        if (settled && !*made) {
            break;
        }
    }
done:
    free(list);
    return status;
}
