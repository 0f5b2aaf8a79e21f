/* safetensors_write.c - a file that is there whole or not at all.
 *
 * Bytes go to a hidden file in the same folder, by offset and from any thread; commit brings it to
 * the disk and renames it. What ends in between leaves nothing under the file's own name. */
#include "convert/safetensors.h"

#include "convert/bounded_json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

struct safetensors_writer {
    int fd;
    bool replace;
    char *path, *hidden;
    safetensors_tensor *tensors; /* as given, with the place that each got */
    size_t len;
    uint64_t data_at, data_bytes;
    _Atomic uint64_t written;
};

typedef struct place {
    size_t index;
    unsigned unit;
} place;

static int by_unit(const void *left, const void *right)
{
    const place *a = left, *b = right;

    if (a->unit != b->unit) {
        return a->unit > b->unit ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Give every tensor its place in the data; `order` gets their indices as they lie. */
static hone_status lay_out(safetensors_writer *w, place *order, hone_error *error)
{
    hone_status status = HONE_OK;

    for (size_t i = 0; i < w->len; i++) {
        unsigned bits = safetensors_dtype_bits(w->tensors[i].dtype);
        order[i] = (place){i, bits < 8 ? 1 : bits / 8};
        TRY(safetensors_bytes(w->path, &w->tensors[i], &w->tensors[i].bytes, error));
    }
    qsort(order, w->len, sizeof *order, by_unit);
    for (size_t i = 0; i < w->len; i++) {
        safetensors_tensor *t = &w->tensors[order[i].index];
        t->begin = w->data_bytes;
        if (__builtin_add_overflow(w->data_bytes, t->bytes, &w->data_bytes) ||
            w->data_bytes > INT64_MAX - 2 * SAFETENSORS_HEADER_MOST) {
            return status_set(error, HONE_OVERFLOW, w->path, 0,
                              "more than 2^63 bytes of tensors; write them in shards");
        }
    }
done:
    return status;
}

static bool print_tensor(FILE *to, const safetensors_tensor *t)
{
    const bool good = bounded_json_print(to, t->name);

    fprintf(to, ":{\"dtype\":\"%s\",\"shape\":[", safetensors_dtype_name(t->dtype));
    for (uint32_t i = 0; i < t->rank; i++) {
        fprintf(to, "%s%" PRIu64, i > 0 ? "," : "", t->shape[i]);
    }
    fprintf(to, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", t->begin, t->begin + t->bytes);
    return good;
}

static bool print_header(FILE *to, const safetensors_writer *w, const place *order,
                         const safetensors_table *table)
{
    bool good = true;

    fputs("{", to);
    for (size_t i = 0; i < table->notes_len && good; i++) {
        fputs(i == 0 ? "\"__metadata__\":{" : ",", to);
        good = bounded_json_print(to, table->notes[i].key) && fputs(":", to) >= 0 &&
               bounded_json_print(to, table->notes[i].value);
    }
    fputs(table->notes_len > 0 ? "}" : "", to);
    for (size_t i = 0; i < w->len && good; i++) {
        fputs(i > 0 || table->notes_len > 0 ? "," : "", to);
        good = print_tensor(to, &w->tensors[order[i].index]);
    }
    fputs("}", to);
    return good;
}

/* Where the data begins: whole pages of it are written, and readers that map the file find tensors
 * where vectors want them. */
static const long data_align = 4096;

/* The header's text, padded with spaces up to the data; NULL when memory is out. Caller frees. */
static char *header_text(const safetensors_writer *w, const place *order,
                         const safetensors_table *table, size_t *len)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, len);

    if (to == NULL) {
        return NULL;
    }
    bool good = print_header(to, w, order, table);
    for (long at = ftell(to) + 8; good && at % data_align != 0; at++) {
        fputc(' ', to);
    }
    good = !ferror(to) && good;
    if (fclose(to) != 0 || !good) {
        free(text);
        return NULL;
    }
    return text;
}

static hone_status put(safetensors_writer *w, uint64_t at, const void *bytes, size_t len,
                       hone_error *error)
{
    const char *from = bytes;

    while (len > 0) {
        ssize_t put = pwrite(w->fd, from, len < (1 << 30) ? len : 1 << 30, (off_t)at);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return status_set(error, HONE_IO, w->path, 0,
                              "byte %" PRIu64
                              " cannot be written: %s; make room, or write elsewhere",
                              at, put < 0 ? strerror(errno) : "nothing was taken");
        }
        from += put;
        at += (uint64_t)put;
        len -= (size_t)put;
    }
    return HONE_OK;
}

/* A name beside `path` that nobody has, opened. */
static hone_status open_hidden(safetensors_writer *w, hone_error *error)
{
    const char *slash = strrchr(w->path, '/'), *base = slash != NULL ? slash + 1 : w->path;
    int why = EEXIST;

    for (int tries = 0; tries < 8 && w->fd < 0 && why == EEXIST; tries++) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, 0) != sizeof random) {
            random = (uint64_t)getpid() << 8 | (uint64_t)tries;
        }
        free(w->hidden);
        w->hidden = NULL;
        if (asprintf(&w->hidden, "%.*s.%s.%016" PRIx64, (int)(base - w->path), w->path, base,
                     random) < 0) {
            w->hidden = NULL;
            return status_set(error, HONE_NO_MEMORY, w->path, 0, "a path");
        }
        w->fd = open(w->hidden, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        why = errno;
    }
    if (w->fd < 0) {
        free(w->hidden); /* nothing of ours to remove */
        w->hidden = NULL;
        return status_set(error, HONE_IO, w->path, 0,
                          "no file can be made beside it: %s; choose a folder that can be written",
                          strerror(why));
    }
    return HONE_OK;
}

