/* emu_launch.h - what every part of bench_emulator does: a GPU, a kernel, launches by the clock. */
#ifndef HONE_BENCHMARKS_EMU_LAUNCH_H
#define HONE_BENCHMARKS_EMU_LAUNCH_H

#include "benchmarks/rows.h"
#include "core/status.h"
#include "runtime/driver.h"

#include <time.h>

enum { EMU_ROUNDS = 7 };

typedef struct bench {
    driver *driver;
    json_t *rows;
    int device; /* ordinal of the GPU whose context is current */
} bench;

typedef struct geometry {
    unsigned grid[2], block, shared;
} geometry;

hone_status emu_check(const bench *b, CUresult result, const char *call, hone_error *error);

/* Make the GPU of that product name current. */
hone_status emu_use(bench *b, const char *product, hone_error *error);

/* A kernel of one of the program's PTX files. */
hone_status emu_load(bench *b, const char *file, const char *name, CUfunction *out,
                     hone_error *error);

/* Seconds by that clock. */
double emu_now(clockid_t clock);

/* CPU seconds of a launch, and what it counted. */
hone_status emu_launch(bench *b, CUfunction f, const geometry *g, void **params, double *seconds,
                       hone_emu_counters *counters, hone_error *error);

/* Of so many values, which are sorted. */
double emu_median(double values[EMU_ROUNDS]);

#endif
