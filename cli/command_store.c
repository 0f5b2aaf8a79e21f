/* command_store.c - `hone store`: counts and health of a store, its candidates one by one, and
 * files of them. */
#include "cli/options.h"
#include "cli/print.h"
#include "cli/store_files.h"

#include "cache/store.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum action { ACTION_CHECK, ACTION_LIST, ACTION_EXPORT, ACTION_IMPORT } action;

typedef struct wishes {
    action what;
    bool said;           /* what */
    const char *outcome; /* NULL: any */
    store_files files;
} wishes;

enum { KEY_OUTCOME = 1000, KEY_FORMAT, KEY_TEMPLATE, KEY_DRY_RUN, KEY_MODELLED, KEY_OUTPUT = 'o' };

/* A plain argument: first what to do, then import's files. */
static hone_status parse_argument(wishes *w, const char *text, hone_error *error)
{
    static const char *const actions[] = {"check", "list", "export", "import"};
    const char **grown = NULL;

    for (size_t i = 0; i < ARRAY_LEN(actions) && !w->said; i++) {
        if (strcmp(text, actions[i]) == 0) {
            w->what = (action)i;
            w->said = true;
            return HONE_OK;
        }
    }
    if (w->what != ACTION_IMPORT) {
        return status_set(error, HONE_BAD_ARGUMENT, "store", 0,
                          w->said ? "takes no plain argument, '%s'"
                                  : "no action '%s'; there are check and list, export and import",
                          text);
    }
    grown = realloc(w->files.files, (w->files.files_len + 1) * sizeof *grown);
    if (grown == NULL) {
        return status_set(error, HONE_NO_MEMORY, text, 0, "a list of files");
    }
    w->files.files = grown;
    grown[w->files.files_len++] = text;
    return HONE_OK;
}

static hone_status parse_own(int key, char *text, void *context, hone_error *error)
{
    wishes *w = context;

    switch (key) {
    case KEY_OUTCOME:
        w->outcome = text;
        return HONE_OK;
    case KEY_FORMAT:
        w->files.format = text;
        return HONE_OK;
    case KEY_OUTPUT:
        w->files.output = text;
        return HONE_OK;
    case KEY_TEMPLATE:
        w->files.template_name = text;
        return HONE_OK;
    case KEY_DRY_RUN:
        w->files.dry_run = true;
        return HONE_OK;
    case KEY_MODELLED:
        w->files.allow_modelled = true;
        return HONE_OK;
    default:
        return parse_argument(w, text, error);
    }
}

/* Print what the store holds; a damaged one is said to be so and fails the check. */
static hone_status check(store *s, bool as_json, bool *healthy, hone_error *error)
{
    store_health h;
    hone_status status = store_check(s, &h, error);

    if (status != HONE_OK) {
        return status;
    }
    *healthy = h.intact && h.quarantined == 0;
    if (as_json) {
        json_t *root =
            json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "store", store_path(s),
                      "sweeps", (json_int_t)h.sweeps, "problems", (json_int_t)h.problems, "devices",
                      (json_int_t)h.devices, "candidates", (json_int_t)h.candidates, "winners",
                      (json_int_t)h.winners, "generation", (json_int_t)h.generation, "quarantined",
                      (json_int_t)h.quarantined, "intact", h.intact);
        print_json(root);
        json_decref(root);
        return HONE_OK;
    }
    printf(
        "%s: %llu sweeps, %llu problems, %llu devices, %llu candidates, %llu winners, generation "
        "%llu\n",
        store_path(s), (unsigned long long)h.sweeps, (unsigned long long)h.problems,
        (unsigned long long)h.devices, (unsigned long long)h.candidates,
        (unsigned long long)h.winners, (unsigned long long)h.generation);
    if (*healthy) {
        puts("every row matches its digest");
    } else {
        printf("DAMAGED: %llu rows do not match their digests and are never served%s\n",
               (unsigned long long)h.quarantined,
               h.intact ? "" : "; SQLite finds the file corrupt");
    }
    return HONE_OK;
}

