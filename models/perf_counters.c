/* perf_counters.c - the work of a launch from what the emulator counted of it. */
#include "models/perf.h"

#include <assert.h>
#include <math.h>

/* A loop around try_wait: the look, and branches out and back. How often it turns is the emulator's
 * schedule; the hardware puts the warp to sleep. */
#define POLL_INSTRUCTIONS 3.0

static_assert(ARRAY_LEN(((hone_emu_counters *)0)->tensor_macs) >= GPU_MMA_KINDS,
              "counters have a place for every kind of product");

void perf_count(const hone_emu_counters *n, double scale, perf_work *work)
{
    double in_vain = fmin((double)n->polls * POLL_INSTRUCTIONS, (double)n->warp_instructions);
    /* What copy engines and cp.async move passes through shared memory without an instruction. */
    uint64_t copied = n->async_copy_bytes + n->tma_load_bytes + n->tma_store_bytes;

    work->ctas = n->ctas_total;
    work->fp32_warp = scale * (double)(n->fp32 + n->half);
    work->sfu_warp = scale * (double)n->sfu;
    work->warp_instructions = scale * ((double)n->warp_instructions - in_vain);
    work->shared_wavefronts = scale * ((double)n->shared_wavefronts + (double)copied / 128);
    work->l2_bytes = scale * (double)n->global_sectors * 32;
    work->dram_bytes = (double)n->unique_lines * 128;
    for (size_t i = 0; i < GPU_MMA_KINDS; i++) {
        work->tensor_macs[i] = scale * (double)(n->tensor_macs[i] - n->warpgroup_macs[i]);
        work->warpgroup_macs[i] = scale * (double)n->warpgroup_macs[i];
    }
}
