/* manifest_read.c - the YAML of a manifest, section by section. Refuses what it does not know, with
 * the line. */
#include "templates/manifest_parts.h"

#include "core/checked.h"
#include "core/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef hone_status (*section_fn)(const manifest_reader *r, const document_node *node);

static hone_status read_schema(const manifest_reader *r, const document_node *node)
{
    hone_status status = HONE_OK;
    int64_t schema = 0;

    TRY(document_int(r->document, node, &schema, r->error));
    if (schema != 1) {
        status = manifest_refuse(r, node, "schema %lld is not known; this build reads schema 1",
                                 (long long)schema);
    }
done:
    return status;
}

static hone_status read_op(const manifest_reader *r, const document_node *node)
{
    hone_status status = HONE_OK;
    const char *text = NULL;

    TRY(document_text(r->document, node, &text, r->error));
    r->m->op = problem_op_parse(text, strlen(text));
    if (r->m->op == 0) {
        status = manifest_refuse(
            r, node, "no op '%.64s'; `hone devices --help` names none, see hone.h", text);
    }
done:
    return status;
}

/* A plain path below templates/: no root, no empty part, no part that is "." or "..". */
static bool is_plain_path(const char *text, size_t len)
{
    size_t part = 0;

    for (size_t i = 0; i <= len; i++) {
        char c = i < len ? text[i] : '/';
        if (c == '/') {
            if (i == part || text[part] == '.') {
                return false;
            }
            part = i + 1;
        } else if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", c) ==
                   NULL) {
            return false;
        }
    }
    return len > 3 && strcmp(text + len - 3, ".cu") == 0;
}

static hone_status read_source(const manifest_reader *r, const document_node *node)
{
    hone_status status = HONE_OK;
    const char *text = NULL;

    TRY(document_text(r->document, node, &text, r->error));
    size_t len = strlen(text);
    if (len >= sizeof r->m->source || !is_plain_path(text, len)) {
        return manifest_refuse(
            r, node, "source '%.100s' must be a plain path below templates/ that ends in .cu",
            text);
    }
    memcpy(r->m->source, text, len + 1);
done:
    return status;
}

static hone_status read_value(const manifest_reader *r, const document_node *node, int64_t *out)
{
    bool truth = false;
    bool is_truth = node->kind == DOCUMENT_SCALAR && !node->quoted &&
                    (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0);

    if (!is_truth) {
        return document_int(r->document, node, out, r->error);
    }
    hone_status status = document_bool(r->document, node, &truth, r->error);
    *out = truth;
    return status;
}

static hone_status read_param(const manifest_reader *r, const document_node *key,
                              const document_node *list, manifest_param *param)
{
    hone_status status = HONE_OK;

    TRY(manifest_read_name(r, key, param->name));
    if (manifest_name_taken(r->m, param->name)) {
        return manifest_refuse(r, key, "parameter '%s' has a meaning already; take another name",
                               param->name);
    }
    TRY(manifest_expect(r, list, DOCUMENT_LIST, MANIFEST_MAX_VALUES, param->name));
    if (list->len == 0) {
        return manifest_refuse(r, list, "parameter '%s' has no value", param->name);
    }
    param->values = malloc(list->len * sizeof *param->values);
    if (param->values == NULL) {
        return status_set(r->error, HONE_NO_MEMORY, r->m->name, list->line, "parameter values");
    }
    for (size_t i = 0; i < list->len; i++) {
        TRY(read_value(r, &list->items[i], &param->values[i]));
        for (size_t k = 0; k < i; k++) {
            if (param->values[k] == param->values[i]) {
                return manifest_refuse(r, &list->items[i], "parameter '%s' lists %lld twice",
                                       param->name, (long long)param->values[i]);
            }
        }
    }
    param->len = (uint32_t)list->len;
done:
    return status;
}

static hone_status read_params(const manifest_reader *r, const document_node *node)
{
    hone_status status = HONE_OK;
    uint64_t size = 1;

    TRY(manifest_expect(r, node, DOCUMENT_MAP, MANIFEST_MAX_PARAMS, "params"));
    for (size_t i = 0; i < node->len; i++) {
        manifest_param *param = &r->m->params[i];
        status = read_param(r, &node->keys[i], &node->items[i], param);
        r->m->params_len = (uint32_t)i + 1; /* now its values are freed with the manifest */
        TRY(status);
        if (!checked_mul_u64(size, param->len, &size)) {
            return status_set(r->error, HONE_LIMIT, r->m->name, node->keys[i].line,
                              "over 2^64 configs with '%s'; drop values", param->name);
        }
    }
done:
    return status;
}

