/* jit_report.c - reads ptxas' report: registers, memory and spills of a kernel, and the messages
 * that something costs it speed. */
#include "runtime/jit_report.h"

#include "runtime/jit_answer.h"

#include <stdlib.h>
#include <string.h>

static const char heading[] = "Compiling entry function '";

/* Behind the heading and the name of the entry's part of the log; NULL without one. */
static const char *find_entry(const char *log, size_t len, const char *name, size_t name_len)
{
    const char *end = log + len, *at = log;

    while ((at = memmem(at, (size_t)(end - at), heading, sizeof heading - 1)) != NULL) {
        at += sizeof heading - 1;
        if ((size_t)(end - at) > name_len && memcmp(at, name, name_len) == 0 &&
            at[name_len] == '\'') {
            return at + name_len;
        }
    }
    return NULL;
}

/* The number that stands before `word` between `from` and `to`; `missing` when the word is not
 * there. */
static int32_t number_before(const char *from, const char *to, const char *word, int32_t missing)
{
    const char *at = memmem(from, (size_t)(to - from), word, strlen(word));

    if (at == NULL || at == from) {
        return missing;
    }
    const char *digit = at;
    while (digit > from && digit[-1] >= '0' && digit[-1] <= '9') {
        digit--;
    }
    return digit < at ? (int32_t)strtol(digit, NULL, 10) : missing;
}

bool jit_report_resources(const char *log, size_t len, const char *lowered, kernel_function *out)
{
    const char *end = log + len, *from = find_entry(log, len, lowered, strlen(lowered));

    if (from == NULL) {
        return false;
    }
    const char *to = memmem(from, (size_t)(end - from), heading, sizeof heading - 1);
    to = to != NULL ? to : end;
    const char *used = memmem(from, (size_t)(to - from), "Used ", 5);
    if (used == NULL) {
        return false;
    }
    const char *line = memchr(used, '\n', (size_t)(to - used));
    line = line != NULL ? line : to;
    out->registers = number_before(used, line, " registers", 0);
    out->shared_bytes = number_before(used, line, " bytes smem", 0);
    out->local_bytes = number_before(from, to, " bytes stack frame", 0);
    out->spill_bytes = number_before(from, to, " bytes spill stores", 0) +
                       number_before(from, to, " bytes spill loads", 0);
    return out->registers > 0;
}

/* By number and by words: the numbers are newer than the messages, and words change. */
static bool is_remark(const char *line, size_t len)
{
    static const char *const marks[] = {"(C7508)",
                                        "(C7510)",
                                        "(C7512)",
                                        "(C7514)",
                                        "(C7517)",
                                        "(C7519)",
                                        "Potential Performance Loss",
                                        "is injected in around line"};

    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        if (memmem(line, len, marks[i], strlen(marks[i])) != NULL) {
            return true;
        }
    }
    return false;
}

/* Where a remark begins to name its function; its end and *name NULL when it does not. */
static const char *find_function(const char *line, const char *end, const char **name,
                                 size_t *name_len)
{
    static const char *const words[] = {" in the function '", " in function '"};

    *name = NULL;
    *name_len = 0;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        const char *at = memmem(line, (size_t)(end - line), words[i], strlen(words[i]));
        const char *named = at != NULL ? at + strlen(words[i]) : end;
        const char *quote = memchr(named, '\'', (size_t)(end - named));
        if (quote != NULL) {
            *name = named;
            *name_len = (size_t)(quote - named);
            return at;
        }
    }
    return end;
}

int32_t jit_report_remarks(const char *log, size_t len, const char *lowered, char *first,
                           size_t capacity)
{
    static const char prefix[] = " : ";
    const char *end = log + len, *to;
    const size_t lowered_len = strlen(lowered);
    int32_t count = 0;

    first[0] = '\0';
    for (const char *line = log; line < end; line = to + 1) {
        const char *name;
        size_t name_len;
        to = memchr(line, '\n', (size_t)(end - line));
        to = to != NULL ? to : end;
        const char *stop = find_function(line, to, &name, &name_len);
        bool ours =
            name == NULL || (name_len == lowered_len && memcmp(name, lowered, name_len) == 0);
        /* A function that is no entry is called by one of them. */
        if (!is_remark(line, (size_t)(to - line)) ||
            (!ours && find_entry(log, len, name, name_len) != NULL)) {
            continue;
        }
        if (count++ == 0) {
            const char *text = memmem(line, (size_t)(stop - line), prefix, sizeof prefix - 1);
            text = text != NULL ? text + sizeof prefix - 1 : line;
            jit_answer_clean(text, (size_t)(stop - text), first, capacity);
        }
    }
    return count;
}
