/* kernel_cache.c - the kernel cache: one row for each digest, made once, dropped when damaged or
 * too old. */
#include "cache/kernel_cache.h"

#include "cache/flight.h"
#include "cache/kernel_blob.h"
#include "cache/row.h"
#include "core/moment.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APPLICATION_ID 0x686f6e6b /* "honk" */
#define ENTRY_COLUMNS  4
/* A use is noted at most once an hour, so that gets seldom write. */
#define NOTE_USE_MS (INT64_C(3600) * 1000)
/* Bytes of the lock file that no digest takes: setting a broken file aside. */
#define PLACE_ASIDE (UINT64_C(1) << 62)

/* `uses` decides only what goes first, so that it needs no digest. */
static const char *const statements[] = {
    "CREATE TABLE entries(id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, packed BLOB NOT NULL,"
    " digest BLOB NOT NULL) STRICT",
    "CREATE TABLE uses(id INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, used_ms INTEGER NOT NULL)"
    " STRICT",
};
static const size_t schema_lens[] = {ARRAY_LEN(statements)};
static const database_schema schema = {APPLICATION_ID, 1, statements, schema_lens};

struct kernel_cache {
    pthread_mutex_t lock; /* of all below; never held while something is made */
    database *file;       /* NULL when it broke and none could be made anew */
    uint64_t max_bytes, dropped;
    char path[PATH_MAX], lock_path[PATH_MAX + 8];
};

hone_status kernel_cache_default_path(char *path, size_t capacity, hone_error *error)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int wrote;

    if (cache != NULL && cache[0] == '/') {
        wrote = snprintf(path, capacity, "%s/hone/kernels.db", cache);
    } else if (home != NULL && home[0] == '/') {
        wrote = snprintf(path, capacity, "%s/.cache/hone/kernels.db", home);
    } else {
        return status_set(error, HONE_ENVIRONMENT, NULL, 0,
                          "XDG_CACHE_HOME and HOME are not set; say where the kernel cache is");
    }
    if (wrote < 0 || (size_t)wrote >= capacity) {
        return status_set(error, HONE_LIMIT, NULL, 0, "the cache's path is over %zu bytes",
                          capacity - 1);
    }
    return HONE_OK;
}

static bool is_broken(hone_status status)
{
    return status == HONE_STORE_FOREIGN || status == HONE_STORE_DAMAGED;
}

static bool is_whole(database *file)
{
    sqlite3_stmt *statement = NULL;
    bool row = false, whole = false;

    if (database_prepare(file, "PRAGMA quick_check(1)", &statement, NULL) == HONE_OK &&
        database_step(file, statement, &row, NULL) == HONE_OK && row) {
        whole = strcmp(row_text(statement, 0), "ok") == 0;
    }
    sqlite3_finalize(statement);
    return whole;
}

static void set_aside(const char *path)
{
    static const char *const beside[] = {"-wal", "-shm", "-journal"};
    char name[PATH_MAX + 8];

    snprintf(name, sizeof name, "%s.bad", path);
    rename(path, name);
    for (size_t i = 0; i < ARRAY_LEN(beside); i++) {
        snprintf(name, sizeof name, "%s%s", path, beside[i]);
        unlink(name);
    }
}

/* All of a cache can be made again: a file that is not ours or not whole makes place for a fresh
 * one. It is looked at again under a lock, so that no process sets aside what another has just
 * made. */
static hone_status open_fresh(kernel_cache *c, hone_error *error)
{
    int flight = flight_begin(c->lock_path, PLACE_ASIDE, 10000);
    hone_status status = database_open(c->path, DATABASE_SECRET, &schema, &c->file, error);

    if (status == HONE_OK && !is_whole(c->file)) {
        database_close(c->file);
        c->file = NULL;
        status = HONE_STORE_DAMAGED;
    }
    if (is_broken(status)) {
        set_aside(c->path);
        status = database_open(c->path, DATABASE_SECRET, &schema, &c->file, error);
    }
    flight_end(flight);
    return status;
}