static int print_candidate(void *context, const store_row *row)
{
    json_t *list = context;
    const store_result *result = &row->result;

    if (list != NULL) {
        json_array_append_new(
            list, json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:s, s:i, s:i}", "id",
                            (json_int_t)row->id, "problem", row->problem_text, "device",
                            row->kind->name, "template", row->template_name, "config", row->config,
                            "outcome", store_outcome_name(result->outcome), "reason",
                            result->reason != NULL ? result->reason : "", "time_ns",
                            result->time_ns, "timer", store_timer_name(result->timer), "registers",
                            (int)result->registers, "spill_bytes", (int)result->spill_bytes));
        return 0;
    }
    printf("%lld %s %s %s %s: %s", (long long)row->id, row->kind->name, row->problem_text,
           row->template_name, row->config, store_outcome_name(result->outcome));
    if (result->outcome == STORE_OK) {
        printf(" %.2f us (%s)\n", result->time_ns * 1e-3, store_timer_name(result->timer));
    } else {
        printf(" %s\n", result->reason != NULL ? result->reason : "");
    }
    return 0;
}

static hone_status list(store *s, const options *o, const wishes *w, hone_error *error)
{
    store_filter filter = {0};

    if (w->outcome != NULL) {
        filter.outcome = store_outcome_parse(w->outcome);
        if (filter.outcome == 0) {
            return status_set(error, HONE_BAD_ARGUMENT, "--outcome", 0,
                              "no outcome '%s'; try ok, wrong, compile, fault, pruned", w->outcome);
        }
    }
    json_t *rows = o->json ? json_array() : NULL;
    hone_status status = store_candidates(s, &filter, print_candidate, rows, error);
    if (status == HONE_OK && rows != NULL) {
        print_json(rows);
    }
    json_decref(rows);
    return status;
}

/* An action other than export and import. */
static hone_status look(const options *o, const wishes *w, const char *path, bool *healthy,
                        hone_error *error)
{
    hone_status status = HONE_OK;
    store *s = NULL;

    TRY(store_open(path, STORE_READ, &s, error));
    if (w->what == ACTION_LIST) {
        TRY(list(s, o, w, error));
    } else {
        TRY(check(s, o->json, healthy, error));
    }
done:
    store_close(s, NULL);
    return status;
}

int command_store(int argc, char **argv)
{
    static const struct argp_option own[] = {
        {"outcome", KEY_OUTCOME, "NAME", 0, "list only these: ok, wrong, compile, ...", 0},
        {"format", KEY_FORMAT, "NAME", 0, "of files: " STORE_FILES_FORMATS ", " STORE_FILES_ENGINES,
         0},
        {"output", KEY_OUTPUT, "PATH", 0,
         "export into this folder, or one file NAME.json; import: where an engine's seeds go", 0},
        {"template", KEY_TEMPLATE, "NAME", 0,
         "import: the template of a file that does not say it; its problem and device are told by "
         "--problem and --device",
         0},
        {"allow-modelled", KEY_MODELLED, NULL, 0,
         "export for engines: winners whose times are modelled, too", 0},
        {"dry-run", KEY_DRY_RUN, NULL, 0, "import: only say what would be taken", 0},
        {0},
    };
    static const options_command command = {
        .name = "store",
        .arguments = "[check|list|export|import FILE...]",
        .about =
            "Show what a store holds and whether it is whole (check), or its candidates (list); "
            "write them as files of other tuners (export), or read such files (import).",
        .takes = OPTIONS_STORE | OPTIONS_JSON | OPTIONS_DEVICE | OPTIONS_PROBLEM,
        .own = own,
        .parse_own = parse_own,
    };
    hone_status status = HONE_OK;
    hone_error error = {0};
    options o = {0};
    wishes w = {0};
    bool healthy = true;
    char path[512];

    TRY(options_parse(&command, argc, argv, &o, &w, &error));
    TRY(options_store_path(&o, path, sizeof path, &error));
    switch (w.what) {
    case ACTION_EXPORT:
        TRY(store_files_export(&w.files, &o, path, &error));
        break;
    case ACTION_IMPORT:
        TRY(store_files_import(&w.files, &o, path, &error));
        break;
    default:
        TRY(look(&o, &w, path, &healthy, &error));
    }
done:
    free(w.files.files);
    return options_end(&o, status, &error, healthy);
}
