/* trust.c - look at a file through O_PATH before SQLite opens it. */
#include "cache/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The folder of `path` into `folder`, and its last component. */
static const char *split(const char *path, char *folder, size_t capacity)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL) {
        snprintf(folder, capacity, ".");
        return path;
    }
    snprintf(folder, capacity, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return slash + 1;
}

static hone_status make_folders(const char *folder, hone_error *error)
{
    char part[PATH_MAX];
    size_t len = strlen(folder);

    for (size_t i = 1; i <= len; i++) {
        if (folder[i] != '/' && folder[i] != '\0') {
            continue;
        }
        snprintf(part, sizeof part, "%.*s", (int)i, folder);
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            return status_set(error, HONE_STORE_IO, part, 0, "cannot make the folder: %s",
                              strerror(errno));
        }
    }
    return HONE_OK;
}

hone_status trust_resolve(const char *path, bool create, char *out, size_t capacity,
                          hone_error *error)
{
    hone_status status = HONE_OK;
    char folder[PATH_MAX];
    char *real = NULL;

    if (strlen(path) >= sizeof folder - 16) { /* room for "-journal" */
        return status_set(error, HONE_LIMIT, NULL, 0, "the path is over %zu bytes",
                          sizeof folder - 16);
    }
    const char *name = split(path, folder, sizeof folder);
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return status_set(error, HONE_BAD_ARGUMENT, path, 0, "names a folder, not a file");
    }
    if (create) {
        TRY(make_folders(folder, error));
    }
    real = realpath(create ? folder : path, NULL);
    if (real == NULL) {
        status =
            status_set(error, HONE_STORE_IO, path, 0, "%s; is the path right?", strerror(errno));
        goto done;
    }
    int wrote = create ? snprintf(out, capacity, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name)
                       : snprintf(out, capacity, "%s", real);
    if (wrote < 0 || (size_t)wrote >= capacity) {
        status = status_set(error, HONE_LIMIT, path, 0, "the path is over %zu bytes", capacity - 1);
    }
done:
    free(real);
    return status;
}

static bool owner_trusted(const struct stat *s)
{
    return s->st_uid == geteuid() || s->st_uid == 0;
}

/* fstat through O_PATH; *found = false when there is no such file. */
static hone_status look(const char *path, struct stat *out, bool *found, hone_error *error)
{
    hone_status status = HONE_OK;
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    *found = fd >= 0;
    if (fd < 0 && errno != ENOENT) {
        return status_set(error, HONE_STORE_IO, path, 0, "%s", strerror(errno));
    }
    if (fd >= 0 && fstat(fd, out) != 0) {
        status = status_set(error, HONE_STORE_IO, path, 0, "%s", strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

static hone_status check_folder(const char *folder, bool secret, hone_error *error)
{
    hone_status status = HONE_OK;
    struct stat s;
    bool found = false;

    TRY(look(folder, &s, &found, error));
    if (!found || !S_ISDIR(s.st_mode)) {
        return status_set(error, HONE_STORE_IO, folder, 0, "is not a folder");
    }
    if (!owner_trusted(&s)) {
        return status_set(error, HONE_UNTRUSTED, folder, 0,
                          "the folder belongs to user %u; use one of your own", s.st_uid);
    }
    if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return status_set(error, HONE_UNTRUSTED, folder, 0,
                          "others may write this folder; chmod go-w it, or use one of your own");
    }
    if (secret && (s.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return status_set(error, HONE_UNTRUSTED, folder, 0,
                          "others may enter this folder, which code is run from; chmod 700 it");
    }
done:
    return status;
}

static hone_status check_file(const char *path, hone_error *error)
{
    hone_status status = HONE_OK;
    struct stat s;
    bool found = false;

    TRY(look(path, &s, &found, error));
    if (!found) {
        return HONE_OK;
    }
    if (!S_ISREG(s.st_mode) || s.st_nlink > 1) {
        return status_set(error, HONE_UNTRUSTED, path, 0,
                          "is not a regular file with one name (a link, a pipe or a device)");
    }
    if (!owner_trusted(&s) || (s.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return status_set(error, HONE_UNTRUSTED, path, 0,
                          "user %u owns it, mode %04o: others may write it; chmod go-w a copy of "
                          "your own",
                          s.st_uid, s.st_mode & 07777u);
    }
done:
    return status;
}

hone_status trust_check(const char *path, bool secret, hone_error *error)
{
    static const char *const beside[] = {"", "-wal", "-shm", "-journal"};
    hone_status status = HONE_OK;
    char name[PATH_MAX + 16];

    split(path, name, sizeof name);
    TRY(check_folder(name, secret, error));
    for (size_t i = 0; i < ARRAY_LEN(beside); i++) {
        snprintf(name, sizeof name, "%s%s", path, beside[i]);
        TRY(check_file(name, error));
    }
done:
    return status;
}

bool trust_filesystem_shared(long type)
{
    static const unsigned shared[] = {
        0x6969,     /* NFS */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x01021997, /* 9p */
        0x65735546, /* FUSE */
        0x0bd00bd0, /* Lustre */
    };

    for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
        if ((unsigned)type == shared[i]) {
            return true;
        }
    }
    return false;
}

bool trust_path_shared(const char *path)
{
    char folder[PATH_MAX];
    struct statfs s;

    split(path, folder, sizeof folder);
    return statfs(folder, &s) != 0 || trust_filesystem_shared((long)s.f_type);
}
