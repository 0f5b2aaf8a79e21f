/* database.c - open SQLite files defensively and wait for their locks fairly. */
#include "cache/database.h"

#include "cache/trust.h"
#include "core/digest.h"
#include "core/moment.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* busy_timeout alone starves writers (reliability.md 0.7): wait 0.5 to 64 ms with jitter, 30 s in
 * all. */
#define WAIT_FIRST_US 500
#define WAIT_MOST_US  64000
#define WAIT_ALL_MS   30000
/* A hostile schema may make a statement run for ever: CPU time that opening may take. */
#define OPEN_CPU_MS    1000
#define PROGRESS_STEPS 10000

struct database {
    sqlite3 *db;
    database_mode mode;
    int version;             /* of the file's schema; 0: empty */
    uint64_t jitter;         /* state of a small generator */
    int64_t wait_since_ms;   /* when the present wait began */
    int64_t cpu_deadline_ms; /* 0: none */
    char path[PATH_MAX];
};

/* Sleep for the attempt's share; false when the whole wait is used up. */
static bool wait_a_little(database *d, int attempt)
{
    int64_t now = moment_ms(CLOCK_MONOTONIC);
    uint64_t most = (uint64_t)WAIT_FIRST_US << (attempt < 7 ? attempt : 7);

    if (attempt == 0) {
        d->wait_since_ms = now;
    }
    if (now - d->wait_since_ms >= WAIT_ALL_MS) {
        return false;
    }
    d->jitter = d->jitter * 6364136223846793005u + 1442695040888963407u;
    most = most > WAIT_MOST_US ? WAIT_MOST_US : most;
    uint64_t us = most / 2 + (d->jitter >> 33) % (most / 2 + 1);
    struct timespec t = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
    return true;
}

static int on_busy(void *context, int attempt)
{
    return wait_a_little(context, attempt) ? 1 : 0;
}

static int on_progress(void *context)
{
    const database *d = context;

    return d->cpu_deadline_ms != 0 && moment_ms(CLOCK_THREAD_CPUTIME_ID) > d->cpu_deadline_ms;
}

hone_status database_failure(const database *d, int code, hone_error *error)
{
    static const struct {
        int code;
        hone_status status;
    } known[] = {
        {SQLITE_BUSY, HONE_STORE_BUSY},       {SQLITE_LOCKED, HONE_STORE_BUSY},
        {SQLITE_NOMEM, HONE_NO_MEMORY},       {SQLITE_NOTADB, HONE_STORE_FOREIGN},
        {SQLITE_CORRUPT, HONE_STORE_DAMAGED}, {SQLITE_INTERRUPT, HONE_STORE_FOREIGN},
        {SQLITE_ERROR, HONE_STORE_FOREIGN},
    };
    hone_status status = HONE_STORE_IO;

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].code == (code & 0xff)) {
            status = known[i].status;
        }
    }
    return status_set(error, status, d->path, 0, "%s (SQLite %d)",
                      d->db != NULL ? sqlite3_errmsg(d->db) : sqlite3_errstr(code), code);
}

hone_status database_exec(database *d, const char *sql, hone_error *error)
{
    int code = sqlite3_exec(d->db, sql, NULL, NULL, NULL);

    return code == SQLITE_OK ? HONE_OK : database_failure(d, code, error);
}

hone_status database_prepare(database *d, const char *sql, sqlite3_stmt **out, hone_error *error)
{
    int code = sqlite3_prepare_v2(d->db, sql, -1, out, NULL);

    return code == SQLITE_OK ? HONE_OK : database_failure(d, code, error);
}

hone_status database_step(database *d, sqlite3_stmt *statement, bool *row, hone_error *error)
{
    int code = sqlite3_step(statement);

    if (code != SQLITE_ROW && code != SQLITE_DONE) {
        return database_failure(d, code, error);
    }
    if (row != NULL) {
        *row = code == SQLITE_ROW;
    }
    return HONE_OK;
}

