/* file.c - files that are replaced whole, and strangers' JSON whose cost is known before it is
 * parsed. */
#include "exchange/exchange_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_DEPTH = 16, MOST_VALUES = 1 << 20, MOST_BYTES = 32 << 20, PATIENCE = 100 };

/* The temporary file's path: hidden, beside the file, always the same, so that what a killed
 * process left is written over. NULL when memory is out. */
static char *path_beside(const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t folder = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    const size_t bytes = strlen(path) + sizeof "..part";
    char *made = malloc(bytes);

    if (made != NULL) {
        snprintf(made, bytes, "%.*s.%s.part", (int)folder, path, path + folder);
    }
    return made;
}

/* Open the temporary file for this process alone. Another one may rename it between the open and
 * the lock; then it is no more ours to write. */
static hone_status open_alone(const char *path, const char *part, int *out, hone_error *error)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000000};
    struct stat named, opened;

    for (int tries = 0; tries < PATIENCE; tries++) {
        int fd = open(part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0) {
            return status_set(error, HONE_IO, path, 0, "cannot be written: %s", strerror(errno));
        }
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && stat(part, &named) == 0 &&
            fstat(fd, &opened) == 0 && named.st_ino == opened.st_ino &&
            named.st_dev == opened.st_dev) {
            *out = fd;
            return HONE_OK;
        }
        close(fd);
        nanosleep(&pause, NULL);
    }
    return status_set(error, HONE_TAKEN, path, 0, "another process is writing it; try again later");
}

static bool write_all(int fd, const char *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        const ssize_t wrote = write(fd, bytes + done, len - done);
        if (wrote < 0 && errno != EINTR) {
            return false;
        }
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return true;
}

static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    int fd = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(folder);
}

hone_status exchange_replace_file(const char *path, const char *bytes, size_t len,
                                  hone_error *error)
{
    hone_status status = HONE_OK;
    char *part = path_beside(path);
    struct stat there;
    int fd = -1;

    if (part == NULL) {
        return exchange_no_memory(path, error);
    }
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        status = status_set(error, HONE_IO, path, 0, "is no regular file; name another");
        goto done;
    }
    TRY(open_alone(path, part, &fd, error));
    if (ftruncate(fd, 0) != 0 || !write_all(fd, bytes, len) || fsync(fd) != 0 ||
        rename(part, path) != 0) {
        status = status_set(error, HONE_IO, path, 0, "cannot be written: %s", strerror(errno));
        unlink(part);
        goto done;
    }
    sync_folder(path);
done:
    if (fd >= 0) {
        close(fd);
    }
    free(part);
    return status;
}

/* What a walk over the text finds before it is parsed. */
typedef struct outline {
    size_t rows_end; /* behind the last bracket that two deep opened, or that came back there */
    int depth;       /* at the end */
    bool inside;     /* a string, at the end */
} outline;

static hone_status walk(const char *source, char *text, size_t len, bool mend, outline *out,
                        hone_error *error)
{
    outline o = {0};
    size_t values = 0, comma = 0;
    int line = 1;

    for (size_t i = 0; i < len; i++) {
        const char c = text[i];
        line += c == '\n';
        if (o.inside) {
            i += c == '\\';
            o.inside = c != '"';
            continue;
        }
        const bool opens = c == '[' || c == '{', closes = c == ']' || c == '}';
        o.inside = c == '"';
        values += c == ',' || opens;
        o.depth += opens - closes;
        if (o.depth > MOST_DEPTH || values > MOST_VALUES) {
            return o.depth > MOST_DEPTH
                       ? status_set(error, HONE_BAD_TEXT, source, line, "nested past %d",
                                    MOST_DEPTH)
                       : status_set(error, HONE_LIMIT, source, line, "over %d values", MOST_VALUES);
        }
        if (closes && mend && comma > 0) {
            text[comma - 1] = ' '; /* a comma with nothing behind it */
        }
        if ((opens || closes) && o.depth == 2) {
            o.rows_end = i + 1;
        }
        comma = c == ',' ? i + 1 : strchr(" \t\r\n", c) != NULL ? comma : 0;
    }
    *out = o;
    return HONE_OK;
}

/* Complete what was cut off behind the last whole row, or behind "cache": { when there is none.
 * `text` has room for two bytes more. */
static size_t complete(char *text, size_t len, const outline *o)
{
    if (o->rows_end == 0) {
        return len;
    }
    memcpy(text + o->rows_end, "}}", 2);
    return o->rows_end + 2;
}

static hone_status read_bytes(const char *path, char **out, size_t *len, hone_error *error)
{
    hone_status status = HONE_OK;
    struct stat facts;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make it wait */
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    char *text = NULL;

    if (file == NULL || fstat(fd, &facts) != 0) {
        status = status_set(error, HONE_IO, path, 0, "cannot be read: %s", strerror(errno));
        goto done;
    }
    if (!S_ISREG(facts.st_mode) || facts.st_size > MOST_BYTES) {
        status = status_set(error, HONE_LIMIT, path, 0,
                            "is no regular file of at most %d bytes; split it", MOST_BYTES);
        goto done;
    }
    text = malloc((size_t)facts.st_size + 3);
    if (text == NULL) {
        status = exchange_no_memory(path, error);
        goto done;
    }
    *len = fread(text, 1, (size_t)facts.st_size, file);
    *out = text;
done:
    if (file != NULL) {
        fclose(file);
    } else if (fd >= 0) {
        close(fd);
    }
    return status;
}

hone_status exchange_read_json(const char *path, bool *torn, json_t **out, hone_error *error)
{
    hone_status status = HONE_OK;
    json_error_t why;
    char *text = NULL;
    size_t len = 0;
    outline o = {0};

    TRY(read_bytes(path, &text, &len, error));
    if (memchr(text, '\0', len) != NULL) {
        status = status_set(error, HONE_BAD_TEXT, path, 0, "holds a NUL byte: no JSON");
        goto done;
    }
    TRY(walk(path, text, len, torn != NULL, &o, error));
    const bool cut = torn != NULL && o.depth > 0;
    len = cut ? complete(text, len, &o) : len;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL) {
        status = status_set(error, HONE_BAD_TEXT, path, why.line, "column %d: %.200s", why.column,
                            why.text);
        goto done;
    }
    if (!json_is_object(root)) {
        json_decref(root);
        status = status_set(error, HONE_BAD_TEXT, path, 1, "is no JSON object");
        goto done;
    }
    if (torn != NULL) {
        *torn = cut;
    }
    *out = root;
done:
    free(text);
    return status;
}
