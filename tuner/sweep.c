/* sweep.c - the loop of a sweep: lay problems out, keep the compilers busy, try what is compiled in
 * order.
 *
 * Answers are used in the order of the tasks, whichever compile ends first, and verdicts in the
 * order in which proofs were begun, so that a sweep tries the same candidates and comes to the same
 * rows and winners with one worker or many. */
#include "tuner/sweep_state.h"

#include "core/moment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void sweep_push(sweep_queue *queue, sweep_task *task)
{
    task->next = NULL;
    if (queue->last != NULL) {
        queue->last->next = task;
    } else {
        queue->first = task;
    }
    queue->last = task;
    queue->len++;
}

sweep_task *sweep_pop(sweep_queue *queue)
{
    sweep_task *task = queue->first;

    if (task != NULL) {
        queue->first = task->next;
        queue->last = queue->first != NULL ? queue->last : NULL;
        queue->len--;
    }
    return task;
}

void sweep_task_free(sweep *s, sweep_task *task)
{
    if (task != NULL) {
        if (task->answered) {
            s->engine.discard(s->engine.state, &task->answer);
        }
        free(task->plan);
        free(task);
    }
}

void sweep_queue_free(sweep *s, sweep_queue *queue)
{
    for (sweep_task *task = sweep_pop(queue); task != NULL; task = sweep_pop(queue)) {
        sweep_task_free(s, task);
    }
}

void sweep_tell(sweep *s, size_t group, const char *doing)
{
    const sweep_progress progress = {s->done, s->total, group + 1, s->o->problems_len, doing};

    if (s->o->progress != NULL && s->o->progress(s->o->context, &progress) != 0) {
        s->cancelled = true;
    }
}

bool sweep_is_spent(const sweep *s)
{
    const sweep_limits *limits = &s->o->limits;
    const double seconds = (double)(moment_ns(CLOCK_MONOTONIC) - s->begun_ns) * 1e-9;

    return (limits->seconds > 0 && seconds >= limits->seconds) ||
           (limits->device_seconds > 0 && s->summary.device_seconds >= limits->device_seconds);
}

hone_status sweep_begin(sweep *s, hone_error *error)
{
    hone_status status = HONE_OK;
    const engine_options options = {.device = s->o->device,
                                    .templates = s->o->templates,
                                    .specs = s->o->specs,
                                    .specs_len = s->o->specs_len,
                                    .jobs = s->o->jobs,
                                    .deadline_ms = s->o->deadline_ms,
                                    .memory_bytes = s->o->memory_bytes,
                                    .context = s->o->engine_context,
                                    .routing = s->o->routing};

    if (s->id != 0) {
        return HONE_OK;
    }
    if (s->engine.state == NULL) {
        TRY(s->o->engine(&options, &s->engine, error));
    }
    const store_sweep row = {s->o->command, s->engine.nvrtc, s->engine.driver, s->o->seed};
    TRY(store_sweep_begin(s->o->store, &row, &s->id, error));
done:
    return status;
}

engine_trial sweep_trial(const sweep *s, const sweep_task *task)
{
    return (engine_trial){s->groups[task->group].problem, task->candidate.m, task->plan,
                          &task->candidate.config, s->o->seed};
}

static hone_status submit(sweep *s, sweep_task *task, hone_error *error)
{
    const engine_trial trial = sweep_trial(s, task);
    hone_status status =
        s->engine.submit(s->engine.state, &trial, (uint64_t)(uintptr_t)task, error);

    if (status == HONE_OK) {
        sweep_push(&s->compiling, task);
    } else {
        sweep_task_free(s, task);
    }
    return status;
}

/* Whether a problem can be laid out: those of a phase wait for the winners of the one before. */
static bool is_next_ready(sweep *s)
{
    const bool idle = s->waiting.len + s->compiling.len + s->proving.len == 0;

    if (s->next_group == s->o->problems_len) {
        return false;
    }
    const uint32_t phase = s->places[s->order[s->next_group]].phase;
    s->phase = idle ? phase : s->phase;
    return s->o->every_size || phase <= s->phase;
}

/* Lay out and submit until the compilers have `ahead` tasks. */
static hone_status feed(sweep *s, size_t ahead, hone_error *error)
{
    hone_status status = HONE_OK;

    while (!s->cancelled && !sweep_is_spent(s) && s->compiling.len < ahead) {
        if (s->waiting.len > 0) {
            TRY(submit(s, sweep_pop(&s->waiting), error));
        } else if (is_next_ready(s)) {
            const size_t group = s->order[s->next_group++];
            sweep_tell(s, group, "ranking configs");
            TRY(sweep_lay_out(s, group, error));
        } else {
            break;
        }
    }
done:
    return status;
}

