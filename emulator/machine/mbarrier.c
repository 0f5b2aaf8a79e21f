/* mbarrier.c - arrivals, bytes and phases. */
#include "emulator/machine/mbarrier.h"
