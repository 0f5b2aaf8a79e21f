/* parsed.h - a problem from its text, or the test fails; and texts that are none. */
#ifndef HONE_TESTS_CORE_PARSED_H
#define HONE_TESTS_CORE_PARSED_H

#include "include/hone.h"

hone_problem parsed(const char *text);

/* A text that is no problem: parsing it names what is wrong, and writes nothing. */
typedef struct parsed_wrong {
    const char *text;
    hone_status status;
    const char *names; /* what the message must name */
} parsed_wrong;
void parsed_refuses(const parsed_wrong *wrong);

#endif
