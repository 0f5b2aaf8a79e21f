/* fields.c - reads a YAML description by a table of its keys. */
#include "models/fields.h"

#include <assert.h>
#include <string.h>

enum { FIELDS_MAX = 96 };

hone_status fields_require(const document *d, const document_node *map, const char *key,
                           document_kind kind, const document_node **out, hone_error *error)
{
    static const char *const kinds[] = {"a scalar", "a list", "a map"};
    const document_node *node = document_get(map, key);

    if (node == NULL) {
        return status_set(error, HONE_BAD_MODEL, document_source(d), map->line, "'%s' is missing",
                          key);
    }
    if (node->kind != kind) {
        return status_set(error, HONE_BAD_MODEL, document_source(d), node->line, "'%s' must be %s",
                          key, kinds[kind]);
    }
    *out = node;
    return HONE_OK;
}

hone_status fields_copy_text(const document *d, const document_node *node, char *to,
                             size_t capacity, hone_error *error)
{
    if (node->len == 0 || node->len >= capacity) {
        return status_set(error, HONE_BAD_MODEL, document_source(d), node->line,
                          "a name has from 1 to %zu characters", capacity - 1);
    }
    memcpy(to, node->text, node->len + 1);
    return HONE_OK;
}

static hone_status read_name(const document *d, const field *f, const document_node *node,
                             int32_t *out, hone_error *error)
{
    for (int32_t i = 0; f->names[i] != NULL; i++) {
        if (strcmp(f->names[i], node->text) == 0) {
            *out = i;
            return HONE_OK;
        }
    }
    return status_set(error, HONE_BAD_MODEL, document_source(d), node->line,
                      "'%s' cannot be '%.40s'", f->key, node->text);
}

static hone_status read_number(const document *d, const field *f, const document_node *node,
                               char *to, hone_error *error)
{
    hone_status status = HONE_OK;
    int64_t whole = 0;
    double real = 0;

    if (f->store == FIELD_REAL) {
        TRY(document_real(d, node, &real, error));
    } else {
        TRY(document_int(d, node, &whole, error));
        real = (double)whole;
    }
    if (!(real >= f->least && real <= f->most)) {
        return status_set(error, HONE_BAD_MODEL, document_source(d), node->line,
                          "'%s' is %.40s; it must be from %.0f to %.0f", f->key, node->text,
                          f->least, f->most);
    }
    if (f->store == FIELD_REAL) {
        *(double *)to = real;
    } else if (f->store == FIELD_INT64) {
        *(int64_t *)to = whole * f->scale;
    } else {
        *(int32_t *)to = (int32_t)whole;
    }
done:
    return status;
}

static hone_status read_field(const document *d, const field *f, char *to, hone_error *error)
{
    hone_status status = HONE_OK;
    const document_node *map = document_root(d), *node = NULL;

    if (f->section != NULL) {
        if (f->optional && document_get(map, f->section) == NULL) {
            return HONE_OK;
        }
        TRY(fields_require(d, map, f->section, DOCUMENT_MAP, &map, error));
    }
    if (f->optional && document_get(map, f->key) == NULL) {
        return HONE_OK;
    }
    TRY(fields_require(d, map, f->key, DOCUMENT_SCALAR, &node, error));
    switch (f->store) {
    case FIELD_NAME:
        return read_name(d, f, node, (int32_t *)to, error);
    case FIELD_BOOL:
        return document_bool(d, node, (bool *)to, error);
    case FIELD_INT32:
    case FIELD_INT64:
    case FIELD_REAL:
        return read_number(d, f, node, to, error);
    }
done:
    return status;
}

/* Refuse keys of `map` that no row of that section (NULL: the top) and no other key names. */
static hone_status check_section(const document *d, const document_node *map, const char *section,
                                 const field *table, size_t len, const char *const *other_keys,
                                 hone_error *error)
{
    const char *known[FIELDS_MAX + 1] = {"schema"};
    size_t known_len = section == NULL ? 1 : 0;

    assert(len + 16 < FIELDS_MAX);
    for (size_t i = 0; i < len; i++) {
        if (section == NULL) {
            known[known_len++] = table[i].section == NULL ? table[i].key : table[i].section;
        } else if (table[i].section != NULL && strcmp(table[i].section, section) == 0) {
            known[known_len++] = table[i].key;
        }
    }
    for (size_t i = 0; section == NULL && other_keys[i] != NULL; i++) {
        known[known_len++] = other_keys[i];
    }
    known[known_len] = NULL;
    return document_known_keys(d, map, known, error);
}

static hone_status check_keys(const document *d, const field *table, size_t len,
                              const char *const *other_keys, int64_t schema, hone_error *error)
{
    hone_status status = HONE_OK;
    const document_node *root = document_root(d), *node = NULL;
    int64_t found = 0;

    if (root == NULL || root->kind != DOCUMENT_MAP) {
        return status_set(error, HONE_BAD_MODEL, document_source(d), root == NULL ? 0 : root->line,
                          "a description is a map of keys and values");
    }
    TRY(fields_require(d, root, "schema", DOCUMENT_SCALAR, &node, error));
    TRY(document_int(d, node, &found, error));
    if (found != schema) {
        return status_set(error, HONE_BAD_MODEL, document_source(d), node->line,
                          "schema %lld; this build reads schema %lld", (long long)found,
                          (long long)schema);
    }
    TRY(check_section(d, root, NULL, table, len, other_keys, error));
    for (size_t i = 0; i < len; i++) {
        bool first = i == 0 || table[i - 1].section != table[i].section;

        if (table[i].section == NULL || !first || document_get(root, table[i].section) == NULL) {
            continue;
        }
        TRY(fields_require(d, root, table[i].section, DOCUMENT_MAP, &node, error));
        TRY(check_section(d, node, table[i].section, table, len, other_keys, error));
    }
done:
    return status;
}

hone_status fields_read(const document *d, const field *table, size_t len,
                        const char *const *other_keys, int64_t schema, void *to, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(check_keys(d, table, len, other_keys, schema, error));
    for (size_t i = 0; i < len; i++) {
        TRY(read_field(d, &table[i], (char *)to + table[i].offset, error));
    }
done:
    return status;
}
