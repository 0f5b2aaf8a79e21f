/* progress.h - one line on stderr that says how far a command is, its rate and the time left;
 * nothing when stderr is no terminal. */
#ifndef HONE_CLI_PROGRESS_H
#define HONE_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool terminal;
    double started_s, shown_s; /* monotonic */
    bool any;
} progress;

void progress_begin(progress *p);
/* Show at most ten times a second. `unit` is what is counted: "candidates". */
void progress_show(progress *p, uint64_t done, uint64_t total, const char *unit, const char *doing);
/* Clear the line, before other output and at the end. */
void progress_clear(progress *p);

#endif
