/* ptx_target.h - any bytes as a PTX module: loaded, and what loads is run for a while. */
#ifndef HONE_TESTS_FUZZ_PTX_TARGET_H
#define HONE_TESTS_FUZZ_PTX_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* How many kernels ran, -1 when the text did not load. Whatever the text says, this returns, and
 * touches no memory but its own. */
int ptx_target_run(const uint8_t *text, size_t len);

#endif
