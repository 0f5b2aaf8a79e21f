/* race.h - who may touch which memory when: vector clocks of warps and of the engines that work for
 * them.
 *
 * An agent is a warp, a warp's asynchronous side (cp.async, wgmma, bulk copies that it issued), or
 * a CTA's bulk engine. Each access of shared memory (and, when asked for, of global memory) is
 * compared with earlier ones to the same words: unless they are ordered, and one is a write, they
 * race. Order flows through clocks: a release adds what a warp knows to a clock, an acquire takes
 * it over. A clock also knows up to where generic writes were made visible to the engines
 * (fence.proxy.async, of shared and of global memory): a write counts as fenced when a fence lies
 * behind it on the way to the engine's access, whoever executed it.
 *
 * All of this does nothing, and costs a test of a pointer, when the launch does not look for races
 * (cluster.races is NULL). Calls that return bool return false after they filed a fault. */
#ifndef HONE_EMULATOR_RACE_H
#define HONE_EMULATOR_RACE_H

#include "emulator/machine/machine.h"

/* RACE_ATOMIC: atom, red, and strong loads and stores (volatile, relaxed, ...): no race among
 * themselves. RACE_READ_TOGETHER: a read by all lanes at once (ldmatrix), which no lane leaves
 * before the others. RACE_INIT: mbarrier.init, a write that fence.mbarrier_init tells of. */
typedef enum race_access {
    RACE_READ,
    RACE_WRITE,
    RACE_ATOMIC,
    RACE_READ_TOGETHER,
    RACE_INIT,
} race_access;

/* State for one cluster at a time; begin forgets what the cluster before did to shared memory.
 * HONE_NO_MEMORY. */
hone_status race_open(cluster *c, hone_error *error);
void race_begin(cluster *c);
void race_close(cluster *c);
/* The launch ends, after its clusters: what it wrote goes where the launch wants it. The run is
 * marked when the memory's budget has no room for that. */
void race_written(run_state *run);
void race_end(run_state *run);

/* A warp's own access of `bytes` a lane. `at` are offsets in `owner`'s shared memory, or global
 * addresses when `owner` is NULL. */
bool race_touch(warp *w, const instruction *i, cta *owner, const uint64_t at[MACHINE_LANES],
                uint32_t mask, uint32_t bytes, race_access kind);

/* Lanes of one store that write to the same place must write the same. Arguments as of race_touch.
 */
bool race_lanes_agree(warp *w, const instruction *i, const cta *owner,
                      const uint64_t at[MACHINE_LANES], uint32_t mask);

/* Order among warps. *to is allocated on first use. */
void race_release(warp *w, race_clock **to);
void race_acquire(warp *w, const race_clock *from);
/* The same of a relaxed wait: it counts from the next acquiring fence on. */
void race_acquire_later(warp *w, const race_clock *from);
/* A relaxed arrival: it tells of what came before the warp's last releasing fence, and no more. */
void race_release_fenced(warp *w, race_clock **to);
void race_clock_free(race_clock **c);
/* bar.warp.sync, and what implies it: these lanes see what each of them did before. */
void race_warp_sync(warp *w, uint32_t mask);
/* fence and membar, with the ORDER_* bits of the instruction. */
void race_fence(warp *w, uint8_t order);
/* fence.mbarrier_init: relaxed arrivals from here on tell of the mbarriers that w initialised. */
void race_fence_init(warp *w);
/* Beside race_touch for an access that is strong: what its word brings (reads) and takes (writes),
 * by the instruction's `order` and the fences around it. Arguments as of race_touch. */
void race_order(warp *w, const instruction *i, cta *owner, const uint64_t at[MACHINE_LANES],
                uint32_t mask, bool reads, bool writes);
/* griddepcontrol.wait: what the launch before wrote is there from here on. */
void race_before_wait(warp *w);
/* fence.proxy.async: generic accesses of these spaces that w knows of are visible to the engines
 * from here on. */
void race_fence_proxy(warp *w, bool shared, bool global);

/* What an engine does for a warp. Issued: it comes after all that the warp knows. NULL when nobody
 * looks for races; every call takes that. */
typedef enum race_engine {
    RACE_COPY,   /* cp.async: the generic proxy, no fence needed */
    RACE_BULK,   /* bulk and tensor copies: the async proxy */
    RACE_MATRIX, /* wgmma: the async proxy, reads only */
} race_engine;
race_task *race_issue(warp *w, const instruction *i, race_engine engine);
/* `rows` runs of `bytes`, `stride` apart, from `at` on. */
bool race_task_touch(race_task *t, cta *owner, uint64_t at, uint64_t bytes, uint64_t rows,
                     uint64_t stride, race_access kind);
/* `bytes`, a power of two, at the place of each lane of `mask`. */
bool race_task_touch_lanes(race_task *t, cta *owner, const uint64_t at[MACHINE_LANES],
                           uint32_t mask, uint32_t bytes, race_access kind);
/* Reads of 16 bytes at a time: those of the RACE_READ_PAGE bytes from `at` (a multiple of as many)
 * on whose bit is set, and the same of `pages` such runs, `stride` apart. */
enum { RACE_READ_PAGE = 1024 };
bool race_task_read_chunks(race_task *t, cta *owner, uint64_t at, uint64_t chunks, uint32_t pages,
                           uint64_t stride);
/* Done, and told so through a clock (of an mbarrier), or to a warp that waited for it. */
void race_task_release(const race_task *t, race_clock **to);
void race_task_join(warp *w, const race_task *t);
/* What `t` read is read, and `w` learns nothing else of the warp that it works for. */
void race_task_know(warp *w, const race_task *t);
void race_task_free(race_task *t);

#endif
