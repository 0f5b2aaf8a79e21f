/* command_verify.c - `hone verify`: candidates compared with float64 on a device, without a store.
 */
#include "cli/options.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/trial.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEY_BUDGET = 1000, KEY_SEED, KEY_TEMPLATE, KEY_CONFIG };

typedef struct verify {
    options o;
    int64_t budget, seed;
    const char *template_name, *config_text;
    trial_bench bench;
    progress progress;
    json_t *rows; /* NULL: text */
    uint64_t tried, failed;
} verify;

static hone_status parse_own(int key, char *text, void *context, hone_error *error)
{
    verify *v = context;

    switch (key) {
    case KEY_BUDGET:
        return options_number("--budget", text, 0, 1000000, &v->budget, error);
    case KEY_SEED:
        return options_number("--seed", text, 0, INT64_MAX, &v->seed, error);
    case KEY_TEMPLATE:
        v->template_name = text;
        return HONE_OK;
    case KEY_CONFIG:
        v->config_text = text;
        return HONE_OK;
    default:
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "'%s' is no option of verify", text);
    }
}

static void print_row(verify *v, const char *problem, const candidate *c, const char *config_text,
                      const store_result *row)
{
    const char *reason = row->reason != NULL ? row->reason : "";

    if (v->rows != NULL) {
        json_array_append_new(
            v->rows,
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:i}", "problem", problem,
                      "template", manifest_name(c->m), "config", config_text, "outcome",
                      store_outcome_name(row->outcome), "reason", reason, "cosine", row->cosine,
                      "rel_fro", row->rel_fro, "calc_diff", row->calc_diff, "max_err_ratio",
                      row->max_err_ratio, "checked_ctas", (int)row->checked_ctas));
        return;
    }
    progress_clear(&v->progress);
    printf("%-6s %s %s", store_outcome_name(row->outcome), manifest_name(c->m), config_text);
    if (row->outcome == STORE_OK) {
        printf(": %u CTAs, cosine %.9f, rel-F %.2e, diff %.2e, largest error %.2f of its bound\n",
               row->checked_ctas, row->cosine, row->rel_fro, row->calc_diff, row->max_err_ratio);
    } else {
        printf(": %s\n", reason);
    }
}

static hone_status verify_one(verify *v, const hone_problem *problem, const char *text,
                              const candidate *c, hone_error *error)
{
    hone_status status = HONE_OK;
    char config_text[512];
    engine_result *result = calloc(1, sizeof *result);

    if (result == NULL) {
        return status_set(error, HONE_NO_MEMORY, text, 0, "a result");
    }
    TRY(manifest_config_format(c->m, &c->config, config_text, sizeof config_text, error));
    TRY(trial_run(&v->bench, problem, c, result, error));
    print_row(v, text, c, config_text, &result->row);
    v->tried++;
    v->failed += result->row.outcome != STORE_OK;
done:
    free(result);
    return status;
}

/* The candidate that was named, or what the model ranks first. */
static hone_status choose(verify *v, const hone_problem *problem, candidate **out, size_t *len,
                          hone_error *error)
{
    if (v->template_name == NULL) {
        const strategy_problem p = {.templates = v->bench.templates,
                                    .problem = problem,
                                    .gpu = &v->bench.device->gpu,
                                    .budget = (uint64_t)v->budget,
                                    .seed = (uint64_t)v->seed};
        const char *name = v->budget == 0 ? "exhaustive" : "model";
        return strategy_collect(strategy_find(name), &p, out, len, error);
    }
    *out = calloc(1, sizeof **out);
    if (*out == NULL) {
        return status_set(error, HONE_NO_MEMORY, v->template_name, 0, "a candidate");
    }
    *len = 1;
    return trial_name(&v->bench, problem, v->template_name,
                      v->config_text != NULL ? v->config_text : "", *out, error);
}

static hone_status verify_problem(verify *v, const hone_problem *problem, hone_error *error)
{
    hone_status status = HONE_OK;
    candidate *chosen = NULL;
    size_t len = 0;
    char text[512];

    TRY(hone_problem_format(problem, text, sizeof text, error));
    TRY(choose(v, problem, &chosen, &len, error));
    if (v->rows == NULL) {
        printf("%s on %s\n", text, v->bench.device->spec);
    }
    if (len == 0) {
        char why[400];
        templates_refusals(v->bench.templates, problem, &v->bench.device->gpu.facts, why,
                           sizeof why);
        fprintf(stderr, "hone: no template serves %s on %s: %s\n", text, v->bench.device->spec,
                why);
        v->failed++;
    }
    progress_begin(&v->progress);
    for (size_t i = 0; i < len; i++) {
        progress_show(&v->progress, i, len, "candidates", text);
        TRY(verify_one(v, problem, text, &chosen[i], error));
    }
    progress_clear(&v->progress);
done:
    free(chosen);
    return status;
}

static hone_status verify_device(verify *v, const char *spec, const llm_problem *problems,
                                 size_t len, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(trial_open(spec, (uint64_t)v->seed, &v->bench, error));
    for (size_t i = 0; i < len; i++) {
        TRY(verify_problem(v, &problems[i].problem, error));
    }
done:
    trial_close(&v->bench);
    return status;
}

static void print_summary(const verify *v)
{
    if (v->rows != NULL) {
        print_json(v->rows);
        return;
    }
    printf("%llu candidates, %llu not proved\n", (unsigned long long)v->tried,
           (unsigned long long)v->failed);
}

int command_verify(int argc, char **argv)
{
    static const struct argp_option own[] = {
        {"budget", KEY_BUDGET, "N", 0, "candidates of a problem, 0 for every legal one (16)", 0},
        {"seed", KEY_SEED, "N", 0, "of random draws and test data (1)", 0},
        {"template", KEY_TEMPLATE, "NAME", 0, "only this template, with --config", 0},
        {"config", KEY_CONFIG, "TEXT", 0, "its parameters: \"block_m=64 stages=3 ...\"", 0},
        {0},
    };
    static const options_command command = {
        .name = "verify",
        .about = "Compile candidates and compare what they compute with float64 references.",
        .takes = OPTIONS_MODEL | OPTIONS_PROBLEM | OPTIONS_DEVICE | OPTIONS_JSON,
        .own = own,
        .parse_own = parse_own,
    };
    hone_status status = HONE_OK;
    hone_error error = {0};
    verify v = {.budget = 16, .seed = 1};
    llm_problem *problems = NULL;
    size_t len = 0;

    TRY(options_parse(&command, argc, argv, &v.o, &v, &error));
    TRY(options_problems(&v.o, NULL, &problems, &len, &error));
    v.rows = v.o.json ? json_array() : NULL;
    for (size_t i = 0; i < v.o.devices_len; i++) {
        TRY(verify_device(&v, v.o.devices[i], problems, len, &error));
    }
    print_summary(&v);
done:
    json_decref(v.rows);
    free(problems);
    return options_end(&v.o, status, &error, v.failed == 0);
}
