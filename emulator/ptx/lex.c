/* lex.c - PTX text to tokens. Refuses nothing: what it cannot read becomes a PTX_BAD token. */
#include "emulator/ptx/ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static char ahead(const ptx_lexer *l, size_t n)
{
    return (size_t)(l->end - l->at) > n ? l->at[n] : '\0';
}

static void skip_comment(ptx_lexer *l)
{
    bool line_comment = l->at[1] == '/';

    l->at += 2;
    while (l->at < l->end) {
        if (line_comment && *l->at == '\n') {
            return;
        }
        if (!line_comment && *l->at == '*' && ahead(l, 1) == '/') {
            l->at += 2;
            return;
        }
        l->line += *l->at == '\n';
        l->at++;
    }
}

static void skip_blanks(ptx_lexer *l)
{
    while (l->at < l->end) {
        if (isspace((unsigned char)*l->at) || *l->at == '\0') {
            l->line += *l->at == '\n';
            l->at++;
        } else if (*l->at == '/' && (ahead(l, 1) == '/' || ahead(l, 1) == '*')) {
            skip_comment(l);
        } else {
            return;
        }
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* Letters, digits, dots, and the `::` of modifiers such as .L2::128B. */
static void take_word(ptx_lexer *l, bool dots)
{
    while (l->at < l->end) {
        if (is_word(*l->at) || (dots && *l->at == '.')) {
            l->at++;
        } else if (*l->at == ':' && ahead(l, 1) == ':' && is_word(ahead(l, 2))) {
            l->at += 2;
        } else {
            return;
        }
    }
}

static bool parse_digits(ptx_text digits, int base, uint64_t *out)
{
    uint64_t value = 0;

    if (digits.len == 0) {
        return false;
    }
    for (size_t i = 0; i < digits.len; i++) {
        int c = tolower((unsigned char)digits.at[i]);
        int digit = isdigit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
        if (digit >= base || __builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value)) {
            return false;
        }
    }
    *out = value;
    return true;
}

/* 1.5, 1e3: only in PTX that people write; a double's bits. */
static ptx_token decimal_float(ptx_lexer *l, ptx_token t)
{
    char copy[64];

    while (l->at < l->end && (isalnum((unsigned char)*l->at) || *l->at == '.' ||
                              ((*l->at == '-' || *l->at == '+') && tolower(l->at[-1]) == 'e'))) {
        l->at++;
    }
    t.text.len = (size_t)(l->at - t.text.at);
    if (t.text.len >= sizeof copy) {
        t.kind = PTX_BAD;
        return t;
    }
    memcpy(copy, t.text.at, t.text.len);
    copy[t.text.len] = '\0';
    char *rest = NULL;
    double value = strtod(copy, &rest);
    t.kind = *rest == '\0' ? PTX_NUMBER : PTX_BAD;
    t.width = 8;
    memcpy(&t.value, &value, sizeof value);
    return t;
}

static ptx_token number(ptx_lexer *l, ptx_token t)
{
    char second = (char)tolower((unsigned char)ahead(l, 1));
    int base = 10;

    while (l->at < l->end && isalnum((unsigned char)*l->at)) {
        l->at++;
    }
    if (*t.text.at != '0' || second == '.' || isdigit((unsigned char)second)) {
        if (l->at < l->end && *l->at == '.') {
            return decimal_float(l, t);
        }
    }
    t.text.len = (size_t)(l->at - t.text.at);
    ptx_text digits = t.text;
    if (*t.text.at == '0' && (second == 'f' || second == 'd')) {
        base = 16;
        t.width = second == 'f' ? 4 : 8;
    } else if (*t.text.at == '0' && second == 'x') {
        base = 16;
    } else if (*t.text.at == '0' && second == 'b') {
        base = 2;
    }
    if (base != 10) {
        digits.at += 2;
        digits.len -= 2;
    } else if (*t.text.at == '0' && digits.len > 1 && second != 'u') {
        base = 8;
    }
    if (t.width == 0 && digits.len > 1 &&
        tolower((unsigned char)digits.at[digits.len - 1]) == 'u') {
        digits.len--;
    }
    bool good =
        parse_digits(digits, base, &t.value) && (t.width == 0 || digits.len == (size_t)t.width * 2);
    t.kind = good ? PTX_NUMBER : PTX_BAD;
    return t;
}

static ptx_token string(ptx_lexer *l, ptx_token t)
{
    l->at++;
    t.text.at = l->at;
    while (l->at < l->end && *l->at != '"' && *l->at != '\n') {
        l->at++;
    }
    t.text.len = (size_t)(l->at - t.text.at);
    if (l->at == l->end || *l->at != '"') {
        t.kind = PTX_BAD;
        return t;
    }
    l->at++;
    t.kind = PTX_STRING;
    return t;
}

ptx_token ptx_lex(ptx_lexer *l)
{
    skip_blanks(l);
    ptx_token t = {.kind = PTX_END, .text = {l->at, 0}, .line = l->line};
    if (l->at >= l->end) {
        return t;
    }
    if (isdigit((unsigned char)*l->at)) {
        return number(l, t);
    }
    if (*l->at == '"') {
        return string(l, t);
    }
    if (*l->at == '.') {
        t.kind = PTX_DIRECTIVE;
        l->at++;
        t.text.at = l->at;
        take_word(l, false);
    } else if (is_word(*l->at)) {
        t.kind = PTX_NAME;
        take_word(l, true);
    } else {
        t.kind = PTX_MARK;
        t.mark = *l->at++;
    }
    t.text.len = (size_t)(l->at - t.text.at);
    return t;
}

bool ptx_text_is(ptx_text t, const char *word)
{
    return strlen(word) == t.len && memcmp(t.at, word, t.len) == 0;
}

bool ptx_text_equal(ptx_text a, ptx_text b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}
