/* counters.h - what a launch counted: summed over host threads, brought into one list, and scaled
 * from a sample of CTAs. */
#ifndef HONE_EMULATOR_COUNTERS_H
#define HONE_EMULATOR_COUNTERS_H

#include "emulator/machine/machine.h"

/* Mean and sum of squared differences from it, of each counter, over the clusters that ran so far;
 * `before` is where the counters stood when the present one began. */
struct counters_sample {
    uint64_t len, before[HONE_EMU_COUNTERS_LEN];
    double mean[HONE_EMU_COUNTERS_LEN], squares[HONE_EMU_COUNTERS_LEN];
};

/* Around each cluster; nothing when run->sample is NULL. */
void counters_begin_cluster(run_state *run);
void counters_end_cluster(run_state *run);

/* Add what another host thread's run counted, its sample included. `ctas_total` stays. */
void counters_merge(run_state *into, const run_state *from);

/* All counters of the run, with those that follow from others and the lines touched. */
hone_status counters_gather(run_state *run, hone_emu_counters *out, hone_error *error);

/* For the grid, from the clusters that ran (hone_emu.h). */
void counters_estimate(const run_state *run, const hone_emu_counters *counted,
                       hone_emu_estimate *out);

#endif
