/* race_lanes.c - lanes of one store that meet at one place. Which of them is last is undefined, so
 * that they must all write the same. */
#include "emulator/machine/race_state.h"

#include <string.h>

static bool ascending(const uint64_t at[MACHINE_LANES], uint32_t mask)
{
    uint64_t last = 0;
    bool good = true;

    for (EACH_LANE(lane, mask)) {
        good = good && at[lane] >= last;
        last = at[lane] + 1;
    }
    return good;
}

static bool same_value(const warp *w, const instruction *i, uint32_t a, uint32_t b)
{
    for (uint32_t e = 0; e < i->elements; e++) {
        const uint8_t *r = w->r + i->o[i->results + 1u + e];
        uint32_t stride = i->element_bytes == 8 ? 8 : 4;
        if (memcmp(r + a * stride, r + b * stride, i->element_bytes) != 0) {
            return false;
        }
    }
    return true;
}

static void refuse(warp *w, const instruction *i, const cta *owner, const uint64_t *at, uint32_t a,
                   uint32_t b)
{
    char where[96];

    race_place(w, owner, at[b], where, sizeof where);
    machine_fault(w, i, b, at[b], FAULT_RACE,
                  "lanes %u and %u write different values to %s in one instruction", a, b, where);
}

bool race_lanes_agree(warp *w, const instruction *i, const cta *owner,
                      const uint64_t at[MACHINE_LANES], uint32_t mask)
{
    uint32_t left = mask;

    if (w->cta->cluster->races == NULL || ascending(at, mask)) {
        return true;
    }
    while (left != 0) {
        uint32_t first = machine_lowest(left), same = 0;
        for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
            same |= (uint32_t)(at[lane] == at[first]) << lane;
        }
        same &= left;
        left &= ~same;
        for (EACH_LANE(lane, same & (same - 1))) {
            if (!same_value(w, i, first, lane)) {
                refuse(w, i, owner, at, first, lane);
                return false;
            }
        }
    }
    return true;
}
