/* report.c - collects a store's winners, outcomes and reasons for each device kind. Prints nothing.
 */
#include "bench/report.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ROWS (INT64_C(1) << 53) /* that a number of JSON can tell */

/* What the visitors share: the report that grows, and the first failure. */
typedef struct gather {
    report *report;
    const device_kind *device; /* NULL: all */
    hone_status status;
} gather;

/* Room for one more element of an array that doubles; NULL when memory ends. */
static void *grown(void *array, size_t len, size_t size)
{
    if (len != 0 && (len & (len - 1)) != 0) {
        return array;
    }
    return realloc(array, (len == 0 ? 1 : 2 * len) * size);
}

static bool is_wanted(const gather *g, const device_kind *kind)
{
    return g->device == NULL || (g->device->emulated == kind->emulated &&
                                 device_kind_match(kind, g->device) == DEVICE_SAME);
}

static report_device *device_of(gather *g, int64_t id, const device_kind *kind)
{
    report *r = g->report;

    for (size_t i = 0; i < r->devices_len; i++) {
        if (r->devices[i].id == id) {
            return &r->devices[i];
        }
    }
    report_device *devices = grown(r->devices, r->devices_len, sizeof *devices);
    if (devices == NULL) {
        return NULL;
    }
    r->devices = devices;
    report_device *device = &devices[r->devices_len++];
    memset(device, 0, sizeof *device);
    device->id = id;
    device->kind = *kind;
    return device;
}

