/* worker.h - one hone-worker process as its parent sees it: started, asked, and killed at its
 * deadline. */
#ifndef HONE_RUNTIME_WORKER_H
#define HONE_RUNTIME_WORKER_H

#include "runtime/jit.h"
#include "runtime/wire.h"

#include <sys/types.h>

typedef struct worker {
    pid_t pid;     /* also its process group; 0 when none runs */
    int fd;        /* socket to its stdin */
    int cancel_fd; /* readable when the parent wants to stop waiting; -1: never */
    uint32_t jobs;
    jit_version version; /* from its hello */
} worker;

/* Spawn `program` and take its hello. The calling thread must outlive the worker: it dies with the
 * thread that made it. `cancel_fd` ends waits when it becomes readable (HONE_CANCELLED).
 * HONE_ENVIRONMENT when the program or NVRTC is missing, HONE_WORKER when it does not start. */
hone_status worker_start(worker *w, const char *program, uint64_t memory_bytes, int cancel_fd,
                         hone_error *error);

/* Send a request and wait for the answer's payload (the caller frees *answer). A worker that does
 * not answer within `deadline_ms`, dies or talks nonsense is stopped: HONE_WORKER, and *timed_out
 * says whether by time. */
hone_status worker_exchange(worker *w, const wire_writer *request, uint32_t deadline_ms,
                            uint8_t **answer, size_t *answer_len, bool *timed_out,
                            hone_error *error);

/* Kill its group and reap it. */
void worker_stop(worker *w);

#endif
