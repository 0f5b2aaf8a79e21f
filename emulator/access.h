/* access.h - where the lanes of one memory access go: addresses, checked and turned into host
 * memory. */
#ifndef HONE_EMULATOR_ACCESS_H
#define HONE_EMULATOR_ACCESS_H

#include "emulator/machine.h"

/* Lane l's bytes are at data + at[l]; their shadow at shadow + at[l]. */
typedef struct access_window {
    uint8_t *data, *shadow;
    uint64_t at[MACHINE_LANES];
    bool dense; /* a full warp, each lane right after the one before */
} access_window;

/* Addresses of `mask` from the instruction's address operand; false after a fault (poison,
 * alignment). */
bool access_addresses(warp *w, const instruction *i, uint32_t operand, uint32_t mask,
                      uint32_t bytes, uint64_t address[MACHINE_LANES]);

/* The window of as many lanes of `mask` as share an allocation: returns those lanes, 0 after a
 * fault. Generic addresses are told apart here: `*space` becomes the space that they lie in. */
uint32_t access_open(warp *w, const instruction *i, const uint64_t address[MACHINE_LANES],
                     uint32_t mask, uint32_t bytes, ptx_space *space, access_window *out);

/* Account for a request: bytes, sectors, lines; bank conflicts. */
void access_count_global(warp *w, const instruction *i, const uint64_t address[MACHINE_LANES],
                         uint32_t mask, uint32_t bytes, bool store);
void access_count_shared(warp *w, const uint64_t address[MACHINE_LANES], uint32_t mask,
                         uint32_t bytes);

/* True when all `bytes` shadow bytes say written; bytes is a power of two up to 32. */
static inline bool access_written(const uint8_t *shadow, uint32_t bytes)
{
    uint8_t all = 1;
    for (uint32_t n = 0; n < bytes; n++) {
        all &= shadow[n];
    }
    return all != 0;
}

#endif
