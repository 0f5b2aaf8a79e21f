/* async.c - cp.async: addresses are checked here, at the instruction; copy.c says when the bytes
 * move. */
#include "emulator/machine/access.h"
#include "emulator/machine/copy.h"
#include "emulator/exec/exec.h"

/* Checks the source of each lane now: the address is an operand of this instruction, not of the
 * wait. */
static bool check_source(warp *w, const instruction *i, uint32_t mask, const async_copy *c)
{
    uint64_t wrong = 0, at[MACHINE_LANES];
    uint32_t reading = 0, asked = 0;

    for (EACH_LANE(lane, mask)) {
        if (c->from_bytes[lane] > c->bytes) {
            machine_fault(w, i, lane, c->from[lane], FAULT_PRECONDITION,
                          "cp.async of %u bytes from a source of %u", c->bytes,
                          c->from_bytes[lane]);
            return false;
        }
        reading |= (uint32_t)(c->from_bytes[lane] != 0) << lane;
        asked += c->from_bytes[lane];
        wrong |= c->from[lane] & (c->bytes - 1);
    }
    for (EACH_LANE(lane, wrong != 0 ? mask : 0)) {
        if ((c->from[lane] & (c->bytes - 1)) != 0) {
            machine_fault(w, i, lane, c->from[lane], FAULT_MISALIGNED,
                          "cp.async of %u bytes from %#llx, which is not a multiple of that",
                          c->bytes, (unsigned long long)c->from[lane]);
            return false;
        }
    }
    if (reading == 0) {
        return true;
    }
    const memory_range *all = access_last_range(w, i, c->from, reading, c->bytes, at);
    for (EACH_LANE(lane, all != NULL ? reading : 0)) { /* the host can fetch ahead as well */
        __builtin_prefetch((const void *)(uintptr_t)c->from[lane]);
        if (!all->whole) {
            __builtin_prefetch(all->shadow + at[lane]);
        }
    }
    if (all == NULL) {
        for (EACH_LANE(lane, reading)) {
            touched_range *r = global_range(w, i, lane, c->from[lane], c->from_bytes[lane]);
            if (r == NULL) {
                return false;
            }
            global_mark_lines(r, c->from[lane], c->from[lane] + c->from_bytes[lane]);
        }
    }
    w->run->counters.async_copy_bytes += asked;
    access_count_global(w, i, c->from, reading, c->bytes, false);
    return true;
}

void exec_async_copy(warp *w, const instruction *i, uint32_t mask)
{
    const uint64_t *from = machine_r64(w, i->o[1]);
    const uint32_t *size = machine_r32(w, i->o[2]);
    uint64_t to[MACHINE_LANES];
    ptx_space space = PTX_SHARED;
    access_window win;
    async_copy c; /* the rest comes with the queue */

    c.bytes = i->element_bytes;
    c.i = i;

    if (taint_refuse(w, i, i->o[1], mask, "the source address") ||
        taint_refuse(w, i, i->o[2], mask, "the size") ||
        !access_addresses(w, i, i->o[0], mask, c.bytes, to) ||
        access_open(w, i, to, mask, c.bytes, &space, &win) != mask) {
        return;
    }
    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        c.to[lane] = (uint32_t)win.at[lane];
        c.from[lane] = from[lane];
        c.from_bytes[lane] = size[lane];
    }
    if (access_unmarked(w, i, mask, c.bytes, &win) && check_source(w, i, mask, &c)) {
        copy_start(w, &c, mask);
    }
}

void exec_async_commit(warp *w, const instruction *i, uint32_t mask)
{
    (void)i;
    for (EACH_LANE(lane, mask)) {
        w->committed[lane]++;
    }
}

void exec_async_wait(warp *w, const instruction *i, uint32_t mask)
{
    copy_wait(w, mask, (uint32_t)i->offset, i->elements != 0);
}
