/* roofline.h - how near a time comes to what the device could do at best. Pure. */
#ifndef HONE_BENCH_ROOFLINE_H
#define HONE_BENCH_ROOFLINE_H

#include "core/problem.h"
#include "models/perf.h"

typedef struct roofline {
    double flop, bytes;    /* that the problem needs at least */
    double tflops, gbytes; /* per second at this time; tflops 0 for ops without multiply-adds */
    double roof_ns;        /* the larger of compute and memory at the device's peaks */
    double percent;        /* roof_ns / time; over 100 when the data came from L2 */
    perf_bound bound; /* PERF_TENSOR or PERF_DRAM: which peak is the roof; PERF_LAUNCH when it is
                         unknown */
} roofline;

/* `ns` > 0. */
roofline roofline_of(const gpu *g, const hone_problem *problem, double ns);
/* The same for work that is known otherwise: a moe_gemm's, by the rows that were timed. */
roofline roofline_of_work(const gpu *g, const hone_problem *problem, double flop, double bytes,
                          double ns);

#endif
