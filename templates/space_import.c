/* space_import.c - a JSON definition into a manifest: parameters, then rules over them. */
#include "templates/space_import.h"

#include "templates/manifest_parts.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    manifest *m;
    const json_t *constants;
    hone_error *error;
} reader;

static bool whole_number(const json_t *value, int64_t *out)
{
    *out = json_is_integer(value) ? json_integer_value(value) : json_is_true(value);
    return json_is_integer(value) || json_is_boolean(value);
}

static bool is_name(const char *text)
{
    const char first = text[0];

    return (manifest_is_name(text, strlen(text)) ||
            (first == '_' && manifest_is_name(text + 1, strlen(text) - 1))) &&
           strlen(text) < MANIFEST_NAME_BYTES;
}

static hone_status read_values(const reader *r, const char *name, const json_t *list,
                               manifest_param *out)
{
    const size_t len = json_array_size(list);

    if (!json_is_array(list) || len == 0 || len > MANIFEST_MAX_VALUES) {
        return status_set(r->error, len > 0 ? HONE_LIMIT : HONE_BAD_TEXT, r->m->name, 0,
                          "parameter %.64s: list 1 to %d values", name, MANIFEST_MAX_VALUES);
    }
    out->values = malloc(len * sizeof *out->values);
    if (out->values == NULL) {
        return status_set(r->error, HONE_NO_MEMORY, r->m->name, 0, "%zu values", len);
    }
    for (size_t i = 0; i < len; i++) {
        if (!whole_number(json_array_get(list, i), &out->values[i])) {
            return status_set(r->error, HONE_BAD_TEXT, r->m->name, 0,
                              "parameter %.64s: value %zu is no whole number that fits 64 bits",
                              name, i + 1);
        }
        for (size_t k = 0; k < i; k++) {
            if (out->values[k] == out->values[i]) {
                return status_set(r->error, HONE_BAD_TEXT, r->m->name, 0,
                                  "parameter %.64s lists %lld twice", name,
                                  (long long)out->values[i]);
            }
        }
    }
    out->len = (uint32_t)len;
    return HONE_OK;
}

static hone_status read_params(const reader *r, json_t *params)
{
    hone_status status = HONE_OK;
    const char *name = NULL;
    json_t *list = NULL;

    if (!json_is_object(params) || json_object_size(params) == 0) {
        return status_set(r->error, HONE_BAD_TEXT, r->m->name, 0,
                          "no \"params\": give an object of value lists");
    }
    json_object_foreach(params, name, list)
    {
        if (r->m->params_len == MANIFEST_MAX_PARAMS) {
            return status_set(r->error, HONE_LIMIT, r->m->name, 0, "over %d parameters",
                              MANIFEST_MAX_PARAMS);
        }
        if (!is_name(name)) {
            return status_set(r->error, HONE_BAD_TEXT, r->m->name, 0,
                              "'%.64s' is no parameter's name: letters, digits and _", name);
        }
        manifest_param *param = &r->m->params[r->m->params_len++];
        memcpy(param->name, name, strlen(name) + 1);
        TRY(read_values(r, name, list, param));
    }
done:
    return status;
}

static bool find_name(const void *context, const char *name, size_t len, expression_symbol *out)
{
    const reader *r = context;
    char key[MANIFEST_NAME_BYTES] = "";

    *out = (expression_symbol){.constant = true};
    if (len >= sizeof key) {
        return false;
    }
    memcpy(key, name, len);
    for (uint32_t i = 0; i < r->m->params_len; i++) {
        if (strcmp(r->m->params[i].name, key) == 0) {
            *out = (expression_symbol){.slot = MANIFEST_SLOT_PARAM + i};
            return true;
        }
    }
    const json_t *value = json_object_get(r->constants, key);
    return value != NULL && whole_number(value, &out->value);
}

static void find_ranges(const manifest *m, expression_range ranges[EXPRESSION_MAX_SLOTS])
{
    for (uint32_t p = 0; p < m->params_len; p++) {
        const manifest_param *param = &m->params[p];
        expression_range *range = &ranges[MANIFEST_SLOT_PARAM + p];
        *range = (expression_range){param->values[0], param->values[0]};
        for (uint32_t v = 1; v < param->len; v++) {
            range->least = param->values[v] < range->least ? param->values[v] : range->least;
            range->most = param->values[v] > range->most ? param->values[v] : range->most;
        }
    }
}

/* Each rule is one side of an `and`; a rule over a parameter's values is settled when it opens. */
static hone_status read_rules(const reader *r, const json_t *list)
{
    hone_status status = HONE_OK;
    manifest *m = r->m;
    const expression_scope scope = {find_name, r};
    expression_range ranges[EXPRESSION_MAX_SLOTS] = {0};
    expression *made[MANIFEST_MAX_RULES];
    size_t len = 0;

    if (list != NULL && !json_is_array(list)) {
        return status_set(r->error, HONE_BAD_TEXT, m->name, 0,
                          "\"restrictions\" is no list of Python expressions");
    }
    find_ranges(m, ranges);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (text == NULL) {
            return status_set(r->error, HONE_BAD_TEXT, m->name, (int)i + 1,
                              "restriction %zu is no text", i + 1);
        }
        TRY(expression_compile_python(m->name, (int)i + 1, text, &scope, ranges, made,
                                      MANIFEST_MAX_RULES - m->require_len, &len, r->error));
        for (size_t k = 0; k < len; k++) {
            manifest_formula *f = &m->require[m->require_len++].value;
            f->e = made[k];
            for (uint32_t p = 0; p < m->params_len; p++) {
                f->params |= (uint32_t)expression_uses(f->e, MANIFEST_SLOT_PARAM + p) << p;
            }
        }
    }
done:
    return status;
}

static hone_status read_definition(reader *r, json_t *root)
{
    hone_status status = HONE_OK;

    if (!json_is_object(root)) {
        return status_set(r->error, HONE_BAD_TEXT, r->m->name, 0, "no object of params");
    }
    r->constants = json_object_get(root, "constants");
    TRY(read_params(r, json_object_get(root, "params")));
    TRY(read_rules(r, json_object_get(root, "restrictions")));
done:
    return status;
}

hone_status space_import(const char *source, const char *text, size_t len, manifest **out,
                         hone_error *error)
{
    hone_status status = HONE_OK;
    json_error_t why;
    json_t *root = NULL;
    reader r = {.m = calloc(1, sizeof *r.m), .error = error};

    if (r.m != NULL) {
        r.m->name = strdup(source);
    }
    if (r.m == NULL || r.m->name == NULL) {
        status = status_set(error, HONE_NO_MEMORY, source, 0, "a definition");
        goto done;
    }
    if (len > SPACE_IMPORT_BYTES) {
        status = status_set(error, HONE_LIMIT, source, 0, "over %u bytes", SPACE_IMPORT_BYTES);
        goto done;
    }
    root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why); /* nests to 2048 at most */
    if (root == NULL) {
        status = status_set(error, HONE_BAD_TEXT, source, why.line, "no JSON: %.120s", why.text);
        goto done;
    }
    TRY(read_definition(&r, root));
    *out = r.m;
    r.m = NULL;
done:
    json_decref(root);
    manifest_free(r.m);
    return status;
}
