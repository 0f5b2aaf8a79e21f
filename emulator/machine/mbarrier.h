/* mbarrier.h - the mbarrier objects in a CTA's shared memory (emulator.md 5.5).
 *
 * The eight bytes in memory are opaque to programs and stay marked as an mbarrier's
 * (ACCESS_MBARRIER); the state lives in a table beside it. Faults name the rule. */
#ifndef HONE_EMULATOR_MBARRIER_H
#define HONE_EMULATOR_MBARRIER_H

#include "emulator/machine/race.h"

typedef struct mbarrier {
    uint32_t at; /* offset in its CTA */
    bool live;
    uint32_t phase;             /* phases completed so far */
    uint32_t expected, pending; /* arrivals */
    int64_t tx;                 /* bytes expected and not yet come; negative while a copy is early */
    race_clock *arriving, *passed; /* of this phase, and of the one that completed last */
    const instruction *made;
} mbarrier;

/* The live mbarrier at `at` of `owner`; NULL and a fault of `w` when there is none. */
mbarrier *mbarrier_find(warp *w, const instruction *i, uint32_t lane, cta *owner, uint32_t at);
/* An engine brings bytes: what async.h signals. `by` and `i` are whose operation it is. */
void mbarrier_complete_tx(warp *by, const instruction *i, uint32_t lane, cta *owner, uint32_t at,
                          uint32_t bytes, const race_task *task);
/* A CTA begins, or its memory goes. */
void mbarrier_forget(cta *c);
void mbarrier_close(cta *c);
/* For a deadlock's message: "mbarrier 64: phase 3, 1 of 2 arrivals, 4096 bytes missing". */
void mbarrier_describe(const mbarrier *b, char *text, size_t capacity);

#endif
