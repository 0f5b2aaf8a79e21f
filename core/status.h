/* status.h - errors are values: how a failure is filled in and passed on. */
#ifndef HONE_CORE_STATUS_H
#define HONE_CORE_STATUS_H

#include "include/hone.h"

/* Fill *error (when given) and return `status`, so that a failing path is one line. `source` names
 * the file or input (NULL when there is none), `line` is 1-based or 0. */
hone_status status_set(hone_error *error, hone_status status, const char *source, int line,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The only control-flow macro in the project: go to `done` with the status. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((status = (call)) != HONE_OK) {                                                        \
            goto done;                                                                             \
        }                                                                                          \
    } while (0)

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

#endif
