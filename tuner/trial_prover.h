/* trial_prover.h - proves and times candidates on a device of this process: what hone-prover does
 * for a sweep. */
#ifndef HONE_TUNER_TRIAL_PROVER_H
#define HONE_TUNER_TRIAL_PROVER_H

#include "runtime/jit.h"
#include "tuner/engine.h"

/* A device and the inputs of the problem that was asked for last. One thread at a time. */
typedef struct trial_prover trial_prover;

/* `d` and `timed` (NULL: balanced) are borrowed. Proofs take up to `threads` threads. A candidate
 * whose operands and workspace are over `memory_bytes` (0: no limit) is `oom`. Caller closes *out.
 */
hone_status trial_prover_open(const device *d, const routing *timed, int threads,
                              uint64_t memory_bytes, trial_prover **out, hone_error *error);
void trial_prover_close(trial_prover *p); /* NULL is fine */

/* Prove and time what was compiled; *out is whole whatever the verdict, but what the compile says
 * of it (trial_prover_note). A status other than HONE_OK: the device or this machine is at fault,
 * not the candidate. */
hone_status trial_prover_run(trial_prover *p, const engine_trial *trial, const compiled *code,
                             engine_result *out, hone_error *error);

/* Add to a result what a compile said: resources, and the flaw that a proved candidate was tried in
 * spite of. */
void trial_prover_note(const engine_trial *trial, const engine_answer *answer, engine_result *out);

#endif
