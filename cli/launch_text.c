/* launch_text.c - arguments of a launch from their texts: numbers and buffers. */
#include "cli/launch_text.h"
#include "cli/launch_parts.h"

#include "core/checked.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char rule[] = "an argument is i32:5, f32:1.5, null, hex:0a0b, buf:BYTES[:FILL][:NAME] "
                           "or tmap:BUFFER:TYPE:dims=..:box=..";

launch_piece launch_piece_next(const char **rest)
{
    launch_piece p = {*rest, strcspn(*rest, ":")};

    *rest += p.len + ((*rest)[p.len] == ':');
    return p;
}

bool launch_piece_is(launch_piece p, const char *word)
{
    return strlen(word) == p.len && memcmp(p.at, word, p.len) == 0;
}

bool launch_piece_number(launch_piece p, uint64_t *out)
{
    char copy[32];
    char *end = NULL;

    if (p.len == 0 || p.len >= sizeof copy || !isdigit((unsigned char)*p.at)) {
        return false;
    }
    memcpy(copy, p.at, p.len);
    copy[p.len] = '\0';
    errno = 0;
    *out = strtoull(copy, &end, 0);
    return *end == '\0' && errno == 0;
}

hone_status launch_piece_name(launch_piece p, char out[LAUNCH_NAME], hone_error *error)
{
    bool good = p.len > 0 && p.len < LAUNCH_NAME && (isalpha((unsigned char)*p.at) || *p.at == '_');

    for (size_t n = 0; good && n < p.len; n++) {
        good = isalnum((unsigned char)p.at[n]) || p.at[n] == '_';
    }
    if (!good) {
        return status_set(error, HONE_BAD_TEXT, NULL, 0,
                          "'%.*s' is no buffer's name: letters, digits and _, at most %d",
                          (int)(p.len < 60 ? p.len : 60), p.at, LAUNCH_NAME - 1);
    }
    memcpy(out, p.at, p.len);
    out[p.len] = '\0';
    return HONE_OK;
}

static hone_status refuse(const char *text, const char *why, hone_error *error)
{
    return status_set(error, HONE_BAD_TEXT, NULL, 0, "'%.80s': %s", text, why);
}

/* Number types by name: bytes, and whether signed or floating. */
static const struct {
    const char *name;
    size_t bytes;
    char kind; /* i u f */
} numbers[] = {
    {"i8", 1, 'i'},  {"u8", 1, 'u'},  {"i16", 2, 'i'}, {"u16", 2, 'u'}, {"i32", 4, 'i'},
    {"u32", 4, 'u'}, {"i64", 8, 'i'}, {"u64", 8, 'u'}, {"f32", 4, 'f'}, {"f64", 8, 'f'},
};

static bool parse_float(const char *text, size_t bytes, uint8_t *out)
{
    char *end = NULL;
    double wide = strtod(text, &end);
    float narrow = (float)wide;

    memcpy(out, bytes == 4 ? (const void *)&narrow : &wide, bytes);
    return end != text && *end == '\0';
}

static bool parse_integer(const char *text, size_t bytes, char kind, uint8_t *out)
{
    char *end = NULL;
    bool negative = *text == '-';
    unsigned bits = (unsigned)bytes * 8;
    uint64_t most = UINT64_MAX >> (64 - bits), value = 0;

    if (!isdigit((unsigned char)text[negative]) || (negative && kind == 'u')) {
        return false;
    }
    errno = 0;
    value = strtoull(text + negative, &end, 0);
    most = kind == 'i' ? most / 2 + negative : most;
    if (*end != '\0' || errno != 0 || value > most) {
        return false;
    }
    value = negative ? 0 - value : value;
    memcpy(out, &value, bytes); /* the host is little endian */
    return true;
}

static hone_status parse_value(const char *text, size_t which, const char *value,
                               launch_argument *out, hone_error *error)
{
    bool good = numbers[which].kind == 'f'
                    ? parse_float(value, numbers[which].bytes, out->value)
                    : parse_integer(value, numbers[which].bytes, numbers[which].kind, out->value);

    out->kind = LAUNCH_VALUE;
    out->value_bytes = numbers[which].bytes;
    return good ? HONE_OK : refuse(text, "no value of that type", error);
}

static hone_status parse_hex(const char *text, const char *digits, launch_argument *out,
                             hone_error *error)
{
    size_t len = strlen(digits);

    out->kind = LAUNCH_VALUE;
    if (len == 0 || len % 2 != 0 || len / 2 > LAUNCH_VALUE_BYTES ||
        strspn(digits, "0123456789abcdefABCDEF") != len) {
        return refuse(text, "pairs of hex digits are expected, at most 4096", error);
    }
    for (size_t n = 0; n < len; n += 2) {
        const char pair[3] = {digits[n], digits[n + 1], '\0'};
        out->value[n / 2] = (uint8_t)strtoul(pair, NULL, 16);
    }
    out->value_bytes = len / 2;
    return HONE_OK;
}

/* 4096, 4K, 2M, 1G. */
static bool parse_bytes(launch_piece p, uint64_t *out)
{
    static const char units[] = "KMG";
    const char *unit = p.len > 0 ? strchr(units, p.at[p.len - 1]) : NULL;
    uint64_t value = 0, scale = 1;

    if (unit != NULL && *unit != '\0') {
        p.len--;
        scale = UINT64_C(1) << (10 * (unit - units + 1));
    }
    return launch_piece_number(p, &value) && checked_mul_u64(value, scale, out) && *out > 0;
}

