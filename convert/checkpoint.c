/* checkpoint.c - shards, and the index that says which tensor lies in which. */
#include "convert/checkpoint.h"

#include "convert/bounded_json.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A checkpoint while it is opened. */
typedef struct opening {
    checkpoint *c;
    char *folder; /* that the shards lie in */
    json_t *map;  /* tensor -> file; NULL without an index */
} opening;

static int by_name(const void *left, const void *right)
{
    const checkpoint_entry *a = left, *b = right;

    return strcmp(a->tensor->name, b->tensor->name);
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static bool ends_in(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static hone_status refuse_many(const char *source, uint64_t tensors, hone_error *error)
{
    return status_set(error, HONE_LIMIT, source, 0,
                      "%" PRIu64 " tensors; at most %" PRIu64
                      " are read: convert a part of the shards at a time",
                      tensors, CHECKPOINT_TENSORS_MOST);
}

/* ---- Which files. -------------------------------------------------------------------------- */

/* Add a shard's name, once. */
static hone_status add_name(opening *o, const char *name, hone_error *error)
{
    checkpoint *c = o->c;

    for (size_t i = 0; i < c->shards_len; i++) {
        if (strcmp(c->names[i], name) == 0) {
            return HONE_OK;
        }
    }
    if (c->shards_len == CHECKPOINT_SHARDS_MOST) {
        return status_set(error, HONE_LIMIT, c->path, 0, "over %u shards", CHECKPOINT_SHARDS_MOST);
    }
    const char **grown = realloc(c->names, (c->shards_len + 1) * sizeof *grown);
    if (grown == NULL || (c->names = grown, grown[c->shards_len] = strdup(name)) == NULL) {
        return status_set(error, HONE_NO_MEMORY, c->path, 0, "a list of shards");
    }
    c->shards_len++;
    return HONE_OK;
}

static hone_status names_of_index(opening *o, const char *path, hone_error *error)
{
    hone_status status = HONE_OK;
    json_t *root = NULL, *value = NULL;
    const char *key = NULL;

    TRY(bounded_json_read(path, &root, error));
    o->map = json_incref(json_object_get(root, "weight_map"));
    if (!json_is_object(o->map)) {
        status = status_set(error, HONE_BAD_TEXT, path, 0,
                            "no 'weight_map' that gives each tensor its file; fetch the index "
                            "again");
        goto done;
    }
    if (json_object_size(o->map) > CHECKPOINT_TENSORS_MOST) {
        status = refuse_many(path, json_object_size(o->map), error);
        goto done;
    }
    json_object_foreach(o->map, key, value)
    {
        const char *name = json_string_value(value);
        if (name == NULL || strchr(name, '/') != NULL || !ends_in(name, ".safetensors") ||
            name[0] == '.') {
            status = status_set(error, HONE_BAD_TEXT, path, 0,
                                "tensor '%.150s' is said to lie in '%.150s', which is no "
                                ".safetensors file beside the index",
                                key, name != NULL ? name : "(no text)");
            goto done;
        }
        TRY(add_name(o, name, error));
    }
done:
    json_decref(root);
    return status;
}

static hone_status names_of_folder(opening *o, hone_error *error)
{
    hone_status status = HONE_OK;
    DIR *d = opendir(o->folder);

    if (d == NULL) {
        return status_set(error, HONE_IO, o->folder, 0, "cannot be read: %s", strerror(errno));
    }
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.' && ends_in(e->d_name, ".safetensors")) {
            TRY(add_name(o, e->d_name, error));
        }
    }
    if (o->c->shards_len == 0) {
        status = status_set(error, HONE_IO, o->folder, 0,
                            "holds neither " CHECKPOINT_INDEX " nor a .safetensors file");
    }
done:
    closedir(d);
    return status;
}

/* Where the shards lie and what they are called. */
static hone_status find_names(opening *o, hone_error *error)
{
    struct stat facts;
    const char *path = o->c->path;
    char *text = NULL;
    hone_status status = HONE_OK;

    if (stat(path, &facts) != 0) {
        return status_set(error, HONE_IO, path, 0, "cannot be opened: %s", strerror(errno));
    }
    o->c->folder = S_ISDIR(facts.st_mode) || ends_in(path, ".json");
    if (S_ISDIR(facts.st_mode)) {
        o->folder = strdup(path);
        if (o->folder == NULL || asprintf(&text, "%s/" CHECKPOINT_INDEX, path) < 0) {
            return status_set(error, HONE_NO_MEMORY, path, 0, "a path");
        }
        o->c->indexed = stat(text, &facts) == 0;
        status = o->c->indexed ? names_of_index(o, text, error) : names_of_folder(o, error);
        free(text);
        return status;
    }
    text = strdup(path);
    o->folder = text != NULL ? strdup(dirname(text)) : NULL;
    free(text);
    if (o->folder == NULL) {
        return status_set(error, HONE_NO_MEMORY, path, 0, "a path");
    }
    o->c->indexed = o->c->folder;
    const char *slash = strrchr(path, '/');
    return o->c->indexed ? names_of_index(o, path, error)
                         : add_name(o, slash != NULL ? slash + 1 : path, error);
}

/* ---- What is in them. ---------------------------------------------------------------------- */

