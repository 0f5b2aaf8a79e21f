/* store_candidate.c - a candidate's life in the store: begun, finished, found again by the next
 * sweep. */
#include "cache/store_file.h"

#include "core/moment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SWEEPS   8 /* that die while a candidate is in flight, before it is `lost` */
#define MOST_MACHINES 2

/* Columns of a candidate, in the schema's order. */
enum {
    AT_ID,
    AT_PROBLEM,
    AT_DEVICE,
    AT_TEMPLATE,
    AT_CONFIG,
    AT_SWEEP,
    AT_ATTEMPTS,
    AT_TEMPLATE_DIGEST,
    AT_NVRTC,
    AT_DRIVER,
    AT_CREATED,
    AT_OUTCOME,
    AT_REASON,
    AT_REGISTERS,
    AT_SHARED,
    AT_SPILL,
    AT_LOCAL,
    AT_COMPILE_MS,
    AT_TIMER,
    AT_TIME_NS,
    AT_SAMPLES,
    AT_CACHE_MODE,
    AT_TOKENS,
    AT_CLOCK_SM,
    AT_CLOCK_MEM,
    AT_COSINE,
    AT_REL_FRO,
    AT_CALC_DIFF,
    AT_MAX_ERR_RATIO,
    AT_CHECKED_CTAS,
    AT_FLOP,
    AT_BYTES,
    AT_ROOF_NS,
    AT_BOUND,
    AT_COUNTERS,
    AT_DIGEST,
};
_Static_assert(AT_DIGEST + 1 == STORE_CANDIDATE_COLUMNS, "the digest is the last column");

hone_status store_row_write(store *s, const store_row *row, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *insert = NULL;
    const store_result *r = &row->result;
    const cell cells[AT_DIGEST] = {
        [AT_ID] = cell_int(row->id),
        [AT_PROBLEM] = cell_int(row->problem),
        [AT_DEVICE] = cell_int(row->device),
        [AT_TEMPLATE] = cell_text(row->template_name),
        [AT_CONFIG] = cell_text(row->config),
        [AT_SWEEP] = cell_int(row->sweep),
        [AT_ATTEMPTS] = cell_int(row->attempts),
        [AT_TEMPLATE_DIGEST] = cell_blob(row->template_digest, sizeof row->template_digest),
        [AT_NVRTC] = cell_text(row->nvrtc),
        [AT_DRIVER] = cell_int(row->driver),
        [AT_CREATED] = cell_int(row->created_ms),
        [AT_OUTCOME] = cell_int(r->outcome),
        [AT_REASON] = cell_text(r->reason),
        [AT_REGISTERS] = cell_int(r->registers),
        [AT_SHARED] = cell_int(r->shared_bytes),
        [AT_SPILL] = cell_int(r->spill_bytes),
        [AT_LOCAL] = cell_int(r->local_bytes),
        [AT_COMPILE_MS] = cell_real(r->compile_ms),
        [AT_TIMER] = cell_int(r->timer),
        [AT_TIME_NS] = cell_real(r->time_ns),
        [AT_SAMPLES] = cell_blob(r->samples_ns, r->samples_len * sizeof(double)),
        [AT_CACHE_MODE] = cell_text(r->cache_mode),
        [AT_TOKENS] = cell_text(r->tokens),
        [AT_CLOCK_SM] = cell_int(r->clock_sm_mhz),
        [AT_CLOCK_MEM] = cell_int(r->clock_mem_mhz),
        [AT_COSINE] = cell_real(r->cosine),
        [AT_REL_FRO] = cell_real(r->rel_fro),
        [AT_CALC_DIFF] = cell_real(r->calc_diff),
        [AT_MAX_ERR_RATIO] = cell_real(r->max_err_ratio),
        [AT_CHECKED_CTAS] = cell_int(r->checked_ctas),
        [AT_FLOP] = cell_real(r->flop),
        [AT_BYTES] = cell_real(r->bytes),
        [AT_ROOF_NS] = cell_real(r->roof_ns),
        [AT_BOUND] = cell_text(r->bound),
        [AT_COUNTERS] = cell_text(r->counters),
    };

    TRY(store_statement(s, STORE_SQL_PUT_CANDIDATE, &insert, error));
    TRY(row_write(s->file, insert, "candidates", cells, ARRAY_LEN(cells), error));
done:
    return status;
}