sqlite3 *database_handle(database *d)
{
    return d->db;
}

const char *database_path(const database *d)
{
    return d->path;
}

int database_version(const database *d)
{
    return d->version;
}

static hone_status read_int(database *d, const char *sql, int *out, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    bool row = false;

    TRY(database_prepare(d, sql, &statement, error));
    TRY(database_step(d, statement, &row, error));
    *out = row ? sqlite3_column_int(statement, 0) : 0;
done:
    sqlite3_finalize(statement);
    return status;
}

static void defend(database *d)
{
    static const struct {
        int id, value;
    } limits[] = {
        {SQLITE_LIMIT_LENGTH, 64 << 20},   {SQLITE_LIMIT_SQL_LENGTH, 100000},
        {SQLITE_LIMIT_VDBE_OP, 25000},     {SQLITE_LIMIT_ATTACHED, 0},
        {SQLITE_LIMIT_TRIGGER_DEPTH, 1},   {SQLITE_LIMIT_EXPR_DEPTH, 10},
        {SQLITE_LIMIT_COMPOUND_SELECT, 4}, {SQLITE_LIMIT_WORKER_THREADS, 0},
    };
    static const struct {
        int option, value;
    } options[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},   {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_VIEW, 0}, {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
        {SQLITE_DBCONFIG_ENABLE_FKEY, 0}, {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        sqlite3_limit(d->db, limits[i].id, limits[i].value);
    }
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        sqlite3_db_config(d->db, options[i].option, options[i].value, NULL);
    }
    sqlite3_busy_handler(d->db, on_busy, d);
    sqlite3_progress_handler(d->db, PROGRESS_STEPS, on_progress, d);
}

/* Every object's text must be ours, in our order, and nothing else be there. */
static hone_status compare_schema(database *d, const database_schema *schema, size_t len,
                                  hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    bool row = false;
    size_t seen = 0;

    TRY(database_prepare(d, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid",
                         &statement, error));
    for (;;) {
        TRY(database_step(d, statement, &row, error));
        if (!row) {
            break;
        }
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        if (seen == len || text == NULL || strcmp(text, schema->statements[seen]) != 0) {
            status = status_set(error, HONE_STORE_FOREIGN, d->path, 0,
                                "its schema is not ours; give another file name");
            goto done;
        }
        seen++;
    }
    if (seen != len) {
        status =
            status_set(error, HONE_STORE_FOREIGN, d->path, 0, "parts of the schema are missing");
    }
done:
    sqlite3_finalize(statement);
    return status;
}

/* Add what versions after d->version have; 0: the file is empty. */
static hone_status extend_schema(database *d, const database_schema *schema, hone_error *error)
{
    hone_status status = HONE_OK;
    size_t first = d->version == 0 ? 0 : schema->lens[d->version - 1];
    char pragma[96];

    for (size_t i = first; i < schema->lens[schema->version - 1]; i++) {
        TRY(database_exec(d, schema->statements[i], error));
    }
    snprintf(pragma, sizeof pragma, "PRAGMA application_id=%d; PRAGMA user_version=%d",
             schema->application_id, schema->version);
    TRY(database_exec(d, pragma, error));
done:
    return status;
}

/* Tell our file from others, and set d->version. An empty one has no objects, no id and no version.
 */
static hone_status identify(database *d, const database_schema *schema, hone_error *error)
{
    hone_status status = HONE_OK;
    int id = 0, version = 0, objects = 0;

    TRY(read_int(d, "PRAGMA application_id", &id, error));
    TRY(read_int(d, "PRAGMA user_version", &version, error));
    TRY(read_int(d, "SELECT count(*) FROM sqlite_schema", &objects, error));
    if (objects == 0 && id == 0 && version == 0) {
        d->version = 0;
        return HONE_OK;
    }
    if (id != schema->application_id) {
        return status_set(error, HONE_STORE_FOREIGN, d->path, 0,
                          "application id %08x is not ours; give another file name", (unsigned)id);
    }
    if (version < 1 || version > schema->version) {
        return status_set(error, HONE_STORE_FOREIGN, d->path, 0,
                          "schema version %d, this hone knows 1 to %d; use a hone that is as new",
                          version, schema->version);
    }
    TRY(compare_schema(d, schema, schema->lens[version - 1], error));
    d->version = version;
done:
    return status;
}

