/* access.h - where the lanes of one memory access go: addresses, checked and turned into host
 * memory. */
#ifndef HONE_EMULATOR_ACCESS_H
#define HONE_EMULATOR_ACCESS_H

#include "emulator/machine/race.h"

#include <string.h>

#define ACCESS_NO_STRIDE UINT64_MAX

/* Lane l's bytes are at data + at[l]; their shadow at shadow + at[l]. */
typedef struct access_window {
    uint8_t *data, *shadow;
    uint64_t at[MACHINE_LANES];
    cta *owner;      /* of shared memory: whose; else NULL */
    uint64_t stride; /* from lane to lane of a full warp; ACCESS_NO_STRIDE where it varies */
    bool dense;      /* a full warp, each lane right after the one before */
    bool whole;      /* global memory that is all written: see memory_range */
    const memory_range *range; /* of global memory: the allocation; else NULL */
} access_window;

/* Addresses of `mask` from the instruction's address operand; false after a fault (poison,
 * alignment). */
bool access_addresses(warp *w, const instruction *i, uint32_t operand, uint32_t mask,
                      uint32_t bytes, uint64_t address[MACHINE_LANES]);

/* The distance between the addresses of all lanes, when `mask` is all and they have one. */
uint64_t access_stride(const uint64_t address[MACHINE_LANES], uint32_t mask);

/* The window of as many lanes of `mask` as share an allocation: returns those lanes, 0 after a
 * fault. Generic addresses are told apart here: `*space` becomes the space that they lie in. */
uint32_t access_open(warp *w, const instruction *i, const uint64_t address[MACHINE_LANES],
                     uint32_t mask, uint32_t bytes, ptx_space *space, access_window *out);

/* The allocation that this instruction's last access lay in when all of `mask` lie in it now, with
 * the lanes' offsets there; NULL otherwise, and never a fault. */
const memory_range *access_last_range(const warp *w, const instruction *i,
                                      const uint64_t address[MACHINE_LANES], uint32_t mask,
                                      uint32_t bytes, uint64_t at[MACHINE_LANES]);

/* Account for a request: bytes, sectors, lines; bank conflicts. */
void access_count_global(warp *w, const instruction *i, const uint64_t address[MACHINE_LANES],
                         uint32_t mask, uint32_t bytes, bool store);
void access_count_shared(warp *w, const access_window *win, uint32_t mask, uint32_t bytes,
                         bool load);
/* The same for the rows of ldmatrix and stmatrix: eight lanes a matrix, 16 bytes each. A store is
 * also one of shared_store_requests, which its handler counts. */
void access_count_matrix(warp *w, const access_window *win, uint32_t mask);

/* A 32-bit address of shared memory: the offset, and in the bits above either 0, the executing
 * CTA's own, or one more than the rank of a CTA of the cluster. */
enum { ACCESS_CTA = 1 << 24 };

/* race_touch.c: what a window's lanes do, to the race detector. A strong access also brings and
 * takes order. False after a fault. */
bool race_window(warp *w, const instruction *i, uint32_t mask, uint32_t bytes,
                 const access_window *win, const uint64_t address[MACHINE_LANES], race_access kind);
/* Whether the access is ordered behind those that it conflicts with; false after a fault. */
static inline bool access_ordered(warp *w, const instruction *i, uint32_t mask, uint32_t bytes,
                                  ptx_space space, const access_window *win,
                                  const uint64_t address[MACHINE_LANES], race_access kind)
{
    return w->cta->cluster->races == NULL || (space != PTX_SHARED && space != PTX_GLOBAL) ||
           race_window(w, i, mask, bytes, win, address, kind);
}

/* One lane's `bytes` at a shared address of 32 bits, which may lie in another CTA of the cluster:
 * whose memory, and where. False after a fault. */
bool access_shared(warp *w, const instruction *i, uint32_t lane, uint32_t address, uint32_t bytes,
                   cta **owner, uint32_t *at);

/* Lanes to look at: one where all of them lie at the same place. */
static inline uint32_t access_distinct(const access_window *win, uint32_t mask)
{
    return win->stride == 0 ? mask & (0 - mask) : mask;
}

/* What a shadow byte says. */
enum {
    ACCESS_UNWRITTEN = 0,
    ACCESS_IS_WRITTEN = 1,
    ACCESS_PENDING = 2,  /* shared memory: an operation in flight will write it */
    ACCESS_MBARRIER = 4, /* shared memory: part of a live mbarrier */
};

/* A fault for bytes of `owner`'s shared memory of which some are pending or an mbarrier's. */
void access_refuse_marked(warp *w, const instruction *i, uint32_t lane, const cta *owner,
                          uint64_t at, uint32_t bytes);
/* False and such a fault when a lane of `mask` touches such bytes. Cheap where the CTA has none. */
bool access_unmarked(warp *w, const instruction *i, uint32_t mask, uint32_t bytes,
                     const access_window *win);
#define ACCESS_WRITTEN UINT64_C(0x0101010101010101) /* eight shadow bytes */

/* What the shadow bytes of these lanes say, eight at a time, anded and ored; bytes is a power of
 * two up to 32. */
typedef struct access_shadow {
    uint64_t all, any;
} access_shadow;
access_shadow access_look(const access_window *win, uint32_t mask, uint32_t bytes);

/* True when all `bytes` shadow bytes say written; bytes is a power of two up to 32. Sizes are told
 * apart so that each is a load or two and not a loop. */
static inline bool access_written(const uint8_t *shadow, uint32_t bytes)
{
    uint64_t word = ACCESS_WRITTEN;

    switch (bytes) {
    case 1:
        memcpy(&word, shadow, 1);
        break;
    case 2:
        memcpy(&word, shadow, 2);
        break;
    case 4:
        memcpy(&word, shadow, 4);
        break;
    default:
        for (uint32_t n = 0; n < bytes; n += 8) {
            uint64_t next = 0;
            memcpy(&next, shadow + n, sizeof next);
            word &= next;
        }
    }
    return word == ACCESS_WRITTEN;
}

/* Copy `bytes`, a power of two up to 32. */
static inline void access_copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    switch (bytes) {
    case 1:
        *to = *from;
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    default:
        for (uint32_t n = 0; n < bytes; n += 16) {
            memcpy(to + n, from + n, 16);
        }
    }
}

/* Shadow bytes of `bytes` become written, or not. */
static inline void access_mark(uint8_t *shadow, uint32_t bytes, bool written)
{
    static const uint8_t marks[2][32] = {
        {0},
        {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
         1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    };
    access_copy(shadow, marks[written], bytes);
}

#endif
