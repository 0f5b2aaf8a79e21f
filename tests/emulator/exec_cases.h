/* exec_cases.h - a table of operations, each as PTX and as C that does the same: CASES(X) gives
 * X(id, ptx, body) of each, and EXEC_CASES makes the functions and the table `cases` of them.
 * Before it: CASES, and what the bodies use. */
#ifndef HONE_TESTS_EMULATOR_EXEC_CASES_H
#define HONE_TESTS_EMULATOR_EXEC_CASES_H

#include <stdint.h>

/* Words in, words out. */
typedef struct exec_case {
    const char *ptx;
    void (*reference)(const uint32_t *a, uint32_t *d);
} exec_case;

#define EXEC_FUNCTION(id, ptx, body)                                                               \
    static void id(const uint32_t *a, uint32_t *d)                                                 \
    {                                                                                              \
        body;                                                                                      \
    }
#define EXEC_ROW(id, ptx, body) {ptx, id},
#define EXEC_CASES(list)        list(EXEC_FUNCTION) static const exec_case cases[] = {list(EXEC_ROW)}

#endif
