/* command_compile.c - `hone compile`: one candidate for a problem through NVRTC, with what ptxas
 * says of it. */
#include "cli/compile_sass.h"
#include "cli/options.h"
#include "cli/print.h"

#include "runtime/default.h"
#include "runtime/device.h"
#include "runtime/jit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_TEMPLATE = 1000, KEY_CONFIG, KEY_PTX, KEY_CUBIN, KEY_SASS, KEY_NO_CACHE };

/* The command's own options; texts are borrowed from argv. */
typedef struct compile_options {
    const char *template_name, *config, *ptx, *cubin;
    bool sass, no_cache;
} compile_options;

static const struct argp_option own_options[] = {
    {"template", KEY_TEMPLATE, "NAME", 0, "compile this template; default: the analytical choice",
     0},
    {"config", KEY_CONFIG, "TEXT", 0, "its config, as \"block_m=64 stages=4 ...\"", 0},
    {"ptx", KEY_PTX, "FILE", 0, "write the PTX to FILE", 0},
    {"cubin", KEY_CUBIN, "FILE", 0, "write the cubin to FILE", 0},
    {"sass", KEY_SASS, NULL, 0, "count the machine code's instructions, and say what they allow",
     0},
    {"no-cache", KEY_NO_CACHE, NULL, 0, "compile anew, and keep nothing", 0},
    {0},
};

static hone_status parse_own(int key, char *text, void *context, hone_error *error)
{
    compile_options *o = context;

    switch (key) {
    case KEY_TEMPLATE:
        o->template_name = text;
        return HONE_OK;
    case KEY_CONFIG:
        o->config = text;
        return HONE_OK;
    case KEY_PTX:
        o->ptx = text;
        return HONE_OK;
    case KEY_CUBIN:
        o->cubin = text;
        return HONE_OK;
    case KEY_SASS:
        o->sass = true;
        return HONE_OK;
    case KEY_NO_CACHE:
        o->no_cache = true;
        return HONE_OK;
    default:
        return status_set(error, HONE_BAD_ARGUMENT, text, 0, "compile takes no such argument");
    }
}

static hone_status write_file(const char *path, const void *bytes, size_t len, hone_error *error)
{
    FILE *f = fopen(path, "wbe");

    if (f == NULL) {
        return status_set(error, HONE_IO, path, 0, "cannot be written");
    }
    const bool whole = fwrite(bytes, 1, len, f) == len;
    return fclose(f) == 0 && whole ? HONE_OK
                                   : status_set(error, HONE_IO, path, 0, "cannot be written whole");
}

/* The candidate that was named, or the first of the analytical ranking (of the named template). */
static hone_status choose(const templates *t, const hone_problem *problem, const gpu *g,
                          const compile_options *o, const manifest **m, config *c,
                          hone_error *error)
{
    hone_status status = HONE_OK;
    enum { MOST = 64 };
    default_choice *choices = calloc(MOST, sizeof *choices);
    char why[160] = "";
    size_t count = 0, i = 0;
    bool legal = false;

    if (choices == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a ranking");
    }
    const manifest *named = o->template_name != NULL ? templates_find(t, o->template_name) : NULL;
    if ((o->template_name != NULL && named == NULL) || (o->config != NULL && named == NULL)) {
        status = status_set(error, HONE_UNKNOWN, o->template_name, 0, "%s",
                            o->template_name != NULL ? "no such template; `hone space` lists them"
                                                     : "--config needs --template");
        goto done;
    }
    if (o->config != NULL) {
        TRY(manifest_config_parse(named, o->config, c, error));
        TRY(manifest_legal(named, problem, &g->facts, c, &legal, why, error));
        status = legal ? HONE_OK
                       : status_set(error, HONE_UNSUPPORTED, o->config, 0,
                                    "the config is not legal here: %s", why);
        *m = named;
        goto done;
    }
    TRY(default_rank(t, problem, g, 0, choices, MOST, &count, NULL, error));
    while (i < count && named != NULL && choices[i].m != named) {
        i++;
    }
    if (i == count) {
        status = status_set(error, HONE_NOT_FOUND, o->template_name, 0,
                            "no such template serves the problem on this device");
        goto done;
    }
    *m = choices[i].m;
    *c = choices[i].config;
done:
    free(choices);
    return status;
}

static hone_status print_text(const compile_result *r, const char *config_text, bool sass,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    const compiled *c = r->code;

    printf("%s %s\n", manifest_name(r->m), config_text);
    for (size_t i = 0; i < c->kernels_len; i++) {
        const jit_kernel *k = &c->kernels[i];
        printf("  %s\n    %d registers, %d B static shared, %d B local, %d B spilled\n", k->entry,
               k->registers, k->static_shared_bytes, k->stack_bytes, k->spill_bytes);
        if (k->remarks > 0) {
            printf("    %d remarks of ptxas, first %s\n", k->remarks, k->remark);
        }
        if (sass) {
            TRY(compile_sass_print(r, k, error));
        }
    }
    printf("  NVRTC %d.%d, %.0f ms%s, cubin %zu B, PTX %zu B\n", c->nvrtc_version / 1000,
           c->nvrtc_version % 1000 / 10, (double)c->compile_ns * 1e-6,
           c->from_cache ? " (from the cache)" : "", c->cubin_len, c->ptx_len);
done:
    return status;
}

