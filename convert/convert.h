/* convert.h - a checkpoint into another one: MXFP4 weights folded to e4m3, blocks requantised, the
 * rest copied; and what it cost, tensor by tensor. */
#ifndef HONE_CONVERT_CONVERT_H
#define HONE_CONVERT_CONVERT_H

#include "convert/device_fold.h"
#include "convert/fold_tile.h"
#include "convert/plan.h"
#include "convert/requantise_tile.h"

typedef struct convert_row {
    const plan_item *item; /* FOLD or REQUANTISE; its pair says what it was */
    fold_sums fold;
    requantise_sums requantise;
} convert_row;

/* From the calling thread, at least once for each shard, then some ten times a second: bytes of the
 * output so far. Non-zero cancels. */
typedef int (*convert_progress_fn)(void *context, uint64_t done, uint64_t total);

typedef struct convert_options {
    unsigned threads;    /* at least 1 */
    bool replace;        /* an output file that exists; folders are never replaced */
    device_fold *device; /* makes codes there, with room for PLAN_TILE; NULL: on the host */
    convert_progress_fn progress; /* may be NULL */
    void *context;
} convert_options;

/* Write the planned checkpoint to `path`: a file for a file, a new folder (shards of the same names
 * and an index) for shards. Appears whole or not at all. `rows`: plan->rows of them, filled by the
 * items' `row`. The figures do not depend on the number of threads. HONE_BAD_TEXT: scales that are
 * NaN, or no positive number (`hone convert --check` finds them); HONE_IO, HONE_NO_MEMORY,
 * HONE_CANCELLED, HONE_BAD_ARGUMENT (the output exists). */
hone_status convert_run(const plan *plan, const char *path, const convert_options *options,
                        convert_row *rows, hone_error *error);

#endif
