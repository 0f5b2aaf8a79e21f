/* problem_file.c - see problem_file.h. */
#include "cli/problem_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_TIMES (INT64_C(1) << 62) /* two of them can be added */

/* What is read so far. */
typedef struct reading {
    const char *path;
    llm_problem *list;
    size_t len, capacity;
} reading;

/* The whole file with a NUL behind it. A FIFO or a device is refused. Caller frees *out. */
static hone_status slurp(const char *path, char **out, hone_error *error)
{
    hone_status status = HONE_OK;
    struct stat facts;
    char *text = NULL;
    size_t len = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &facts) != 0) {
        status = status_set(error, HONE_IO, path, 0, "%s", strerror(errno));
        goto done;
    }
    if (!S_ISREG(facts.st_mode) || facts.st_size > (off_t)PROBLEM_FILE_BYTES) {
        status = status_set(error, HONE_LIMIT, path, 0, "no regular file of at most %u MiB",
                            PROBLEM_FILE_BYTES >> 20);
        goto done;
    }
    text = malloc((size_t)facts.st_size + 1);
    if (text == NULL) {
        status = status_set(error, HONE_NO_MEMORY, path, 0, "%lld bytes", (long long)facts.st_size);
        goto done;
    }
    while (len < (size_t)facts.st_size) {
        const ssize_t got = read(fd, text + len, (size_t)facts.st_size - len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            status = status_set(error, HONE_IO, path, 0, "%s", strerror(errno));
            goto done;
        }
        if (got == 0) {
            break; /* cut short meanwhile */
        }
        len += (size_t)got;
    }
    text[len] = '\0';
    if (strlen(text) != len) {
        status = status_set(error, HONE_BAD_TEXT, path, 0, "a NUL byte; this is no text");
        goto done;
    }
    *out = text;
    text = NULL;
done:
    if (fd >= 0) {
        close(fd);
    }
    free(text);
    return status;
}

/* The number at the start of a line, or 1; *line is moved behind it. */
static hone_status read_count(const reading *r, int number, char **line, int64_t *out,
                              hone_error *error)
{
    char *end = *line;
    const size_t digits = strspn(*line, "0123456789");

    *out = 1;
    if (digits == 0) {
        return HONE_OK;
    }
    errno = 0;
    *out = strtoll(*line, &end, 10);
    if (errno != 0 || *out < 1 || *out > MOST_TIMES || (*end != ' ' && *end != '\t')) {
        return status_set(error, HONE_BAD_TEXT, r->path, number,
                          "a line is a problem, or a count from 1 on, a blank and a problem");
    }
    *line = end + strspn(end, " \t");
    return HONE_OK;
}

static int32_t capped(int64_t times)
{
    return times < INT32_MAX ? (int32_t)times : INT32_MAX;
}

static hone_status add(reading *r, int number, const hone_problem *problem, int64_t times,
                       hone_error *error)
{
    for (size_t i = 0; i < r->len; i++) {
        if (memcmp(&r->list[i].problem, problem, sizeof *problem) == 0) {
            r->list[i].launches = capped(r->list[i].launches + times);
            return HONE_OK;
        }
    }
    if (r->len == PROBLEM_FILE_MOST) {
        return status_set(error, HONE_LIMIT, r->path, number, "over %d problems",
                          PROBLEM_FILE_MOST);
    }
    if (r->len == r->capacity) {
        const size_t capacity = r->capacity == 0 ? 64 : 2 * r->capacity;
        llm_problem *grown = realloc(r->list, capacity * sizeof *grown);
        if (grown == NULL) {
            return status_set(error, HONE_NO_MEMORY, r->path, number, "%zu problems", capacity);
        }
        r->list = grown;
        r->capacity = capacity;
    }
    llm_problem *made = &r->list[r->len++];
    *made = (llm_problem){.problem = *problem, .launches = capped(times)};
    snprintf(made->use, sizeof made->use, "--from");
    return HONE_OK;
}

static hone_status read_line(reading *r, int number, char *line, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_problem problem;
    hone_error why = {.message = ""};
    int64_t times = 1;

    line += strspn(line, " \t");
    for (size_t end = strlen(line); end > 0 && strchr(" \t\r", line[end - 1]) != NULL; end--) {
        line[end - 1] = '\0';
    }
    if (*line == '\0' || *line == '#') {
        return HONE_OK;
    }
    TRY(read_count(r, number, &line, &times, error));
    status = hone_problem_parse(line, &problem, &why);
    if (status != HONE_OK) {
        return status_set(error, status, r->path, number, "%s", why.message);
    }
    TRY(add(r, number, &problem, times, error));
done:
    return status;
}

/* qsort is not stable: equal counts keep the file's order by where they lie. */
static int by_count(const void *a, const void *b)
{
    const llm_problem *const *x = a, *const *y = b;

    if ((*x)->launches != (*y)->launches) {
        return (*x)->launches > (*y)->launches ? -1 : 1;
    }
    return *x < *y ? -1 : *x > *y;
}

static hone_status sort(reading *r, hone_error *error)
{
    const llm_problem **order = calloc(r->len + 1, sizeof(llm_problem *));
    llm_problem *sorted = calloc(r->len + 1, sizeof *sorted);

    if (order == NULL || sorted == NULL) {
        free(order);
        free(sorted);
        return status_set(error, HONE_NO_MEMORY, r->path, 0, "%zu problems", r->len);
    }
    for (size_t i = 0; i < r->len; i++) {
        order[i] = &r->list[i];
    }
    qsort(order, r->len, sizeof *order, by_count);
    for (size_t i = 0; i < r->len; i++) {
        sorted[i] = *order[i];
    }
    free(order);
    free(r->list);
    r->list = sorted;
    return HONE_OK;
}

hone_status problem_file_read(const char *path, llm_problem **out, size_t *count, hone_error *error)
{
    hone_status status = HONE_OK;
    reading r = {.path = path};
    char *text = NULL, *rest = NULL;
    int number = 0;

    TRY(slurp(path, &text, error));
    rest = text;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        TRY(read_line(&r, ++number, line, error));
    }
    if (r.len == 0) {
        status = status_set(error, HONE_BAD_ARGUMENT, path, 0, "no line holds a problem");
        goto done;
    }
    TRY(sort(&r, error));
    *out = r.list;
    *count = r.len;
    r.list = NULL;
done:
    free(r.list);
    free(text);
    return status;
}
