/* store_copy.c - a store as it is now, in a file of its own. */
#include "cache/store_file.h"

hone_status store_copy(store *s, const char *path, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3 *to = NULL;
    sqlite3_backup *copy = NULL;

    TRY(store_flush(s, error));
    if (sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK ||
        (copy = sqlite3_backup_init(to, "main", database_handle(s->file), "main")) == NULL ||
        sqlite3_backup_step(copy, -1) != SQLITE_DONE) {
        status = status_set(error, HONE_STORE_IO, path, 0, "the store cannot be copied: %s",
                            to != NULL ? sqlite3_errmsg(to) : "out of memory");
    }
done:
    sqlite3_backup_finish(copy);
    sqlite3_close(to);
    return status;
}
