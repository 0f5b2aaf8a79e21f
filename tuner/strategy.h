/* strategy.h - which candidates of a problem are tried, and in which order: one table of
 * strategies.
 *
 * A strategy proposes legal configs of all templates that serve the problem, none twice, until it
 * has no more. */
#ifndef HONE_TUNER_STRATEGY_H
#define HONE_TUNER_STRATEGY_H

#include "models/gpu.h"
#include "templates/manifest.h"

/* A template and a config of it. */
typedef struct candidate {
    const manifest *m; /* borrowed from the templates */
    config config;
} candidate;

/* What is tuned. Borrowed for as long as the strategy runs. */
typedef struct strategy_problem {
    const templates *templates;
    const hone_problem *problem;
    const gpu *gpu;
    uint64_t budget; /* candidates that will be asked for; 0: all that there are */
    uint64_t seed;
    const struct candidate_set
        *known;                 /* proposed for other problems: compiled already; NULL: none */
    const manifest *definition; /* a space of space_import instead: the others are NULL then */
    const config *seeds; /* of a definition: what won on other GPUs or problems, the best first */
    size_t seeds_len;
} strategy_problem;

typedef struct strategy {
    const char *name, *summary;
    size_t state_size; /* bytes; the caller allocates and zeroes them */
    hone_status (*start)(void *state, const strategy_problem *p, hone_error *error);
    /* The next candidate; *found = false when there is none. */
    hone_status (*next)(void *state, candidate *out, bool *found, hone_error *error);
    /* How long a proposed one took; HUGE_VAL: it has no time, it failed. NULL: does not learn. */
    hone_status (*learn)(void *state, const candidate *tried, double ns, hone_error *error);
    void (*stop)(void *state); /* also after a start that failed */
} strategy;

/* The strategies, the default first. */
size_t strategy_len(void);
const strategy *strategy_at(size_t index);
const strategy *strategy_find(const char *name); /* NULL when unknown */

/* Up to p->budget candidates of a strategy that does not learn, in its order. Caller frees *out
 * with free(). */
hone_status strategy_collect(const strategy *s, const strategy_problem *p, candidate **out,
                             size_t *len, hone_error *error);

/* What is known of a candidate: false when it was not tried yet, else its time as `learn` takes it.
 */
typedef bool (*strategy_known_fn)(void *context, const candidate *c, double *ns);

/* Candidates of a strategy that learns which are proposed at once, before any of them is known. */
#define STRATEGY_ROUND 8

/* The next round of a strategy that learns: everything from the start is proposed again, round by
 * round and told what is known, up to the first round of which something is not known. So the same
 * candidates come for the same seed and times, with any number of workers and after a stop. *len =
 * 0 when the budget or the space is used up. Caller frees *out with free(). */
hone_status strategy_round(const strategy *s, const strategy_problem *p, strategy_known_fn known,
                           void *context, candidate **out, size_t *len, hone_error *error);

/* Nodes that one step of a walk may cost before it is given up: about a tenth of a second. */
#define STRATEGY_NODES 2000000u

extern const strategy strategy_model, strategy_random, strategy_exhaustive, strategy_guided;

#endif
