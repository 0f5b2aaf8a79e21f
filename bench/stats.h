/* stats.h - summaries of samples for reports. Pure. */
#ifndef HONE_BENCH_STATS_H
#define HONE_BENCH_STATS_H

#include <stddef.h>

/* Median of `len` finite samples, which are left as they are; the mean of the middle two when `len`
 * is even. NaN when len is 0 or memory is out. */
double stats_median(const double *samples, size_t len);

/* Median absolute deviation from the median, unscaled; NaN as above. */
double stats_mad(const double *samples, size_t len);

/* Geometric mean of positive samples; NaN when there are none or one is not positive. */
double stats_geomean(const double *samples, size_t len);

#endif