/* Samples are copied out: a blob may lie at any address. */
static hone_status read_samples(store *s, sqlite3_stmt *row, store_result *out, hone_error *error)
{
    size_t bytes = (size_t)sqlite3_column_bytes(row, AT_SAMPLES);
    size_t len = bytes / sizeof(double);

    if (len > s->samples_capacity) {
        double *grown = realloc(s->samples, len * sizeof *grown);
        if (grown == NULL) {
            return status_set(error, HONE_NO_MEMORY, store_path(s), 0, "samples");
        }
        s->samples = grown;
        s->samples_capacity = len;
    }
    if (len > 0) {
        memcpy(s->samples, sqlite3_column_blob(row, AT_SAMPLES), len * sizeof(double));
    }
    out->samples_ns = s->samples;
    out->samples_len = len;
    return HONE_OK;
}

static void read_result(sqlite3_stmt *row, store_result *out)
{
    *out = (store_result){
        .outcome = sqlite3_column_int(row, AT_OUTCOME),
        .reason = row_text(row, AT_REASON),
        .registers = sqlite3_column_int(row, AT_REGISTERS),
        .shared_bytes = sqlite3_column_int(row, AT_SHARED),
        .spill_bytes = sqlite3_column_int(row, AT_SPILL),
        .local_bytes = sqlite3_column_int(row, AT_LOCAL),
        .compile_ms = row_real(row, AT_COMPILE_MS),
        .timer = sqlite3_column_int(row, AT_TIMER),
        .time_ns = row_real(row, AT_TIME_NS),
        .cache_mode = row_text(row, AT_CACHE_MODE),
        .tokens = row_text(row, AT_TOKENS),
        .clock_sm_mhz = sqlite3_column_int(row, AT_CLOCK_SM),
        .clock_mem_mhz = sqlite3_column_int(row, AT_CLOCK_MEM),
        .cosine = row_real(row, AT_COSINE),
        .rel_fro = row_real(row, AT_REL_FRO),
        .calc_diff = row_real(row, AT_CALC_DIFF),
        .max_err_ratio = row_real(row, AT_MAX_ERR_RATIO),
        .checked_ctas = (uint32_t)sqlite3_column_int(row, AT_CHECKED_CTAS),
        .flop = row_real(row, AT_FLOP),
        .bytes = row_real(row, AT_BYTES),
        .roof_ns = row_real(row, AT_ROOF_NS),
        .bound = row_text(row, AT_BOUND),
        .counters = row_text(row, AT_COUNTERS),
    };
}

/* The row's own columns; problem_text and kind stay NULL. */
static hone_status read_row(store *s, sqlite3_stmt *row, store_row *out, bool *intact,
                            hone_error *error)
{
    hone_status status = HONE_OK;
    store_row made = {
        .id = sqlite3_column_int64(row, AT_ID),
        .sweep = sqlite3_column_int64(row, AT_SWEEP),
        .problem = sqlite3_column_int64(row, AT_PROBLEM),
        .device = sqlite3_column_int64(row, AT_DEVICE),
        .template_name = row_text(row, AT_TEMPLATE),
        .config = row_text(row, AT_CONFIG),
        .attempts = sqlite3_column_int(row, AT_ATTEMPTS),
        .nvrtc = row_text(row, AT_NVRTC),
        .driver = sqlite3_column_int(row, AT_DRIVER),
        .created_ms = sqlite3_column_int64(row, AT_CREATED),
    };

    *intact = row_intact(row, "candidates", 0, STORE_CANDIDATE_COLUMNS) &&
              sqlite3_column_bytes(row, AT_TEMPLATE_DIGEST) == (int)sizeof made.template_digest;
    if (!*intact) {
        return HONE_OK;
    }
    memcpy(made.template_digest, sqlite3_column_blob(row, AT_TEMPLATE_DIGEST),
           sizeof made.template_digest);
    read_result(row, &made.result);
    TRY(read_samples(s, row, &made.result, error));
    *out = made;
done:
    return status;
}

hone_status store_row_read(store *s, sqlite3_stmt *statement, store_row *out, bool *intact,
                           hone_error *error)
{
    hone_status status = HONE_OK;
    store_row made;
    bool found = false;

    TRY(read_row(s, statement, &made, intact, error));
    if (!*intact) {
        return HONE_OK;
    }
    TRY(store_load_problem(s, made.problem, intact, error));
    TRY(store_load_device(s, made.device, &found, error));
    *intact = *intact && found; /* a row that points at a damaged one cannot be told either */
    made.problem_text = s->problem_text;
    made.kind = &s->kind;
    *out = made;
done:
    return status;
}

