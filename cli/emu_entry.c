/* emu_entry.c - which kernel of a file is meant. */
#include "cli/emu.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static hone_status copy_name(const char *at, size_t len, char **out, hone_error *error)
{
    *out = strndup(at, len);
    return *out != NULL ? HONE_OK : status_set(error, HONE_NO_MEMORY, NULL, 0, "a kernel's name");
}

/* The word before the first parenthesis that is not that of an attribute: after
 * `__global__ void __launch_bounds__(128) k(`, it is k. */
static const char *declared_name(const char *at, size_t *len)
{
    while (*at != '\0' && *at != ';' && *at != '{') {
        while (*at != '\0' && !is_word(*at)) {
            at++;
        }
        const char *word = at;
        while (is_word(*at)) {
            at++;
        }
        const char *next = at + strspn(at, " \t\r\n");
        if (*next != '(') {
            continue;
        }
        if (strncmp(word, "__launch_bounds__", 17) != 0 && strncmp(word, "__", 2) != 0) {
            *len = (size_t)(at - word);
            return word;
        }
        at = next + strcspn(next, ")");
    }
    return NULL;
}

hone_status emu_entry_of_cuda(const char *file, const char *text, char **out, hone_error *error)
{
    const char *at = strstr(text, "__global__");
    const char *next = at != NULL ? strstr(at + 1, "__global__") : NULL;
    size_t len = 0;
    const char *name = at != NULL ? declared_name(at + strlen("__global__"), &len) : NULL;

    if (name == NULL || next != NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, file, 0,
                          "%s; name one with --kernel, as k or \"k<float, 4>\"",
                          name == NULL ? "no __global__ function is seen"
                                       : "there is more than one kernel");
    }
    return copy_name(name, len, out, error);
}

/* The next entry of the PTX at or after `at`; NULL at the end. */
static const char *next_entry(const char *at, size_t *len)
{
    at = strstr(at, ".entry");
    if (at == NULL) {
        return NULL;
    }
    at += strlen(".entry");
    at += strspn(at, " \t\r\n");
    *len = 0;
    while (is_word(at[*len]) || at[*len] == '%') {
        (*len)++;
    }
    return at;
}

hone_status emu_entry_of_ptx(const char *file, const char *ptx, const char *wanted, char **out,
                             hone_error *error)
{
    char list[400] = "";
    const char *found = NULL;
    size_t len = 0, found_len = 0, matches = 0, used = 0;

    for (const char *at = next_entry(ptx, &len); at != NULL; at = next_entry(at, &len)) {
        bool whole = wanted != NULL && strlen(wanted) == len && memcmp(at, wanted, len) == 0;
        bool part = wanted == NULL || memmem(at, len, wanted, strlen(wanted)) != NULL;
        if (whole) {
            return copy_name(at, len, out, error);
        }
        if (part) {
            matches++;
            found = at;
            found_len = len;
        }
        used += (size_t)snprintf(list + used, sizeof list - used, " %.*s", (int)len, at);
        used = used < sizeof list ? used : sizeof list - 1;
    }
    if (matches != 1) {
        return status_set(error, HONE_BAD_ARGUMENT, file, 0, "%s; its kernels:%s",
                          wanted == NULL ? "name one kernel with --kernel"
                          : matches == 0 ? "no kernel has that name"
                                         : "more than one kernel has that in its name",
                          list[0] != '\0' ? list : " none");
    }
    return copy_name(found, found_len, out, error);
}
