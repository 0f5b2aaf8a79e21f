/* open.c - bench_open: from hone_open on a store with 10,000 winners to the end of its first
 * lookup. The median of several rounds; the first of a process, which opens the emulator too,
 * stands beside it. */
#include "benchmarks/rows.h"
#include "benchmarks/winners.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 31 };

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int compare_ms(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    const bool json = rows_want_json(argc, argv);
    json_t *rows = json_array();
    winners *w = winners_make();
    double ms[ROUNDS];
    bool fine = true;

    for (int i = 0; i < ROUNDS; i++) {
        hone_choice choice;
        const double from = now_ms();
        hone_runtime *rt = winners_open(w);
        /* Known, and not prepared: the table has been read and searched. */
        fine = fine && hone_lookup(rt, &w->problems[i * 317 % WINNERS_COUNT], &choice, NULL) ==
                           HONE_NOT_PREPARED;
        ms[i] = now_ms() - from;
        hone_close(rt);
    }
    /* The first opens the emulator too, as a new process does. */
    const double first = ms[0];
    qsort(ms, ROUNDS, sizeof ms[0], compare_ms);
    rows_add(rows, "open to first lookup, 10,000 winners, median", ms[ROUNDS / 2], "ms",
             ROWS_AT_MOST, 10);
    rows_add(rows, "open to first lookup, first in the process", first, "ms", ROWS_NO_BAR, 0);
    fine = fine && rows_print(rows, json);
    winners_remove(w);
    json_decref(rows);
    return fine ? 0 : 1;
}
