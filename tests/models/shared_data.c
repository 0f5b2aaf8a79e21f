/* shared_data.c - finds third-party test data where the machine has it. */
#include "tests/models/shared_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool shared_data_path(const char *file, char *path, size_t capacity)
{
    const char *shared = getenv("HONE_SHARED"), *source = getenv("HONE_SOURCE_DIR");

    if (shared != NULL) {
        snprintf(path, capacity, "%s/%s", shared, file);
    } else {
        snprintf(path, capacity, "%s/../shared/%s", source != NULL ? source : ".", file);
    }
    if (access(path, R_OK) == 0) {
        return true;
    }
    printf("SKIP: %s is absent (set HONE_SHARED)\n", path);
    return false;
}

char *shared_data_read(const char *file, size_t *len)
{
    char path[512], *text = NULL;
    FILE *in = NULL;

    if (!shared_data_path(file, path, sizeof path) || (in = fopen(path, "r")) == NULL) {
        return NULL;
    }
    text = malloc(1 << 20);
    if (text != NULL) {
        *len = fread(text, 1, (1 << 20) - 1, in);
        text[*len] = '\0';
    }
    fclose(in);
    return text;
}
