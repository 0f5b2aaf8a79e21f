/* report_text.c - the report for people: a header, a line for each problem, what was rejected and
 * why. */
#include "bench/report.h"

#include <math.h>
#include <string.h>

/* How many reasons are shown without `details`. */
enum { REASONS_SHOWN = 8 };

/* The times of one timer: modelled and measured ones never share a mean. */
typedef struct timer_sum {
    uint64_t rows;
    double log_roof;
    double least, most;                /* % of roof */
    uint64_t defaults;                 /* rows whose default is known */
    double log_default, worst_default; /* its time over the winner's; % */
} timer_sum;

static void print_header(const report_device *device, FILE *to)
{
    char kind[192];

    device_kind_text(&device->kind, kind);
    fprintf(to, "\n%s%s\n", kind,
            device->kind.emulated ? "  [emulated: every time below is MODELLED, none is measured]"
                                  : "");
    fprintf(to, "NVRTC %s, driver %d.%d; %llu candidates for %zu problems", device->nvrtc,
            (int)(device->driver / 1000), (int)(device->driver % 1000 / 10),
            (unsigned long long)device->candidates, device->rows_len + device->missing_len);
    for (size_t i = 0; i < ARRAY_LEN(device->outcomes); i++) {
        if (device->outcomes[i] != 0) {
            fprintf(to, ", %llu %s", (unsigned long long)device->outcomes[i],
                    store_outcome_name((int32_t)i));
        }
    }
    fputs("\n\n", to);
}

/* A problem's text without the fields that have their usual values: the table must stay readable.
 */
static void short_problem(const char *text, char *out, size_t capacity)
{
    static const char *const usual[] = {",batch=1", ",order=any", ",accumulate=0", ",align=16",
                                        ",batch_layout=outer"};
    snprintf(out, capacity, "%s", text);
    for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
        char *at = strstr(out, usual[i]);
        size_t len = strlen(usual[i]);
        if (at != NULL && (at[len] == ',' || at[len] == '\0')) {
            memmove(at, at + len, strlen(at + len) + 1);
        }
    }
}

/* TFLOP/s where arithmetic is the point, GB/s where bytes are. */
static void print_rate(const report_row *row, FILE *to)
{
    if (row->flop > 0) {
        fprintf(to, " %9.1f TFLOP/s", report_tflops(row));
    } else {
        fprintf(to, " %9.1f GB/s   ", report_gbytes(row));
    }
}

static void print_default(const report_row *row, FILE *to)
{
    double percent = report_default_percent(row);

    if (isnan(percent)) {
        fputs(" default not timed", to);
    } else {
        fprintf(to, " default %+6.1f %%  ", percent);
    }
}

/* The condition of a product whose time hangs on it. */
static void print_tokens(const report_row *row, FILE *to)
{
    static const char op[] = "moe_gemm:";

    if (strncmp(row->problem, op, sizeof op - 1) == 0) {
        fprintf(to, ", tokens %s", row->tokens[0] != '\0' ? row->tokens : "?");
    }
    if (row->rows_cut > 0) {
        fprintf(to, " (%lld of %lld rows cut for want of room)", (long long)row->rows_cut,
                (long long)(row->rows + row->rows_cut));
    }
    fputc('\n', to);
}

static void print_row(const report_row *row, FILE *to, bool details)
{
    char problem[512];

    short_problem(row->problem, problem, sizeof problem);
    fprintf(to, "%s\n", problem);
    fprintf(to, "  %-20s %10.2f us %-8s", row->template_name, row->time_ns * 1e-3,
            store_timer_name(row->timer));
    print_rate(row, to);
    fprintf(to, " %5.1f%% of roof, %-7s", report_roof_percent(row), row->bound);
    if (row->flop > 0) {
        fprintf(to, " diff %.1e err %.2f", row->calc_diff, row->max_err_ratio);
    } else {
        fputs(" bytes equal         ", to);
    }
    print_default(row, to);
    fprintf(to, " %3d regs %6d B shared %d B spilled, %s of %llu proved", row->registers,
            row->shared_bytes, row->spill_bytes, store_verdict_name(row->verdict),
            (unsigned long long)row->proved);
    print_tokens(row, to);
    if (details) {
        fprintf(to, "  %s\n", row->config);
    }
}

