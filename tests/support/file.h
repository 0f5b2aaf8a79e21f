/* file.h - whole files, and test data that lies outside the project. */
#ifndef HONE_TESTS_SUPPORT_FILE_H
#define HONE_TESTS_SUPPORT_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The whole file with a NUL byte behind it; the caller frees it. `len`, unless NULL, is without
 * that byte. The test fails when the file cannot be read. */
char *file_read(const char *path, size_t *len);

/* Make the file hold just these bytes, or this text; readable and writable by this user alone when
 * it is new. */
void file_write(const char *path, const void *bytes, size_t len);
void file_write_text(const char *path, const char *text);

/* The path of third-party data that tests read but the project does not hold: `name` below
 * HONE_SHARED, else below ../shared beside the sources. False, after saying SKIP, when it is
 * absent. */
bool file_find_shared(const char *name, char *path, size_t capacity);

#endif
