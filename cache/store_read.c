/* store_read.c - visits of candidates and winners, choosing a winner, and the health of the whole
 * file. */
#include "cache/store_file.h"

#include "core/moment.h"

#include <string.h>

static void bind_filter(sqlite3_stmt *statement, const store_filter *filter)
{
    static const store_filter all = {0};
    const store_filter *f = filter != NULL ? filter : &all;
    const int64_t values[] = {f->problem, f->device, f->sweep, f->candidate, f->outcome};

    for (int i = 0; i < (int)ARRAY_LEN(values); i++) {
        sqlite3_bind_int64(statement, i + 1,
                           values[i]); /* one that the statement lacks is ignored */
    }
}

hone_status store_candidates(store *s, const store_filter *filter, store_row_fn visit,
                             void *context, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    bool row = false, intact = false;
    store_row read;

    TRY(store_statement(s, STORE_SQL_LIST_CANDIDATES, &statement, error));
    bind_filter(statement, filter);
    for (;;) {
        TRY(database_step(s->file, statement, &row, error));
        if (!row) {
            break;
        }
        TRY(store_row_read(s, statement, &read, &intact, error));
        if (intact && visit(context, &read) != 0) {
            break;
        }
    }
done:
    sqlite3_reset(statement);
    return status;
}

/* The candidate of the winner in the statement's current row; intact only if both are and belong
 * together. */
static hone_status read_winner(store *s, sqlite3_stmt *statement, store_winner *out,
                               sqlite3_stmt **candidate, bool *intact, hone_error *error)
{
    hone_status status = HONE_OK;
    int64_t problem = sqlite3_column_int64(statement, 1);
    int64_t device = sqlite3_column_int64(statement, 2);
    int64_t id = sqlite3_column_int64(statement, 3);
    store_default anchor;

    *intact = row_intact(statement, "winners", 0, STORE_WINNER_COLUMNS);
    if (!*intact) {
        return HONE_OK;
    }
    /* First: the winner's row stays in the handle. */
    TRY(store_default_time(s, problem, device, &anchor, error));
    out->id = (uint64_t)sqlite3_column_int64(statement, 0);
    out->verdict = sqlite3_column_int(statement, 4);
    out->chosen_ms = sqlite3_column_int64(statement, 5);
    TRY(store_query(s, STORE_SQL_GET_CANDIDATE, &id, 1, candidate, intact, error));
    if (*intact) {
        TRY(store_row_read(s, *candidate, &out->row, intact, error));
    }
    const bool comparable = *intact && out->row.result.timer == anchor.timer &&
                            strcmp(out->row.result.tokens, anchor.tokens) == 0;
    out->default_ns = comparable ? anchor.ns : 0;
    *intact = *intact && out->row.id == id && out->row.problem == problem &&
              out->row.device == device && out->row.result.outcome == STORE_OK;
done:
    return status;
}

hone_status store_winners(store *s, const store_filter *filter, store_winner_fn visit,
                          void *context, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL, *candidate = NULL;
    bool row = false, intact = false;
    store_winner winner;

    TRY(store_statement(s, STORE_SQL_LIST_WINNERS, &statement, error));
    bind_filter(statement, filter);
    for (;;) {
        TRY(database_step(s->file, statement, &row, error));
        if (!row) {
            break;
        }
        TRY(read_winner(s, statement, &winner, &candidate, &intact, error));
        int stop = intact ? visit(context, &winner) : 0;
        sqlite3_reset(candidate);
        if (stop != 0) {
            break;
        }
    }
done:
    sqlite3_reset(candidate);
    sqlite3_reset(statement);
    return status;
}

hone_status store_require_ok(store *s, int64_t problem, int64_t device, int64_t candidate,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    bool found = false;
    store_row row;

    TRY(store_query(s, STORE_SQL_GET_CANDIDATE, &candidate, 1, &statement, &found, error));
    if (found) {
        TRY(store_row_read(s, statement, &row, &found, error));
    }
    if (!found || row.problem != problem || row.device != device ||
        row.result.outcome != STORE_OK) {
        status = status_set(error, HONE_BAD_ARGUMENT, store_path(s), 0,
                            "candidate %lld is not an ok one of this problem and device",
                            (long long)candidate);
    }
done:
    sqlite3_reset(statement);
    return status;
}

