/* cluster.c - what threads of a cluster do with one another beside memory: its barrier, addresses
 * of one another's shared memory, registers that warps hand to each other. */
#include "emulator/machine/access.h"
#include "emulator/machine/race.h"
#include "emulator/exec/exec.h"

void exec_barrier(warp *w, const instruction *i, uint32_t mask)
{
    barrier_arrive(w, i, mask);
}

void exec_dependency_wait(warp *w, const instruction *i, uint32_t mask)
{
    (void)i, (void)mask;
    race_before_wait(w);
}

void exec_cluster_arrive(warp *w, const instruction *i, uint32_t mask)
{
    cluster_arrive(w, i, mask);
}

void exec_cluster_wait(warp *w, const instruction *i, uint32_t mask)
{
    cluster_wait(w, i, mask);
}

/* The lane's address of shared memory, in 32 bits; false and a fault when it is none. */
static bool shared_address(warp *w, const instruction *i, uint32_t operand, uint32_t lane,
                           uint32_t *out)
{
    uint64_t a =
        i->element_bytes == 8 ? machine_r64(w, operand)[lane] : machine_r32(w, operand)[lane];

    if (i->space == PTX_GENERIC && i->element_bytes == 8 && a >> 56 != PTX_SHARED) {
        machine_fault(w, i, lane, a, FAULT_PRECONDITION,
                      "the generic address %#llx is none of shared memory", (unsigned long long)a);
        return false;
    }
    *out = (uint32_t)a;
    return true;
}

void exec_mapa(warp *w, const instruction *i, uint32_t mask)
{
    const uint32_t *rank = machine_r32(w, i->o[2]);
    uint32_t at = 0, ctas = w->cta->cluster->ctas_len;

    for (EACH_LANE(lane, mask)) {
        if (!shared_address(w, i, i->o[1], lane, &at)) {
            return;
        }
        if (rank[lane] >= ctas) {
            machine_fault(w, i, lane, at, FAULT_PRECONDITION,
                          "mapa: CTA rank %u of a cluster of %u CTAs", rank[lane], ctas);
            return;
        }
        at = at % ACCESS_CTA + (rank[lane] + 1) * ACCESS_CTA;
        if (i->element_bytes == 4) {
            machine_r32(w, i->o[0])[lane] = at;
        } else {
            machine_r64(w, i->o[0])[lane] =
                at | (i->space == PTX_GENERIC ? MACHINE_WINDOW(PTX_SHARED) : 0);
        }
    }
}

void exec_getctarank(warp *w, const instruction *i, uint32_t mask)
{
    uint32_t at = 0;

    for (EACH_LANE(lane, mask)) {
        if (!shared_address(w, i, i->o[1], lane, &at)) {
            return;
        }
        machine_r32(w, i->o[0])[lane] = at < ACCESS_CTA ? w->cta->rank : at / ACCESS_CTA - 1;
    }
}

void exec_setmaxnreg(warp *w, const instruction *i, uint32_t mask)
{
    registers_request(w, i, mask);
}
