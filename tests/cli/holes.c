/* holes.c - see holes.h. */
#include "tests/cli/holes.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *holes_path(const place *p, const char *name)
{
    static char paths[2][PROGRAM_PATH_BYTES];
    static int at;
    char relative[128];

    at = 1 - at;
    snprintf(relative, sizeof relative, "run/%s", name);
    return place_path(p, relative, paths[at]);
}

int holes_make(const place *p, const char *name, const char *header, uint64_t bytes)
{
    const uint64_t prefix = strlen(header);
    int fd = open(holes_path(p, name), O_RDWR | O_CREAT | O_EXCL, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, &prefix, 8, 0), 8);
    ck_assert_int_eq(pwrite(fd, header, prefix, 8), (int)prefix);
    ck_assert_int_eq(ftruncate(fd, (off_t)(8 + prefix + bytes)), 0);
    return fd;
}

void holes_mxfp4(const place *p, const char *name, uint64_t rows)
{
    char header[512];
    const uint64_t codes = rows * 4096, scales = rows * 256;

    snprintf(header, sizeof header,
             "{\"a.weight\":{\"dtype\":\"I8\",\"shape\":[%llu,4096],\"data_offsets\":[0,"
             "%llu]},\"a.scale\":{\"dtype\":\"F8_E8M0\",\"shape\":[%llu,256],"
             "\"data_offsets\":[%llu,%llu]}}",
             (unsigned long long)rows, (unsigned long long)codes, (unsigned long long)rows,
             (unsigned long long)codes, (unsigned long long)(codes + scales));
    close(holes_make(p, name, header, codes + scales));
}