/* After damage to the file itself: begin anew. Without a file the cache is empty and keeps nothing.
 */
static void heal(kernel_cache *c)
{
    database_close(c->file);
    c->file = NULL;
    c->dropped++;
    open_fresh(c, NULL);
}

hone_status kernel_cache_open(const char *path, uint64_t max_bytes, kernel_cache **out,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    kernel_cache *c = calloc(1, sizeof *c);

    if (c == NULL) {
        return status_set(error, HONE_NO_MEMORY, path, 0, "kernel cache");
    }
    if (path == NULL) {
        TRY(kernel_cache_default_path(c->path, sizeof c->path, error));
    } else if ((size_t)snprintf(c->path, sizeof c->path, "%s", path) >= sizeof c->path) {
        status = status_set(error, HONE_LIMIT, NULL, 0, "the cache's path is too long");
        goto done;
    }
    c->max_bytes = max_bytes != 0 ? max_bytes : KERNEL_CACHE_DEFAULT_BYTES;
    snprintf(c->lock_path, sizeof c->lock_path, "%s.lock", c->path);
    status = database_open(c->path, DATABASE_SECRET, &schema, &c->file, error);
    if (is_broken(status)) {
        status = open_fresh(c, error);
    }
    TRY(status);
    pthread_mutex_init(&c->lock, NULL);
    *out = c;
    c = NULL;
done:
    free(c);
    return status;
}

void kernel_cache_close(kernel_cache *c)
{
    if (c != NULL) {
        database_close(c->file);
        pthread_mutex_destroy(&c->lock);
        free(c);
    }
}

/* Run one statement with integer parameters. */
static hone_status run(kernel_cache *c, const char *sql, const int64_t *values, int values_len,
                       hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;

    TRY(database_prepare(c->file, sql, &statement, error));
    for (int i = 0; i < values_len; i++) {
        sqlite3_bind_int64(statement, i + 1, values[i]);
    }
    TRY(database_step(c->file, statement, NULL, error));
done:
    sqlite3_finalize(statement);
    return status;
}

/* The first column of a statement's only row. */
static hone_status ask(kernel_cache *c, const char *sql, int64_t *out, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    bool row = false;

    TRY(database_prepare(c->file, sql, &statement, error));
    TRY(database_step(c->file, statement, &row, error));
    *out = row ? sqlite3_column_int64(statement, 0) : 0;
done:
    sqlite3_finalize(statement);
    return status;
}

static void drop(kernel_cache *c, int64_t id)
{
    run(c, "DELETE FROM entries WHERE id=?", &id, 1, NULL);
    run(c, "DELETE FROM uses WHERE id=?", &id, 1, NULL);
}

static void note_use(kernel_cache *c, int64_t id)
{
    const int64_t values[] = {moment_ms(CLOCK_REALTIME), id,
                              moment_ms(CLOCK_REALTIME) - NOTE_USE_MS};

    run(c, "UPDATE uses SET used_ms=? WHERE id=? AND used_ms<?", values, 3, NULL);
}

/* Whether the current row is intact and truly the digest's: a damaged index may lead elsewhere. */
static bool is_entry(sqlite3_stmt *row, const uint8_t key[DIGEST_BYTES])
{
    const void *stored = sqlite3_column_blob(row, 1);

    return row_intact(row, "entries", 0, ENTRY_COLUMNS) && stored != NULL &&
           sqlite3_column_bytes(row, 1) == DIGEST_BYTES && memcmp(stored, key, DIGEST_BYTES) == 0;
}

