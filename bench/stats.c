/* stats.c - median, deviation and geometric mean. */
#include "bench/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts. */
static double median_of(double *samples, size_t len)
{
    qsort(samples, len, sizeof *samples, by_value);
    return len % 2 == 1 ? samples[len / 2] : 0.5 * (samples[len / 2 - 1] + samples[len / 2]);
}

static double *copy_of(const double *samples, size_t len)
{
    double *copy = len > 0 ? malloc(len * sizeof *copy) : NULL;

    if (copy != NULL) {
        memcpy(copy, samples, len * sizeof *copy);
    }
    return copy;
}

double stats_median(const double *samples, size_t len)
{
    double *copy = copy_of(samples, len);
    double median = copy != NULL ? median_of(copy, len) : (double)NAN;

    free(copy);
    return median;
}

double stats_mad(const double *samples, size_t len)
{
    double *copy = copy_of(samples, len);
    double middle = 0.0, deviation = NAN;

    if (copy != NULL) {
        middle = median_of(copy, len);
        for (size_t i = 0; i < len; i++) {
            copy[i] = fabs(copy[i] - middle);
        }
        deviation = median_of(copy, len);
    }
    free(copy);
    return deviation;
}

double stats_geomean(const double *samples, size_t len)
{
    double sum = 0.0;

    for (size_t i = 0; i < len; i++) {
        if (!(samples[i] > 0.0)) {
            return NAN;
        }
        sum += log(samples[i]);
    }
    return len > 0 ? exp(sum / (double)len) : (double)NAN;
}
