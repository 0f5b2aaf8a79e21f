/* prove_fixture.h - a candidate compiled and loaded on an emulated GPU, ready to be proved.
 * Failures end the test. */
#ifndef HONE_TESTS_PROVE_FIXTURE_H
#define HONE_TESTS_PROVE_FIXTURE_H

#include "bench/prove.h"
#include "runtime/default.h"

typedef struct prove_fixture {
    device *d;
    hone_problem problem;
    default_choice choice;
    plan plan;
    compiled *code;
    module *m;
    prover *p;
} prove_fixture;

/* Templates and the compiler, for all tests of a suite: before Check runs, on the main thread.
 * False without NVRTC, which is said, and ends the process with 1 when this build is at fault. */
bool prove_fixture_start(const char *suite);
void prove_fixture_stop(void);
/* What all tests share, between start and stop. */
const templates *prove_fixture_templates(void);
jit *prove_fixture_compiler(void);

/* The best choice of one template (NULL: of all) by the performance model, or the config `pinned`
 * of `template`. In its source, or in the first header that has it, `old` gives way to `new`;
 * NULL: the template as it is. */
void prove_fixture_open(prove_fixture *f, const char *spec, const char *text, const char *template,
                        const char *pinned, const char *old, const char *new);
/* Whether a row of a suite's table is left to its long run (HONE_PROVE_ALL), which takes every one:
 * else every `step`-th is taken. A mutant's `old` (NULL: none) must stand in the template all the
 * same. */
bool prove_fixture_leaves(int row, int step, const char *template, const char *old);
void prove_fixture_run(prove_fixture *f, prove_result *out);
void prove_fixture_close(prove_fixture *f);

/* A fault seeded into a template: `old` gives way to `new`. */
typedef struct prove_mutant {
    const char *what;
    int row; /* of the suite's configs */
    const char *old, *new;
} prove_mutant;

/* The pinned config is legal by its manifest, its code is as fast as it was meant to be (no spills,
 * no products in turn), and it is proved: *out (NULL: not asked). A mutant of it is refused. */
void prove_fixture_hold(const char *spec, const char *text, const char *template,
                        const char *pinned, prove_result *out);
void prove_fixture_refuse(const prove_mutant *mutant, const char *spec, const char *text,
                          const char *template, const char *pinned);

#endif
