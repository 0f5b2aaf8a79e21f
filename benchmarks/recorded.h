/* recorded.h - search spaces of real GPUs with every config's time, for replays without a GPU.
 *
 * A folder holds SPACE__GPU.csv.gz (a column for each parameter, time_ms or "invalid") beside
 * spaces/SPACE.json (templates/space_import.h). Whatever is wrong ends the program. */
#ifndef HONE_BENCHMARKS_RECORDED_H
#define HONE_BENCHMARKS_RECORDED_H

#include "templates/manifest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct recorded {
    char space[64], gpu[64];
    manifest *m;
    size_t len, valid; /* rows, and those with a time */
    config *configs;   /* by row of the CSV */
    double *ms;        /* HUGE_VAL: invalid */
    double *sorted;    /* `valid` times, the best first */
    uint32_t *places;  /* hash table of rows + 1 */
    size_t places_len;
} recorded;

/* All spaces of a folder whose SPACE__GPU is among the comma-separated `only` (NULL: all), by name.
 * Caller frees with recorded_free. */
size_t recorded_open(const char *folder, const char *only, recorded **out);
void recorded_free(recorded *list, size_t len);
/* The row of a config; ends the program when it was not recorded. */
size_t recorded_row(const recorded *r, const config *c);

/* Evaluations after which half of, and 95 % of, the way from the median to the optimum is left to
 * and done by random search: K(p) of the autotuning methodology (Willemsen et al.). */
size_t recorded_cutoff(const recorded *r, double p);

/* The methodology's score at `points` equidistant places of [K(0.5), K(0.95)] evaluations, by the
 * mean rank of the best so far: 0 is random search, 1 the optimum. `traces` holds `runs` runs of up
 * to `longest` rows each, lens[i] of them made. */
void recorded_score(const recorded *r, const uint32_t *traces, const size_t *lens, size_t runs,
                    size_t longest, double *out, size_t points);

#endif
