/* fold_avx2.c - the fold of a tile, for one instruction set (CMakeLists.txt says which). */
#define FOLD_LANES      fold_lanes_avx2
#define FOLD_LANES_NAME "avx2"
#include "convert/fold_lanes.h"
