/* routing_text.c - a distribution from an option's text: a name, or a file with a histogram that
 * nobody vouches for. */
#include "bench/routing.h"

#include "core/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Longest text of one number, in a line of them. */
enum { NUMBER_BYTES = 64 };

static const char rule[] =
    "a histogram is one line, or a JSON array, of numbers that are finite and "
    "not negative, one for each expert";

/* A list that grows, of a histogram. */
typedef struct shares {
    const char *source;
    double *list;
    size_t len;
    double sum;
} shares;

static hone_status add_share(shares *s, double value, hone_error *error)
{
    if (s->len == ROUTING_MOST) {
        return status_set(error, HONE_LIMIT, s->source, 0,
                          "over %d numbers, more than a problem has experts; %s", ROUTING_MOST,
                          rule);
    }
    if (!isfinite(value) || value < 0 || signbit(value)) {
        return status_set(error, HONE_BAD_TEXT, s->source, 0,
                          "number %zu is negative or not finite; %s", s->len + 1, rule);
    }
    s->list[s->len++] = value;
    s->sum += value > 0;
    return HONE_OK;
}

static hone_status read_array(shares *s, const char *text, size_t len, hone_error *error)
{
    hone_status status = HONE_OK;
    json_error_t why;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);

    if (root == NULL) {
        return status_set(error, HONE_BAD_TEXT, s->source, why.line > 0 ? why.line : 0,
                          "no JSON: %.100s; %s", why.text, rule);
    }
    for (size_t i = 0; i < json_array_size(root); i++) {
        const json_t *item = json_array_get(root, i);
        if (!json_is_number(item)) {
            status = status_set(error, HONE_BAD_TEXT, s->source, 0, "item %zu is no number; %s",
                                i + 1, rule);
            goto done;
        }
        TRY(add_share(s, json_number_value(item), error));
    }
done:
    json_decref(root);
    return status;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Decimal only: strtod would take hex, and names of what is no number. */
static hone_status read_number(shares *s, const char *text, size_t len, hone_error *error)
{
    char copy[NUMBER_BYTES], *end = NULL;

    if (len < sizeof copy && strspn(text, "0123456789+-.eE") >= len) {
        memcpy(copy, text, len);
        copy[len] = '\0';
        const double value = strtod(copy, &end);
        if (end == copy + len) {
            return add_share(s, value, error);
        }
    }
    return status_set(error, HONE_BAD_TEXT, s->source, 0, "what stands for number %zu is none; %s",
                      s->len + 1, rule);
}

/* `text` ends with NUL. */
static hone_status read_line(shares *s, const char *text, size_t len, hone_error *error)
{
    hone_status status = HONE_OK;
    bool wanted = false; /* a comma stands before it */
    size_t at = 0;

    while (len > 0 && is_blank(text[len - 1])) {
        len--;
    }
    while (at < len) {
        size_t own = 0;
        while (at + own < len && text[at + own] != ',' && !is_blank(text[at + own])) {
            own++;
        }
        if (own == 0 && (text[at] == '\n' || (text[at] == ',' && (wanted || s->len == 0)))) {
            return status_set(
                error, HONE_BAD_TEXT, s->source, 0,
                text[at] == '\n' ? "a second line; %s" : "a comma without a number; %s", rule);
        }
        if (own > 0) {
            TRY(read_number(s, text + at, own, error));
            wanted = false;
        } else {
            wanted = wanted || text[at] == ',';
            own = 1;
        }
        at += own;
    }
    if (wanted) {
        status =
            status_set(error, HONE_BAD_TEXT, s->source, 0, "a comma without a number; %s", rule);
    }
done:
    return status;
}

/* Of the numbers, however they were written. */
static void name_histogram(routing *r)
{
    uint8_t made[DIGEST_BYTES];
    char hex[2 * DIGEST_BYTES + 1];
    digest d;

    digest_begin(&d);
    digest_text(&d, "hone histogram 1");
    for (size_t i = 0; i < r->share_len; i++) {
        uint64_t bits;
        memcpy(&bits, &r->share[i], sizeof bits);
        digest_u64(&d, bits);
    }
    digest_end(&d, made);
    digest_hex(made, DIGEST_BYTES / 2, hex);
    snprintf(r->text, sizeof r->text, "histogram:%.32s", hex);
}

