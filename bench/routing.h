/* routing.h - how tokens spread over experts while a grouped product is timed: the condition of a
 * sweep. Serving does not know it, so that it is no part of a problem.
 *
 * A histogram's file is text of at most 1 MiB: a JSON array, or one line of numbers parted by
 * blanks or commas. Its numbers are finite and not negative, one for each expert, in the order of
 * experts, and one of them at least is above 0. */
#ifndef HONE_BENCH_ROUTING_H
#define HONE_BENCH_ROUTING_H

#include "bench/inputs.h"

#define ROUTING_FILE_BYTES (1u << 20)
#define ROUTING_MOST       4096 /* numbers of a histogram; problems have fewer experts */
#define ROUTING_TEXT_BYTES 64
/* Exponents of zipf: past this the second expert has next to nothing. */
#define ROUTING_ZIPF_MOST 16.0

typedef struct routing {
    inputs_routing kind; /* BALANCED, UNIFORM, ZIPF, ONE or HISTOGRAM */
    double exponent;     /* of ZIPF: the n-th expert of a random order has a share of n^-exponent */
    double *share;       /* of HISTOGRAM, owned: not normalised */
    size_t share_len;
    /* The condition's name in a store: "balanced", "uniform", "zipf:1.2", "one", or "histogram:"
     * with the first 16 bytes of the BLAKE2b digest of its numbers in hex. */
    char text[ROUTING_TEXT_BYTES];
} routing;

/* From "balanced", "uniform", "zipf", "zipf:1.2", "one", or else the path of a histogram's file.
 * HONE_BAD_TEXT, HONE_LIMIT, HONE_IO, HONE_UNKNOWN (neither a name nor a file), HONE_NO_MEMORY.
 * Caller frees with routing_free. */
hone_status routing_parse(const char *text, routing *out, hone_error *error);
/* The same from a histogram's bytes, which need not end with NUL; `source` names them. */
hone_status routing_parse_histogram(const char *source, const char *text, size_t len, routing *out,
                                    hone_error *error);
void routing_free(routing *r); /* an empty one is fine */

/* Balanced, what is timed when nothing is asked for. Static. */
const routing *routing_balanced(void);

/* Whether the op's time hangs on it. */
bool routing_matters(const hone_problem *problem);
/* HONE_BAD_PROBLEM for a histogram of another length than the problem's experts. `r` NULL:
 * balanced, here and below. */
hone_status routing_check(const routing *r, const hone_problem *problem, hone_error *error);
/* The condition that a measurement of the problem is stored under. Borrowed from `r`, or static; of
 * ops that have no experts "uniform". */
const char *routing_condition(const routing *r, const hone_problem *problem);

/* Part `total` among the experts, rows[e] each, `total` in all. Shares are rounded down, and what
 * is left goes to the largest remainders, the first of equal ones. HONE_NO_MEMORY. */
hone_status routing_rows(const routing *r, int64_t experts, int64_t total, uint64_t *state,
                         int64_t *rows, hone_error *error);

#endif
