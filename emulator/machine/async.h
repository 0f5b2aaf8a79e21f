/* async.h - bulk operations: what a thread starts for an engine to do, and does not wait for.
 *
 * An operation is made at its instruction, checked there, and does its work either at once
 * (HONE_EMU_AT_ISSUE) or as late as the rules allow (HONE_EMU_LATEST): a load when no warp of the
 * cluster can go on without it, a store or reduction at the wait that covers its group, or at the
 * end of its thread. Until then its destination in shared memory is marked ACCESS_PENDING. Then it
 * signals: the bytes to the mbarriers that it names, or its group. */
#ifndef HONE_EMULATOR_ASYNC_H
#define HONE_EMULATOR_ASYNC_H

#include "emulator/machine/race.h"

enum { ASYNC_SIGNALS = 16 }; /* CTAs of the largest cluster */

typedef struct async_signal {
    cta *owner; /* whose shared memory the mbarrier lies in */
    uint32_t at, bytes;
} async_signal;

struct async_op {
    async_op *next;
    warp *by;
    const instruction *i;
    uint64_t bytes; /* that it takes of the host */
    uint32_t lane;
    uint32_t group; /* of the lane's bulk groups, when `grouped`: set by async_submit */
    bool grouped;   /* ends with a group and not with an mbarrier */
    bool optional;  /* no fault when the CTA ends before it was due */
    bool fetched, performed;
    async_signal signals[ASYNC_SIGNALS];
    uint32_t signals_len;
    race_task *task; /* made by async_new with RACE_BULK */
    /* Of an operation with `fetch`: another one for what it reads, so that a wait for the reads
     * orders those alone. Made by async_fetches. */
    race_task *reading;
    /* Reads the sources into the payload, once; `perform` then writes from there. NULL: `perform`
     * does both, and a wait for reads waits for it. False after a fault. */
    bool (*fetch)(async_op *op);
    /* Moves the data, once. False after a fault. Writes the shadow of all that async_claim marked.
     */
    bool (*perform)(async_op *op);
    /* what the kind of operation needs lies behind: */
    _Alignas(16) uint8_t payload[];
};

/* NULL after a fault or without memory (the run is then marked). Payload zeroed. */
async_op *async_new(warp *w, const instruction *i, uint32_t lane, size_t payload_bytes);
/* Reading and writing are two steps: sets `fetch` and makes `reading`. */
void async_fetches(async_op *op, bool (*fetch)(async_op *op));
/* An mbarrier at `at` of `owner` is told of `bytes` at the end. */
void async_signal_add(async_op *op, cta *owner, uint32_t at, uint32_t bytes);
/* The operation will write these bytes of `owner`'s shared memory: marks them until it does, when
 * that is later. False and a fault where another operation is about to write them, or where an
 * mbarrier lives. */
bool async_claim(const async_op *op, cta *owner, uint32_t at, uint32_t bytes);
/* Takes the operation over: does it, or queues it with its cluster. */
void async_submit(async_op *op);
/* An operation that was not submitted. NULL: nothing. */
void async_drop(async_op *op);
/* Does a load that waits (the oldest, or by the seed any), for the scheduler when nobody can go on.
 * False: there is none. */
bool async_complete_one(cluster *c);
/* cp.async.bulk.commit_group and wait_group: all but the youngest `allowed` groups of each lane are
 * done; `reads`: only their sources need to have been read. */
void async_commit(warp *w, uint32_t mask);
void async_wait(warp *w, uint32_t mask, uint32_t allowed, bool reads);
/* The lanes leave: their groups are done. */
void async_leave(warp *w, uint32_t mask);
/* The cluster ended, its memory is still there: loads that nobody waited for are a fault, and
 * mbarriers whose bytes do not add up; everything is freed. */
void async_end(cluster *c);

#endif
