/* candidate_set.c - a growing hash table of candidates. */
#include "tuner/candidate_set.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash(const candidate *c)
{
    uint64_t h = (uint64_t)(uintptr_t)c->m;

    for (uint32_t i = 0; i < c->config.len; i++) {
        h = (h ^ (uint64_t)c->config.value[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

static bool same(const candidate *a, const candidate *b)
{
    return a->m == b->m && config_same(&a->config, &b->config);
}

/* The place that holds `c`, or the empty one where it belongs. */
static size_t place_of(const candidate_set *set, const candidate *c)
{
    size_t at = hash(c) & (set->places_len - 1);

    while (set->places[at] != 0 && !same(&set->items[set->places[at] - 1], c)) {
        at = (at + 1) & (set->places_len - 1);
    }
    return at;
}

static bool grow(candidate_set *set)
{
    size_t capacity = set->capacity == 0 ? 64 : set->capacity * 2;
    candidate *items = realloc(set->items, capacity * sizeof *items);
    uint32_t *places = calloc(capacity * 2, sizeof *places);

    set->items = items != NULL ? items : set->items;
    if (items == NULL || places == NULL) {
        free(places);
        return false;
    }
    free(set->places);
    set->places = places;
    set->places_len = capacity * 2;
    set->capacity = capacity;
    for (size_t i = 0; i < set->len; i++) {
        set->places[place_of(set, &set->items[i])] = (uint32_t)i + 1;
    }
    return true;
}

hone_status candidate_set_add(candidate_set *set, const candidate *c, bool *added,
                              hone_error *error)
{
    if (set->len == set->capacity && !grow(set)) {
        return status_set(error, HONE_NO_MEMORY, manifest_name(c->m), 0, "a set of candidates");
    }
    size_t at = place_of(set, c);
    *added = set->places[at] == 0;
    if (*added) {
        set->items[set->len++] = *c;
        set->places[at] = (uint32_t)set->len;
    }
    return HONE_OK;
}

bool candidate_set_has(const candidate_set *set, const candidate *c)
{
    return set->places_len > 0 && set->places[place_of(set, c)] != 0;
}

void candidate_set_free(candidate_set *set)
{
    free(set->items);
    free(set->places);
    *set = (candidate_set){0};
}
