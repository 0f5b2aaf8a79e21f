/* routed_time.h - what the performance model says of a grouped product's config on rows that are
 * spread over the experts in some way: by its manifest's estimate, nothing is compiled. */
#ifndef HONE_BENCH_ROUTED_TIME_H
#define HONE_BENCH_ROUTED_TIME_H

#include "bench/roofline.h"
#include "bench/routing.h"
#include "templates/manifest.h"

typedef struct routed_time {
    double ns;
    perf_bound bound;
    int64_t rows, touched; /* rows with an expert, as far as there is room, and experts with rows */
    int64_t rows_made;     /* of the tiles that cover them */
    roofline roof; /* each touched expert's weights once, rows and D once, or the products */
} routed_time;

/* Of a moe_gemm whose rows are grouped, not its k, and of a template with a cover; others are
 * HONE_UNSUPPORTED. `how` NULL: balanced. HONE_NO_MEMORY, what routing_check and perf_predict say.
 * Thread-safe. */
hone_status routed_time_of(const manifest *m, const config *c, const hone_problem *problem,
                           const gpu *g, const routing *how, routed_time *out, hone_error *error);

#endif
