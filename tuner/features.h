/* features.h - a config as numbers that a model can split: each parameter's place in its list, and
 * the logarithms of products and quotients of two of them, which threads, tiles and ratios are. */
#ifndef HONE_TUNER_FEATURES_H
#define HONE_TUNER_FEATURES_H

#include "templates/manifest.h"

/* 32 parameters; products and quotients of the first 12 with three or more positive values. */
#define FEATURES_MOST (MANIFEST_MAX_PARAMS + 12 * 11)

typedef struct features {
    const manifest *m; /* borrowed */
    uint32_t len, live_len, sized_len;
    uint32_t live[MANIFEST_MAX_PARAMS]; /* parameters with more than one value */
    uint32_t sized[12];
} features;

void features_init(features *f, const manifest *m);
/* f->len numbers of a config. */
void features_of(const features *f, const config *c, float *out);
/* How unlike two configs are: over live parameters, half a point for another value and up to half
 * by how far apart they stand in the list. */
double features_distance(const features *f, const config *a, const config *b);

#endif
