/* serving_fixture.h - a store in a folder of its own, and runtimes that serve it with one kernel
 * cache. Failures end the test. */
#ifndef HONE_TESTS_SERVING_FIXTURE_H
#define HONE_TESTS_SERVING_FIXTURE_H

#include "tests/runtime/store_fixture.h"

#define GEMM(m) "fp8_gemm:m=" #m ",n=256,k=256,recipe=f32-1x128-128x128"

/* The kernel cache of all tests of a suite: each kernel is compiled once. Around suite_run. */
void serving_fixture_start(void);
void serving_fixture_stop(void);

/* The store, anew; `usual`: winners on emu:h20 at M = 16, 64 and 4096 (64 is of the bucket list, as
 * are the others). */
void serving_fixture_write(const fixture_winner *winners, size_t len);
void serving_fixture_write_usual(void);
void serving_fixture_remove(void);
const char *serving_fixture_store(void);

hone_runtime *serving_fixture_open(const char *device_spec, int strict, int allow_modelled);
void serving_fixture_prepare(hone_runtime *rt, const char *text);

#endif
