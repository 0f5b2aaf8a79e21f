/* avx2.c - the warp's matrix product compiled for AVX2 and FMA. */
#if defined(__x86_64__)
#define TENSOR_LEVEL 2
#include "emulator/tensor/tile.h"

bool tensor_lanes_avx2(uint32_t *const d[4], const tensor_call *call)
{
    return tile_open(d, call);
}

#include "emulator/tensor/tile_end.h"
#endif
