/* command_bench.c - `hone bench`: the time of one candidate of a problem, proved first, with its
 * samples.
 *
 * Which one: --template and --config; else the store's winner on this device; else the analytical
 * default. */
#include "cli/options.h"
#include "cli/print.h"
#include "cli/trial.h"

#include "bench/stats.h"
#include "runtime/default.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_TEMPLATE = 1000, KEY_CONFIG, KEY_SEED };

typedef struct bench {
    options o;
    const char *template_name, *config_text;
    int64_t seed;
    trial_bench trial;
    store *store; /* NULL: there is none */
    json_t *rows; /* NULL: text */
    uint64_t failed;
} bench;

static hone_status parse_own(int key, char *text, void *context, hone_error *error)
{
    bench *b = context;

    switch (key) {
    case KEY_TEMPLATE:
        b->template_name = text;
        return HONE_OK;
    case KEY_CONFIG:
        b->config_text = text;
        return HONE_OK;
    case KEY_SEED:
        return options_number("--seed", text, 0, INT64_MAX, &b->seed, error);
    default:
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "'%s' is no option of bench", text);
    }
}

/* A winner of this problem on this device kind, by the texts of both. */
typedef struct search {
    const bench *bench;
    const char *problem;
    candidate *out;
    hone_status status;
    bool found;
} search;

static int take_winner(void *context, const store_winner *winner)
{
    search *s = context;
    const store_row *row = &winner->row;
    const device_kind *kind = &s->bench->trial.device->kind;
    hone_problem problem;

    if (strcmp(row->problem_text, s->problem) != 0 || row->kind->emulated != kind->emulated ||
        device_kind_match(row->kind, kind) != DEVICE_SAME ||
        hone_problem_parse(row->problem_text, &problem, NULL) != HONE_OK) {
        return 0;
    }
    /* A config that today's manifest refuses is no winner any more. */
    s->found = trial_name(&s->bench->trial, &problem, row->template_name, row->config, s->out,
                          NULL) == HONE_OK;
    return s->found;
}

static hone_status choose(bench *b, const hone_problem *problem, const char *text, candidate *out,
                          const char **which, hone_error *error)
{
    hone_status status = HONE_OK;
    search s = {.bench = b, .problem = text, .out = out};
    default_choice first;
    size_t count = 0;

    if (b->template_name != NULL) {
        *which = "named";
        return trial_name(&b->trial, problem, b->template_name,
                          b->config_text != NULL ? b->config_text : "", out, error);
    }
    if (b->store != NULL) {
        TRY(store_winners(b->store, NULL, take_winner, &s, error));
    }
    if (s.found) {
        *which = "winner";
        return HONE_OK;
    }
    TRY(default_rank(b->trial.templates, problem, &b->trial.device->gpu, 0, &first, 1, &count, NULL,
                     error));
    if (count == 0) {
        char why[400];
        templates_refusals(b->trial.templates, problem, &b->trial.device->gpu.facts, why,
                           sizeof why);
        return status_set(error, HONE_NOT_FOUND, text, 0, "no template serves it on %s: %s",
                          b->trial.device->spec, why);
    }
    *out = (candidate){.m = first.m, .config = first.config};
    *which = "default";
done:
    return status;
}

static double rate(double amount, double ns)
{
    return ns > 0 ? amount / ns : 0;
}

