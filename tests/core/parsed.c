/* parsed.c - a problem from its text. */
#include "tests/core/parsed.h"

#include <check.h>
#include <string.h>

hone_problem parsed(const char *text)
{
    hone_problem p;
    hone_error e = {.status = HONE_OK};

    ck_assert_msg(hone_problem_parse(text, &p, &e) == HONE_OK, "%s: %s", text, e.message);
    return p;
}

void parsed_refuses(const parsed_wrong *wrong)
{
    hone_problem p;
    hone_error e = {.status = HONE_OK};

    memset(&p, 0x5a, sizeof p);
    ck_assert_msg(hone_problem_parse(wrong->text, &p, &e) == wrong->status, "%s: %s %s",
                  wrong->text, hone_status_name(e.status), e.message);
    ck_assert_msg(strstr(e.message, wrong->names) != NULL, "%s: %s", wrong->text, e.message);
    ck_assert_int_eq(p.op, 0x5a5a5a5a);
}
