/* candidate_set.h - the candidates that a strategy has proposed, so that none comes twice. */
#ifndef HONE_TUNER_CANDIDATE_SET_H
#define HONE_TUNER_CANDIDATE_SET_H

#include "tuner/strategy.h"

typedef struct candidate_set {
    candidate *items;
    uint32_t *places; /* hash table: index of an item plus one */
    size_t len, capacity, places_len;
} candidate_set;

/* *added = false when it was there. HONE_NO_MEMORY. */
hone_status candidate_set_add(candidate_set *set, const candidate *c, bool *added,
                              hone_error *error);
bool candidate_set_has(const candidate_set *set, const candidate *c);
void candidate_set_free(candidate_set *set);

#endif
