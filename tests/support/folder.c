/* folder.c - a temporary folder of one test's or benchmark's own. */
#include "tests/support/folder.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not Check's assertions: benchmarks make folders too. */
static void need(bool holds, const char *path)
{
    if (!holds) {
        perror(path);
        abort();
    }
}

void folder_make(char path[FOLDER_BYTES])
{
    const char *root = getenv("TMPDIR");
    int len = snprintf(path, FOLDER_BYTES, "%s/hone-test-", root != NULL ? root : P_tmpdir);

    need(len > 0 && len < FOLDER_BYTES - 7, "TMPDIR");
    memset(path + len, 'X', 6); /* what mkdtemp fills in */
    path[len + 6] = '\0';
    need(mkdtemp(path) != NULL, path);
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about;
    (void)kind;
    (void)where;
    return remove(path);
}

void folder_remove(const char *path)
{
    need(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0, path);
}
