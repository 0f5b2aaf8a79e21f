/* file.c - whole files, and test data that lies outside the project. */
#include "tests/support/file.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *file_read(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    size_t capacity = 1 << 16, used = 0;
    char *text = malloc(capacity);

    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    ck_assert_ptr_nonnull(text);
    for (size_t got = 1; got > 0; used += got) {
        if (capacity - used < 2) {
            capacity *= 2;
            text = realloc(text, capacity);
            ck_assert_ptr_nonnull(text);
        }
        got = fread(text + used, 1, capacity - used - 1, file);
    }
    ck_assert_int_eq(ferror(file), 0);
    fclose(file);
    text[used] = '\0';
    if (len != NULL) {
        *len = used;
    }
    return text;
}

void file_write(const char *path, const void *bytes, size_t len)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    ck_assert_msg(descriptor >= 0, "%s: %s", path, strerror(errno));
    for (size_t done = 0; done < len;) {
        ssize_t put = write(descriptor, (const char *)bytes + done, len - done);
        ck_assert_msg(put > 0, "%s: %s", path, strerror(errno));
        done += (size_t)put;
    }
    ck_assert_int_eq(close(descriptor), 0);
}

void file_write_text(const char *path, const char *text)
{
    file_write(path, text, strlen(text));
}

bool file_find_shared(const char *name, char *path, size_t capacity)
{
    const char *shared = getenv("HONE_SHARED"), *source = getenv("HONE_SOURCE_DIR");

    if (shared != NULL) {
        snprintf(path, capacity, "%s/%s", shared, name);
    } else {
        snprintf(path, capacity, "%s/../shared/%s", source != NULL ? source : ".", name);
    }
    if (access(path, R_OK) == 0) {
        return true;
    }
    printf("SKIP: %s is absent (set HONE_SHARED)\n", path);
    return false;
}
