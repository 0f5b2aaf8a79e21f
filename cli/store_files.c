/* store_files.c - which rows go to which files, which files come in, and what is said about it. */
#include "cli/store_files.h"
#include "cli/print.h"

#include "exchange/engine.h"
#include "exchange/exchange.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static hone_status format_of(const store_files *f, exchange_format *out, hone_error *error)
{
    const char *name = f->format != NULL ? f->format : "";

    *out = strcmp(name, "cachefile") == 0 ? EXCHANGE_CACHEFILE
           : strcmp(name, "t4") == 0      ? EXCHANGE_T4
                                          : 0;
    return *out != 0 ? HONE_OK
                     : status_set(error, HONE_BAD_ARGUMENT, "--format", 0,
                                  "no format '%s'; there are " STORE_FILES_FORMATS
                                  ", " STORE_FILES_ENGINES,
                                  name);
}

static bool is_engine(const store_files *f)
{
    return f->format != NULL &&
           (strcmp(f->format, "vllm") == 0 || strcmp(f->format, "sglang") == 0);
}

/* What --device and --problem name. */
typedef struct wanted {
    device_kind kind;
    bool has_kind;
    hone_problem *problems; /* owned */
    size_t problems_len;
} wanted;

static hone_status read_wanted(const options *o, wanted *w, hone_error *error)
{
    hone_status status = HONE_OK;
    llm_problem *list = NULL;

    w->has_kind = strcmp(o->devices[0], "auto") != 0;
    if (w->has_kind) {
        TRY(options_device_kind(o->devices[0], &w->kind, error));
    }
    if (o->problems_len > 0 || o->from != NULL) {
        TRY(options_problems(o, NULL, &list, &w->problems_len, error));
        w->problems = calloc(w->problems_len + 1, sizeof *w->problems);
        if (w->problems == NULL) {
            status =
                status_set(error, HONE_NO_MEMORY, "--problem", 0, "%zu of them", w->problems_len);
            goto done;
        }
        for (size_t i = 0; i < w->problems_len; i++) {
            w->problems[i] = list[i].problem;
        }
    }
done:
    free(list);
    return status;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t len = strlen(text), end_len = strlen(end);

    return len > end_len && strcmp(text + len - end_len, end) == 0;
}

static hone_status have_folder(const char *path, hone_error *error)
{
    struct stat facts;

    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return status_set(error, HONE_IO, path, 0, "cannot be made: %s", strerror(errno));
    }
    if (stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode)) {
        return status_set(error, HONE_IO, path, 0,
                          "is no folder; name one, or a file that ends in .json");
    }
    return HONE_OK;
}

static void tell_file(json_t *list, const char *path, const exchange_space *space)
{
    if (list != NULL) {
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:I}", "file", path, "problem",
                                              space->problem_text, "device", space->kind.name,
                                              "template", space->template_name, "candidates",
                                              (json_int_t)space->rows_len));
        return;
    }
    printf("%s: %zu candidates of %s, %s\n", path, space->rows_len, space->template_name,
           space->problem_text);
}

static hone_status write_spaces(const exchange_set *set, exchange_format format, const templates *t,
                                const char *output, json_t *list, hone_error *error)
{
    hone_status status = HONE_OK;
    const bool single = ends_with(output, ".json");
    char path[4096], name[256];

    if (set->spaces_len == 0) {
        return status_set(error, HONE_UNKNOWN, output, 0,
                          "no finished candidate is chosen; `hone store list` shows them");
    }
    if (single && set->spaces_len > 1) {
        return status_set(error, HONE_BAD_ARGUMENT, output, 0,
                          "%zu files are asked for, one for each problem, device and template; "
                          "name a folder, or choose by --problem and --device",
                          set->spaces_len);
    }
    if (!single) {
        TRY(have_folder(output, error));
    }
    for (size_t i = 0; i < set->spaces_len; i++) {
        const exchange_space *space = &set->spaces[i];
        exchange_file_name(space, name);
        const int len = single ? snprintf(path, sizeof path, "%s", output)
                               : snprintf(path, sizeof path, "%s/%s", output, name);
        if (len >= (int)sizeof path) {
            return status_set(error, HONE_LIMIT, output, 0, "a path over %zu bytes", sizeof path);
        }
        TRY(exchange_write(space, format, templates_find(t, space->template_name), path, error));
        tell_file(list, path, space);
    }
done:
    return status;
}

