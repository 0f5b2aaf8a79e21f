/* suite.h - the end of each suite's main: run, count, free. */
#ifndef HONE_TESTS_RUNTIME_SUITE_H
#define HONE_TESTS_RUNTIME_SUITE_H

#include <check.h>

/* Runs and frees the suite. The program's exit status: 0 when all passed. */
int suite_run(Suite *suite);

#endif
