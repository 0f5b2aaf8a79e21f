/* embedded.c - find a file in a table of embedded files. */
#include "core/embedded.h"

#include <string.h>

const embedded_file *embedded_find(const embedded_file *table, const char *name)
{
    for (const embedded_file *file = table; file->name != NULL; file++) {
        if (strcmp(file->name, name) == 0) {
            return file;
        }
    }
    return NULL;
}
