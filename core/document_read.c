/* document_read.c - values of a document: maps by key, strict scalars. "010" is no number, "yes" is
 * no boolean. */
#include "core/document.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const document_node *document_get(const document_node *map, const char *key)
{
    if (map == NULL || map->kind != DOCUMENT_MAP) {
        return NULL;
    }
    for (size_t i = 0; i < map->len; i++) {
        if (strcmp(map->keys[i].text, key) == 0) {
            return &map->items[i];
        }
    }
    return NULL;
}

static bool listed(const char *const *known, const char *key)
{
    for (; *known != NULL; known++) {
        if (strcmp(*known, key) == 0) {
            return true;
        }
    }
    return false;
}

hone_status document_known_keys(const document *d, const document_node *map,
                                const char *const *known, hone_error *error)
{
    if (map->kind != DOCUMENT_MAP) {
        return status_set(error, HONE_BAD_TEXT, document_source(d), map->line,
                          "expected a map of key: value");
    }
    for (size_t i = 0; i < map->len; i++) {
        if (!listed(known, map->keys[i].text)) {
            return status_set(error, HONE_BAD_TEXT, document_source(d), map->keys[i].line,
                              "unknown key \"%.64s\"", map->keys[i].text);
        }
    }
    return HONE_OK;
}

static hone_status refuse(const document *d, const document_node *node, const char *expected,
                          hone_error *error)
{
    return status_set(error, HONE_BAD_TEXT, document_source(d), node->line,
                      "expected %s, found %s%.64s%s", expected,
                      node->kind == DOCUMENT_SCALAR ? "\"" : "",
                      node->kind == DOCUMENT_SCALAR ? node->text
                      : node->kind == DOCUMENT_LIST ? "a list"
                                                    : "a map",
                      node->kind == DOCUMENT_SCALAR ? "\"" : "");
}

static bool plain(const document_node *node)
{
    return node->kind == DOCUMENT_SCALAR && !node->quoted;
}

/* The digits that `text` begins with. */
static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* "0", "17", "-3": no plus, no leading zero; the length of it, 0 when there is none. */
static size_t integer_len(const char *text)
{
    size_t sign = text[0] == '-' ? 1 : 0, len = digits(text + sign);

    return len == 0 || (len > 1 && text[sign] == '0') ? 0 : sign + len;
}

hone_status document_int(const document *d, const document_node *node, int64_t *out,
                         hone_error *error)
{
    if (!plain(node) || node->len == 0 || integer_len(node->text) != node->len) {
        return refuse(d, node, "a base-10 integer", error);
    }
    bool negative = node->text[0] == '-';
    int64_t value = 0;
    for (const char *at = node->text + negative; *at != '\0'; at++) {
        /* Counted downwards: the most negative value has no positive twin. */
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, *at - '0', &value)) {
            return refuse(d, node, "an integer of 64 bits", error);
        }
    }
    if (!negative && value == INT64_MIN) {
        return refuse(d, node, "an integer of 64 bits", error);
    }
    *out = negative ? value : -value;
    return HONE_OK;
}

static bool is_real(const char *text, size_t len)
{
    size_t used = integer_len(text);

    if (used == 0) {
        return false;
    }
    if (text[used] == '.') {
        size_t fraction = digits(text + used + 1);
        if (fraction == 0) {
            return false;
        }
        used += 1 + fraction;
    }
    if (text[used] == 'e' || text[used] == 'E') {
        size_t sign = text[used + 1] == '-' || text[used + 1] == '+' ? 1 : 0;
        size_t exponent = digits(text + used + 1 + sign);
        if (exponent == 0) {
            return false;
        }
        used += 1 + sign + exponent;
    }
    return used == len;
}

hone_status document_real(const document *d, const document_node *node, double *out,
                          hone_error *error)
{
    if (!plain(node) || !is_real(node->text, node->len)) {
        return refuse(d, node, "a decimal number", error);
    }
    /* The host program may have set a locale whose decimal point is a comma. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0) {
        return status_set(error, HONE_NO_MEMORY, document_source(d), node->line, "locale");
    }
    double value = strtod_l(node->text, NULL, c);
    freelocale(c);
    if (!isfinite(value)) {
        return refuse(d, node, "a number that a double holds", error);
    }
    *out = value;
    return HONE_OK;
}

hone_status document_bool(const document *d, const document_node *node, bool *out,
                          hone_error *error)
{
    if (!plain(node) || (strcmp(node->text, "true") != 0 && strcmp(node->text, "false") != 0)) {
        return refuse(d, node, "true or false", error);
    }
    *out = node->text[0] == 't';
    return HONE_OK;
}

hone_status document_text(const document *d, const document_node *node, const char **out,
                          hone_error *error)
{
    if (node->kind != DOCUMENT_SCALAR) {
        return refuse(d, node, "text", error);
    }
    *out = node->text;
    return HONE_OK;
}
