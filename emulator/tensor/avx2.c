/* avx2.c - the warp's matrix product compiled for AVX2 and FMA. */
#if defined(__x86_64__)
#define TENSOR_LEVEL 2
#include "emulator/tensor/tile.h"
#include "emulator/tensor/group.h"

bool tensor_lanes_avx2(uint32_t *const d[4], const tensor_call *call)
{
    return tile_open(d, call);
}

const tensor_group tensor_group_avx2 = {group_rows, group_columns, group_run};

#include "emulator/tensor/tile_end.h"
#endif
