/* shared_data.h - third-party files that tests read but the project does not hold: HONE_SHARED,
 * else ../shared beside the sources. */
#ifndef HONE_TESTS_SHARED_DATA_H
#define HONE_TESTS_SHARED_DATA_H

#include <stdbool.h>
#include <stddef.h>

/* The path of `file` below the shared folder; false, after saying SKIP, when it is absent. */
bool shared_data_path(const char *file, char *path, size_t capacity);

/* The whole file as a NUL-terminated text that the caller frees; NULL when absent. */
char *shared_data_read(const char *file, size_t *len);

#endif
