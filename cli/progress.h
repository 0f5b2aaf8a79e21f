/* progress.h - one line on stderr that says how far a command is, its rate and the time left; where
 * stderr is no terminal, a new line each half minute. */
#ifndef HONE_CLI_PROGRESS_H
#define HONE_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool terminal;
    double started_s, shown_s; /* monotonic */
    bool any; /* a line stands on the terminal */
} progress;

void progress_begin(progress *p);
/* Show at most ten times a second, in a log each half minute. `unit` is what is counted:
 * "candidates". */
void progress_show(progress *p, uint64_t done, uint64_t total, const char *unit, const char *doing);
/* Clear the line, before other output and at the end. */
void progress_clear(progress *p);

#endif
