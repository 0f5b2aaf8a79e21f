/* trust.h - whether a file may be written or run from: who owns it, who else may change it, where
 * it lies. */
#ifndef HONE_CACHE_TRUST_H
#define HONE_CACHE_TRUST_H

#include "core/status.h"

#include <stdbool.h>

/* The path with symbolic links resolved, so that SQLite may be told to follow none. For a file that
 * will be written
 * (`create`) only its folder's are, which is made with its parents (0700) when missing: a link in
 * the file's own place is refused later. `out` holds `capacity` bytes. */
hone_status trust_resolve(const char *path, bool create, char *out, size_t capacity,
                          hone_error *error);

/* Folder and file (and what SQLite keeps beside it) belong to this user or root, and no one else
 * may write them; the file, when it exists, is a regular one with one link. HONE_UNTRUSTED says
 * what is wrong and what to do. `secret`: the folder must also be unreadable to others. Nothing is
 * opened but by O_PATH: closing an ordinary descriptor would drop SQLite's locks. */
hone_status trust_check(const char *path, bool secret, hone_error *error);

/* A file system that other hosts write too, where WAL's shared memory does not work. */
bool trust_filesystem_shared(long type);
bool trust_path_shared(const char *path);

#endif
