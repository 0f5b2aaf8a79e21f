/* families.c - sorts problems by family and size, and halves each family. */
#include "tuner/families.h"

#include <stdlib.h>
#include <string.h>

typedef struct member {
    hone_problem family;
    int64_t size;
    size_t index;
} member;

static int by_family(const void *a, const void *b)
{
    const member *x = a, *y = b;
    const int family = memcmp(&x->family, &y->family, sizeof x->family);

    if (family != 0) {
        return family;
    }
    if (x->size != y->size) {
        return x->size < y->size ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

/* Place the members between two that are placed: the middle, then both halves. At most 64 deep. */
static void halve(const member *list, size_t first, size_t last, uint32_t phase,
                  family_place *places)
{
    if (last - first < 2) {
        return;
    }
    const size_t middle = first + (last - first) / 2;
    places[list[middle].index] = (family_place){phase, list[first].index, list[last].index};
    halve(list, first, middle, phase + 1, places);
    halve(list, middle, last, phase + 1, places);
}

static uint32_t last_phase(const family_place *places, size_t len)
{
    uint32_t last = 0;

    for (size_t i = 0; i < len; i++) {
        last = places[i].phase > last ? places[i].phase : last;
    }
    return last;
}

hone_status families_order(const hone_problem *problems, size_t len, family_place *places,
                           size_t *order, hone_error *error)
{
    member *list = calloc(len + 1, sizeof *list);
    size_t members = 0, ordered = 0;

    if (list == NULL) {
        return status_set(error, HONE_NO_MEMORY, "sweep", 0, "%zu problems", len);
    }
    for (size_t i = 0; i < len; i++) {
        places[i] = (family_place){0, FAMILIES_NONE, FAMILIES_NONE};
        list[members].index = i;
        members += problem_family(&problems[i], &list[members].family, &list[members].size);
    }
    qsort(list, members, sizeof *list, by_family);
    for (size_t first = 0, last; first < members; first = last) {
        for (last = first + 1; last < members && memcmp(&list[first].family, &list[last].family,
                                                        sizeof list->family) == 0;
             last++) {
        }
        halve(list, first, last - 1, 1, places);
    }
    for (uint32_t phase = 0; phase <= last_phase(places, len); phase++) {
        for (size_t i = 0; i < len; i++) {
            if (places[i].phase == phase) {
                order[ordered++] = i;
            }
        }
    }
    free(list);
    return HONE_OK;
}
