/* kept.h - what launches have made and later ones ask for again: encoded tensor maps by the address
 * they are of, and plans of other sizes by their problem.
 *
 * Places are taken once, first come, and given back only with the whole, so that readers take no
 * lock and memory is bounded: what finds no place is made anew each time. Thread-safe but for
 * making and freeing. */
#ifndef HONE_RUNTIME_KEPT_H
#define HONE_RUNTIME_KEPT_H

#include "runtime/driver.h"
#include "templates/manifest.h"

#include <stdatomic.h>

/* Encoded maps of one plan. */
typedef struct kept_maps kept_maps;

/* NULL for a plan without maps, and when there is no memory: then nothing is kept. */
kept_maps *kept_maps_make(const plan *p);
void kept_maps_free(kept_maps *k); /* NULL is fine */

/* The map of `launch` over the address, or NULL; it stays until kept_maps_free. */
const CUtensorMap *kept_maps_find(const kept_maps *k, uint32_t launch, uint32_t map,
                                  uint64_t address);
void kept_maps_add(kept_maps *k, uint32_t launch, uint32_t map, uint64_t address,
                   const CUtensorMap *encoded);

/* A plan for another size than a kernel was prepared for. */
typedef struct kept_size {
    hone_problem problem;
    size_t operands_len;
    hone_operand operands[HONE_MAX_OPERANDS];
    plan plan;
    _Atomic(kept_maps *) maps; /* made by the first launch */
} kept_size;

enum { KEPT_SIZES = 64 };
typedef struct kept_sizes {
    _Atomic(kept_size *) places[KEPT_SIZES];
} kept_sizes;

/* The plan for the problem (its op's first `key_len` bytes), or NULL. */
kept_size *kept_sizes_find(const kept_sizes *k, const hone_problem *problem, size_t key_len);
/* Keep it: true when *made is now the set's. False when there is no place: it stays the caller's.
 * Two threads may both keep a plan for one problem; the second is never found. */
bool kept_sizes_add(kept_sizes *k, kept_size *made);
void kept_sizes_free(kept_sizes *k); /* what is in it */

#endif
