/* prover_wire.h - what a sweep and its hone-prover say to each other, over runtime/wire.h.
 *
 *   prover: HELLO   "" or why it cannot work, sandboxed
 *   parent: OPEN    device, threads, routing         prover: ANSWER  status, source, message
 *   parent: PROVE   problem, template, config, code  prover: ANSWER  status, source, message,
 * spent, result
 *
 * Both ends are one build: a prover that does not know a template, or knows another text of it,
 * refuses the job (HONE_ENVIRONMENT). */
#ifndef HONE_TUNER_PROVER_WIRE_H
#define HONE_TUNER_PROVER_WIRE_H

#include "runtime/jit.h"
#include "runtime/wire.h"
#include "tuner/engine.h"

/* OPEN. */
typedef struct prover_setup {
    char spec[64]; /* "cuda:0" or "emu:h20" */
    int threads;
    uint64_t memory_bytes; /* that a problem's operands and workspace may take; 0: no limit */
    routing routing;       /* of a reader owned: routing_free */
} prover_setup;

/* PROVE as the prover reads it. */
typedef struct prover_job {
    hone_problem problem;
    const manifest *m;
    config config;
    uint64_t seed;
    compiled *code; /* owned: compiled_free */
} prover_job;

/* How a prover's job ended. */
typedef struct prover_reply {
    hone_status status; /* of the machine; HONE_OK: `result` holds the verdict */
    hone_error error;   /* of that status */
    bool spent;         /* the prover's device context is lost: replace it */
} prover_reply;

/* Write a message, or false (out of memory, or over WIRE_MAX_BYTES); the caller frees `w`. A reply
 * is ended by wire_socket_send. */
bool prover_put_setup(wire_writer *w, const prover_setup *setup);
bool prover_put_job(wire_writer *w, const templates *t, const engine_trial *trial,
                    const compiled *code);
bool prover_put_reply(wire_writer *w, const prover_reply *reply, const engine_result *result);

/* Read a payload. HONE_WORKER for one that is not whole; of a job HONE_ENVIRONMENT as above, and
 * what a problem's or a config's text is refused with. */
hone_status prover_get_setup(const uint8_t *payload, size_t len, prover_setup *out,
                             hone_error *error);
hone_status prover_get_job(const uint8_t *payload, size_t len, const templates *t, prover_job *out,
                           hone_error *error);
/* `result` NULL: of an OPEN, which has none. */
hone_status prover_get_reply(const uint8_t *payload, size_t len, prover_reply *reply,
                             engine_result *result, hone_error *error);

#endif
