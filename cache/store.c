/* store.c - open, close and commit the store of results. The rows are written by the files beside
 * this one. */
#include "cache/store_file.h"

#include "core/moment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Group commits: an fsync costs a millisecond or more. */
#define BATCH_ROWS 10
#define BATCH_MS   100

/* "hone" in a file's header: told by file(1) and by us. */
#define APPLICATION_ID 0x686f6e65

/* Compared text by text when a file is opened: none may change, and new ones are a new version. */
static const char *const statements[] = {
    "CREATE TABLE sweeps(id INTEGER PRIMARY KEY, command TEXT NOT NULL, nvrtc TEXT NOT NULL,"
    " driver INTEGER NOT NULL, seed INTEGER NOT NULL, pid INTEGER NOT NULL, started INTEGER NOT "
    "NULL,"
    " boot TEXT NOT NULL, begun_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, digest BLOB NOT "
    "NULL)"
    " STRICT",
    "CREATE TABLE problems(id INTEGER PRIMARY KEY, text TEXT NOT NULL, key BLOB NOT NULL,"
    " hash BLOB NOT NULL UNIQUE, digest BLOB NOT NULL) STRICT",
    "CREATE TABLE devices(id INTEGER PRIMARY KEY, name TEXT NOT NULL, arch INTEGER NOT NULL,"
    " sm_count INTEGER NOT NULL, smem INTEGER NOT NULL, mem_gib INTEGER NOT NULL,"
    " mem_100gb_s INTEGER NOT NULL, emulated INTEGER NOT NULL, digest BLOB NOT NULL,"
    " UNIQUE(name, arch, sm_count, smem, mem_gib, mem_100gb_s, emulated)) STRICT",
    "CREATE TABLE candidates(id INTEGER PRIMARY KEY, problem INTEGER NOT NULL,"
    " device INTEGER NOT NULL, template TEXT NOT NULL, config TEXT NOT NULL, sweep INTEGER NOT "
    "NULL,"
    " attempts INTEGER NOT NULL, template_digest BLOB NOT NULL, nvrtc TEXT NOT NULL,"
    " driver INTEGER NOT NULL, created_ms INTEGER NOT NULL, outcome INTEGER NOT NULL,"
    " reason TEXT NOT NULL, registers INTEGER NOT NULL, shared_bytes INTEGER NOT NULL,"
    " spill_bytes INTEGER NOT NULL, local_bytes INTEGER NOT NULL, compile_ms REAL,"
    " timer INTEGER NOT NULL, time_ns REAL, samples BLOB NOT NULL, cache_mode TEXT NOT NULL,"
    " tokens TEXT NOT NULL, clock_sm_mhz INTEGER NOT NULL, clock_mem_mhz INTEGER NOT NULL, cosine "
    "REAL, rel_fro REAL, calc_diff REAL,"
    " max_err_ratio REAL, checked_ctas INTEGER NOT NULL, flop REAL, bytes REAL, roof_ns REAL,"
    " bound TEXT NOT NULL, counters TEXT NOT NULL, digest BLOB NOT NULL,"
    " UNIQUE(problem, device, template, config)) STRICT",
    "CREATE TABLE winners(id INTEGER PRIMARY KEY, problem INTEGER NOT NULL, device INTEGER NOT "
    "NULL,"
    " candidate INTEGER NOT NULL, verdict INTEGER NOT NULL, chosen_ms INTEGER NOT NULL,"
    " digest BLOB NOT NULL, UNIQUE(problem, device)) STRICT",
    "CREATE TABLE generations(number INTEGER PRIMARY KEY, created_ms INTEGER NOT NULL,"
    " content BLOB NOT NULL, packed BLOB NOT NULL, digest BLOB NOT NULL) STRICT",
    "CREATE TABLE defaults(id INTEGER PRIMARY KEY, problem INTEGER NOT NULL, device INTEGER NOT "
    "NULL,"
    " candidate INTEGER NOT NULL, digest BLOB NOT NULL, UNIQUE(problem, device)) STRICT",
};

static const size_t versions[] = {6, ARRAY_LEN(statements)};

const database_schema store_schema = {
    .application_id = APPLICATION_ID,
    .version = ARRAY_LEN(versions),
    .statements = statements,
    .lens = versions,
};

static const char *const sql[] = {
#define X(NAME, text) [STORE_SQL_##NAME] = text,
    STORE_SQL_MAP(X)
#undef X
};