static void tell_engine(const engine_counts *c, const char *output, bool as_json)
{
    if (as_json) {
        json_t *root = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "folder", output,
                                 "files", (json_int_t)c->files, "entries", (json_int_t)c->entries,
                                 "modelled", (json_int_t)c->modelled, "foreign",
                                 (json_int_t)c->foreign, "untold", (json_int_t)c->untold, "tile",
                                 (json_int_t)c->tile, "crowded", (json_int_t)c->crowded);
        print_json(root);
        json_decref(root);
        return;
    }
    printf("%s: %llu files, %llu buckets; winners left out: %llu whose times are modelled "
           "(--allow-modelled), %llu of problems without such a file, %llu that may be gate and up "
           "or down, %llu whose tile Triton does not have, %llu whose bucket another has\n",
           output, (unsigned long long)c->files, (unsigned long long)c->entries,
           (unsigned long long)c->modelled, (unsigned long long)c->foreign,
           (unsigned long long)c->untold, (unsigned long long)c->tile,
           (unsigned long long)c->crowded);
}

/* Winners as an engine's config files. */
static hone_status export_engine(const store_files *f, const options *o, const char *path,
                                 hone_error *error)
{
    hone_status status = HONE_OK;
    const engine_kind kind = strcmp(f->format, "vllm") == 0 ? ENGINE_VLLM : ENGINE_SGLANG;
    engine_counts counts;
    wanted w = {0};
    store *s = NULL;

    TRY(read_wanted(o, &w, error));
    TRY(store_open(path, STORE_READ, &s, error));
    TRY(have_folder(f->output, error));
    const exchange_choice choice = {w.has_kind ? &w.kind : NULL, w.problems, w.problems_len};
    TRY(engine_write(s, &choice, kind, f->allow_modelled, f->output, &counts, error));
    tell_engine(&counts, f->output, o->json);
done:
    store_close(s, NULL);
    free(w.problems);
    return status;
}

hone_status store_files_export(const store_files *f, const options *o, const char *path,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    exchange_format format = 0;
    exchange_set set = {0};
    wanted w = {0};
    templates *t = NULL;
    store *s = NULL;
    json_t *list = o->json ? json_array() : NULL;

    const bool engine = is_engine(f);
    if (!engine) {
        TRY(format_of(f, &format, error));
    }
    if (f->output == NULL) {
        status = status_set(error, HONE_BAD_ARGUMENT, "--output", 0,
                            "no file or folder is named; name one: --output PATH");
        goto done;
    }
    if (engine) {
        TRY(export_engine(f, o, path, error));
        goto done;
    }
    TRY(read_wanted(o, &w, error));
    TRY(templates_open(&t, error));
    TRY(store_open(path, STORE_READ, &s, error));
    const exchange_choice choice = {w.has_kind ? &w.kind : NULL, w.problems, w.problems_len};
    TRY(exchange_collect(s, &choice, &set, error));
    TRY(write_spaces(&set, format, t, f->output, list, error));
    print_json(list);
    if (list == NULL && set.inflight + set.odd > 0) {
        printf("left out: %llu that are not finished, %llu whose config is no list of integers\n",
               (unsigned long long)set.inflight, (unsigned long long)set.odd);
    }
done:
    json_decref(list);
    exchange_free(&set);
    store_close(s, NULL);
    templates_close(t);
    free(w.problems);
    return status;
}

