/* purse.c - a thread's portions of the memory's budget. */
#include "emulator/machine/purse.h"

enum { PORTION = 1 << 16 };

bool purse_take(memory_purse *p, uint64_t bytes)
{
    uint64_t more = bytes > p->spare ? bytes - p->spare : 0, taken = more;

    if (more == 0) {
        p->spare -= bytes;
        return true;
    }
    if (more < PORTION && memory_charge(p->memory, PORTION, NULL) == HONE_OK) {
        taken = PORTION;
    } else if (memory_charge(p->memory, more, NULL) != HONE_OK) {
        return false;
    }
    p->charged += taken;
    p->spare += taken - bytes;
    return true;
}

void purse_give(memory_purse *p, uint64_t bytes)
{
    p->spare += bytes;
    if (p->spare > 2 * PORTION) {
        memory_discharge(p->memory, p->spare - PORTION);
        p->charged -= p->spare - PORTION;
        p->spare = PORTION;
    }
}

void purse_close(memory_purse *p)
{
    if (p->charged != 0) {
        memory_discharge(p->memory, p->charged);
    }
    p->charged = p->spare = 0;
}
