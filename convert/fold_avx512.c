/* fold_avx512.c - the fold of a tile, for one instruction set (CMakeLists.txt says which). */
#define FOLD_LANES      fold_lanes_avx512
#define FOLD_LANES_NAME "avx512"
#include "convert/fold_lanes.h"
