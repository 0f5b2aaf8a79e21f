/* trial.c - one candidate from its names to a verdict and a time. */
#include "cli/print.h"
#include "cli/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hone_status trial_open(const char *device_spec, uint64_t seed, trial_bench *out, hone_error *error)
{
    hone_status status = HONE_OK;

    memset(out, 0, sizeof *out);
    out->seed = seed;
    TRY(templates_open(&out->templates, error));
    TRY(device_describe(device_spec, &out->device, error));
    print_note(out->device->note);
done:
    return status;
}

void trial_close(trial_bench *b)
{
    if (b->engine.state != NULL) {
        b->engine.close(b->engine.state);
    }
    device_close(b->device);
    templates_close(b->templates);
    memset(b, 0, sizeof *b);
}

hone_status trial_name(const trial_bench *b, const hone_problem *problem, const char *template_name,
                       const char *config_text, candidate *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const manifest *m = templates_find(b->templates, template_name);
    candidate made = {.m = m};
    bool good = false;
    char why[160];

    if (m == NULL) {
        return status_set(error, HONE_UNKNOWN, template_name, 0,
                          "no such template; `hone space` lists those that serve a problem");
    }
    TRY(manifest_serves(m, problem, &b->device->gpu.facts, &good, why, error));
    if (good) {
        TRY(manifest_config_parse(m, config_text, &made.config, error));
        TRY(manifest_legal(m, problem, &b->device->gpu.facts, &made.config, &good, why, error));
    }
    if (!good) {
        return status_set(error, HONE_BAD_PROBLEM, template_name, 0, "not legal here: %s", why);
    }
    *out = made;
done:
    return status;
}

static hone_status start_engine(trial_bench *b, hone_error *error)
{
    const engine_options options = {
        .device = b->device, .templates = b->templates, .routing = b->routing};

    return b->engine.state != NULL ? HONE_OK : engine_open_device(&options, &b->engine, error);
}

/* A candidate that did not compile, as a row. */
static void fill_uncompiled(const engine_answer *answer, engine_result *out)
{
    snprintf(out->reason, sizeof out->reason, "%s", answer->reason);
    out->row = (store_result){.outcome = answer->outcome,
                              .reason = out->reason,
                              .compile_ms = answer->compile_ms,
                              .timer = STORE_TIMER_NONE};
}

hone_status trial_run(trial_bench *b, const hone_problem *problem, const candidate *c,
                      engine_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    engine_answer answer = {0};
    plan *launches = calloc(1, sizeof *launches);

    if (launches == NULL) {
        return status_set(error, HONE_NO_MEMORY, manifest_name(c->m), 0, "a plan");
    }
    const engine_trial trial = {
        .problem = problem, .m = c->m, .plan = launches, .config = &c->config, .seed = b->seed};
    TRY(start_engine(b, error));
    TRY(manifest_plan(c->m, problem, &b->device->gpu.facts, &c->config, launches, error));
    TRY(b->engine.submit(b->engine.state, &trial, 1, error));
    TRY(b->engine.wait(b->engine.state, &answer, error));
    if (answer.outcome == STORE_OK) {
        TRY(engine_prove(&b->engine, &trial, &answer, out, error));
    } else {
        fill_uncompiled(&answer, out);
    }
done:
    if (answer.code != NULL) {
        b->engine.discard(b->engine.state, &answer);
    }
    free(launches);
    return status;
}
