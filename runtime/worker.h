/* worker.h - one worker process as its parent sees it: started, asked, and killed at its deadline.
 *
 * What it works at is its program's: hone-worker compiles, hone-prover proves on a device. */
#ifndef HONE_RUNTIME_WORKER_H
#define HONE_RUNTIME_WORKER_H

#include "runtime/wire.h"

#include <sys/types.h>

typedef struct worker_program {
    const char *path;
    const char *name; /* in messages: "the compiler" */
    /* Environment variables that it inherits, beside LC_ALL=C; ends with NULL. */
    const char *const *inherited;
    const char *argument; /* its first; the second is this process's number */
} worker_program;

typedef struct worker {
    pid_t pid;        /* also its process group; 0 when none runs */
    int fd;           /* socket to its stdin */
    int cancel_fd;    /* readable when the parent wants to stop waiting; -1: never */
    const char *name; /* the program's */
    uint32_t jobs;
} worker;

/* Spawn the program and take its hello's payload (the caller frees *hello). The calling thread must
 * outlive the worker: it dies with the thread that made it. The program's name is borrowed for as
 * long as the worker runs. `cancel_fd` ends waits when it becomes readable (HONE_CANCELLED).
 * HONE_ENVIRONMENT when the program is missing, HONE_WORKER when it does not start. */
hone_status worker_start(worker *w, const worker_program *program, int cancel_fd, uint8_t **hello,
                         size_t *hello_len, hone_error *error);

/* Send a request and wait for the answer's payload (the caller frees *answer). A worker that does
 * not answer within `deadline_ms`, dies or talks nonsense is stopped: HONE_WORKER, and *timed_out
 * says whether by time. */
hone_status worker_exchange(worker *w, const wire_writer *request, uint32_t deadline_ms,
                            uint8_t **answer, size_t *answer_len, bool *timed_out,
                            hone_error *error);

/* Kill its group and reap it. */
void worker_stop(worker *w);

#endif