static hone_status kernels_to_json(const compile_result *r, bool sass, json_t *out,
                                   hone_error *error)
{
    hone_status status = HONE_OK;

    for (size_t i = 0; i < r->code->kernels_len; i++) {
        const jit_kernel *k = &r->code->kernels[i];
        json_t *counted = NULL;
        if (sass) {
            TRY(compile_sass_json(r, k, &counted, error));
        }
        json_array_append_new(out,
                              json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:s?, s:o*}", "entry",
                                        k->entry, "lowered", k->lowered, "registers", k->registers,
                                        "shared_bytes", k->static_shared_bytes, "stack_bytes",
                                        k->stack_bytes, "spill_bytes", k->spill_bytes, "remarks",
                                        k->remarks, "remark", k->remark, "sass", counted));
    }
done:
    return status;
}

/* Append what was compiled, `what` being its problem, device and config. */
static hone_status append_json(const compile_result *r, json_t *what, bool sass, json_t *rows,
                               hone_error *error)
{
    const compiled *c = r->code;
    json_t *kernels = json_array();
    hone_status status = kernels_to_json(r, sass, kernels, error);

    json_t *row = json_pack("{s:s, s:o, s:f, s:b, s:I, s:I, s:i}", "template", manifest_name(r->m),
                            "kernels", kernels, "compile_ms", (double)c->compile_ns * 1e-6,
                            "from_cache", c->from_cache, "cubin_bytes", (json_int_t)c->cubin_len,
                            "ptx_bytes", (json_int_t)c->ptx_len, "nvrtc", c->nvrtc_version);
    json_object_update_new(what, row);
    json_array_append_new(rows, what);
    return status;
}

/* Compile for one problem; print, or append to `rows`. */
static hone_status compile_problem(jit *j, const templates *t, const device *d,
                                   const hone_problem *problem, const compile_options *o,
                                   json_t *rows, hone_error *error)
{
    hone_status status = HONE_OK;
    const manifest *m = NULL;
    char problem_text[512], config_text[1024];
    plan *p = malloc(sizeof *p);
    jit_request request;
    compiled *c = NULL;
    config chosen;

    if (p == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a plan");
    }
    TRY(hone_problem_format(problem, problem_text, sizeof problem_text, error));
    TRY(choose(t, problem, &d->gpu, o, &m, &chosen, error));
    TRY(manifest_config_format(m, &chosen, config_text, sizeof config_text, error));
    TRY(manifest_plan(m, problem, &d->gpu.facts, &chosen, p, error));
    TRY(jit_request_plan(t, m, p, d->gpu.facts.arch, &request, error));
    TRY(jit_compile(j, &request, &c, error));
    if (o->ptx != NULL) {
        TRY(write_file(o->ptx, c->ptx, c->ptx_len, error));
    }
    if (o->cubin != NULL) {
        TRY(write_file(o->cubin, c->cubin, c->cubin_len, error));
    }
    const compile_result result = {.code = c, .m = m, .config = &chosen, .gpu = &d->gpu};
    if (rows == NULL) {
        TRY(print_text(&result, config_text, o->sass, error));
    } else {
        json_t *what = json_pack("{s:s, s:s, s:s}", "problem", problem_text, "device", d->spec,
                                 "config", config_text);
        TRY(append_json(&result, what, o->sass, rows, error));
    }
done:
    compiled_free(c);
    free(p);
    return status;
}

static hone_status compile_all(const options *o, const compile_options *own, json_t *rows,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    const jit_options compiler = {.workers = 1, .no_cache = own->no_cache};
    llm_problem *problems = NULL;
    templates *t = NULL;
    device *d = NULL;
    jit *j = NULL;
    size_t len = 0;

    TRY(options_problems(o, NULL, &problems, &len, error));
    if (o->devices_len != 1 || (len != 1 && (own->ptx != NULL || own->cubin != NULL))) {
        status = status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                            "compile takes one --device, and with --ptx or --cubin one problem");
        goto done;
    }
    TRY(device_open(o->devices[0], &d, error));
    print_note(d->note);
    TRY(templates_open(&t, error));
    TRY(jit_open(&compiler, &j, error));
    for (size_t i = 0; i < len; i++) {
        TRY(compile_problem(j, t, d, &problems[i].problem, own, rows, error));
    }
done:
    jit_close(j);
    templates_close(t);
    device_close(d);
    free(problems);
    return status;
}

int command_compile(int argc, char **argv)
{
    static const options_command command = {
        .name = "compile",
        .about = "Compile one candidate of each problem with NVRTC and print what ptxas reports: "
                 "registers, shared "
                 "memory, spills.",
        .takes = OPTIONS_PROBLEM | OPTIONS_DEVICE | OPTIONS_JSON,
        .own = own_options,
        .parse_own = parse_own,
    };
    hone_status status = HONE_OK;
    hone_error error = {0};
    options o = {0};
    compile_options own = {.no_cache = false};
    json_t *rows = NULL;

    TRY(options_parse(&command, argc, argv, &o, &own, &error));
    rows = o.json ? json_array() : NULL;
    TRY(compile_all(&o, &own, rows, &error));
    print_json(rows);
done:
    json_decref(rows);
    return options_end(&o, status, &error, true);
}
