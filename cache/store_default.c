/* store_default.c - which candidate of a problem the analytical default is, and its time. */
#include "cache/store_file.h"

#include <stdio.h>

/* The row of the problem and device: *id and *candidate, 0 when there is none, or a damaged one. */
static hone_status find(store *s, int64_t problem, int64_t device, int64_t *id, int64_t *candidate,
                        hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    const int64_t place[] = {problem, device};
    bool found = false;

    *id = *candidate = 0;
    TRY(store_query(s, STORE_SQL_FIND_DEFAULT, place, 2, &statement, &found, error));
    if (found && row_intact(statement, "defaults", 0, STORE_DEFAULT_COLUMNS)) {
        *id = sqlite3_column_int64(statement, 0);
        *candidate = sqlite3_column_int64(statement, 3);
    }
done:
    sqlite3_reset(statement);
    return status;
}

hone_status store_default_set(store *s, int64_t problem, int64_t device, int64_t candidate,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *insert = NULL;
    int64_t id = 0, known = 0;

    TRY(store_require_ok(s, problem, device, candidate, error));
    TRY(find(s, problem, device, &id, &known, error));
    if (known == candidate) {
        goto done; /* a second run of a sweep changes nothing */
    }
    bool open = s->writing;
    TRY(store_write_begin(s, error));
    if (id == 0) {
        TRY(store_next_id(s, STORE_SQL_NEXT_DEFAULT, &id, error));
    }
    TRY(store_statement(s, STORE_SQL_PUT_DEFAULT, &insert, error));
    const cell cells[] = {cell_int(id), cell_int(problem), cell_int(device), cell_int(candidate)};
    TRY(row_write(s->file, insert, "defaults", cells, ARRAY_LEN(cells), error));
    if (!open) {
        TRY(store_flush(s, error));
    }
done:
    return status == HONE_OK ? status : store_write_failed(s, status);
}

hone_status store_default_time(store *s, int64_t problem, int64_t device, store_default *out,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    int64_t id = 0, candidate = 0;
    bool found = false;
    store_row row;

    *out = (store_default){.timer = STORE_TIMER_NONE};
    if (database_version(s->file) < STORE_VERSION_DEFAULTS) {
        return HONE_OK; /* read as it is: nothing was noted then */
    }
    TRY(find(s, problem, device, &id, &candidate, error));
    TRY(store_query(s, STORE_SQL_GET_CANDIDATE, &candidate, 1, &statement, &found, error));
    if (found) {
        TRY(store_row_read(s, statement, &row, &found, error));
    }
    if (found && row.problem == problem && row.device == device && row.result.outcome == STORE_OK) {
        out->ns = row.result.time_ns;
        out->timer = row.result.timer;
        snprintf(out->tokens, sizeof out->tokens, "%s", row.result.tokens);
    }
done:
    sqlite3_reset(statement);
    return status;
}