static void tell_import(const char *file, const exchange_counts *c, bool torn, bool dry_run,
                        json_t *list)
{
    const store_imported *r = &c->rows;

    if (list != NULL) {
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:b, s:b}", "file", file,
                            "added", (json_int_t)r->added, "replaced", (json_int_t)r->replaced,
                            "kept", (json_int_t)r->kept, "proved_here", (json_int_t)r->proved,
                            "unknown", (json_int_t)c->unknown, "current", (json_int_t)c->current,
                            "reachable", 0, "torn", (int)torn, "dry_run", (int)dry_run));
        return;
    }
    printf("%s: %llu added, %llu replaced by a better one, %llu as good as what was there, %llu "
           "left to what this store proved itself, %llu left out (no such template or config "
           "here)\n",
           file, (unsigned long long)r->added, (unsigned long long)r->replaced,
           (unsigned long long)r->kept, (unsigned long long)r->proved,
           (unsigned long long)c->unknown);
    if (torn) {
        printf("%s was cut short; its last, torn row was left out\n", file);
    }
    printf("reachable by lookups: 0 until a sweep here proves them; %llu were proved elsewhere "
           "with this build's template%s\n",
           (unsigned long long)c->current, dry_run ? "; nothing was written" : "");
}

static hone_status import_one(const store_files *f, const char *file, exchange_format format,
                              const exchange_given *given, const templates *t, const char *path,
                              json_t *list, hone_error *error)
{
    hone_status status = HONE_OK;
    exchange_set set = {0};
    exchange_counts counts = {0};
    store *s = NULL;
    char command[600];
    bool torn = false;

    TRY(exchange_read(file, format, given, &set, &torn, error));
    snprintf(command, sizeof command, "hone store import %.500s", file);
    if (f->dry_run) {
        if (access(path, F_OK) == 0) {
            TRY(store_open(path, STORE_READ, &s, error));
        }
        TRY(exchange_forecast(&set, t, s, &counts, error));
    } else {
        TRY(store_open(path, STORE_WRITE, &s, error));
        TRY(exchange_import(&set, t, s, command, &counts, error));
        store *done = s;
        s = NULL;
        TRY(store_close(done, error));
    }
    tell_import(file, &counts, torn, f->dry_run, list);
done:
    store_close(s, NULL);
    exchange_free(&set);
    return status;
}

/* An engine's file gives seeds, on standard output or in --output's file; no row of a store. */
static hone_status import_seeds(const store_files *f, hone_error *error)
{
    hone_status status = HONE_OK;
    char *text = NULL;
    uint64_t len = 0;

    if (f->files_len != 1) {
        return status_set(error, HONE_BAD_ARGUMENT, "store import", 0,
                          "one FILE of an engine's is read at a time, not %zu", f->files_len);
    }
    TRY(engine_read_seeds(f->files[0], &text, &len, error));
    if (f->output == NULL || f->dry_run) {
        fputs(text, stdout);
    } else {
        TRY(exchange_replace_file(f->output, text, strlen(text), error));
    }
    fprintf(stderr, "%s: %llu seeds, without times; reachable by lookups: 0\n", f->files[0],
            (unsigned long long)len);
done:
    free(text);
    return status;
}

hone_status store_files_import(const store_files *f, const options *o, const char *path,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    exchange_format format;
    wanted w = {0};
    templates *t = NULL;

    if (is_engine(f)) {
        return import_seeds(f, error);
    }
    json_t *list = o->json ? json_array() : NULL;
    TRY(format_of(f, &format, error));
    TRY(read_wanted(o, &w, error));
    if (f->files_len == 0 || w.problems_len > 1) {
        status = f->files_len == 0
                     ? status_set(error, HONE_BAD_ARGUMENT, "store import", 0, "no FILE is named")
                     : status_set(error, HONE_BAD_ARGUMENT, "--problem", 0,
                                  "a file's rows are of one problem, not of %zu", w.problems_len);
        goto done;
    }
    TRY(templates_open(&t, error));
    const exchange_given given = {.problem = w.problems_len == 1 ? w.problems : NULL,
                                  .device = w.has_kind ? &w.kind : NULL,
                                  .template_name = f->template_name};
    for (size_t i = 0; i < f->files_len; i++) {
        TRY(import_one(f, f->files[i], format, &given, t, path, list, error));
    }
    print_json(list);
done:
    json_decref(list);
    templates_close(t);
    free(w.problems);
    return status;
}
