/* purse.h - what a run takes of the budget of the device's memory as it goes on: in portions, since
 * host threads share that. A purse belongs to one thread. */
#ifndef HONE_EMULATOR_PURSE_H
#define HONE_EMULATOR_PURSE_H

#include "emulator/machine/memory.h"

typedef struct memory_purse {
    device_memory *memory;
    uint64_t charged, spare; /* bytes against the memory's budget; of them, not in use */
} memory_purse;

/* Before the bytes are allocated. False when the budget has no room for them. */
bool purse_take(memory_purse *p, uint64_t bytes);
/* After they were freed. */
void purse_give(memory_purse *p, uint64_t bytes);
/* Gives back all, in use or not. */
void purse_close(memory_purse *p);

#endif
