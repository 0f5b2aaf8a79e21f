/* row.c - digests over rows: the same bytes whether they are about to be written or were just read.
 */
#include "cache/row.h"

#include <math.h>
#include <string.h>

cell cell_text(const char *text)
{
    const char *bytes = text != NULL ? text : "";

    return (cell){.kind = CELL_TEXT, .bytes = bytes, .len = strlen(bytes)};
}

/* Kinds of a value in the digest: frozen. */
enum { TAG_NULL, TAG_INT, TAG_REAL, TAG_TEXT, TAG_BLOB };

/* SQLite keeps a whole number in a REAL column as an integer, which has no -0. */
static double without_minus_zero(double value)
{
    return value + 0.0;
}

static void digest_real(digest *d, double value)
{
    uint64_t bits;

    value = without_minus_zero(value);
    memcpy(&bits, &value, sizeof bits);
    digest_u64(d, TAG_REAL);
    digest_u64(d, bits);
}

static void digest_cell(digest *d, const cell *c)
{
    switch (c->kind) {
    case CELL_INT:
        digest_u64(d, TAG_INT);
        digest_u64(d, (uint64_t)c->number);
        break;
    case CELL_REAL:
        if (isnan(c->real)) {
            digest_u64(d, TAG_NULL);
        } else {
            digest_real(d, c->real);
        }
        break;
    case CELL_TEXT:
    case CELL_BLOB:
        digest_u64(d, c->kind == CELL_TEXT ? TAG_TEXT : TAG_BLOB);
        digest_bytes(d, c->bytes, c->len);
        break;
    }
}

static void digest_column(digest *d, sqlite3_stmt *row, int column)
{
    int type = sqlite3_column_type(row, column);

    switch (type) {
    case SQLITE_INTEGER:
        digest_u64(d, TAG_INT);
        digest_u64(d, (uint64_t)sqlite3_column_int64(row, column));
        break;
    case SQLITE_FLOAT:
        digest_real(d, sqlite3_column_double(row, column));
        break;
    case SQLITE_TEXT:
    case SQLITE_BLOB: {
        /* The pointer first: asking for it may convert, and only then is the length that of its
         * bytes. */
        const void *bytes = type == SQLITE_TEXT ? (const void *)sqlite3_column_text(row, column)
                                                : sqlite3_column_blob(row, column);
        digest_u64(d, type == SQLITE_TEXT ? TAG_TEXT : TAG_BLOB);
        digest_bytes(d, bytes, (size_t)sqlite3_column_bytes(row, column));
        break;
    }
    default:
        digest_u64(d, TAG_NULL);
        break;
    }
}

int row_bind(sqlite3_stmt *statement, int at, const cell *c)
{
    switch (c->kind) {
    case CELL_INT:
        return sqlite3_bind_int64(statement, at, c->number);
    case CELL_REAL:
        return isnan(c->real) ? sqlite3_bind_null(statement, at)
                              : sqlite3_bind_double(statement, at, without_minus_zero(c->real));
    case CELL_TEXT:
        return sqlite3_bind_text64(statement, at, c->bytes, c->len, SQLITE_STATIC, SQLITE_UTF8);
    case CELL_BLOB:
        /* A NULL pointer would bind NULL, not an empty blob. */
        return sqlite3_bind_blob64(statement, at, c->len > 0 ? c->bytes : "", c->len,
                                   SQLITE_STATIC);
    }
    return SQLITE_MISUSE;
}

hone_status row_write(database *d, sqlite3_stmt *insert, const char *table, const cell *cells,
                      size_t cells_len, hone_error *error)
{
    hone_status status = HONE_OK;
    digest sum;
    uint8_t bytes[DIGEST_BYTES];
    int code = SQLITE_OK;

    digest_begin(&sum);
    digest_text(&sum, table);
    for (size_t i = 0; i < cells_len && code == SQLITE_OK; i++) {
        digest_cell(&sum, &cells[i]);
        code = row_bind(insert, (int)i + 1, &cells[i]);
    }
    digest_end(&sum, bytes);
    if (code == SQLITE_OK) {
        code = sqlite3_bind_blob(insert, (int)cells_len + 1, bytes, sizeof bytes, SQLITE_STATIC);
    }
    if (code != SQLITE_OK) {
        status = database_failure(d, code, error);
        goto done;
    }
    TRY(database_step(d, insert, NULL, error));
done:
    sqlite3_reset(insert);
    sqlite3_clear_bindings(insert);
    return status;
}

bool row_intact(sqlite3_stmt *row, const char *table, int first, int columns)
{
    digest sum;
    uint8_t bytes[DIGEST_BYTES];
    int last = first + columns - 1;

    digest_begin(&sum);
    digest_text(&sum, table);
    for (int i = first; i < last; i++) {
        digest_column(&sum, row, i);
    }
    digest_end(&sum, bytes);
    const void *stored = sqlite3_column_blob(row, last);
    return stored != NULL && sqlite3_column_bytes(row, last) == (int)sizeof bytes &&
           memcmp(stored, bytes, sizeof bytes) == 0;
}

bool row_equal(sqlite3_stmt *row, int column, const cell *c)
{
    if (c->kind == CELL_INT) {
        return sqlite3_column_type(row, column) == SQLITE_INTEGER &&
               sqlite3_column_int64(row, column) == c->number;
    }
    if (c->kind == CELL_REAL) {
        return sqlite3_column_double(row, column) == c->real;
    }
    const void *bytes = c->kind == CELL_TEXT ? (const void *)sqlite3_column_text(row, column)
                                             : sqlite3_column_blob(row, column);
    return (size_t)sqlite3_column_bytes(row, column) == c->len &&
           (c->len == 0 || memcmp(bytes, c->bytes, c->len) == 0);
}

const char *row_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    return text != NULL ? text : "";
}

double row_real(sqlite3_stmt *row, int column)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL ? NAN
                                                           : sqlite3_column_double(row, column);
}