/* A map of names to formulas. `fresh`: the names are new ones that later formulas may use. */
static hone_status read_named(const manifest_reader *r, const document_node *node, bool fresh,
                              manifest_named *out, uint32_t *len)
{
    hone_status status = HONE_OK;

    for (size_t i = 0; i < node->len; i++) {
        TRY(manifest_read_name(r, &node->keys[i], out[i].name));
        if (fresh && manifest_name_taken(r->m, out[i].name)) {
            return manifest_refuse(r, &node->keys[i],
                                   "'%s' has a meaning already; take another name", out[i].name);
        }
        TRY(manifest_read_formula(r, &node->items[i], &out[i].value));
        *len = (uint32_t)i + 1;
    }
done:
    return status;
}

static hone_status read_let(const manifest_reader *r, const document_node *node)
{
    hone_status status = manifest_expect(r, node, DOCUMENT_MAP, MANIFEST_MAX_LETS, "let");

    return status != HONE_OK ? status : read_named(r, node, true, r->m->lets, &r->m->lets_len);
}

static hone_status read_config(const manifest_reader *r, const document_node *node)
{
    hone_status status = manifest_expect(r, node, DOCUMENT_MAP, MANIFEST_MAX_MEMBERS, "config");

    return status != HONE_OK ? status
                             : read_named(r, node, false, r->m->members, &r->m->members_len);
}

static hone_status read_rule(const manifest_reader *r, const document_node *node,
                             manifest_rule *rule)
{
    static const char *const known[] = {"rule", "why", NULL};
    hone_status status = HONE_OK;
    const document_node *formula = node;
    const char *why = NULL;

    if (node->kind == DOCUMENT_MAP) {
        TRY(document_known_keys(r->document, node, known, r->error));
        formula = document_get(node, "rule");
        if (formula == NULL) {
            return manifest_refuse(r, node, "a rule without `rule:`");
        }
        if (document_get(node, "why") != NULL) {
            TRY(document_text(r->document, document_get(node, "why"), &why, r->error));
        }
    }
    TRY(manifest_read_formula(r, formula, &rule->value));
    snprintf(rule->why, sizeof rule->why, "%s", why != NULL ? why : expression_text(rule->value.e));
done:
    return status;
}

static hone_status read_rules(const manifest_reader *r, const document_node *node, const char *what,
                              manifest_rule *out, uint32_t *len)
{
    hone_status status = HONE_OK;

    TRY(manifest_expect(r, node, DOCUMENT_LIST, MANIFEST_MAX_RULES, what));
    for (size_t i = 0; i < node->len; i++) {
        TRY(read_rule(r, &node->items[i], &out[i]));
        *len = (uint32_t)i + 1;
    }
done:
    return status;
}

static hone_status read_when(const manifest_reader *r, const document_node *node)
{
    hone_status status = HONE_OK;

    TRY(read_rules(r, node, "when", r->m->when, &r->m->when_len));
    for (uint32_t i = 0; i < r->m->when_len; i++) {
        if (r->m->when[i].value.params != 0) {
            return manifest_refuse(r, &node->items[i],
                                   "`when` is asked before a config is chosen: "
                                   "it may not use parameters");
        }
    }
done:
    return status;
}

static hone_status read_require(const manifest_reader *r, const document_node *node)
{
    return read_rules(r, node, "require", r->m->require, &r->m->require_len);
}

static hone_status read_workspace(const manifest_reader *r, const document_node *node)
{
    static const char *const known[] = {"bytes", "zeroed", NULL};
    hone_status status = HONE_OK;
    const document_node *zeroed = document_get(node, "zeroed");

    TRY(manifest_expect(r, node, DOCUMENT_MAP, 2, "workspace"));
    TRY(document_known_keys(r->document, node, known, r->error));
    if (document_get(node, "bytes") == NULL) {
        return manifest_refuse(r, node, "workspace without `bytes:`");
    }
    TRY(manifest_read_formula(r, document_get(node, "bytes"), &r->m->workspace));
    if (zeroed != NULL) {
        const bool all = zeroed->kind == DOCUMENT_SCALAR && strcmp(zeroed->text, "true") == 0;
        TRY(manifest_read_formula(r, all ? document_get(node, "bytes") : zeroed,
                                  &r->m->workspace_zeroed));
    }
done:
    return status;
}

static hone_status read_pipeline(const manifest_reader *r, const document_node *node)
{
    return manifest_read_formula(r, node, &r->m->pipeline);
}

