/* race_task.c - what engines do for warps, to the race detector: issued, told of, waited for. */
#include "emulator/machine/race_state.h"

#include <stdlib.h>

/* An agent for a bulk operation: one whose last operation the warp knows to be done, so that
 * whoever knows of the new one may be taken to know of that too. */
static uint32_t bulk_agent(race_state *s, race_warp *r, uint32_t index)
{
    for (uint32_t n = 0; n < r->bulk_len; n++) {
        uint32_t a = r->bulk[n];
        if (a < r->home->len && r->home->times[a] >= s->agent_time[a]) {
            return a;
        }
    }
    if (r->bulk_len < RACE_SLOTS && s->agents_len < RACE_AGENTS) {
        return r->bulk[r->bulk_len++] = race_agent_new(s, AGENT_BULK, index);
    }
    r->bulk_next = (r->bulk_next + 1) % (r->bulk_len + (r->bulk_len == 0));
    return r->bulk_len != 0 ? r->bulk[r->bulk_next] : 0;
}

/* cp.async and wgmma of a warp are done in their order: an agent each. */
static uint32_t engine_agent(race_state *s, race_warp *r, uint32_t index, race_engine engine)
{
    uint32_t *agent = engine == RACE_COPY ? &r->copy : &r->matrix;

    if (engine == RACE_BULK) {
        return bulk_agent(s, r, index);
    }
    if (*agent == 0) {
        *agent = race_agent_new(s, engine == RACE_COPY ? AGENT_COPY : AGENT_MATRIX, index);
    }
    return *agent;
}

race_task *race_issue(warp *w, const instruction *i, race_engine engine)
{
    race_state *s = w->cta->cluster->races;
    race_task *t = NULL;

    if (s == NULL) {
        return NULL;
    }
    race_warp *r = race_warp_of(s, w);
    if (!race_charge(s->book, w->run, sizeof *t)) {
        return NULL;
    }
    t = calloc(1, sizeof *t);
    if (t == NULL) {
        race_discharge(s->book, sizeof *t);
        race_out_of_memory(w->run);
        return NULL;
    }
    t->state = s;
    t->by = w;
    t->i = i;
    t->engine = engine;
    t->lane = machine_lowest(w->live);
    t->agent = engine_agent(s, r, w->cta->rank * s->per_cta + w->index, engine);
    t->time = ++s->agent_time[t->agent];
    t->view = race_view_take(w->run, r);
    r->told = true;
    if (t->view == NULL) {
        race_task_free(t);
        return NULL;
    }
    return t;
}

void race_task_release(const race_task *t, race_clock **to)
{
    if (t == NULL) {
        return;
    }
    if (*to == NULL) {
        *to = calloc(1, sizeof **to);
    }
    if (*to == NULL) {
        race_out_of_memory(t->state->run);
        return;
    }
    if (race_clock_join(t->state->run, *to, &t->view->clock)) {
        race_clock_know(t->state, *to, t->agent, t->time);
    }
}

void race_task_join(warp *w, const race_task *t)
{
    if (t == NULL) {
        return;
    }
    race_warp *r = race_warp_of(t->state, w);
    if (race_warp_learn(t->state, r, &t->view->clock)) {
        race_warp_know(t->state, r, t->agent, t->time);
    }
}

void race_task_know(warp *w, const race_task *t)
{
    if (t != NULL) {
        race_warp_know(t->state, race_warp_of(t->state, w), t->agent, t->time);
    }
}

void race_task_free(race_task *t)
{
    if (t != NULL) {
        race_view_drop(t->view);
        race_discharge(t->state->book, sizeof *t);
        free(t);
    }
}
