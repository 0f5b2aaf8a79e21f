/* forest.h - extremely randomised regression trees (Geurts, Ernst, Wehenkel 2006): a cheap model of
 * few, rough observations, whose trees' disagreement says how far it is to be trusted.
 *
 * One forest is grown and asked by one thread. The same seed and rows give the same trees. */
#ifndef HONE_TUNER_FOREST_H
#define HONE_TUNER_FOREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FOREST_TREES 24

typedef struct forest_node {
    float cut;       /* inner: at most this goes to the left */
    float value;     /* leaf: mean of its rows */
    int16_t feature; /* -1: a leaf */
    uint16_t right;  /* the left one follows its parent */
} forest_node;

/* Zeroed: a forest without trees. */
typedef struct forest {
    forest_node *nodes; /* FOREST_TREES pieces of `piece` */
    size_t piece, capacity;
    uint32_t *order; /* scratch: rows of the node that is split */
    size_t rows_capacity;
} forest;

/* Grow on `rows` rows of `features` numbers each, column by column (number k of row i is
 * x[k * rows + i]), with one value a row; trees grown before are dropped. 1 to 32,000 rows. False
 * when memory gives out. */
bool forest_grow(forest *f, const float *x, const float *y, size_t rows, size_t features,
                 uint64_t seed);
/* Mean of the trees' values for one row, and their standard deviation. */
void forest_ask(const forest *f, const float *row, float *mean, float *spread);
void forest_free(forest *f);

#endif
