/* parsed.h - a problem from its text, or the test fails. */
#ifndef HONE_TESTS_CORE_PARSED_H
#define HONE_TESTS_CORE_PARSED_H

#include "include/hone.h"

hone_problem parsed(const char *text);

#endif
