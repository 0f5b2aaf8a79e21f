/* copy.h - cp.async: copies from global to shared memory that threads start and wait for by
 * themselves.
 *
 * The bytes move at the instruction (HONE_EMU_AT_ISSUE) or when a wait of the thread, or an
 * mbarrier that tracks its copies, wants them (HONE_EMU_LATEST). Until then they are marked
 * ACCESS_PENDING in both timings. */
#ifndef HONE_EMULATOR_COPY_H
#define HONE_EMULATOR_COPY_H

#include "emulator/machine/race.h"

/* Takes over a checked copy of the lanes of `mask`; its own mask, group, serial and task are filled
 * here. False after a fault. */
bool copy_start(warp *w, const async_copy *c, uint32_t mask);
/* All but the youngest `allowed` groups of each lane are done; `all`: those without a group, too.
 */
void copy_wait(warp *w, uint32_t mask, uint32_t allowed, bool all);
/* All that these lanes started before `serial` is done, and `told` knows of it: of an arrival that
 * tracks copies. Between its begin and its end, finished copies are remembered for it. */
void copy_track_begin(warp *w);
void copy_finish(warp *w, uint32_t mask, uint64_t serial, race_clock **told);
void copy_track_end(warp *w);
/* The warp ended; and its memory goes. */
void copy_forget(warp *w);
void copy_close(warp *w);
/* The lanes leave; what they started is done. */
void copy_leave(warp *w, uint32_t mask);

#endif