/* Wait until the oldest task is compiled. Others that end meanwhile keep their answers. */
static hone_status await_first(sweep *s, hone_error *error)
{
    hone_status status = HONE_OK;

    while (!s->compiling.first->answered) {
        engine_answer answer;
        TRY(s->engine.wait(s->engine.state, &answer, error));
        sweep_task *task = (sweep_task *)(uintptr_t)answer.tag;
        task->answer = answer;
        task->answered = true;
    }
done:
    return status;
}

/* A task of the problem is finished. */
static hone_status close_one(sweep *s, size_t group, hone_error *error)
{
    s->groups[group].open--;
    return s->groups[group].open == 0 ? sweep_settle(s, group, error) : HONE_OK;
}

/* One step: a compiled task goes to an idle lane, or the proof that was begun first is finished. */
static hone_status step(sweep *s, hone_error *error)
{
    hone_status status = HONE_OK;
    size_t group = 0;
    bool begun = false;

    if (s->compiling.len > 0 && sweep_has_idle_lane(s)) {
        TRY(await_first(s, error));
        sweep_task *task = sweep_pop(&s->compiling);
        group = task->group;
        TRY(sweep_try(s, task, &begun, error));
    } else {
        TRY(sweep_finish_first(s, &group, error));
    }
    if (!begun) {
        TRY(close_one(s, group, error));
    }
done:
    return status;
}

static hone_status run(sweep *s, hone_error *error)
{
    hone_status status = HONE_OK;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t jobs = s->o->jobs > 0 ? (size_t)s->o->jobs : cores > 0 ? (size_t)cores : 1;

    TRY(families_order(s->o->problems, s->o->problems_len, s->places, s->order, error));
    TRY(sweep_recall(s, error));
    for (;;) {
        /* Twice as many as workers, so that none waits while a candidate is proved. */
        TRY(feed(s, 2 * jobs + 2, error));
        if ((s->compiling.len == 0 && s->proving.len == 0) || s->cancelled || sweep_is_spent(s)) {
            break;
        }
        TRY(step(s, error));
    }
    while (s->proving.len > 0) { /* stopped: what is under way is finished all the same */
        size_t group = 0;
        TRY(sweep_finish_first(s, &group, error));
        TRY(close_one(s, group, error));
    }
    if (!s->cancelled) {
        TRY(sweep_cut_short(s, error));
    }
done:
    return status;
}

/* What is finished becomes a generation, also after a stop: it is proved. Nothing new makes none,
 * but a sweep that was killed before this point left winners that are not packed yet. */
static hone_status finish(sweep *s, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(store_flush(s->o->store, error));
    TRY(store_pack(s->o->store, &s->summary.generation, error));
    if (s->id != 0 && !s->cancelled && s->summary.unfinished == 0) {
        TRY(store_sweep_end(s->o->store, s->id, error));
    }
done:
    return status;
}

static void close_all(sweep *s)
{
    for (size_t i = 0; s->groups != NULL && i < s->o->problems_len; i++) {
        sweep_queue_free(s, &s->groups[i].flawed);
    }
    sweep_queue_free(s, &s->proving);
    sweep_queue_free(s, &s->compiling);
    sweep_queue_free(s, &s->waiting);
    if (s->engine.state != NULL) {
        s->engine.close(s->engine.state);
    }
    candidate_set_free(&s->known);
    free(s->groups);
    free(s->places);
    free(s->order);
    free(s->result);
}

hone_status sweep_run(const sweep_options *options, sweep_summary *out, hone_error *error)
{
    hone_status status = HONE_OK;
    sweep s = {.o = options,
               .summary.problems = options->problems_len,
               .begun_ns = moment_ns(CLOCK_MONOTONIC)};

    s.groups = calloc(options->problems_len + 1, sizeof *s.groups);
    s.places = calloc(options->problems_len + 1, sizeof *s.places);
    s.order = calloc(options->problems_len + 1, sizeof *s.order);
    s.result = calloc(1, sizeof *s.result);
    if (s.groups == NULL || s.places == NULL || s.order == NULL || s.result == NULL) {
        status =
            status_set(error, HONE_NO_MEMORY, "sweep", 0, "%zu problems", options->problems_len);
        goto done;
    }
    for (size_t i = 0; i < options->problems_len; i++) {
        TRY(routing_check(options->routing, &options->problems[i], error));
    }
    TRY(run(&s, error));
    TRY(finish(&s, error));
    if (s.engine.restarts != NULL) {
        s.summary.restarts = s.engine.restarts(s.engine.state);
    }
    *out = s.summary;
    if (s.cancelled) {
        status = status_set(error, HONE_CANCELLED, "sweep", 0,
                            "stopped; the same command goes on from here");
    }
done:
    close_all(&s);
    return status;
}
