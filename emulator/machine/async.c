/* async.c - the queue of bulk operations: at issue or as late as the rules allow. */
#include "emulator/machine/async.h"