hone_status store_winner_set(store *s, int64_t problem, int64_t device, int64_t candidate,
                             int32_t verdict, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL, *insert = NULL;
    const int64_t place[] = {problem, device};
    int64_t id = 0;
    bool found = false;

    if (verdict < STORE_VERDICT_CLEAR || verdict > STORE_VERDICT_DEFAULT) {
        return status_set(error, HONE_BAD_ARGUMENT, store_path(s), 0, "verdict %d is none",
                          verdict);
    }
    TRY(store_require_ok(s, problem, device, candidate, error));
    TRY(store_query(s, STORE_SQL_FIND_WINNER, place, 2, &statement, &found, error));
    if (found && row_intact(statement, "winners", 0, STORE_WINNER_COLUMNS)) {
        id = sqlite3_column_int64(statement, 0);
        if (sqlite3_column_int64(statement, 3) == candidate &&
            sqlite3_column_int(statement, 4) == verdict) {
            goto done; /* as it was: a second run of a sweep changes nothing */
        }
    }
    sqlite3_reset(statement);
    bool open = s->writing;
    TRY(store_write_begin(s, error));
    if (id == 0) {
        TRY(store_next_id(s, STORE_SQL_NEXT_WINNER, &id, error));
    }
    TRY(store_statement(s, STORE_SQL_PUT_WINNER, &insert, error));
    const cell cells[] = {cell_int(id),      cell_int(problem),
                          cell_int(device),  cell_int(candidate),
                          cell_int(verdict), cell_int(moment_ms(CLOCK_REALTIME))};
    TRY(row_write(s->file, insert, "winners", cells, ARRAY_LEN(cells), error));
    if (!open) {
        TRY(store_flush(s, error));
    }
done:
    sqlite3_reset(statement);
    return status == HONE_OK ? status : store_write_failed(s, status);
}

/* Count a table's rows and those whose digest does not match. */
static hone_status check_table(store *s, const char *table, int columns, uint64_t *rows,
                               uint64_t *damaged, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    char text[64];
    bool row = false;

    sqlite3_snprintf(sizeof text, text, "SELECT * FROM %s", table);
    TRY(database_prepare(s->file, text, &statement, error));
    for (;;) {
        TRY(database_step(s->file, statement, &row, error));
        if (!row) {
            break;
        }
        ++*rows;
        *damaged += row_intact(statement, table, 0, columns) ? 0 : 1;
    }
done:
    sqlite3_finalize(statement);
    return status;
}

static hone_status quick_check(store *s, bool *intact, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    bool row = false;

    TRY(database_prepare(s->file, "PRAGMA quick_check(1)", &statement, error));
    TRY(database_step(s->file, statement, &row, error));
    *intact = row && strcmp(row_text(statement, 0), "ok") == 0;
done:
    sqlite3_finalize(statement);
    return status;
}

hone_status store_check(store *s, store_health *out, hone_error *error)
{
    hone_status status = HONE_OK;
    store_health h = {0};
    uint64_t generations = 0, defaults = 0;
    int64_t next = 0;
    const struct {
        const char *table;
        int columns;
        uint64_t *rows;
    } tables[] = {
        {"sweeps", STORE_SWEEP_COLUMNS, &h.sweeps},
        {"problems", STORE_PROBLEM_COLUMNS, &h.problems},
        {"devices", STORE_DEVICE_COLUMNS, &h.devices},
        {"candidates", STORE_CANDIDATE_COLUMNS, &h.candidates},
        {"winners", STORE_WINNER_COLUMNS, &h.winners},
        {"generations", STORE_GENERATION_COLUMNS, &generations},
        {"defaults", STORE_DEFAULT_COLUMNS, &defaults}, /* last: an old file lacks it */
    };
    size_t len = ARRAY_LEN(tables) - (database_version(s->file) < STORE_VERSION_DEFAULTS ? 1 : 0);

    for (size_t i = 0; i < len; i++) {
        TRY(check_table(s, tables[i].table, tables[i].columns, tables[i].rows, &h.quarantined,
                        error));
    }
    TRY(store_next_id(s, STORE_SQL_NEXT_GENERATION, &next, error));
    h.generation = (uint64_t)(next - 1);
    TRY(quick_check(s, &h.intact, error));
    *out = h;
done:
    return status;
}