static hone_status write_header(safetensors_writer *w, const safetensors_table *table,
                                hone_error *error)
{
    hone_status status = HONE_OK;
    place *order = calloc(w->len + 1, sizeof *order);
    char *text = NULL;
    size_t len = 0;
    uint8_t prefix[8];

    if (order == NULL) {
        return status_set(error, HONE_NO_MEMORY, w->path, 0, "%zu tensors", w->len);
    }
    TRY(lay_out(w, order, error));
    text = header_text(w, order, table, &len);
    if (text == NULL) {
        status = status_set(error, HONE_NO_MEMORY, w->path, 0, "a header of %zu tensors", w->len);
        goto done;
    }
    for (int i = 0; i < 8; i++) {
        prefix[i] = (uint8_t)(len >> 8 * i);
    }
    w->data_at = 8 + len;
    TRY(put(w, 0, prefix, sizeof prefix, error));
    TRY(put(w, 8, text, len, error));
    if (ftruncate(w->fd, (off_t)(w->data_at + w->data_bytes)) != 0) {
        status = status_set(error, HONE_IO, w->path, 0,
                            "%" PRIu64 " bytes: %s; write elsewhere, or in shards",
                            safetensors_size(w), strerror(errno));
    }
done:
    free(order);
    free(text);
    return status;
}

hone_status safetensors_create(const char *path, const safetensors_table *table, bool replace,
                               safetensors_writer **out, hone_error *error)
{
    hone_status status = HONE_OK;
    struct stat facts;
    safetensors_writer *w = calloc(1, sizeof *w);

    if (w == NULL) {
        return status_set(error, HONE_NO_MEMORY, path, 0, "a file");
    }
    w->fd = -1;
    w->replace = replace;
    w->len = table->len;
    w->path = strdup(path);
    w->tensors = calloc(table->len + 1, sizeof *w->tensors);
    if (w->path == NULL || w->tensors == NULL) {
        status = status_set(error, HONE_NO_MEMORY, path, 0, "%zu tensors", table->len);
        goto done;
    }
    if (!replace && lstat(path, &facts) == 0) {
        status = status_set(error, HONE_BAD_ARGUMENT, path, 0,
                            "exists; remove it, or ask for it to be replaced");
        goto done;
    }
    for (size_t i = 0; i < table->len; i++) {
        w->tensors[i] = table->tensors[i];
    }
    TRY(open_hidden(w, error));
    TRY(write_header(w, table, error));
    *out = w;
    w = NULL;
done:
    safetensors_abandon(w);
    return status;
}

uint64_t safetensors_size(const safetensors_writer *w)
{
    return w->data_at + w->data_bytes;
}

hone_status safetensors_write(safetensors_writer *w, size_t index, uint64_t offset,
                              const void *bytes, size_t len, hone_error *error)
{
    const safetensors_tensor *t = &w->tensors[index];

    if (index >= w->len || offset > t->bytes || len > t->bytes - offset) {
        return status_set(error, HONE_BAD_ARGUMENT, w->path, 0, "bytes past the end of a tensor");
    }
    atomic_fetch_add_explicit(&w->written, len, memory_order_relaxed);
    return put(w, w->data_at + t->begin + offset, bytes, len, error);
}

void safetensors_sync_folder(const char *path)
{
    char *copy = strdup(path);
    int fd = copy != NULL ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(copy);
}

static int give_name(const safetensors_writer *w)
{
    if (!w->replace) {
        int rc = renameat2(AT_FDCWD, w->hidden, AT_FDCWD, w->path, RENAME_NOREPLACE);
        if (rc == 0 || (errno != EINVAL && errno != ENOSYS)) {
            return rc;
        }
    }
    return rename(w->hidden, w->path);
}

hone_status safetensors_commit(safetensors_writer *w, hone_error *error)
{
    hone_status status = HONE_OK;

    if (w->written != w->data_bytes) {
        status = status_set(error, HONE_BAD_ARGUMENT, w->path, 0,
                            "%" PRIu64 " of %" PRIu64 " bytes were written", (uint64_t)w->written,
                            w->data_bytes);
        goto done;
    }
    if (fsync(w->fd) != 0 || give_name(w) != 0) {
        status = status_set(error, HONE_IO, w->path, 0, "cannot be completed: %s", strerror(errno));
        goto done;
    }
    free(w->hidden); /* it has its own name now */
    w->hidden = NULL;
    safetensors_sync_folder(w->path);
done:
    safetensors_abandon(w);
    return status;
}

void safetensors_abandon(safetensors_writer *w)
{
    if (w != NULL) {
        if (w->hidden != NULL) {
            unlink(w->hidden);
        }
        if (w->fd >= 0) {
            close(w->fd);
        }
        free(w->hidden);
        free(w->path);
        free(w->tensors);
        free(w);
    }
}
