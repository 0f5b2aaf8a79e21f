/* emu_include.c - what a CUDA file includes, directly or through headers, gathered in memory: the
 * compile worker reads no files.
 *
 * Looked for beside what includes it, beside the file, in the folders of -I, among the project's
 * own device headers, and in the toolkit. What is not found is left to the compiler, which may not
 * need it. */
#include "cli/emu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADERS_MOST = 1024, PATH_BYTES = 1024 };

void emu_headers_free(emu_headers *h)
{
    for (size_t n = 0; n < h->len; n++) {
        free(h->names[n]);
        free(h->texts[n]);
        free(h->paths[n]);
    }
    free(h->names);
    free(h->texts);
    free(h->paths);
    *h = (emu_headers){.len = 0};
}

/* The next name in `#include "..."` or `<...>` at or after `at`; NULL at the end. */
static const char *next_include(const char *at, size_t *len)
{
    while ((at = strchr(at, '#')) != NULL) {
        at++;
        at += strspn(at, " \t");
        if (strncmp(at, "include", 7) != 0) {
            continue;
        }
        at += 7;
        at += strspn(at, " \t");
        if (*at == '"' || *at == '<') {
            *len = strcspn(at + 1, *at == '"' ? "\"\n" : ">\n");
            return at + 1;
        }
    }
    return NULL;
}

static bool has_header(const emu_headers *h, const char *name, size_t len)
{
    for (size_t n = 0; n < h->len; n++) {
        if (strlen(h->names[n]) == len && memcmp(h->names[n], name, len) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_there(const char *folder, size_t folder_bytes, const char *name, size_t len,
                     char path[PATH_BYTES])
{
    int n = snprintf(path, PATH_BYTES, "%.*s%s%.*s", (int)folder_bytes, folder,
                     folder_bytes > 0 ? "/" : "", (int)len, name);
    return n > 0 && n < PATH_BYTES && access(path, R_OK) == 0;
}

/* Folders of the toolkit's headers; libcu++ has one of its own since CUDA 13. */
static bool in_toolkit(const char *name, size_t len, char path[PATH_BYTES])
{
    static const char *const variables[] = {"HONE_CUDA_PATH", "CUDA_HOME", "CUDA_PATH", NULL};
    static const char *const folders[] = {"include", "include/cccl"};
    char folder[PATH_BYTES];

    for (size_t v = 0; v < ARRAY_LEN(variables); v++) {
        const char *root = variables[v] != NULL ? getenv(variables[v]) : "/usr/local/cuda";
        for (size_t f = 0; root != NULL && f < ARRAY_LEN(folders); f++) {
            int n = snprintf(folder, sizeof folder, "%s/%s", root, folders[f]);
            if (n < PATH_BYTES && is_there(folder, strlen(folder), name, len, path)) {
                return true;
            }
        }
    }
    return false;
}

/* The folder of a path is what comes before its last slash. */
static size_t folder_len(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) : 0;
}

/* The text of a header that `from` includes, and where it lies: "" when it is built in. *out stays
 * NULL when it is not found. */
static hone_status find_text(const emu_options *o, const char *from, const char *name, size_t len,
                             char path[PATH_BYTES], char **out, hone_error *error)
{
    const char *own = templates_header(name, len);
    bool found = is_there(from, folder_len(from), name, len, path) ||
                 is_there(o->file, folder_len(o->file), name, len, path);

    for (size_t n = 0; !found && n < o->includes_len; n++) {
        found = is_there(o->includes[n], strlen(o->includes[n]), name, len, path);
    }
    if (!found && own != NULL) {
        path[0] = '\0';
        *out = strdup(own);
        return *out != NULL ? HONE_OK : status_set(error, HONE_NO_MEMORY, NULL, 0, "a header");
    }
    found = found || in_toolkit(name, len, path);
    return found ? emu_read_file(path, out, NULL, error) : HONE_OK;
}

static bool grow(char ***list, size_t more)
{
    char **grown = realloc(*list, more * sizeof *grown);

    *list = grown != NULL ? grown : *list;
    return grown != NULL;
}

/* Takes `text` over. */
static hone_status add(emu_headers *h, const char *name, size_t len, char *text, const char *path,
                       hone_error *error)
{
    size_t more = h->capacity * 2 + 32;

    if (h->len == h->capacity) {
        if (!grow(&h->names, more) || !grow(&h->texts, more) || !grow(&h->paths, more)) {
            free(text);
            return status_set(error, HONE_NO_MEMORY, NULL, 0, "a list of headers");
        }
        h->capacity = more;
    }
    h->names[h->len] = strndup(name, len);
    h->paths[h->len] = strdup(path);
    h->texts[h->len++] = text;
    return h->names[h->len - 1] != NULL && h->paths[h->len - 1] != NULL
               ? HONE_OK
               : status_set(error, HONE_NO_MEMORY, NULL, 0, "a header's name");
}

static hone_status add_from(const emu_options *o, const char *from, const char *text,
                            emu_headers *h, hone_error *error)
{
    hone_status status = HONE_OK;
    char path[PATH_BYTES];
    char *found = NULL;
    size_t len = 0;

    for (const char *name = next_include(text, &len); name != NULL;
         name = next_include(name, &len)) {
        if (has_header(h, name, len)) {
            continue;
        }
        if (h->len == HEADERS_MOST) {
            return status_set(error, HONE_LIMIT, o->file, 0, "includes over %d headers",
                              HEADERS_MOST);
        }
        found = NULL;
        TRY(find_text(o, from, name, len, path, &found, error));
        if (found != NULL) {
            TRY(add(h, name, len, found, path, error));
        }
    }
done:
    return status;
}

hone_status emu_headers_collect(const emu_options *o, const char *text, emu_headers *out,
                                hone_error *error)
{
    hone_status status = HONE_OK;
    emu_headers h = {.len = 0};

    TRY(add_from(o, o->file, text, &h, error));
    for (size_t n = 0; n < h.len; n++) { /* the list grows while it is walked */
        TRY(add_from(o, h.paths[n], h.texts[n], &h, error));
    }
    *out = h;
    h = (emu_headers){.len = 0};
done:
    emu_headers_free(&h);
    return status;
}
