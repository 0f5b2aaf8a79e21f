/* suite.c - runs one Check suite. */
#include "tests/support/suite.h"

static int run(const char *name, TCase *const *cases, size_t len, enum fork_status fork)
{
    Suite *suite = suite_create(name);

    for (size_t i = 0; i < len; i++) {
        suite_add_tcase(suite, cases[i]);
    }
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, fork);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

int suite_run(const char *name, TCase *tests)
{
    return run(name, &tests, 1, CK_FORK_GETENV);
}

int suite_run_cases(const char *name, TCase *const *cases, size_t len)
{
    return run(name, cases, len, CK_FORK_GETENV);
}

int suite_run_here(const char *name, TCase *tests)
{
    tcase_set_timeout(tests, 0);
    return run(name, &tests, 1, CK_NOFORK);
}
