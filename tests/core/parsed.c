/* parsed.c - a problem from its text. */
#include "tests/core/parsed.h"

#include <check.h>

hone_problem parsed(const char *text)
{
    hone_problem p;
    hone_error e = {.status = HONE_OK};

    ck_assert_msg(hone_problem_parse(text, &p, &e) == HONE_OK, "%s: %s", text, e.message);
    return p;
}