/* Identity as of one moment: between separate reads another process may make the schema. */
static hone_status identify_at_once(database *d, const database_schema *schema, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(database_exec(d, "BEGIN", error));
    status = identify(d, schema, error);
    sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL); /* nothing was written */
done:
    return status;
}

/* Identity, or the schema made or brought up to date by whoever gets the lock first. */
static hone_status identify_or_create(database *d, const database_schema *schema, hone_error *error)
{
    hone_status status = HONE_OK;
    bool begun = false;

    TRY(identify_at_once(d, schema, error));
    if (d->version == schema->version || (d->version > 0 && d->mode == DATABASE_READ)) {
        return HONE_OK;
    }
    if (d->mode == DATABASE_READ) {
        return status_set(error, HONE_STORE_FOREIGN, d->path, 0, "the file is empty");
    }
    TRY(database_exec(d, "BEGIN IMMEDIATE", error));
    begun = true;
    TRY(identify(d, schema, error)); /* another process may have been faster */
    if (d->version < schema->version) {
        TRY(extend_schema(d, schema, error));
    }
    TRY(database_exec(d, "COMMIT", error));
    begun = false;
    d->version = schema->version;
done:
    if (begun) {
        sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

/* The switch to WAL answers BUSY at once, whatever the busy handler says (cases.md 4): try again
 * here. */
static hone_status enter_wal(database *d, hone_error *error)
{
    for (int attempt = 0;; attempt++) {
        int code = sqlite3_exec(d->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);
        if (code == SQLITE_OK) {
            return HONE_OK;
        }
        if ((code & 0xff) != SQLITE_BUSY || !wait_a_little(d, attempt)) {
            return database_failure(d, code, error);
        }
    }
}

static hone_status set_journal(database *d, hone_error *error)
{
    hone_status status = HONE_OK;

    if (d->mode == DATABASE_READ) {
        return HONE_OK;
    }
    if (trust_path_shared(d->path)) { /* WAL needs memory that all writers share: one host */
        return database_exec(d, "PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA", error);
    }
    TRY(enter_wal(d, error));
    TRY(database_exec(
        d, d->mode == DATABASE_SECRET ? "PRAGMA synchronous=NORMAL" : "PRAGMA synchronous=FULL",
        error));
    TRY(database_exec(d, "PRAGMA journal_size_limit=8388608", error));
done:
    return status;
}

static hone_status open_file(database *d, int flags, const char *parameters, hone_error *error)
{
    char uri[3 * PATH_MAX + 32];
    size_t used = (size_t)snprintf(uri, sizeof uri, "file:");

    for (const char *at = d->path; *at != '\0';
         at++) { /* no byte of a path may be taken for syntax */
        bool plain = strchr("?#%", *at) == NULL && (unsigned char)*at > ' ';
        used += (size_t)snprintf(uri + used, sizeof uri - used, plain ? "%c" : "%%%02X",
                                 (unsigned char)*at);
    }
    snprintf(uri + used, sizeof uri - used, "%s", parameters);
    int code = sqlite3_open_v2(uri, &d->db,
                               flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOFOLLOW |
                                   SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX,
                               NULL);
    if (code != SQLITE_OK) {
        return database_failure(d, code, error);
    }
    defend(d);
    return database_exec(d, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0", error);
}

static void close_handle(database *d)
{
    sqlite3_close(d->db);
    d->db = NULL;
}

/* Read without writing a byte. A WAL-mode file in a folder that we may not write opens only as
 * immutable, which is right when no -wal exists and silently old when one does. */
static hone_status open_to_read(database *d, const database_schema *schema, hone_error *error)
{
    hone_status status = HONE_OK;
    char wal[PATH_MAX + 16];
    hone_error first = {0};
    struct stat about;

    if (stat(d->path, &about) == 0 && S_ISDIR(about.st_mode)) {
        return status_set(error, HONE_STORE_IO, d->path, 0, "is a folder; give the file's path");
    }
    if (access(d->path, R_OK) != 0) {
        return status_set(error, HONE_STORE_IO, d->path, 0, "cannot be read; is the path right?");
    }
    status = open_file(d, SQLITE_OPEN_READONLY, "?mode=ro", &first);
    if (status == HONE_OK) {
        status = identify_or_create(d, schema, &first);
    }
    if (status != HONE_STORE_IO) { /* good, or refused for what it is */
        if (status != HONE_OK && error != NULL) {
            *error = first;
        }
        return status;
    }
    snprintf(wal, sizeof wal, "%s-wal", d->path);
    if (access(wal, F_OK) == 0) {
        return status_set(error, HONE_STORE_IO, d->path, 0,
                          "rows are still in %s, which cannot be read here; open the store once "
                          "where it can be written",
                          wal);
    }
    close_handle(d);
    TRY(open_file(d, SQLITE_OPEN_READONLY, "?immutable=1", error));
    TRY(identify_or_create(d, schema, error));
done:
    return status;
}

static hone_status open_to_write(database *d, const database_schema *schema, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(trust_check(d->path, d->mode == DATABASE_SECRET, error));
    TRY(open_file(d, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "", error));
    TRY(identify_or_create(d, schema, error));
    TRY(set_journal(d, error));
done:
    return status;
}

hone_status database_open(const char *path, database_mode mode, const database_schema *schema,
                          database **out, hone_error *error)
{
    hone_status status = HONE_OK;
    database *d = calloc(1, sizeof *d);

    if (d == NULL) {
        return status_set(error, HONE_NO_MEMORY, path, 0, "database handle");
    }
    digest_prepare(); /* every row is digested */
    d->mode = mode;
    d->jitter = ((uint64_t)getpid() << 32) ^ (uint64_t)moment_ms(CLOCK_MONOTONIC) ^ (uintptr_t)d;
    d->cpu_deadline_ms = moment_ms(CLOCK_THREAD_CPUTIME_ID) + OPEN_CPU_MS;
    TRY(trust_resolve(path, mode != DATABASE_READ, d->path, sizeof d->path, error));
    TRY(mode == DATABASE_READ ? open_to_read(d, schema, error) : open_to_write(d, schema, error));
    d->cpu_deadline_ms = 0;
    *out = d;
    d = NULL;
done:
    if (d != NULL) {
        close_handle(d);
        free(d);
    }
    return status;
}

/* Leave DELETE mode, which works only while nobody else has the file open. Two that close at once
 * both fail, so each lets go of the file in between; whoever keeps it open for long does it when
 * closing. */
static void leave_wal(database *d)
{
    for (int attempt = 0; attempt < 8; attempt++) {
        if (d->db == NULL && open_file(d, SQLITE_OPEN_READWRITE, "", NULL) != HONE_OK) {
            return;
        }
        sqlite3_busy_handler(d->db, NULL, NULL);
        int code = sqlite3_exec(d->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
        close_handle(d);
        if ((code & 0xff) != SQLITE_BUSY || !wait_a_little(d, attempt)) {
            return;
        }
    }
}

void database_close(database *d)
{
    if (d == NULL) {
        return;
    }
    if (d->mode == DATABASE_WRITE) {
        leave_wal(d);
    }
    close_handle(d);
    free(d);
}
