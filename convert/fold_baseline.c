/* fold_baseline.c - the fold of a tile, for one instruction set (CMakeLists.txt says which). */
#define FOLD_LANES      fold_lanes_baseline
#define FOLD_LANES_NAME "baseline"
#include "convert/fold_lanes.h"
