/* toolkit_fp8.h - the CUDA toolkit's own conversions, behind plain functions: its header has
 * warnings of its own. */
#ifndef TESTS_CORE_TOOLKIT_FP8_H
#define TESTS_CORE_TOOLKIT_FP8_H

#include <stdint.h>

/* cvt.rn.satfinite of x as the toolkit's host code does it. */
uint8_t toolkit_e4m3(float x);
uint8_t toolkit_e5m2(float x);

#endif
