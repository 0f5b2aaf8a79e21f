/* pairs.h - a set of (problem, config) cases in which every two values of any two axes meet, as far
 * as some legal case has both.
 *
 * Axes are the device, fields of the problem, and all parameters of the template. A failure of the
 * generator itself, such as a pair that it cannot place, ends the test. */
#ifndef HONE_TESTS_PROJECT_PAIRS_H
#define HONE_TESTS_PROJECT_PAIRS_H

#include "templates/manifest.h"

#define PAIRS_MAX_VALUES  12
#define PAIRS_MAX_DEVICES 4

typedef struct pairs_axis {
    const char *name;                     /* of a problem's field */
    const char *values[PAIRS_MAX_VALUES]; /* as texts, ended by NULL */
    bool free; /* no rule about configs asks for it, or one that refuses few: checked with every
                  case */
} pairs_axis;

typedef struct pairs_request {
    const manifest *m;
    const char *op;
    const pairs_axis *axes;
    size_t axes_len;
    const device_facts *devices[PAIRS_MAX_DEVICES];
    size_t devices_len;
} pairs_request;

typedef struct pairs_case {
    hone_problem problem;
    config config;
    size_t device; /* index */
} pairs_case;

typedef struct pairs_set {
    pairs_case *cases; /* owned */
    size_t len, pairs; /* pairs: that legal cases have, all covered */
} pairs_set;

/* The same request gives the same set. Free with pairs_free. */
pairs_set pairs_cover(const pairs_request *request);
void pairs_free(pairs_set *set);

#endif
