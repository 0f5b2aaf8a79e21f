/* memory.h - global memory of one emulated device: an allocation table with red zones and validity.
 *
 * Addresses that kernels see are host addresses. Every access of a kernel is looked up; a freed
 * range is kept in quarantine, so that use after free is told from out of bounds. Each byte has a
 * shadow bit: written or not. */
#ifndef HONE_EMULATOR_MEMORY_H
#define HONE_EMULATOR_MEMORY_H

#include "core/status.h"

#include <stdbool.h>

typedef struct device_memory device_memory;

/* Host memory that the devices of a process may take together: contents and shadow of allocations,
 * state of launches. Shared by several device memories, which the host's threads use at once. */
typedef struct memory_budget {
    uint64_t limit, used; /* bytes */
} memory_budget;

typedef struct memory_range { /* an allocation; valid until it is freed */
    uint64_t begin, end;
    uint8_t *shadow; /* one byte for each byte: 0 never written */
    bool freed;
    bool constant; /* kernels only read it */
    bool whole;    /* all of it is written: nobody needs to look at the shadow, or to change it */
} memory_range;

hone_status memory_open(uint64_t capacity, device_memory **out, hone_error *error);
void memory_close(device_memory *m);

/* What the memory takes from the host counts against `budget`, which outlives it. Before the first
 * allocation. */
void memory_set_budget(device_memory *m, memory_budget *budget);
/* Take host memory for something else than an allocation, before it is allocated, and give it back.
 * HONE_NO_MEMORY past the budget. */
hone_status memory_charge(device_memory *m, uint64_t bytes, hone_error *error);
void memory_discharge(device_memory *m, uint64_t bytes);

/* 256-byte aligned, at least 4 KiB of red zone on each side. HONE_NO_MEMORY past the capacity. */
hone_status memory_allocate(device_memory *m, uint64_t bytes, uint64_t *address, hone_error *error);
hone_status memory_free(device_memory *m, uint64_t address, hone_error *error);

/* From now on kernels only read the allocation that begins at `address`; the host still writes it.
 */
void memory_set_constant(device_memory *m, uint64_t address);

/* Let kernels reach host memory at its own address (pinned memory): counted as written, not charged
 * to the capacity. Its shadow counts against the budget; the bytes are the caller's, who keeps them
 * alive until memory_release. HONE_NO_MEMORY past the budget, HONE_BAD_ARGUMENT where the device
 * has memory already. */
hone_status memory_adopt(device_memory *m, void *host, uint64_t bytes, hone_error *error);
hone_status memory_release(device_memory *m, const void *host, hone_error *error);

/* The range that holds `address`, live or quarantined; NULL when none. O(log n); callers cache the
 * last hit. */
const memory_range *memory_find(const device_memory *m, uint64_t address);

/* Whether all of an allocation is written. A kernel that runs with checks for values that nobody
 * wrote cannot unwrite global memory; before others, and for all of them, it is forgotten. */
void memory_set_whole(device_memory *m, const memory_range *range, bool whole);
void memory_forget_whole(device_memory *m);

/* Copies by the host: bounds-checked, destination marked written, source's shadow not looked at. */
hone_status memory_write(device_memory *m, uint64_t address, const void *from, uint64_t bytes,
                         hone_error *error);
hone_status memory_read(const device_memory *m, uint64_t address, void *to, uint64_t bytes,
                        hone_error *error);
hone_status memory_fill(device_memory *m, uint64_t address, uint32_t value, uint32_t width,
                        uint64_t count, hone_error *error);
hone_status memory_copy(device_memory *m, uint64_t to, uint64_t from, uint64_t bytes,
                        hone_error *error); /* shadow travels along */
/* Launches are numbered from 1, so that what one changed is told from what was there before. */
void memory_begin_epoch(device_memory *m);
uint64_t memory_epoch(const device_memory *m);
void memory_info(const device_memory *m, uint64_t *used, uint64_t *capacity);

#endif
