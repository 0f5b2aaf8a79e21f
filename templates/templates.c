/* templates.c - the templates that are built in: manifests parsed once, sources with the headers
 * they include.
 *
 * NVRTC gets every header in memory, so what a source includes, directly or through headers, is
 * found here. */
#include "templates/manifest_parts.h"

#include "core/digest.h"
#include "core/embedded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEMPLATES_MAX_HEADERS 64

extern const embedded_file templates_files[];

typedef struct template_entry {
    manifest *m;
    const embedded_file *text; /* of the manifest */
    const embedded_file *source;
    size_t headers_len;
    const char *headers[TEMPLATES_MAX_HEADERS], *names[TEMPLATES_MAX_HEADERS];
} template_entry;

struct templates {
    size_t len;
    template_entry *entries;
};

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* The next `#include "..."` at or after `at`; NULL at the end. *len is the length of the name. */
static const char *next_include(const char *at, size_t *len)
{
    while ((at = strstr(at, "#include")) != NULL) {
        at += strlen("#include");
        at += strspn(at, " \t");
        if (*at == '"') {
            *len = strcspn(at + 1, "\"\n");
            return at + 1;
        }
    }
    return NULL;
}

static bool has_header(const template_entry *t, const embedded_file *file)
{
    for (size_t i = 0; i < t->headers_len; i++) {
        if (t->headers[i] == file->bytes) {
            return true;
        }
    }
    return false;
}

static const embedded_file *find_header(const char *name, size_t len)
{
    for (const embedded_file *file = templates_files; file->name != NULL; file++) {
        if (strlen(file->name) == len && memcmp(file->name, name, len) == 0) {
            return file;
        }
    }
    return NULL;
}

const char *templates_header(const char *name, size_t len)
{
    const embedded_file *file = find_header(name, len);

    return file != NULL ? file->bytes : NULL;
}

/* Add the headers that `text` includes and that are not there yet. */
static hone_status add_headers(template_entry *t, const char *from, const char *text,
                               hone_error *error)
{
    size_t len = 0;

    for (const char *name = next_include(text, &len); name != NULL;
         name = next_include(name, &len)) {
        const embedded_file *file = find_header(name, len);
        if (file == NULL) {
            return status_set(error, HONE_BAD_MANIFEST, from, 0,
                              "includes \"%.*s\", which is not below templates/", (int)len, name);
        }
        if (has_header(t, file)) {
            continue;
        }
        if (t->headers_len == TEMPLATES_MAX_HEADERS) {
            return status_set(error, HONE_LIMIT, from, 0, "includes over %d headers",
                              TEMPLATES_MAX_HEADERS);
        }
        t->headers[t->headers_len] = file->bytes;
        t->names[t->headers_len++] = file->name;
    }
    return HONE_OK;
}

static hone_status open_entry(const embedded_file *file, template_entry *t, hone_error *error)
{
    hone_status status = HONE_OK;
    char *name = strndup(file->name, strlen(file->name) - strlen(".yaml"));

    if (name == NULL) {
        return status_set(error, HONE_NO_MEMORY, file->name, 0, "a template's name");
    }
    TRY(manifest_parse(name, file->bytes, embedded_len(file), &t->m, error));
    t->text = file;
    t->source = embedded_find(templates_files, manifest_source(t->m));
    if (t->source == NULL) {
        status = status_set(error, HONE_BAD_MANIFEST, name, 0,
                            "source '%s' is not below templates/", manifest_source(t->m));
        goto done;
    }
    TRY(add_headers(t, t->source->name, t->source->bytes, error));
    /* The list grows while it is walked: headers of headers. */
    for (size_t i = 0; i < t->headers_len; i++) {
        TRY(add_headers(t, t->names[i], t->headers[i], error));
    }
done:
    free(name);
    return status;
}

static int by_name(const void *a, const void *b)
{
    const template_entry *left = a, *right = b;

    return strcmp(manifest_name(left->m), manifest_name(right->m));
}

hone_status templates_open(templates **out, hone_error *error)
{
    hone_status status = HONE_OK;
    size_t count = 0;
    templates *t = calloc(1, sizeof *t);

    for (const embedded_file *file = templates_files; file->name != NULL; file++) {
        count += ends_with(file->name, ".yaml");
    }
    if (t == NULL || (t->entries = calloc(count + 1, sizeof *t->entries)) == NULL) {
        status = status_set(error, HONE_NO_MEMORY, "templates", 0, "%zu templates", count);
        goto done;
    }
    for (const embedded_file *file = templates_files; file->name != NULL; file++) {
        if (ends_with(file->name, ".yaml")) {
            TRY(open_entry(file, &t->entries[t->len++], error));
        }
    }
    qsort(t->entries, t->len, sizeof *t->entries, by_name);
    *out = t;
    t = NULL;
done:
    templates_close(t);
    return status;
}

void templates_close(templates *t)
{
    if (t != NULL) {
        for (size_t i = 0; i < t->len; i++) {
            manifest_free(t->entries[i].m);
        }
        free(t->entries);
        free(t);
    }
}

size_t templates_len(const templates *t)
{
    return t->len;
}

const manifest *templates_at(const templates *t, size_t index)
{
    return t->entries[index].m;
}

const manifest *templates_find(const templates *t, const char *name)
{
    for (size_t i = 0; i < t->len; i++) {
        if (strcmp(manifest_name(t->entries[i].m), name) == 0) {
            return t->entries[i].m;
        }
    }
    return NULL;
}

static const template_entry *entry_of(const templates *t, const manifest *m)
{
    for (size_t i = 0; i < t->len; i++) {
        if (t->entries[i].m == m) {
            return &t->entries[i];
        }
    }
    return NULL;
}

hone_status templates_source(const templates *t, const manifest *m, template_source *out,
                             hone_error *error)
{
    const template_entry *entry = entry_of(t, m);

    if (entry == NULL) {
        return status_set(error, HONE_UNKNOWN, manifest_name(m), 0,
                          "not one of the built-in templates");
    }
    *out =
        (template_source){entry->source->bytes, entry->headers, entry->names, entry->headers_len};
    return HONE_OK;
}

void templates_digest(const templates *t, const manifest *m, uint8_t out[32])
{
    const template_entry *entry = entry_of(t, m);
    digest d;

    digest_begin(&d);
    digest_u64(&d, TEMPLATES_PROOF_VERSION);
    digest_text(&d, manifest_name(m));
    if (entry != NULL) {
        digest_bytes(&d, entry->text->bytes, embedded_len(entry->text));
        digest_bytes(&d, entry->source->bytes, embedded_len(entry->source));
        digest_u64(&d, entry->headers_len);
        for (size_t i = 0; i < entry->headers_len; i++) {
            digest_text(&d, entry->names[i]);
            digest_text(&d, entry->headers[i]);
        }
    }
    digest_end(&d, out);
}

void templates_refusals(const templates *t, const hone_problem *problem, const device_facts *device,
                        char *text, size_t capacity)
{
    size_t used = 0;

    snprintf(text, capacity, "there is no template for this op");
    for (size_t i = 0; i < t->len; i++) {
        const manifest *m = t->entries[i].m;
        char why[160] = "";
        bool serves = true;
        if (manifest_op(m) != problem->op ||
            manifest_serves(m, problem, device, &serves, why, NULL) != HONE_OK) {
            continue;
        }
        const int wrote = snprintf(text + used, capacity - used, "%s%s: %s", used > 0 ? "; " : "",
                                   manifest_name(m),
                                   serves ? "serves it, and no config of it is legal here" : why);
        used += (size_t)wrote;
        if (used >= capacity) {
            return;
        }
    }
}