static hone_status get_locked(kernel_cache *c, const uint8_t key[DIGEST_BYTES], bool *found,
                              kernel_entry *out, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    bool row = false, whole = false;
    int64_t id = 0;

    *found = false;
    if (c->file == NULL) {
        return HONE_OK;
    }
    TRY(database_prepare(c->file, "SELECT * FROM entries WHERE key=?", &statement, error));
    sqlite3_bind_blob(statement, 1, key, DIGEST_BYTES, SQLITE_STATIC);
    TRY(database_step(c->file, statement, &row, error));
    if (!row) {
        goto done;
    }
    id = sqlite3_column_int64(statement, 0);
    whole = is_entry(statement, key) &&
            kernel_blob_unpack(sqlite3_column_blob(statement, 2),
                               (size_t)sqlite3_column_bytes(statement, 2), out, NULL) == HONE_OK;
    sqlite3_finalize(statement);
    statement = NULL;
    *found = whole;
    if (whole) {
        note_use(c, id);
    } else {
        drop(c, id);
        c->dropped++;
    }
done:
    sqlite3_finalize(statement);
    if (is_broken(status)) { /* a page of the file: a miss like any other damage */
        heal(c);
        status = HONE_OK;
    }
    return status;
}

hone_status kernel_cache_get(kernel_cache *c, const uint8_t key[DIGEST_BYTES], bool *found,
                             kernel_entry *out, hone_error *error)
{
    if (c == NULL) {
        *found = false;
        return HONE_OK;
    }
    pthread_mutex_lock(&c->lock);
    hone_status status = get_locked(c, key, found, out, error);
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* Drop what was unused longest until the rest fits. Under the writer's transaction. */
static hone_status shrink(kernel_cache *c, int64_t keep, hone_error *error)
{
    hone_status status = HONE_OK;
    int64_t bytes = 0, oldest = 0;

    for (;;) {
        TRY(ask(c, "SELECT coalesce(sum(bytes),0) FROM uses", &bytes, error));
        if (bytes <= 0 || (uint64_t)bytes <= c->max_bytes) {
            break;
        }
        TRY(ask(c, "SELECT id FROM uses ORDER BY used_ms, id LIMIT 1", &oldest, error));
        if (oldest == keep) {
            break;
        }
        TRY(run(c, "DELETE FROM entries WHERE id=?", &oldest, 1, error));
        TRY(run(c, "DELETE FROM uses WHERE id=?", &oldest, 1, error));
    }
done:
    return status;
}

static hone_status put_rows(kernel_cache *c, const uint8_t key[DIGEST_BYTES], const uint8_t *packed,
                            size_t len, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *insert = NULL;
    int64_t id = 0;

    TRY(ask(c,
            "SELECT max((SELECT coalesce(max(id),0) FROM entries),"
            " (SELECT coalesce(max(id),0) FROM uses))+1",
            &id, error));
    TRY(database_prepare(c->file, "INSERT OR REPLACE INTO entries VALUES(?,?,?,?)", &insert,
                         error));
    const cell cells[] = {cell_int(id), cell_blob(key, DIGEST_BYTES), cell_blob(packed, len)};
    TRY(row_write(c->file, insert, "entries", cells, ARRAY_LEN(cells), error));
    const int64_t use[] = {id, (int64_t)len, moment_ms(CLOCK_REALTIME)};
    TRY(run(c, "INSERT OR REPLACE INTO uses VALUES(?,?,?)", use, 3, error));
    TRY(run(c, "DELETE FROM uses WHERE id NOT IN (SELECT id FROM entries)", NULL, 0, error));
    TRY(shrink(c, id, error));
done:
    sqlite3_finalize(insert);
    return status;
}

static hone_status put_once(kernel_cache *c, const uint8_t key[DIGEST_BYTES], const uint8_t *packed,
                            size_t len, hone_error *error)
{
    hone_status status = HONE_OK;
    bool begun = false;

    if (c->file == NULL) {
        return HONE_OK;
    }
    TRY(database_exec(c->file, "BEGIN IMMEDIATE", error));
    begun = true;
    TRY(put_rows(c, key, packed, len, error));
    TRY(database_exec(c->file, "COMMIT", error));
    begun = false;
done:
    if (begun) {
        sqlite3_exec(database_handle(c->file), "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

/* Damage that only a write meets costs what was kept, not what is to be kept. */
static hone_status put_locked(kernel_cache *c, const uint8_t key[DIGEST_BYTES],
                              const uint8_t *packed, size_t len, hone_error *error)
{
    hone_status status = put_once(c, key, packed, len, error);

    if (is_broken(status)) {
        heal(c);
        status = put_once(c, key, packed, len, error);
    }
    return status;
}

static bool has_code(const kernel_entry *entry)
{
    return (entry->cubin != NULL && entry->cubin_len > 0) ||
           (entry->ptx != NULL && entry->ptx_len > 0);
}

hone_status kernel_cache_put(kernel_cache *c, const uint8_t key[DIGEST_BYTES],
                             const kernel_entry *entry, hone_error *error)
{
    hone_status status = HONE_OK;
    uint8_t *packed = NULL;
    size_t len = 0;

    if (!has_code(entry) || entry->functions_len > KERNEL_MAX_FUNCTIONS) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "a module has a cubin or PTX and at most %d functions",
                          KERNEL_MAX_FUNCTIONS);
    }
    if (c == NULL) {
        return HONE_OK;
    }
    TRY(kernel_blob_pack(entry, &packed, &len, error));
    pthread_mutex_lock(&c->lock);
    status = put_locked(c, key, packed, len, error);
    pthread_mutex_unlock(&c->lock);
done:
    free(packed);
    return status;
}

/* Where a digest's lock byte lies. */
static uint64_t place_of(const uint8_t key[DIGEST_BYTES])
{
    uint64_t place;

    memcpy(&place, key, sizeof place);
    return place & (PLACE_ASIDE - 1);
}

hone_status kernel_cache_make(kernel_cache *c, const uint8_t key[DIGEST_BYTES], uint32_t wait_ms,
                              kernel_make_fn make, void *context, kernel_entry *out, bool *made,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    kernel_entry entry = {0};
    bool found = false;
    int flight = -1;

    /* An unreadable cache is as good as an empty one. */
    if (kernel_cache_get(c, key, &found, &entry, NULL) != HONE_OK || !found) {
        flight = c != NULL ? flight_begin(c->lock_path, place_of(key), wait_ms) : -1;
        if (flight >= 0 && kernel_cache_get(c, key, &found, &entry, NULL) != HONE_OK) {
            found = false;
        }
    }
    if (!found) {
        TRY(make(context, &entry, error));
        if (!has_code(&entry)) { /* NVRTC calls an empty cubin a success (cases.md, facts) */
            status = status_set(error, HONE_COMPILE, NULL, 0, "the compiler made no code");
            goto done;
        }
        kernel_cache_put(c, key, &entry, NULL);
    }
    if (made != NULL) {
        *made = !found;
    }
    *out = entry;
    entry = (kernel_entry){0};
done:
    flight_end(flight);
    kernel_entry_free(&entry);
    return status;
}

hone_status kernel_cache_measure(kernel_cache *c, kernel_cache_stats *out, hone_error *error)
{
    hone_status status = HONE_OK;
    int64_t entries = 0, bytes = 0;

    if (c == NULL) {
        *out = (kernel_cache_stats){0};
        return HONE_OK;
    }
    pthread_mutex_lock(&c->lock);
    if (c->file != NULL) {
        TRY(ask(c, "SELECT count(*) FROM entries", &entries, error));
        TRY(ask(c, "SELECT coalesce(sum(bytes),0) FROM uses", &bytes, error));
    }
    *out = (kernel_cache_stats){(uint64_t)entries, (uint64_t)bytes, c->dropped};
done:
    pthread_mutex_unlock(&c->lock);
    return status;
}
