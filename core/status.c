/* status.c - names and texts of the statuses, from the one table in hone.h. */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    hone_status status;
    const char *name, *text;
} codes[] = {
#define X(name, value, text) {HONE_##name, #name, text},
    HONE_STATUS_MAP(X)
#undef X
};

const char *hone_status_name(hone_status status)
{
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (codes[i].status == status) {
            return codes[i].name;
        }
    }
    return "?";
}

const char *hone_status_text(hone_status status)
{
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (codes[i].status == status) {
            return codes[i].text;
        }
    }
    return "?";
}

hone_status status_set(hone_error *error, hone_status status, const char *source, int line,
                       const char *format, ...)
{
    va_list arguments;

    if (error == NULL) {
        return status;
    }
    /* The message is built first: its arguments may point into the error that is being replaced. */
    char message[sizeof error->message];
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    for (char *at = message; *at != '\0'; at++) { /* names of strangers must not steer a terminal */
        const unsigned char byte = (unsigned char)*at;
        *at = (byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f ? '?' : *at;
    }
    char from[sizeof error->source];
    snprintf(from, sizeof from, "%s", source != NULL ? source : "");

    error->status = status;
    error->line = line;
    memcpy(error->message, message, sizeof message);
    memcpy(error->source, from, sizeof from);
    return status;
}
