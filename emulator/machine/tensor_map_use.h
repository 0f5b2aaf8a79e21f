/* tensor_map_use.h - tensor maps as a kernel uses them: found, and not stale.
 *
 * The engine reads a map through a proxy of its own. A map that the launch changes (tensormap.*,
 * or any store) may be used by a CTA only after fence.proxy.tensormap::generic.acquire on its
 * address: what each CTA has seen at an address is kept, and compared at each use. Maps among the
 * kernel's parameters cannot change. */
#ifndef HONE_EMULATOR_TENSOR_MAP_USE_H
#define HONE_EMULATOR_TENSOR_MAP_USE_H

#include "emulator/machine/machine.h"
#include "emulator/machine/tensor_map.h"

/* The map at a generic address, for an operation of the engine. False after a fault: it is
 * misaligned, outside of memory, never written, no map, stale, or breaks a rule. */
bool tensor_map_open(warp *w, const instruction *i, uint32_t lane, uint64_t address,
                     tensor_map *out);
/* The map of a prefetch, which is a hint: only that the memory is there. False after a fault. */
bool tensor_map_exists(warp *w, const instruction *i, uint32_t lane, uint64_t address);
/* The fence, by a thread of this CTA. False after a fault. */
bool tensor_map_acquire(warp *w, const instruction *i, uint32_t lane, uint64_t address);
/* tensormap.replace of bytes that the program gave; false and a fault when they are no map, nor
 * all zero (then they become one), or the value has no meaning. */
bool tensor_map_change(warp *w, const instruction *i, uint32_t lane, uint8_t *bytes,
                       tensor_map_field field, uint32_t order, uint64_t value);
/* These bytes, when they are a map, were put where they are by this launch. */
void tensor_map_date(const warp *w, uint8_t *bytes);

/* A CTA begins, or its memory goes. */
void tensor_map_forget(cta *c);
void tensor_map_close(cta *c);

#endif
