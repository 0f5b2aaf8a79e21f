/* names.c - finds embedded descriptions by name, and says which there are when one is not. */
#include "models/names.h"

#include <stdio.h>
#include <string.h>

size_t models_names_len(const char *const *names)
{
    size_t len = 0;

    while (names[len] != NULL) {
        len++;
    }
    return len;
}

const embedded_file *models_file(const char *folder, const char *name)
{
    char path[128];
    int len = snprintf(path, sizeof path, "%s/%s.yaml", folder, name);

    if (len < 0 || (size_t)len >= sizeof path) {
        return NULL;
    }
    return embedded_find(models_files, path);
}

hone_status models_unknown(const char *what, const char *name, const char *const *names,
                           hone_error *error)
{
    char known[400] = "";
    size_t used = 0;

    for (size_t i = 0; names[i] != NULL; i++) {
        size_t need = strlen(names[i]) + 1;

        if (used + need >= sizeof known) {
            break;
        }
        memcpy(known + used, " ", 1);
        memcpy(known + used + 1, names[i], need);
        used += need;
    }
    return status_set(error, HONE_UNKNOWN, NULL, 0, "no %s '%.40s'; there are:%s", what, name,
                      known);
}
