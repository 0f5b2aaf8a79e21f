/* program.h - the hone program, run from the outside in a folder of its own.
 *
 * A place holds everything that a run may write: home, data, cache, temporary files. A failure of
 * the harness itself ends the test. */
#ifndef HONE_TESTS_CLI_PROGRAM_H
#define HONE_TESTS_CLI_PROGRAM_H

#include "tests/support/folder.h"

#include <check.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PROGRAM_PATH_BYTES 1024

typedef struct place {
    char folder[FOLDER_BYTES];
} place;

/* A fresh folder with home, data, cache, tmp and run (the current directory of runs); removed with
 * all that lies in it. */
place place_make(void);
void place_remove(const place *p);
/* A path below the place's folder; `out` has PROGRAM_PATH_BYTES. */
const char *place_path(const place *p, const char *relative, char *out);
/* Where the store lies when nobody says otherwise. */
#define PLACE_STORE "data/hone/hone.db"
/* Copy a file within the place. */
void place_copy(const place *p, const char *from, const char *to);

/* How a run ended and what it printed. */
typedef struct program_run {
    int exit_status; /* -1 when a signal ended it */
    int signal;      /* 0 when none did */
    char *out, *err; /* owned */
} program_run;

/* Run a shell command line in the place, in which `hone` is the built program. */
program_run program_call(const place *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void program_free(program_run *r);

/* The same in two steps, for a run that is to be disturbed: `line` starts in a process group of its
 * own, whose id is the answer. What it prints lies in files NAME.out and NAME.err meanwhile, so
 * that others can run beside it. */
pid_t program_start(const place *p, const char *name, const char *line);
program_run program_wait(const place *p, const char *name, pid_t group);

/* A run that ends with 0, and whose standard output is one JSON document. Caller drops it with
 * json_decref. */
json_t *program_json(const place *p, const char *line);

/* Whether both streams together hold `words`. */
bool program_says(const program_run *r, const char *words);

#endif
