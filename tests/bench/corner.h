/* corner.h - candidates for the suites of corner cases: one config, compiled and loaded once,
 * proved for problems that differ in sizes. Failures of the machinery end the test. */
#ifndef HONE_TESTS_CORNER_H
#define HONE_TESTS_CORNER_H

#include "bench/inputs.h"
#include "tests/bench/prove_fixture.h"

typedef struct corner_candidate {
    const device *d;
    const manifest *m;
    config config;
    char text[512]; /* of the config */
    compiled *code;
    module *module;
} corner_candidate;

/* Compile and load a config that is legal for `problem`. */
void corner_open(corner_candidate *c, const device *d, const hone_problem *problem,
                 const manifest *m, const config *chosen);
/* A change of the template's text: the first place of `old`, in the source or else in the first
 * header that has it. */
typedef struct corner_edit {
    const char *old, *new;
} corner_edit;
void corner_open_edited(corner_candidate *c, const device *d, const hone_problem *problem,
                        const manifest *m, const config *chosen, const corner_edit *edits,
                        size_t len);
void corner_close(corner_candidate *c);

/* The candidate's launches for a problem of its family on a device of so many SMs; 0: its own.
 * False where it is not legal there. */
bool corner_plan(const corner_candidate *c, const hone_problem *problem, int32_t sms, plan *out);

/* A problem by format and sizes. */
hone_problem corner_problem(const char *recipe, int64_t m, int64_t n, int64_t k);

/* The best config of `m` for the problem by the model, or nothing. */
bool corner_default(const device *d, const hone_problem *problem, const manifest *m, config *out);

/* Draws that cover a space: up to `most` legal configs, each with a value of some parameter that
 * none before had (HONE_SEED moves them). How many there are. */
size_t corner_draw(const device *d, const hone_problem *problem, const manifest *m, uint64_t seed,
                   size_t most, config *out);

/* Every order of `seeds` with both timings and all checks: the reason in `why` of the first fault,
 * or difference in bits, else "". */
void corner_schedules(const corner_candidate *c, const hone_problem *problem, const plan *p,
                      uint64_t seeds, char why[240]);

/* Launch once on these operands, and judge what is written. */
verify_result corner_judge(const corner_candidate *c, const hone_problem *problem,
                           const inputs *in);

#endif
