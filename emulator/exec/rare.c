/* rare.c - forms that kernels seldom use: the same kind of rows as the lane handlers', built once
 * and not for each instruction set. */
#define EXEC_TABLE exec_table_rare
#define EXEC_ROWS  "emulator/exec/rare.def"
#include "emulator/exec/rare.h"
#include "emulator/exec/lanes.h"