hone_status store_default_path(char *path, size_t capacity, hone_error *error)
{
    const char *store_path_text = getenv("HONE_STORE");
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int wrote;

    if (store_path_text != NULL && *store_path_text != '\0') {
        wrote = snprintf(path, capacity, "%s", store_path_text);
    } else if (data != NULL && data[0] == '/') { /* the standard wants relative ones ignored */
        wrote = snprintf(path, capacity, "%s/hone/hone.db", data);
    } else if (home != NULL && home[0] == '/') {
        wrote = snprintf(path, capacity, "%s/.local/share/hone/hone.db", home);
    } else {
        return status_set(error, HONE_ENVIRONMENT, NULL, 0,
                          "HONE_STORE, XDG_DATA_HOME and HOME are not set; say where the store is");
    }
    if (wrote < 0 || (size_t)wrote >= capacity) {
        return status_set(error, HONE_LIMIT, NULL, 0, "the store's path is over %zu bytes",
                          capacity - 1);
    }
    return HONE_OK;
}

hone_status store_open(const char *path, store_mode mode, store **out, hone_error *error)
{
    hone_status status = HONE_OK;
    store *s = calloc(1, sizeof *s);

    if (s == NULL) {
        return status_set(error, HONE_NO_MEMORY, path, 0, "store handle");
    }
    s->mode = mode;
    TRY(database_open(path, mode == STORE_WRITE ? DATABASE_WRITE : DATABASE_READ, &store_schema,
                      &s->file, error));
    *out = s;
    s = NULL;
done:
    free(s);
    return status;
}

hone_status store_close(store *s, hone_error *error)
{
    hone_status status = HONE_OK;

    if (s == NULL) {
        return HONE_OK;
    }
    status = store_flush(s, error);
    for (size_t i = 0; i < STORE_SQL_LEN; i++) {
        sqlite3_finalize(s->statements[i]);
    }
    database_close(s->file);
    free(s->samples);
    free(s);
    return status;
}

const char *store_path(const store *s)
{
    return database_path(s->file);
}

void store_on_commit(store *s, store_committed_fn committed, void *context)
{
    s->committed = committed;
    s->committed_context = context;
}

hone_status store_statement(store *s, store_sql which, sqlite3_stmt **out, hone_error *error)
{
    hone_status status = HONE_OK;

    if (s->statements[which] == NULL) {
        TRY(database_prepare(s->file, sql[which], &s->statements[which], error));
    }
    sqlite3_reset(s->statements[which]);
    *out = s->statements[which];
done:
    return status;
}

hone_status store_query(store *s, store_sql which, const int64_t *values, int values_len,
                        sqlite3_stmt **out, bool *row, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;

    TRY(store_statement(s, which, &statement, error));
    for (int i = 0; i < values_len; i++) {
        sqlite3_bind_int64(statement, i + 1, values[i]);
    }
    TRY(database_step(s->file, statement, row, error));
    *out = statement;
done:
    return status;
}

hone_status store_next_id(store *s, store_sql which, int64_t *id, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    bool row = false;

    TRY(store_query(s, which, NULL, 0, &statement, &row, error));
    *id = sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
done:
    return status;
}

hone_status store_write_failed(store *s, hone_status status)
{
    if (s->writing && status == HONE_BAD_ARGUMENT) { /* nothing was written: let go of the lock */
        store_flush(s, NULL);
    }
    if (s->writing) {
        sqlite3_exec(database_handle(s->file), "ROLLBACK", NULL, NULL, NULL);
        s->writing = false;
        s->pending = 0;
        s->broken = status;
    }
    return status;
}

hone_status store_write_begin(store *s, hone_error *error)
{
    hone_status status = HONE_OK;

    if (s->mode != STORE_WRITE) {
        return status_set(error, HONE_BAD_ARGUMENT, store_path(s), 0, "opened to read only");
    }
    if (s->broken != HONE_OK) {
        return status_set(error, s->broken, store_path(s), 0,
                          "an earlier write failed (%s); close this handle",
                          hone_status_text(s->broken));
    }
    if (!s->writing) {
        TRY(database_exec(s->file, "BEGIN IMMEDIATE", error));
        s->writing = true;
    }
done:
    return status;
}

hone_status store_flush(store *s, hone_error *error)
{
    uint64_t rows = s->pending;

    if (!s->writing) {
        return HONE_OK;
    }
    hone_status status = database_exec(s->file, "COMMIT", error);
    if (status != HONE_OK) {
        return store_write_failed(s, status);
    }
    s->writing = false;
    s->pending = 0;
    s->committed_ms = moment_ms(CLOCK_MONOTONIC);
    if (s->committed != NULL && rows > 0) {
        s->committed(s->committed_context, rows);
    }
    return HONE_OK;
}

hone_status store_write_pending(store *s, hone_error *error)
{
    s->pending++;
    if (s->pending >= BATCH_ROWS || moment_ms(CLOCK_MONOTONIC) - s->committed_ms >= BATCH_MS) {
        return store_flush(s, error);
    }
    return HONE_OK;
}
