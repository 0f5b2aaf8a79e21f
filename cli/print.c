/* print.c - what commands print alike. */
#include "cli/print.h"

#include <stdio.h>

void print_json(const json_t *root)
{
    if (root != NULL) {
        json_dumpf(root, stdout, JSON_INDENT(2));
        putchar('\n');
    }
}

void print_note(const char *note)
{
    if (note[0] != '\0') {
        fprintf(stderr, "hone: %s\n", note);
    }
}
