/* report_json.c - the report for programs. Rates are left out where they mean nothing; times say
 * their timer. */
#include "bench/report.h"

#include <jansson.h>
#include <math.h>

/* How far the default is; null when it is not known. */
static json_t *default_json(const report_row *row)
{
    double percent = report_default_percent(row);

    return isnan(percent) ? json_null() : json_real(percent);
}

static json_t *row_json(const report_row *row)
{
    return json_pack(
        "{s:s, s:I, s:s, s:s, s:s, s:f, s:s, s:b, s:f, s:f, s:f, s:s, s:f, s:f, s:f, "
        "s:f, s:i, s:i, s:i, "
        "s:i, s:f, s:I, s:I, s:o, s:s, s:I, s:I}",
        "problem", row->problem, "winner", (json_int_t)row->winner, "verdict",
        store_verdict_name(row->verdict), "template", row->template_name, "config", row->config,
        "time_ns", row->time_ns, "timer", store_timer_name(row->timer), "modelled",
        row->timer == STORE_TIMER_MODELLED, "tflops", report_tflops(row), "gbytes_per_s",
        report_gbytes(row), "roof_percent", report_roof_percent(row), "bound", row->bound, "cosine",
        row->cosine, "rel_fro", row->rel_fro, "calc_diff", row->calc_diff, "max_err_ratio",
        row->max_err_ratio, "checked_ctas", (int)row->checked_ctas, "registers",
        (int)row->registers, "shared_bytes", (int)row->shared_bytes, "spill_bytes",
        (int)row->spill_bytes, "compile_ms", row->compile_ms, "tried", (json_int_t)row->tried,
        "proved", (json_int_t)row->proved, "default_percent", default_json(row), "tokens",
        row->tokens, "rows", (json_int_t)row->rows, "rows_cut", (json_int_t)row->rows_cut);
}

static json_t *rows_json(const report_device *device)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < device->rows_len; i++) {
        json_array_append_new(rows, row_json(&device->rows[i]));
    }
    return rows;
}

static json_t *missing_json(const report_device *device)
{
    json_t *missing = json_array();

    for (size_t i = 0; i < device->missing_len; i++) {
        json_array_append_new(missing,
                              json_pack("{s:s, s:I, s:s}", "problem", device->missing[i].problem,
                                        "tried", (json_int_t)device->missing[i].tried, "reason",
                                        device->missing[i].reason));
    }
    return missing;
}

static json_t *reasons_json(const report_device *device)
{
    json_t *reasons = json_array();

    for (size_t i = 0; i < device->reasons_len; i++) {
        json_array_append_new(reasons, json_pack("{s:s, s:s, s:I}", "outcome",
                                                 store_outcome_name(device->reasons[i].outcome),
                                                 "reason", device->reasons[i].reason, "count",
                                                 (json_int_t)device->reasons[i].count));
    }
    return reasons;
}

static json_t *device_json(const report_device *device)
{
    const device_kind *kind = &device->kind;

    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:s, s:i, s:I, s:o, s:o, s:o}", "name",
                     kind->name, "arch", (int)kind->arch, "sm_count", (int)kind->sm_count,
                     "smem_per_block", (int)kind->smem_per_block, "mem_gib", (int)kind->mem_gib,
                     "mem_100gb_s", (int)kind->mem_100gb_s, "emulated", kind->emulated, "nvrtc",
                     device->nvrtc, "driver", (int)device->driver, "candidates",
                     (json_int_t)device->candidates, "problems", rows_json(device),
                     "without_winner", missing_json(device), "rejected", reasons_json(device));
}

hone_status report_print_json(const report *r, FILE *to, hone_error *error)
{
    hone_status status = HONE_OK;
    json_t *devices = json_array();

    for (size_t i = 0; i < r->devices_len; i++) {
        json_array_append_new(devices, device_json(&r->devices[i]));
    }
    json_t *root = json_pack("{s:s, s:I, s:I, s:b, s:o}", "store", r->path, "generation",
                             (json_int_t)r->health.generation, "quarantined",
                             (json_int_t)r->health.quarantined, "intact", r->health.intact,
                             "devices", devices);
    if (root == NULL) {
        return status_set(error, HONE_NO_MEMORY, r->path, 0, "a report as JSON");
    }
    if (json_dumpf(root, to, JSON_INDENT(2)) != 0 || fputc('\n', to) == EOF) {
        status = status_set(error, HONE_IO, r->path, 0, "writing a report as JSON");
    }
    json_decref(root);
    return status;
}
