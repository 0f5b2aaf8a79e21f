/* avx512.c - the warp's matrix product compiled for AVX-512 (F, BW, DQ, VL). */
#if defined(__x86_64__)
#define TENSOR_LEVEL 3
#include "emulator/tensor/tile.h"
#include "emulator/tensor/group.h"

bool tensor_lanes_avx512(uint32_t *const d[4], const tensor_call *call)
{
    return tile_open(d, call);
}

const tensor_group tensor_group_avx512 = {group_rows, group_columns, group_run};

#include "emulator/tensor/tile_end.h"
#endif