hone_status launch_text_bytes(const char *what, const char *text, uint64_t most, uint64_t *out,
                              hone_error *error)
{
    uint64_t value = 0;

    if (!parse_bytes((launch_piece){text, strlen(text)}, &value) || value > most) {
        return status_set(error, HONE_BAD_TEXT, what, 0,
                          "'%.40s' is no count of bytes from 1 to %llu, as 4096, 64K, 2M", text,
                          (unsigned long long)most);
    }
    *out = value;
    return HONE_OK;
}

/* fill:1.5 is a float's word, fill:1 a whole number's. */
static bool parse_word(launch_piece p, uint64_t *out)
{
    char copy[32];
    uint8_t bytes[4];
    uint32_t word = 0;

    if (p.len == 0 || p.len >= sizeof copy) {
        return false;
    }
    memcpy(copy, p.at, p.len);
    copy[p.len] = '\0';
    bool hex = strncmp(copy, "0x", 2) == 0;
    bool real = !hex && strpbrk(copy, ".eEn") != NULL; /* nan, inf too */
    if (!(real ? parse_float(copy, 4, bytes) : parse_integer(copy, 4, 'u', bytes)) &&
        !parse_integer(copy, 4, 'i', bytes)) {
        return false;
    }
    memcpy(&word, bytes, sizeof word);
    *out = word;
    return true;
}

static const struct {
    const char *name;
    launch_fill fill;
} fills[] = {
    {"zero", LAUNCH_ZERO},     {"unwritten", LAUNCH_UNWRITTEN}, {"random", LAUNCH_RANDOM},
    {"floats", LAUNCH_FLOATS}, {"iota", LAUNCH_IOTA},           {"fill", LAUNCH_WORD},
    {"file", LAUNCH_FILE},
};

/* The fill that a piece names, and what belongs to it; *taken tells whether it names one. */
static hone_status parse_fill(const char *text, launch_piece word, const char **rest,
                              launch_argument *out, bool *taken, hone_error *error)
{
    size_t which = 0;
    bool good = true;

    while (which < ARRAY_LEN(fills) && !launch_piece_is(word, fills[which].name)) {
        which++;
    }
    *taken = which < ARRAY_LEN(fills);
    if (!*taken) {
        return HONE_OK;
    }
    out->fill = fills[which].fill;
    if (out->fill == LAUNCH_RANDOM || out->fill == LAUNCH_FLOATS) {
        good = launch_piece_number(launch_piece_next(rest), &out->seed);
    } else if (out->fill == LAUNCH_WORD) {
        good = parse_word(launch_piece_next(rest), &out->seed);
    } else if (out->fill == LAUNCH_FILE) {
        launch_piece path = launch_piece_next(rest);
        out->path = strndup(path.at, path.len);
        good = path.len > 0;
        if (out->path == NULL) {
            return status_set(error, HONE_NO_MEMORY, NULL, 0, "a path");
        }
    }
    return good ? HONE_OK
                : refuse(text, "random and floats take a seed, fill a word, file a path", error);
}

static hone_status parse_buffer(const char *text, const char *rest, size_t index,
                                launch_argument *out, hone_error *error)
{
    hone_status status = HONE_OK;
    bool taken = false;

    out->kind = LAUNCH_BUFFER;
    if (!parse_bytes(launch_piece_next(&rest), &out->bytes)) {
        return refuse(text, "a buffer has a size of 1 byte or more, as 4096, 64K, 2M", error);
    }
    snprintf(out->name, sizeof out->name, "arg%zu", index);
    if (*rest != '\0') {
        launch_piece word = launch_piece_next(&rest);
        TRY(parse_fill(text, word, &rest, out, &taken, error));
        if (taken && *rest != '\0') {
            word = launch_piece_next(&rest);
            taken = false;
        }
        if (!taken) {
            TRY(launch_piece_name(word, out->name, error));
        }
    }
    if (*rest != '\0') {
        status = refuse(text, "nothing comes behind a buffer's name", error);
    }
done:
    return status;
}

hone_status launch_text_argument(const char *text, size_t index, launch_argument *out,
                                 hone_error *error)
{
    const char *rest = text;
    launch_piece first = launch_piece_next(&rest);

    memset(out, 0, sizeof *out);
    out->is_parameter = true;
    if (launch_piece_is(first, "null") && *rest == '\0') {
        out->value_bytes = 8;
        return HONE_OK;
    }
    if (launch_piece_is(first, "buf")) {
        return parse_buffer(text, rest, index, out, error);
    }
    if (launch_piece_is(first, "tmap")) {
        return launch_map_parse(text, rest, out, error);
    }
    if (launch_piece_is(first, "hex")) {
        return parse_hex(text, rest, out, error);
    }
    for (size_t n = 0; n < ARRAY_LEN(numbers); n++) {
        if (launch_piece_is(first, numbers[n].name)) {
            return parse_value(text, n, rest, out, error);
        }
    }
    return refuse(text, rule, error);
}

void launch_argument_free(launch_argument *a)
{
    free(a->path);
    a->path = NULL;
}
