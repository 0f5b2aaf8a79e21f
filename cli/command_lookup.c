/* command_lookup.c - `hone lookup`: what serving would be given for a problem, and where the answer
 * comes from. */
#include "cli/options.h"
#include "cli/print.h"

#include "cache/store.h"
#include "runtime/serving.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_STRICT = 1000, KEY_ALLOW_MODELLED };

typedef struct lookup_options {
    bool strict, allow_modelled;
} lookup_options;

static const struct argp_option own_options[] = {
    {"strict", KEY_STRICT, NULL, 0, "answer only with a winner for exactly the problem", 0},
    {"allow-modelled", KEY_ALLOW_MODELLED, NULL, 0,
     "serve winners whose times were modelled on a CUDA device", 0},
    {0},
};

static const char *const provenances[] = {
    [HONE_FROM_EXACT] = "exact",
    [HONE_FROM_BUCKET] = "bucket",
    [HONE_FROM_NEAR] = "near",
    [HONE_FROM_DEFAULT] = "default",
};

static const char *const grades[] = {
    [HONE_GRADE_CURRENT] = "current",
    [HONE_GRADE_SUSPECT] = "suspect",
    [HONE_GRADE_STALE] = "stale",
};

static hone_status parse_own(int key, char *text, void *context, hone_error *error)
{
    lookup_options *o = context;

    o->strict = o->strict || key == KEY_STRICT;
    o->allow_modelled = o->allow_modelled || key == KEY_ALLOW_MODELLED;
    return key == KEY_STRICT || key == KEY_ALLOW_MODELLED
               ? HONE_OK
               : status_set(error, HONE_BAD_ARGUMENT, text, 0, "lookup takes no such argument");
}

/* The condition that the served winner was measured under, which a generation does not hold: of the
 * store's row, as long as that is the same candidate. */
typedef struct condition {
    uint64_t winner;
    const char *template_name, *config;
    char tokens[128]; /* "": not known */
} condition;

/* A stored text without what must not reach a terminal. */
static void copy_neutral(char *to, size_t capacity, const char *text)
{
    snprintf(to, capacity, "%s", text);
    for (char *at = to; *at != '\0'; at++) {
        *at = *at >= 0x20 && *at < 0x7f ? *at : '?';
    }
}

static int take_condition(void *context, const store_winner *winner)
{
    condition *c = context;
    const bool same = winner->id == c->winner &&
                      strcmp(winner->row.template_name, c->template_name) == 0 &&
                      strcmp(winner->row.config, c->config) == 0;

    if (same) {
        copy_neutral(c->tokens, sizeof c->tokens, winner->row.result.tokens);
    }
    return same;
}

static void print_text(const char *problem_text, const hone_choice *c, const char *template_name,
                       const char *config_text, const char *tokens)
{
    printf("%s\n  %s: %s %s\n", problem_text, provenances[c->provenance], template_name,
           config_text);
    if (c->winner != 0) {
        printf("  winner %llu, %.2f us (%s), %s\n", (unsigned long long)c->winner,
               c->time_ns * 1e-3, c->modelled ? "modelled" : "measured", grades[c->grade]);
    }
    if (tokens[0] != '\0' && strncmp(problem_text, "moe_gemm:", 9) == 0) {
        printf("  tokens %s\n", tokens);
    }
    if (c->workspace_bytes > 0) {
        printf("  workspace %llu B\n", (unsigned long long)c->workspace_bytes);
    }
}

static json_t *to_json(const char *problem_text, const char *spec, const hone_choice *c,
                       const char *template_name, const char *config_text, const char *tokens)
{
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "problem", problem_text, "device", spec,
                  "provenance", provenances[c->provenance], "template", template_name, "config",
                  config_text, "workspace_bytes", (json_int_t)c->workspace_bytes);

    if (c->winner != 0) {
        json_object_set_new(row, "winner", json_integer((json_int_t)c->winner));
        json_object_set_new(row, "time_ns", json_real(c->time_ns));
        json_object_set_new(row, "modelled", json_boolean(c->modelled));
        json_object_set_new(row, "grade", json_string(grades[c->grade]));
        json_object_set_new(row, "tokens", json_string(tokens));
    }
    return row;
}

static hone_status look_up(hone_runtime *rt, store *winners, const hone_problem *problem,
                           json_t *rows, hone_error *error)
{
    hone_status status = HONE_OK;
    char problem_text[512], config_text[1024] = "";
    hone_choice choice;

    TRY(hone_prepare(rt, problem, 1, NULL, NULL, error));
    TRY(hone_lookup(rt, problem, &choice, error));
    const served *s = choice.kernel;
    TRY(hone_problem_format(problem, problem_text, sizeof problem_text, error));
    if (s->m != NULL) {
        TRY(manifest_config_format(s->m, &s->config, config_text, sizeof config_text, error));
    }
    const char *name = s->m != NULL ? manifest_name(s->m) : "nothing to launch";
    condition measured = {choice.winner, name, config_text, ""};
    if (winners != NULL && choice.winner != 0) {
        TRY(store_winners(winners, NULL, take_condition, &measured, error));
    }
    if (rows != NULL) {
        json_array_append_new(rows, to_json(problem_text, rt->device->spec, &choice, name,
                                            config_text, measured.tokens));
    } else {
        print_text(problem_text, &choice, name, config_text, measured.tokens);
    }
done:
    return status;
}

static hone_status look_up_all(const options *o, const lookup_options *own, json_t *rows,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_options serving = {
        .size = sizeof serving, .strict = own->strict, .allow_modelled = own->allow_modelled};
    llm_problem *problems = NULL;
    hone_runtime *rt = NULL;
    store *winners = NULL;
    char path[1024];
    size_t len = 0;

    TRY(options_problems(o, NULL, &problems, &len, error));
    TRY(options_store_path(o, path, sizeof path, error));
    if (store_open(path, STORE_READ, &winners, NULL) != HONE_OK) {
        winners = NULL; /* hone_open says what is wrong, or serves without */
    }
    for (size_t i = 0; i < o->devices_len; i++) {
        TRY(hone_open(path, o->devices[i], &serving, &rt, error));
        print_note(rt->device->note);
        for (size_t p = 0; p < len; p++) {
            TRY(look_up(rt, winners, &problems[p].problem, rows, error));
        }
        hone_close(rt);
        rt = NULL;
    }
done:
    store_close(winners, NULL);
    hone_close(rt);
    free(problems);
    return status;
}

int command_lookup(int argc, char **argv)
{
    static const options_command command = {
        .name = "lookup",
        .about = "Print what serving would launch for a problem on a device: the stored winner, "
                 "one of another size, or "
                 "the analytical choice. Exit 1 when nothing answers.",
        .takes = OPTIONS_MODEL | OPTIONS_PROBLEM | OPTIONS_DEVICE | OPTIONS_STORE | OPTIONS_JSON,
        .own = own_options,
        .parse_own = parse_own,
    };
    hone_status status = HONE_OK;
    hone_error error = {0};
    options o = {0};
    lookup_options own = {.strict = false};
    json_t *rows = NULL;

    TRY(options_parse(&command, argc, argv, &o, &own, &error));
    rows = o.json ? json_array() : NULL;
    TRY(look_up_all(&o, &own, rows, &error));
    print_json(rows);
done:
    json_decref(rows);
    return options_end(&o, status, &error, true);
}
