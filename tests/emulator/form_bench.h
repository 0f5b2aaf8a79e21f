/* form_bench.h - forms of a table (integer_forms.h) run on operands, and held to their references.
 */
#ifndef HONE_TESTS_EMULATOR_FORM_BENCH_H
#define HONE_TESTS_EMULATOR_FORM_BENCH_H

#include "tests/emulator/integer_forms.h"

enum {
    FORM_THREADS = 1024,
    FORM_TOGETHER = 24, /* forms of one kernel */
};

/* Up to FORM_TOGETHER forms, in one kernel; four operands of each thread. Fails the test where a
 * result is not the reference's, and where references leave most of a form's results open. */
void form_bench_run(const integer_form *forms, size_t len, const uint64_t in[4 * FORM_THREADS]);

#endif
