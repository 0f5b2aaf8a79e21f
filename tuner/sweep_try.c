/* sweep_try.c - a compiled candidate: proved, timed and committed, or recorded with the reason why
 * not. */
#include "tuner/sweep_state.h"

#include <stdio.h>
#include <string.h>

/* Count a finished candidate and tell what became of it. */
static void tell_outcome(sweep *s, const sweep_task *task, int32_t outcome, const char *reason)
{
    sweep_group *group = &s->groups[task->group];
    char doing[SWEEP_CONFIG_BYTES + 128];

    s->done++;
    s->summary.tried += outcome != STORE_PRUNED;
    s->summary.pruned += outcome == STORE_PRUNED;
    s->summary.ok += outcome == STORE_OK;
    s->summary.rejected += outcome != STORE_OK && outcome != STORE_PRUNED;
    group->proved += outcome == STORE_OK;
    if (outcome != STORE_OK) {
        snprintf(group->reason, sizeof group->reason, "%s: %.180s", store_outcome_name(outcome),
                 reason);
    }
    snprintf(doing, sizeof doing, "%s %s: %s", manifest_name(task->candidate.m),
             store_outcome_name(outcome), task->config);
    sweep_tell(s, task->group, doing);
}

/* Another sweep of the same store has the candidate: its row will be among those that a winner is
 * chosen from. */
static hone_status skip(sweep *s)
{
    s->done++;
    return HONE_OK;
}

hone_status sweep_record(sweep *s, const sweep_task *task, int32_t outcome, const char *reason,
                         hone_error *error)
{
    hone_status status = HONE_OK;
    const engine_answer *answer = &task->answer;
    const store_key key = sweep_key(s, task);
    const store_result row = {.outcome = outcome,
                              .reason = reason,
                              .registers = answer->registers,
                              .shared_bytes = answer->shared_bytes,
                              .spill_bytes = answer->spill_bytes,
                              .local_bytes = answer->local_bytes,
                              .compile_ms = answer->compile_ms,
                              .timer = STORE_TIMER_NONE};

    status = store_candidate_record(s->o->store, s->id, &key, &row, NULL, error);
    if (status == HONE_TAKEN) {
        return skip(s);
    }
    TRY(status);
    TRY(store_flush(s->o->store, error)); /* committed before it is told */
    tell_outcome(s, task, outcome, reason);
done:
    return status;
}

hone_status sweep_prove(sweep *s, sweep_task *task, hone_error *error)
{
    hone_status status = HONE_OK;
    const store_key key = sweep_key(s, task);
    const engine_trial trial = sweep_trial(s, task);
    engine_result *result = s->result;
    int64_t id = 0;

    /* On disk before the launch: a candidate that takes the sweep down is known to the next one. */
    status = store_candidate_begin(s->o->store, s->id, &key, &id, error);
    if (status == HONE_TAKEN) {
        status = skip(s);
        goto done;
    }
    TRY(status);
    memset(result, 0, sizeof *result);
    TRY(s->engine.prove(s->engine.state, &trial, &task->answer, result, error));
    TRY(store_candidate_finish(s->o->store, id, &result->row, error));
    TRY(store_flush(s->o->store, error));
    tell_outcome(s, task, result->row.outcome,
                 result->row.reason != NULL ? result->row.reason : "");
done:
    sweep_task_free(s, task);
    return status;
}

hone_status sweep_try(sweep *s, sweep_task *task, hone_error *error)
{
    hone_status status = HONE_OK;

    if (task->answer.outcome == STORE_OK && task->answer.reason[0] != '\0') {
        sweep_push(&s->groups[task->group].flawed, task);
        return HONE_OK;
    }
    if (task->answer.outcome == STORE_OK) {
        return sweep_prove(s, task, error);
    }
    status = sweep_record(s, task, task->answer.outcome, task->answer.reason, error);
    sweep_task_free(s, task);
    return status;
}
