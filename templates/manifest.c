/* manifest.c - what a parsed manifest answers: its names and values, which problems it serves,
 * which configs are legal, and the text of a config. */
#include "templates/manifest_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_map(manifest_map *map)
{
    for (uint32_t i = 0; i < ARRAY_LEN(map->dims); i++) {
        manifest_formula_free(&map->dims[i]);
        manifest_formula_free(&map->box[i]);
    }
    for (uint32_t i = 0; i < ARRAY_LEN(map->strides); i++) {
        manifest_formula_free(&map->strides[i]);
    }
    manifest_formula_free(&map->type);
    manifest_formula_free(&map->swizzle);
    manifest_formula_free(&map->offset);
}

static void free_launch(manifest_launch *launch)
{
    manifest_formula_free(&launch->when);
    manifest_formula_free(&launch->shared);
    manifest_formula_free(&launch->dependent);
    for (int i = 0; i < 3; i++) {
        manifest_formula_free(&launch->grid[i]);
        manifest_formula_free(&launch->block[i]);
        manifest_formula_free(&launch->cluster[i]);
    }
    for (uint32_t i = 0; i < launch->arguments_len; i++) {
        manifest_formula_free(&launch->arguments[i].value);
    }
    for (uint32_t i = 0; i < launch->maps_len; i++) {
        free_map(&launch->maps[i]);
    }
}

void manifest_free(manifest *m)
{
    if (m == NULL) {
        return;
    }
    for (uint32_t i = 0; i < m->params_len; i++) {
        free(m->params[i].values);
    }
    for (uint32_t i = 0; i < m->lets_len; i++) {
        manifest_formula_free(&m->lets[i].value);
    }
    for (uint32_t i = 0; i < MANIFEST_MAX_RULES; i++) {
        manifest_formula_free(&m->when[i].value);
        manifest_formula_free(&m->require[i].value);
    }
    for (uint32_t i = 0; i < m->members_len; i++) {
        manifest_formula_free(&m->members[i].value);
    }
    for (uint32_t i = 0; i < m->launches_len; i++) {
        free_launch(&m->launches[i]);
    }
    for (uint32_t i = 0; i < MANIFEST_ESTIMATES_LEN; i++) {
        manifest_formula_free(&m->estimate[i]);
    }
    manifest_formula_free(&m->workspace);
    manifest_formula_free(&m->workspace_zeroed);
    manifest_formula_free(&m->pipeline);
    manifest_formula_free(&m->tolerance);
    manifest_formula_free(&m->fraction_bits);
    manifest_formula_free(&m->cover_rows);
    manifest_formula_free(&m->cover_columns);
    manifest_formula_free(&m->cover_ctas);
    free(m->name);
    free(m);
}

const char *manifest_name(const manifest *m)
{
    return m->name;
}

int32_t manifest_op(const manifest *m)
{
    return m->op;
}

const char *manifest_source(const manifest *m)
{
    return m->source;
}

uint32_t manifest_params_len(const manifest *m)
{
    return m->params_len;
}

const char *manifest_param_name(const manifest *m, uint32_t param)
{
    return m->params[param].name;
}

uint32_t manifest_param_values(const manifest *m, uint32_t param, const int64_t **values)
{
    *values = m->params[param].values;
    return m->params[param].len;
}

/* The first rule that is zero, or NULL. */
static hone_status first_refusal(const manifest *m, const manifest_rule *rules, uint32_t len,
                                 manifest_values *values, const manifest_rule **out,
                                 hone_error *error)
{
    hone_status status = HONE_OK;
    const manifest_rule *refusal = NULL;

    for (uint32_t i = 0; i < len && refusal == NULL; i++) {
        int64_t holds = 0;
        TRY(manifest_value(m, &rules[i].value, values, 1, &holds, error));
        refusal = holds != 0 ? NULL : &rules[i];
    }
    *out = refusal;
done:
    return status;
}

static void say_why(char why[MANIFEST_WHY_BYTES], const char *text)
{
    if (why != NULL) {
        snprintf(why, MANIFEST_WHY_BYTES, "%s", text);
    }
}

hone_status manifest_serves(const manifest *m, const hone_problem *problem,
                            const device_facts *device, bool *serves, char why[160],
                            hone_error *error)
{
    hone_status status = HONE_OK;
    manifest_values values;
    const manifest_rule *refusal = NULL;

    if (problem->op != m->op) {
        say_why(why, "another op");
        *serves = false;
        return HONE_OK;
    }
    TRY(manifest_bind(m, problem, device, &values, error));
    TRY(first_refusal(m, m->when, m->when_len, &values, &refusal, error));
    say_why(why, refusal != NULL ? refusal->why : "");
    *serves = refusal == NULL;
done:
    return status;
}

