/* forecast.h - what a sweep would do, without doing it. */
#ifndef HONE_TUNER_FORECAST_H
#define HONE_TUNER_FORECAST_H

#include "tuner/sweep.h"

typedef struct forecast {
    uint64_t problems, settled; /* settled: nothing is left to do */
    uint64_t candidates;        /* that would be tried, if every default is right */
    uint64_t kernels;           /* that they are: candidates may share one */
    double compile_s; /* of one compiler, none of them cached: by what the store knows of the
                         templates; 0: it knows none */
} forecast;

/* Lay the sweep out on a copy of its store in `folder`, which is the caller's and empty; nothing
 * else is read or written, compiled or proved. `options` as for sweep_run, of whose store, engine
 * and progress nothing is needed: `from` is the store, NULL when there is none yet. */
hone_status forecast_make(const sweep_options *options, store *from, const char *folder,
                          forecast *out, hone_error *error);

#endif
