/* paths.c - where this code lies on disk, and what lies beside it. Never looks in the current
 * folder. */
#include "runtime/paths.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Folder of the shared library or program that holds this function. The link map's name is empty
 * for the program. */
static bool own_folder(char out[PATHS_MAX])
{
    Dl_info info;
    struct link_map *map = NULL;
    char real[4096];

    if (dladdr1((const void *)paths_find, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 ||
        map == NULL) {
        return false;
    }
    const char *name = map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe";
    if (realpath(name, real) == NULL || strlen(real) >= PATHS_MAX) {
        return false;
    }
    *strrchr(real, '/') = '\0'; /* an absolute path has one */
    memcpy(out, real, strlen(real) + 1);
    return true;
}

bool paths_find(const char *file, const char *variable, const char *const *folders,
                char out[PATHS_MAX])
{
    char folder[PATHS_MAX], path[2 * PATHS_MAX], real[4096];
    const char *named = secure_getenv(variable);

    if (named != NULL && named[0] != '\0') {
        if (realpath(named, real) == NULL || strlen(real) >= PATHS_MAX) {
            return false;
        }
        memcpy(out, real, strlen(real) + 1);
        return true;
    }
    if (!own_folder(folder)) {
        return false;
    }
    for (size_t i = 0; folders[i] != NULL; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, folders[i], file);
        if (access(path, R_OK) == 0 && realpath(path, real) != NULL && strlen(real) < PATHS_MAX) {
            memcpy(out, real, strlen(real) + 1);
            return true;
        }
    }
    return false;
}
