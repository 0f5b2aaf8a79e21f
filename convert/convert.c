/* convert.c - shard by shard to hidden files, which get their names at the end. */
#include "convert/convert.h"

#include "convert/bounded_json.h"
#include "convert/convert_parts.h"
#include "convert/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- One shard. ---------------------------------------------------------------------------- */

static void merge(void *context, uint64_t job, const void *result)
{
    convert_shard *c = context;
    const convert_result *r = result;
    const plan_item *item = convert_item(c->shard, job);

    c->done += r->bytes;
    if (item->kind == PLAN_FOLD) {
        fold_sums_add(&c->rows[item->row].fold, &r->fold);
    } else if (item->kind == PLAN_REQUANTISE) {
        requantise_sums_add(&c->rows[item->row].requantise, &r->requantise);
    }
}

static int show(void *context, uint64_t done)
{
    const convert_shard *c = context;

    (void)done; /* jobs; bytes say more */
    return c->options->progress(c->options->context, c->done, c->plan->bytes);
}

static hone_status write_shard(convert_shard *c, size_t index, const char *path, bool replace,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    const pool_work work = {.jobs = c->plan->shards[index].jobs,
                            .threads = c->options->threads,
                            .scratch_bytes = sizeof(convert_scratch),
                            .result_bytes = sizeof(convert_result),
                            .context = c,
                            .run = convert_job,
                            .merge = merge,
                            .progress = c->options->progress != NULL ? show : NULL};

    c->shard = &c->plan->shards[index];
    TRY(safetensors_create(path, &c->shard->table, replace, &c->writer, error));
    TRY(pool_run(&work, error));
    status = safetensors_commit(c->writer, error);
    c->writer = NULL;
done:
    safetensors_abandon(c->writer);
    c->writer = NULL;
    return status;
}

/* ---- A folder of them. --------------------------------------------------------------------- */

/* A folder that is filled under a hidden name. */
typedef struct folder {
    char *path, *hidden; /* path: without a slash at its end */
    bool made;
} folder;

static hone_status make_folder(const char *path, folder *f, hone_error *error)
{
    size_t len = strlen(path);
    struct stat facts;
    uint64_t random = 0;

    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    f->path = strndup(path, len);
    const char *slash = f->path != NULL ? strrchr(f->path, '/') : NULL;
    const int above = slash != NULL ? (int)(slash + 1 - f->path) : 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) {
        random = (uint64_t)getpid();
    }
    if (f->path == NULL ||
        asprintf(&f->hidden, "%.*s.%s.%016" PRIx64, above, f->path, f->path + above, random) < 0) {
        f->hidden = NULL;
        return status_set(error, HONE_NO_MEMORY, path, 0, "a path");
    }
    if (lstat(f->path, &facts) == 0) {
        return status_set(error, HONE_BAD_ARGUMENT, path, 0,
                          "exists; shards are written to a new folder only");
    }
    if (mkdir(f->hidden, 0777) != 0) {
        return status_set(error, HONE_IO, path, 0,
                          "no folder can be made beside it: %s; choose another place",
                          strerror(errno));
    }
    f->made = true;
    return HONE_OK;
}

static char *path_in(const folder *f, const char *name)
{
    char *path = NULL;

    return asprintf(&path, "%s/%s", f->hidden, name) < 0 ? NULL : path;
}

/* Take back what was written, unless it has its name by now. */
static void end_folder(const plan *p, folder *f)
{
    for (size_t i = 0; f->made && i <= p->from->shards_len; i++) {
        char *path = path_in(f, i < p->from->shards_len ? p->from->names[i] : CHECKPOINT_INDEX);
        if (path != NULL) {
            unlink(path);
        }
        free(path);
    }
    if (f->made) {
        rmdir(f->hidden);
    }
    free(f->path);
    free(f->hidden);
}

typedef struct place {
    const char *name, *shard;
} place;

static int by_name(const void *left, const void *right)
{
    const place *a = left, *b = right;

    return strcmp(a->name, b->name);
}

static void print_index(FILE *to, const plan *p, const place *places, size_t len)
{
    fprintf(to, "{\n  \"metadata\": {\n    \"total_size\": %" PRIu64 "\n  },\n  \"weight_map\": {",
            p->bytes);
    for (size_t i = 0; i < len; i++) {
        fputs(i > 0 ? ",\n    " : "\n    ", to);
        bounded_json_print(to, places[i].name);
        fputs(": ", to);
        bounded_json_print(to, places[i].shard);
    }
    fputs("\n  }\n}\n", to);
}

