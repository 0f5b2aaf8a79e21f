/* print.h - what commands print alike: results as JSON, and what a device has to say. */
#ifndef HONE_CLI_PRINT_H
#define HONE_CLI_PRINT_H

#include <jansson.h>

/* A result on stdout, ended by a newline. NULL, for a command without --json, prints nothing. */
void print_json(const json_t *root);

/* A device's note on stderr, such as that times are modelled; an empty one prints nothing. */
void print_note(const char *note);

#endif
