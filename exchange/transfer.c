/* transfer.c - a space to a file and back, and a file's rows into a store. */
#include "exchange/exchange_parts.h"

#include <stdlib.h>
#include <string.h>

hone_status exchange_write(const exchange_space *space, exchange_format format, const manifest *m,
                           const char *path, hone_error *error)
{
    hone_status status = HONE_OK;
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);

    if (to == NULL) {
        return exchange_no_memory(path, error);
    }
    status = format == EXCHANGE_T4 ? t4_print(space, to) : cachefile_print(space, m, to);
    const bool failed = ferror(to) != 0;
    if (fclose(to) != 0 || failed || status != HONE_OK) {
        status = exchange_no_memory(path, error);
        goto done;
    }
    TRY(exchange_replace_file(path, text, len, error));
done:
    free(text);
    return status;
}

hone_status exchange_read(const char *path, exchange_format format, const exchange_given *given,
                          exchange_set *out, bool *torn, hone_error *error)
{
    static const exchange_given nothing = {0};
    hone_status status = HONE_OK;
    exchange_set made = {0};
    exchange_source from = {.path = path, .format = format, .memory = &made.memory, .error = error};
    json_t *root = NULL;
    bool cut = false;

    TRY(exchange_read_json(path, format == EXCHANGE_CACHEFILE ? &cut : NULL, &root, error));
    exchange_space *space = exchange_add_space(&made);
    if (space == NULL) {
        status = exchange_no_memory(path, error);
        goto done;
    }
    given = given != NULL ? given : &nothing;
    if (format == EXCHANGE_T4) {
        TRY(t4_take(&from, root, given, space));
    } else {
        TRY(cachefile_take(&from, root, given, space));
    }
    *out = made;
    made = (exchange_set){0};
    if (torn != NULL) {
        *torn = cut;
    }
done:
    json_decref(root);
    exchange_free(&made);
    return status;
}

/* A set's rows that this build has templates for. */
typedef struct incoming {
    store_import *rows;
    const exchange_space **spaces; /* of each row */
    store_fate *fates;             /* of each row, by a forecast */
    size_t len;
    exchange_counts counts;
} incoming;

static void let_go(incoming *in)
{
    free(in->rows);
    free(in->spaces);
    free(in->fates);
}

static void add_row(incoming *in, const exchange_space *space, const exchange_row *row)
{
    store_import *made = &in->rows[in->len];

    *made = (store_import){.problem = &space->problem,
                           .kind = &space->kind,
                           .template_name = space->template_name,
                           .config = row->config,
                           .nvrtc = row->nvrtc,
                           .driver = row->driver,
                           .created_ms = row->created_ms,
                           .result = row->result};
    memcpy(made->template_digest, row->template_digest, sizeof made->template_digest);
    in->spaces[in->len++] = space;
}

/* A space's rows whose config is one of this build's template. */
static void add_space(incoming *in, const exchange_space *space, const templates *t)
{
    const manifest *m = templates_find(t, space->template_name);
    const bool serves = m != NULL && manifest_op(m) == space->problem.op;
    uint8_t digest[32] = {0};
    config parsed;

    if (serves) {
        templates_digest(t, m, digest);
    }
    for (size_t i = 0; i < space->rows_len; i++) {
        const exchange_row *row = &space->rows[i];
        if (!serves || manifest_config_parse(m, row->config, &parsed, NULL) != HONE_OK) {
            in->counts.unknown++;
            continue;
        }
        in->counts.current += row->result.outcome == STORE_OK &&
                              memcmp(digest, row->template_digest, sizeof digest) == 0;
        add_row(in, space, row);
    }
}

static hone_status gather(const exchange_set *set, const templates *t, incoming *in,
                          hone_error *error)
{
    size_t most = 1;

    for (size_t i = 0; i < set->spaces_len; i++) {
        most += set->spaces[i].rows_len;
    }
    in->rows = calloc(most, sizeof *in->rows);
    in->spaces = calloc(most, sizeof *in->spaces);
    in->fates = calloc(most, sizeof *in->fates);
    if (in->rows == NULL || in->spaces == NULL || in->fates == NULL) {
        return exchange_no_memory("import", error);
    }
    for (size_t i = 0; i < set->spaces_len; i++) {
        add_space(in, &set->spaces[i], t);
    }
    return HONE_OK;
}

hone_status exchange_import(const exchange_set *set, const templates *t, store *s,
                            const char *command, exchange_counts *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const store_sweep facts = {.command = command, .nvrtc = ""};
    incoming in = {0};
    int64_t sweep = 0;

    TRY(gather(set, t, &in, error));
    if (in.len > 0) {
        TRY(store_sweep_begin(s, &facts, &sweep, error));
        TRY(store_import_rows(s, sweep, in.rows, in.len, &in.counts.rows, error));
        TRY(store_sweep_end(s, sweep, error));
    }
    *out = in.counts;
done:
    let_go(&in);
    return status;
}

static int see_row(void *context, const store_row *row)
{
    incoming *in = context;

    for (size_t i = 0; i < in->len; i++) {
        if (strcmp(in->rows[i].config, row->config) == 0 &&
            strcmp(in->rows[i].template_name, row->template_name) == 0 &&
            strcmp(in->spaces[i]->problem_text, row->problem_text) == 0 &&
            memcmp(in->rows[i].kind, row->kind, sizeof *row->kind) == 0) {
            in->fates[i] = store_import_fate(row, &in->rows[i]);
        }
    }
    return 0;
}

hone_status exchange_forecast(const exchange_set *set, const templates *t, store *s,
                              exchange_counts *out, hone_error *error)
{
    hone_status status = HONE_OK;
    incoming in = {0};

    TRY(gather(set, t, &in, error));
    if (s != NULL) {
        TRY(store_candidates(s, NULL, see_row, &in, error));
    }
    for (size_t i = 0; i < in.len; i++) {
        in.counts.rows.added += in.fates[i] == STORE_ADDS;
        in.counts.rows.replaced += in.fates[i] == STORE_REPLACES;
        in.counts.rows.kept += in.fates[i] == STORE_KEEPS;
        in.counts.rows.proved += in.fates[i] == STORE_YIELDS;
    }
    *out = in.counts;
done:
    let_go(&in);
    return status;
}
