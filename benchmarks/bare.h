/* bare.h - the same kernels compiled by NVRTC alone: what a sweep's compiles are compared with. */
#ifndef HONE_BENCHMARKS_BARE_H
#define HONE_BENCHMARKS_BARE_H

#include "templates/manifest.h"

#include <stdbool.h>

/* One kernel to compile. Borrowed. */
typedef struct bare_kernel {
    const manifest *m;
    char entry[1024]; /* name expression */
} bare_kernel;

/* Compile all of them for sm_`arch`a in `jobs` processes that share the list, each with an NVRTC of
 * its own, and give the wall time from the first fork to the last exit. 0 when a compile fails. */
double bare_compile_s(const templates *t, const bare_kernel *kernels, size_t len, int32_t arch,
                      int jobs);

/* Monotonic, in seconds. */
double bare_now_s(void);
/* Processor time of this process and of its children that have ended, in seconds. */
double bare_processor_s(void);

#endif
