/* kernels.h - templates, GPUs and NVRTC for the suites that compile kernels. */
#ifndef HONE_TESTS_TEMPLATES_KERNELS_H
#define HONE_TESTS_TEMPLATES_KERNELS_H

#include "models/gpu.h"
#include "runtime/jit.h"
#include "templates/space.h"

#include <check.h>

/* What a suite shares: opened once, closed by kernels_close. Where no NVRTC can be opened
 * `compiler` is NULL, and the reason was printed as SKIP. */
typedef struct kernels {
    templates *templates;
    jit *compiler;
} kernels;

kernels kernels_open(void);
void kernels_close(kernels *k);

/* The template that serves `problem` on `device`; the test fails when there is none. */
const manifest *kernels_serving(const kernels *k, const hone_problem *problem,
                                const device_facts *device);

/* Compile `entry` of `source` for `arch`. The template's digest is left zero: nothing is cached. */
hone_status kernels_compile(const kernels *k, const template_source *source, const char *entry,
                            int32_t arch, compiled **out, hone_error *error);

/* Run a suite of one test case whose fixture opens and closes what it shares; main's exit status.
 */
int kernels_run(const char *suite_name, TCase *tests, void (*setup)(void), void (*teardown)(void));

#endif
