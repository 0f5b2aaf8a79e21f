/* sweep_lay_out.c - what is left to do: recall what the store holds, and make the tasks of a
 * problem. */
#include "tuner/sweep_state.h"

#include "core/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

store_key sweep_key(const sweep *s, const sweep_task *task)
{
    store_key key = {.problem = s->groups[task->group].id,
                     .device = s->device,
                     .template_name = manifest_name(task->candidate.m),
                     .config = task->config};
    const hone_problem *problem = s->groups[task->group].problem;

    if (routing_matters(problem)) {
        key.tokens = routing_condition(s->o->routing, problem);
    }
    memcpy(key.template_digest, task->digest, sizeof key.template_digest);
    return key;
}

static sweep_group *group_of(const sweep *s, int64_t problem)
{
    for (size_t i = 0; i < s->o->problems_len; i++) {
        if (s->groups[i].id == problem) {
            return &s->groups[i];
        }
    }
    return NULL;
}

/* Whether it was measured as this sweep measures. */
static bool has_condition(const sweep *s, const store_row *row)
{
    const sweep_group *group = group_of(s, row->problem);

    return group == NULL || !routing_matters(group->problem) ||
           strcmp(row->result.tokens, routing_condition(s->o->routing, group->problem)) == 0;
}

static bool has_template(const sweep *s, const store_row *row)
{
    const manifest *m = templates_find(s->o->templates, row->template_name);
    uint8_t digest[32];

    if (m == NULL) {
        return false;
    }
    templates_digest(s->o->templates, m, digest);
    return memcmp(digest, row->template_digest, sizeof digest) == 0;
}

bool sweep_is_current(const sweep *s, const store_row *row)
{
    return row->result.outcome != STORE_IMPORTED && has_template(s, row) && has_condition(s, row);
}

/* The winner of another routing, to be measured under this one. */
static void recall_before(const sweep *s, const store_row *row, sweep_group *group)
{
    const manifest *m = templates_find(s->o->templates, row->template_name);
    candidate c = {.m = m};
    bool legal = false;
    char why[160];

    if (has_template(s, row) && !has_condition(s, row) &&
        manifest_config_parse(m, row->config, &c.config, NULL) == HONE_OK &&
        manifest_legal(m, group->problem, &s->o->device->gpu.facts, &c.config, &legal, why, NULL) ==
            HONE_OK &&
        legal) {
        group->before = c;
    }
}

static int recall_row(void *context, const store_row *row)
{
    sweep *s = context;
    sweep_group *group = group_of(s, row->problem);

    if (group == NULL || !sweep_is_current(s, row)) {
        return 0;
    }
    group->again = group->again || row->result.outcome == STORE_INFLIGHT;
    group->finished += row->result.outcome != STORE_INFLIGHT;
    group->proved += row->result.outcome == STORE_OK;
    sweep_note_best(s, group, &row->result);
    return 0;
}

static int recall_winner(void *context, const store_winner *winner)
{
    sweep *s = context;
    sweep_group *group = group_of(s, winner->row.problem);

    if (group != NULL) {
        group->has_winner = sweep_is_current(s, &winner->row);
        recall_before(s, &winner->row, group);
    }
    return 0;
}

hone_status sweep_recall(sweep *s, hone_error *error)
{
    hone_status status = HONE_OK;
    store_filter filter = {0};

    TRY(store_device_id(s->o->store, &s->o->device->kind, &s->device, error));
    for (size_t i = 0; i < s->o->problems_len; i++) {
        s->groups[i].problem = &s->o->problems[i];
        TRY(store_problem_id(s->o->store, &s->o->problems[i], &s->groups[i].id, error));
    }
    filter.device = s->device;
    TRY(store_candidates(s->o->store, &filter, recall_row, s, error));
    TRY(store_winners(s->o->store, &filter, recall_winner, s, error));
    for (size_t i = 0; i < s->o->problems_len; i++) {
        const sweep_group *group = &s->groups[i];
        s->total += group->finished < s->o->budget ? s->o->budget - group->finished : 0;
    }
done:
    return status;
}

