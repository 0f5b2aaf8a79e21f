/* suite.h - the end of each suite's main: run, count, free. */
#ifndef HONE_TESTS_SUPPORT_SUITE_H
#define HONE_TESTS_SUPPORT_SUITE_H

#include <check.h>
#include <stddef.h>

/* Run one case, or several, under the suite's name (`folder/module`) as Check's environment says:
 * each test in a process of its own. Frees the cases. Returns main's exit status: 0 when all
 * passed. */
int suite_run(const char *name, TCase *tests);
int suite_run_cases(const char *name, TCase *const *cases, size_t len);

/* As suite_run, but all in this process and without Check's watchdog: for fixtures with threads or
 * children of their own, which would not live in a fork. ctest has the limit of time. */
int suite_run_here(const char *name, TCase *tests);

#endif
