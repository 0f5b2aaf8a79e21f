/* paths.h - finds the files that are installed or built beside this code: the worker, the emulator.
 */
#ifndef HONE_RUNTIME_PATHS_H
#define HONE_RUNTIME_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#define PATHS_MAX 1024

/* The absolute path of `file`: what the environment's `variable` names when it is set (and this
 * process is not set-user-ID); else the first of `folders` (NULL-terminated, relative to the
 * library or program that this code is in) that holds it. False when nothing does. */
bool paths_find(const char *file, const char *variable, const char *const *folders,
                char out[PATHS_MAX]);

#endif
