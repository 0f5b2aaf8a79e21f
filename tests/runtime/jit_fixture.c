/* jit_fixture.c - see jit_fixture.h. */
#include "tests/runtime/jit_fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void jit_fixture_need_nvrtc(void)
{
    const jit_options options = {.workers = 1, .no_cache = true};
    jit *j = NULL;
    jit_version version;
    hone_error error = {.status = HONE_OK};

    if (jit_open(&options, &j, &error) == HONE_OK &&
        jit_describe(j, &version, &error) == HONE_ENVIRONMENT) {
        printf("SKIP: %s\n", error.message);
        jit_close(j);
        exit(0);
    }
    jit_close(j);
}

jit_request jit_fixture_request(const char *source, const char *entry)
{
    return (jit_request){.name = "test.cu",
                         .source = {.source = source},
                         .entries = {entry},
                         .entries_len = 1,
                         .arch = 90};
}

char *jit_fixture_folder(const char *name)
{
    static int made;
    const char *base = getenv("TMPDIR");
    char *folder = NULL;

    /* By process and count: a test's own children make theirs elsewhere. */
    if (asprintf(&folder, "%s/%s-%ld-%d", base != NULL ? base : P_tmpdir, name, (long)getpid(),
                 made++) < 0 ||
        mkdir(folder, 0700) != 0) {
        perror("a temporary folder");
        abort();
    }
    return folder;
}

void jit_fixture_remove(char *folder)
{
    DIR *d = opendir(folder);
    char path[1024];

    for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            unlink(path);
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    rmdir(folder);
    free(folder);
}
