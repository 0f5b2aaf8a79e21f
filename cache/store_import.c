/* store_import.c - rows of files that others may have written: kept, and never trusted. */
#include "cache/store_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A time that went through a file in milliseconds differs from itself by a rounding or two. */
#define SAME_TIME 1e-12

int32_t store_outcome_there(const store_row *row, const char **reason)
{
    const char *text = row->result.reason != NULL ? row->result.reason : "";
    const size_t len = strcspn(text, ":");
    char name[16] = "";

    *reason = text;
    if (row->result.outcome != STORE_IMPORTED) {
        return row->result.outcome;
    }
    if (len < sizeof name) {
        memcpy(name, text, len);
        *reason = text + len + (text[len] == ':') + (text[len] == ':' && text[len + 1] == ' ');
    }
    return store_outcome_parse(name);
}

/* Which of two times is worth more: a measured one before a modelled one, any before none. */
static int rank_of(int32_t outcome, int32_t timer)
{
    if (outcome != STORE_OK) {
        return 0;
    }
    return timer == STORE_TIMER_MODELLED || timer == STORE_TIMER_NONE ? 1 : 2;
}

static const char *text_of(const char *text)
{
    return text != NULL ? text : "";
}

store_fate store_import_fate(const store_row *there, const store_import *row)
{
    const char *reason = NULL;

    if (there->result.outcome != STORE_IMPORTED) {
        return STORE_YIELDS;
    }
    const int have = rank_of(store_outcome_there(there, &reason), there->result.timer);
    const int comes = rank_of(row->result.outcome, row->result.timer);
    if (have != comes) {
        return comes > have ? STORE_REPLACES : STORE_KEEPS;
    }
    if (comes == 0) {
        return STORE_KEEPS;
    }
    if (strcmp(text_of(there->result.tokens), text_of(row->result.tokens)) != 0) {
        return STORE_REPLACES;
    }
    return row->result.time_ns < there->result.time_ns * (1 - SAME_TIME) ? STORE_REPLACES
                                                                         : STORE_KEEPS;
}

static hone_status check_row(const store *s, const store_import *row, hone_error *error)
{
    if (row->kind->arch <= 0 || row->kind->sm_count <= 0) {
        return status_set(error, HONE_BAD_ARGUMENT, store_path(s), 0,
                          "%s %s: a device '%s' without its arch or SM count would be every "
                          "device's; name both",
                          row->template_name, row->config, row->kind->name);
    }
    if (row->result.outcome == STORE_IMPORTED) {
        return status_set(error, HONE_BAD_ARGUMENT, store_path(s), 0,
                          "%s %s: 'imported' is no outcome of a file", row->template_name,
                          row->config);
    }
    return store_result_check(s, &row->result, error);
}

/* In the open transaction. */
static hone_status put(store *s, int64_t sweep, const store_import *from, store_imported *count,
                       hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    store_key key = {.template_name = from->template_name, .config = from->config};
    store_row there;
    store_fate fate = STORE_ADDS;
    bool found = false;
    char reason[1024];
    const char *why = text_of(from->result.reason);

    TRY(store_problem_id(s, from->problem, &key.problem, error));
    TRY(store_device_id(s, from->kind, &key.device, error));
    TRY(store_row_find(s, &key, &there, &statement, &found, error));
    store_row row = {
        .id = found ? there.id : 0,
        .sweep = sweep,
        .problem = key.problem,
        .device = key.device,
        .template_name = from->template_name,
        .config = from->config,
        .attempts = 1,
        .nvrtc = text_of(from->nvrtc),
        .driver = from->driver,
        .created_ms = from->created_ms,
        .result = from->result,
    };
    fate = found ? store_import_fate(&there, from) : STORE_ADDS;
    sqlite3_reset(statement);
    count->added += fate == STORE_ADDS;
    count->replaced += fate == STORE_REPLACES;
    count->kept += fate == STORE_KEEPS;
    count->proved += fate == STORE_YIELDS;
    if (fate == STORE_KEEPS || fate == STORE_YIELDS) {
        return HONE_OK;
    }
    if (!found) {
        TRY(store_next_id(s, STORE_SQL_NEXT_CANDIDATE, &row.id, error));
    }
    memcpy(row.template_digest, from->template_digest, sizeof row.template_digest);
    snprintf(reason, sizeof reason, "%s%s%s", store_outcome_name(from->result.outcome),
             why[0] != '\0' ? ": " : "", why);
    row.result.outcome = STORE_IMPORTED;
    row.result.reason = reason;
    TRY(store_row_write(s, &row, error));
    s->pending++;
done:
    return status;
}

hone_status store_import_rows(store *s, int64_t sweep, const store_import *rows, size_t rows_len,
                              store_imported *out, hone_error *error)
{
    hone_status status = HONE_OK;
    store_imported count = {0};

    for (size_t i = 0; i < rows_len; i++) {
        TRY(check_row(s, &rows[i], error));
    }
    TRY(store_load_sweep(s, sweep, error));
    TRY(store_write_begin(s, error));
    for (size_t i = 0; i < rows_len; i++) {
        TRY(put(s, sweep, &rows[i], &count, error));
    }
    TRY(store_flush(s, error));
    *out = count;
done:
    if (status != HONE_OK && s->writing) { /* all or none, whatever refused */
        sqlite3_exec(database_handle(s->file), "ROLLBACK", NULL, NULL, NULL);
        s->writing = false;
        s->pending = 0;
        s->broken = status;
    }
    return status;
}