/* A copy with control characters replaced: they must not reach a terminal. */
static char *neutral_copy(const char *text)
{
    char *copy = strdup(text != NULL ? text : "");
    for (char *c = copy; c != NULL && *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
    return copy;
}

/* How many rows were timed, of counters that say so. */
static void read_rows(const char *counters, report_row *row)
{
    json_t *root = counters != NULL ? json_loads(counters, 0, NULL) : NULL;

    const json_int_t rows = json_integer_value(json_object_get(root, "rows"));
    const json_int_t cut = json_integer_value(json_object_get(root, "rows_cut"));
    if (rows >= 0 && rows <= MOST_ROWS && cut >= 0 && cut <= MOST_ROWS) {
        row->rows = rows;
        row->rows_cut = cut;
    }
    json_decref(root);
}

static bool fill_row(report_row *row, const store_row *from)
{
    const store_result *result = &from->result;

    *row = (report_row){
        .problem = neutral_copy(from->problem_text),
        .template_name = neutral_copy(from->template_name),
        .config = neutral_copy(from->config),
        .bound = neutral_copy(result->bound),
        .reason = neutral_copy(result->reason),
        .tokens = neutral_copy(result->tokens),
        .timer = result->timer,
        .time_ns = result->time_ns,
        .flop = result->flop,
        .bytes = result->bytes,
        .roof_ns = result->roof_ns,
        .cosine = result->cosine,
        .rel_fro = result->rel_fro,
        .calc_diff = result->calc_diff,
        .max_err_ratio = result->max_err_ratio,
        .checked_ctas = result->checked_ctas,
        .registers = result->registers,
        .shared_bytes = result->shared_bytes,
        .spill_bytes = result->spill_bytes,
        .compile_ms = result->compile_ms,
    };
    read_rows(result->counters, row);
    return row->problem != NULL && row->template_name != NULL && row->config != NULL &&
           row->bound != NULL && row->reason != NULL && row->tokens != NULL;
}

static int add_winner(void *context, const store_winner *winner)
{
    gather *g = context;

    if (!is_wanted(g, winner->row.kind)) {
        return 0;
    }
    report_device *device = device_of(g, winner->row.device, winner->row.kind);
    report_row *rows = device == NULL ? NULL : grown(device->rows, device->rows_len, sizeof *rows);
    if (rows == NULL) {
        g->status = HONE_NO_MEMORY;
        return 1;
    }
    device->rows = rows;
    report_row *row = &rows[device->rows_len++];
    if (!fill_row(row, &winner->row)) {
        g->status = HONE_NO_MEMORY;
        return 1;
    }
    row->winner = winner->id;
    row->verdict = winner->verdict;
    row->default_ns = winner->default_ns;
    return 0;
}

static bool count_reason(report_device *device, int32_t outcome, const char *text)
{
    char *reason = neutral_copy(text);

    for (size_t i = 0; reason != NULL && i < device->reasons_len; i++) {
        report_reason *known = &device->reasons[i];
        if (known->outcome == outcome && strcmp(known->reason, reason) == 0) {
            known->count++;
            free(reason);
            return true;
        }
    }
    report_reason *reasons =
        reason == NULL ? NULL : grown(device->reasons, device->reasons_len, sizeof *reasons);
    if (reasons == NULL) {
        free(reason);
        return false;
    }
    device->reasons = reasons;
    reasons[device->reasons_len++] = (report_reason){outcome, reason, 1};
    return true;
}

/* The row of the problem among the winners, else among those without one, else a new one there. */
static report_row *row_of_problem(report_device *device, const store_row *from)
{
    for (size_t i = 0; i < device->rows_len; i++) {
        if (strcmp(device->rows[i].problem, from->problem_text) == 0) {
            return &device->rows[i];
        }
    }
    for (size_t i = 0; i < device->missing_len; i++) {
        if (strcmp(device->missing[i].problem, from->problem_text) == 0) {
            return &device->missing[i];
        }
    }
    report_row *missing = grown(device->missing, device->missing_len, sizeof *missing);
    if (missing == NULL) {
        return NULL;
    }
    device->missing = missing;
    report_row *row = &missing[device->missing_len++];
    return fill_row(row, from) ? row : NULL;
}

static int add_candidate(void *context, const store_row *row)
{
    gather *g = context;
    int32_t outcome = row->result.outcome;

    if (!is_wanted(g, row->kind)) {
        return 0;
    }
    report_device *device = device_of(g, row->device, row->kind);
    if (device != NULL && outcome == STORE_IMPORTED) { /* a file's word: nothing was tried here */
        device->candidates++;
        device->outcomes[outcome]++;
        return 0;
    }
    report_row *problem = device == NULL ? NULL : row_of_problem(device, row);
    if (problem == NULL) {
        g->status = HONE_NO_MEMORY;
        return 1;
    }
    problem->tried++;
    problem->proved += outcome == STORE_OK;
    device->candidates++;
    if (outcome >= 0 && outcome < (int32_t)ARRAY_LEN(device->outcomes)) {
        device->outcomes[outcome]++;
    }
    snprintf(device->nvrtc, sizeof device->nvrtc, "%s", row->nvrtc != NULL ? row->nvrtc : "");
    device->driver = row->driver;
    if (outcome != STORE_OK && !count_reason(device, outcome, row->result.reason)) {
        g->status = HONE_NO_MEMORY;
        return 1;
    }
    return 0;
}

static int by_count(const void *a, const void *b)
{
    const report_reason *left = a, *right = b;

    if (left->count != right->count) {
        return left->count < right->count ? 1 : -1;
    }
    return strcmp(left->reason, right->reason);
}

hone_status report_read(store *s, const device_kind *device, report *out, hone_error *error)
{
    hone_status status = HONE_OK;
    report made = {0};
    gather g = {.report = &made, .device = device, .status = HONE_OK};

    snprintf(made.path, sizeof made.path, "%s", store_path(s));
    TRY(store_check(s, &made.health, error));
    TRY(store_winners(s, NULL, add_winner, &g, error));
    if (g.status == HONE_OK) {
        TRY(store_candidates(s, NULL, add_candidate, &g, error));
    }
    if (g.status != HONE_OK) {
        status = status_set(error, g.status, made.path, 0, "reading the store for a report");
        goto done;
    }
    for (size_t i = 0; i < made.devices_len; i++) {
        if (made.devices[i].reasons_len > 1) {
            qsort(made.devices[i].reasons, made.devices[i].reasons_len, sizeof(report_reason),
                  by_count);
        }
    }
    *out = made;
    memset(&made, 0, sizeof made);
done:
    report_free(&made);
    return status;
}

static void free_rows(report_row *rows, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        free(rows[i].problem);
        free(rows[i].template_name);
        free(rows[i].config);
        free(rows[i].bound);
        free(rows[i].reason);
        free(rows[i].tokens);
    }
    free(rows);
}

void report_free(report *r)
{
    if (r == NULL) {
        return;
    }
    for (size_t i = 0; i < r->devices_len; i++) {
        report_device *device = &r->devices[i];
        free_rows(device->rows, device->rows_len);
        free_rows(device->missing, device->missing_len);
        for (size_t k = 0; k < device->reasons_len; k++) {
            free(device->reasons[k].reason);
        }
        free(device->reasons);
    }
    free(r->devices);
    memset(r, 0, sizeof *r);
}

double report_tflops(const report_row *row)
{
    return row->time_ns > 0 ? row->flop / row->time_ns * 1e-3 : 0;
}

double report_gbytes(const report_row *row)
{
    return row->time_ns > 0 ? row->bytes / row->time_ns : 0;
}

double report_roof_percent(const report_row *row)
{
    return row->time_ns > 0 ? 100 * row->roof_ns / row->time_ns : 0;
}

double report_default_percent(const report_row *row)
{
    bool known = row->time_ns > 0 && row->default_ns > 0;

    return known ? 100 * (row->default_ns / row->time_ns - 1) : (double)NAN;
}
