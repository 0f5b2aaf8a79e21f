/* avx2.c - the lane handlers, built for one instruction set (CMakeLists.txt says which). */
#define EXEC_TABLE exec_table_avx2
#include "emulator/exec/lanes.h"
