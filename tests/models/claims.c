/* claims.c - compares a reader's verdict with the one that is claimed. */
#include "tests/models/claims.h"

#include <string.h>

void claim_check(const claim *c, hone_status status, const hone_error *error)
{
    ck_assert_msg(status == c->status, "%s: %s (%s)", c->claim, hone_status_name(status),
                  error->message);
    ck_assert_msg(c->line < 0 || error->line == c->line, "%s: line %d, %s", c->claim, error->line,
                  error->message);
    ck_assert_msg(c->says == NULL || strstr(error->message, c->says) != NULL, "%s: '%s'", c->claim,
                  error->message);
}

int claim_run(const char *name, TCase *tests)
{
    Suite *suite = suite_create(name);
    SRunner *runner = srunner_create(suite);

    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