static hone_status write_index(const plan *p, const folder *f, hone_error *error)
{
    hone_status status = HONE_OK;
    size_t len = 0, filled = 0;
    char *path = path_in(f, CHECKPOINT_INDEX);
    FILE *file = path != NULL ? fopen(path, "wxe") : NULL;

    for (size_t i = 0; i < p->from->shards_len; i++) {
        len += p->shards[i].table.len;
    }
    place *places = calloc(len + 1, sizeof *places);
    if (file == NULL || places == NULL) {
        status = status_set(error, file == NULL ? HONE_IO : HONE_NO_MEMORY, f->path, 0,
                            "an index of %zu tensors", len);
        goto done;
    }
    for (size_t i = 0; i < p->from->shards_len; i++) {
        for (size_t k = 0; k < p->shards[i].table.len; k++) {
            places[filled++] = (place){p->shards[i].table.tensors[k].name, p->from->names[i]};
        }
    }
    qsort(places, len, sizeof *places, by_name);
    print_index(file, p, places, len);
    if (fflush(file) != 0 || ferror(file) || fsync(fileno(file)) != 0) {
        status = status_set(error, HONE_IO, f->path, 0,
                            "its index cannot be written: %s; make room", strerror(errno));
        goto done;
    }
    safetensors_sync_folder(path);
done:
    if (file != NULL) {
        fclose(file);
    }
    free(path);
    free(places);
    return status;
}

static hone_status name_folder(folder *f, hone_error *error)
{
    if (renameat2(AT_FDCWD, f->hidden, AT_FDCWD, f->path, RENAME_NOREPLACE) != 0 &&
        ((errno != EINVAL && errno != ENOSYS) || rename(f->hidden, f->path) != 0)) {
        return status_set(error, HONE_IO, f->path, 0, "cannot be completed: %s", strerror(errno));
    }
    f->made = false; /* it is no more ours to remove */
    safetensors_sync_folder(f->path);
    return HONE_OK;
}

static hone_status write_folder(convert_shard *c, const char *path, hone_error *error)
{
    hone_status status = HONE_OK;
    const checkpoint *from = c->plan->from;
    folder f = {0};
    char *shard = NULL;

    TRY(make_folder(path, &f, error));
    for (size_t i = 0; i < from->shards_len; i++) {
        shard = path_in(&f, from->names[i]);
        if (shard == NULL) {
            status = status_set(error, HONE_NO_MEMORY, path, 0, "a path");
            goto done;
        }
        TRY(write_shard(c, i, shard, false, error));
        free(shard);
        shard = NULL;
    }
    if (from->indexed) {
        TRY(write_index(c->plan, &f, error));
    }
    TRY(name_folder(&f, error));
done:
    free(shard);
    end_folder(c->plan, &f);
    return status;
}

/* ---- All. ---------------------------------------------------------------------------------- */

/* An output that is the input would be read while it is replaced. */
static hone_status refuse_same(const plan *p, const char *path, hone_error *error)
{
    struct stat in, out;

    if (stat(p->from->path, &in) == 0 && stat(path, &out) == 0 && in.st_dev == out.st_dev &&
        in.st_ino == out.st_ino) {
        return status_set(error, HONE_BAD_ARGUMENT, path, 0, "is the input; write to another name");
    }
    return HONE_OK;
}

hone_status convert_run(const plan *p, const char *path, const convert_options *options,
                        convert_row *rows, hone_error *error)
{
    hone_status status = HONE_OK;
    fold_costs *costs = malloc(sizeof *costs);
    convert_shard c = {.plan = p, .options = options, .rows = rows, .lanes = fold_lanes_best()};

    if (costs == NULL) {
        return status_set(error, HONE_NO_MEMORY, path, 0, "tables");
    }
    fold_costs_make(costs);
    c.costs = costs;
    for (size_t i = 0; i < p->from->shards_len; i++) {
        for (size_t k = 0; k < p->shards[i].items_len; k++) {
            const plan_item *item = &p->shards[i].items[k];
            if (item->kind != PLAN_COPY) {
                rows[item->row] = (convert_row){.item = item};
            }
        }
    }
    TRY(refuse_same(p, path, error));
    TRY(p->from->folder ? write_folder(&c, path, error)
                        : write_shard(&c, 0, path, options->replace, error));
done:
    free(costs);
    return status;
}
