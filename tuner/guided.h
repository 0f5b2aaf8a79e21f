/* guided.h - the guided strategy from inside: observations of each space and the forest that is
 * grown on them. Private. */
#ifndef HONE_TUNER_GUIDED_H
#define HONE_TUNER_GUIDED_H

#include "tuner/features.h"
#include "tuner/forest.h"
#include "tuner/strategy_random.h"

#define GUIDED_ELITES 16   /* best configs that are remembered */
#define GUIDED_NEAR   4096 /* neighbours of one config that are looked at */

/* What was timed of one template's space. Zeroed but for `features`: nothing. */
typedef struct guided_arm {
    features features;
    float *x, *logs; /* a row of features and the logarithm of the time each; INFINITY: failed */
    size_t len, capacity;
    forest model;
    float *fit_x, *fit_y; /* what the forest is grown on */
} guided_arm;

typedef struct guided {
    random_pool pool; /* its `seen` are all that were proposed */
    const strategy_problem *p;
    guided_arm *arms;                        /* by the pool's spaces */
    config *near;                            /* scratch of GUIDED_NEAR */
    size_t learned, fresh, seeds_at, seeded; /* seeded: seeds that were timed */
    bool grown, seeding;                     /* seeding: the last proposal was a seed */
    double best_seed, best_other;            /* nanoseconds; HUGE_VAL: none */
    candidate elites[GUIDED_ELITES];         /* the best first */
    double elite_ns[GUIDED_ELITES];
    size_t elites_len;
} guided;

/* Note that a config took `ns`; HUGE_VAL: it failed. False when memory gives out. */
bool guided_observe(guided_arm *arm, const config *c, double ns);
/* Grow the forest on what was observed. False when memory gives out. */
bool guided_fit(guided_arm *arm, uint64_t seed);
/* What the forest promises of a config: the logarithm of its time, less `daring` standard
 * deviations of the trees. A space of which nothing is known promises anything. */
double guided_ask(const guided_arm *arm, const config *c, double daring);
void guided_forget(guided_arm *arm);

#endif
