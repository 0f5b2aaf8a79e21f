/* row.h - rows that carry a digest over all their columns, written and read the same way for every
 * table.
 *
 * A table is STRICT, its first column is the INTEGER PRIMARY KEY and its last one is the digest. A
 * bit that flips in the file changes a column or the digest, and the row is then refused: SQLite's
 * own check finds a third of such flips (reliability.md 0.2). */
#ifndef HONE_CACHE_ROW_H
#define HONE_CACHE_ROW_H

#include "cache/database.h"
#include "core/digest.h"

#include <stdint.h>

typedef enum cell_kind { CELL_INT, CELL_REAL, CELL_TEXT, CELL_BLOB } cell_kind;

/* One column's value. Text and blobs are borrowed. A NaN is kept as NULL, which SQLite would make
 * of it anyway. */
typedef struct cell {
    cell_kind kind;
    int64_t number;
    double real;
    const void *bytes;
    size_t len;
} cell;

static inline cell cell_int(int64_t value)
{
    return (cell){.kind = CELL_INT, .number = value};
}

static inline cell cell_real(double value)
{
    return (cell){.kind = CELL_REAL, .real = value};
}

cell cell_text(const char *text); /* NULL is "" */

static inline cell cell_blob(const void *bytes, size_t len)
{
    return (cell){.kind = CELL_BLOB, .bytes = bytes, .len = len};
}

/* Bind one cell to a parameter; gives SQLite's code. */
int row_bind(sqlite3_stmt *statement, int at, const cell *c);

/* Whether a column of the current row holds the cell's value. */
bool row_equal(sqlite3_stmt *row, int column, const cell *c);

/* Bind the cells from parameter 1 on, then the digest over `table` and all of them, and step. */
hone_status row_write(database *d, sqlite3_stmt *insert, const char *table, const cell *cells,
                      size_t cells_len, hone_error *error);

/* Whether the statement's current row, all of a table's columns in order from column `first` on,
 * `columns` of them with the digest, matches that digest. */
bool row_intact(sqlite3_stmt *row, const char *table, int first, int columns);

/* Columns of the current row; text is "" for NULL, a real is NaN for NULL. Borrowed until the next
 * step. */
const char *row_text(sqlite3_stmt *row, int column);
double row_real(sqlite3_stmt *row, int column);

#endif
