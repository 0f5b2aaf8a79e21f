/* corner_log.h - which proofs have passed, in a file, so that an hour of them can be cut short and
 * taken up again, also when a template's text has changed where a kernel has not.
 *
 * HONE_CORNER_LOG names the file: a line for each proof, appended and flushed once it has passed. A
 * proof is known by all that it hangs on in this project's templates: the PTX, how it is launched,
 * the problem, the device and the seed. The emulator and the references are not part of it: who
 * changes those begins a new file. */
#ifndef HONE_TESTS_CORNER_LOG_H
#define HONE_TESTS_CORNER_LOG_H

#include "tests/bench/corner.h"

/* The name of a proof: of a candidate as `p` launches it for a problem. */
uint64_t corner_log_key(const corner_candidate *c, const hone_problem *problem, const plan *p,
                        uint64_t seed);

/* Whether it has passed before, by the log; false where there is none. */
bool corner_log_has(uint64_t key);

/* It passed. Nothing where there is no log. */
void corner_log_add(uint64_t key, const corner_candidate *c, const hone_problem *problem);

/* A problem and its prover, which is opened when something is left to be proved; the caller closes
 * `made`. */
typedef struct corner_proofs {
    const device *d;
    hone_problem problem;
    uint64_t seed;
    prover *made;
} corner_proofs;

/* How many proofs were made, and found in the log. */
typedef struct corner_count {
    int made, logged;
} corner_count;

/* Prove a candidate as `launches` launches it, unless the log has it. What does not pass ends the
 * test. */
void corner_log_prove(corner_proofs *of, const corner_candidate *c, const plan *launches,
                      corner_count *count);

#endif
