/* families.h - in which order the sizes of a family are tuned: the ends first, then the middle of
 * what is left, so that a size between two that agree need not search.
 *
 * A family's problems differ in the size that lookups may round up alone (core/problem.h). */
#ifndef HONE_TUNER_FAMILIES_H
#define HONE_TUNER_FAMILIES_H

#include "core/problem.h"

#define FAMILIES_NONE SIZE_MAX

typedef struct family_place {
    uint32_t phase;      /* those of earlier phases come first; 0: an end, or without a family */
    size_t below, above; /* indices of the tuned sizes that this one lies between, of earlier
                            phases; FAMILIES_NONE in phase 0 */
} family_place;

/* Fill places[len], and order[len] with the indices by phase, those of one phase as they were.
 * HONE_NO_MEMORY. */
hone_status families_order(const hone_problem *problems, size_t len, family_place *places,
                           size_t *order, hone_error *error);

#endif
