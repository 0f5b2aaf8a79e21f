/* device_header.c - see device_header.h. */
#include "tests/templates/device_header.h"

#include "tests/support/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *device_header(const char *name)
{
    char path[512];
    const char *root = getenv("HONE_SOURCE_DIR");

    snprintf(path, sizeof path, "%s/templates/device/%s", root != NULL ? root : ".", name);
    char *text = file_read(path, NULL);
    for (char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += line == text ? 0 : 1;
        if (strncmp(line, "#include", 8) == 0 || strncmp(line, "#pragma once", 12) == 0) {
            memcpy(line, "//", 2);
        }
    }
    return text;
}
