/* command_space.c - `hone space`: how many configs each template has for a problem, and what rules
 * them out. */
#include "cli/options.h"
#include "cli/print.h"

#include "runtime/device.h"
#include "templates/space.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Steps that counting may take; a space that needs more is shown as "over". */
#define COUNT_BUDGET 20000000u

/* One template's space, as counted. */
typedef struct counted {
    bool serves, exact;
    char why[160];
    double raw;
    uint64_t legal;
    space *space;
} counted;

static hone_status count_template(const manifest *m, const hone_problem *problem,
                                  const device_facts *facts, counted *out, hone_error *error)
{
    hone_status status = HONE_OK;
    counted c = {.exact = true};

    TRY(manifest_serves(m, problem, facts, &c.serves, c.why, error));
    if (c.serves) {
        TRY(space_open(m, problem, facts, &c.space, error));
        c.raw = space_raw_size(c.space);
        status = space_count(c.space, COUNT_BUDGET, &c.legal, error);
        c.exact = status == HONE_OK;
        if (status == HONE_LIMIT || status == HONE_OVERFLOW) {
            status = HONE_OK;
        }
        TRY(status);
    }
    *out = c;
    c.space = NULL;
done:
    space_close(c.space);
    return status;
}

static void print_text(const manifest *m, const counted *c)
{
    const space_reason *reasons = NULL;

    if (!c->serves) {
        printf("  %-24s does not serve it: %s\n", manifest_name(m), c->why);
        return;
    }
    printf("  %-24s %.0f raw, ", manifest_name(m), c->raw);
    if (c->exact) {
        printf("%llu legal\n", (unsigned long long)c->legal);
    } else {
        printf("legal ones not counted in %u steps\n", COUNT_BUDGET);
    }
    size_t len = space_reasons(c->space, &reasons);
    for (size_t i = 0; i < len; i++) {
        if (reasons[i].pruned > 0) {
            printf("    line %3d refused %8llu: %s\n", reasons[i].line,
                   (unsigned long long)reasons[i].pruned, reasons[i].rule);
        }
    }
}

static json_t *to_json(const manifest *m, const counted *c)
{
    const space_reason *reasons = NULL;
    json_t *row = json_pack("{s:s, s:b}", "template", manifest_name(m), "serves", c->serves);

    if (!c->serves) {
        json_object_set_new(row, "why", json_string(c->why));
        return row;
    }
    json_object_set_new(row, "raw", json_real(c->raw));
    json_object_set_new(row, "legal", c->exact ? json_integer((json_int_t)c->legal) : json_null());
    json_t *list = json_array();
    size_t len = space_reasons(c->space, &reasons);
    for (size_t i = 0; i < len; i++) {
        json_array_append_new(list,
                              json_pack("{s:s, s:i, s:I}", "rule", reasons[i].rule, "line",
                                        reasons[i].line, "refused", (json_int_t)reasons[i].pruned));
    }
    json_object_set_new(row, "reasons", list);
    return row;
}

/* All templates for one problem on one device: printed, or appended to `rows`. */
static hone_status show_problem(const templates *t, const llm_problem *p, const gpu *g,
                                const char *spec, json_t *rows, hone_error *error)
{
    hone_status status = HONE_OK;
    char text[512];
    json_t *spaces = NULL;

    TRY(hone_problem_format(&p->problem, text, sizeof text, error));
    if (rows == NULL) {
        printf("%s on %s\n", text, spec);
    } else {
        spaces = json_array();
        json_array_append_new(rows, json_pack("{s:s, s:s, s:o}", "problem", text, "device", spec,
                                              "templates", spaces));
    }
    for (size_t i = 0; i < templates_len(t); i++) {
        const manifest *m = templates_at(t, i);
        counted c = {0};
        if (manifest_op(m) != p->problem.op) {
            continue;
        }
        TRY(count_template(m, &p->problem, &g->facts, &c, error));
        if (rows == NULL) {
            print_text(m, &c);
        } else {
            json_array_append_new(spaces, to_json(m, &c));
        }
        space_close(c.space);
    }
done:
    return status;
}

/* A device's facts: an emulated one is a description, and needs no emulator to be counted for. */
static hone_status find_gpu(const char *spec, gpu *out, hone_error *error)
{
    hone_status status = HONE_OK;
    device *d = NULL;

    if (strncmp(spec, "emu:", 4) == 0) {
        return gpu_find(spec + 4, out, error);
    }
    TRY(device_open(spec, &d, error));
    print_note(d->note);
    *out = d->gpu;
done:
    device_close(d);
    return status;
}

static hone_status show_device(const char *spec, const templates *t, const llm_problem *problems,
                               size_t len, json_t *rows, hone_error *error)
{
    hone_status status = HONE_OK;
    gpu g;

    TRY(find_gpu(spec, &g, error));
    for (size_t i = 0; i < len; i++) {
        TRY(show_problem(t, &problems[i], &g, spec, rows, error));
    }
done:
    return status;
}

int command_space(int argc, char **argv)
{
    static const options_command command = {
        .name = "space",
        .about = "Count the legal configs of each template for a problem on a device, and say "
                 "which rules of its manifest refuse the others.",
        .takes = OPTIONS_MODEL | OPTIONS_PROBLEM | OPTIONS_DEVICE | OPTIONS_JSON,
    };
    hone_status status = HONE_OK;
    hone_error error = {0};
    options o = {0};
    llm_problem *problems = NULL;
    size_t len = 0;
    templates *t = NULL;
    json_t *rows = NULL;

    TRY(options_parse(&command, argc, argv, &o, NULL, &error));
    rows = o.json ? json_array() : NULL;
    TRY(options_problems(&o, NULL, &problems, &len, &error));
    TRY(templates_open(&t, &error));
    for (size_t i = 0; i < o.devices_len; i++) {
        TRY(show_device(o.devices[i], t, problems, len, rows, &error));
    }
    print_json(rows);
done:
    json_decref(rows);
    templates_close(t);
    free(problems);
    return options_end(&o, status, &error, true);
}