/* Whether each value of the config is one that the manifest lists. */
static bool in_domains(const manifest *m, const config *c)
{
    for (uint32_t i = 0; i < m->params_len; i++) {
        const manifest_param *param = &m->params[i];
        uint32_t at = 0;
        while (at < param->len && param->values[at] != c->value[i]) {
            at++;
        }
        if (at == param->len) {
            return false;
        }
    }
    return true;
}

static hone_status check_maps(const manifest *m, const manifest_launch *launch,
                              manifest_values *values, manifest_geometry *g, hone_error *error)
{
    hone_status status = HONE_OK;
    plan_map map;

    for (uint32_t i = 0; i < launch->maps_len && g->active && g->fits; i++) {
        TRY(manifest_map_values(m, &launch->maps[i], values, &map, g->why, error));
        g->fits = g->why[0] == '\0';
    }
done:
    return status;
}

hone_status manifest_legal(const manifest *m, const hone_problem *problem,
                           const device_facts *device, const config *c, bool *legal, char why[160],
                           hone_error *error)
{
    hone_status status = HONE_OK;
    manifest_values values;
    manifest_geometry g = {.fits = true};
    const manifest_rule *refusal = NULL;

    TRY(manifest_bind(m, problem, device, &values, error));
    TRY(manifest_set(m, c, &values, error));
    if (!in_domains(m, c)) {
        say_why(why, "a value that the manifest does not list");
        *legal = false;
        return HONE_OK;
    }
    TRY(first_refusal(m, m->require, m->require_len, &values, &refusal, error));
    for (uint32_t i = 0; i < m->launches_len && refusal == NULL && g.fits; i++) {
        TRY(manifest_launch_geometry(m, &m->launches[i], MANIFEST_GEOMETRY_ALL, &values, &g,
                                     error));
        TRY(check_maps(m, &m->launches[i], &values, &g, error));
    }
    say_why(why, refusal != NULL ? refusal->why : g.why);
    *legal = refusal == NULL && g.fits;
done:
    return status;
}

hone_status manifest_config_format(const manifest *m, const config *c, char *text, size_t capacity,
                                   hone_error *error)
{
    size_t used = 0;

    for (uint32_t i = 0; i < m->params_len; i++) {
        size_t room = capacity > used ? capacity - used : 0;
        int wrote = snprintf(room > 0 ? text + used : NULL, room, "%s%s=%lld", i > 0 ? " " : "",
                             m->params[i].name, (long long)c->value[i]);
        used += (size_t)wrote;
    }
    if (used >= capacity) {
        return status_set(error, HONE_LIMIT, m->name, 0,
                          "a config's text takes %zu bytes, there are %zu", used + 1, capacity);
    }
    if (m->params_len == 0) {
        text[0] = '\0';
    }
    return HONE_OK;
}

static hone_status bad_config(const manifest *m, const char *text, const char *what,
                              hone_error *error)
{
    return status_set(error, HONE_BAD_TEXT, m->name, 0,
                      "config '%.200s': %s; write name=value for each parameter, by spaces", text,
                      what);
}

static uint32_t find_param(const manifest *m, const char *name, size_t len)
{
    for (uint32_t i = 0; i < m->params_len; i++) {
        if (strlen(m->params[i].name) == len && memcmp(m->params[i].name, name, len) == 0) {
            return i;
        }
    }
    return m->params_len;
}

hone_status manifest_config_parse(const manifest *m, const char *text, config *out,
                                  hone_error *error)
{
    config c = {.len = m->params_len};
    uint32_t seen = 0;

    for (const char *at = text + strspn(text, " "); *at != '\0'; at += strspn(at, " ")) {
        size_t name_len = strcspn(at, "= ");
        uint32_t param = find_param(m, at, name_len);
        char *end = NULL;
        if (at[name_len] != '=' || param == m->params_len || (seen >> param & 1) != 0) {
            return bad_config(m, text, "an unknown or repeated parameter", error);
        }
        at += name_len + 1;
        c.value[param] = strtoll(at, &end, 10);
        if (end == at || (*end != ' ' && *end != '\0')) {
            return bad_config(m, text, "a value that is no integer", error);
        }
        seen |= 1u << param;
        at = end;
    }
    if (__builtin_popcount(seen) != (int)m->params_len) {
        return bad_config(m, text, "a parameter is missing", error);
    }
    if (!in_domains(m, &c)) {
        return bad_config(m, text, "a value that the manifest does not list", error);
    }
    *out = c;
    return HONE_OK;
}
