/* compile_sass.h - `hone compile --sass`: what a kernel's machine code issues, and what the
 * device's pipes allow for its main loop. */
#ifndef HONE_CLI_COMPILE_SASS_H
#define HONE_CLI_COMPILE_SASS_H

#include "models/gpu.h"
#include "runtime/jit.h"

#include <jansson.h>

/* What was compiled, and for which GPU; all borrowed. */
typedef struct compile_result {
    const compiled *code;
    const manifest *m;
    const config *config;
    const gpu *gpu;
} compile_result;

/* Print a table of one kernel. The limits are those of 128 of K for the config's tile (block_m x
 * block_n), or without these parameters those of one pass of a warp. */
hone_status compile_sass_print(const compile_result *r, const jit_kernel *kernel,
                               hone_error *error);

/* The same as an object, *out the caller's. */
hone_status compile_sass_json(const compile_result *r, const jit_kernel *kernel, json_t **out,
                              hone_error *error);

#endif
