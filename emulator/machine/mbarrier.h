/* mbarrier.h - the mbarrier objects in a CTA's shared memory (emulator.md 5.5).
 *
 * The eight bytes in memory are opaque to programs and stay marked as an mbarrier's
 * (ACCESS_MBARRIER); the state lives in a table beside it. A phase is over when no arrival is
 * pending and no byte is missing. Faults name the rule; every call that can fault is given whose
 * warp, instruction and lane it is. */
#ifndef HONE_EMULATOR_MBARRIER_H
#define HONE_EMULATOR_MBARRIER_H

#include "emulator/machine/race.h"

/* The largest count of arrivals, and of bytes that may be missing or early (PTX ISA, contents of
 * the mbarrier object). */
enum { MBARRIER_LIMIT = (1 << 20) - 1, MBARRIER_BYTES = 8, MBARRIER_WARPS = 32 };

/* Lanes of a warp of its CTA that asked for a phase before it was over, and where. */
typedef struct mbarrier_waiter {
    uint32_t lanes, phase;
    const instruction *i;
} mbarrier_waiter;

typedef struct mbarrier {
    uint32_t at; /* offset in its CTA */
    bool live;
    uint32_t phase;             /* phases completed so far */
    uint32_t expected, pending; /* arrivals: of each phase, and still to come in this one */
    uint32_t total;             /* of this phase: cp.async.mbarrier.arrive adds to it */
    int64_t tx; /* bytes expected and not yet come; negative while a copy is early */
    race_clock *arriving, *passed; /* of this phase, and of the one that completed last */
    const instruction *made;
    mbarrier_waiter waiters[MBARRIER_WARPS];
} mbarrier;

/* Who does something to an mbarrier, for faults. */
typedef struct mbarrier_actor {
    warp *w;
    const instruction *i;
    uint32_t lane;
} mbarrier_actor;

/* mbarrier.init and mbarrier.inval at `at`, eight bytes that lie in `owner`'s memory. False after a
 * fault. */
bool mbarrier_init(const mbarrier_actor *a, cta *owner, uint32_t at, uint32_t count);
bool mbarrier_invalidate(const mbarrier_actor *a, cta *owner, uint32_t at);
/* The live mbarrier at `at` of `owner`; NULL and a fault of `w` when there is none. The pointer
 * holds until the next mbarrier_init. */
mbarrier *mbarrier_find(warp *w, const instruction *i, uint32_t lane, cta *owner, uint32_t at);
/* The same without a fault. */
mbarrier *mbarrier_at(const cta *owner, uint32_t at);
/* Files "mbarrier at 64: " and the rule that was broken. */
void mbarrier_refuse(const mbarrier_actor *a, const cta *owner, uint32_t at, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

/* `count` arrivals, at most what is pending. Completes the phase where that was the last thing it
 * waited for. */
bool mbarrier_arrive(const mbarrier_actor *a, cta *owner, mbarrier *b, uint32_t count);
/* The same, for later phases too: `count` fewer arrivals are expected from now on. */
bool mbarrier_drop(const mbarrier_actor *a, cta *owner, mbarrier *b, uint32_t count);
/* One more arrival is to come in this phase: cp.async.mbarrier.arrive without .noinc. */
bool mbarrier_add_pending(const mbarrier_actor *a, cta *owner, mbarrier *b);
/* `bytes` more are expected in this phase; negative: so many came. */
bool mbarrier_expect(const mbarrier_actor *a, cta *owner, mbarrier *b, int64_t bytes);
/* An engine brings bytes: what async.h signals. `by` and `i` are whose operation it is. */
void mbarrier_complete_tx(warp *by, const instruction *i, uint32_t lane, cta *owner, uint32_t at,
                          uint32_t bytes, race_task *task);

/* The opaque 64 bits that an arrival returns: the phase, and what was pending before. */
uint64_t mbarrier_state(const mbarrier *b);
uint32_t mbarrier_state_pending(uint64_t state);
/* Whether the phase of a state, or the last one of this parity, is over; of parities, for all of
 * `lanes`. A waiter who finds the phase after its own over too has missed one: a fault, *bad, and
 * false. */
bool mbarrier_passed(const mbarrier_actor *a, const mbarrier *b, uint64_t state, bool *bad);
bool mbarrier_passed_parity(const mbarrier_actor *a, mbarrier *b, uint32_t parity, uint32_t lanes,
                            bool *bad);

/* A CTA has ended: bytes that are missing from a phase, or came unasked, are a fault. */
void mbarrier_end(cta *c);
/* A CTA begins, or its memory goes. */
void mbarrier_forget(cta *c);
void mbarrier_close(cta *c);
/* For a deadlock's message: "mbarrier 64: phase 3, 1 of 2 arrivals, 4096 bytes missing". */
void mbarrier_describe(const mbarrier *b, char *text, size_t capacity);

#endif
