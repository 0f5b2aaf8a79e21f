/* trial.h - candidates tried one at a time, outside a sweep: what `hone verify` and `hone bench`
 * share. */
#ifndef HONE_CLI_TRIAL_H
#define HONE_CLI_TRIAL_H

#include "tuner/engine.h"
#include "tuner/strategy.h"

typedef struct trial_bench {
    templates *templates;
    device *device;
    engine engine; /* `state` is NULL until the first trial */
    uint64_t seed;
    const routing *routing; /* of rows that are timed, borrowed; NULL: balanced. Set before the
                               first trial */
} trial_bench;

/* Open the templates and a device; its note is printed on stderr. Close with trial_close, also
 * after a failure. */
hone_status trial_open(const char *device_spec, uint64_t seed, trial_bench *out, hone_error *error);
void trial_close(trial_bench *b);

/* The candidate that two texts name. HONE_UNKNOWN for a template, HONE_BAD_TEXT for a config,
 * HONE_BAD_PROBLEM for one that is not legal here. */
hone_status trial_name(const trial_bench *b, const hone_problem *problem, const char *template_name,
                       const char *config_text, candidate *out, hone_error *error);

/* Compile, prove and time one. The verdict is in out->row, whatever it is. */
hone_status trial_run(trial_bench *b, const hone_problem *problem, const candidate *c,
                      engine_result *out, hone_error *error);

#endif