static hone_status open_shards(opening *o, hone_error *error)
{
    hone_status status = HONE_OK;
    checkpoint *c = o->c;
    uint64_t headers = 0;
    char *path = NULL;

    c->shards = calloc(c->shards_len + 1, sizeof(safetensors_file *));
    if (c->shards == NULL) {
        return status_set(error, HONE_NO_MEMORY, c->path, 0, "a list of shards");
    }
    qsort(c->names, c->shards_len, sizeof *c->names, by_text);
    for (size_t i = 0; i < c->shards_len; i++) {
        if (asprintf(&path, "%s/%s", o->folder, c->names[i]) < 0) {
            path = NULL;
            return status_set(error, HONE_NO_MEMORY, c->path, 0, "a path");
        }
        TRY(safetensors_open(c->folder ? path : c->path, &c->shards[i], error));
        free(path);
        path = NULL;
        c->entries_len += safetensors_table_of(c->shards[i])->len;
        headers += safetensors_header_bytes(c->shards[i]);
        if (c->entries_len > CHECKPOINT_TENSORS_MOST) {
            status = refuse_many(c->path, c->entries_len, error);
            goto done;
        }
        if (headers > CHECKPOINT_HEADERS_MOST) {
            status = status_set(error, HONE_LIMIT, c->path, 0,
                                "headers of over %" PRIu64 " bytes together: convert a part of the "
                                "shards at a time, or give tensors shorter names",
                                CHECKPOINT_HEADERS_MOST);
            goto done;
        }
    }
done:
    free(path);
    return status;
}

static hone_status gather(checkpoint *c, hone_error *error)
{
    checkpoint_entry *entries = calloc(c->entries_len + 1, sizeof *entries);
    size_t len = 0;

    if (entries == NULL) {
        return status_set(error, HONE_NO_MEMORY, c->path, 0, "%zu tensors", c->entries_len);
    }
    c->entries = entries;
    for (size_t i = 0; i < c->shards_len; i++) {
        const safetensors_table *table = safetensors_table_of(c->shards[i]);
        for (size_t k = 0; k < table->len; k++) {
            entries[len++] = (checkpoint_entry){&table->tensors[k], i};
        }
    }
    qsort(entries, len, sizeof *entries, by_name);
    for (size_t i = 1; i < len; i++) {
        if (by_name(&entries[i - 1], &entries[i]) == 0) {
            return status_set(
                error, HONE_BAD_TEXT, c->path, 0,
                "tensor '%.200s' lies in %.100s and in %.100s; name one file, or give "
                "an index",
                entries[i].tensor->name, c->names[entries[i - 1].shard],
                c->names[entries[i].shard]);
        }
    }
    return HONE_OK;
}

/* The index names just what there is. */
static hone_status check_index(const opening *o, hone_error *error)
{
    const checkpoint *c = o->c;
    const char *key = NULL;
    json_t *value = NULL;

    json_object_foreach(o->map, key, value)
    {
        const checkpoint_entry *entry = checkpoint_find(c, key);
        if (entry == NULL || strcmp(c->names[entry->shard], json_string_value(value)) != 0) {
            return status_set(error, HONE_BAD_TEXT, c->path, 0,
                              "the index says that tensor '%.200s' lies in %.100s, which does not "
                              "hold it; fetch index and shards again",
                              key, json_string_value(value));
        }
    }
    for (size_t i = 0; i < c->entries_len; i++) {
        if (json_object_get(o->map, c->entries[i].tensor->name) == NULL) {
            return status_set(error, HONE_BAD_TEXT, c->path, 0,
                              "tensor '%.200s' lies in %.100s and the index leaves it out; fetch "
                              "index and shards again",
                              c->entries[i].tensor->name, c->names[c->entries[i].shard]);
        }
    }
    return HONE_OK;
}

hone_status checkpoint_open(const char *path, checkpoint **out, hone_error *error)
{
    hone_status status = HONE_OK;
    opening o = {.c = calloc(1, sizeof *o.c)};

    if (o.c == NULL || (o.c->path = strdup(path)) == NULL) {
        status = status_set(error, HONE_NO_MEMORY, path, 0, "a checkpoint");
        goto done;
    }
    TRY(find_names(&o, error));
    TRY(open_shards(&o, error));
    TRY(gather(o.c, error));
    if (o.map != NULL) {
        TRY(check_index(&o, error));
    }
    *out = o.c;
    o.c = NULL;
done:
    checkpoint_close(o.c);
    json_decref(o.map);
    free(o.folder);
    return status;
}

void checkpoint_close(checkpoint *c)
{
    if (c != NULL) {
        for (size_t i = 0; i < c->shards_len; i++) {
            safetensors_close(c->shards != NULL ? c->shards[i] : NULL);
            free((char *)c->names[i]);
        }
        free(c->shards);
        free(c->names);
        free((checkpoint_entry *)c->entries);
        free((char *)c->path);
        free(c);
    }
}

const checkpoint_entry *checkpoint_find(const checkpoint *c, const char *name)
{
    const safetensors_tensor tensor = {.name = name};
    const checkpoint_entry key = {&tensor, 0};

    return bsearch(&key, c->entries, c->entries_len, sizeof key, by_name);
}
