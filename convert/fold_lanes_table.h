/* fold_lanes_table.h - the fold of a tile, and what gives it other scales, for this processor. */
#ifndef HONE_CONVERT_FOLD_LANES_TABLE_H
#define HONE_CONVERT_FOLD_LANES_TABLE_H

#include "convert/fold_tile.h"
#include "convert/requantise_tile.h"

/* fold_tile_run and requantise_tile_run, compiled for one instruction set. All give the same bytes
 * and the same sums. */
struct fold_lanes {
    const char *name;
    void (*run)(const fold_tile *tile, const fold_costs *costs, fold_sums *sums);
    void (*requantise)(const requantise_tile *tile, requantise_sums *sums);
};

#endif