/* A task for a candidate that the store does not know as done; *out is NULL when it does. */
static hone_status make_task(sweep *s, size_t group, const candidate *c, sweep_task **out,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    store_state state = STORE_TO_DO;
    sweep_task *task = calloc(1, sizeof *task);

    if (task == NULL || (task->plan = malloc(sizeof *task->plan)) == NULL) {
        status = status_set(error, HONE_NO_MEMORY, manifest_name(c->m), 0, "a candidate");
        goto done;
    }
    task->group = group;
    task->candidate = *c;
    templates_digest(s->o->templates, c->m, task->digest);
    TRY(manifest_config_format(c->m, &c->config, task->config, sizeof task->config, error));
    const store_key key = sweep_key(s, task);
    TRY(store_candidate_state(s->o->store, &key, &state, NULL, error));
    if (state == STORE_TO_DO || state == STORE_AGAIN) {
        TRY(manifest_plan(c->m, s->groups[group].problem, &s->o->device->gpu.facts, &c->config,
                          task->plan, error));
        *out = task;
        task = NULL;
    }
done:
    sweep_task_free(s, task);
    return status;
}

/* Whether nothing is left: as many candidates as the budget are finished, and one of them won. */
static bool is_settled(const sweep *s, const sweep_group *group)
{
    return s->o->budget > 0 && group->finished >= s->o->budget && group->has_winner &&
           !group->again;
}

static void say_unserved(const sweep *s, sweep_group *group)
{
    char why[160];

    templates_refusals(s->o->templates, group->problem, &s->o->device->gpu.facts, why, sizeof why);
    snprintf(group->reason, sizeof group->reason, "no template serves it on this device: %.150s",
             why);
}

hone_status sweep_add_task(sweep *s, size_t index, const candidate *c, bool must, bool *made,
                           hone_error *error)
{
    hone_status status = HONE_OK;
    sweep_task *task = NULL;

    TRY(make_task(s, index, c, &task, error));
    *made = task != NULL;
    if (task != NULL) {
        task->must = must;
        sweep_push(&s->waiting, task);
        s->groups[index].open++;
    }
done:
    return status;
}

/* The same for a candidate of the first list, which later problems know of. Defaults that follow
 * when one is not right come at a time that hangs on how many workers there are, so that nobody
 * knows of them. */
static hone_status add_first(sweep *s, size_t index, const candidate *c, bool must, bool *made,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    bool added = false;

    TRY(candidate_set_add(&s->known, c, &added, error));
    TRY(sweep_add_task(s, index, c, must, made, error));
done:
    return status;
}

static bool is_same(const candidate *c, const manifest *m, const config *own)
{
    return c->m == m && config_same(&c->config, own);
}

/* The analytical default first, whatever the strategy thinks of it, and the winner under another
 * routing beside them; then the strategy's, as many as before. */
static hone_status make_tasks(sweep *s, size_t index, const candidate *list, size_t len,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    sweep_group *group = &s->groups[index];
    const default_choice *first = group->defaults;
    size_t left = group->defaults_len > 0 && len > 0 ? len - 1 : len;
    bool made = false;

    if (group->defaults_len > 0) {
        const candidate c = {first->m, first->config};
        group->defaults_tried = 1;
        TRY(add_first(s, index, &c, true, &made, error));
    }
    const bool again =
        group->before.m != NULL &&
        !(group->defaults_len > 0 && is_same(&group->before, first->m, &first->config));
    if (again) {
        TRY(add_first(s, index, &group->before, true, &made, error));
    }
    for (size_t i = 0; i < len && left > 0; i++) {
        const bool added =
            (group->defaults_len > 0 && is_same(&list[i], first->m, &first->config)) ||
            (again && is_same(&list[i], group->before.m, &group->before.config));
        if (!added) {
            TRY(add_first(s, index, &list[i], false, &made, error));
            left--;
        }
    }
    snprintf(group->reason, sizeof group->reason, "every candidate was rejected");
    if (len == 0 && group->finished == 0) {
        say_unserved(s, group);
    }
done:
    return status;
}

size_t sweep_default_index(const sweep_group *group, const char *template_name, const char *text)
{
    for (size_t i = 0; i < group->defaults_len; i++) {
        const default_choice *d = &group->defaults[i];
        char own[SWEEP_CONFIG_BYTES];
        if (strcmp(manifest_name(d->m), template_name) == 0 &&
            manifest_config_format(d->m, &d->config, own, sizeof own, NULL) == HONE_OK &&
            strcmp(own, text) == 0) {
            return i;
        }
    }
    return DEFAULT_TRIES;
}

