/* kept.c - see kept.h: open addressing over atomic pointers that are set once. */
#include "runtime/kept.h"

#include <stdlib.h>
#include <string.h>

/* An engine has a product's weights once for each layer: some sixty addresses. */
enum { MAP_PLACES = 128, PROBES = 8 };

/* Addresses lie side by side, so that looking in vain touches no map. */
typedef struct map_place {
    _Atomic uint64_t address;       /* 0: free; set first */
    _Atomic(CUtensorMap *) encoded; /* NULL: being made, or there was no memory */
} map_place;

struct kept_maps {
    uint32_t first[MANIFEST_MAX_LAUNCHES]; /* of a launch's maps */
    uint32_t len;
    map_place places[]; /* MAP_PLACES of each map */
};

static size_t place_of(uint64_t key, size_t places)
{
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % places;
}

kept_maps *kept_maps_make(const plan *p)
{
    uint32_t first[MANIFEST_MAX_LAUNCHES] = {0}, len = 0;

    for (uint32_t i = 0; i < p->launches_len; i++) {
        first[i] = len;
        len += p->launches[i].maps_len;
    }
    if (len == 0) {
        return NULL;
    }
    kept_maps *k = calloc(1, sizeof *k + (size_t)len * MAP_PLACES * sizeof k->places[0]);
    if (k != NULL) {
        memcpy(k->first, first, sizeof first);
        k->len = len;
    }
    return k;
}

void kept_maps_free(kept_maps *k)
{
    for (size_t i = 0; k != NULL && i < (size_t)k->len * MAP_PLACES; i++) {
        free(atomic_load_explicit(&k->places[i].encoded, memory_order_relaxed));
    }
    free(k);
}

const CUtensorMap *kept_maps_find(const kept_maps *k, uint32_t launch, uint32_t map,
                                  uint64_t address)
{
    const map_place *places = &k->places[(size_t)(k->first[launch] + map) * MAP_PLACES];

    for (size_t i = 0, at = place_of(address, MAP_PLACES); i < PROBES; i++) {
        const map_place *place = &places[(at + i) % MAP_PLACES];
        const uint64_t there = atomic_load_explicit(&place->address, memory_order_relaxed);
        if (there == address) {
            return atomic_load_explicit(&place->encoded, memory_order_acquire);
        }
        if (there == 0) {
            return NULL;
        }
    }
    return NULL;
}

void kept_maps_add(kept_maps *k, uint32_t launch, uint32_t map, uint64_t address,
                   const CUtensorMap *encoded)
{
    map_place *places = &k->places[(size_t)(k->first[launch] + map) * MAP_PLACES];

    for (size_t i = 0, at = place_of(address, MAP_PLACES); i < PROBES; i++) {
        map_place *place = &places[(at + i) % MAP_PLACES];
        uint64_t there = 0;
        if (atomic_compare_exchange_strong_explicit(&place->address, &there, address,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            CUtensorMap *made = aligned_alloc(_Alignof(CUtensorMap), sizeof *made);
            if (made != NULL) {
                *made = *encoded;
                atomic_store_explicit(&place->encoded, made, memory_order_release);
            }
            return;
        }
        if (there == address) {
            return; /* another thread was faster */
        }
    }
}

static uint64_t size_key(const hone_problem *problem)
{
    uint64_t first; /* every op begins with the size that families differ in */

    memcpy(&first, &problem->as, sizeof first);
    return first;
}

kept_size *kept_sizes_find(const kept_sizes *k, const hone_problem *problem, size_t key_len)
{
    for (size_t i = 0, at = place_of(size_key(problem), KEPT_SIZES); i < PROBES; i++) {
        kept_size *s =
            atomic_load_explicit(&k->places[(at + i) % KEPT_SIZES], memory_order_acquire);
        if (s == NULL) {
            return NULL;
        }
        if (memcmp(&s->problem.as, &problem->as, key_len) == 0) {
            return s;
        }
    }
    return NULL;
}

bool kept_sizes_add(kept_sizes *k, kept_size *made)
{
    for (size_t i = 0, at = place_of(size_key(&made->problem), KEPT_SIZES); i < PROBES; i++) {
        kept_size *there = NULL;
        if (atomic_compare_exchange_strong_explicit(&k->places[(at + i) % KEPT_SIZES], &there, made,
                                                    memory_order_release, memory_order_acquire)) {
            return true;
        }
    }
    return false;
}

void kept_sizes_free(kept_sizes *k)
{
    for (size_t i = 0; i < KEPT_SIZES; i++) {
        kept_size *s = atomic_load_explicit(&k->places[i], memory_order_relaxed);
        if (s != NULL) {
            kept_maps_free(atomic_load_explicit(&s->maps, memory_order_relaxed));
            free(s);
        }
    }
}
