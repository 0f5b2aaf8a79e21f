/* device_worker.h - one hone-prover process and the thread that talks to it: proofs that no
 * candidate can take the sweep down with.
 *
 * A candidate that crashes its process, or that does not answer within the deadline, is a row; the
 * process is killed with its group and the next candidate gets a new one. */
#ifndef HONE_TUNER_DEVICE_WORKER_H
#define HONE_TUNER_DEVICE_WORKER_H

#include "tuner/prover_wire.h"

typedef struct device_worker device_worker;

typedef struct device_worker_options {
    prover_setup setup; /* its routing is borrowed until close */
    const templates *templates;
    uint32_t deadline_ms; /* of one proof */
    const char *program;  /* NULL: HONE_PROVER, beside this library or program, or libexec */
} device_worker_options;

/* Start the process and open its device: HONE_NO_DEVICE and whatever else device_open says,
 * HONE_ENVIRONMENT when the program is missing. Caller closes *out. */
hone_status device_worker_open(const device_worker_options *options, device_worker **out,
                               hone_error *error);
void device_worker_close(device_worker *w); /* NULL is fine; kills what still runs */

/* Hand a candidate in; never waits for it. HONE_BAD_ARGUMENT while one is under way. What it needs
 * is copied. */
hone_status device_worker_start(device_worker *w, const engine_trial *trial, const compiled *code,
                                hone_error *error);
/* Wait for it. *out lacks what the compile says (trial_prover_note). A status other than HONE_OK:
 * the device or this machine is at fault, not the candidate. */
hone_status device_worker_finish(device_worker *w, engine_result *out, hone_error *error);

/* How often the process was replaced so far. */
uint64_t device_worker_restarts(const device_worker *w);

#endif
