/* safetensors_read.c - an open file and windows over its data.
 *
 * A window is mapped and read in at once (MADV_POPULATE_READ), so that a file that was cut and a
 * disk that fails are errors here and no signal later; small ones, and all on kernels without that,
 * are read. No more than the open windows is ever resident. */
#include "convert/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct safetensors_file {
    int fd;
    char *path;
    safetensors_table *table;
    uint64_t data_at; /* where the data begins in the file */
};

/* Mapping costs a few system calls and two rounds of page tables: below this, copying is cheaper.
 */
static const uint64_t map_least = 64 << 10;

static hone_status read_all(const char *path, int fd, uint64_t offset, void *bytes, uint64_t len,
                            hone_error *error)
{
    char *at = bytes;

    while (len > 0) {
        ssize_t got = pread(fd, at, len < (1 << 30) ? len : 1 << 30, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return status_set(error, HONE_IO, path, 0,
                              "byte %" PRIu64 " cannot be read: %s; fetch the file again, or check "
                              "the disk",
                              offset, got < 0 ? strerror(errno) : "the file ends before it");
        }
        at += got;
        offset += (uint64_t)got;
        len -= (uint64_t)got;
    }
    return HONE_OK;
}

static hone_status read_header(safetensors_file *f, uint64_t file_bytes, hone_error *error)
{
    hone_status status = HONE_OK;
    uint8_t prefix[8];
    uint64_t len = 0;
    char *text = NULL;

    if (file_bytes < 8) {
        return status_set(error, HONE_BAD_TEXT, f->path, 0,
                          "%" PRIu64 " bytes: a safetensors file begins with 8 that give its "
                          "header's length; fetch the file again",
                          file_bytes);
    }
    TRY(read_all(f->path, f->fd, 0, prefix, sizeof prefix, error));
    for (int i = 7; i >= 0; i--) {
        len = len << 8 | prefix[i];
    }
    if (len > file_bytes - 8) {
        return status_set(error, HONE_BAD_TEXT, f->path, 0,
                          "the header's length is given as %" PRIu64
                          " bytes and the file has %" PRIu64
                          " behind it: it was cut, or is no safetensors file; fetch it again",
                          len, file_bytes - 8);
    }
    if (len > SAFETENSORS_HEADER_MOST) {
        return status_set(error, HONE_LIMIT, f->path, 0,
                          "a header of %" PRIu64 " bytes; at most %" PRIu64
                          " are read: split the file in shards",
                          len, SAFETENSORS_HEADER_MOST);
    }
    text = malloc(len + 1);
    if (text == NULL) {
        return status_set(error, HONE_NO_MEMORY, f->path, 0, "a header of %" PRIu64 " bytes", len);
    }
    TRY(read_all(f->path, f->fd, 8, text, len, error));
    f->data_at = 8 + len;
    TRY(safetensors_parse(f->path, text, len, file_bytes - f->data_at, &f->table, error));
done:
    free(text);
    return status;
}

hone_status safetensors_open(const char *path, safetensors_file **out, hone_error *error)
{
    hone_status status = HONE_OK;
    struct stat facts;
    safetensors_file *f = calloc(1, sizeof *f);

    if (f == NULL || (f->path = strdup(path)) == NULL) {
        free(f);
        return status_set(error, HONE_NO_MEMORY, path, 0, "a file");
    }
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f->fd < 0 || fstat(f->fd, &facts) != 0) {
        status = status_set(error, HONE_IO, path, 0, "cannot be opened: %s", strerror(errno));
        goto done;
    }
    if (!S_ISREG(facts.st_mode)) {
        status =
            status_set(error, HONE_IO, path, 0, "is no regular file; name a .safetensors file");
        goto done;
    }
    TRY(read_header(f, (uint64_t)facts.st_size, error));
    *out = f;
    f = NULL;
done:
    safetensors_close(f);
    return status;
}

void safetensors_close(safetensors_file *f)
{
    if (f != NULL) {
        if (f->fd >= 0) {
            close(f->fd);
        }
        safetensors_free(f->table);
        free(f->path);
        free(f);
    }
}

const safetensors_table *safetensors_table_of(const safetensors_file *f)
{
    return f->table;
}

const char *safetensors_path(const safetensors_file *f)
{
    return f->path;
}

uint64_t safetensors_header_bytes(const safetensors_file *f)
{
    return f->data_at - 8;
}

/* Map [at, at + bytes) of the file; false when that is not to be had, to be read instead. */
static bool map_window(const safetensors_file *f, uint64_t at, uint64_t bytes,
                       safetensors_window *w)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), slack = at % page;

    w->base_len = bytes + slack;
    w->base = mmap(NULL, w->base_len, PROT_READ, MAP_SHARED, f->fd, (off_t)(at - slack));
    if (w->base == MAP_FAILED) {
        return false;
    }
#ifdef MADV_POPULATE_READ
    if (madvise(w->base, w->base_len, MADV_POPULATE_READ) == 0) {
        w->bytes = (const uint8_t *)w->base + slack;
        return true;
    }
#endif
    munmap(w->base, w->base_len);
    return false;
}

static hone_status check_range(const safetensors_file *f, const safetensors_tensor *t,
                               uint64_t offset, uint64_t bytes, hone_error *error)
{
    return offset <= t->bytes && bytes <= t->bytes - offset
               ? HONE_OK
               : status_set(error, HONE_BAD_ARGUMENT, f->path, 0,
                            "tensor '%.200s': a window past its %" PRIu64 " bytes", t->name,
                            t->bytes);
}

hone_status safetensors_read(const safetensors_file *f, const safetensors_tensor *t,
                             uint64_t offset, void *to, uint64_t bytes, hone_error *error)
{
    hone_status status = check_range(f, t, offset, bytes, error);

    return status == HONE_OK
               ? read_all(f->path, f->fd, f->data_at + t->begin + offset, to, bytes, error)
               : status;
}

hone_status safetensors_view(const safetensors_file *f, const safetensors_tensor *t,
                             uint64_t offset, uint64_t bytes, safetensors_window *out,
                             hone_error *error)
{
    const uint64_t at = f->data_at + t->begin + offset;
    safetensors_window w = {0};

    hone_status status = check_range(f, t, offset, bytes, error);
    if (status != HONE_OK) {
        return status;
    }
    if (bytes < map_least || !map_window(f, at, bytes, &w)) {
        w = (safetensors_window){.base = malloc(bytes + 1), .base_len = bytes, .copied = true};
        if (w.base == NULL) {
            return status_set(error, HONE_NO_MEMORY, f->path, 0, "a window of %" PRIu64 " bytes",
                              bytes);
        }
        status = read_all(f->path, f->fd, at, w.base, bytes, error);
        if (status != HONE_OK) {
            free(w.base);
            return status;
        }
        w.bytes = w.base;
    }
    *out = w;
    return HONE_OK;
}

void safetensors_unview(safetensors_window *w)
{
    if (w->copied) {
        free(w->base);
    } else if (w->base != NULL) {
        munmap(w->base, w->base_len);
    }
    *w = (safetensors_window){0};
}