static void print_row(bench *b, const char *problem, const char *which, const candidate *c,
                      const char *config_text, const store_result *row)
{
    const bool is_routed = strncmp(problem, "moe_gemm:", 9) == 0;
    double median = row->samples_len > 0 ? stats_median(row->samples_ns, row->samples_len) : 0;

    if (b->rows != NULL) {
        json_t *samples = json_array();
        for (size_t i = 0; i < row->samples_len; i++) {
            json_array_append_new(samples, json_real(row->samples_ns[i]));
        }
        json_array_append_new(
            b->rows,
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:f, s:f, s:f, s:f, s:s, s:s, s:o}",
                      "problem", problem, "which", which, "template", manifest_name(c->m), "config",
                      config_text, "outcome", store_outcome_name(row->outcome), "reason",
                      row->reason != NULL ? row->reason : "", "timer", store_timer_name(row->timer),
                      "modelled", row->timer == STORE_TIMER_MODELLED, "time_ns", row->time_ns,
                      "tflops", rate(row->flop, row->time_ns) * 1e-3, "gbytes_per_s",
                      rate(row->bytes, row->time_ns), "roof_percent",
                      100 * rate(row->roof_ns, row->time_ns), "bound",
                      row->bound != NULL ? row->bound : "", "tokens",
                      row->tokens != NULL ? row->tokens : "", "samples_ns", samples));
        return;
    }
    printf("%s\n  %s: %s %s\n", problem, which, manifest_name(c->m), config_text);
    if (row->outcome != STORE_OK) {
        printf("  not timed, %s: %s\n", store_outcome_name(row->outcome), row->reason);
        return;
    }
    printf("  %.3f us (%s, %zu samples, median %.3f us), %.1f TFLOP/s, %.1f GB/s, %.1f%% of roof, "
           "%s\n",
           row->time_ns * 1e-3, store_timer_name(row->timer), row->samples_len, median * 1e-3,
           rate(row->flop, row->time_ns) * 1e-3, rate(row->bytes, row->time_ns),
           100 * rate(row->roof_ns, row->time_ns), row->bound != NULL ? row->bound : "");
    if (is_routed) {
        printf("  tokens %s\n", row->tokens);
    }
}

static hone_status bench_problem(bench *b, const hone_problem *problem, hone_error *error)
{
    hone_status status = HONE_OK;
    candidate chosen;
    const char *which = "";
    char text[512], config_text[512];
    engine_result *result = calloc(1, sizeof *result);

    if (result == NULL) {
        return status_set(error, HONE_NO_MEMORY, "bench", 0, "a result");
    }
    TRY(hone_problem_format(problem, text, sizeof text, error));
    TRY(choose(b, problem, text, &chosen, &which, error));
    TRY(manifest_config_format(chosen.m, &chosen.config, config_text, sizeof config_text, error));
    TRY(trial_run(&b->trial, problem, &chosen, result, error));
    print_row(b, text, which, &chosen, config_text, &result->row);
    b->failed += result->row.outcome != STORE_OK;
done:
    free(result);
    return status;
}

/* The store is optional: without one the analytical default is timed. */
static hone_status open_store(bench *b, hone_error *error)
{
    char path[4096];
    hone_status status = options_store_path(&b->o, path, sizeof path, error);

    if (status == HONE_OK) {
        status = store_open(path, STORE_READ, &b->store, error);
    }
    return b->o.store == NULL ? HONE_OK : status;
}

static hone_status bench_device(bench *b, const char *spec, const llm_problem *problems, size_t len,
                                hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(trial_open(spec, (uint64_t)b->seed, &b->trial, error));
    b->trial.routing = &b->o.routing;
    for (size_t i = 0; i < len; i++) {
        TRY(bench_problem(b, &problems[i].problem, error));
    }
done:
    trial_close(&b->trial);
    return status;
}

int command_bench(int argc, char **argv)
{
    static const struct argp_option own[] = {
        {"template", KEY_TEMPLATE, "NAME", 0, "time this template, with --config", 0},
        {"config", KEY_CONFIG, "TEXT", 0, "its parameters: \"block_m=64 stages=3 ...\"", 0},
        {"seed", KEY_SEED, "N", 0, "of the test data (1)", 0},
        {0},
    };
    static const options_command command = {
        .name = "bench",
        .about = "Prove and time one candidate of each problem: the named one, else the store's "
                 "winner, else the analytical default.",
        .takes = OPTIONS_MODEL | OPTIONS_PROBLEM | OPTIONS_DEVICE | OPTIONS_STORE | OPTIONS_JSON |
                 OPTIONS_ROUTING,
        .own = own,
        .parse_own = parse_own,
    };
    hone_status status = HONE_OK;
    hone_error error = {0};
    bench b = {.seed = 1};
    llm_problem *problems = NULL;
    size_t len = 0;

    TRY(options_parse(&command, argc, argv, &b.o, &b, &error));
    TRY(options_problems(&b.o, NULL, &problems, &len, &error));
    TRY(open_store(&b, &error));
    b.rows = b.o.json ? json_array() : NULL;
    for (size_t i = 0; i < b.o.devices_len; i++) {
        TRY(bench_device(&b, b.o.devices[i], problems, len, &error));
    }
    print_json(b.rows);
done:
    json_decref(b.rows);
    store_close(b.store, NULL);
    free(problems);
    return options_end(&b.o, status, &error, b.failed == 0);
}