/* The rows of a problem that are right: is one of the defaults tried so far among them? */
typedef struct defaults_seen {
    const sweep *s;
    const sweep_group *group;
    bool proved;
} defaults_seen;

static int see_default(void *context, const store_row *row)
{
    defaults_seen *seen = context;

    seen->proved = sweep_is_current(seen->s, row) &&
                   sweep_default_index(seen->group, row->template_name, row->config) <
                       seen->group->defaults_tried;
    return seen->proved;
}

hone_status sweep_next_default(sweep *s, size_t index, bool *made, hone_error *error)
{
    hone_status status = HONE_OK;
    sweep_group *group = &s->groups[index];
    const store_filter right = {.problem = group->id, .device = s->device, .outcome = STORE_OK};
    defaults_seen seen = {.s = s, .group = group};

    *made = false;
    while (!*made && group->defaults_tried < group->defaults_len) {
        TRY(store_candidates(s->o->store, &right, see_default, &seen, error));
        if (seen.proved) {
            break;
        }
        const default_choice *next = &group->defaults[group->defaults_tried++];
        const candidate c = {next->m, next->config};
        TRY(sweep_add_task(s, index, &c, true, made, error));
        s->total += *made;
    }
done:
    return status;
}

strategy_problem sweep_problem(const sweep *s, size_t index)
{
    /* One place is the analytical default's (make_tasks), whatever round it is. */
    const bool learns = s->o->strategy->learn != NULL && s->o->budget > 1;

    return (strategy_problem){.templates = s->o->templates,
                              .problem = s->groups[index].problem,
                              .gpu = &s->o->device->gpu,
                              .budget = s->o->budget - learns,
                              .seed = s->o->seed + (uint64_t)index,
                              .known = &s->known};
}

/* What is tried of a problem beside its default, which counts: what the strategy proposes, or what
 * the sizes around it agree on. Caller frees *list. */
static hone_status choose_candidates(sweep *s, size_t index, candidate **list, size_t *len,
                                     hone_error *error)
{
    hone_status status = HONE_OK;
    sweep_group *group = &s->groups[index];
    const strategy_problem p = sweep_problem(s, index);
    candidate between;
    bool agreed = false;

    TRY(sweep_agreed(s, index, &between, &agreed, error));
    group->rounds = !agreed && s->o->strategy->learn != NULL;
    if (group->rounds) {
        return sweep_round(s, index, &p, false, list, len, error);
    }
    if (!agreed) {
        return strategy_collect(s->o->strategy, &p, list, len, error);
    }
    *list = calloc(2, sizeof **list);
    if (*list == NULL) {
        return status_set(error, HONE_NO_MEMORY, "sweep", 0, "two candidates");
    }
    if (group->defaults_len > 0) {
        (*list)[(*len)++] = (candidate){group->defaults[0].m, group->defaults[0].config};
    }
    (*list)[(*len)++] = between;
    s->summary.agreed++;
done:
    return status;
}

hone_status sweep_lay_out(sweep *s, size_t index, hone_error *error)
{
    hone_status status = HONE_OK;
    sweep_group *group = &s->groups[index];
    candidate *list = NULL;
    size_t len = 0;
    uint64_t expected = group->finished < s->o->budget ? s->o->budget - group->finished : 0;

    group->laid_out = true;
    /* A problem that launches nothing needs no winner. */
    if (is_settled(s, group) || problem_is_empty(group->problem)) {
        group->ended = true;
        s->summary.settled++;
        s->summary.winners++;
        return HONE_OK;
    }
    TRY(default_rank(s->o->templates, group->problem, &s->o->device->gpu, 0, group->defaults,
                     DEFAULT_TRIES, &group->defaults_len, NULL, error));
    TRY(choose_candidates(s, index, &list, &len, error));
    TRY(make_tasks(s, index, list, len, error));
    s->total = s->total - expected + group->open;
    if (group->open > 0) {
        TRY(sweep_begin(s, error));
    } else {
        s->summary.settled += group->has_winner;
        TRY(sweep_settle(s, index, error));
    }
done:
    free(list);
    return status;
}
