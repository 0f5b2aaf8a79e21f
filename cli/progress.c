/* progress.c - the progress line. */
#include "cli/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Below a few seconds a rate says nothing. A log gets a line now and then, a terminal one line that
 * changes. */
static const double settle_s = 2.0, terminal_s = 0.1, log_s = 30.0;

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void progress_begin(progress *p)
{
    double now = now_s();

    *p = (progress){.terminal = isatty(STDERR_FILENO) == 1, .started_s = now, .shown_s = now};
}

/* "1:02:03" or "2:03". */
static void print_time(double seconds)
{
    long s = (long)(seconds + 0.5);

    if (s >= 3600) {
        fprintf(stderr, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    } else {
        fprintf(stderr, "%ld:%02ld", s / 60, s % 60);
    }
}

void progress_show(progress *p, uint64_t done, uint64_t total, const char *unit, const char *doing)
{
    double now = now_s(), elapsed = now - p->started_s;

    if (now - p->shown_s < (p->terminal ? terminal_s : log_s)) {
        return;
    }
    p->any = p->terminal;
    p->shown_s = now;
    fprintf(stderr, "%s%llu/%llu %s", p->terminal ? "\r\033[K" : "", (unsigned long long)done,
            (unsigned long long)total, unit);
    if (done > 0 && elapsed > settle_s) {
        double rate = (double)done / elapsed;
        fprintf(stderr, ", %.1f/s, ", rate);
        print_time(total > done ? (double)(total - done) / rate : 0);
        fputs(" left", stderr);
    }
    fprintf(stderr, "  %.60s%s", doing, p->terminal ? "" : "\n");
    fflush(stderr);
}

void progress_clear(progress *p)
{
    if (p->any) {
        fputs("\r\033[K", stderr);
        p->any = false;
    }
}
