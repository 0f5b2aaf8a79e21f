/* sweep_try.c - a compiled candidate: proved, timed and committed, or recorded with the reason why
 * not. */
#include "runtime/plan_work.h"
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

bool sweep_has_idle_lane(const sweep *s)
{
    /* Before the engine is open there is nothing to prove. */
    return s->engine.lanes == 0 ||
           (s->lanes & ((1ull << s->engine.lanes) - 1)) != (1ull << s->engine.lanes) - 1;
}

static size_t take_lane(sweep *s)
{
    size_t lane = 0;

    while (s->lanes >> lane & 1) {
        lane++;
    }
    s->lanes |= 1ull << lane;
    return lane;
}

/* Write the in-flight row and start on an idle lane. *begun false: another sweep has the candidate,
 * and the task is gone. */
static hone_status begin(sweep *s, sweep_task *task, bool *begun, hone_error *error)
{
    hone_status status = HONE_OK;
    const store_key key = sweep_key(s, task);

    *begun = false;
    /* On disk before the launch: a candidate that takes the sweep down is known to the next one. */
    status = store_candidate_begin(s->o->store, s->id, &key, &task->row, error);
    if (status == HONE_TAKEN) {
        status = skip(s);
        goto done;
    }
    TRY(status);
    task->trial = sweep_trial(s, task);
    task->lane = take_lane(s);
    TRY(s->engine.start(s->engine.state, task->lane, &task->trial, &task->answer, error));
    *begun = true;
done:
    if (!*begun) {
        sweep_task_free(s, task);
    }
    return status;
}

/* Wait for its proof and commit it. Takes the task. */
static hone_status finish(sweep *s, sweep_task *task, hone_error *error)
{
    hone_status status = HONE_OK;
    engine_result *result = s->result;

    memset(result, 0, sizeof *result);
    TRY(s->engine.finish(s->engine.state, task->lane, result, error));
    s->lanes &= ~(1ull << task->lane);
    s->summary.device_seconds += result->proof_ms * 1e-3;
    sweep_note_best(s, &s->groups[task->group], &result->row);
    TRY(store_candidate_finish(s->o->store, task->row, &result->row, error));
    TRY(store_flush(s->o->store, error));
    tell_outcome(s, task, result->row.outcome,
                 result->row.reason != NULL ? result->row.reason : "");
done:
    sweep_task_free(s, task);
    return status;
}

hone_status sweep_prove_now(sweep *s, sweep_task *task, hone_error *error)
{
    bool begun = false;
    hone_status status = begin(s, task, &begun, error);

    return begun ? finish(s, task, error) : status;
}

hone_status sweep_finish_first(sweep *s, size_t *group, hone_error *error)
{
    sweep_task *task = sweep_pop(&s->proving);

    *group = task->group;
    return finish(s, task, error);
}

void sweep_note_best(const sweep *s, sweep_group *group, const store_result *row)
{
    const double percent = s->o->limits.roof_percent;

    if (row->outcome != STORE_OK || row->time_ns <= 0) {
        return;
    }
    group->best_ns =
        group->best_ns == 0 || row->time_ns < group->best_ns ? row->time_ns : group->best_ns;
    group->at_roof =
        group->at_roof || (percent > 0 && 100 * row->roof_ns >= percent * row->time_ns);
}

/* A rate that boosts above its description must not make a bound a lie. */
#define BOUND_SHARE 0.9

/* Whether its multiply-adds, padding too, or the problem's bytes alone take longer than the best
 * candidate in all. */
static bool is_beaten(const sweep *s, const sweep_task *task)
{
    const sweep_group *group = &s->groups[task->group];
    const plan_launch *l = plan_work_main(task->plan);
    perf_work work;
    perf_answer answer;

    if (group->best_ns == 0 || routing_matters(group->problem)) {
        return false; /* the estimate takes rows of its own for given */
    }
    plan_work_estimate(task->plan, l, group->problem, &work);
    if (perf_predict(&s->o->device->gpu, &work, &answer, NULL) != HONE_OK) {
        return false;
    }
    const double tensor = answer.term_ns[PERF_TENSOR], dram = answer.term_ns[PERF_DRAM];
    return BOUND_SHARE * (tensor > dram ? tensor : dram) > group->best_ns;
}

/* Why a compiled candidate is not worth its proof, or NULL. */
static const char *spare(const sweep *s, const sweep_task *task)
{
    if (s->groups[task->group].at_roof) {
        return "the best is at the roof already";
    }
    return is_beaten(s, task) ? "cannot win: its multiply-adds or bytes alone take longer than the "
                                "best"
                              : NULL;
}

hone_status sweep_try(sweep *s, sweep_task *task, bool *begun, hone_error *error)
{
    hone_status status = HONE_OK;
    const char *why = NULL;

    *begun = false;
    if (task->answer.outcome == STORE_OK && !task->must && (why = spare(s, task)) != NULL) {
        status = sweep_record(s, task, STORE_PRUNED, why, error);
        sweep_task_free(s, task);
        return status;
    }
    if (task->answer.outcome == STORE_OK && task->answer.reason[0] != '\0') {
        sweep_push(&s->groups[task->group].flawed, task);
        return HONE_OK;
    }
    if (task->answer.outcome == STORE_OK) {
        TRY(begin(s, task, begun, error));
        if (*begun) {
            sweep_push(&s->proving, task);
        }
        return HONE_OK;
    }
    status = sweep_record(s, task, task->answer.outcome, task->answer.reason, error);
    sweep_task_free(s, task);
done:
    return status;
}
