/* features.c - a config as numbers that a model can split. */
#include "tuner/features.h"

#include <math.h>

void features_init(features *f, const manifest *m)
{
    *f = (features){.m = m};
    for (uint32_t p = 0; p < manifest_params_len(m); p++) {
        const int64_t *values = NULL;
        const uint32_t len = manifest_param_values(m, p, &values);
        bool positive = len > 2;
        for (uint32_t v = 0; v < len; v++) {
            positive = positive && values[v] > 0;
        }
        if (len > 1) {
            f->live[f->live_len++] = p;
        }
        if (positive && f->sized_len < 12) {
            f->sized[f->sized_len++] = p;
        }
    }
    f->len = f->live_len + f->sized_len * (f->sized_len - (f->sized_len > 0));
}

static uint32_t place_of(const features *f, uint32_t param, int64_t value)
{
    const int64_t *values = NULL;
    const uint32_t len = manifest_param_values(f->m, param, &values);
    uint32_t v = 0;

    while (v + 1 < len && values[v] != value) {
        v++;
    }
    return v;
}

void features_of(const features *f, const config *c, float *out)
{
    float logs[12];
    uint32_t len = 0;

    for (uint32_t i = 0; i < f->live_len; i++) {
        const int64_t *values = NULL;
        const uint32_t p = f->live[i];
        /* Few values may stand in any order: their list's. */
        out[len++] = manifest_param_values(f->m, p, &values) > 2
                         ? (float)c->value[p]
                         : (float)place_of(f, p, c->value[p]);
    }
    for (uint32_t i = 0; i < f->sized_len; i++) {
        logs[i] = (float)log2((double)c->value[f->sized[i]]);
        for (uint32_t k = 0; k < i; k++) {
            out[len++] = logs[i] + logs[k];
            out[len++] = logs[i] - logs[k];
        }
    }
}

double features_distance(const features *f, const config *a, const config *b)
{
    double sum = 0;

    for (uint32_t i = 0; i < f->live_len; i++) {
        const int64_t *values = NULL;
        const uint32_t p = f->live[i];
        const uint32_t len = manifest_param_values(f->m, p, &values);
        const double apart =
            (double)place_of(f, p, a->value[p]) - (double)place_of(f, p, b->value[p]);
        sum += apart == 0 ? 0 : 0.5 + 0.5 * fabs(apart) / (len - 1);
    }
    return sum;
}
