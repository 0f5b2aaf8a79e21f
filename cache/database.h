/* database.h - how every SQLite file of ours is opened, waited for and told from a stranger's. */
#ifndef HONE_CACHE_DATABASE_H
#define HONE_CACHE_DATABASE_H

#include "core/status.h"

#include <sqlite3.h>
#include <stdbool.h>

/* What a file of ours looks like: each statement is the exact text of one object in sqlite_schema.
 * Versions only add objects: version v has the first lens[v - 1] statements. */
typedef struct database_schema {
    int application_id, version; /* version: the newest */
    const char *const *statements;
    const size_t *lens;
} database_schema;

typedef enum database_mode {
    DATABASE_READ,   /* no write anywhere; read-only media work */
    DATABASE_WRITE,  /* created when missing; WAL, synchronous=FULL */
    DATABASE_SECRET, /* as WRITE, in a folder that nobody else may enter; synchronous=NORMAL: can be
                        made anew */
} database_mode;

typedef struct database database;

/* Order matters here and is that of reliability.md 4: trust, limits, defences, identity, schema,
 * then journal mode. HONE_STORE_FOREIGN for a file of another kind, schema or newer version. Who
 * writes brings an older version up to date, in one transaction; who reads takes it as it is. The
 * caller closes *out. */
hone_status database_open(const char *path, database_mode mode, const database_schema *schema,
                          database **out, hone_error *error);
/* Close. The last writer of a DATABASE_WRITE file leaves journal mode DELETE. NULL is fine. */
void database_close(database *d);

sqlite3 *database_handle(database *d);
const char *database_path(const database *d);
/* Of the file's schema as it was opened. */
int database_version(const database *d);

/* Run statements without results. */
hone_status database_exec(database *d, const char *sql, hone_error *error);
/* Compile one; the caller finalizes *out. */
hone_status database_prepare(database *d, const char *sql, sqlite3_stmt **out, hone_error *error);
/* One step; *row (may be NULL) says whether there is a row. */
hone_status database_step(database *d, sqlite3_stmt *statement, bool *row, hone_error *error);
/* The status and message of SQLite's last failure on this file. */
hone_status database_failure(const database *d, int code, hone_error *error);

#endif