static hone_status read_estimate(const manifest_reader *r, const document_node *node)
{
    static const char *const known[] = {
#define X(name) #name,
        MANIFEST_ESTIMATES(X)
#undef X
            NULL,
    };
    hone_status status = HONE_OK;

    TRY(manifest_expect(r, node, DOCUMENT_MAP, MANIFEST_ESTIMATES_LEN, "estimate"));
    TRY(document_known_keys(r->document, node, known, r->error));
    for (size_t i = 0; i < MANIFEST_ESTIMATES_LEN; i++) {
        const document_node *value = document_get(node, known[i]);
        if (value != NULL) {
            TRY(manifest_read_formula(r, value, &r->m->estimate[i]));
        }
    }
done:
    return status;
}

static hone_status read_tolerance(const manifest_reader *r, const document_node *node)
{
    return manifest_read_formula(r, node, &r->m->tolerance);
}

static hone_status read_fraction_bits(const manifest_reader *r, const document_node *node)
{
    return manifest_read_formula(r, node, &r->m->fraction_bits);
}

static hone_status read_cover(const manifest_reader *r, const document_node *node)
{
    static const char *const known[] = {"rows", "columns", "ctas", NULL};
    hone_status status = HONE_OK;
    const document_node *ctas = document_get(node, "ctas");

    TRY(manifest_expect(r, node, DOCUMENT_MAP, ARRAY_LEN(known), "cover"));
    TRY(document_known_keys(r->document, node, known, r->error));
    if (document_get(node, "rows") == NULL || document_get(node, "columns") == NULL) {
        return manifest_refuse(r, node, "cover needs `rows:` and `columns:` of a tile");
    }
    TRY(manifest_read_formula(r, document_get(node, "rows"), &r->m->cover_rows));
    TRY(manifest_read_formula(r, document_get(node, "columns"), &r->m->cover_columns));
    if (ctas != NULL) {
        TRY(manifest_read_formula(r, ctas, &r->m->cover_ctas));
    }
done:
    return status;
}

/* In the order in which they are read, whatever the order of the file: names before their use. */
static const struct {
    const char *key;
    bool required;
    section_fn read;
} sections[] = {
    {"schema", true, read_schema},
    {"op", true, read_op},
    {"source", true, read_source},
    {"params", true, read_params},
    {"let", false, read_let},
    {"when", false, read_when},
    {"require", false, read_require},
    {"config", true, read_config},
    {"launches", true, manifest_read_launches},
    {"workspace", false, read_workspace},
    {"pipeline", false, read_pipeline},
    {"estimate", false, read_estimate},
    {"tolerance", true, read_tolerance},
    {"fraction_bits", false, read_fraction_bits},
    {"cover", false, read_cover},
};

static hone_status read_sections(const manifest_reader *r, const document_node *root)
{
    hone_status status = HONE_OK;
    const char *known[ARRAY_LEN(sections) + 1] = {NULL};

    TRY(manifest_expect(r, root, DOCUMENT_MAP, ARRAY_LEN(sections), "a manifest"));
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        known[i] = sections[i].key;
    }
    TRY(document_known_keys(r->document, root, known, r->error));
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        const document_node *node = document_get(root, sections[i].key);
        if (node == NULL && sections[i].required) {
            return manifest_refuse(r, root, "no `%s:`; docs/design.md shows a whole manifest",
                                   sections[i].key);
        }
        if (node != NULL) {
            TRY(sections[i].read(r, node));
        }
    }
done:
    return status;
}

hone_status manifest_parse(const char *source, const char *text, size_t len, manifest **out,
                           hone_error *error)
{
    hone_status status = HONE_OK;
    document *d = NULL;
    manifest *m = calloc(1, sizeof *m);
    hone_error local = {0};

    if (m == NULL || (m->name = strdup(source)) == NULL) {
        status = status_set(&local, HONE_NO_MEMORY, source, 0, "a manifest");
        goto done;
    }
    TRY(document_parse(source, text, len, &d, &local));
    const manifest_reader r = {d, m, &local};
    TRY(read_sections(&r, document_root(d)));
    *out = m;
    m = NULL;
done:
    /* YAML that does not parse is a manifest that breaks a rule: one status for its author. */
    if (status == HONE_BAD_TEXT) {
        status = HONE_BAD_MANIFEST;
    }
    if (status != HONE_OK) {
        status_set(error, status, local.source, local.line, "%s", local.message);
    }
    document_free(d);
    manifest_free(m);
    return status;
}
