/* claims.h - what the suites of models/ share: a text with its verdict. */
#ifndef HONE_TESTS_CLAIMS_H
#define HONE_TESTS_CLAIMS_H

#include "core/status.h"

#include <check.h>

/* A text, and what reading it must give. */
typedef struct claim {
    const char *claim, *text;
    hone_status status;
    int line;         /* of the error; 0: it names none, or all is well; -1: any */
    const char *says; /* part of the message; NULL: any */
} claim;

void claim_check(const claim *c, hone_status status, const hone_error *error);

/* Copy `text` into `to` (as long, NUL-terminated) with a few bytes changed, dropped or swapped: the
 * same for the same seed. Returns the length. */
size_t claim_mutate(const char *text, size_t len, uint64_t seed, char *to);

#endif
