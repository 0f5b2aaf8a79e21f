/* report.h - what a store knows about each device kind, ready to print.
 *
 * Modelled times are never mixed with measured ones: every row names its timer, and means are taken
 * for each timer apart. Printing neutralises control characters, since a store may come from a
 * stranger. */
#ifndef HONE_BENCH_REPORT_H
#define HONE_BENCH_REPORT_H

#include "cache/store.h"

#include <stdio.h>

/* One problem's winner. Text is owned by the report. */
typedef struct report_row {
    char *problem, *template_name, *config, *bound, *reason;
    char *tokens;           /* how tokens spread over experts while it was measured */
    int64_t rows, rows_cut; /* that were timed, and left out for want of room; 0 and 0: not told */
    uint64_t winner;
    int32_t verdict, timer;
    double time_ns, flop, bytes, roof_ns;
    double default_ns; /* of the analytical default, by the same timer; 0: not known */
    double cosine, rel_fro, calc_diff, max_err_ratio;
    uint32_t checked_ctas;
    int32_t registers, shared_bytes, spill_bytes;
    double compile_ms;
    uint64_t tried, proved; /* candidates of this problem in the store; of them `ok` */
} report_row;

/* Why candidates did not win a place: how many share an outcome and a reason. */
typedef struct report_reason {
    int32_t outcome;
    char *reason;
    uint64_t count;
} report_reason;

typedef struct report_device {
    int64_t id;
    device_kind kind;
    report_row *rows; /* one for each problem with a winner */
    size_t rows_len;
    report_row
        *missing; /* problems that were tried and have none: `problem`, `reason`, `tried` are set */
    size_t missing_len;
    report_reason *reasons; /* most frequent first */
    size_t reasons_len;
    uint64_t candidates, outcomes[16]; /* by store_outcome */
    char nvrtc[64];
    int32_t driver; /* of the newest row */
} report_device;

typedef struct report {
    char path[512];
    store_health health;
    report_device *devices;
    size_t devices_len;
} report;

/* Read all of a store, or of one device kind (`device`, NULL: all; an emulated kind and its real
 * twin are two). Caller frees with report_free. */
hone_status report_read(store *s, const device_kind *device, report *out, hone_error *error);
void report_free(report *r); /* NULL is fine; zeroes it */

/* For people; `details` adds configs and every reason. */
void report_print_text(const report *r, FILE *to, bool details);
/* HONE_NO_MEMORY, HONE_IO. */
hone_status report_print_json(const report *r, FILE *to, hone_error *error);

/* Rates of a row: TFLOP/s, GB/s, and its share of the roof in percent; 0 where they mean nothing.
 */
double report_tflops(const report_row *row);
double report_gbytes(const report_row *row);
double report_roof_percent(const report_row *row);
/* How much longer the analytical default takes than the winner, in percent; NAN when it is not
 * known. */
double report_default_percent(const report_row *row);

#endif
