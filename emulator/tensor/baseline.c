/* baseline.c - the warp's matrix product compiled for the compiler's baseline. */
#define TENSOR_LEVEL 1
#include "emulator/tensor/tile.h"
#include "emulator/tensor/group.h"

bool tensor_lanes_baseline(uint32_t *const d[4], const tensor_call *call)
{
    return tile_open(d, call);
}

const tensor_group tensor_group_baseline = {group_rows, group_columns, group_run};

#include "emulator/tensor/tile_end.h"
