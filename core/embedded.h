/* embedded.h - files that are part of the binary: templates, device headers, model descriptions. */
#ifndef HONE_CORE_EMBEDDED_H
#define HONE_CORE_EMBEDDED_H

#include <stddef.h>

/* A table of these ends with a row whose name is NULL. The byte after the last one is 0. */
typedef struct embedded_file {
    const char *name; /* path below the folder that embeds it, such as "gpu/h20.yaml" */
    const char *bytes, *bytes_end;
} embedded_file;

static inline size_t embedded_len(const embedded_file *file)
{
    return (size_t)(file->bytes_end - file->bytes);
}

/* The row with that name, or NULL. */
const embedded_file *embedded_find(const embedded_file *table, const char *name);

#endif
