/* space.h - the legal configs of a template for a problem on a device, walked without listing them.
 *
 * Parameters are bound in an order that lets each `require` be checked as early as it can be, so
 * that 10^12 raw combinations open at once and cost nothing. A space borrows its manifest. One
 * thread at a time. */
#ifndef HONE_TEMPLATES_SPACE_H
#define HONE_TEMPLATES_SPACE_H

#include "templates/manifest.h"

typedef struct space space;

/* Problem and device may be NULL for a definition of space_import. */
hone_status space_open(const manifest *m, const hone_problem *problem, const device_facts *device,
                       space **out, hone_error *error);
void space_close(space *s);

double space_raw_size(const space *s); /* product of the value counts; may exceed 2^64 */

/* The next legal config in a fixed order; *found = false at the end. `budget` bounds the nodes
 * visited (0: none): HONE_LIMIT when it runs out. */
hone_status space_next(space *s, uint64_t budget, config *out, bool *found, hone_error *error);
void space_rewind(space *s);

/* A random legal config: uniform where the legal set can be counted within `budget` nodes, else
 * drawn by random binding with restarts (*uniform says which). *found = false when the space is
 * empty. */
hone_status space_draw(space *s, uint64_t *seed, uint64_t budget, config *out, bool *found,
                       bool *uniform, hone_error *error);

/* Whether a config with a value of each parameter's list is legal here. HONE_BAD_ARGUMENT for one
 * of another length. */
hone_status space_has(space *s, const config *c, bool *has, hone_error *error);

/* How far a neighbour is from a config: another value of one parameter, or in the order of its
 * values the next legal one on either side. */
typedef enum space_reach { SPACE_ANY_VALUE, SPACE_NEXT_VALUE } space_reach;

/* The legal configs that differ from legal `c` in one parameter, in the order of parameters and
 * values: *len of them, of which the first `capacity` go to `out`. */
hone_status space_neighbours(space *s, const config *c, space_reach reach, config *out,
                             size_t capacity, size_t *len, hone_error *error);

/* Exact count of legal configs, if it takes no more than `budget` nodes; else HONE_LIMIT. */
hone_status space_count(space *s, uint64_t budget, uint64_t *count, hone_error *error);

/* How many nodes each rule pruned so far: reasons for the report. */
typedef struct space_reason {
    const char *rule; /* the require's text, borrowed from the manifest */
    int line;
    uint64_t pruned; /* partial or whole configs that it refused */
} space_reason;
size_t space_reasons(const space *s, const space_reason **out);

#endif
