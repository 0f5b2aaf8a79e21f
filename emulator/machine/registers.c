/* registers.c - setmaxnreg: warps give registers back to their CTA and take them from there. The
 * CTA has what it was launched with, and no more. */
#include "emulator/machine/machine.h"

enum {
    LEAST = 24, /* registers of a thread, and the unit: PTX ISA, setmaxnreg */
    MOST = 256,
    UNIT = 8,
    FILE_REGISTERS = 65536, /* of an SM, on every arch that has the instruction */
    GROUP = 4,              /* warps of a warpgroup */
};

/* Registers of a thread as .maxnreg or ptxas' report have them; 0: unknown. */
static uint32_t said(const machine_launch *l)
{
    return l->kernel->max_registers > 0 ? l->kernel->max_registers : (uint32_t)l->registers;
}

uint32_t registers_at_start(const machine_launch *l)
{
    const ptx_kernel *k = l->kernel;
    uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    uint32_t warps = (threads + MACHINE_LANES - 1) / MACHINE_LANES;
    uint32_t ctas = k->min_ctas > 0 ? k->min_ctas : 1;
    uint32_t share = FILE_REGISTERS / (warps * MACHINE_LANES * ctas) / UNIT * UNIT;

    share = said(l) > 0 ? (said(l) + UNIT - 1) / UNIT * UNIT : share;
    return share < MOST ? share : MOST;
}

static bool check(warp *w, const instruction *i, uint32_t lane, uint32_t count)
{
    bool more = i->kind == 0;

    if (count % UNIT != 0 || count < LEAST || count > MOST) {
        machine_fault(w, i, lane, 0, FAULT_REGISTERS,
                      "setmaxnreg to %u registers: a multiple of 8 from 24 to 256 is possible",
                      count);
        return false;
    }
    if (said(w->run->launch) == 0) { /* nobody told what ptxas gave the kernel: no more is known */
        return true;
    }
    if (more ? count < w->registers : count > w->registers) {
        machine_fault(w, i, lane, 0, FAULT_REGISTERS,
                      "setmaxnreg.%s to %u registers of a warp that has %u", more ? "inc" : "dec",
                      count, w->registers);
        return false;
    }
    return true;
}

/* The warps of a warpgroup do the same, one request after the other. */
static bool check_group(warp *w, const instruction *i, uint32_t lane)
{
    const cta *t = w->cta;
    uint32_t first = w->index / GROUP * GROUP;

    for (uint32_t n = first; n < first + GROUP; n++) {
        if (n >= t->warps_len) {
            machine_fault(w, i, lane, 0, FAULT_REGISTERS,
                          "setmaxnreg in a warpgroup of %u warps: the CTA ends with it",
                          t->warps_len - first);
            return false;
        }
        const warp *other = &t->warps[n];
        bool behind = other->register_requests + 1 < w->register_requests;
        bool differs = other->register_requests == w->register_requests && other->wants != w->wants;
        if (behind) {
            machine_fault(w, i, lane, 0, FAULT_REGISTERS,
                          "setmaxnreg: warp %u of the same warpgroup has not executed the one "
                          "before; its warps must meet between two",
                          n);
            return false;
        }
        if (differs) {
            machine_fault(w, i, lane, 0, FAULT_REGISTERS,
                          "setmaxnreg: warp %u of the same warpgroup asked for %u registers, this "
                          "warp for %u",
                          n, other->wants, w->wants);
            return false;
        }
    }
    return true;
}

/* Warps that wait get theirs, in order. */
static void supply(cta *t)
{
    for (uint32_t n = 0; n < t->warps_len; n++) {
        warp *w = &t->warps[n];
        uint32_t more = w->wants - w->registers;
        if (w->waits[MACHINE_WAIT_REGISTERS] != 0 && more <= t->registers_free) {
            t->registers_free -= more;
            w->registers = w->wants;
            barrier_release(w, MACHINE_WAIT_REGISTERS);
        }
    }
}

void registers_request(warp *w, const instruction *i, uint32_t mask)
{
    uint32_t lane = machine_lowest(mask), count = (uint32_t)i->offset;

    if (!check(w, i, lane, count)) {
        return;
    }
    w->wants = count;
    w->register_requests++;
    if (!check_group(w, i, lane)) {
        return;
    }
    if (count < w->registers && i->kind != 0) {
        w->cta->registers_free += w->registers - count;
        w->registers = count;
    } else if (count > w->registers) {
        w->waits[MACHINE_WAIT_REGISTERS] = mask;
        w->blocked |= mask;
    }
    supply(w->cta);
}
