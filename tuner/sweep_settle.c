/* sweep_settle.c - the end of a problem: what ptxas speaks against is tried only if nothing else is
 * right, then a winner. */
#include "tuner/sweep_state.h"
#include "tuner/winner.h"

#include <stdlib.h>
#include <string.h>

/* The proved candidates of a problem, copied out of the store. */
typedef struct entries {
    const sweep_group *group;
    const sweep *s;
    winner_entry *list;
    char **texts; /* owned: template and config of each entry */
    size_t len, capacity;
    int32_t timer; /* the best that any row has */
    bool failed;
} entries;

/* Timers from the most to the least trusted; those of one comparison are the same. */
static int rank_of(int32_t timer)
{
    static const int32_t order[] = {STORE_TIMER_CUPTI, STORE_TIMER_EVENTS, STORE_TIMER_GRAPH,
                                    STORE_TIMER_MODELLED};

    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        if (order[i] == timer) {
            return (int)i;
        }
    }
    return (int)ARRAY_LEN(order);
}

static void clear_entries(entries *e)
{
    for (size_t i = 0; i < e->len; i++) {
        free(e->texts[2 * i]);
        free(e->texts[2 * i + 1]);
    }
    e->len = 0;
}

static bool reserve(entries *e)
{
    size_t capacity = e->capacity == 0 ? 32 : e->capacity * 2;

    if (e->len < e->capacity) {
        return true;
    }
    winner_entry *list = realloc(e->list, capacity * sizeof *list);
    e->list = list != NULL ? list : e->list;
    char **texts = realloc(e->texts, 2 * capacity * sizeof *texts);
    e->texts = texts != NULL ? texts : e->texts;
    e->capacity = list != NULL && texts != NULL ? capacity : e->capacity;
    return list != NULL && texts != NULL;
}

static int add_entry(void *context, const store_row *row)
{
    entries *e = context;

    if (!sweep_is_current(e->s, row) || rank_of(row->result.timer) > rank_of(e->timer)) {
        return 0;
    }
    if (row->result.timer != e->timer) {
        clear_entries(e);
        e->timer = row->result.timer;
    }
    e->failed = !reserve(e);
    if (e->failed) {
        return 1;
    }
    char **texts = &e->texts[2 * e->len];
    texts[0] = strdup(row->template_name);
    texts[1] = strdup(row->config);
    e->failed = texts[0] == NULL || texts[1] == NULL;
    e->list[e->len++] = (winner_entry){
        .candidate = row->id,
        .time_ns = row->result.time_ns,
        .registers = row->result.registers,
        .shared_bytes = row->result.shared_bytes,
        .template_name = texts[0],
        .config = texts[1],
    };
    return e->failed;
}

/* The anchor is the best default that is among the entries: NULL when none is. */
static winner_entry *mark_anchor(entries *e)
{
    winner_entry *anchor = NULL;
    size_t best = DEFAULT_TRIES;

    for (size_t i = 0; i < e->len; i++) {
        size_t at = sweep_default_index(e->group, e->list[i].template_name, e->list[i].config);
        if (at < best) {
            best = at;
            anchor = &e->list[i];
        }
    }
    if (anchor != NULL) {
        anchor->anchor = true;
    }
    return anchor;
}

static int mark_incumbent(void *context, const store_winner *winner)
{
    entries *e = context;

    for (size_t i = 0; i < e->len; i++) {
        e->list[i].incumbent = e->list[i].candidate == winner->row.id;
    }
    return 0;
}

static hone_status choose(sweep *s, sweep_group *group, hone_error *error)
{
    hone_status status = HONE_OK;
    entries e = {.group = group, .s = s};
    const store_filter proved = {.problem = group->id, .device = s->device, .outcome = STORE_OK};
    const store_filter any = {.problem = group->id, .device = s->device};
    size_t index = 0;
    int32_t verdict = 0;

    TRY(store_flush(s->o->store, error));
    TRY(store_candidates(s->o->store, &proved, add_entry, &e, error));
    if (e.failed) {
        status = status_set(error, HONE_NO_MEMORY, "winner", 0, "the candidates of a problem");
        goto done;
    }
    if (e.len == 0) {
        goto done;
    }
    TRY(store_winners(s->o->store, &any, mark_incumbent, &e, error));
    const winner_entry *anchor = mark_anchor(&e);
    TRY(winner_choose(e.list, e.len, &index, &verdict, error));
    TRY(store_winner_set(s->o->store, group->id, s->device, e.list[index].candidate, verdict,
                         error));
    if (anchor != NULL) {
        TRY(store_default_set(s->o->store, group->id, s->device, anchor->candidate, error));
    }
    group->has_winner = true;
done:
    clear_entries(&e);
    free(e.list);
    free(e.texts);
    return status;
}

/* A candidate whose code has a flaw is not worth its time while another is right. */
static hone_status settle_flawed(sweep *s, sweep_group *group, hone_error *error)
{
    hone_status status = HONE_OK;

    for (sweep_task *task = sweep_pop(&group->flawed); task != NULL;
         task = sweep_pop(&group->flawed)) {
        if (group->proved == 0) {
            TRY(sweep_prove_now(s, task, error)); /* takes the task */
            continue;
        }
        status = sweep_record(s, task, STORE_PRUNED, task->answer.reason, error);
        sweep_task_free(s, task);
        TRY(status);
    }
done:
    return status;
}

hone_status sweep_cut_short(sweep *s, hone_error *error)
{
    hone_status status = HONE_OK;

    for (size_t i = 0; i < s->o->problems_len; i++) {
        sweep_group *group = &s->groups[i];
        if (group->ended) {
            continue;
        }
        s->summary.unfinished++;
        if (group->proved > 0) {
            TRY(choose(s, group, error));
        }
        s->summary.winners += group->has_winner;
    }
done:
    return status;
}

hone_status sweep_settle(sweep *s, size_t index, hone_error *error)
{
    hone_status status = HONE_OK;
    sweep_group *group = &s->groups[index];
    bool more = false;

    TRY(sweep_next_default(s, index, &more, error));
    if (!more && !s->cancelled) {
        TRY(sweep_next_round(s, index, &more, error));
    }
    if (more) {
        return sweep_begin(s, error); /* settled when they are finished */
    }
    TRY(settle_flawed(s, group, error));
    /* Nothing new was tried: the winner stands, and the store is not written. */
    if (!group->has_winner || s->id != 0) {
        TRY(choose(s, group, error));
    }
    group->ended = true;
    s->summary.winners += group->has_winner;
    if (s->o->ended != NULL) {
        s->o->ended(s->o->context, group->problem, group->has_winner, group->reason);
    }
done:
    return status;
}
