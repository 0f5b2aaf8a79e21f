/* bounded_json.c - a scan for size and depth, then jansson. */
#include "convert/bounded_json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#define AGAIN "fetch or write the file again"

enum { MOST_DEPTH = 16 };

static hone_status scan(const char *source, const char *text, size_t len, hone_error *error)
{
    uint64_t values = 0;
    int depth = 0;
    bool inside = false;

    for (size_t i = 0; i < len; i++) {
        const char c = text[i];
        if (inside) {
            i += c == '\\';
            inside = c != '"';
            continue;
        }
        inside = c == '"';
        values += c == ',' || c == '[' || c == '{';
        depth += (c == '[' || c == '{') - (c == ']' || c == '}');
        if (depth > MOST_DEPTH) {
            return status_set(error, HONE_BAD_TEXT, source, 0,
                              "byte %zu of its JSON: lists nested past %d; " AGAIN, i, MOST_DEPTH);
        }
        if (values > BOUNDED_JSON_VALUES) {
            return status_set(error, HONE_LIMIT, source, 0,
                              "its JSON holds over %" PRIu64 " values (131,072 tensors); split the "
                              "file in shards",
                              BOUNDED_JSON_VALUES);
        }
    }
    return HONE_OK;
}

hone_status bounded_json_parse(const char *source, const char *text, size_t len, json_t **out,
                               hone_error *error)
{
    json_error_t why;

    if (len == 0 || text[0] != '{') {
        return status_set(error, HONE_BAD_TEXT, source, 0,
                          "its JSON does not begin with '{'; name another file, or " AGAIN);
    }
    hone_status status = scan(source, text, len, error);
    if (status != HONE_OK) {
        return status;
    }
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL) {
        const bool twice = json_error_code(&why) == json_error_duplicate_key;
        return status_set(error, HONE_BAD_TEXT, source, 0,
                          twice ? "byte %d of its JSON: a name is given twice (%.200s); " AGAIN
                                : "byte %d of its JSON: no JSON (%.200s); " AGAIN,
                          why.position, why.text);
    }
    *out = root;
    return HONE_OK;
}

hone_status bounded_json_read(const char *path, json_t **out, hone_error *error)
{
    hone_status status = HONE_OK;
    struct stat facts;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make it wait */
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    char *text = NULL;
    size_t len = 0;

    if (file == NULL || fstat(fileno(file), &facts) != 0) {
        status = status_set(error, HONE_IO, path, 0, "cannot be read: %s", strerror(errno));
        if (file == NULL && fd >= 0) {
            close(fd);
        }
        goto done;
    }
    if (!S_ISREG(facts.st_mode) || (uint64_t)facts.st_size > BOUNDED_JSON_FILE) {
        status = status_set(error, HONE_LIMIT, path, 0,
                            "is no file of at most %" PRIu64 " bytes of JSON", BOUNDED_JSON_FILE);
        goto done;
    }
    text = malloc((size_t)facts.st_size + 1);
    if (text == NULL) {
        status = status_set(error, HONE_NO_MEMORY, path, 0, "%lld bytes", (long long)facts.st_size);
        goto done;
    }
    len = fread(text, 1, (size_t)facts.st_size, file);
    TRY(bounded_json_parse(path, text, len, out, error));
done:
    free(text);
    if (file != NULL) {
        fclose(file);
    }
    return status;
}

bool bounded_json_print(FILE *to, const char *text)
{
    json_t *value = json_string(text);
    const bool good = value != NULL && json_dumpf(value, to, JSON_ENCODE_ANY) == 0;

    json_decref(value);
    return good;
}
