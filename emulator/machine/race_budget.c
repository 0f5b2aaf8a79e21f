/* race_budget.c - what the race detector takes of the budget of the device's memory: in portions,
 * since threads share that. */
#include "emulator/machine/race_state.h"

enum { PORTION = 1 << 16 };

bool race_may_charge(race_book *b, uint64_t bytes)
{
    uint64_t more = bytes > b->spare ? bytes - b->spare : 0, taken = more;

    if (more == 0) {
        b->spare -= bytes;
        return true;
    }
    if (more < PORTION && memory_charge(b->memory, PORTION, NULL) == HONE_OK) {
        taken = PORTION;
    } else if (memory_charge(b->memory, more, NULL) != HONE_OK) {
        return false;
    }
    b->charged += taken;
    b->spare += taken - bytes;
    return true;
}

bool race_charge(race_book *b, run_state *run, uint64_t bytes)
{
    if (!race_may_charge(b, bytes)) {
        race_out_of_memory(run);
        return false;
    }
    return true;
}

void race_discharge(race_book *b, uint64_t bytes)
{
    b->spare += bytes;
    if (b->spare > 2 * PORTION) {
        memory_discharge(b->memory, b->spare - PORTION);
        b->charged -= b->spare - PORTION;
        b->spare = PORTION;
    }
}
