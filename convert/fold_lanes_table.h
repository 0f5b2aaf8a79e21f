/* fold_lanes_table.h - the fold of a tile, for this processor. */
#ifndef HONE_CONVERT_FOLD_LANES_TABLE_H
#define HONE_CONVERT_FOLD_LANES_TABLE_H

#include "convert/fold_tile.h"

/* fold_tile_run, compiled for one instruction set. All give the same bytes and the same sums. */
struct fold_lanes {
    const char *name;
    void (*run)(const fold_tile *tile, const fold_costs *costs, fold_sums *sums);
};

#endif
