/* perf_fixture.h - what the suites of the performance model share; a failure ends the test. */
#ifndef HONE_TESTS_PERF_FIXTURE_H
#define HONE_TESTS_PERF_FIXTURE_H

#include "models/perf.h"

gpu perf_fixture_gpu(const char *slug);
perf_answer perf_fixture_predict(const gpu *g, const perf_work *work);

#endif
