/* winner.h - which of a problem's proved candidates is served, by bench.md 2.4's rules for times in
 * hand.
 *
 * Ties are broken by what is not measured, in a fixed order, so that every machine chooses alike.
 */
#ifndef HONE_TUNER_WINNER_H
#define HONE_TUNER_WINNER_H

#include "core/status.h"

#include <stdbool.h>

typedef struct winner_entry {
    int64_t candidate; /* id in the store */
    double time_ns;    /* > 0 */
    int32_t registers, shared_bytes;
    const char *template_name, *config; /* borrowed */
    bool incumbent;                     /* the winner so far */
    bool anchor;                        /* the analytical default */
} winner_entry;

/* *index of the winner among `len` > 0 entries of one timer, and the store_verdict: clear (faster
 * than all others by more than 0.5 %), tie (chosen among equals), default (less than 1 % faster
 * than the analytical default, which is kept; 2 % against the winner so far). HONE_BAD_ARGUMENT for
 * none. */
hone_status winner_choose(const winner_entry *entries, size_t len, size_t *index, int32_t *verdict,
                          hone_error *error);

#endif