static void add_to_sum(timer_sum *sum, const report_row *row)
{
    double roof = report_roof_percent(row), behind = report_default_percent(row);

    if (!isnan(behind)) {
        sum->log_default += log1p(behind / 100);
        sum->worst_default =
            sum->defaults == 0 || behind > sum->worst_default ? behind : sum->worst_default;
        sum->defaults++;
    }
    if (roof <= 0) {
        return;
    }
    sum->least = sum->rows == 0 || roof < sum->least ? roof : sum->least;
    sum->most = roof > sum->most ? roof : sum->most;
    sum->log_roof += log(roof);
    sum->rows++;
}

static void print_mean(const timer_sum *sum, int32_t timer, FILE *to)
{
    if (sum->rows > 0) {
        fprintf(to, "\n%s times: %llu winners, geometric mean %.1f%% of roof (%.1f to %.1f)\n",
                store_timer_name(timer), (unsigned long long)sum->rows,
                exp(sum->log_roof / (double)sum->rows), sum->least, sum->most);
    }
    if (sum->defaults > 0) {
        fprintf(to,
                "%s times: the default without tuning is %.1f %% behind in the geometric mean of "
                "%llu, %.1f %% at worst\n",
                store_timer_name(timer), 100 * expm1(sum->log_default / (double)sum->defaults),
                (unsigned long long)sum->defaults, sum->worst_default);
    }
}

static void print_means(const report_device *device, FILE *to)
{
    timer_sum sums[STORE_TIMER_MODELLED + 1] = {0};

    for (size_t i = 0; i < device->rows_len; i++) {
        int32_t timer = device->rows[i].timer;
        if (timer > STORE_TIMER_NONE && timer <= STORE_TIMER_MODELLED) {
            add_to_sum(&sums[timer], &device->rows[i]);
        }
    }
    for (int32_t timer = 0; timer <= STORE_TIMER_MODELLED; timer++) {
        print_mean(&sums[timer], timer, to);
    }
}

static void print_rejected(const report_device *device, FILE *to, bool details)
{
    size_t shown =
        details || device->reasons_len < REASONS_SHOWN ? device->reasons_len : REASONS_SHOWN;

    if (device->missing_len > 0) {
        fputs("\nwithout a winner:\n", to);
    }
    for (size_t i = 0; i < device->missing_len; i++) {
        const report_row *row = &device->missing[i];
        fprintf(to, "  %s: %llu tried, %llu proved%s%s\n", row->problem,
                (unsigned long long)row->tried, (unsigned long long)row->proved,
                row->reason[0] != '\0' ? "; first reason: " : "", row->reason);
    }
    if (shown > 0) {
        fputs("\nrejected:\n", to);
    }
    for (size_t i = 0; i < shown; i++) {
        fprintf(to, "  %6llu %-8s %s\n", (unsigned long long)device->reasons[i].count,
                store_outcome_name(device->reasons[i].outcome), device->reasons[i].reason);
    }
    if (shown < device->reasons_len) {
        fprintf(to, "  and %zu more reasons (--details)\n", device->reasons_len - shown);
    }
}

void report_print_text(const report *r, FILE *to, bool details)
{
    fprintf(to, "hone report of %s: generation %llu, %llu winners", r->path,
            (unsigned long long)r->health.generation, (unsigned long long)r->health.winners);
    if (r->health.quarantined > 0 || !r->health.intact) {
        fprintf(to, "; DAMAGED: %llu rows do not match their digests and are left out",
                (unsigned long long)r->health.quarantined);
    }
    fputc('\n', to);
    for (size_t i = 0; i < r->devices_len; i++) {
        const report_device *device = &r->devices[i];
        print_header(device, to);
        for (size_t k = 0; k < device->rows_len; k++) {
            print_row(&device->rows[k], to, details);
        }
        print_means(device, to);
        print_rejected(device, to, details);
    }
}
