/* progress.c - the progress line. */
#include "cli/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Below a few seconds a rate says nothing. */
static const double settle_s = 2.0, interval_s = 0.1;

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void progress_begin(progress *p)
{
    *p = (progress){.terminal = isatty(STDERR_FILENO) == 1, .started_s = now_s()};
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

    if (!p->terminal || (p->any && now - p->shown_s < interval_s)) {
        return;
    }
    p->any = true;
    p->shown_s = now;
    fprintf(stderr, "\r\033[K%llu/%llu %s", (unsigned long long)done, (unsigned long long)total,
            unit);
    if (done > 0 && elapsed > settle_s) {
        double rate = (double)done / elapsed;
        fprintf(stderr, ", %.1f/s, ", rate);
        print_time(total > done ? (double)(total - done) / rate : 0);
        fputs(" left", stderr);
    }
    fprintf(stderr, "  %.60s", doing);
    fflush(stderr);
}

void progress_clear(progress *p)
{
    if (p->any) {
        fputs("\r\033[K", stderr);
        p->any = false;
    }
}