hone_status routing_parse_histogram(const char *source, const char *text, size_t len, routing *out,
                                    hone_error *error)
{
    hone_status status = HONE_OK;
    shares s = {.source = source, .list = calloc(ROUTING_MOST, sizeof *s.list)};
    char *copy = malloc(len + 1);
    size_t first = 0;

    if (s.list == NULL || copy == NULL) {
        status = status_set(error, HONE_NO_MEMORY, source, 0, "a histogram");
        goto done;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    while (first < len && is_blank(copy[first])) {
        first++;
    }
    TRY(copy[first] == '[' ? read_array(&s, copy, len, error)
                           : read_line(&s, copy + first, len - first, error));
    if (s.sum == 0) {
        status = status_set(error, HONE_BAD_TEXT, source, 0, "%s; %s",
                            s.len == 0 ? "no number" : "every number is 0", rule);
        goto done;
    }
    *out = (routing){.kind = INPUTS_ROUTE_HISTOGRAM, .share = s.list, .share_len = s.len};
    name_histogram(out);
    s.list = NULL;
done:
    free(s.list);
    free(copy);
    return status;
}

static hone_status read_histogram(const char *path, routing *out, hone_error *error)
{
    hone_status status = HONE_OK;
    struct stat facts;
    char *text = NULL;
    size_t len = 0;
    /* A pipe that nobody writes to must not hold the program up. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        return status_set(
            error, errno == ENOENT ? HONE_UNKNOWN : HONE_IO, path, 0,
            "%s; there are balanced, uniform, zipf, zipf:EXPONENT, one, and files with "
            "a histogram",
            errno == ENOENT ? "neither a distribution nor a file" : strerror(errno));
    }
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        status = status_set(error, HONE_IO, path, 0, "no regular file; %s", rule);
        goto done;
    }
    text = malloc(ROUTING_FILE_BYTES + 1);
    if (text == NULL) {
        status = status_set(error, HONE_NO_MEMORY, path, 0, "a histogram");
        goto done;
    }
    while (len <= ROUTING_FILE_BYTES) {
        const ssize_t got = read(fd, text + len, ROUTING_FILE_BYTES + 1 - len);
        if (got < 0 && errno != EINTR) {
            status = status_set(error, HONE_IO, path, 0, "%s", strerror(errno));
            goto done;
        }
        if (got == 0) {
            break;
        }
        len += got > 0 ? (size_t)got : 0;
    }
    if (len > ROUTING_FILE_BYTES) {
        status =
            status_set(error, HONE_LIMIT, path, 0, "over %u bytes; %s", ROUTING_FILE_BYTES, rule);
        goto done;
    }
    TRY(routing_parse_histogram(path, text, len, out, error));
done:
    free(text);
    close(fd);
    return status;
}

static hone_status parse_zipf(const char *text, routing *out, hone_error *error)
{
    char *end = NULL;
    const bool plain = strspn(text, "0123456789.") == strlen(text) && *text != '\0';
    const double exponent = plain ? strtod(text, &end) : 0;

    if (!plain || *end != '\0' || !(exponent > 0) || exponent > ROUTING_ZIPF_MOST) {
        return status_set(error, HONE_BAD_TEXT, "zipf", 0,
                          "'%.40s' is no exponent above 0 and up to %g, as in zipf:1.2", text,
                          ROUTING_ZIPF_MOST);
    }
    *out = (routing){.kind = INPUTS_ROUTE_ZIPF, .exponent = exponent};
    snprintf(out->text, sizeof out->text, "zipf:%.15g", exponent);
    return HONE_OK;
}

hone_status routing_parse(const char *text, routing *out, hone_error *error)
{
    static const inputs_routing named[] = {INPUTS_ROUTE_BALANCED, INPUTS_ROUTE_UNIFORM,
                                           INPUTS_ROUTE_ONE};

    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        if (strcmp(text, inputs_routing_name(named[i])) == 0) {
            *out = (routing){.kind = named[i]};
            snprintf(out->text, sizeof out->text, "%s", text);
            return HONE_OK;
        }
    }
    if (strncmp(text, "zipf", 4) == 0 && (text[4] == '\0' || text[4] == ':')) {
        return parse_zipf(text[4] == ':' ? text + 5 : "1", out, error);
    }
    return read_histogram(text, out, error);
}
