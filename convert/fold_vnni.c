/* fold_vnni.c - the fold of a tile, for one instruction set (CMakeLists.txt says which). */
#define FOLD_LANES      fold_lanes_vnni
#define FOLD_LANES_NAME "avx512-vnni"
#include "convert/fold_lanes.h"