hone_status store_row_find(store *s, const store_key *key, store_row *out, sqlite3_stmt **statement,
                           bool *found, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *row = NULL;

    TRY(store_statement(s, STORE_SQL_FIND_CANDIDATE, &row, error));
    sqlite3_bind_int64(row, 1, key->problem);
    sqlite3_bind_int64(row, 2, key->device);
    sqlite3_bind_text(row, 3, key->template_name, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(row, 4, key->config, -1, SQLITE_TRANSIENT);
    TRY(database_step(s->file, row, found, error));
    *statement = row;
    if (*found) {
        TRY(read_row(s, row, out, found, error));
    }
    /* An index that was damaged may have led to another row, intact in itself. */
    *found = *found && out->problem == key->problem && out->device == key->device &&
             strcmp(out->template_name, key->template_name) == 0 &&
             strcmp(out->config, key->config) == 0;
done:
    return status;
}

/* A candidate runs in a process of its own, so that a sweep that died on it was likely killed by
 * someone else; a machine that went down may well be its doing. */
bool store_gives_up(sweep_fate fate, int32_t attempts)
{
    return (fate == SWEEP_ENDED && attempts >= MOST_SWEEPS) ||
           (fate == SWEEP_ENDED_WITH_MACHINE && attempts >= MOST_MACHINES);
}

/* What an in-flight row means: its sweep may live, or have died on it once, or again and again. */
static hone_status state_in_flight(store *s, store_row *row, store_state *state, hone_error *error)
{
    hone_status status = HONE_OK;
    sweep_fate fate = SWEEP_ENDED;

    TRY(store_sweep_fate(s, row->sweep, &fate, error));
    if (!store_gives_up(fate, row->attempts)) {
        *state = fate == SWEEP_ALIVE ? STORE_RUNNING : STORE_AGAIN;
        return HONE_OK;
    }
    *state = STORE_DONE;
    if (s->mode == STORE_WRITE) {
        row->result.outcome = STORE_LOST;
        row->result.reason = fate == SWEEP_ENDED ? "eight sweeps died while it ran"
                                                 : "the machine went down twice while it ran";
        TRY(store_write_begin(s, error));
        TRY(store_row_write(s, row, error));
        TRY(store_write_pending(s, error));
    }
done:
    return status == HONE_OK ? status : store_write_failed(s, status);
}

static hone_status state_of(store *s, const store_key *key, store_state *state, int64_t *id,
                            int32_t *attempts, hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    store_row row;
    bool found = false;
    sweep_fate fate = SWEEP_ENDED;

    *state = STORE_TO_DO;
    *id = 0;
    *attempts = 0;
    TRY(store_row_find(s, key, &row, &statement, &found, error));
    if (!found) {
        goto done;
    }
    *id = row.id;
    if (row.result.outcome == STORE_IMPORTED ||
        memcmp(row.template_digest, key->template_digest, sizeof row.template_digest) != 0) {
        goto done; /* another text of the template, or tries elsewhere: they do not count */
    }
    if (key->tokens != NULL && strcmp(row.result.tokens, key->tokens) != 0) {
        if (row.result.outcome == STORE_INFLIGHT) { /* of a sweep that may be alive */
            TRY(store_sweep_fate(s, row.sweep, &fate, error));
        }
        *state = fate == SWEEP_ALIVE ? STORE_RUNNING : STORE_TO_DO;
        goto done;
    }
    *attempts = row.attempts;
    *state = STORE_DONE;
    if (row.result.outcome == STORE_INFLIGHT) {
        TRY(state_in_flight(s, &row, state, error));
    }
done:
    sqlite3_reset(statement);
    return status;
}

hone_status store_candidate_state(store *s, const store_key *key, store_state *state, int64_t *id,
                                  hone_error *error)
{
    hone_status status = HONE_OK;
    store_state made;
    int64_t row = 0;
    int32_t attempts = 0;

    TRY(state_of(s, key, &made, &row, &attempts, error));
    *state = made;
    if (id != NULL) {
        *id = row;
    }
done:
    return status;
}

/* Write a row for a key whose state allows it, in the open transaction. */
static hone_status put(store *s, int64_t sweep, const store_key *key, const store_result *result,
                       int64_t *id, hone_error *error)
{
    hone_status status = HONE_OK;
    store_state state;
    int64_t found = 0, made = 0;
    int32_t attempts = 0;

    TRY(store_load_sweep(s, sweep, error));
    TRY(store_write_begin(s, error));
    TRY(state_of(s, key, &state, &found, &attempts, error));
    if (state == STORE_DONE || state == STORE_RUNNING) {
        return status_set(error, HONE_TAKEN, store_path(s), 0,
                          "%s %s is done, or running in another sweep", key->template_name,
                          key->config);
    }
    if (found != 0) {
        made = found;
    } else {
        TRY(store_next_id(s, STORE_SQL_NEXT_CANDIDATE, &made, error));
    }
    store_row row = {
        .id = made,
        .sweep = sweep,
        .problem = key->problem,
        .device = key->device,
        .template_name = key->template_name,
        .config = key->config,
        .attempts = attempts + 1,
        .nvrtc = s->sweep_nvrtc,
        .driver = s->sweep_driver,
        .created_ms = moment_ms(CLOCK_REALTIME),
        .result = *result,
    };
    memcpy(row.template_digest, key->template_digest, sizeof row.template_digest);
    row.result.tokens = result->tokens != NULL ? result->tokens : key->tokens;
    TRY(store_row_write(s, &row, error));
    *id = made;
done:
    return status == HONE_OK ? status : store_write_failed(s, status);
}

hone_status store_candidate_begin(store *s, int64_t sweep, const store_key *key, int64_t *id,
                                  hone_error *error)
{
    hone_status status = HONE_OK;
    const store_result started = {.outcome = STORE_INFLIGHT};
    int64_t made = 0;

    TRY(put(s, sweep, key, &started, &made, error));
    TRY(store_flush(s, error));
    *id = made;
done:
    return status;
}

/* A NaN time would sort before every real one, and win. */
hone_status store_result_check(const store *s, const store_result *r, hone_error *error)
{
    bool timed = isfinite(r->time_ns) && r->time_ns > 0;
    const double figures[] = {r->cosine,     r->rel_fro, r->calc_diff, r->max_err_ratio,
                              r->compile_ms, r->flop,    r->bytes,     r->roof_ns};

    if (r->outcome <= STORE_INFLIGHT || r->outcome > STORE_UNMEASURED) {
        return status_set(error, HONE_BAD_ARGUMENT, store_path(s), 0, "outcome %d is no result",
                          r->outcome);
    }
    if (!isfinite(r->time_ns) || r->time_ns < 0 || (r->outcome == STORE_OK && !timed)) {
        return status_set(error, HONE_BAD_ARGUMENT, store_path(s), 0,
                          "a time of %g ns; one that is ok has a finite time above 0", r->time_ns);
    }
    for (size_t i = 0; i < r->samples_len; i++) {
        if (!isfinite(r->samples_ns[i])) {
            return status_set(error, HONE_BAD_ARGUMENT, store_path(s), 0, "sample %zu is %g", i,
                              r->samples_ns[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(figures) && r->outcome == STORE_OK; i++) {
        if (!isfinite(figures[i])) {
            return status_set(error, HONE_BAD_ARGUMENT, store_path(s), 0,
                              "a figure of a candidate that is ok is %g", figures[i]);
        }
    }
    return HONE_OK;
}

hone_status store_candidate_finish(store *s, int64_t id, const store_result *result,
                                   hone_error *error)
{
    hone_status status = HONE_OK;
    sqlite3_stmt *statement = NULL;
    store_row row;
    bool found = false;

    TRY(store_result_check(s, result, error));
    TRY(store_write_begin(s, error));
    TRY(store_query(s, STORE_SQL_GET_CANDIDATE, &id, 1, &statement, &found, error));
    if (found) {
        TRY(read_row(s, statement, &row, &found, error));
    }
    if (!found) {
        status = status_set(error, HONE_BAD_ARGUMENT, store_path(s), 0, "no candidate %lld",
                            (long long)id);
        goto done;
    }
    const char *tokens = row.result.tokens;
    row.result = *result;
    row.result.tokens = result->tokens != NULL ? result->tokens : tokens;
    TRY(store_row_write(s, &row, error));
    TRY(store_write_pending(s, error));
done:
    sqlite3_reset(statement);
    return status == HONE_OK ? status : store_write_failed(s, status);
}

hone_status store_candidate_record(store *s, int64_t sweep, const store_key *key,
                                   const store_result *result, int64_t *id, hone_error *error)
{
    hone_status status = HONE_OK;
    int64_t made = 0;

    TRY(store_result_check(s, result, error));
    TRY(put(s, sweep, key, result, &made, error));
    TRY(store_write_pending(s, error));
    if (id != NULL) {
        *id = made;
    }
done:
    return status;
}
