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

#endif
