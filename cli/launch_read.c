/* launch_read.c - the other texts of a launch: sizes, what is read back, words of a list. */
#include "cli/launch_parts.h"

#include "core/numfmt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

hone_status launch_text_dims(const char *what, const char *text, uint32_t out[3], hone_error *error)
{
    const char *at = text;
    uint32_t made[3] = {1, 1, 1};
    bool good = true;
    int d = 0;

    for (; good && d < 3 && (d == 0 || *at != '\0'); d++) {
        launch_piece p = {at, strcspn(at, ",x")};
        uint64_t value = 0;
        good = launch_piece_number(p, &value) && value > 0 && value <= UINT32_MAX;
        made[d] = (uint32_t)value;
        at += p.len;
        at += *at != '\0' && d < 2;
    }
    if (!good || *at != '\0') {
        return status_set(error, HONE_BAD_TEXT, what, 0,
                          "'%.40s' is no size; 8 or 8,4 or 8,4,2 are, each from 1 on", text);
    }
    memcpy(out, made, sizeof made);
    return HONE_OK;
}

static const struct {
    const char *name;
    uint32_t bits;
} types[] = {
    {"f32", 32}, {"f64", 64}, {"f16", 16}, {"bf16", 16}, {"e4m3", 8},  {"e5m2", 8},
    {"e2m1", 4}, {"u8", 8},   {"i8", 8},   {"u16", 16},  {"i16", 16},  {"u32", 32},
    {"i32", 32}, {"u64", 64}, {"i64", 64}, {"x32", 32},  {"ue8m0", 8},
};

static uint32_t bits_of(const char *type)
{
    for (size_t n = 0; n < ARRAY_LEN(types); n++) {
        if (strcmp(types[n].name, type) == 0) {
            return types[n].bits;
        }
    }
    return 0;
}

hone_status launch_text_dump(const char *text, launch_dump *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const char *rest = text;
    launch_dump d = {.type = "f32", .count = 8};
    bool counted = false;

    TRY(launch_piece_name(launch_piece_next(&rest), d.name, error));
    while (*rest != '\0') {
        launch_piece p = launch_piece_next(&rest);
        char word[8] = "";
        if (p.len < sizeof word) {
            memcpy(word, p.at, p.len);
        }
        if (bits_of(word) != 0 && !counted) {
            snprintf(d.type, sizeof d.type, "%s", word);
        } else if (counted || !launch_piece_number(p, &d.count) || d.count == 0) {
            return status_set(error, HONE_BAD_TEXT, "--dump", 0,
                              "'%.60s': NAME, NAME:TYPE or NAME:TYPE:COUNT, with f32, f16, bf16, "
                              "e4m3, u8, i32, u32, x32 or their like",
                              text);
        } else {
            counted = true;
        }
    }
    *out = d;
done:
    return status;
}

uint32_t launch_text_dump_bits(const launch_dump *d)
{
    return bits_of(d->type);
}

/* Integers of any width, sign extended where the type says so. */
static int64_t integer_at(const launch_dump *d, const uint8_t *bytes, uint64_t index)
{
    uint32_t width = bits_of(d->type) / 8;
    uint64_t value = 0;

    memcpy(&value, bytes + index * width, width);
    unsigned unused = 64 - width * 8;
    return d->type[0] == 'i' ? (int64_t)(value << unused) >> unused : (int64_t)value;
}

void launch_text_element(const launch_dump *d, const uint8_t *bytes, uint64_t index, char *text,
                         size_t capacity)
{
    hone_dtype narrow = numfmt_dtype_parse(d->type, strlen(d->type));
    double wide = 0;

    if (strcmp(d->type, "f64") == 0) {
        memcpy(&wide, bytes + index * 8, sizeof wide);
        snprintf(text, capacity, "%.17g", wide);
    } else if (narrow != HONE_DTYPE_NONE) {
        snprintf(text, capacity, "%.9g", (double)numfmt_decode(narrow, bytes, index));
    } else if (d->type[0] == 'x') {
        snprintf(text, capacity, "0x%08" PRIx64, (uint64_t)integer_at(d, bytes, index));
    } else if (d->type[0] == 'i') {
        snprintf(text, capacity, "%" PRId64, integer_at(d, bytes, index));
    } else {
        snprintf(text, capacity, "%" PRIu64, (uint64_t)integer_at(d, bytes, index));
    }
}

hone_status launch_text_output(const char *text, launch_output *out, hone_error *error)
{
    const char *equals = strchr(text, '=');

    if (equals == NULL || equals[1] == '\0') {
        return status_set(error, HONE_BAD_TEXT, "--out", 0, "'%.60s': NAME=PATH is expected", text);
    }
    out->path = equals + 1;
    return launch_piece_name((launch_piece){text, (size_t)(equals - text)}, out->name, error);
}

static hone_status find_word(const char *what, launch_piece p, const launch_word *words, size_t len,
                             int *out, hone_error *error)
{
    char list[200] = "";
    size_t used = 0;

    for (size_t n = 0; n < len; n++) {
        if (launch_piece_is(p, words[n].word)) {
            *out = words[n].value;
            return HONE_OK;
        }
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", n > 0 ? ", " : "",
                                 words[n].word);
        used = used < sizeof list ? used : sizeof list - 1;
    }
    return status_set(error, HONE_BAD_TEXT, what, 0, "'%.*s' is none of %s",
                      (int)(p.len < 40 ? p.len : 40), p.at, list);
}

hone_status launch_text_word(const char *what, const char *text, const launch_word *words,
                             size_t len, int *out, hone_error *error)
{
    return find_word(what, (launch_piece){text, strlen(text)}, words, len, out, error);
}

hone_status launch_text_words(const char *what, const char *text, const launch_word *words,
                              size_t len, int *out, hone_error *error)
{
    hone_status status = HONE_OK;
    int all = 0;

    for (const char *at = text;; at++) {
        launch_piece p = {at, strcspn(at, ",")};
        int value = 0;
        TRY(find_word(what, p, words, len, &value, error));
        all |= value;
        at += p.len;
        if (*at == '\0') {
            break;
        }
    }
    *out = all;
done:
    return status;
}
