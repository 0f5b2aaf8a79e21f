/* jit_fixture.h - small CUDA sources compiled through a real worker, for the JIT's tests. */
#ifndef HONE_TESTS_RUNTIME_JIT_FIXTURE_H
#define HONE_TESTS_RUNTIME_JIT_FIXTURE_H

#include "runtime/jit.h"

/* Skip the whole program (exit status 0, and a line that says so) when NVRTC is not installed. */
void jit_fixture_need_nvrtc(void);

/* A request for the kernel `entry` of `source`, without headers, for sm_90a. */
jit_request jit_fixture_request(const char *source, const char *entry);

#endif
